/**
 * The person at the editor, whom the runs of an agent ask.
 *
 * @since 0.2.0
 */
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Approval from "../Approval.ts"

/**
 * The functions of the service.
 *
 * @category models
 * @since 0.2.0
 */
export interface Service {
  /** The person, for the policy of the agents. */
  readonly asked: Approval.Person
  /** Says that the person does not answer a question. Its call is rejected, and the model reads the reason. */
  readonly decline: (questionId: string, reason: string) => Effect.Effect<void>
}

/**
 * The person at the editor.
 *
 * **Details**
 *
 * A run waits for an approval until `AcpAgent`, or another client of its `Runs`, answers. For a question it also waits until `AcpAgent`
 * says that the person declines, or that the editor cannot ask. With the policy `"wait"` such a question would wait until the run is
 * cancelled.
 *
 * **Example** (Asking the person at the editor)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent, Approval } from "effect-agent"
 * import { AcpPerson } from "effect-agent/acp"
 * import { Agents } from "effect-agent/server"
 *
 * export const AgentsLive = Agents.layer(({ session }) =>
 *   Effect.flatMap(AcpPerson.AcpPerson, ({ asked }) =>
 *     Agent.make({ model: "gpt-5-mini", tools: [Approval.askUser()], session }).pipe(
 *       Effect.provide(Approval.layer({ rules: [Approval.allow("ask_user")], asked }))
 *     )
 *   )
 * ).pipe(Layer.provideMerge(AcpPerson.layer))
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export class AcpPerson extends Context.Service<AcpPerson, Service>()("effect-agent/acp/AcpPerson") {}

class Declined extends Data.TaggedError("Declined")<{ readonly message: string }> {}

const make = (): Service => {
  const declined = new Map<string, Deferred.Deferred<never, Declined>>()
  const of = (questionId: string) => {
    const known = declined.get(questionId) ?? Deferred.makeUnsafe<never, Declined>()
    declined.set(questionId, known)
    return known
  }
  return {
    asked: {
      // The answer comes to the agent by `Runs`.
      approve: () => Effect.never,
      answer: ({ questionId }) =>
        Effect.ensuring(
          Effect.suspend(() => Deferred.await(of(questionId))),
          Effect.sync(() => declined.delete(questionId))
        )
    },
    decline: (questionId, message) =>
      Effect.suspend(() => Effect.asVoid(Deferred.fail(of(questionId), new Declined({ message }))))
  }
}

/**
 * Provides the person at the editor.
 *
 * **Example** (Providing it)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { AcpPerson } from "effect-agent/acp"
 *
 * const program = AcpPerson.AcpPerson.use(({ decline }) => decline("question_1", "no time"))
 * console.log(await Effect.runPromise(Effect.provide(program, AcpPerson.layer))) // => undefined
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer: Layer.Layer<AcpPerson> = Layer.sync(AcpPerson, make)
