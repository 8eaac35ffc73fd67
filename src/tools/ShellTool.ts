/**
 * The tool `shell`: runs a command line of a POSIX shell.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as ChildProcess from "effect/process/ChildProcess"
import type * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import * as Tool from "../Tool.ts"
import { TaggedError } from "../internal/errors.ts"
import * as ChildEnvironment from "./ChildEnvironment.ts"
import { Keeping } from "./Keeping.ts"
import * as Output from "./Output.ts"
import { fromPlatform } from "./PathFailure.ts"
import * as Sandbox from "./Sandbox.ts"

/**
 * Options of the tool `shell`.
 *
 * @since 0.1.0
 * @category options
 */
export interface Options extends Sandbox.Options {
  /**
   * Whether commands run in a sandbox, whose limits are `network`, `writable`, `hidden` and `protect` (default:
   * `"off"`, so that commands behave alike wherever an application runs).
   *
   * With `"auto"` the tool looks once whether the sandbox works. If not, it logs a warning, and the details of
   * results have `sandbox: "none"`. With `"require"` each call then fails with `SandboxUnavailable`, and so does one with `"auto"` while
   * the tool cannot find out.
   */
  readonly sandbox?: Sandbox.Mode
  /** The shell, called with `-c` and the command (default: `/bin/sh`). */
  readonly shell?: string
  /** Time limit of a call that has no `timeout` parameter (default: 120 seconds). */
  readonly timeout?: Duration.Input
  /** Maximum of the `timeout` parameter (default: 600 seconds). */
  readonly maxTimeout?: Duration.Input
  /** Maximum characters of output, half from the start and half from the end (default: 30,000). */
  readonly maxOutput?: number
  /**
   * Names of environment variables that commands inherit although they look like secrets, or name an editor or a pager
   * (default: none).
   */
  readonly passEnvironment?: ReadonlyArray<string>
  /**
   * Environment variables that commands get in addition to the inherited ones, secrets or not (default: none).
   */
  readonly environment?: ChildEnvironment.Environment
}

/**
 * The tool could not start the shell.
 *
 * `detail` says why.
 *
 * @since 0.1.0
 * @category errors
 */
export class ShellFailed extends TaggedError<ShellFailed>()("ShellFailed", {
  /** The reason, such as a missing shell. */
  detail: Schema.String
}) {
  override get message(): string {
    return `The command was not run: ${this.detail}`
  }
}

const Params = Schema.Struct({
  command: Schema.NonEmptyString.annotate({ description: "Command line for the shell" }),
  timeout: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThan(0))).annotate({
    description: "Time limit of the command in seconds"
  })
})
type Params = typeof Params.Type

