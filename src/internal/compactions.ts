/**
 * The data that a conversation has besides its messages: its last compaction, and the notes of providers on its answers.
 */
import { CompactionFailed } from "./failureReason.ts"
import * as FailureText from "./failureText.ts"
import type { Json } from "./json.ts"
import { RunFailed } from "../Run.ts"
import type { Assistant, Message, MessageId } from "../Message.ts"
import * as Transcript from "../Transcript.ts"

/** The part by which a conversation must grow after a failed compaction before the run tries another one. */
const growth = 0.1

/** A compaction that a run has made. */
export interface Entry extends Transcript.Compaction {
  readonly entryId: string
  readonly tokensBefore: number
  readonly tokensAfter: number
}

/** A call of `agent.compact`: its instructions, and the compaction for its result. */
export class ByHand {
  readonly instructions: string | undefined
  /** The compaction; `undefined` before it is made, and if there is nothing to compact. */
  made: Entry | undefined

  constructor(instructions: string | undefined) {
    this.instructions = instructions
  }
}

export class Compactions {
  /** The last compaction, from which requests start; `undefined` before the first. */
  current: Transcript.Compaction | undefined
  /** The notes of providers on answers, by the ids of their messages. No event has them: they may hold the system prompt. */
  readonly notes = new Map<MessageId, Json>()
  /** The newest message when the conversation was last compacted or replaced. Only answers after it measure current requests. */
  private measuredAfter: MessageId | undefined
  /** The tokens of the conversation when a compaction last failed; `undefined` if none has failed since the last one that succeeded. */
  private failedAt: number | undefined

  constructor(messages: ReadonlyArray<Message>, current: Transcript.Compaction | undefined) {
    this.current = current
    if (current === undefined) return
    const madeAfter = messages.findLast(({ id }) => id === current.madeAfter) ?? messages.at(-1)
    this.measuredAfter = madeAfter?.id
  }

  keep(compaction: Transcript.Compaction, messages: ReadonlyArray<Message>): void {
    const madeAfter = messages.at(-1)?.id
    this.current = { ...compaction, ...(madeAfter === undefined ? {} : { madeAfter }) }
    this.failedAt = undefined
    this.remeasure(messages)
  }

  /** Forgets the compaction, since the application replaced the messages. `current` is the compaction of the new ones. */
  drop(messages: ReadonlyArray<Message>, current?: Transcript.Compaction): void {
    this.current = current
    this.failedAt = undefined
    const madeAfter = current && messages.findLast(({ id }) => id === current.madeAfter)
    this.measuredAfter = (madeAfter ?? messages.at(-1))?.id
  }

  /** Disregards the usage of the answers so far: requests from now on have other messages. */
  remeasure(messages: ReadonlyArray<Message>): void {
    this.measuredAfter = messages.at(-1)?.id
  }

  fail(tokens: number): void {
    this.failedAt = tokens
  }

  /** Whether a compaction failed, and the conversation with now `tokens` has grown by less than `growth` since. */
  isTooSoon(tokens: number): boolean {
    return this.failedAt !== undefined && tokens - this.failedAt < this.failedAt * growth
  }

  /** The last answer whose usage measures requests as they are sent now. */
  measured(messages: ReadonlyArray<Message>): Assistant | undefined {
    for (let index = messages.length - 1; index >= 0; index--) {
      const message = messages[index]
      if (message === undefined || message.id === this.measuredAfter) return undefined
      if (message.role === "assistant" && !Transcript.isFailed(message) && (message.usage?.total ?? 0) > 0)
        return message
    }
    return undefined
  }
}

/** Makes the failure of a compaction. If the summary was a run that failed, it keeps the reason and the usage of that run. */
export const compactionFailed = (failure: unknown): CompactionFailed => {
  if (failure instanceof CompactionFailed) return failure
  if (!(failure instanceof RunFailed)) return new CompactionFailed({ detail: FailureText.of(failure) })
  const { reason, result } = failure
  const isKept = reason._tag === "ProviderError" || reason._tag === "LimitExceeded"
  return new CompactionFailed({
    detail: reason.message,
    ...(isKept ? { reason } : {}),
    ...(result.usage.total > 0 ? { usage: result.usage } : {})
  })
}
