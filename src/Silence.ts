/**
 * Whether an answer has said anything yet: the line behind which asking again would show something twice.
 */
import * as Stream from "effect/Stream"
import type { ModelEvent } from "./ModelEvent.ts"
import type { ProviderError } from "./ProviderError.ts"

export type Answer = Stream.Stream<ModelEvent, ProviderError>

/** The answer, or what stands for it when it fails. `spoke`: whether something of it has been said and still stands. */
export const orElse = (answer: Answer, otherwise: (error: ProviderError, spoke: boolean) => Answer): Answer =>
  Stream.suspend(() => {
    const line = new Line()
    return answer.pipe(
      Stream.mapAccumArray(
        () => line,
        (_, events) => [line, line.pass(events)] as const
      ),
      Stream.concat(Stream.suspend(() => Stream.fromIterable(line.release()))),
      Stream.catch((error) => otherwise(error, line.spoke))
    )
  })

/** Holds back who answers until there is something to say: another may have to. */
class Line {
  spoke = false
  private held: ReadonlyArray<ModelEvent> = []

  pass(events: ReadonlyArray<ModelEvent>): ReadonlyArray<ModelEvent> {
    return this.spoke && !events.some(movesLine) ? events : events.flatMap((event) => this.one(event))
  }

  release(): ReadonlyArray<ModelEvent> {
    const { held } = this
    this.held = []
    return held
  }

  private one(event: ModelEvent): ReadonlyArray<ModelEvent> {
    switch (event._tag) {
      case "Start":
        if (this.spoke) return [event]
        this.held = [event]
        return []
      case "Attempt":
        return [event]
      case "Retracted":
        this.spoke = false
        this.held = []
        return [event]
      default:
        this.spoke = true
        return [...this.release(), event]
    }
  }
}

/** Whether the line may be elsewhere behind it. */
const movesLine = (event: ModelEvent): boolean => event._tag === "Retracted" || event._tag === "Start"
