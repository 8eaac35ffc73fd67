/**
 * An answer while it is said: told piece by piece, taken back if need be, and ended whole or as far as it came.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Budget from "./budget.ts"
import type { Defect, EventError, FailureReason } from "../FailureReason.ts"
import type { LimitExceeded } from "../FailureReason.ts"
import * as Failure from "../FailureReason.ts"
import * as Message from "../Message.ts"
import * as ModelEvent from "../ModelEvent.ts"
import type { ModelRequest } from "../Provider.ts"
import type { Run } from "./run.ts"
import * as Running from "./run.ts"
import { Stopped } from "./run.ts"
import * as Usage from "../Usage.ts"

/** The answer being said. */
export interface Answer {
  id: Message.MessageId
  /** What is still said by a provider that was left behind is heard no more. */
  closed: boolean
  /** What the model was asked; a hook may have answered instead. */
  request: ModelRequest | undefined
  /** When that was first, in milliseconds since the run began. */
  askedAt: number
  /** What the budget knows of it. */
  entry: Budget.Entry
  started: boolean
  timestamp: number
  /** Grows; what is shown of it is a copy. */
  reply: ModelEvent.Draft
  /** Ids of its tool calls so far, and the last number that was put behind each: vendors repeat ids, or leave them out. */
  readonly callIds: Map<string, number>
}

export const make = (run: Run): Answer => ({
  id: Message.makeId(),
  closed: false,
  request: undefined,
  askedAt: 0,
  entry: Budget.nothing,
  started: false,
  timestamp: run.clock.currentTimeMillisUnsafe(),
  reply: ModelEvent.draft(),
  callIds: new Map()
})

/**
 * Takes in one array of events. What arrived together goes on together, unless some of it is about the call itself, or may
 * be too much. Only an answer that has come to its end may have gone beyond.
 */
export const heard = (
  run: Run,
  answer: Answer,
  events: ReadonlyArray<ModelEvent.ModelEvent>
): Effect.Effect<void, LimitExceeded> => {
  if (answer.closed) return Effect.void
  if (run.budget.isBounded) {
    return Effect.forEach(events, (event) => Effect.andThen(one(run, answer, event), metered(run, answer)), {
      discard: true
    })
  }
  if (hasSomeOfCall(events)) {
    return Effect.forEach(events, (event) => one(run, answer, event), { discard: true })
  }
  return answer.started
    ? said(run, answer, events)
    : Effect.flatMapEager(begin(run, answer), () => said(run, answer, events))
}

const hasSomeOfCall = (events: ReadonlyArray<ModelEvent.ModelEvent>): boolean => {
  for (const { _tag } of events) if (_tag === "Attempt" || _tag === "Retracted") return true
  return false
}

/** Counts what has been said so far, and fails when that is more than may be spent. What was asked is counted in the end. */
const metered = (run: Run, answer: Answer): Effect.Effect<void, LimitExceeded> =>
  Effect.suspend(() => {
    const { content, finish } = answer.reply
    if (finish !== undefined) return Effect.void
    enter(run, answer, Budget.estimate(0, content))
    return checkBudget(run)
  })

export const checkBudget = (run: Run): Effect.Effect<void, LimitExceeded> =>
  Effect.suspend(() => run.budget.exceeded ?? Effect.void)

/** Tells the budget what the answer has come to. */
const enter = (run: Run, answer: Answer, entry: Budget.Entry): void => {
  run.budget.replace(answer.entry, entry)
  answer.entry = entry
}

/** No more comes to it. What comes now is another answer, and another entry. */
const enterForGood = (run: Run, answer: Answer): void => {
  const { reply, request } = answer
  if (request === undefined) return
  const told = Budget.told(reply.finish?.usage)
  enter(run, answer, told ?? Budget.estimate(Budget.inputOf(request), reply.content))
  answer.entry = Budget.nothing
}

const one = Effect.fnUntraced(function* (run: Run, answer: Answer, event: ModelEvent.ModelEvent) {
  if (answer.closed) return
  if (event._tag === "Attempt") {
    if (!answer.started && isPaidFor(event.error)) enterForGood(run, answer)
    return yield* retried(run, event)
  }
  if (event._tag === "Retracted") return yield* retract(run, answer)
  if (!answer.started) yield* begin(run, answer)
  yield* said(run, answer, [event])
})

const said = (
  run: Run,
  answer: Answer,
  events: ReadonlyArray<ModelEvent.ModelEvent>
): Effect.Effect<void> => {
  const deltas: Array<ModelEvent.ModelEvent> = []
  const take = (event: ModelEvent.ModelEvent): void => {
    ModelEvent.add(answer.reply, event)
    // Both frame the answer, and are told by events of their own.
    if (event._tag !== "Start" && event._tag !== "Finish") deltas.push(event)
  }
  for (const event of events) {
    if (event._tag === "ToolCallStart") take(withUniqueId(answer, event))
    else {
      if (event._tag === "ToolCallDelta" || event._tag === "ToolCallEnd") openCall(answer, event, take)
      take(event)
    }
  }
  return deltas.length === 0 ? Effect.void : run.emitter.deltas(answer.id, deltas)
}

