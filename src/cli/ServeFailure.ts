/** Says why a server or a worker has failed. */
import * as Effect from "effect/Effect"
import * as ExitCode from "./ExitCode.ts"
import * as Inert from "./Inert.ts"
import { Screen } from "./Screen.ts"

/** Writes the reason in a line, and returns the exit code. */
export const failed = (cause: unknown) =>
  Screen.use(({ err, paint }) => {
    const message = cause instanceof Error ? cause.message : String(cause)
    return Effect.as(err(`${paint.red("effect-agent:")} ${Inert.line(message)}\n`), ExitCode.failed)
  })
