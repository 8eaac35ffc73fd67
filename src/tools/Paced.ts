/**
 * Runs long computations on texts in slices. Between two slices timers fire, other fibers run, and
 * interruptions take effect.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

/** A computation that yields where it may pause, at least every two milliseconds. */
export type Work<A> = Generator<void, A>

/** Length of a slice in milliseconds. Uses real time, because slices protect the event loop. */
const slice = 8

/** A time limit that several computations share. */
export interface Budget {
  readonly time: Duration.Duration
  /** Whether the time is over. The caller then stops. */
  readonly isSpent: () => boolean
  /** Whether `isSpent` has returned `true`, so that work was left undone. */
  readonly hasStopped: () => boolean
}

/** Makes a budget that starts now. Uses the `Clock` of the fiber. */
export const budget = (time: Duration.Duration): Effect.Effect<Budget> =>
  Effect.map(Clock.Clock, (clock) => {
    const nanos = () => clock.monotonicTimeNanosUnsafe()
    const end = Duration.isFinite(time) ? nanos() + Duration.toNanosUnsafe(time) : undefined
    let stopped = false
    const isSpent = () => (stopped = stopped || (end !== undefined && nanos() >= end))
    return { time, isSpent, hasStopped: () => stopped }
  })

/** Runs the computation in slices. */
export const run = <A>(work: Work<A>): Effect.Effect<A> =>
  Effect.suspend(() => {
    const until = performance.now() + slice
    while (performance.now() < until) {
      const step = work.next()
      if (step.done === true) return Effect.succeed(step.value)
    }
    return Effect.andThen(Effect.yieldNow, run(work))
  })

/** Runs the computation until it ends or the budget is spent. */
export const runWithin = (work: Work<void>, { isSpent }: Budget): Effect.Effect<void> =>
  run(until(work, isSpent))

function* until(work: Work<void>, isSpent: () => boolean): Work<void> {
  while (!isSpent() && work.next().done !== true) yield
}

/**
 * The index of `wanted` in `text` from `from` on, or -1. Searches in pieces, because the time of
 * `String.indexOf` can grow with the product of both lengths.
 */
export function* indexOf(text: string, wanted: string, from = 0): Work<number> {
  // Number of positions whose comparison with `wanted` takes one to two milliseconds.
  const places = Math.max(1, Math.floor(3_000_000 / Math.max(1, wanted.length)))
  for (let at = from; at + wanted.length <= text.length; at += places) {
    const found = text.slice(at, at + places + wanted.length - 1).indexOf(wanted)
    if (found !== -1) return at + found
    yield
  }
  return -1
}

/** Code units or bytes of one piece. */
const piece = 64 * 1024

/** Decodes bytes. Throws as `TextDecoder` does if the decoder is fatal. */
export function* decoded(bytes: Uint8Array, decoder: TextDecoder): Work<string> {
  let text = ""
  for (let at = 0; at < bytes.length; at += piece) {
    text += decoder.decode(bytes.subarray(at, at + piece), { stream: true })
    yield
  }
  return text + decoder.decode()
}

/** Converts the text to lower case. */
export function* lowered(text: string): Work<string> {
  if (text.length <= piece) return text.toLowerCase()
  let lower = ""
  for (let at = 0; at < text.length; ) {
    // A piece must not end inside a surrogate pair.
    const next = at + piece + ((text.codePointAt(at + piece - 1) ?? 0) > 0xffff ? 1 : 0)
    lower += text.slice(at, next).toLowerCase()
    at = next
    yield
  }
  return lower
}

/**
 * The lines of a text, without their ends (`\n` or `\r\n`). A line end at the end of the text does not start a
 * line.
 */
export function* lines(text: string): Generator<string, void> {
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf("\n", at)
    if (end === -1) return yield text.slice(at)
    yield text.slice(at, end > at && text[end - 1] === "\r" ? end - 1 : end)
    at = end + 1
  }
}
