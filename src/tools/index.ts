/**
 * Tools for files and shell commands.
 *
 * The file tools are confined to a root folder.
 *
 * @since 0.1.0
 */
export * as Tools from "./Tools.ts"
export * as ReadTool from "./ReadTool.ts"
export * as WriteTool from "./WriteTool.ts"
export * as EditTool from "./EditTool.ts"
export * as ListTool from "./ListTool.ts"
export * as FindTool from "./FindTool.ts"
export * as GrepTool from "./GrepTool.ts"
export * as ShellTool from "./ShellTool.ts"
export * as CommandRules from "./CommandRules.ts"
export * as Sandbox from "./Sandbox.ts"
export * as Root from "./Root.ts"
export * as Protection from "./Protection.ts"
export * as PathFailure from "./PathFailure.ts"
export * as Replacement from "./Replacement.ts"
export * as ChildEnvironment from "./ChildEnvironment.ts"
export * as Output from "./Output.ts"
