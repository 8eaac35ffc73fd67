/**
 * Asks the model once: from the request to the finished message, every piece of the answer told as it comes.
 *
 * Whatever happens, the answer that was begun is ended: with what was said of it, and why it stopped.
 */
import type * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import * as Answer from "./reply.ts"
import type { FailureReason, LimitExceeded } from "../FailureReason.ts"
import { ModelCallSkipped } from "../FailureReason.ts"
import * as Message from "../Message.ts"
import type * as ModelEvent from "../ModelEvent.ts"
import type { ModelRequest } from "../Provider.ts"
import { Protocol as ProtocolError, ProviderError } from "../ProviderError.ts"
import * as RequestView from "./request.ts"
import type { Run } from "./run.ts"
import * as Running from "./run.ts"
import { Stopped } from "./run.ts"
import * as Silence from "./silence.ts"
import { traced } from "./work.ts"

/** An answer, and how long the model took; a hook that answers in its place takes no time. */
export interface Asked {
  readonly message: Message.Assistant
  readonly durationMs: number | undefined
}

/**
 * Asks and waits for the end of the answer. The message is in the transcript when this returns, and also when it fails:
 * then with `stopReason` "error" or "aborted" and whatever had been said.
 */
export const ask = Effect.fnUntraced(function* (
  run: Run,
  planned: ModelRequest,
  onMessage: (message: Message.Assistant) => void
): Effect.fn.Return<Asked, FailureReason | Stopped> {
  const answer = Answer.make(run)
  const exit = yield* Effect.exit(fitted(run, planned, answer))
  const message = yield* Answer.close(run, answer, answer.request ?? planned, exit)
  onMessage(message)
  const durationMs = Running.elapsed(run) - answer.askedAt
  if (Exit.isFailure(exit)) return yield* failed(run, answer, exit.cause)
  if (answer.request === undefined) return { message, durationMs: undefined }
  yield* Running.emit(run, {
    _tag: "ModelCallEnd",
    messageId: message.id,
    ...(message.usage === undefined ? {} : { usage: message.usage }),
    durationMs,
    ...notesOf(answer.reply)
  })
  return { message, durationMs }
})

/** What the provider reports of the request and of the answer, besides the message. */
const notesOf = ({ finish, start }: ModelEvent.Reply) => ({
  ...(start?.adjusted === undefined ? {} : { adjusted: start.adjusted }),
  ...(finish?.unrepresented === undefined ? {} : { unrepresented: finish.unrepresented })
})

/** An answer for a turn in which the model could not even be asked. */
export const unasked = (
  run: Run,
  cause: Cause.Cause<FailureReason | Stopped>
): Effect.Effect<Message.Assistant> =>
  Effect.suspend(() => Answer.close(run, Answer.make(run), undefined, Exit.failCause(cause)))

/** Asks. A conversation that turns out to be too long is made shorter, once, by whoever can do that. */
const fitted = (
  run: Run,
  planned: ModelRequest,
  answer: Answer.Answer
): Effect.Effect<void, FailureReason | Stopped> =>
  Effect.catchIf(prepared(run, planned, answer), isTooLong, (error) =>
    Effect.gen(function* () {
      const shorter = answer.started ? undefined : yield* RequestView.shortened(run)
      if (shorter === undefined) return yield* error
      yield* Answer.retried(run, { attempt: 1, delay: Duration.zero, error })
      yield* prepared(run, shorter, answer)
    })
  )

const isTooLong = (error: FailureReason | Stopped): error is ProviderError =>
  error._tag === "ProviderError" && error.reason._tag === "ContextOverflow"

interface Skipped {
  readonly response?: string | Message.Assistant
  readonly reason?: string
}

/** Lets hooks change the request, or answer in the model's place. */
const prepared = (
  run: Run,
  planned: ModelRequest,
  answer: Answer.Answer
): Effect.Effect<void, FailureReason | Stopped> => {
  let request = planned
  let skipped: Skipped | undefined
  const asked = Running.observe(
    run,
    "beforeModel",
    () => RequestView.hookInput(run, request),
    ({ modified, reason, response, skip }) => {
      if (modified !== undefined) request = RequestView.modified(request, modified)
      if (skip !== true) return "next"
      skipped = {
        ...(response === undefined ? {} : { response }),
        ...(reason === undefined ? {} : { reason })
      }
      return "stop"
    }
  )
  return Effect.flatMapEager(asked, () => {
    if (skipped !== undefined) return standIn(run, answer, skipped)
    if (request.tools !== planned.tools) RequestView.offerOnly(run, request.tools)
    return begun(run, request, answer)
  })
}