/**
 * Makes the tool `shell`.
 *
 * **Details**
 *
 * The tool combines standard output and standard error. It reports the last 2,000 characters of output as
 * progress, at most twice a second. A nonzero exit code, a signal and a timeout are error results with the
 * output. The tool fails with `ShellFailed` if the shell does not start. The command has no standard input, no
 * editor and no pager, and inherits the environment variables that do not look like secrets. The description of the tool names those
 * that it does not inherit.
 *
 * All processes that a command starts end with the call: when the shell exits, at the time limit, and on
 * interruption the tool sends SIGTERM to the process group and, 0.4 seconds later, SIGKILL.
 *
 * **Gotchas**
 *
 * Without a sandbox, the root does not confine a command: a command can do everything that the user of the
 * process can do. Set `sandbox: "require"`, and require an approval. A process that creates its own session
 * (`setsid`) leaves the process group, and the tool ends it in a sandbox of Linux only. That sandbox ends with
 * SIGTERM at once, without the 0.4 seconds, and the exit code of a signal in it is 128 and its number.
 *
 * **Example** (Running a command)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, Layer } from "effect"
 * import { Agent, Message } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 * import { ShellTool } from "effect-agent/tools"
 *
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const agent = yield* Agent.make({ model: "any", tools: [ShellTool.make({ root: "." })] })
 *     const { newMessages } = yield* agent.prompt("Say hello.")
 *     for (const message of newMessages) console.log(`${message.role}: ${Message.textOf(message)}`)
 *   })
 * )
 *
 * const script = [
 *   ScriptedProvider.toolCall("shell", { command: "echo hello" }),
 *   ScriptedProvider.text("Done.")
 * ]
 * const layer = Layer.merge(ScriptedProvider.layer(script), NodeServices.layer)
 * await Effect.runPromise(program.pipe(Effect.provide(layer)))
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options) => {
  const usual = Duration.fromInputUnsafe(options.timeout ?? "120 seconds")
  const most = Duration.fromInputUnsafe(options.maxTimeout ?? "600 seconds")
  const mode = options.sandbox ?? "off"
  const choice = sandboxOf(mode, options)
  return Tool.make({
    name: "shell",
    label: "Shell",
    description:
      `Runs a command line of ${options.shell ?? "/bin/sh (POSIX, not bash)"} in the root folder and returns its output and exit ` +
      "code. It has no standard input, its processes end with the call, and the call ends after " +
      `${Duration.toSeconds(usual)} seconds or after timeout (at most ${Duration.toSeconds(most)} seconds).` +
      withheld(options) +
      limitsOf(options),
    params: Params,
    failure: Schema.Union([ShellFailed, Sandbox.SandboxUnavailable]),
    // The tool applies its own limit, up to `maxTimeout`.
    timeout: "Infinity",
    execute: Effect.fnUntraced(function* ({ command, timeout }: Params) {
      const limit = Duration.min(timeout === undefined ? usual : Duration.seconds(timeout), most)
      const output = Output.bounded(options.maxOutput ?? 30_000)
      yield* Effect.forkScoped(showProgress(output))
      const sandbox = yield* choice
      const keeper = yield* Keeping
      const running = run(options, yield* started(options, sandbox, command), limit, output)
      const ended = yield* keeper === undefined
        ? running
        : Effect.mapError(keeper.command(options.root, running), (error) =>
            error instanceof ShellFailed ? error : new ShellFailed({ detail: error.detail })
          )
      return rendered(ended, output, limit, sandbox)
    }, Effect.scoped)
  })
}

type Ended =
  | { readonly _tag: "Exit"; readonly code: number }
  | { readonly _tag: "Signal"; readonly name: string }
  | { readonly _tag: "Timeout" }

/** The limits of the sandbox, for the model. */
const limitsOf = ({ network = false, sandbox = "off" }: Options): string => {
  if (sandbox === "off") return ""
  const condition = sandbox === "auto" ? "If the system has a sandbox, c" : "C"
  const reach = network ? "" : ", and have no network"
  return ` ${condition}ommands can change files in the root folder and in $TMPDIR only, but not .git${reach}.`
}

/** The variables that commands do not get, for the model, which would search for the reason of a failure. */
const withheld = ({ passEnvironment }: Options): string => {
  const names = ChildEnvironment.withheld(globalThis.process.env, passEnvironment)
  return names.length === 0 ? "" : ` Not set for commands: ${names.slice(0, 20).join(", ")}.`
}

/** Maximum bytes of a command. Linux takes an argument of 131,071. */
const maxCommand = 131_000

/** The process of a command. */
const started = Effect.fnUntraced(function* (options: Options, sandbox: Choice, command: string) {
  const paths = yield* Path.Path
  const shell = options.shell ?? "/bin/sh"
  const size = new TextEncoder().encode(command).length
  if (size > maxCommand) {
    const detail = `it has ${size} bytes, and the system takes ${maxCommand}. Write it to a file, and run that.`
    return yield* new ShellFailed({ detail })
  }
  // The space before the command prevents the shell from reading a leading dash as an option.
  const plain = { program: shell, args: ["-c", ` ${command}`], environment: {} }
  const { args, environment, program } =
    sandbox === "off" || sandbox === "none"
      ? plain
      : yield* Sandbox.command(options, [plain.program, ...plain.args]).pipe(
          Effect.catchTag("PlatformError", (error) => failed(options.root, error))
        )
  // Both outputs go to one pipe, which keeps their order. The outer shell becomes the program.
  return ChildProcess.make("/bin/sh", ["-c", 'exec "$@" 2>&1', "sh", program, ...args], {
    cwd: paths.resolve(options.root),
    env: ChildEnvironment.make(globalThis.process.env, {
      passed: options.passEnvironment ?? [],
      added: { ...options.environment, ...environment }
    }),
    stdin: "ignore",
    stderr: "ignore",
    killSignal: "SIGTERM",
    forceKillAfter: "400 millis"
  })
})

