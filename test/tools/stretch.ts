/**
 * How long an effect holds the thread: between two turns of the event loop no timer rings and no interruption comes
 * through.
 */
import { Effect } from "effect"

/**
 * The result, the longest stretch and the total, in milliseconds of CPU time of this thread, so that other processes do
 * not count.
 */
export const longest = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  let [isOver, most, last] = [false, 0, used()]
  const turn = () => {
    const now = used()
    most = Math.max(most, now - last)
    last = now
    if (!isOver) setImmediate(turn)
  }
  yield* Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))
  const started = used()
  last = started
  setImmediate(turn)
  const result = yield* Effect.ensuring(
    effect,
    Effect.sync(() => (isOver = true))
  )
  most = Math.max(most, used() - last)
  return { result, stretch: most, total: used() - started }
})

/**
 * Options of a test of a stretch. Other processes slow the caches and the memory down, and with them this thread: a stretch that is too
 * long is so three times.
 */
export const tries = { retry: 2 }

const used = (): number => {
  const { system, user } = process.threadCpuUsage()
  return (system + user) / 1_000
}

/** The work without its pauses. */
export const whole = <A>(work: Generator<unknown, A>): A => {
  while (true) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}