/** Says that the model is asked, and asks. */
const begun = (
  run: Run,
  request: ModelRequest,
  answer: Answer.Answer
): Effect.Effect<void, FailureReason | Stopped> => {
  const { messages, model, options } = request
  const isFirst = answer.request === undefined
  if (isFirst) answer.askedAt = Running.elapsed(run)
  answer.request = request
  const told = isFirst
    ? Running.emit(run, { _tag: "ModelCallStart", model, messageCount: messages.length, options })
    : Effect.void
  const { emptyResponse = "accept" } = run.options
  return Effect.flatMapEager(told, () =>
    emptyResponse === "accept"
      ? Running.stoppable(run, stream(run, request, answer))
      : heardOut(run, request, answer, emptyResponse)
  )
}

/** Asks until there is something to go on with: an empty answer is retried or refused. */
const heardOut = Effect.fnUntraced(function* (
  run: Run,
  request: ModelRequest,
  answer: Answer.Answer,
  policy: "retry" | "fail"
): Effect.fn.Return<void, FailureReason | Stopped> {
  for (let tries = 0; ; tries++) {
    yield* Running.stoppable(run, stream(run, request, answer))
    if (!isEmpty(answer.reply)) return
    if (policy === "fail") {
      return yield* new ProviderError({
        provider: answer.reply.start?.provider ?? run.provider.id,
        reason: new ProtocolError({ kind: "empty", detail: "the answer says nothing" })
      })
    }
    const delay = emptyDelays[tries]
    if (delay === undefined) return
    // Thrown away, and paid for.
    Answer.count(run, answer.reply.finish?.usage)
    yield* Answer.retract(run, answer)
    yield* Answer.checkBudget(run)
    yield* Running.stoppable(run, Effect.sleep(delay))
  }
})

/** Between the tries of `emptyResponse: "retry"`; the answer after the last is accepted. */
const emptyDelays: ReadonlyArray<Duration.Duration> = [Duration.seconds(1), Duration.seconds(5)]

const isEmpty = (reply: ModelEvent.Reply): boolean =>
  reply.content.every(
    (block) => block.type === "thinking" || (block.type === "text" && block.text.trim() === "")
  )

const standIn = Effect.fnUntraced(function* (
  run: Run,
  answer: Answer.Answer,
  { reason, response }: Skipped
): Effect.fn.Return<void, FailureReason> {
  if (response === undefined) {
    return yield* new ModelCallSkipped({ detail: reason ?? "a beforeModel hook skipped it" })
  }
  yield* Answer.begin(run, answer)
  const content =
    typeof response === "string"
      ? [Message.text(response)]
      : response.content.map((block) =>
          block.type === "toolCall" ? Answer.withUniqueId(answer, block) : block
        )
  const stopReason = typeof response === "string" ? "stop" : response.stopReason
  answer.reply = { start: undefined, content, finish: { _tag: "Finish", stopReason } }
})

const stream = (
  run: Run,
  request: ModelRequest,
  answer: Answer.Answer
): Effect.Effect<void, ProviderError | LimitExceeded> =>
  Stream.runForEachArray(run.provider.stream(request), (events) => Answer.heard(run, answer, events)).pipe(
    Effect.flatMap(() =>
      answer.reply.finish === undefined
        ? Effect.fail(Silence.truncated(answer.reply.start?.provider ?? run.provider.id))
        : Effect.void
    ),
    traced(`chat ${request.model}`, {
      kind: "client",
      attributes: { "gen_ai.operation.name": "chat", "gen_ai.request.model": request.model }
    })
  )

const failed = Effect.fnUntraced(function* (
  run: Run,
  { request }: Answer.Answer,
  cause: Cause.Cause<FailureReason | Stopped>
) {
  const error = Answer.errorOf(cause)
  if (request !== undefined && !(error instanceof Stopped)) {
    yield* Running.emit(run, { _tag: "ModelCallError", error, willRetry: false })
  }
  return yield* Effect.failCause(cause)
})
