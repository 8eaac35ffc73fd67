/** Makes the agent of a run, with the sandbox of its commands, and the instructions and skills of its project. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "effect/StandardSchema"
import * as Agent from "../../Agent.ts"
import * as CoreApproval from "../../Approval.ts"
import * as ContextManager from "../../ContextManager.ts"
import type * as Message from "../../Message.ts"
import * as ArtifactStore from "../../artifacts/ArtifactStore.ts"
import * as LargeResults from "../../artifacts/LargeResults.ts"
import * as ReadArtifact from "../../artifacts/ReadArtifact.ts"
import * as Compaction from "../../context/Compaction.ts"
import * as Workspace from "../../skills/Workspace.ts"
import { Provider } from "../../Provider.ts"
import * as ToolSearch from "../../tool-search/ToolSearch.ts"
import type { ToolRegistry } from "../../ToolRegistry.ts"
import { Keeping } from "../../tools/Keeping.ts"
import * as Tools from "../../tools/Tools.ts"
import type { Settings } from "../settings/Settings.ts"
import * as Requests from "../terminal/Requests.ts"
import * as Mode from "./Mode.ts"
import type { Choice } from "./ModelChoice.ts"
import type { Servers } from "./McpServers.ts"
import * as ModelTable from "./ModelTable.ts"
import * as PlanTool from "./PlanTool.ts"
import * as Sessions from "./Sessions.ts"
import * as TaskList from "./TaskList.ts"
import * as ChildEnvironment from "../../tools/ChildEnvironment.ts"
import * as Sandbox from "../../tools/Sandbox.ts"
import type * as ShellTool from "../../tools/ShellTool.ts"
import { UsageError } from "../ExitCode.ts"
import * as UserFolder from "../settings/UserFolder.ts"
import type { StoreAddress } from "../settings/Values.ts"
import { companies, type Environment } from "./Vendors.ts"
import { say } from "../terminal/Screen.ts"
import type * as HookSources from "../hooks/HookSources.ts"
import * as JsonSchema from "../../internal/jsonSchema.ts"

/** `model` is `provider/id`. */
const windowOf = (model: string): number | undefined => {
  const slash = model.indexOf("/")
  return ModelTable.ruleOf(model.slice(0, slash), model.slice(slash + 1))?.contextWindow
}

const compaction = Layer.effect(
  ContextManager.ContextManager,
  Effect.map(ContextManager.ContextManager, TaskList.summarized)
).pipe(Layer.provide(Compaction.layer({ contextWindow: windowOf })))

/** The input of a run. */
export interface Plan {
  readonly settings: Settings
  /** The first prompt, `undefined` if stdin has all of them, or the run continues what is open in its session. */
  readonly prompt: Message.Input | undefined
  readonly choice: Choice
  readonly output: OutputSchema | undefined
  readonly project: Workspace.Workspace
  /** The options of the tool `shell`. */
  readonly shell: Sandboxed["options"]
  /** The hooks of the project and the user; `undefined` if there are none. */
  readonly hooks: HookSources.Hooks | undefined
  /** The MCP servers, connected for several agents. Default: those of the settings, for this agent. */
  readonly servers?: Servers | undefined
}

/** The agent. */
export const make = Effect.fnUntraced(function* (
  plan: Plan,
  opened: Sessions.Opened | undefined,
  policy: Requests.Policy
) {
  const { choice, output, project, settings, shell } = plan
  const { root } = policy
  // Questions that were answered while the run was suspended need their tool, also where no person is.
  const asks = policy.asked !== "deny" || (opened?.session.restored.open?.questions ?? []).length > 0
  const tools = [
    ...Tools.make({ root, shell, hardLinks: "allow" }).filter(({ name }) => settings.tools.includes(name)),
    ...project.tools,
    ...(settings.taskList && settings.tools.includes("tasks") ? [TaskList.tool()] : []),
    ...(asks && settings.tools.includes("ask_user") ? [CoreApproval.askUser()] : [])
  ]
  const kept = [PlanTool.tool(policy.mode, asks), resultReader(settings)]
  const registry = yield* Deferred.make<ToolRegistry["Service"]>()
  const hooks =
    plan.hooks &&
    (yield* plan.hooks.make({
      model: choice.model,
      policy,
      rules: Requests,
      session: opened?.session,
      settings,
      transcript: opened === undefined ? Effect.succeed("") : Sessions.fileOf(settings, opened.session.id)
    }))
  const agent = yield* Agent.make({
    model: choice.model,
    agent: { name: "effect-agent" },
    system: systemPrompt(root, project.system, settings),
    tools: tools.length === 0 ? [] : [...tools, ...kept],
    ...optionsOf(settings),
    hooks: [...(opened?.keeper?.hooks(root) ?? []), ...(hooks?.hooks ?? [])],
    // Commands have time limits of their own.
    ...(hooks === undefined ? {} : { hookTimeout: "Infinity" as const }),
    // Rules say the same again.
    emptyResponse: choice.model.startsWith("local/") ? "accept" : "retry",
    ...(output === undefined ? {} : { output }),
    ...(opened === undefined ? {} : { session: opened.session })
  }).pipe(
    Effect.orDie,
    Effect.updateService(Provider, Mode.narrowing(policy.mode, Deferred.await(registry))),
    Effect.provideService(CoreApproval.Approval, Requests.approvalPolicy(policy)),
    Effect.provideService(Keeping, opened?.keeper),
    Effect.provide(Layer.merge(compaction, results(settings, opened?.artifacts)))
  )
  yield* Deferred.succeed(registry, agent.tools)
  yield* agent.hooks.register(PlanTool.ending(agent, asks))
  if (hooks !== undefined) yield* hooks.attach(agent)
  const servers = plan.servers ?? (yield* serversOf(settings, choice.model))
  if (servers !== undefined) yield* servers.join(agent.tools)
  return agent
})

