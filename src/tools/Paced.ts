/**
 * Runs long computations on texts in slices. Between two slices timers fire, other fibers run, and
 * interruptions take effect.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

/** A computation that yields where it may pause, at least every two milliseconds. */
export type Work<A> = Generator<void, A>

/** Length of a slice in milliseconds. Uses real time, because slices protect the event loop. */
const length = 8

/** A time limit that several computations share. */
export interface Budget {
  readonly time: Duration.Duration
  /** Whether the time is over. The caller then stops. */
  readonly isSpent: () => boolean
  /** Whether `isSpent` has returned `true`, so that work was left undone. */
  readonly hasStopped: () => boolean
  /** The time that is left. */
  readonly left: () => Duration.Duration
  /** Ends the time. */
  readonly spend: () => void
  /** The slice that the computations of the budget share, so that many short ones pause as one long one does. */
  readonly slice: Slice
}

/** When a computation pauses next. */
interface Slice {
  until: number
}

/** Makes a budget that starts now. Uses the `Clock` of the fiber. */
export const budget = (time: Duration.Duration): Effect.Effect<Budget> =>
  Effect.map(Clock.Clock, (clock) => {
    const nanos = () => clock.monotonicTimeNanosUnsafe()
    const end = Duration.isFinite(time) ? nanos() + Duration.toNanosUnsafe(time) : undefined
    let stopped = false
    const isSpent = () => (stopped = stopped || (end !== undefined && nanos() >= end))
    const left = () => (end === undefined ? Duration.infinity : Duration.nanos(end - nanos()))
    const spend = () => void (stopped = true)
    return { time, isSpent, hasStopped: () => stopped, left, spend, slice: { until: 0 } }
  })

/** Runs the computation in slices. */
export const run = <A>(work: Work<A>): Effect.Effect<A> =>
  Effect.suspend(() => inSlices(work, { until: performance.now() + length }))

const inSlices = <A>(work: Work<A>, slice: Slice): Effect.Effect<A> =>
  Effect.suspend(() => {
    while (performance.now() < slice.until) {
      const step = work.next()
      if (step.done === true) return Effect.succeed(step.value)
    }
    return Effect.flatMap(Effect.yieldNow, () => {
      slice.until = performance.now() + length
      return inSlices(work, slice)
    })
  })

/** Runs the effect until it ends or the budget is spent, which interrupts it and gives `None`. */
export const within = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  { left, spend }: Budget
): Effect.Effect<Option.Option<A>, E, R> =>
  Effect.suspend(() => Effect.timeoutOption(effect, left())).pipe(
    Effect.tap((ended) => (Option.isNone(ended) ? Effect.sync(spend) : Effect.void))
  )

/** Runs the computation until it ends or the budget is spent, which gives `undefined`. */
export const runWithin = <A>(work: Work<A>, budget: Budget): Effect.Effect<A | undefined> =>
  inSlices(until(work, budget.isSpent), budget.slice)

function* until<A>(work: Work<A>, isSpent: () => boolean): Work<A | undefined> {
  while (!isSpent()) {
    const step = work.next()
    if (step.done === true) return step.value
    yield
  }
  return undefined
}

/** Maximum characters of a text for which the time of `String.indexOf` is acceptable: it grows with their number. */
const short = 32

/** The index of `wanted` in `text` from `from` on, or -1, in time linear to both (Knuth, Morris and Pratt 1977). */
export function* indexOf(text: string, wanted: string, from = 0): Work<number> {
  if (wanted.length <= short) return yield* shortIndexOf(text, wanted, from)
  const borders = yield* bordersOf(wanted)
  let matched = 0
  for (let at = from; at < text.length; at++) {
    if (at % piece === 0) yield
    const code = text.charCodeAt(at)
    while (matched > 0 && wanted.charCodeAt(matched) !== code) matched = borders[matched - 1] ?? 0
    if (wanted.charCodeAt(matched) === code) matched++
    if (matched === wanted.length) return at + 1 - matched
  }
  return -1
}

function* shortIndexOf(text: string, wanted: string, from: number): Work<number> {
  for (let at = from; at + wanted.length <= text.length; at += piece) {
    const found = text.slice(at, at + piece + wanted.length - 1).indexOf(wanted)
    if (found !== -1) return at + found
    yield
  }
  return -1
}

/** For each start of the text, the length of the longest proper start that is also its end. */
function* bordersOf(text: string): Work<Int32Array> {
  const borders = new Int32Array(text.length)
  let length = 0
  for (let at = 1; at < text.length; at++) {
    if (at % piece === 0) yield
    const code = text.charCodeAt(at)
    while (length > 0 && text.charCodeAt(length) !== code) length = borders[length - 1] ?? 0
    if (text.charCodeAt(length) === code) length++
    borders[at] = length
  }
  return borders
}

/** Code units or bytes of one piece. */
const piece = 64 * 1024

/** How many of the ascending numbers are below `bound`. */
export const countBelow = (ascending: ReadonlyArray<number>, bound: number): number => {
  let [low, high] = [0, ascending.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ascending[middle] ?? bound) < bound) low = middle + 1
    else high = middle
  }
  return low
}

/**
 * The text with another one in place of what the pattern matches within a piece. No piece ends within `\r\n`. Splits and joins, because
 * `replace` leaves a rope of as many parts, which the engine makes flat in one stretch.
 */
export function* replaced(text: string, pattern: string | RegExp, by: string): Work<string> {
  const parts: Array<string> = []
  for (let at = 0; at < text.length; ) {
    const end = at + piece + (text[at + piece - 1] === "\r" ? 1 : 0)
    parts.push(text.slice(at, end).split(pattern).join(by))
    at = end
    yield
  }
  return parts.join("")
}

/** Decodes bytes. Throws as `TextDecoder` does if the decoder is fatal. */
export function* decoded(bytes: Uint8Array, decoder: TextDecoder): Work<string> {
  let text = ""
  for (let at = 0; at < bytes.length; at += piece) {
    text += decoder.decode(bytes.subarray(at, at + piece), { stream: true })
    yield
  }
  return text + decoder.decode()
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
