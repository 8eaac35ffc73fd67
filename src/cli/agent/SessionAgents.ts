/** The agents of the sessions of a process, each with the model of its session. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Agents from "../../runs/Agents.ts"
import type { Session } from "../../Session.ts"
import * as Requests from "../terminal/Requests.ts"
import * as AgentSetup from "./AgentSetup.ts"
import type { Kept } from "./KeptFiles.ts"
import type { Choice } from "./ModelChoice.ts"
import * as ModelTable from "./ModelTable.ts"
import * as Network from "./Network.ts"
import type { Opened } from "./Sessions.ts"
import type { Environment } from "./Vendors.ts"

interface Options<E, R> {
  readonly plan: AgentSetup.Plan
  readonly policy: Requests.Policy
  readonly artifacts: Opened["artifacts"]
  readonly env: Environment
  /** Chooses the model that a session names. */
  readonly named: (model: string) => Effect.Effect<Choice, E, R>
  /** Keeps the files that calls of a session change. Default: nothing does. */
  readonly keeper?: ((session: Session) => Effect.Effect<Kept>) | undefined
}

/** Makes the service that makes the agent of a session. */
export const layer = <E extends { readonly message: string }, R>({
  artifacts,
  env,
  keeper,
  named,
  plan,
  policy
}: Options<E, R>) =>
  Agents.layer(({ model, session }) =>
    Effect.gen(function* () {
      const { choice } = plan
      const chosen = model === undefined || model === choice.model ? choice : yield* named(model)
      const options = { ...session.restored.options, ...(model === undefined ? {} : { model: chosen.model }) }
      const given = { ...session, restored: { ...session.restored, options } }
      const services = yield* Layer.build(chosen.provider)
      const opened = {
        session: given,
        artifacts,
        ...(keeper === undefined ? {} : { keeper: yield* keeper(session) })
      }
      return yield* Effect.provide(AgentSetup.make({ ...plan, choice: chosen }, opened, policy), services)
    })
  ).pipe(Layer.provide([ModelTable.prices, Network.telemetry(env)]))