/** Whether a run may have hooks. It looks at no file but for the folders of Karl. */
const hasHooks = Effect.fnUntraced(function* ({ configuration, hooksFrom }: Settings) {
  const { paths, project, user } = configuration
  const names = [project, user].some((file) => file?.hasHooks === true || (file?.hooksFrom ?? []).length > 0)
  if (names || hooksFrom.length > 0) return true
  const files = yield* FileSystem.FileSystem
  const found = yield* Effect.forEach(Object.values(paths.karl), (folder) =>
    Effect.orElseSucceed(files.exists(folder), () => false)
  )
  return found.includes(true)
})

/** Reads the hooks of the project and the user, and names those that do not run. Their modules are loaded where there are some. */
export const loadHooks = Effect.fnUntraced(function* (settings: Settings) {
  if (settings.disableHooks) return undefined
  if (!(yield* hasHooks(settings))) return undefined
  const { load } = yield* Effect.promise(() => import("../hooks/HookSources.ts"))
  return yield* load(settings)
})

/** Begins to connect to the MCP servers, until the scope closes; `undefined` if there are none. */
export const serversOf = Effect.fnUntraced(function* (settings: Settings, model: string) {
  if (Option.isNone(settings.mcpConfig) || settings.noMcp) return undefined
  const { notices, open } = yield* Effect.promise(() => import("./McpServers.ts"))
  return yield* open(settings, model, yield* notices)
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

/** The tools of the program itself, which the model need not search for. */
const always = [TaskList.name, Mode.planTool]

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
    Option.match(toolSearch, { onNone: () => ({ always }), onSome: (threshold) => ({ always, threshold }) })
  )
  return Layer.merge(Layer.provideMerge(cut, store), search)
}

// ───────────────────────── The sandbox of shell commands, whose choice the program always shows

interface Sandboxed {
  readonly options: Omit<ShellTool.Options, "root">
  /** The choice for people, `undefined` if the model may not call `shell`. */
  readonly remark: string | undefined
}

type Given = Pick<
  Settings,
  "cwd" | "mcpConfig" | "network" | "passEnv" | "sandbox" | "store" | "tools" | "writable"
>

/**
 * Looks whether the sandbox works. Fails with `UsageError` if the command line requires one and there is none. Commands cannot read the
 * files of tokens.
 */
export const chooseSandbox = Effect.fnUntraced(function* (given: Given, tokenFile = Option.none<string>()) {
  const { cwd, network, passEnv, sandbox, tools, writable } = given
  const hidden = yield* secretsOf(given, tokenFile)
  const choice = (mode: Sandbox.Mode, remark?: string): Sandboxed => ({
    options: { sandbox: mode, network, writable, hidden, passEnvironment: passEnv },
    remark: remark === undefined ? undefined : `${remark}${withheld(passEnv)}`
  })
  if (!tools.includes("shell")) return choice("off")
  if (sandbox === "off") return choice("off", "Commands run without a sandbox (--sandbox off)")
  const found = yield* Effect.result(Sandbox.probe({ root: cwd, network, writable, hidden }))
  if (Result.isSuccess(found))
    return choice("require", `Commands run in ${found.success}, ${network ? "with" : "without"} network`)
  if (sandbox === "require") return yield* new UsageError({ detail: found.failure.message })
  return choice("off", `Commands run without a sandbox (${found.failure.detail})`)
})

