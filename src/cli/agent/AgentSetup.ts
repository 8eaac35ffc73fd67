/** Makes the agent of a run. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Agent from "../../Agent.ts"
import * as CoreApproval from "../../Approval.ts"
import type * as Message from "../../Message.ts"
import * as ArtifactStore from "../../artifacts/ArtifactStore.ts"
import * as LargeResults from "../../artifacts/LargeResults.ts"
import * as ReadArtifact from "../../artifacts/ReadArtifact.ts"
import * as Compaction from "../../context/Compaction.ts"
import type { Workspace } from "../../skills/Workspace.ts"
import * as ToolSearch from "../../tool-search/ToolSearch.ts"
import * as Tools from "../../tools/Tools.ts"
import type { Settings } from "../settings/Settings.ts"
import * as ApprovalPrompt from "../terminal/ApprovalPrompt.ts"
import type { Choice as CommandSandbox } from "./CommandSandbox.ts"
import type { Choice } from "./ModelChoice.ts"
import * as ModelTable from "./ModelTable.ts"
import type { OutputSchema } from "./OutputSchema.ts"
import type { Opened } from "./SessionChoice.ts"

/** `model` is `provider/id`. */
const windowOf = (model: string): number | undefined => {
  const slash = model.indexOf("/")
  return ModelTable.ruleOf(model.slice(0, slash), model.slice(slash + 1))?.contextWindow
}

const compaction = Compaction.layer({ contextWindow: windowOf })

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
  policy: ApprovalPrompt.Policy
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
    system: systemPrompt(root, project.system, settings),
    tools: tools.length === 0 ? [] : [...tools, resultReader(settings)],
    ...optionsOf(settings),
    // Rules say the same again.
    emptyResponse: choice.model.startsWith("local/") ? "accept" : "retry",
    ...(output === undefined ? {} : { output }),
    ...(opened === undefined ? {} : { session: opened.session })
  }).pipe(
    Effect.orDie,
    Effect.provideService(CoreApproval.Approval, ApprovalPrompt.make(policy)),
    Effect.provide(Layer.merge(compaction, results(settings, opened?.artifacts)))
  )
  if (Option.isSome(settings.mcpConfig) && !settings.noMcp) {
    const { join } = yield* Effect.promise(() => import("./McpServers.ts"))
    yield* join(agent.tools, settings, choice.model)
  }
  return agent
})

/** The options of runs that settings determine. */
export const optionsOf = ({
  effort,
  maxCost,
  maxTokens,
  maxTokensTotal,
  maxTurns,
  temperature,
  timeout
}: Pick<
  Settings,
  "effort" | "maxCost" | "maxTokens" | "maxTokensTotal" | "maxTurns" | "temperature" | "timeout"
>) => ({
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

// ───────────────────────── The system prompt

/** `root` is the folder of the tools, `project` the instructions of the project. */
const systemPrompt = (
  root: string,
  project: string,
  { appendSystem, system, tools }: Pick<Settings, "appendSystem" | "system" | "tools">
): string =>
  [Option.getOrElse(system, () => usualPrompt(root, tools)), project, ...Option.toArray(appendSystem)]
    .filter((text) => text !== "")
    .join("\n\n")

const usualPrompt = (root: string, tools: ReadonlyArray<string>): string =>
  [
    `You work from a terminal, in the folder ${root}. Relative paths start there.`,
    ...(tools.length === 0
      ? []
      : [
          "Look with your tools before you say what is in a file or a folder, and say what you changed.",
          "A call that was refused stays refused: do not try to reach the same end in another way."
        ]),
    "Answer briefly, in plain text."
  ].join("\n")

// ───────────────────────── Results of tools

/** The tool that reads the rest of a result. A page of it is no larger than a result may be. */
const resultReader = ({ maxResult }: Settings) =>
  ReadArtifact.make(Option.match(maxResult, { onNone: () => ({}), onSome: pageOf }))

const pageOf = (maxCharacters: number) => ({ maxCharacters: Math.min(maxCharacters, 20_000) })

/** `kept` has the whole results of the session. Those of a run without a session stay in memory. */
const results = (
  { maxResult, toolSearch }: Settings,
  kept: ArtifactStore.ArtifactStore["Service"] | undefined
) => {
  const store =
    kept === undefined ? ArtifactStore.layerMemory() : Layer.succeed(ArtifactStore.ArtifactStore, kept)
  const cut = LargeResults.layer(
    Option.match(maxResult, { onNone: () => ({}), onSome: (maxCharacters) => ({ maxCharacters }) })
  )
  const search = ToolSearch.layer(
    Option.match(toolSearch, { onNone: () => ({}), onSome: (threshold) => ({ threshold }) })
  )
  return Layer.merge(Layer.provideMerge(cut, store), search)
}
