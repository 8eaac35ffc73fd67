/**
 * Passes an answer through guards before it is published.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { GuardrailTripped } from "../../internal/failureReason.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import type { Guarded } from "../../Provider.ts"
import * as Check from "./Check.ts"
import { HoldBack } from "./HoldBack.ts"

/** A guard put other words in the place of the answer. */
class Replaced {
  readonly _tag = "Replaced"
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** Returns the events of an answer that the guards have passed. Reads on when they have. */
export const guarded = <E>(
  guards: Check.Guards,
  answer: Stream.Stream<ModelEvent, E>,
  asked: Guarded
): Stream.Stream<ModelEvent, E | GuardrailTripped> =>
  Stream.suspend(() => {
    const held = new HoldBack({ holdBack: guards.holdBack, isWhole: guards.output.length > 0 })
    return answer.pipe(
      Stream.mapAccumArrayEffect(
        () => held,
        (held, events) =>
          Effect.map(release(guards, held, events, asked), (released) => [held, released] as const)
      ),
      Stream.catch((error): Stream.Stream<ModelEvent, E | GuardrailTripped> => {
        if (error instanceof Replaced) return Stream.fromIterable(held.replacedBy(error.text))
        // The answer is paid for, although the run does not have it.
        return error instanceof GuardrailTripped
          ? Stream.concat(Stream.fromIterable(held.bill), Stream.fail(error))
          : Stream.fail(error)
      })
    )
  })

const release = Effect.fnUntraced(function* (
  guards: Check.Guards,
  held: HoldBack,
  events: ReadonlyArray<ModelEvent>,
  { runId, turn }: Guarded
): Effect.fn.Return<ReadonlyArray<ModelEvent>, GuardrailTripped | Replaced> {
  held.add(events)
  const due = held.due
  const texts = due.map(({ kind, passed, text }) => ({ runId, turn, kind, text, passed }))
  const answer = held.isFinished ? { runId, turn, ...held.answer } : undefined
  if (texts.length > 0 || answer !== undefined) {
    const words = yield* Check.output(guards, texts, answer)
    if (words !== undefined) return yield* Effect.fail(new Replaced(words))
    for (const part of due) part.passed = part.text.length
  }
  return held.release()
})
