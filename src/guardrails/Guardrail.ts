/**
 * Guards over the messages for a model and over its answers, and the layer that installs them.
 *
 * **Details**
 *
 * Guards fail closed: one that fails, dies, exceeds its time limit or returns no verdict stops the run with `GuardrailTripped`. The
 * detail of that error names the kind of the failure, never its text, which may quote what the guard has read.
 *
 * @since 0.2.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Provider from "../Provider.ts"
import * as GuardrailCheck from "./internal/GuardrailCheck.ts"
import type { Guardrail, Input, Options, Output, Streamed } from "./internal/GuardrailCheck.ts"

export {
  type Guardrail,
  type Input,
  type Options,
  type Output,
  pass,
  replace,
  type Streamed,
  trip,
  type Verdict
} from "./internal/GuardrailCheck.ts"

/**
 * Makes a guard over the messages for the model.
 *
 * **Details**
 *
 * It runs before each model call, so that it sees results of tools too: read `news`. With `replace` the model is not called.
 *
 * **Gotchas**
 *
 * A guard that trips refuses `news`, all of it. The transcript keeps these messages, and the failed answer names them in `refused`. No
 * later request has them: the run of the next prompt starts without them, and a call whose result was refused has the result that none
 * was recorded.
 *
 * **Example** (Refusing long prompts)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Message } from "effect-agent"
 * import { Guardrail } from "effect-agent/guardrails"
 *
 * export const short = Guardrail.input({
 *   name: "short prompts",
 *   check: ({ news }) =>
 *     Effect.succeed(
 *       news.some((message) => message.role === "user" && Message.textOf(message).length > 4_000)
 *         ? Guardrail.trip("the prompt is longer than 4,000 characters")
 *         : Guardrail.pass
 *     )
 * })
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const input = <E = never, R = never>(options: Options<Input, E, R>): Guardrail<R> => ({
  ...options,
  stage: "input"
})

/**
 * Makes a guard over whole answers.
 *
 * **Details**
 *
 * It runs at the end of each answer, also of one with tool calls. Others see nothing of an answer before it has passed: with such a
 * guard, answers do not stream.
 *
 * **Example** (Asking another model)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Message, Provider } from "effect-agent"
 * import { Guardrail } from "effect-agent/guardrails"
 *
 * export const polite = Guardrail.output({
 *   name: "polite",
 *   check: Effect.fnUntraced(function* ({ text }) {
 *     const question = Message.user(`Is this text polite? Answer yes or no.\n\n${text}`)
 *     const request = { model: "small", messages: [question], tools: [], options: {} }
 *     const isPolite = Message.textOf(yield* Provider.complete(request)).startsWith("yes")
 *     return isPolite ? Guardrail.pass : Guardrail.trip("another model called it impolite")
 *   })
 * })
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const output = <E = never, R = never>(options: Options<Output, E, R>): Guardrail<R> => ({
  ...options,
  stage: "output"
})

/**
 * Makes a guard over the text of answers while they stream.
 *
 * **Details**
 *
 * It checks the text, the thinking and the arguments of tool calls, each from its start. The run publishes a text after all stream
 * guards have passed it. `holdBack`, default 256, is the number of characters that it withholds at most, beside those that
 * have just arrived: the guard runs each time that half as many are new, and the other half waits for the text behind it. So no part of
 * a phrase of at most half `holdBack` characters is published before the guard has seen all of it. Of several guards, the largest
 * `holdBack` counts.
 *
 * If the model call fails or is cancelled, the text that waits is dropped.
 *
 * **Gotchas**
 *
 * A text between which other blocks stand, such as a tool call, is one text for the guard, but the part before the other block is
 * published once it has passed. Results of tools that the vendor runs, sources and media are not checked: use `output`.
 *
 * **Example** (Withholding a word)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Guardrail } from "effect-agent/guardrails"
 *
 * export const noSecrets = Guardrail.stream({
 *   name: "no secrets",
 *   holdBack: 64,
 *   check: ({ passed, text }) =>
 *     Effect.succeed(text.includes("swordfish", passed - 9) ? Guardrail.replace("I keep secrets.") : Guardrail.pass)
 * })
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const stream = <E = never, R = never>(
  options: Options<Streamed, E, R> & { readonly holdBack?: number }
): Guardrail<R> => ({ ...options, stage: "stream" })

/**
 * Installs guards for the runs of `Loop` and of agents that are made within the layer.
 *
 * **Details**
 *
 * The services that the checks require become requirements of the layer. Nested layers add up. The guards of one layer and one
 * stage run side by side: the first that trips stops the others, and of several replacements that of the first guard counts.
 *
 * **Gotchas**
 *
 * Of layers that are merged side by side, as in `Effect.provide([a, b])`, only the last one counts, as for any service.
 *
 * **Example** (Answering in other words)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-agent"
 * import { Guardrail } from "effect-agent/guardrails"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const kind = Guardrail.output({
 *   name: "kind",
 *   check: ({ text }) => Effect.succeed(text === "No." ? Guardrail.replace("I am afraid not.") : Guardrail.pass)
 * })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any" })
 *   return (yield* agent.prompt("May I?")).text
 * }).pipe(Effect.scoped, Effect.provide(Guardrail.layer(kind)))
 *
 * const provider = ScriptedProvider.layer([ScriptedProvider.text("No.")])
 * console.log(await Effect.runPromise(program.pipe(Effect.provide(provider)))) // => I am afraid not.
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = <const Guards extends ReadonlyArray<Guardrail>>(
  ...guards: Guards
): Layer.Layer<never, never, Requirements<Guards[number]>> =>
  Layer.effect(
    Provider.Guard,
    Effect.contextWith((services: Context.Context<Requirements<Guards[number]>>) =>
      Effect.succeed(
        within(Context.get(services, Provider.Guard), serviceOf(GuardrailCheck.bound(guards, services)))
      )
    )
  )

/**
 * The services that the check of a guard requires.
 *
 * @category utility types
 * @since 0.2.0
 */
export type Requirements<G> = G extends Guardrail<infer R> ? R : never

const serviceOf = (guards: GuardrailCheck.Guards): Provider.Guard => ({
  ...(guards.input.length === 0 ? {} : { input: (asked) => GuardrailCheck.input(guards, asked) }),
  ...(guards.output.length + guards.stream.length === 0
    ? {}
    : { output: (answer, asked) => GuardrailCheck.guarded(guards, answer, asked) })
})

/** Asks the outer guard about requests first, and about answers last. */
const within = (outer: Provider.Guard, own: Provider.Guard): Provider.Guard => ({
  input: (asked) =>
    Effect.flatMap(
      outer.input?.(asked) ?? Effect.undefined,
      (words) => (words === undefined ? own.input?.(asked) : undefined) ?? Effect.succeed(words)
    ),
  output: (answer, asked) => {
    const released = own.output?.(answer, asked) ?? answer
    return outer.output?.(released, asked) ?? released
  }
})
