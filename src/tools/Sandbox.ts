/**
 * The sandbox of the tool `shell`: bubblewrap on Linux, `sandbox-exec` on macOS.
 *
 * A command in the sandbox can change the root, further folders that the application names, and a private folder
 * for temporary files. It can read the rest of the file system, except for the places of keys in the home
 * folder. It has no network unless the application allows it.
 *
 * @since 0.2.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as ChildProcess from "effect/process/ChildProcess"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Schema from "effect/Schema"
import type { Scope } from "effect/Scope"
import type * as ChildEnvironment from "./ChildEnvironment.ts"
import * as Protection from "./Protection.ts"
import * as SandboxLimits from "./internal/SandboxLimits.ts"
import { TaggedError } from "../internal/errors.ts"

/**
 * Whether commands run in a sandbox.
 *
 * `off`: never. `auto`: if the system has one that works, else without. `require`: always, or not at all.
 *
 * @since 0.2.0
 * @category models
 */
export type Mode = "off" | "auto" | "require"

/**
 * The sandbox of a system.
 *
 * @since 0.2.0
 * @category models
 */
export type Kind = "bubblewrap" | "sandbox-exec"

/**
 * The limits of the sandbox.
 *
 * @since 0.2.0
 * @category options
 */
export interface Options {
  /**
   * The working directory of commands, which they may change.
   *
   * Absolute, or relative to the working directory of the process.
   */
  readonly root: string
  /** Whether commands in the sandbox may use the network (default: `false`). */
  readonly network?: boolean
  /**
   * Further folders that commands in the sandbox may change (default: none).
   *
   * Absolute, or relative to `root`. The sandbox leaves out a folder that does not exist.
   */
  readonly writable?: ReadonlyArray<string>
  /**
   * Further files and folders that commands in the sandbox cannot read (default: none).
   *
   * Absolute, or relative to `root`. Always hidden: `Sandbox.secrets` in the home folder, and in the folders that `XDG_CONFIG_HOME` and
   * its like name in its place. Name places outside the writable folders: a command can rename the folder above a place inside them.
   */
  readonly hidden?: ReadonlyArray<string>
  /**
   * Names of files and folders that commands in the sandbox cannot change (default: `Protection.names`).
   *
   * Case-insensitive. On Linux the sandbox protects those that exist at the start of a command, up to five
   * folders deep and outside `node_modules`. `[]`: none.
   */
  readonly protect?: ReadonlyArray<string>
}

/**
 * The system has no sandbox that works.
 *
 * @since 0.2.0
 * @category errors
 */
export class SandboxUnavailable extends TaggedError<SandboxUnavailable>()("SandboxUnavailable", {
  /** The reason, such as a program that is not installed. */
  detail: Schema.String,
  /** Whether the search itself failed, so that there may be a sandbox. Default `false`. */
  isUnknown: Schema.optionalKey(Schema.Boolean)
}) {
  override get message(): string {
    return `There is no sandbox for commands: ${this.detail}`
  }
}

/**
 * Files and folders in the home folder that commands in the sandbox cannot read, because programs keep keys,
 * passwords, cookies, conversations and histories there.
 *
 * @since 0.2.0
 * @category constants
 */
export const secrets: ReadonlyArray<string> = SandboxLimits.names

/** Sockets of services that start containers with any folder of the system. */
const sockets: ReadonlyArray<string> = [
  "/var/lib/incus/unix.socket",
  "/var/lib/lxd/unix.socket",
  "/var/snap/lxd/common/lxd/unix.socket"
]

/**
 * A command that runs in the sandbox.
 *
 * @since 0.2.0
 * @category models
 */
export interface Command {
  /** The sandbox that the command starts. */
  readonly kind: Kind
  /** The absolute path of the sandbox. */
  readonly program: string
  /** The limits, and after them the other command. */
  readonly args: ReadonlyArray<string>
  /** Variables that differ in the sandbox: `undefined` removes one. */
  readonly environment: ChildEnvironment.Environment
}

