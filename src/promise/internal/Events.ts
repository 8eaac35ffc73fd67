/**
 * A stream for `for await`. One fiber reads the stream and hands over whole arrays, so that an element of an array costs a settled
 * promise, not a fiber.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

/** Hands an array to the reader, and suspends until the reader has read it and wants more. */
export type Deliver<A> = (batch: ReadonlyArray<A>) => Effect.Effect<void>

/** Runs the delivery. Resolves after its orderly end, which `signal` requests. Never rejects. */
export type Run<A> = (deliver: Deliver<A>, signal: AbortSignal) => Promise<Exit.Exit<void, unknown>>

interface Waiting<A> {
  readonly resolve: (result: IteratorResult<A, undefined>) => void
  readonly reject: (error: unknown) => void
}

/**
 * Returns the elements that `run` delivers, once for each iteration, from the first `next` on.
 *
 * A reader that leaves early interrupts the delivery and waits for its end. The signal does so too, and fails the iteration with its
 * reason. `failed` gets any other failure before the reader does.
 */
export const iterable = <A>(
  run: Run<A>,
  signal: AbortSignal | undefined,
  failed: (error: unknown) => void
): AsyncIterable<A> => ({
  [Symbol.asyncIterator]: () => new Reading(run, signal, failed)
})

const done = { done: true, value: undefined } as const

class Reading<A> implements AsyncIterator<A, undefined> {
  private readonly run: Run<A>
  private readonly signal: AbortSignal | undefined
  private readonly failed: (error: unknown) => void
  private readonly stop = new AbortController()
  /** Settles after the end of the delivery. */
  private running: Promise<void> | undefined
  private batch: ReadonlyArray<A> = []
  private at = 0
  /** Oldest first; more than one only where a reader calls `next` before the last one has resolved. */
  private readonly waiting: Array<Waiting<A>> = []
  private wakeDeliverer: (() => void) | undefined
  private ended: Exit.Exit<void, unknown> | undefined
  private left = false

  constructor(run: Run<A>, signal: AbortSignal | undefined, failed: (error: unknown) => void) {
    this.run = run
    this.signal = signal
    this.failed = failed
  }

  next(): Promise<IteratorResult<A, undefined>> {
    if (this.left) return Promise.resolve(done)
    if (this.running === undefined) this.running = this.begin()
    const ready = this.take()
    if (ready !== undefined) return Promise.resolve(ready)
    if (this.ended !== undefined) return this.end(this.ended)
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject })
      const wake = this.wakeDeliverer
      this.wakeDeliverer = undefined
      wake?.()
    })
  }

  async return(): Promise<IteratorResult<A, undefined>> {
    this.left = true
    this.batch = []
    this.stop.abort()
    await this.running
    return done
  }

  async throw(error: unknown): Promise<IteratorResult<A, undefined>> {
    await this.return()
    return Promise.reject(error)
  }

  /** Delivers until the end, and then settles the calls of `next` that wait. */
  private async begin(): Promise<void> {
    if (this.signal?.aborted === true) {
      this.ended = Exit.interrupt()
      return
    }
    this.signal?.addEventListener("abort", this.onAbort, { once: true })
    const exit = await this.run(this.deliver, this.stop.signal)
    this.signal?.removeEventListener("abort", this.onAbort)
    this.ended = exit
    const [first, ...others] = this.waiting.splice(0)
    if (first !== undefined) void this.end(exit).then(first.resolve, first.reject)
    for (const { resolve } of others) resolve(done)
  }

  private readonly onAbort = (): void => {
    this.batch = []
    this.stop.abort()
  }

  private readonly deliver: Deliver<A> = (batch) =>
    Effect.suspend(() => {
      this.batch = batch
      this.at = 0
      while (this.waiting.length > 0) {
        const ready = this.take()
        if (ready === undefined) break
        this.waiting.shift()?.resolve(ready)
      }
      return this.waiting.length > 0 ? Effect.void : this.wanted
    })

  /** Waits until the reader has read all and calls `next` again. */
  private readonly wanted = Effect.callback<void>((resume) => {
    this.wakeDeliverer = () => resume(Effect.void)
  })

  private take(): IteratorResult<A, undefined> | undefined {
    const value = this.batch[this.at]
    if (value === undefined) return undefined
    this.at++
    return { done: false, value }
  }

  /** Resolves or rejects once; all later calls of `next` are done. */
  private end(exit: Exit.Exit<void, unknown>): Promise<IteratorResult<A, undefined>> {
    this.left = true
    if (Exit.isSuccess(exit)) return Promise.resolve(done)
    if (!Cause.hasInterruptsOnly(exit.cause)) {
      const error = Cause.squash(exit.cause)
      this.failed(error)
      return Promise.reject(error)
    }
    return this.signal?.aborted === true ? Promise.reject(this.signal.reason) : Promise.resolve(done)
  }
}
