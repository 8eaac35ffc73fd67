/**
 * Chooses the place at which a conversation is cut: the messages before it are summarized, those after it stay.
 */
import type { Message } from "../../Message.ts"
import * as Transcript from "../../Transcript.ts"

/** A cut conversation. */
export interface Cut {
  /** The messages that the summary stands for, without those that an earlier summary does. */
  readonly older: ReadonlyArray<Message>
  /** The oldest message that stays. */
  readonly firstKept: Message
  /** Whether the first user message is among those that the summary stands for. */
  readonly summarizesFirst: boolean
}

/**
 * The longest end of the conversation that begins with a turn and is within `keep`, or else its newest turn. The first user message
 * stays as it is up to `maxFirst` tokens.
 */
export const make = (
  messages: ReadonlyArray<Message>,
  compaction: Transcript.Compaction | undefined,
  { keep, maxFirst }: { readonly keep: number; readonly maxFirst: number },
  tokensOf: (messages: ReadonlyArray<Message>) => number
): Cut | undefined => {
  const since = messages.findIndex(({ id }) => id === compaction?.firstKept)
  const from = Math.max(0, since)
  const firstUser = messages.findIndex(({ role }) => role === "user")
  const places = Transcript.turnStarts(messages).filter((place) => place > from && place > firstUser)
  let [place, ...earlier] = places.reverse()
  if (place === undefined) return undefined
  let kept = tokensOf(messages.slice(place))
  for (const next of earlier) {
    kept += tokensOf(messages.slice(next, place))
    if (kept > keep) break
    place = next
  }
  const firstKept = messages[place]
  const first = messages.slice(firstUser, firstUser + 1)
  const isSummarized = compaction?.summarizesFirst === true
  const summarizesFirst = isSummarized || tokensOf(first) > maxFirst
  const older = [
    ...(summarizesFirst && !isSummarized ? first : []),
    ...messages.slice(from, place).filter((_, index) => from + index !== firstUser)
  ]
  return firstKept === undefined || older.length === 0 ? undefined : { older, firstKept, summarizesFirst }
}