/** The first thing said of an answer. */
export const begin = (run: Run, answer: Answer): Effect.Effect<void> => {
  answer.started = true
  run.open = answer
  return Running.emit(run, { _tag: "MessageStart", messageId: answer.id, role: "assistant" })
}

type CallStart = Extract<ModelEvent.ModelEvent, { readonly _tag: "ToolCallStart" }>

/** The start, or block, of a tool call under an id that no other call of the answer has. */
export const withUniqueId = <Call extends CallStart | Message.ToolCall>(answer: Answer, call: Call): Call => {
  let id = call.id === "" ? `call_${Message.makeId()}` : call.id
  let n = answer.callIds.get(call.id) ?? 1
  while (answer.callIds.has(id)) id = `${call.id}_${++n}`
  answer.callIds.set(call.id, n).set(id, answer.callIds.get(id) ?? 1)
  return id === call.id ? call : { ...call, id }
}

/** Opens the call that a piece belongs to, if the provider did not. It has no name, so it is answered as an unknown tool. */
const openCall = (
  answer: Answer,
  { contentIndex }: { readonly contentIndex: number },
  take: (event: ModelEvent.ModelEvent) => void
): void => {
  if (answer.reply.content[contentIndex]?.type === "toolCall") return
  take(withUniqueId(answer, { _tag: "ToolCallStart", contentIndex, id: "", name: "" }))
}

/** Says that the model will be asked again, for the same answer. */
export const retried = Effect.fnUntraced(function* (
  run: Run,
  { attempt, delay, error }: Omit<Extract<ModelEvent.ModelEvent, { readonly _tag: "Attempt" }>, "_tag">
) {
  yield* Running.emit(run, { _tag: "ModelCallError", error, willRetry: true })
  yield* Running.emit(run, { _tag: "ModelCallRetry", attempt, delayMs: Duration.toMillis(delay), error })
})

/** What was asked may have been read, though nothing came of it; a request that was refused costs nothing. */
const isPaidFor = (error: EventError | Stopped): boolean => {
  if (error._tag !== "ProviderError") return error._tag === "Stopped"
  const { reason } = error
  return reason._tag === "Transport" ? reason.kind === "reset" : brokenOff.has(reason._tag)
}

const brokenOff: ReadonlySet<string> = new Set(["StreamTruncated", "StreamStalled", "Protocol"])

/** Takes back what was said of an answer; another one follows. */
export const retract = Effect.fnUntraced(function* (run: Run, answer: Answer) {
  enterForGood(run, answer)
  run.open = undefined
  if (answer.started) yield* Running.emit(run, { _tag: "MessageRetracted", messageId: answer.id })
  answer.id = Message.makeId()
  answer.started = false
  answer.reply = ModelEvent.draft()
  answer.callIds.clear()
})

/** Adds to what the turn and the run have used. */
export const count = (run: Run, usage: Usage.Usage | undefined): void => {
  if (usage === undefined) return
  run.usage = Usage.add(run.usage, usage)
  run.turnUsage = Usage.add(run.turnUsage, usage)
}

/** Ends the answer, whole or as far as it came. */
export const close = Effect.fnUntracedEager(function* (
  run: Run,
  answer: Answer,
  request: ModelRequest | undefined,
  exit: Exit.Exit<void, FailureReason | Stopped>
): Effect.fn.Return<Message.Assistant> {
  if (answer.started || (Exit.isFailure(exit) && isPaidFor(errorOf(exit.cause)))) enterForGood(run, answer)
  if (!answer.started) yield* begin(run, answer)
  const message = ModelEvent.toAssistant(answer.reply, {
    id: answer.id,
    timestamp: run.clock.currentTimeMillisUnsafe(),
    provider: run.provider.id,
    model: request?.model ?? run.options.model,
    protocol: "",
    ...(Exit.isFailure(exit) ? badEnd(exit.cause) : {})
  })
  run.open = undefined
  answer.closed = true
  count(run, message.usage)
  yield* Running.ended(run, message)
  return message
})

const badEnd = (
  cause: Cause.Cause<FailureReason | Stopped>
): Pick<Message.Assistant, "stopReason"> & { errorMessage?: string } => {
  const error = errorOf(cause)
  if (error instanceof Stopped) {
    const reason = error.stop.reason ?? (error.stop.cause === "deadline" ? "out of time" : "cancelled")
    return { stopReason: "aborted", errorMessage: reason }
  }
  return { stopReason: "error", errorMessage: error.message }
}

/** What a cause comes down to: its failure, or its defect with a name. */
export const errorOf = (cause: Cause.Cause<FailureReason | Stopped>): FailureReason | Defect | Stopped => {
  const failure = Cause.findErrorOption(cause)
  return failure._tag === "Some" ? failure.value : Failure.defect(Cause.squash(cause))
}
