/**
 * Makes one model call of a turn: from the request to the finished message, which it publishes while it streams.
 *
 * On every path the transcript gets the answer, as far as it came, with the reason why it ended.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import { type FailureReason, ModelCallSkipped } from "./failureReason.ts"
import type * as Hook from "../Hook.ts"
import * as Message from "../Message.ts"
import type * as ModelEvent from "../ModelEvent.ts"
import type { Guarded, ModelRequest } from "../Provider.ts"
import { Protocol, ProviderError } from "../ProviderError.ts"
import { isOfContent } from "./recovery.ts"
import { errorOf, type Excess, Reply } from "./reply.ts"
import * as Request from "./request.ts"
import type { Run } from "./run.ts"
import * as Attempts from "./attempts.ts"
import * as Spans from "./spans.ts"
import * as EventParts from "./eventParts.ts"

/** The end of a model call: the answer, as far as it came, and how the call ended. */
export interface CallEnd {
  readonly message: Message.Assistant
  /** The time of the call in milliseconds; `undefined` where no request was sent, because a hook answered. */
  readonly durationMs: number | undefined
  readonly exit: Exit.Exit<void, FailureReason>
}

/** Makes the request by `prepare`, sends it, and waits for the end of the answer. */
export const ask = Effect.fnUntraced(function* (
  run: Run,
  prepare: Effect.Effect<ModelRequest, FailureReason>
): Effect.fn.Return<CallEnd> {
  const reply = new Reply(run)
  let exit = yield* Effect.exit(Effect.flatMap(prepare, (planned) => fitted(reply, planned)))
  if (reply.excess !== undefined && Exit.isSuccess(exit))
    exit = yield* Effect.exit(uncut(reply, reply.excess))
  if (Exit.isFailure(exit)) yield* reply.priceOfRest
  const { note } = reply.reply.start ?? {}
  // The vendor has read the request, also if its answer broke off: later requests must have the note.
  if (note !== undefined) {
    run.compactions.notes.set(reply.id, note)
    yield* run.journal?.write([{ _tag: "Noted", messageId: reply.id, note }]) ?? Effect.void
  }
  const message = reply.close(exit)
  const durationMs = reply.request && run.elapsed - reply.askedAt
  yield* run.mailbox.delivered
  if (durationMs !== undefined) announceEnd(reply, { message, durationMs, exit })
  const isBad = message.stopReason === "error" || message.stopReason === "aborted"
  return {
    message,
    durationMs,
    exit: isBad && Exit.isSuccess(exit) ? Exit.fail(Attempts.failedBy(message)) : exit
  }
})

/** Publishes `ModelCallEnd`, or `ModelCallError` for a call that failed. A call that the run stopped has neither. */
const announceEnd = (
  { excess, recovery, reply: { finish, start }, run }: Reply,
  { durationMs, exit, message }: CallEnd & { readonly durationMs: number }
): void => {
  if (Exit.isFailure(exit)) {
    if (Cause.hasInterrupts(exit.cause)) return
    return run.emit({ _tag: "ModelCallError", error: errorOf(exit.cause), willRetry: false })
  }
  const adjusted = [
    ...recovery.adjusted,
    ...(start?.adjusted ?? []),
    ...(excess === undefined ? [] : [exceeding(excess)])
  ]
  run.emit({
    _tag: "ModelCallEnd",
    messageId: message.id,
    ...(message.usage === undefined ? {} : { usage: message.usage }),
    durationMs,
    ...(adjusted.length === 0 ? {} : { adjusted }),
    ...(start && Struct.pick(start, ["responseModel", "headers", "rateLimits"])),
    ...(finish &&
      Struct.pick(finish, ["responseModel", "unrepresented", "logprobs", "serviceTier", "refusal"]))
  })
}

const exceeding = ({ limit, size }: Excess): ModelEvent.Adjustment => ({
  option: "contextWindow",
  asked: limit,
  sent: size,
  reason: "the request has more tokens than the context window in Prices: the vendor may have cut it"
})

