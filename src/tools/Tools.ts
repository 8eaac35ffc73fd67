/**
 * All built-in tools over one root folder: `read`, `write`, `edit`, `list`, `find`, `grep` and `shell`.
 *
 * @since 0.1.0
 */
import * as EditTool from "./EditTool.ts"
import * as FindTool from "./FindTool.ts"
import * as GrepTool from "./GrepTool.ts"
import * as ListTool from "./ListTool.ts"
import * as ReadTool from "./ReadTool.ts"
import * as ShellTool from "./ShellTool.ts"
import type * as Walk from "./internal/Walk.ts"
import * as WriteTool from "./WriteTool.ts"

/**
 * Options of all built-in tools: the folders they may use, the time limit of a search, and the options of the
 * shell.
 *
 * @since 0.1.0
 * @category options
 */
export interface Options extends Walk.Options {
  /**
   * Options of `shell` (default: the defaults of `ShellTool`).
   *
   * Its root is the root of the file tools, and its `protect` is theirs unless it has one.
   */
  readonly shell?: Omit<ShellTool.Options, "root">
}

/**
 * Makes all built-in tools.
 *
 * **Details**
 *
 * The tools require `FileSystem`, `Path` and `ChildProcessSpawner`. `NodeServices.layer` of
 * `@effect/platform-node` provides all three.
 *
 * **Gotchas**
 *
 * The root confines the file tools only. A shell command can do everything that the user of the process can do,
 * unless `shell: { sandbox: "require" }` confines it too.
 *
 * **Example** (Giving a model read access to a folder)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, Layer } from "effect"
 * import { Agent, Message } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 * import { Tools } from "effect-agent/tools"
 *
 * const readOnly = Tools.make({ root: "." }).filter((tool) => !Tools.changing.has(tool.name))
 *
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const agent = yield* Agent.make({ model: "any", tools: readOnly })
 *     const { newMessages } = yield* agent.prompt("Which files are here?")
 *     for (const message of newMessages) console.log(`${message.role}: ${Message.textOf(message)}`)
 *   })
 * )
 *
 * const script = [ScriptedProvider.toolCall("list", {}), ScriptedProvider.text("Done.")]
 * const layer = Layer.merge(ScriptedProvider.layer(script), NodeServices.layer)
 * await Effect.runPromise(program.pipe(Effect.provide(layer)))
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options) =>
  [
    ReadTool.make(options),
    WriteTool.make(options),
    EditTool.make(options),
    ListTool.make(options),
    FindTool.make(options),
    GrepTool.make(options),
    ShellTool.make({
      ...(options.protect === undefined ? {} : { protect: options.protect }),
      ...options.shell,
      root: options.root
    })
  ] as const

/**
 * The names of all built-in tools, in the order in which `make` returns them.
 *
 * @since 0.1.0
 * @category constants
 */
export const names = ["read", "write", "edit", "list", "find", "grep", "shell"] as const

/**
 * The names of the tools that change files or run commands.
 *
 * Require an approval for these first.
 *
 * @since 0.1.0
 * @category constants
 */
export const changing: ReadonlySet<string> = new Set(["write", "edit", "shell"])
