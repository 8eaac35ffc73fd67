/**
 * The guard between a run and its model: it checks requests before the model gets them, and answers before others see them.
 *
 * **When to use**
 *
 * `Guardrail.layer` of `effect-agent/guardrails` provides it, with guards that run side by side, time limits and a bounded
 * hold-back. Provide an implementation of your own to check in another way.
 *
 * **Details**
 *
 * The run passes each answer through the guard before it publishes a piece of it, so that no event, message or span has text that
 * the guard withholds. Tools start after the end of the answer: none starts while the guard works.
 *
 * @since 0.2.0
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { GuardrailTripped } from "./internal/failureReason.ts"
import type { ModelEvent } from "./ModelEvent.ts"
import type { ModelRequest } from "./Provider.ts"

/**
 * A request that the run is about to send.
 *
 * @category models
 * @since 0.2.0
 */
export interface Asked {
  /** The id of the run. */
  readonly runId: string
  /** The number of the turn, from 1. */
  readonly turn: number
  /** The request, with the changes of the hooks. */
  readonly request: ModelRequest
}

/**
 * The functions of a guard.
 *
 * **Details**
 *
 * A run whose guard fails with `GuardrailTripped` fails with that reason.
 *
 * @category models
 * @since 0.2.0
 */
export interface Service {
  /** Checks a request. Succeeds with words to answer with in place of the model, or with `undefined` to ask it. Default: asks it. */
  readonly input?: (asked: Asked) => Effect.Effect<string | undefined, GuardrailTripped>
  /** Returns the events of an answer that the run may publish. The run calls it for each try. Default: all events. */
  readonly output?: <E>(
    answer: Stream.Stream<ModelEvent, E>,
    asked: Asked
  ) => Stream.Stream<ModelEvent, E | GuardrailTripped>
}

/**
 * The service that guards a model.
 *
 * **Details**
 *
 * By default it lets everything pass. An answer that a `beforeModel` hook gives in place of the model does not go through it.
 *
 * **Example** (Answering in place of the model)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent, ModelGuard } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const closed = Layer.succeed(ModelGuard.ModelGuard, { input: () => Effect.succeed("We are closed.") })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any" })
 *   const { text } = yield* agent.prompt("Hello?")
 *   return text
 * }).pipe(Effect.scoped, Effect.provide([closed, ScriptedProvider.layer([])]))
 *
 * console.log(await Effect.runPromise(program)) // => We are closed.
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export const ModelGuard = Context.Reference<Service>("effect-agent/ModelGuard", {
  defaultValue: () => ({})
})
