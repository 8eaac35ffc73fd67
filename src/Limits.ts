/**
 * Where a run stops by itself.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Hash from "effect/Hash"
import type { TransformFailed } from "./FailureReason.ts"
import { LimitExceeded } from "./FailureReason.ts"
import type { ToolOutput } from "./AgentEvent.ts"
import type { Message, ToolCall } from "./Message.ts"
import type { Run, Stopped } from "./Run.ts"
import * as Running from "./Run.ts"

const defaultMaxTurns = 50
const defaultMaxIdentical = 5
/** Cycles of up to this many calls count as identical: A-A-A, A-B-A-B, A-B-C-A-B-C. */
const longestCycle = 3

/** How many turns a run may have. */
export const maxTurns = (run: Run): number => run.options.limits?.maxTurns ?? defaultMaxTurns

/** The limits a turn must not begin beyond, but for that on turns, which has a policy. */
export const check = (run: Run): Effect.Effect<void, LimitExceeded | TransformFailed | Stopped> =>
  Effect.suspend(() => {
    const { limits = {} } = run.options
    const { executionTime, maxCost, maxTotalTokens } = limits
    const elapsed = run.clock.currentTimeMillisUnsafe() - run.startedAt
    const time = executionTime === undefined ? Infinity : Duration.toMillis(executionTime)
    if (elapsed >= time) return exceeded("executionTime", elapsed, time)
    if (run.usage.total >= (maxTotalTokens ?? Infinity)) {
      return exceeded("tokens", run.usage.total, maxTotalTokens ?? Infinity)
    }
    const cost = run.usage.cost ?? 0
    return cost >= (maxCost ?? Infinity) ? exceeded("cost", cost, maxCost ?? Infinity) : checkSize(run)
  })

/** Counts what would be sent: a window that leaves messages out leaves them out here too. */
const checkSize = Effect.fnUntraced(function* (
  run: Run
): Effect.fn.Return<void, LimitExceeded | TransformFailed | Stopped> {
  const max = run.options.limits?.maxContextSize
  if (max === undefined) return
  const messages = [...run.messages, ...run.pending.messages]
  const view = yield* Running.stoppable(run, run.contextManager.view(messages, run.options))
  const size = sizeOf(view.messages)
  if (size > max) return yield* exceeded("contextSize", size, max)
})

/** A model that goes round in circles: the same calls with the same results. Polling that sees news goes on. */
export const checkRepetition = (
  run: Run,
  settled: ReadonlyArray<CallAndOutput>
): Effect.Effect<void, LimitExceeded> =>
  Effect.suspend(() => {
    const max = run.options.limits?.maxIdenticalToolCalls ?? defaultMaxIdentical
    if (!Number.isFinite(max)) return Effect.void
    run.recentCalls = [...run.recentCalls, ...settled.map(signature)].slice(-max * longestCycle)
    for (let length = 1; length <= longestCycle; length++) {
      if (repeats(run.recentCalls, length, max)) return exceeded("identicalToolCalls", max, max)
    }
    return Effect.void
  })

interface CallAndOutput {
  readonly call: ToolCall
  readonly output: ToolOutput
}

/** What tells one call and its result from another. Long ones by length and hash, as a dozen of them are kept. */
const signature = ({ call, output }: CallAndOutput): string => {
  const text = JSON.stringify([call.name, call.params ?? call.rawArguments, output.content])
  return text.length <= 1000 ? text : `${text.length} ${Hash.string(text)}`
}

const repeats = (calls: ReadonlyArray<string>, length: number, times: number): boolean => {
  const tail = calls.slice(-length * times)
  return tail.length === length * times && tail.every((call, index) => call === tail[index % length])
}

const exceeded = (limit: LimitExceeded["limit"], value: number, max: number) =>
  Effect.fail(new LimitExceeded({ limit, value, max }))

const sizes = new WeakMap<Message, number>()

/** UTF-8 bytes of the messages as JSON. Each is measured once. */
const sizeOf = (messages: ReadonlyArray<Message>): number =>
  messages.reduce((sum, message) => sum + (message.role === "custom" ? 0 : sizeOfOne(message)), 0)

const sizeOfOne = (message: Message): number => {
  const known = sizes.get(message)
  if (known !== undefined) return known
  const size = new TextEncoder().encode(JSON.stringify(message)).byteLength
  sizes.set(message, size)
  return size
}