/** Compacts and asks again where the vendor may have cut the request. Else the answer stays: the price list may be out of date. */
const uncut = Effect.fnUntraced(function* (reply: Reply, excess: Excess) {
  const { recovery, run } = reply
  const trigger = { reason: "overflow", ...excess } as const
  const shorter = recovery.isFinal ? undefined : yield* Request.shortened(run, trigger)
  if (shorter === undefined) return
  reply.retractCut(excess)
  yield* prepared(reply, shorter)
})

/**
 * Asks the model. If the provider refuses the conversation because it is or may be too long, compacts it once and asks again. If there is
 * no compaction, `recovery` leaves out more of the conversation.
 */
const fitted = (reply: Reply, planned: ModelRequest): Effect.Effect<void, FailureReason> =>
  Effect.catchTag(prepared(reply, planned), "ProviderError", (error) =>
    Effect.gen(function* () {
      const { reason } = error
      const isOverflow = reason._tag === "ContextOverflow"
      if (reply.hasSpoken || !(isOverflow || isOfContent(reason))) return yield* error
      const limit = isOverflow && reason.limit !== undefined ? { limit: reason.limit } : {}
      const trigger = isOverflow
        ? ({ reason: "overflow", ...limit } as const)
        : ({ reason: "refusal" } as const)
      const shorter = yield* Request.shortened(reply.run, trigger)
      const { recovery, run } = reply
      recovery.isFinal = true
      if (shorter === undefined && !recovery.after(error, run.messages)) return yield* error
      reply.again({ attempt: 1, delay: Duration.zero, error })
      if (shorter === undefined) return yield* answered(reply, recovery.asked ?? planned)
      yield* Effect.catchTag(prepared(reply, shorter), "ProviderError", (other) =>
        Effect.fail(!isOverflow && isOfContent(other.reason) ? error : other)
      )
    })
  )

/** Asks the `beforeModel` hooks and the input guard, which may change the request or answer in place of the model, then sends it. */
const prepared = Effect.fnUntraced(function* (reply: Reply, planned: ModelRequest) {
  const { run } = reply
  let request = planned
  let skipped: Hook.Output<"beforeModel"> | undefined
  yield* run.ask(
    "beforeModel",
    () => ({ ...run.turnInput, ...request, messages: run.messages, view: request.messages }),
    (output) => {
      if (output.modified !== undefined) request = Request.modified(request, output.modified)
      if (output.skip === true) skipped = output
      return skipped === undefined ? "next" : "stop"
    }
  )
  if (skipped !== undefined) return yield* standIn(reply, skipped)
  if (request !== planned) Request.offerOnly(run, request, planned)
  const { input } = run.guard
  const words = input && (yield* run.attempt(input(askedOf(run, request))))
  yield* words === undefined ? answered(reply, request) : standIn(reply, { skip: true, response: words })
})

const askedOf = ({ id, turn }: Run, request: ModelRequest): Guarded => ({ runId: id, turn, request })

/** Makes the response of a hook or a guard the answer. */
const standIn = (reply: Reply, { reason, response }: Hook.Output<"beforeModel">) => {
  if (response === undefined) {
    return Effect.fail(new ModelCallSkipped({ detail: reason ?? "a beforeModel hook skipped it" }))
  }
  reply.begin()
  const { content, stopReason } = typeof response === "string" ? Message.assistant(response) : response
  reply.reply = {
    start: undefined,
    content: content.map((block) =>
      block.type === "toolCall" ? Message.withUniqueId(reply.callIds, block) : block
    ),
    finish: { _tag: "Finish", stopReason }
  }
  return Effect.void
}

