/** Makes the agent of a run. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Agent from "../Agent.ts"
import type * as Message from "../Message.ts"
import type { Session } from "../Session.ts"
import type { Workspace } from "../skills/Workspace.ts"
import * as Tools from "../tools/Tools.ts"
import * as Approval from "./Approval.ts"
import type { Choice as CommandSandbox } from "./CommandSandbox.ts"
import type { Choice } from "./ModelChoice.ts"
import type { OutputSchema } from "./OutputSchema.ts"
import { Screen } from "./Screen.ts"
import type { Settings } from "./Settings.ts"
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

/** The agent. `shown` completes when the events before a call are on the screen. */
export const make = Effect.fnUntraced(function* (
  plan: Plan,
  session: Session | undefined,
  shown: Approval.Policy["shown"]
) {
  const { choice, output, project, settings, shell } = plan
  const root = (yield* Path.Path).resolve(settings.cwd)
  return yield* Agent.make({
    model: choice.model,
    agent: { name: "effect-agent" },
    system: SystemPrompt.make(root, project.system, settings),
    tools: [
      ...Tools.make({ root, shell }).filter(({ name }) => settings.tools.includes(name)),
      ...project.tools
    ],
    hooks: [Approval.hook(yield* policyOf(plan, root, shown))],
    ...optionsOf(settings),
    ...(output === undefined ? {} : { output }),
    ...(session === undefined ? {} : { session })
  }).pipe(Effect.orDie)
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

/** Whether a person can answer questions on the terminal. */
export const canAsk = ({ settings }: Plan): Effect.Effect<boolean, never, Screen> =>
  Screen.useSync(
    ({ isInteractive }) =>
      isInteractive &&
      !settings.print &&
      settings.inputFormat === "text" &&
      Option.getOrElse(settings.approve, () => "ask") === "ask"
  )

const policyOf = Effect.fnUntraced(function* (plan: Plan, root: string, shown: Approval.Policy["shown"]) {
  const { allow, approve, deny, yes } = plan.settings
  const isAllowed = yes || Option.contains(approve, "allow")
  return { allow, deny, yes: isAllowed, ask: yield* canAsk(plan), root, shown }
})
