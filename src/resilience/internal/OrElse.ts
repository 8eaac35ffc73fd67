/**
 * Answers with a second stream when an answer fails. It tracks whether the first one has published anything: after that, a second answer
 * would repeat it.
 */
import * as Stream from "effect/Stream"
import { truncated } from "../../internal/attempts.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import type { ProviderError } from "../../ProviderError.ts"

export type Answer = Stream.Stream<ModelEvent, ProviderError>

/**
 * Streams an answer; when it fails, streams that of `otherwise` instead. An answer that ends without `Finish` fails with `StreamTruncated`,
 * by the provider in its `Start`, else by `provider`. `otherwise` gets as `spoke` whether some of the answer was published and not
 * retracted.
 */
export const orElse = (
  provider: string,
  answer: Answer,
  otherwise: (error: ProviderError, spoke: boolean) => Answer
): Answer =>
  Stream.suspend(() => {
    const holdBack = new HoldBack(provider)
    return answer.pipe(
      Stream.mapAccumArray(
        () => holdBack,
        (_, events) => [holdBack, holdBack.pass(events)] as const
      ),
      Stream.concat(
        Stream.suspend(() => (holdBack.finished ? Stream.empty : Stream.fail(truncated(holdBack.provider))))
      ),
      Stream.catch((error) => otherwise(error, holdBack.spoke))
    )
  })

/** Holds back the `Start` of an answer until its first block, since another provider may have to answer instead. */
class HoldBack {
  spoke = false
  finished = false
  provider: string
  private held: ReadonlyArray<ModelEvent> = []

  constructor(provider: string) {
    this.provider = provider
  }

  pass(events: ReadonlyArray<ModelEvent>): ReadonlyArray<ModelEvent> {
    return this.spoke && !events.some(changesHoldBack) ? events : events.flatMap((event) => this.one(event))
  }

  private one(event: ModelEvent): ReadonlyArray<ModelEvent> {
    switch (event._tag) {
      case "Start":
        this.provider = event.provider
        if (this.spoke) return [event]
        this.held = [event]
        return []
      case "Attempt":
        return [event]
      case "Retracted":
        this.spoke = false
        this.finished = false
        this.held = []
        return [event]
      case "Finish":
        this.finished = true
        return this.say(event)
      default:
        return this.say(event)
    }
  }

  private say(event: ModelEvent): ReadonlyArray<ModelEvent> {
    const { held } = this
    this.spoke = true
    this.held = []
    return [...held, event]
  }
}

/** Whether an event may begin or end the hold-back: after any other event `pass` returns all events at once. */
const changesHoldBack = ({ _tag }: ModelEvent): boolean =>
  _tag === "Retracted" || _tag === "Start" || _tag === "Finish"
