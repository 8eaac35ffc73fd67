/**
 * A run or a session as a person sees it: a pure fold of its events to rows.
 *
 * **Details**
 *
 * A terminal, a page and an export show the same rows. The module loads no schema, no Effect and no DOM, so that a page can have it.
 *
 * @since 0.2.0
 */
import type { AgentEvent } from "../AgentEvent.ts"
import { zero } from "../internal/usageSum.ts"
import * as Folding from "./internal/folding.ts"
import type { Block, Bounds, Positioned, Row, View } from "./internal/rows.ts"

export type { Block, Bounds, Kind, Positioned, Row, Shown, State, Turn, View } from "./internal/rows.ts"

/**
 * Makes an empty view.
 *
 * **Example** (Holding each row)
 *
 * ```ts
 * import { RunView } from "effect-agent/view"
 *
 * const view = RunView.make({ rows: Infinity })
 *
 * console.log(view.bounds.rows, view.bounds.text) // => Infinity 100000
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = (bounds: Partial<Bounds> = {}): View => ({
  run: undefined,
  rows: [],
  dropped: 0,
  asked: [],
  queued: { steering: 0, followUp: 0 },
  turns: [],
  usage: zero,
  usageBefore: zero,
  error: undefined,
  position: 0,
  bounds: { rows: 500, turns: 1000, output: 4000, text: 100_000, inside: 16, ...bounds }
})

/**
 * An empty view with the default bounds.
 *
 * @category constants
 * @since 0.2.0
 */
export const initial: View = make()

/**
 * Folds an event into a view.
 *
 * **Details**
 *
 * The function is pure, takes the events of several runs one after the other, and those of their sub-agents between. It takes a stream without
 * `MessageDelta` too: `MessageEnd` alone makes the same rows. A text that grows is appended. For an event without a position that of the
 * view is `seq`.
 *
 * **Example** (Showing a run)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 * import { RunView } from "effect-agent/view"
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any" })
 *   return yield* Stream.runFold(agent.stream("Hi"), () => RunView.initial, RunView.fold)
 * }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("Hello")])), Effect.scoped)
 *
 * const view = await Effect.runPromise(program)
 * console.log(view.rows.map(({ kind, title }) => `${kind} ${title}`).join(", ")) // => user Hi, turn 1, call any, answer Hello
 * ```
 *
 * @category folding
 * @since 0.2.0
 */
export const fold = (view: View, item: AgentEvent | Positioned): View => {
  if ("event" in item) return Folding.fold({ ...view, position: item.position }, item.event)
  return Folding.fold(item.path === undefined ? { ...view, position: item.seq } : view, item)
}

/**
 * Returns the row of a block, without its texts.
 *
 * **Example** (Sending rows to a page)
 *
 * ```ts
 * import { RunView } from "effect-agent/view"
 *
 * const rows = RunView.initial.rows.map(RunView.rowOf)
 *
 * console.log(rows) // => []
 * ```
 *
 * @category converting
 * @since 0.2.0
 */
export const rowOf = ({ result: _result, text: _text, ...row }: Block): Row => row
