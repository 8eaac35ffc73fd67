/** The mode of a session: which calls run without an approval, and which tools the model has. A change counts from the next call on. */
import * as Effect from "effect/Effect"
import * as MutableRef from "effect/MutableRef"
import * as Stream from "effect/Stream"
import type { ModelRequest, Provider } from "../../Provider.ts"
import type { ToolRegistry } from "../../ToolRegistry.ts"
import * as Tools from "../../tools/Tools.ts"
import type { Settings } from "../settings/Settings.ts"

/**
 * - `ask`: calls that may change something need an approval.
 * - `edits`: those of `write` and `edit` need none.
 * - `plan`: they do not run.
 * - `yes`: no call needs an approval.
 */
export type Mode = "ask" | "edits" | "plan" | "yes"

/** Holds the mode that counts now: `MutableRef.get` and `MutableRef.set`. */
export type Cell = MutableRef.MutableRef<Mode>

export const make = (mode: Mode): Cell => MutableRef.make<Mode>(mode)

/** The mode in which the runs of some settings begin. */
export const initial = ({ approve, plan, yes }: Pick<Settings, "approve" | "plan" | "yes">): Mode => {
  if (plan) return "plan"
  return yes || (approve._tag === "Some" && approve.value === "allow") ? "yes" : "ask"
}

/** The mode that Shift-Tab changes to. */
export const next = (mode: Mode): Mode => {
  if (mode === "ask") return "edits"
  return mode === "edits" ? "plan" : "ask"
}

/** The reason for which plan mode refuses a call. */
export const refusal = "Plan mode: nothing may be changed before the plan is approved."

/** The tool by which the model proposes a plan. */
export const planTool = "propose_plan"

// Every other tool may change something.
const readOnly: ReadonlySet<string> = new Set([
  ...Tools.names.filter((name) => !Tools.changing.has(name)),
  "skill",
  "ask_user",
  "read_artifact",
  "tool_search",
  "tasks",
  planTool
])

/** Whether a call of a tool changes nothing. */
export const changesNothing = (name: string, isPure: boolean): boolean => isPure || readOnly.has(name)

/** Whether a mode lets a tool run without an approval. */
export const allows = (mode: Mode, name: string): boolean =>
  mode === "yes" || (mode === "edits" && (name === "write" || name === "edit"))

// ───────────────────────── The tools of a request

type Registry = ToolRegistry["Service"]

const instructions = [
  "Plan mode is on: change nothing. Look at what the task needs, and ask the user what only the user knows.",
  `Then call ${planTool} with the plan, which the user decides about. Do not begin with the work before that.`
].join("\n")

/**
 * A provider whose requests have the tools of the mode. The run keeps the others, so that a call of one is refused by the policy, in its
 * words.
 */
export const narrowing =
  (mode: Cell, tools: Effect.Effect<Registry>) =>
  (provider: Provider["Service"]): Provider["Service"] => ({
    ...provider,
    stream: (request) =>
      Stream.unwrap(
        Effect.flatMap(tools, (registry) => Effect.map(narrowed(mode, registry, request), provider.stream))
      )
  })

const narrowed = Effect.fnUntraced(function* (mode: Cell, registry: Registry, request: ModelRequest) {
  if (MutableRef.get(mode) !== "plan")
    return { ...request, tools: request.tools.filter(({ name }) => name !== planTool) }
  const tools = yield* Effect.filter(request.tools, ({ name }) =>
    // A tool that the registry does not have belongs to the run, such as the one for its output.
    Effect.map(
      registry.get(name),
      (tool) => tool === undefined || changesNothing(name, tool.effect === "pure")
    )
  )
  // Other requests are those for a summary, which have no tools.
  if (!tools.some(({ name }) => name === planTool)) return { ...request, tools }
  return { ...request, tools, system: `${request.system ?? ""}\n\n${instructions}`.trimStart() }
})
