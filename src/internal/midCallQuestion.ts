/**
 * Questions to a person that a tool asks in the middle of its call.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import type { Batch } from "./batch.ts"
import { makeRequestId, requestBase } from "./consent.ts"
import type { ToolCall } from "../Message.ts"
import type { Question } from "./openTurn.ts"
import type * as Tool from "../Tool.ts"

/** Asks a person in the middle of a call. The call cannot wait beyond the end of the run: where the policy defers, the answer is none. */
export const ask = Effect.fnUntraced(function* (
  batch: Batch,
  call: ToolCall,
  { question, schema }: Tool.Question
): Effect.fn.Return<Option.Option<Schema.Json>> {
  const { requests, run } = batch
  const { policy, requests: ofAgent } = run.waiting
  const { asked } = policy
  if (asked === "deny" || asked === "defer" || (asked === "wait" && ofAgent === undefined))
    return Option.none()
  const questionId = makeRequestId("qst")
  const request: Question = { ...requestBase(batch, call.id, undefined), questionId, question, schema }
  const { path: _path, runId: _runId, ...fields } = request
  const open = requests.openQuestion(request)
  run.emit({ _tag: "QuestionAsked", ...fields })
  yield* run.delivered
  const person =
    asked === "wait"
      ? Effect.never
      : Effect.flatMap(asked.answer(request), (given) => requests.answerQuestion(questionId, given))
  const answered = yield* Effect.raceFirst(Deferred.await(open.answered), person).pipe(
    Effect.option,
    Effect.timeoutOption(policy.expiresAfter ?? Infinity),
    run.waiting.stopwatchOf(call.id).held,
    Effect.ensuring(Effect.sync(() => requests.withdraw(questionId)))
  )
  const answer = Option.flatten(answered)
  if (Option.isSome(answer)) {
    run.emit({ _tag: "QuestionAnswered", questionId, toolCallId: call.id, ...answer.value })
    yield* run.delivered
  }
  return Option.map(
    Option.filter(answer, ({ declined }) => declined !== true),
    ({ answer }) => answer
  )
})
