/** Runs the command of a hook in a process group of its own, with an object of JSON on its stdin. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as ChildProcess from "effect/process/ChildProcess"
import * as ChildEnvironment from "../../tools/ChildEnvironment.ts"
import type { CommandHook } from "./HookFile.ts"
import type { Ended } from "./Verdict.ts"

/** The bytes of each output that count. */
const maxBytes = 1_048_576

/** Runs a command in a folder, until it ends or its time is over. Then no process of its group lives. */
export const run = Effect.fnUntraced(
  function* (
    { command, timeout }: Pick<CommandHook, "command" | "timeout">,
    folder: string,
    input: Schema.Json
  ) {
    const added = { CLAUDE_PROJECT_DIR: folder, EFFECT_AGENT_PROJECT_DIR: folder }
    // The space before the command prevents the shell from reading a leading dash as an option.
    const process = ChildProcess.make("/bin/sh", ["-c", ` ${command}`], {
      cwd: folder,
      env: ChildEnvironment.make(globalThis.process.env, { added }),
      stdin: Stream.make(new TextEncoder().encode(`${JSON.stringify(input)}\n`)),
      killSignal: "SIGTERM",
      forceKillAfter: "400 millis"
    })
    const handle = yield* process
    const stdout = yield* collecting(handle.stdout)
    const stderr = yield* collecting(handle.stderr)
    const ended = yield* Effect.timeoutOption(Effect.result(handle.exitCode), `${timeout} seconds`)
    if (Option.isNone(ended)) return { _tag: "Timeout", seconds: timeout } satisfies Ended
    if (ended.value._tag === "Failure") return endOf(ended.value.failure)
    return {
      _tag: "Exit",
      code: ended.value.success,
      stdout: yield* stdout,
      stderr: yield* stderr
    } satisfies Ended
  },
  Effect.scoped,
  Effect.catch((error) => Effect.succeed<Ended>(endOf(error)))
)

const endOf = (error: PlatformError): Ended => {
  const signal = /'(SIG\w+)'/.exec(error.cause instanceof Error ? error.cause.message : "")?.[1]
  return signal === undefined
    ? { _tag: "NotStarted", detail: error.message }
    : { _tag: "Signal", name: signal }
}

/** Reads an output beside the process. Succeeds with the text, for which a process that left the group is not waited for. */
const collecting = Effect.fnUntraced(function* (output: Stream.Stream<Uint8Array, PlatformError>) {
  const decoder = new TextDecoder()
  let size = 0
  let text = ""
  const reading = Stream.runForEach(output, (bytes) =>
    Effect.sync(() => {
      const counted = bytes.subarray(0, maxBytes - size)
      size += counted.length
      text += decoder.decode(counted, { stream: true })
    })
  )
  const reader = yield* Effect.forkScoped(reading)
  return Effect.map(Effect.timeoutOption(Fiber.await(reader), "500 millis"), () => text)
})
