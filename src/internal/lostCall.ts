/**
 * A call that began in a process that ended, and whose end is not known: it must not run again by itself.
 */
import * as Effect from "effect/Effect"
import type { Batch } from "./batch.ts"
import * as Consent from "./consent.ts"
import type { ToolCall } from "../Message.ts"
import * as ToolOutcome from "./toolOutcome.ts"
import * as Resumption from "./resumption.ts"

/** A call about which the run asks a person. */
export interface Lost {
  readonly _tag: "Lost"
  readonly call: ToolCall
}

/** The call, if a person has answered or is to answer, else its outcome. */
export const look = ({ lost, run }: Batch, call: ToolCall): Lost | ToolOutcome.Outcome => {
  const { hasPerson, policy } = run.waiting
  const isAsked =
    policy.unknown === "ask" &&
    hasPerson &&
    (run.toolOf(call)?.effect ?? "once") === "once" &&
    run.output?.isCall(call) !== true
  return isAsked || lost.get(call)?.answer !== undefined ? { _tag: "Lost", call } : ToolOutcome.unknown(call)
}

/** Asks a person about the call, unless one has answered. */
export const ask = Effect.fnUntraced(function* (
  batch: Batch,
  call: ToolCall
): Effect.fn.Return<{ readonly _tag: "Again" } | ToolOutcome.Outcome | Consent.NotNow> {
  const known = batch.lost.get(call)
  const params = batch.approvals.get(call)?.request.params ?? call.params ?? {}
  const asked =
    known?.answer === undefined
      ? yield* Consent.putQuestion(
          batch,
          call,
          Resumption.questionOf(call, params),
          ToolOutcome.unknown(call)
        )
      : ({ ...known, _tag: "Answered", answer: known.answer } as const)
  if (asked._tag !== "Answered") return asked._tag === "Outcome" ? ToolOutcome.unknown(call) : asked
  yield* Consent.showAnswer(batch, asked.request, asked.answer)
  return Resumption.outcomeOf(call, asked.answer) ?? { _tag: "Again" }
})
