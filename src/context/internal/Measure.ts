/**
 * Measures the next request of a conversation: by the figures of the provider, corrected by what has changed since.
 */
import * as Effect from "effect/Effect"
import type * as ContextManager from "../../ContextManager.ts"
import type { Message } from "../../Message.ts"
import * as Transcript from "../../Transcript.ts"
import * as Tokens from "../Tokens.ts"

/** The size of the next request. */
export interface Measure {
  /** The tokens of the request. */
  readonly total: number
  /** Counts the tokens of messages, corrected by the figures of the provider. */
  readonly of: (messages: Iterable<Message>) => number
  /** Counts the tokens of a text, corrected too. */
  readonly ofText: (text: string) => number
  /** Returns the tokens of the request with another compaction. */
  readonly after: (compaction: Transcript.Compaction) => Effect.Effect<number>
}

export const make = Effect.fnUntraced(function* (
  manager: ContextManager.Service,
  tokens: Tokens.Service,
  { compaction, measured, messages, options, request }: ContextManager.Conversation
): Effect.fn.Return<Measure> {
  const sent = (messages: ReadonlyArray<Message>, compaction: Transcript.Compaction | undefined) => {
    const compacted = Transcript.compacted(messages, compaction)
    const viewed = manager.view(compacted.messages, options)
    // A view that fails fails the run, when it makes the request.
    return Effect.map(
      Effect.orElseSucceed(viewed, () => compacted),
      (view) => view.messages
    )
  }
  const now = yield* sent(messages, compaction)
  const measure = (total: number, scale: number): Measure => {
    const of = (messages: Iterable<Message>) => Tokens.ofMessages(tokens, messages) * scale
    return {
      total: Math.max(0, Math.round(total)),
      of,
      ofText: (text) => tokens.count(text) * scale,
      after: (compaction) =>
        Effect.map(sent(messages, compaction), (after) =>
          Math.max(0, Math.round(total + change(of, now, after)))
        )
    }
  }
  const besides = Tokens.besides(tokens, request)
  const { usage } = measured ?? {}
  if (measured === undefined || usage === undefined) {
    return measure(Tokens.ofMessages(tokens, now) + besides, 1)
  }
  // The request of the answer that measures: the messages before it.
  const before = yield* sent(messages.slice(0, messages.lastIndexOf(measured)), compaction)
  const counted = Tokens.ofMessages(tokens, before) + besides
  const scale = Math.min(maxScale, Math.max(1 / maxScale, usage.input / Math.max(1, counted)))
  const of = (messages: Iterable<Message>) => Tokens.ofMessages(tokens, messages) * scale
  return measure(usage.input + usage.output + change(of, [...before, measured], now), scale)
})

/** The most by which counts of texts are corrected: figures of a provider can include what no message holds. */
const maxScale = 4

/** The tokens that one view has more than another. */
const change = (of: Measure["of"], before: ReadonlyArray<Message>, after: ReadonlyArray<Message>): number => {
  const [known, left] = [new Set(before), new Set(after)]
  return (
    of(after.filter((message) => !known.has(message))) - of(before.filter((message) => !left.has(message)))
  )
}
