/** The agents of the sessions that `serve` has. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { ArtifactStore } from "../artifacts/ArtifactStore.ts"
import * as Agents from "../server/Agents.ts"
import * as AgentSetup from "./AgentSetup.ts"
import * as Approval from "./Approval.ts"
import * as CommandSandbox from "./CommandSandbox.ts"
import * as Inert from "./Inert.ts"
import * as ListPrices from "./ListPrices.ts"
import * as ModelChoice from "./ModelChoice.ts"
import { Screen } from "./Screen.ts"
import type { Settings } from "./Settings.ts"
import * as Telemetry from "./Telemetry.ts"
import type { Environment } from "./Vendors.ts"

/** Makes the service that makes the agent of a session, with the settings of the program. */
export const make = Effect.fnUntraced(function* (
  settings: Settings,
  env: Environment,
  artifacts: ArtifactStore["Service"],
  { unknown }: Required<Pick<Approval.Policy, "unknown">>
) {
  const { load } = yield* Effect.promise(() => import("./Project.ts"))
  const [choice, { options: shell, remark }] = yield* Effect.all(
    [ModelChoice.withFallbacks(settings, env), CommandSandbox.choose(settings)],
    { concurrency: 2 }
  )
  const { err, paint } = yield* Screen
  const lines = [`Model: ${choice.model} (${choice.why})`, ...(remark === undefined ? [] : [remark])]
  yield* err(lines.map((line) => `${paint.dim(Inert.line(line))}\n`).join(""))
  const project = yield* load(settings, env)
  const plan = { settings, prompt: undefined, choice, output: undefined, project, shell }
  const root = (yield* Path.Path).resolve(settings.cwd)
  const asked = Option.contains(settings.approve, "deny") ? "deny" : "wait"
  const policy = { ...Approval.ofClient(settings, root, asked), unknown }
  const layer = Agents.layer(({ model, session }) =>
    Effect.gen(function* () {
      const chosen =
        model === undefined || model === choice.model
          ? choice
          : yield* ModelChoice.choose({ ...settings, model: Option.some(model), modelFrom: "model" }, env)
      const options = { ...session.restored.options, ...(model === undefined ? {} : { model: chosen.model }) }
      const given = { ...session, restored: { ...session.restored, options } }
      const services = yield* Layer.build(chosen.provider)
      return yield* Effect.provide(
        AgentSetup.make({ ...plan, choice: chosen }, { session: given, artifacts }, policy),
        services
      )
    })
  ).pipe(Layer.provide([ListPrices.layer, Telemetry.layer(env)]))
  return { choice, layer }
})
