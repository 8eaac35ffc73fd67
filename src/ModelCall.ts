/**
 * Asks the model once: from the request to the finished message, every piece of the answer told as it comes.
 *
 * Whatever happens, the answer that was begun is ended: with what was said of it, and why it stopped.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Duration from "effect/Duration"
import * as Stream from "effect/Stream"
import type { EventError, FailureReason } from "./FailureReason.ts"
import * as Failure from "./FailureReason.ts"
import type * as Hook from "./Hook.ts"
import * as Message from "./Message.ts"
import * as ModelEvent from "./ModelEvent.ts"
import type { ModelRequest } from "./Provider.ts"
import { Protocol as ProtocolError, ProviderError, StreamTruncated } from "./ProviderError.ts"
import type { Run } from "./Run.ts"
import * as Running from "./Run.ts"
import { Stopped } from "./Run.ts"
import * as Usage from "./Usage.ts"

/** The answer being said. */
interface Answer {
  id: Message.MessageId
  started: boolean
  timestamp: number
  reply: ModelEvent.Reply
  /** Ids of its tool calls so far: vendors repeat them, or leave them out. */
  readonly callIds: Set<string>
}

/**
 * Asks and waits for the end of the answer. The message is in the transcript when this returns, and also when it fails:
 * then with `stopReason` "error" or "aborted" and whatever had been said.
 */
export const ask = Effect.fnUntraced(function* (
  run: Run,
  planned: ModelRequest,
  onMessage: (message: Message.Assistant) => void
): Effect.fn.Return<Message.Assistant, FailureReason | Stopped> {
  const answer = newAnswer(run)
  const startedAt = answer.timestamp
  const exit = yield* Effect.exit(prepared(run, planned, answer))
  const message = yield* close(run, answer, planned, exit)
  onMessage(message)
  const durationMs = run.clock.currentTimeMillisUnsafe() - startedAt
  if (Exit.isFailure(exit)) return yield* failed(run, exit.cause)
  yield* Running.emit(run, {
    _tag: "ModelCallEnd",
    messageId: message.id,
    ...(message.usage === undefined ? {} : { usage: message.usage }),
    durationMs
  })
  yield* Running.observe(run, "afterModel", () => ({ ...Running.turnInput(run), message, durationMs }))
  return message
})

/** An answer for a turn in which the model could not even be asked. */
export const unasked = (
  run: Run,
  cause: Cause.Cause<FailureReason | Stopped>
): Effect.Effect<Message.Assistant> =>
  Effect.suspend(() => close(run, newAnswer(run), undefined, Exit.failCause(cause)))

const newAnswer = (run: Run): Answer => ({
  id: Message.makeId(),
  started: false,
  timestamp: run.clock.currentTimeMillisUnsafe(),
  reply: ModelEvent.emptyReply,
  callIds: new Set()
})

/** Lets hooks change the request, or answer in the model's place. */
const prepared = Effect.fnUntraced(function* (
  run: Run,
  planned: ModelRequest,
  answer: Answer
): Effect.fn.Return<void, FailureReason | Stopped> {
  let request = planned
  let skipped: { readonly response?: string | Message.Assistant; readonly reason?: string } | undefined
  yield* Running.observe(
    run,
    "beforeModel",
    () => ({ ...Running.turnInput(run), options: request.options, view: request.messages }),
    ({ modified, reason, response, skip }) => {
      if (modified !== undefined) request = modify(request, modified)
      if (skip !== true) return "next"
      skipped = {
        ...(response === undefined ? {} : { response }),
        ...(reason === undefined ? {} : { reason })
      }
      return "stop"
    }
  )
  if (skipped !== undefined) return yield* standIn(run, answer, skipped)
  yield* Running.emit(run, {
    _tag: "ModelCallStart",
    model: request.model,
    messageCount: request.messages.length,
    options: request.options
  })
  yield* heardOut(run, request, answer)
})

/** Asks until there is something to go on with: an empty answer is retried or refused, if the options say so. */
const heardOut = Effect.fnUntraced(function* (
  run: Run,
  request: ModelRequest,
  answer: Answer
): Effect.fn.Return<void, FailureReason | Stopped> {
  const policy = run.options.emptyResponse ?? "accept"
  for (let tries = 0; ; tries++) {
    yield* Running.stoppable(run, stream(run, request, answer))
    if (policy === "accept" || !isEmpty(answer.reply)) return
    if (policy === "fail") {
      return yield* new ProviderError({
        provider: answer.reply.start?.provider ?? run.provider.id,
        reason: new ProtocolError({ kind: "empty", detail: "the answer says nothing" })
      })
    }
    const delay = emptyDelays[tries]
    if (delay === undefined) return
    yield* retracted(run, answer)
    yield* Running.stoppable(run, Effect.sleep(delay))
  }
})

/** Between the tries of `emptyResponse: "retry"`; the answer after the last is accepted. */
const emptyDelays: ReadonlyArray<Duration.Duration> = [Duration.seconds(1), Duration.seconds(5)]

const isEmpty = (reply: ModelEvent.Reply): boolean =>
  reply.content.every(
    (block) => block.type === "thinking" || (block.type === "text" && block.text.trim() === "")
  )

const modify = (
  request: ModelRequest,
  { messages, ...options }: NonNullable<Hook.Output<"beforeModel">["modified"]>
): ModelRequest => ({
  ...request,
  options: { ...request.options, ...options },
  messages: messages ?? request.messages
})

