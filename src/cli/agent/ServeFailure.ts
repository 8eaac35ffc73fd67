/** The log of a server or a worker, and its failures. */
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import type { SocketServerError } from "effect/socket/SocketServer"
import * as ExitCode from "../ExitCode.ts"
import * as Inert from "../terminal/Inert.ts"
import { Screen } from "../terminal/Screen.ts"

/** Writes the reason in a line, and returns the exit code. */
export const failed = (cause: unknown) =>
  Screen.use(({ err, paint }) => {
    const message = cause instanceof Error ? cause.message : String(cause)
    return Effect.as(err(`${paint.red("effect-agent:")} ${Inert.line(message)}\n`), ExitCode.failed)
  })

/** The exit codes of the failures of `serve` and `worker`, by their tags. */
export const handlers = {
  ServeError: ({ cause }: { readonly cause: unknown }) => failed(cause),
  RunLogError: failed,
  ClusterRefused: failed,
  // Its own message is no more than "Open".
  SocketServerError: ({ reason }: SocketServerError) => failed(reason.cause)
}

/** Logs to stderr, for which a log of requests needs the level. */
export const logged = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.updateService(effect, References.MinimumLogLevel, (level) => (level === "None" ? "Info" : level))
