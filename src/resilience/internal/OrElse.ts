/**
 * An answer in place of another one that fails, which tracks whether that one has published anything: from then on a second try would
 * publish something twice.
 */
import * as Stream from "effect/Stream"
import { truncated } from "../../internal/attempts.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import type { ProviderError } from "../../ProviderError.ts"

export type Answer = Stream.Stream<ModelEvent, ProviderError>

/**
 * The answer, or another one in its place when it fails. An answer that ends without `Finish` fails with `StreamTruncated`,
 * in the name of `provider` unless its `Start` named another. `spoke`: whether something of it was published and not retracted.
 */
export const orElse = (
  provider: string,
  answer: Answer,
  otherwise: (error: ProviderError, spoke: boolean) => Answer
): Answer =>
  Stream.suspend(() => {
    const line = new Line(provider)
    return answer.pipe(
      Stream.mapAccumArray(
        () => line,
        (_, events) => [line, line.pass(events)] as const
      ),
      Stream.concat(
        Stream.suspend(() => (line.finished ? Stream.empty : Stream.fail(truncated(line.provider))))
      ),
      Stream.catch((error) => otherwise(error, line.spoke))
    )
  })

/** Holds back who answers until there is something to say: another may have to. */
class Line {
  spoke = false
  finished = false
  provider: string
  private held: ReadonlyArray<ModelEvent> = []

  constructor(provider: string) {
    this.provider = provider
  }

  pass(events: ReadonlyArray<ModelEvent>): ReadonlyArray<ModelEvent> {
    return this.spoke && !events.some(movesLine) ? events : events.flatMap((event) => this.one(event))
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

/** Whether the line may be elsewhere behind it. */
const movesLine = ({ _tag }: ModelEvent): boolean =>
  _tag === "Retracted" || _tag === "Start" || _tag === "Finish"
