/**
 * The built-in tools, together.
 */
import * as EditTool from "./EditTool.ts"
import * as FindTool from "./FindTool.ts"
import * as GrepTool from "./GrepTool.ts"
import * as ListTool from "./ListTool.ts"
import * as ReadTool from "./ReadTool.ts"
import * as ShellTool from "./ShellTool.ts"
import type * as Walk from "./Walk.ts"
import * as WriteTool from "./WriteTool.ts"

/** Options of the file tools, and those of the shell. All share the root. */
export interface Options extends Walk.Options {
  readonly shell?: Omit<ShellTool.Options, "root">
}

/**
 * All tools over one root. They need `FileSystem`, `Path` and `ChildProcessSpawner`, as `NodeServices.layer` of
 * `@effect/platform-node` has them.
 *
 * **Example**
 *
 * ```ts
 * const readOnly = Tools.make({ root: "." }).filter((tool) => !Tools.changing.has(tool.name))
 * ```
 */
export const make = (options: Options) =>
  [
    ReadTool.make(options),
    WriteTool.make(options),
    EditTool.make(options),
    ListTool.make(options),
    FindTool.make(options),
    GrepTool.make(options),
    ShellTool.make({ ...options.shell, root: options.root })
  ] as const

/** The names of all tools, in their order. */
export const names = ["read", "write", "edit", "list", "find", "grep", "shell"] as const

/** The tools that change something: the ones to ask about first. */
export const changing: ReadonlySet<string> = new Set(["write", "edit", "shell"])