/** Publishes the call and streams its answer. The option `emptyResponse` decides about an empty answer. */
const answered = Effect.fnUntraced(function* (reply: Reply, request: ModelRequest) {
  const { run } = reply
  const { messages, model, options } = request
  if (reply.request === undefined) {
    reply.askedAt = run.elapsed
    run.emit({
      _tag: "ModelCallStart",
      model,
      messageCount: messages.length,
      options: EventParts.ofCall(options)
    })
    yield* run.mailbox.delivered
  }
  const { emptyResponse } = run.options
  yield* stream(reply, request)
  if (lacksCalls(reply.reply)) {
    reply.announceRetry({ attempt: 1, delay: Duration.zero, error: faulty(reply, "noToolCalls") })
    yield* again(reply, request)
  }
  for (const delay of emptyResponse === "retry" ? emptyDelays : []) {
    // Another try is of no use for an answer that a limit or a policy ended.
    if (!isEmpty(reply.reply) || reply.reply.finish?.stopReason !== "stop") break
    yield* again(reply, request, delay)
  }
  if (lacksCalls(reply.reply)) return yield* faulty(reply, "noToolCalls")
  const { unanswered } = reply.reply.finish ?? {}
  if (unanswered !== undefined) return yield* faulty(reply, "unanswered", unanswered.join(", "))
  if (emptyResponse === "fail" && isEmpty(reply.reply)) return yield* faulty(reply, "empty")
})

/** Counts the usage of an answer, retracts the answer, and asks once more. */
const again = Effect.fnUntraced(function* (reply: Reply, request: ModelRequest, delay?: Duration.Duration) {
  const { run } = reply
  run.spent.add(reply.reply.finish?.usage)
  reply.retract()
  const spent = run.spent.exceeded
  if (spent !== undefined) return yield* spent
  if (delay !== undefined) yield* run.attempt(Effect.sleep(delay))
  yield* stream(reply, request)
})

/** Whether an answer ends with the stop reason of tool calls and has no tool call. A second try mostly helps. */
const lacksCalls = ({ content, finish }: ModelEvent.Reply): boolean =>
  finish?.lacksCalls === true && !content.some((block) => block?.type === "hostedTool")

const faulty = ({ provider }: Reply, kind: keyof typeof faults, what = ""): ProviderError =>
  new ProviderError({ provider, reason: new Protocol({ kind, detail: `${faults[kind]}${what}` }) })

const faults = {
  empty: "the answer says nothing",
  noToolCalls: "the answer ends for its tool calls, and has none",
  unanswered:
    "the answer calls a tool of the vendor that the application has to run, and nothing here runs it: "
} as const

/** The delays before the retries of `emptyResponse: "retry"`. The answer to the last one is accepted. */
const emptyDelays: ReadonlyArray<Duration.Duration> = [Duration.seconds(1), Duration.seconds(5)]

const isEmpty = (reply: ModelEvent.Reply): boolean =>
  reply.content.every((block) =>
    block.type === "text" ? block.text.trim() === "" : block.type !== "toolCall" && block.type !== "media"
  )

/** Streams an answer. If the provider refuses a part of the conversation, asks again without that part. */
const stream = (reply: Reply, request: ModelRequest): Effect.Effect<void, FailureReason> =>
  Effect.suspend(() => {
    const { recovery, run } = reply
    const sent = recovery.request(request, run.messages)
    const { messages } = sent
    Request.announceView(run, { messages, dropped: request.messages.length - messages.length }, "repair")
    return Effect.catchTag(streamed(reply, sent), "ProviderError", (error) => {
      const shown = recovery.error(error)
      if (reply.hasSpoken || !recovery.after(error, run.messages)) return Effect.fail(shown)
      reply.again({ attempt: 1, delay: Duration.zero, error })
      return stream(reply, request)
    })
  })

const streamed = (reply: Reply, request: ModelRequest) => {
  const { run } = reply
  const { notes } = run.compactions
  reply.send(request)
  const answer = run.provider.stream(notes.size === 0 ? request : { ...request, notes })
  const released = run.guard.output?.(answer, askedOf(run, request)) ?? answer
  const streaming = Effect.flatMap(
    Stream.runForEachArray(released, (events) => reply.receive(events)),
    () => (reply.reply.finish === undefined ? Effect.fail(Attempts.truncated(reply.provider)) : reply.settle)
  )
  // A limit on the cost needs the price before the answer streams, to estimate it.
  const priced = run.spent.isBounded ? Effect.andThen(reply.findPrice, streaming) : streaming
  return Spans.modelCall(run, request, reply, run.attempt(priced))
}
