/**
 * What the model, the tools and the hooks of one round share: its dice, the moments it passes, and what it holds.
 */
import { Deferred, Effect, Latch } from "effect"
import { Random } from "./Random.ts"

export class Ground {
  readonly random: Random
  /** From now on nothing goes wrong any more. */
  calm = false
  acquired = 0
  released = 0
  /** Opens when the round is over: until then a deaf tool stays deaf. */
  readonly over = Latch.makeUnsafe(false)
  private moments = 0
  private awaited: { readonly moment: number; readonly reached: Deferred.Deferred<void> } | undefined

  constructor(seed: number) {
    this.random = new Random(seed)
  }

  /** A moment passes, and sometimes time with it. */
  readonly moment: Effect.Effect<void> = Effect.suspend(() => {
    const { awaited } = this
    if (awaited !== undefined && ++this.moments >= awaited.moment) {
      this.awaited = undefined
      return Effect.andThen(Deferred.succeed(awaited.reached, undefined), this.while)
    }
    return this.while
  })

  private readonly while: Effect.Effect<void> = Effect.suspend(() => {
    if (this.calm || !this.random.once(3)) return Effect.void
    return this.random.once(4) ? Effect.sleep(this.random.upTo(1)) : Effect.yieldNow
  })

  /** A point in time that nobody has planned for: after some turns of the scheduler, some time, or some moments. */
  readonly somewhere: Effect.Effect<unknown> = Effect.suspend(() => {
    switch (this.random.upTo(2)) {
      case 0:
        return Effect.repeat(Effect.yieldNow, { times: this.random.upTo(100) })
      case 1:
        return Effect.sleep(this.random.upTo(3))
      default:
        this.moments = 0
        this.awaited = { moment: 1 + this.random.upTo(25), reached: Deferred.makeUnsafe<void>() }
        return Effect.timeoutOption(Deferred.await(this.awaited.reached), 10 + this.random.upTo(20))
    }
  })

  /** Something that has to be given back; giving it back may take a moment. */
  readonly resource = Effect.acquireRelease(
    Effect.sync(() => {
      this.acquired++
    }),
    () =>
      Effect.andThen(
        this.while,
        Effect.sync(() => {
          this.released++
        })
      )
  )
}
