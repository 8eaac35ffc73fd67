/**
 * The gate of a worker: the most runs that work at a time. A run that waits for a person, or is paused, leaves its place to another one.
 */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"

export class Gate {
  private readonly places: Semaphore.Semaphore
  private free: number

  constructor(size: number) {
    this.places = Semaphore.makeUnsafe(size)
    this.free = size
  }

  get isFull(): boolean {
    return this.free <= 0
  }

  /** Takes a place, in the order of arrival. */
  private readonly take = Effect.suspend(() => {
    this.free--
    return Effect.onInterrupt(this.places.take(1), () => Effect.sync(() => void this.free++))
  })

  private readonly give = Effect.suspend(() => {
    this.free++
    return this.places.release(1)
  })

  /** Runs an effect that has a place while it works. `isWaiting` is asked four times a second. */
  readonly pass = <A, E, R>(effect: Effect.Effect<A, E, R>, isWaiting: Effect.Effect<boolean>) =>
    Effect.suspend(() => {
      let has = false
      const enter = Effect.uninterruptibleMask((restore) =>
        Effect.andThen(
          restore(this.take),
          Effect.sync(() => void (has = true))
        )
      )
      const leave = Effect.suspend(() => {
        if (!has) return Effect.void
        has = false
        return this.give
      })
      const attend = Effect.forever(
        Effect.flatMap(Effect.delay(isWaiting, "250 millis"), (waits) =>
          waits === has ? (waits ? leave : enter) : Effect.void
        )
      )
      return Effect.ensuring(Effect.andThen(enter, Effect.raceFirst(effect, attend)), leave)
    })
}
