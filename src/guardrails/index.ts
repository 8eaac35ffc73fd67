/**
 * Guards over the messages for a model and over its answers.
 *
 * **Details**
 *
 * An input guard checks messages before the model gets them. An output guard checks a whole answer, a stream guard its text while
 * it streams, before others see it. Guards of one stage run side by side, and no tool of an answer starts before all of them passed it.
 *
 * **Example** (Stopping a request and an answer)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Message } from "effect-agent"
 * import { Guardrail } from "effect-agent/guardrails"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const onTopic = Guardrail.input({
 *   name: "on topic",
 *   check: ({ news }) =>
 *     Effect.succeed(
 *       news.some((message) => Message.textOf(message).includes("weather"))
 *         ? Guardrail.replace("I talk about books only.")
 *         : Guardrail.pass
 *     )
 * })
 * const noSecrets = Guardrail.stream({
 *   name: "no secrets",
 *   check: ({ text }) =>
 *     Effect.succeed(text.includes("swordfish") ? Guardrail.trip("it has the password") : Guardrail.pass)
 * })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any" })
 *   console.log((yield* agent.prompt("What is the weather?")).text)
 *   yield* agent.prompt("Which book has the password?")
 * }).pipe(
 *   Effect.catchTag("RunFailed", ({ message }) => Effect.sync(() => console.log(message))),
 *   Effect.provide(Guardrail.layer(onTopic, noSecrets)),
 *   Effect.scoped
 * )
 *
 * const script = [ScriptedProvider.text(["It is sword", "fish."])]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => I talk about books only.
 * // => Guardrail "no secrets" stopped the output: it has the password
 * ```
 *
 * @since 0.2.0
 */
export * as Guardrail from "./Guardrail.ts"
