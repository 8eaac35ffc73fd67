/**
 * Where a run stops by itself.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { LimitExceeded } from "./FailureReason.ts"
import type { ToolOutput } from "./AgentEvent.ts"
import type { Message, ToolCall } from "./Message.ts"
import type { Run } from "./Run.ts"

export const defaultMaxTurns = 50
const defaultMaxIdentical = 5
/** Cycles of up to this many calls count as identical: A-A-A, A-B-A-B, A-B-C-A-B-C. */
const longestCycle = 3

/** The limits a turn must not begin beyond. */
export const check = (run: Run, pending: ReadonlyArray<Message>): Effect.Effect<void, LimitExceeded> =>
  Effect.suspend(() => {
    const { limits = {} } = run.options
    const { executionTime, maxContextSize, maxCost, maxTotalTokens } = limits
    const maxTurns = limits.maxTurns ?? defaultMaxTurns
    if (run.turn >= maxTurns) return exceeded("maxTurns", run.turn, maxTurns)
    const elapsed = run.clock.currentTimeMillisUnsafe() - run.startedAt
    const time = executionTime === undefined ? Infinity : Duration.toMillis(executionTime)
    if (elapsed >= time) return exceeded("executionTime", elapsed, time)
    const size = maxContextSize === undefined ? 0 : sizeOf(run.messages) + sizeOf(pending)
    if (size > (maxContextSize ?? Infinity)) return exceeded("contextSize", size, maxContextSize ?? Infinity)
    if (run.usage.total >= (maxTotalTokens ?? Infinity)) {
      return exceeded("tokens", run.usage.total, maxTotalTokens ?? Infinity)
    }
    const cost = run.usage.cost ?? 0
    return cost >= (maxCost ?? Infinity) ? exceeded("cost", cost, maxCost ?? Infinity) : Effect.void
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

const signature = ({ call, output }: CallAndOutput): string =>
  JSON.stringify([call.name, call.params ?? call.rawArguments, output.content])

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