const standIn = Effect.fnUntraced(function* (
  run: Run,
  answer: Answer,
  { reason, response }: { readonly response?: string | Message.Assistant; readonly reason?: string }
): Effect.fn.Return<void, FailureReason> {
  if (response === undefined) {
    return yield* new Failure.ModelCallSkipped({ detail: reason ?? "a beforeModel hook skipped it" })
  }
  yield* begin(run, answer)
  const content = typeof response === "string" ? [Message.text(response)] : response.content
  const stopReason = typeof response === "string" ? "stop" : response.stopReason
  answer.reply = { start: undefined, content, finish: { _tag: "Finish", stopReason } }
})

const stream = (run: Run, request: ModelRequest, answer: Answer): Effect.Effect<void, ProviderError> =>
  Stream.runForEachArray(run.provider.stream(request), (events) => heard(run, answer, events)).pipe(
    Effect.flatMap(() =>
      answer.reply.finish === undefined
        ? Effect.fail(
            new ProviderError({
              provider: answer.reply.start?.provider ?? run.provider.id,
              reason: new StreamTruncated({ detail: "the answer ended before it was finished" })
            })
          )
        : Effect.void
    ),
    Effect.withSpan(`chat ${request.model}`, {
      kind: "client",
      attributes: { "gen_ai.operation.name": "chat", "gen_ai.request.model": request.model }
    })
  )

/** Takes in one array of events. Deltas of a begun answer go straight on; anything else is looked at one by one. */
const heard = (
  run: Run,
  answer: Answer,
  events: ReadonlyArray<ModelEvent.ModelEvent>
): Effect.Effect<void> => {
  if (answer.started && events.every(isPlain)) return said(run, answer, events)
  return Effect.forEach(events, (event) => one(run, answer, event), { discard: true })
}

const isPlain = (event: ModelEvent.ModelEvent): boolean => {
  switch (event._tag) {
    case "Start":
    case "Finish":
    case "Attempt":
    case "Retracted":
    case "ToolCallStart":
      return false
    default:
      return true
  }
}

const one = Effect.fnUntraced(function* (run: Run, answer: Answer, event: ModelEvent.ModelEvent) {
  if (event._tag === "Attempt") return yield* retried(run, event)
  if (event._tag === "Retracted") return yield* retracted(run, answer)
  if (!answer.started) yield* begin(run, answer)
  if (event._tag === "Start" || event._tag === "Finish") {
    answer.reply = ModelEvent.append(answer.reply, event)
    return
  }
  yield* said(run, answer, [event._tag === "ToolCallStart" ? withUniqueId(answer, event) : event])
})

const said = (
  run: Run,
  answer: Answer,
  events: ReadonlyArray<ModelEvent.ModelEvent>
): Effect.Effect<void> => {
  for (const event of events) answer.reply = ModelEvent.append(answer.reply, event)
  return run.emitter.deltas(answer.id, events)
}

const begin = (run: Run, answer: Answer): Effect.Effect<void> => {
  answer.started = true
  run.open = answer
  return Running.emit(run, { _tag: "MessageStart", messageId: answer.id, role: "assistant" })
}

type CallStart = Extract<ModelEvent.ModelEvent, { readonly _tag: "ToolCallStart" }>

const withUniqueId = (answer: Answer, event: CallStart): CallStart => {
  let id = event.id === "" ? `call_${Message.makeId()}` : event.id
  for (let n = 2; answer.callIds.has(id); n++) id = `${event.id}_${n}`
  answer.callIds.add(id)
  return id === event.id ? event : { ...event, id }
}

const retried = Effect.fnUntraced(function* (
  run: Run,
  { attempt, delay, error }: Extract<ModelEvent.ModelEvent, { readonly _tag: "Attempt" }>
) {
  yield* Running.emit(run, { _tag: "ModelCallError", error, willRetry: true })
  yield* Running.emit(run, { _tag: "ModelCallRetry", attempt, delayMs: Duration.toMillis(delay), error })
})

const retracted = Effect.fnUntraced(function* (run: Run, answer: Answer) {
  if (answer.started) yield* Running.emit(run, { _tag: "MessageRetracted", messageId: answer.id })
  answer.id = Message.makeId()
  answer.started = false
  answer.reply = ModelEvent.emptyReply
  answer.callIds.clear()
})

/** Ends the answer, whole or as far as it came. */
const close = Effect.fnUntraced(function* (
  run: Run,
  answer: Answer,
  request: ModelRequest | undefined,
  exit: Exit.Exit<void, FailureReason | Stopped>
): Effect.fn.Return<Message.Assistant> {
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
  if (message.usage !== undefined) run.usage = Usage.add(run.usage, message.usage)
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

const failed = Effect.fnUntraced(function* (run: Run, cause: Cause.Cause<FailureReason | Stopped>) {
  const error = errorOf(cause)
  if (!(error instanceof Stopped)) {
    yield* Running.emit(run, { _tag: "ModelCallError", error, willRetry: false })
  }
  return yield* Effect.failCause(cause)
})

/** What a cause comes down to: its failure, or its defect with a name. */
export const errorOf = (cause: Cause.Cause<FailureReason | Stopped>): EventError | Stopped => {
  const failure = Cause.findErrorOption(cause)
  return failure._tag === "Some" ? failure.value : Failure.defect(Cause.squash(cause))
}