const failed = (path: string, error: PlatformError) =>
  Effect.fail(new ShellFailed({ detail: fromPlatform(path, error).detail }))

const run = Effect.fnUntraced(function* (
  options: Options,
  process: ChildProcess.Command,
  limit: Duration.Duration,
  output: Output.Bounded
) {
  const decoder = new TextDecoder()
  const outer = yield* Effect.scope
  const body = Effect.fnUntraced(function* (handle: ChildProcessSpawner.ChildProcessHandle) {
    const reading = Stream.runForEach(handle.stdout, (bytes) =>
      Effect.sync(() => output.append(decoder.decode(bytes, { stream: true })))
    )
    const reader = yield* Effect.forkIn(reading, outer)
    return { reader, exit: yield* exitOf(handle.exitCode, limit) }
  })
  // All processes of the group have ended here. The tool does not wait for a process that left the group.
  const { exit, reader } = yield* use(process, body).pipe(
    Effect.catch((error) => failed(options.root, error))
  )
  const end = yield* Fiber.await(reader).pipe(Effect.timeoutOption("500 millis"))
  output.append(decoder.decode())
  return { exit, isOutlived: Option.isNone(end) }
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

/** Reports the end of the output as progress, at most twice a second. */
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

const rendered = (
  { exit: ended, isOutlived }: { readonly exit: Ended; readonly isOutlived: boolean },
  output: Output.Bounded,
  limit: Duration.Duration,
  sandbox: Choice
): Tool.ToolOutput => {
  const text = output.text().trimEnd()
  const status = statusOf(ended, limit)
  const isError = status !== undefined
  const lines = [
    text === "" ? "(no output)" : text,
    ...(isError ? [`[${status}]`] : []),
    ...(isOutlived ? ["[A process that left the session of the command (setsid) still runs]"] : [])
  ]
  return Tool.output(lines.join("\n"), {
    isError,
    details: {
      ...(ended._tag === "Exit" ? { exitCode: ended.code } : {}),
      ...(ended._tag === "Signal" ? { signal: ended.name } : {}),
      timedOut: ended._tag === "Timeout",
      characters: output.total(),
      omitted: output.omitted(),
      ...(sandbox === "off" ? {} : { sandbox })
    }
  })
}

/** The line on the end of the command for the model, `undefined` for exit code 0. */
const statusOf = (ended: Ended, limit: Duration.Duration): string | undefined => {
  switch (ended._tag) {
    case "Exit":
      return ended.code === 0 ? undefined : `Exit code ${ended.code}`
    case "Signal":
      return `Ended by ${ended.name}`
    case "Timeout":
      return `Timed out after ${Duration.toSeconds(limit)} seconds. Its processes were ended`
  }
}

// ───────────────────────── The sandbox

/** `none`: the system has no sandbox that works, and the commands run without. `off`: no sandbox is wanted. */
type Choice = Sandbox.Kind | "none" | "off"

/** Makes an effect that chooses. It looks for the sandbox once, however often and by how many calls it runs. */
const sandboxOf = (mode: Sandbox.Mode, options: Sandbox.Options) => {
  const one = Semaphore.makeUnsafe(1)
  let found: Result.Result<Sandbox.Kind, Sandbox.SandboxUnavailable> | undefined
  const look = Effect.gen(function* () {
    if (found !== undefined) return found
    const result = yield* Effect.result(Sandbox.probe(options))
    const files = yield* FileSystem.FileSystem
    // No sandbox starts without its root, which may be made later, and a search that failed may succeed later.
    const isUnknown = Result.isFailure(result) && result.failure.isUnknown === true
    if (isUnknown || !(yield* Effect.orElseSucceed(files.exists(options.root), () => false))) return result
    found = result
    if (mode === "auto" && Result.isFailure(result))
      yield* Effect.logWarning(`The tool shell runs commands without a sandbox. ${result.failure.message}`)
    return result
  })
  const choice = Effect.flatMap(
    one.withPermits(1)(look),
    Result.match({
      onSuccess: (kind) => Effect.succeed<Choice>(kind),
      onFailure: (error) =>
        mode === "require" || error.isUnknown === true ? Effect.fail(error) : Effect.succeed<Choice>("none")
    })
  )
  return mode === "off" ? Effect.succeed<Choice>("off") : choice
}

// ───────────────────────── The process group

/**
 * Starts the command and runs `body`. Afterwards ends its process group as the options of the command specify
 * (`killSignal`, `forceKillAfter`), and completes when no process of the group lives. A killed process stays in
 * its group until its parent reads its exit status. The spawner waits up to a second for that, this function
 * does not, unless the system has no `/proc` to inspect (macOS).
 */
const use = <A, E, R>(
  command: ChildProcess.Command,
  body: (handle: ChildProcessSpawner.ChildProcessHandle) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | PlatformError, R | ChildProcessSpawner.ChildProcessSpawner | FileSystem.FileSystem> =>
  Effect.acquireUseRelease(startedAt(command), ({ handle }) => body(handle), ended)

interface Started {
  readonly handle: ChildProcessSpawner.ChildProcessHandle
  /** Closing it ends the group. */
  readonly scope: Scope.Closeable
}

const startedAt = Effect.fnUntraced(function* (command: ChildProcess.Command) {
  const scope = yield* Scope.make()
  const handle = yield* command.pipe(
    Scope.provide(scope),
    Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
  )
  return { handle, scope } satisfies Started
})

const ended = Effect.fnUntraced(function* <A, E>({ handle, scope }: Started, exit: Exit.Exit<A, E>) {
  const closing = yield* Effect.forkDetach(Scope.close(scope, exit), { startImmediately: true })
  yield* Effect.raceFirst(Fiber.await(closing), Effect.interruptible(allDead(handle)))
})

/** Waits until the leader has ended and no other process of its group lives. */
const allDead = Effect.fnUntraced(function* (handle: ChildProcessSpawner.ChildProcessHandle) {
  while (true) {
    yield* Effect.sleep("10 millis")
    const isLed = yield* Effect.orElseSucceed(handle.isRunning, () => true)
    if (!isLed && !(yield* hasLiving(handle.pid))) return
  }
})

/** Whether a process of the group lives. `true` if the system does not provide the information. */
const hasLiving = Effect.fnUntraced(function* (group: number) {
  const files = yield* FileSystem.FileSystem
  const names = yield* Effect.orElseSucceed(files.readDirectory("/proc"), (): Array<string> => [])
  const pids = names.filter((name) => /^\d+$/.test(name))
  if (pids.length === 0) return true
  const lives = yield* Effect.forEach(
    pids,
    (pid) =>
      files.readFileString(`/proc/${pid}/stat`).pipe(
        Effect.map((stat) => isLivingIn(stat, group)),
        // The process ended after its name was read.
        Effect.orElseSucceed(() => false)
      ),
    { concurrency: 16 }
  )
  return lives.includes(true)
})

/**
 * Linux: `pid (name) state parent group …`. The name may contain spaces and brackets. `Z` and `X` are the
 * states of dead processes.
 */
const isLivingIn = (stat: string, group: number): boolean => {
  const [state, , own] = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return Number(own) === group && state !== "Z" && state !== "X"
}
