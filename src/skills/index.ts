/**
 * Instructions of a project: context files such as `AGENTS.md`, and skills, which are folders with a `SKILL.md`.
 *
 * **Details**
 *
 * `Workspace.load` gives the text for the system prompt and the tools; `ContextFiles` and `Skills` are its parts.
 *
 * @since 0.2.0
 */
export * as ContextFiles from "./ContextFiles.ts"
export * as Skills from "./Skills.ts"
export * as Workspace from "./Workspace.ts"
