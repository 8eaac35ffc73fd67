/** Makes the agent of a run. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Agent from "../../Agent.ts"
import * as CoreApproval from "../../Approval.ts"
import type * as Message from "../../Message.ts"
import type { Workspace } from "../../skills/Workspace.ts"
import * as ToolResults from "./ToolResults.ts"
import * as Tools from "../../tools/Tools.ts"
import * as Approval from "../terminal/Approval.ts"
import * as Compaction from "./Compaction.ts"
import type { Choice as CommandSandbox } from "./CommandSandbox.ts"
import type { Choice } from "./ModelChoice.ts"
import type { OutputSchema } from "./OutputSchema.ts"
import { Screen } from "../terminal/Screen.ts"
import type { Opened } from "./SessionChoice.ts"
import type { Settings } from "../settings/Settings.ts"
import * as SystemPrompt from "./SystemPrompt.ts"

/** The input of a run. */
export interface Plan {
  readonly settings: Settings
  /** The first prompt, `undefined` if stdin has all of them, or the run continues what is open in its session. */
  readonly prompt: Message.Input | undefined
  readonly choice: Choice
  readonly output: OutputSchema | undefined
  readonly project: Workspace
  /** The options of the tool `shell`. */
  readonly shell: CommandSandbox["options"]
}

/** The agent. */
export const make = Effect.fnUntraced(function* (
  plan: Plan,
  opened: Opened | undefined,
  policy: Approval.Policy
) {
  const { choice, output, project, settings, shell } = plan
  const { root } = policy
  // Questions that were answered while the run was suspended need their tool, also where no person is.
  const asks = policy.asked !== "deny" || (opened?.session.restored.open?.questions ?? []).length > 0
  const tools = [
    ...Tools.make({ root, shell, hardLinks: "allow" }).filter(({ name }) => settings.tools.includes(name)),
    ...project.tools,
    ...(asks && settings.tools.includes("ask_user") ? [CoreApproval.askUser()] : [])
  ]
  const agent = yield* Agent.make({
    model: choice.model,
    agent: { name: "effect-agent" },
    system: SystemPrompt.make(root, project.system, settings),
    tools: tools.length === 0 ? [] : [...tools, ToolResults.reader(settings)],
    ...optionsOf(settings),
    // Rules say the same again.
    emptyResponse: choice.model.startsWith("local/") ? "accept" : "retry",
    ...(output === undefined ? {} : { output }),
    ...(opened === undefined ? {} : { session: opened.session })
  }).pipe(
    Effect.orDie,
    Effect.provideService(CoreApproval.Approval, yield* Approval.make(policy)),
    Effect.provide(Layer.merge(Compaction.layer, ToolResults.layer(settings, opened?.artifacts)))
  )
  if (Option.isSome(settings.mcpConfig) && !settings.noMcp) {
    const { join } = yield* Effect.promise(() => import("./Mcp.ts"))
    yield* join(agent.tools, settings, choice.model)
  }
  return agent
})

const optionsOf = ({
  effort,
  maxCost,
  maxTokens,
  maxTokensTotal,
  maxTurns,
  temperature,
  timeout
}: Settings) => ({
  modelOptions: {
    ...(Option.isSome(effort) ? { thinkingLevel: effort.value } : {}),
    ...(Option.isSome(maxTokens) ? { maxTokens: maxTokens.value } : {}),
    ...(Option.isSome(temperature) ? { temperature: temperature.value } : {})
  },
  limits: {
    ...(Option.isSome(maxTurns) ? { maxTurns: maxTurns.value } : {}),
    ...(Option.isSome(maxCost) ? { maxCost: maxCost.value } : {}),
    ...(Option.isSome(maxTokensTotal) ? { maxTotalTokens: maxTokensTotal.value } : {}),
    ...(Option.isSome(timeout) ? { executionTime: timeout.value } : {})
  }
})

/** The policy of the tool calls. `isOver` completes when stdin has no more answers. */
export const policyOf = (
  { settings }: Pick<Plan, "settings">,
  isOver: Effect.Effect<void>
): Effect.Effect<ReturnType<typeof Approval.ofSettings>, never, Screen> =>
  Screen.useSync(({ isInteractive }) =>
    Approval.ofSettings(settings, askedOf(settings, isInteractive, isOver))
  )

const askedOf = (
  { approve, inputFormat, print }: Settings,
  isInteractive: boolean,
  isOver: Effect.Effect<void>
): Approval.Policy["asked"] => {
  if (print) return "deny"
  if (inputFormat === "text") return isInteractive ? "terminal" : "deny"
  return Option.contains(approve, "ask") ? linesOf(isOver) : "deny"
}

/** The person whose answers are lines of stdin, which the program gives to the agent. */
const linesOf = (isOver: Effect.Effect<void>): CoreApproval.Person => {
  const none = Effect.andThen(isOver, Effect.fail({ message: "no answer came on stdin" }))
  return { approve: () => none, answer: () => none }
}