/** The files that the program knows to have secrets: tokens of a server, keys of MCP servers, and conversations. */
const secretsOf = Effect.fnUntraced(function* (
  { cwd, mcpConfig, store }: Given,
  tokenFile: Option.Option<string>
): Effect.fn.Return<ReadonlyArray<string>, never, Path.Path> {
  const path = yield* Path.Path
  const root = path.resolve(cwd)
  const servers = Option.toArray(mcpConfig)
    .map((file) => path.resolve(file))
    // A project commits its own: git would take a hidden file for a removed one.
    .filter((file) => path.relative(root, file).startsWith(`..${path.sep}`))
  const files = [...Option.toArray(tokenFile), ...(Option.isSome(store) ? placesOf(store.value) : [])]
  return [...servers, ...files.map((file) => path.resolve(file))]
})

const placesOf = (store: StoreAddress): ReadonlyArray<string> => {
  switch (store._tag) {
    case "Files":
      return [store.directory]
    case "Sqlite":
      return ["", "-wal", "-shm", "-journal"].map((end) => `${store.filename}${end}`)
    case "Postgres":
      return []
  }
}

/** The variables that commands do not get, for people. The keys of models are left out: commands do not need those. */
const withheld = (passed: ReadonlyArray<string>): string => {
  const keys = companies.flatMap(({ keyNames }) => keyNames)
  const names = ChildEnvironment.withheld(process.env, [...passed, ...keys])
  if (names.length === 0) return ""
  const more = names.length > 5 ? ` and ${names.length - 5} more` : ""
  return `. They do not get ${names.slice(0, 5).join(", ")}${more} (--pass-env NAME)`
}

// ───────────────────────── The instructions and skills of a project

/** Finds them, and names them on stderr. */
export const loadProject = Effect.fnUntraced(function* (settings: Settings, env: Environment) {
  const path = yield* Path.Path
  const cwd = path.resolve(settings.cwd)
  const workspace = yield* Workspace.load({
    cwd,
    contextFiles: !settings.noContextFiles,
    skills: settings.tools.includes("skill"),
    skillFolders: [path.join(yield* UserFolder.of(env), "skills")]
  })
  const { contextFiles, leftOut, problems, skills } = workspace
  const named = [
    ...contextFiles.map(({ bytes, insteadOf, isCut, path: file, text }) =>
      [
        path.relative(cwd, file),
        isCut ? ` (cut: the model reads ${text.length} characters of ${bytes} bytes)` : "",
        insteadOf === undefined ? "" : ` (not ${path.basename(insteadOf)})`
      ].join("")
    ),
    ...skills.map(({ name }) => `the skill ${name}`)
  ]
  const lines = [
    ...(named.length === 0 ? [] : [`Instructions: ${named.join(", ")}`]),
    ...leftOut.map(({ detail, path: file }) => `${file} is left out: ${detail}`),
    ...problems.map(({ message }) => message)
  ]
  yield* say(lines)
  return workspace
})

// ───────────────────────── The JSON Schema of --output-schema

type OutputSchema = StandardSchemaV1<unknown, Schema.Json> & StandardJSONSchemaV1<unknown, Schema.Json>

/** Reads the schema, which is an object of JSON or the path of a file with one. Fails with `UsageError` if it is neither. */
export const outputSchemaOf = Effect.fnUntraced(function* (
  given: string
): Effect.fn.Return<OutputSchema, UsageError, FileSystem.FileSystem> {
  const refused = (fault: string) => new UsageError({ detail: `--output-schema: ${fault}` })
  const isInline = given.trimStart().startsWith("{")
  const text = isInline
    ? given
    : yield* Effect.mapError(
        FileSystem.FileSystem.use((files) => files.readFileString(given)),
        ({ reason, message }) => refused(reason._tag === "NotFound" ? `there is no file ${given}` : message)
      )
  const schema = decode(text)
  if (Result.isFailure(schema))
    return yield* refused(`${isInline ? "it" : given} is no JSON Schema: ${schema.failure}`)
  return standard(schema.success)
})

const decode = (text: string): Result.Result<Record<string, Schema.Json>, string> =>
  Result.mapError(decodeObject(text), ({ message }) => message.replaceAll(/\s+/g, " "))

const decodeObject = Schema.decodeUnknownResult(
  Schema.fromJsonString(Schema.Record(Schema.String, Schema.Json))
)

const standard = (schema: Record<string, Schema.Json>): OutputSchema => {
  const validate = (value: unknown): StandardSchemaV1.Result<Schema.Json> => {
    const json = Schema.decodeUnknownResult(Schema.Json)(value)
    const decoded = Result.isSuccess(json)
      ? JsonSchema.decode(schema, json.success)
      : Result.fail([json.failure.message])
    return Result.isSuccess(decoded)
      ? { value: decoded.success }
      : { issues: decoded.failure.map((message) => ({ message })) }
  }
  const described = () => schema
  return {
    "~standard": {
      version: 1,
      vendor: "effect-agent",
      validate,
      jsonSchema: { input: described, output: described }
    }
  }
}
