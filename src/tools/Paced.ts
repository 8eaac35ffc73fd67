/**
 * Long work on a text, done in slices: between two of them timers ring, other fibers go on, and an interruption comes
 * through.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

/** Work that yields wherever it may pause: at least once in each millisecond or two. */
export type Work<A> = Generator<void, A>

/** How long work goes on before others get their turn. In milliseconds of real time, as the event loop knows no other. */
const slice = 8

/** A time limit for several pieces of work together. */
export interface Budget {
  readonly time: Duration.Duration
  /** Whether the time has passed, for who stops then. */
  readonly isSpent: () => boolean
  /** Whether `isSpent` has said yes: work was left undone. */
  readonly hasStopped: () => boolean
}

/** A budget that begins now, by the clock of the fiber. */
export const budget = (time: Duration.Duration): Effect.Effect<Budget> =>
  Effect.map(Clock.Clock, (clock) => {
    const nanos = () => clock.monotonicTimeNanosUnsafe()
    const end = Duration.isFinite(time) ? nanos() + Duration.toNanosUnsafe(time) : undefined
    let stopped = false
    const isSpent = () => (stopped = stopped || (end !== undefined && nanos() >= end))
    return { time, isSpent, hasStopped: () => stopped }
  })

/** Does the work, in slices. */
export const run = <A>(work: Work<A>): Effect.Effect<A> =>
  Effect.suspend(() => {
    const until = performance.now() + slice
    while (performance.now() < until) {
      const step = work.next()
      if (step.done === true) return Effect.succeed(step.value)
    }
    return Effect.andThen(Effect.yieldNow, run(work))
  })

/** Does the work, or as much of it as the budget allows. */
export const runWithin = (work: Work<void>, { isSpent }: Budget): Effect.Effect<void> =>
  run(until(work, isSpent))

function* until(work: Work<void>, isSpent: () => boolean): Work<void> {
  while (!isSpent() && work.next().done !== true) yield
}

/** Where `wanted` stands in `text` from `from` on, or -1. The engine alone may take the product of both lengths. */
export function* indexOf(text: string, wanted: string, from = 0): Work<number> {
  // So many places at a time that comparing `wanted` at each of them takes a millisecond or two.
  const places = Math.max(1, Math.floor(3_000_000 / Math.max(1, wanted.length)))
  for (let at = from; at + wanted.length <= text.length; at += places) {
    const found = text.slice(at, at + places + wanted.length - 1).indexOf(wanted)
    if (found !== -1) return at + found
    yield
  }
  return -1
}

/** Code units that are read, changed or compared at once. */
const piece = 64 * 1024

/** The text of bytes. Fails as `TextDecoder` does, if it is a fatal one. */
export function* decoded(bytes: Uint8Array, decoder: TextDecoder): Work<string> {
  let text = ""
  for (let at = 0; at < bytes.length; at += piece) {
    text += decoder.decode(bytes.subarray(at, at + piece), { stream: true })
    yield
  }
  return text + decoder.decode()
}

/** The text in lower case. */
export function* lowered(text: string): Work<string> {
  if (text.length <= piece) return text.toLowerCase()
  let lower = ""
  for (let at = 0; at < text.length; ) {
    // Not in the middle of a surrogate pair.
    const next = at + piece + ((text.codePointAt(at + piece - 1) ?? 0) > 0xffff ? 1 : 0)
    lower += text.slice(at, next).toLowerCase()
    at = next
    yield
  }
  return lower
}

/** The lines of a text, without their ends (`\n` or `\r\n`); an end at the very end begins no line. */
export function* lines(text: string): Generator<string, void> {
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf("\n", at)
    if (end === -1) return yield text.slice(at)
    yield text.slice(at, end > at && text[end - 1] === "\r" ? end - 1 : end)
    at = end + 1
  }
}