/**
 * Makes a command that runs another one in the sandbox.
 *
 * **Details**
 *
 * The function resolves paths and looks for protected names, so make a command anew for each run. The folder for
 * temporary files on macOS exists as long as the scope. Fails with `SandboxUnavailable` if no sandbox is
 * installed, or if the file system has no `/bin/sh` either, and with `PlatformError` if the root does not exist or the
 * search fails. Whether the sandbox works is known from `probe`.
 *
 * **Example** (Making a command)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect } from "effect"
 * import { Sandbox } from "effect-agent/tools"
 *
 * const program = Sandbox.command({ root: "." }, ["/bin/ls", "-l"]).pipe(
 *   Effect.map(({ kind }) => kind),
 *   Effect.catchTag("SandboxUnavailable", ({ message }) => Effect.succeed(message)),
 *   Effect.scoped,
 *   Effect.provide(NodeServices.layer)
 * )
 * console.log(await Effect.runPromise(program))
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const command = Effect.fnUntraced(function* (
  options: Options,
  words: readonly [program: string, ...args: ReadonlyArray<string>]
): Effect.fn.Return<
  Command,
  SandboxUnavailable | PlatformError,
  FileSystem.FileSystem | Path.Path | ChildProcessSpawner | Scope
> {
  const files = yield* FileSystem.FileSystem
  const [bwrap] = yield* Effect.filter(SandboxLimits.places, (place) => isThere(place))
  if (bwrap !== undefined) {
    const limits = yield* limitsOf(options, SandboxLimits.replaced)
    const args = [...SandboxLimits.args(limits), ...words]
    return { kind: "bubblewrap", program: bwrap, args, environment: variables("/tmp") } as const
  }
  if (!(yield* isThere(SandboxLimits.place))) {
    if (!(yield* isThere("/bin/sh"))) return yield* unknown("the file system has no /bin/sh")
    const detail = "neither bwrap (Linux, package bubblewrap) nor sandbox-exec (macOS) is installed"
    return yield* new SandboxUnavailable({ detail })
  }
  const temporary = yield* files.realPath(yield* files.makeTempDirectoryScoped({ prefix: "effect-agent-" }))
  const writable = [...(options.writable ?? []), temporary]
  const limits = yield* limitsOf({ ...options, writable }, [])
  const args = [...SandboxLimits.seatbeltArgs(limits), ...words]
  return {
    kind: "sandbox-exec",
    program: SandboxLimits.place,
    args,
    environment: variables(temporary)
  } as const
})

const isThere = (path: string) => FileSystem.FileSystem.use((files) => files.exists(path))

const limitsOf = (options: Options, replaced: ReadonlyArray<string>) => {
  const { env } = globalThis.process
  const { EFFECT_AGENT_HOME = "", SSH_AUTH_SOCK = "" } = env
  const named = [EFFECT_AGENT_HOME, SSH_AUTH_SOCK].filter((path) => path !== "")
  return SandboxLimits.of({
    root: options.root,
    writable: options.writable ?? [],
    protect: options.protect ?? Protection.names,
    hidden: [
      ...replaced,
      ...SandboxLimits.paths(env, SandboxLimits.names),
      ...named,
      ...sockets,
      ...(options.hidden ?? [])
    ],
    shown: SandboxLimits.paths(env, SandboxLimits.shown),
    network: options.network ?? false
  })
}

/** The folder for temporary files, and the services that are out of reach. */
const variables = (temporary: string): ChildEnvironment.Environment => ({
  TMPDIR: temporary,
  TMP: undefined,
  TEMP: undefined,
  SSH_AUTH_SOCK: undefined,
  DBUS_SESSION_BUS_ADDRESS: undefined,
  XDG_RUNTIME_DIR: undefined
})

/**
 * Runs a command in the sandbox that does nothing, to find out whether the sandbox works.
 *
 * **Details**
 *
 * Fails with `SandboxUnavailable` if no sandbox is installed, if it does not start, or after 10 seconds.
 *
 * **Gotchas**
 *
 * A container often forbids bubblewrap to make namespaces, and so does Ubuntu without a profile for `bwrap`.
 * The maintainers have not run the sandbox on macOS.
 *
 * **Example** (Looking for a sandbox)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect } from "effect"
 * import { Sandbox } from "effect-agent/tools"
 *
 * const program = Sandbox.probe({ root: "." }).pipe(
 *   Effect.catch(({ message }) => Effect.succeed(message)),
 *   Effect.provide(NodeServices.layer)
 * )
 * console.log(await Effect.runPromise(program))
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const probe = Effect.fnUntraced(
  function* (options: Options) {
    const spawner = yield* ChildProcessSpawner
    const { args, kind, program } = yield* command(options, ["/bin/sh", "-c", "echo works"])
    // Without a process group: the spawner would wait until the init process has reaped those that bwrap leaves, which takes a second where it polls.
    const quiet = { stdin: "ignore", detached: false } as const
    const answer = yield* spawner.string(
      ChildProcess.make("/bin/sh", ["-c", 'exec "$@" 2>&1', "sh", program, ...args], quiet)
    )
    return answer === "works\n"
      ? kind
      : yield* new SandboxUnavailable({ detail: answer.trim() || "it says nothing" })
  },
  Effect.scoped,
  Effect.timeoutOrElse({
    duration: "10 seconds",
    orElse: () => unknown("it did not start within 10 seconds")
  }),
  Effect.catchTag("PlatformError", ({ message }) => unknown(message))
)

const unknown = (detail: string) => Effect.fail(new SandboxUnavailable({ detail, isUnknown: true }))
