/**
 * Sends a short note in place of old results of tools.
 *
 * @since 0.2.0
 */
import { memoize } from "effect/Function"
import type * as Layer from "effect/Layer"
import { type Message, text, textOf, type ToolResult } from "../Message.ts"
import * as Transcript from "../Transcript.ts"
import * as Tokens from "./Tokens.ts"
import * as ViewChange from "./internal/ViewChange.ts"

/**
 * The options of the pruning.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /** The most tokens of old results that stay. Default 40,000. */
  readonly budget?: number
  /**
   * The number of tokens of old results that go at a time, so that the start of the requests, which vendors cache, changes seldom. At
   * most `budget`. Default: half of `budget`.
   */
  readonly step?: number
  /** The number of newest turns whose results stay. Default 3. */
  readonly keepTurns?: number
}

/**
 * Sends a short note in place of the oldest results of tools, once old results have more tokens than `budget`.
 *
 * **When to use**
 *
 * Use it for agents that read much and need little of it later. Provide it to `Compaction.layer`, so that a compaction becomes due
 * later; the summary is made from the whole results.
 *
 * **Details**
 *
 * The transcript keeps the results. A call keeps its result: the note stands in its place, names the tool, and says that the model can
 * call it again. Results shorter than about 50 tokens stay. The pruning works on the messages that the manager before it chooses.
 *
 * **Example** (Pruning before a compaction is due)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent, Message, Tool } from "effect-agent"
 * import { Compaction, Pruning } from "effect-agent/context"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const read = Tool.make({ name: "read", description: "Reads", execute: () => Effect.succeed("x".repeat(9_000)) })
 * const context = Compaction.layer().pipe(Layer.provide(Pruning.layer({ budget: 1_000, keepTurns: 1 })))
 *
 * const program = Effect.gen(function* () {
 *   const call = ScriptedProvider.toolCall("read", {})
 *   const script = yield* ScriptedProvider.make([call, call, ScriptedProvider.text("done")])
 *   const agent = yield* Agent.make({ model: "any", tools: [read] }).pipe(Effect.provide([script.layer, context]))
 *   yield* agent.prompt("Read it twice")
 *   const [, , last] = yield* script.requests
 *   return last?.messages.map((message) => Message.textOf(message).length)
 * }).pipe(Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => [ 13, 0, 106, 0, 9000 ]
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (options: Options = {}): Layer.Layer<never> =>
  ViewChange.layer((view, tokens) => ({ ...view, messages: prune(tokens, options, view.messages) }))

const prune = (
  tokens: Tokens.Service,
  { budget = 40_000, keepTurns = 3, step = budget / 2 }: Options,
  messages: ReadonlyArray<Message>
): ReadonlyArray<Message> => {
  const recent = Transcript.turnStarts(messages).at(-Math.max(1, keepTurns)) ?? 0
  const old = messages.slice(0, recent).filter((message) => message.role === "toolResult")
  const over = Tokens.ofMessages(tokens, old) - budget
  if (over <= 0) return messages
  const atATime = Math.max(1, Math.min(step, budget))
  const target = Math.ceil(over / atATime) * atATime
  const count = Tokens.ofMessage(tokens)
  const pruned = new Set<Message>()
  let seen = 0
  for (const result of old) {
    if (seen >= target) break
    seen += count(result)
    if (count(result) >= minResult) pruned.add(result)
  }
  return messages.map((message) =>
    message.role === "toolResult" && pruned.has(message) ? noteOf(message) : message
  )
}

/** Tokens of a result that is worth a note in its place. */
const minResult = 50

/** The same object each time, so that its encoding can be cached. */
const noteOf = memoize((result: ToolResult): ToolResult => {
  const { length } = textOf(result)
  const images = result.content.length - result.content.filter(({ type }) => type === "text").length
  const size = [`${length} characters`, ...(images > 0 ? [`${images} images`] : [])].join(" and ")
  const note = `[This old result of ${result.toolName} was left out to save space: ${size}. Call the tool again if you need it.]`
  return { ...result, content: [text(note)] }
})
