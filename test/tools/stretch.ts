/**
 * How long an effect holds the thread: between two turns of the event loop no timer rings and no interruption comes
 * through.
 */
import { Effect } from "effect"

const sample = JSON.stringify(Array.from({ length: 20_000 }, (_, index) => ({ index, word: `word${index}` })))

/** Work of some 15 milliseconds on the machine for which the bounds were written. */
const work = (): number => {
  let length = 0
  for (let times = 0; times < 4; times++)
    length += JSON.parse(sample).length + sample.replace(/\d+/g, "x").length
  return length
}
const usual = 15

/** Milliseconds of this thread now as those of the machine for which the bounds were written. Times below a bound need no comparison. */
const compared = (time: number, bound = 20): number => {
  if (time < bound) return time
  const times = Array.from({ length: 5 }, () => {
    const began = used()
    work()
    return used() - began
  })
  return time / Math.max(1, Math.min(...times) / usual)
}

/** The CPU time that this thread takes, in milliseconds of the machine for which the bounds were written if it reaches the bound. */
export const costOf = <A, E, R>(effect: Effect.Effect<A, E, R>, bound = 20): Effect.Effect<number, E, R> =>
  Effect.gen(function* () {
    const began = used()
    yield* effect
    return compared(used() - began, bound)
  })

/**
 * The result, the longest stretch and the total, in milliseconds of CPU time of this thread on the machine for which the bounds were
 * written, so that other processes do not count.
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
  const total = used() - started
  return { result, stretch: compared(most), total: compared(total) }
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
