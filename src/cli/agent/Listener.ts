/** The server of Node at an address, whose open connections do not delay the end of the program. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as References from "effect/References"
import * as HttpServer from "effect/http/HttpServer"
import type { SocketServerError } from "effect/socket/SocketServer"
import { createServer } from "node:http"
import type { Socket } from "node:net"
import { setFlagsFromString } from "node:v8"
import * as ExitCode from "../ExitCode.ts"
import type { OfServer } from "../settings/Settings.ts"
import * as Inert from "../terminal/Inert.ts"
import { Screen } from "../terminal/Screen.ts"

interface Options extends Pick<OfServer, "grace" | "headTime" | "keepAlive" | "maxConnections"> {
  readonly host: string
  readonly port: number
}

/** The time in which streams of runs that were let go of get to close. */
const flush = Duration.seconds(1)

/**
 * Serves an application until the scope closes, and succeeds with its address. Then it closes at once the connections on which no request is
 * open, and the others when `grace` is over.
 */
export const serve = Effect.fnUntraced(function* <R>(
  app: Layer.Layer<never, never, HttpServer.HttpServer | R>,
  { grace, headTime, host, keepAlive, maxConnections, port }: Options
) {
  const millis = (time: Option.Option<Duration.Duration>, usual: number) =>
    Math.ceil(Option.match(time, { onNone: () => usual, onSome: Duration.toMillis }))
  const headersTimeout = millis(headTime, 30_000)
  const server = createServer({
    keepAliveTimeout: millis(keepAlive, 75_000),
    headersTimeout,
    // The time of a body is that of the application. This one is for bodies that it does not read.
    requestTimeout: Math.max(300_000, headersTimeout),
    connectionsCheckingInterval: 5_000
  })
  server.maxConnections = Option.getOrElse(maxConnections, () => 10_000)
  /** The connections that have had no whole head: Node does not count them as idle. */
  const silent = new Set<Socket>()
  server.on("connection", (socket) => {
    silent.add(socket)
    socket.once("close", () => silent.delete(socket))
  })
  server.on("request", ({ socket }) => silent.delete(socket))
  const node = NodeHttpServer.layer(() => server, { host, port })
  const context = yield* Layer.build(Layer.provideMerge(app, node))
  const closing = Effect.gen(function* () {
    for (const socket of silent) socket.destroy()
    server.closeIdleConnections()
    yield* Effect.sleep(Duration.sum(grace, flush))
    server.closeAllConnections()
  })
  // Added last, so that it is the first step of the end.
  yield* Effect.addFinalizer(() => Effect.forkDetach(closing, { startImmediately: true }))
  return HttpServer.formatAddress(Context.get(context, HttpServer.HttpServer).address)
})

// ───────────────────────── Failures

/** Writes the reason in a line, and returns the exit code. */
const failed = (cause: unknown) =>
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

// ───────────────────────── The heap

// The heap of a process that serves.
//
// V8 lets the old generation of a heap grow to several times what is in use, and allocates objects there whose like lived long before:
// after the start of many runs, those of each delta. Measured on 500 runs that streamed for a minute, 720 MB of memory became 540, for the
// CPU that they cost before.

const flags = ["--heap-growing-percent=20", "--no-allocation-site-pretenuring"]

/** Keeps the heap near what is in use, from now on. */
export const keepLow: Effect.Effect<void> = Effect.sync(() =>
  flags.forEach((flag) => setFlagsFromString(flag))
)
