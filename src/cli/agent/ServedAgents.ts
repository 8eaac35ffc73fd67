/** The agents of the sessions that `serve` has. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { ArtifactStore } from "../../artifacts/ArtifactStore.ts"
import * as Agents from "../../runs/Agents.ts"
import * as AgentSetup from "./AgentSetup.ts"
import * as ApprovalPrompt from "../terminal/ApprovalPrompt.ts"
import * as CommandSandbox from "./CommandSandbox.ts"
import { UsageError } from "../ExitCode.ts"
import * as Inert from "../terminal/Inert.ts"
import * as ListPrices from "./ListPrices.ts"
import * as ModelChoice from "./ModelChoice.ts"
import { Screen } from "../terminal/Screen.ts"
import type { Settings } from "../settings/Settings.ts"
import * as TelemetryExport from "./TelemetryExport.ts"
import type { Environment } from "./Vendors.ts"

interface Served extends Required<Pick<ApprovalPrompt.Policy, "unknown">> {
  /** The models that sessions may name, as `provider/id` or `provider/*`. Default, if it is empty: those of the server's providers. */
  readonly sessionModel: ReadonlyArray<string>
  /** The file with the tokens of the server. */
  readonly tokenFile: Option.Option<string>
}

/** Makes the service that makes the agent of a session, with the settings of the program. */
export const make = Effect.fnUntraced(function* (
  settings: Settings,
  env: Environment,
  artifacts: ArtifactStore["Service"],
  { sessionModel, tokenFile, unknown }: Served
) {
  const { load } = yield* Effect.promise(() => import("../settings/Project.ts"))
  const [choice, { options: shell, remark }] = yield* Effect.all(
    [ModelChoice.withFallbacks(settings, env), CommandSandbox.choose(settings, tokenFile)],
    { concurrency: 2 }
  )
  const { err, paint } = yield* Screen
  const lines = [`Model: ${choice.model} (${choice.why})`, ...(remark === undefined ? [] : [remark])]
  yield* err(lines.map((line) => `${paint.dim(Inert.line(line))}\n`).join(""))
  const project = yield* load(settings, env)
  if (Option.isSome(settings.mcpConfig)) {
    const { servers } = yield* Effect.promise(() => import("./McpServers.ts"))
    yield* servers(settings)
  }
  const plan = { settings, prompt: undefined, choice, output: undefined, project, shell }
  const root = (yield* Path.Path).resolve(settings.cwd)
  const asked = Option.contains(settings.approve, "deny") ? "deny" : "wait"
  const policy = { ...ApprovalPrompt.ofClient(settings, root, asked), unknown }
  const allowed = sessionModel.length > 0 ? sessionModel : own([choice.model, ...fallbacks(settings)])
  const named = Effect.fnUntraced(function* (model: string) {
    const options = { ...settings, model: Option.some(model), modelFrom: "model" }
    const found = yield* ModelChoice.choose(ModelChoice.besides(options, choice, model), env)
    if (allowed.includes(found.model) || allowed.includes(`${ModelChoice.vendorOf(found.model)}/*`))
      return found
    const detail = `model: this server does not let sessions name ${found.model}. They may name ${allowed.join(", ")} (--session-model).`
    return yield* new UsageError({ detail })
  })
  const layer = Agents.layer(({ model, session }) =>
    Effect.gen(function* () {
      const chosen = model === undefined || model === choice.model ? choice : yield* named(model)
      const options = { ...session.restored.options, ...(model === undefined ? {} : { model: chosen.model }) }
      const given = { ...session, restored: { ...session.restored, options } }
      const services = yield* Layer.build(chosen.provider)
      return yield* Effect.provide(
        AgentSetup.make({ ...plan, choice: chosen }, { session: given, artifacts }, policy),
        services
      )
    })
  ).pipe(Layer.provide([ListPrices.layer, TelemetryExport.layer(env)]))
  return { choice, layer }
})

const fallbacks = ({ fallbackModel }: Settings) => fallbackModel.map(({ name }) => name)

/** All models of the providers of some. */
const own = (models: ReadonlyArray<string>) => [
  ...new Set(models.map((model) => `${ModelChoice.vendorOf(model)}/*`))
]

/** Fails with `UsageError` for a model that the provider of the server does not have. */
export const proxied = (models: ReadonlyArray<string>, { model: first }: ModelChoice.Choice) =>
  Effect.forEach(
    models,
    (model) => {
      const vendor = ModelChoice.vendorOf(first)
      return ModelChoice.isKnown(model) && ModelChoice.vendorOf(model) === vendor
        ? Effect.void
        : new UsageError({
            detail: `--proxy-model: ${model} is no model of ${vendor}, whose models this server has: name one as ${vendor}/ID.`
          })
    },
    { discard: true }
  )
