/**
 * Runs a shell command.
 *
 * The command runs in the root, and is not confined to it: a shell can do what its user can. Ask a person or rules
 * (`CommandRules`) first, or put the whole agent into a sandbox. For POSIX systems.
 *
 * A command and all it starts end with the call: when its shell exits, when it takes too long, and when the call is
 * interrupted, what is left of its process group gets SIGTERM and, 0.4 seconds later, SIGKILL. A process that makes a
 * session of its own (`setsid`) leaves the group and is not ended.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as ChildProcess from "effect/process/ChildProcess"
import type * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Tool from "../Tool.ts"
import * as ChildEnvironment from "./ChildEnvironment.ts"
import * as Output from "./Output.ts"
import { fromPlatform } from "./PathFailure.ts"
import * as ProcessGroup from "./ProcessGroup.ts"

/** Where and how commands run. */
export interface Options {
  /** Where commands run. */
  readonly root: string
  /** Program that gets `-c` and the command. Default: `/bin/sh`. */
  readonly shell?: string
  /** Time for a command that asks for none. Default: 120 seconds. */
  readonly timeout?: Duration.Input
  /** The most a command may ask for. Default: 600 seconds. */
  readonly maxTimeout?: Duration.Input
  /** Characters of output kept, half from the start, half from the end. Default: 30,000. */
  readonly maxOutput?: number
  /** Names of variables that commands get although they look like secrets. Default: none. */
  readonly passEnvironment?: ReadonlyArray<string>
  /** Variables that commands get on top, secrets or not. Default: none. */
  readonly environment?: ChildEnvironment.Environment
}

/** The command could not be run at all. */
export class ShellFailed extends Schema.TaggedError<ShellFailed>()("ShellFailed", {
  detail: Schema.String
}) {
  override get message(): string {
    return `The command was not run: ${this.detail}`
  }
}

const Params = Schema.Struct({
  command: Schema.NonEmptyString.annotate({ description: "Command line for the shell" }),
  timeout: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThan(0))).annotate({
    description: "Seconds after which the command is ended"
  })
})
type Params = typeof Params.Type

/** The tool `shell`. A command that fails is an error result, with its output. */
export const make = (options: Options) => {
  const usual = Duration.fromInputUnsafe(options.timeout ?? "120 seconds")
  const most = Duration.fromInputUnsafe(options.maxTimeout ?? "600 seconds")
  return Tool.make({
    name: "shell",
    label: "Shell",
    description:
      "Runs a command line in the root folder and gives its output and exit code. There is no input to read, nothing " +
      `keeps running after the call, and it is ended after ${Duration.toSeconds(usual)} seconds unless timeout says ` +
      `otherwise (at most ${Duration.toSeconds(most)}).`,
    params: Params,
    failure: ShellFailed,
    // It has a limit of its own, up to `maxTimeout`.
    timeout: "Infinity",
    execute: Effect.fnUntraced(function* ({ command, timeout }: Params) {
      const limit = Duration.min(timeout === undefined ? usual : Duration.seconds(timeout), most)
      const output = Output.bounded(options.maxOutput ?? 30_000)
      yield* Effect.forkScoped(showProgress(output))
      const ended = yield* run(options, command, limit, output)
      return rendered(ended, output, limit)
    }, Effect.scoped)
  })
}

type Ended =
  | { readonly _tag: "Exit"; readonly code: number }
  | { readonly _tag: "Signal"; readonly name: string }
  | { readonly _tag: "Timeout" }

const run = Effect.fnUntraced(function* (
  options: Options,
  command: string,
  limit: Duration.Duration,
  output: Output.Bounded
) {
  const paths = yield* Path.Path
  const shell = options.shell ?? "/bin/sh"
  // Both outputs into one pipe, so that their order is kept. The outer shell becomes the inner one. Behind a space, a
  // command that begins with a dash is no option of the shell.
  const process = ChildProcess.make("/bin/sh", ["-c", 'exec "$0" -c " $1" 2>&1', shell, command], {
    cwd: paths.resolve(options.root),
    env: ChildEnvironment.make(globalThis.process.env, {
      passed: options.passEnvironment ?? [],
      added: options.environment ?? {}
    }),
    stdin: "ignore",
    stderr: "ignore",
    killSignal: "SIGTERM",
    forceKillAfter: "400 millis"
  })
  const decoder = new TextDecoder()
  const outer = yield* Effect.scope
  const body = Effect.fnUntraced(function* (handle: ChildProcessSpawner.ChildProcessHandle) {
    const reading = Stream.runForEach(handle.stdout, (bytes) =>
      Effect.sync(() => output.append(decoder.decode(bytes, { stream: true })))
    )
    const reader = yield* Effect.forkIn(reading, outer)
    return { reader, exit: yield* exitOf(handle.exitCode, limit) }
  })
  // All that could still write is gone after this, but for a process that left the group: it is not waited for.
  const { exit, reader } = yield* ProcessGroup.use(process, body).pipe(
    Effect.mapError((error) => new ShellFailed({ detail: fromPlatform(shell, error).detail }))
  )
  yield* Fiber.await(reader).pipe(Effect.timeoutOption("500 millis"))
  output.append(decoder.decode())
  return exit
})

const exitOf = (
  exitCode: Effect.Effect<number, PlatformError>,
  limit: Duration.Duration
): Effect.Effect<Ended, PlatformError> =>
  exitCode.pipe(
    Effect.map((code): Ended => ({ _tag: "Exit", code })),
    Effect.catch((error) => {
      const signal = /'(SIG\w+)'/.exec(error.cause instanceof Error ? error.cause.message : "")?.[1]
      return signal === undefined
        ? Effect.fail(error)
        : Effect.succeed<Ended>({ _tag: "Signal", name: signal })
    }),
    Effect.timeoutOption(limit),
    Effect.map((ended) => Option.getOrElse(ended, (): Ended => ({ _tag: "Timeout" })))
  )

/** Shows the end of the output to whoever watches, at most twice a second. */
const showProgress = Effect.fnUntraced(function* (output: Output.Bounded) {
  const context = yield* Tool.ToolContext
  let shown = 0
  while (true) {
    yield* Effect.sleep("500 millis")
    if (output.total() === shown) continue
    shown = output.total()
    yield* context.progress(Tool.output(output.tail(2_000)))
  }
})

const rendered = (ended: Ended, output: Output.Bounded, limit: Duration.Duration): Tool.ToolOutput => {
  const text = output.text().trimEnd()
  const status = statusOf(ended, limit)
  const isError = status !== undefined
  return Tool.output([text === "" ? "(no output)" : text, ...(isError ? [`[${status}]`] : [])].join("\n"), {
    isError,
    details: {
      ...(ended._tag === "Exit" ? { exitCode: ended.code } : {}),
      ...(ended._tag === "Signal" ? { signal: ended.name } : {}),
      timedOut: ended._tag === "Timeout",
      characters: output.total(),
      omitted: output.omitted()
    }
  })
}

/** What the model must know of the end; nothing when all went well. */
const statusOf = (ended: Ended, limit: Duration.Duration): string | undefined => {
  switch (ended._tag) {
    case "Exit":
      return ended.code === 0 ? undefined : `Exit code ${ended.code}`
    case "Signal":
      return `Ended by ${ended.name}`
    case "Timeout":
      return `Ended: it took longer than ${Duration.toSeconds(limit)} seconds. What it started is ended too`
  }
}
