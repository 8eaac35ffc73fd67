/**
 * A provider that speaks by the clock: a piece of text every 20 ms. A late one gives the pieces that are due together, as a socket does.
 */
import { Clock, Effect, Latch, Layer, Option, Stream } from "effect"
import { type ModelEvent, Provider, Usage } from "effect-agent"
import { type Answer, interval, pieceOf } from "./Wire.ts"

export class Paced {
  /** The pieces of all answers so far. */
  sent = 0
  /** Open when the answers may begin. */
  readonly gate = Latch.makeUnsafe(false)
  private readonly fill: string
  private readonly pieces: number
  private readonly phase: () => number

  /** `phase` gives the milliseconds by which an answer begins after the gate is open. */
  constructor({ fill, pieces }: Answer, phase: () => number) {
    this.fill = "x".repeat(fill)
    this.pieces = pieces
    this.phase = phase
  }

  readonly layer = Layer.sync(Provider.Provider, () => ({
    id: "paced",
    stream: ({ model }) =>
      Stream.fromIterable<ModelEvent.ModelEvent>([
        { _tag: "Start", provider: "paced", model, protocol: "none" },
        { _tag: "TextStart", contentIndex: 0 }
      ]).pipe(Stream.concat(this.text), Stream.concat(Stream.fromIterable(end)))
  }))

  private readonly text: Stream.Stream<ModelEvent.ModelEvent> = Stream.unwrap(
    Effect.gen({ self: this }, function* () {
      yield* this.gate.await
      const begun = (yield* Clock.currentTimeMillis) + this.phase()
      return Stream.paginate(0, (at) =>
        Effect.map(this.due(at, begun), (texts) => {
          const next = at + texts.length
          return [texts, next < this.pieces ? Option.some(next) : Option.none()] as const
        })
      )
    })
  )

  /** The pieces that are due, at least one. */
  private due(at: number, begun: number): Effect.Effect<ReadonlyArray<ModelEvent.ModelEvent>> {
    return Effect.clockWith((clock) => {
      const now = clock.currentTimeMillisUnsafe()
      const until = Math.min(this.pieces, Math.floor((now - begun) / interval))
      if (until <= at)
        return Effect.andThen(Effect.sleep(begun + (at + 1) * interval - now), this.due(at, begun))
      this.sent += until - at
      return Effect.succeed(
        Array.from({ length: until - at }, (_, more) => ({
          _tag: "TextDelta" as const,
          contentIndex: 0,
          delta: pieceOf(at + more, this.fill)
        }))
      )
    })
  }
}

const end: ReadonlyArray<ModelEvent.ModelEvent> = [
  { _tag: "TextEnd", contentIndex: 0 },
  { _tag: "Finish", stopReason: "stop", usage: Usage.zero }
]
