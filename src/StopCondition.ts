/**
 * Conditions that end a run after a turn, as data: the option `stopWhen` of a run.
 *
 * **Details**
 *
 * A run that meets its condition ends with status `"stopped"` where another turn would follow. A condition that is a function is a
 * `shouldStopAfterTurn` hook.
 *
 * @since 0.2.0
 */
import * as Schema from "effect/Schema"
import { type Assistant, toolCalls } from "./Message.ts"

const count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1, { expected: "a whole number from 1" }))

/**
 * A condition that ends a run.
 *
 * **Details**
 *
 * {@link hasToolCall}, {@link turnCount}, {@link tokenCount}, {@link any} and {@link all} make one. Its members are data, so that
 * options with it can be stored and sent.
 *
 * @category models
 * @since 0.2.0
 */
export type StopCondition =
  | { readonly type: "toolCall"; readonly names: readonly [string, ...ReadonlyArray<string>] }
  | { readonly type: "turns" | "tokens"; readonly count: number }
  | { readonly type: "any" | "all"; readonly of: readonly [StopCondition, ...ReadonlyArray<StopCondition>] }

/**
 * The schema of a condition.
 *
 * @category schemas
 * @since 0.2.0
 */
export const StopCondition: Schema.Codec<StopCondition> = Schema.Union([
  Schema.Struct({ type: Schema.Literal("toolCall"), names: Schema.NonEmptyArray(Schema.String) }),
  Schema.Struct({ type: Schema.Literals(["turns", "tokens"]), count }),
  Schema.Struct({
    type: Schema.Literals(["any", "all"]),
    of: Schema.NonEmptyArray(Schema.suspend((): Schema.Codec<StopCondition> => StopCondition))
  })
]).annotate({ expected: "a condition of the module StopCondition" })

/**
 * The state of a run after a turn.
 *
 * @category models
 * @since 0.2.0
 */
export interface Progress {
  /** The number of turns of the run, without those that the option `retry` repeated. */
  readonly turns: number
  /** The tokens of the run so far, those of its sub-agents included. */
  readonly tokens: number
  /** The answer of the turn. */
  readonly message: Assistant
}

/**
 * Holds after a turn that called one of the tools.
 *
 * **Example** (Stopping after a tool)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, StopCondition, Tool } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const submit = Tool.make({ name: "submit", description: "Submits.", execute: () => Effect.succeed("submitted") })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({
 *     model: "any",
 *     tools: [submit],
 *     stopWhen: StopCondition.any(StopCondition.hasToolCall("submit"), StopCondition.turnCount(20))
 *   })
 *   const { status } = yield* agent.prompt("Submit the form.")
 *   return status
 * }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.toolCall("submit", {})])), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => stopped
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const hasToolCall = (...names: readonly [string, ...ReadonlyArray<string>]): StopCondition => ({
  type: "toolCall",
  names
})

/**
 * Holds from the turn with this number on.
 *
 * **Example** (Stopping after three turns)
 *
 * ```ts
 * import { StopCondition } from "effect-agent"
 *
 * console.log(StopCondition.turnCount(3)) // => { type: 'turns', count: 3 }
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const turnCount = (count: number): StopCondition => ({ type: "turns", count })

/**
 * Holds once the run has used so many tokens, of requests and answers.
 *
 * **Example** (Stopping after many tokens)
 *
 * ```ts
 * import { StopCondition } from "effect-agent"
 *
 * console.log(StopCondition.tokenCount(50_000)) // => { type: 'tokens', count: 50000 }
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const tokenCount = (count: number): StopCondition => ({ type: "tokens", count })

/**
 * Holds if at least one of the conditions holds.
 *
 * **Example** (Stopping at the first of two conditions)
 *
 * ```ts
 * import { StopCondition } from "effect-agent"
 *
 * const condition = StopCondition.any(StopCondition.hasToolCall("submit"), StopCondition.turnCount(20))
 *
 * console.log(condition.type) // => any
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const any = (...of: readonly [StopCondition, ...ReadonlyArray<StopCondition>]): StopCondition => ({
  type: "any",
  of
})

/**
 * Holds if all conditions hold after one turn.
 *
 * **Example** (Stopping at a tool call after the second turn)
 *
 * ```ts
 * import { StopCondition } from "effect-agent"
 *
 * const condition = StopCondition.all(StopCondition.hasToolCall("submit"), StopCondition.turnCount(2))
 *
 * console.log(condition.type) // => all
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const all = (...of: readonly [StopCondition, ...ReadonlyArray<StopCondition>]): StopCondition => ({
  type: "all",
  of
})

/**
 * Returns whether a condition holds.
 *
 * **Example** (Checking a condition)
 *
 * ```ts
 * import { Message, StopCondition } from "effect-agent"
 *
 * const progress = { turns: 3, tokens: 900, message: Message.assistant("Done.") }
 *
 * console.log(StopCondition.isMet(StopCondition.turnCount(3), progress)) // => true
 * ```
 *
 * @category predicates
 * @since 0.2.0
 */
export const isMet = (condition: StopCondition, progress: Progress): boolean => {
  const holds = (inner: StopCondition) => isMet(inner, progress)
  switch (condition.type) {
    case "toolCall":
      return toolCalls(progress.message).some(({ name }) => condition.names.includes(name))
    case "turns":
    case "tokens":
      return progress[condition.type] >= condition.count
    case "any":
      return condition.of.some(holds)
    case "all":
      return condition.of.every(holds)
  }
}
