/**
 * Runs that are stopped at random moments, in every way a run can be stopped. Whatever the moment: the transcript is
 * valid, the events are balanced, nothing is held, lost or left behind, and the next prompt works.
 */
import { Effect, Logger, Scope } from "effect"
import type { Chaos, Options, Outcome } from "./Chaos.ts"
import type { Sample } from "./Heap.ts"
import * as Heap from "./Heap.ts"
import type { Round } from "./round.ts"
import { round } from "./round.ts"

export const cancel: Chaos = {
  count: 10_000,
  run: (options) => Effect.scoped(run(options)).pipe(Effect.provide(Logger.layer([])))
}

/** The heap is looked at so many times, and not more often than every hundred rounds. */
const samples = 20
/** Rounds side by side: each disturbs the others' timing. */
const concurrency = 16
/** Bytes per round the heap may grow by: less than one message. */
const flat = 100
/** Before so many rounds the heap tells nothing. */
export const enough = 5_000
/** Milliseconds from a stop to the end of the run. */
const slowest = 1_000

const run = Effect.fnUntraced(function* ({
  count,
  say,
  seed
}: Options): Effect.fn.Return<Outcome, never, Scope.Scope> {
  const stray = yield* strayFailures
  const tally = new Tally()
  const heap: Array<Sample> = []
  const size = Math.max(100, Math.ceil(count / samples))
  for (let from = 0; from < count; from += size) {
    // One after another, so that one of them alone is `--seed N --count 1`.
    const seeds = Array.from({ length: Math.min(size, count - from) }, (_, index) => seed + from + index)
    yield* Effect.forEach(seeds, (each) => Effect.map(round(each), tally.add), { concurrency, discard: true })
    heap.push(yield* Heap.sample(from + seeds.length))
    say(`${from + seeds.length} rounds, heap ${megabytes(heap.at(-1)?.bytes ?? 0)}`)
  }
  return judge(tally, heap, stray)
})

/** What came of the rounds, in numbers: the heap is being watched, so no round is kept. */
class Tally {
  stopped = 0
  readonly ways = new Map<string, number>()
  readonly ends = new Map<string, number>()
  readonly latencies: Array<number> = []
  readonly violations: Array<string> = []

  readonly add = ({ latency, status, stopped, violations, way }: Round): void => {
    this.stopped += stopped ? 1 : 0
    this.ways.set(way, (this.ways.get(way) ?? 0) + 1)
    this.ends.set(status, (this.ends.get(status) ?? 0) + 1)
    if (latency !== undefined) this.latencies.push(latency)
    this.violations.push(...violations)
  }
}

/** Failures nobody handled, while the scope lasts. */
export const strayFailures = Effect.gen(function* () {
  const found: Array<string> = []
  const note = (failure: unknown) => {
    found.push(`unhandled: ${String(failure)}`)
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("unhandledRejection", note).on("uncaughtException", note)),
    () => Effect.sync(() => process.off("unhandledRejection", note).off("uncaughtException", note))
  )
  return found
})

const judge = (tally: Tally, heap: ReadonlyArray<Sample>, stray: ReadonlyArray<string>): Outcome => {
  const latencies = tally.latencies.sort((left, right) => left - right)
  const max = latencies.at(-1) ?? 0
  const slope = Heap.slope(heap)
  const last = heap.at(-1) ?? { rounds: 0, bytes: 0 }
  const grows = last.rounds >= enough && slope > flat
  return {
    figures: {
      stopped: `${tally.stopped} of ${last.rounds}`,
      ways: listed(tally.ways),
      ends: listed(tally.ends),
      "stop to end": `p50 ${millis(at(latencies, 0.5))}, p99 ${millis(at(latencies, 0.99))}, max ${millis(max)}`,
      heap: `${megabytes(heap[0]?.bytes ?? 0)} first, ${megabytes(last.bytes)} last, ${slope.toFixed(1)} bytes per round`,
      unhandled: stray.length
    },
    violations: [
      ...tally.violations,
      ...stray,
      ...(max > slowest ? [`a stop took ${millis(max)}`] : []),
      ...(grows ? [`the heap grows by ${slope.toFixed(1)} bytes per round`] : [])
    ]
  }
}

export const listed = (counts: ReadonlyMap<string, number>): string =>
  [...counts].map(([value, times]) => `${value} ${times}`).join(", ")

export const at = (sorted: ReadonlyArray<number>, share: number): number =>
  sorted[Math.floor(sorted.length * share)] ?? 0
export const millis = (value: number): string => `${value.toFixed(1)} ms`
export const megabytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MB`
