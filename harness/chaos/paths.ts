/**
 * Paths and links that lead out of the root: made up ones, through every tool that takes a path; and links put in place
 * of what a tool is at while it is at it, by another process and, call by call, by the file system itself. Nothing that
 * is outside comes out, and nothing there is changed.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, type Scope, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { join } from "node:path"
import { Root } from "effect-agent/tools"
import type { Chaos, Options, Outcome } from "./Chaos.ts"
import * as Ground from "./paths/ground.ts"
import * as Spelling from "./paths/spelling.ts"
import * as Swap from "./paths/swap.ts"
import { Random } from "./Random.ts"

/** `count` is of paths, and of races; those with one swap, at every moment there is, come on top. */
export const paths: Chaos = {
  count: 10_000,
  run: (options) => run(options).pipe(Effect.provide(NodeServices.layer), Effect.orDie)
}

const run = Effect.fnUntraced(function* (options: Options) {
  const tally = new Tally()
  yield* inBatches(options, "paths", (seeds) => spelled(seeds, tally))
  const { oneIn = 1, seed } = options
  yield* Effect.scoped(everySwap(tally, new Random(seed), oneIn))
  options.say(
    `${tally.races} races, swapped at ${oneIn === 1 ? "every call" : "some calls"} of the file system`
  )
  const half = Math.floor(options.count / 2)
  yield* inBatches({ ...options, count: half }, "races, swapped there and back", (seeds) =>
    severalSwaps(seeds, tally)
  )
  yield* Effect.scoped(liveRaces(options.count - half, tally))
  options.say(`${options.count - half} races with another process`)
  return tally.outcome()
})

class Tally {
  paths = 0
  within = 0
  races = 0
  answered = 0
  swaps = 0
  readonly violations: Array<string> = []

  outcome(): Outcome {
    return {
      figures: {
        "paths made up": this.paths,
        "inside all the same": this.within,
        races: this.races,
        "answered all the same": this.answered,
        swaps: this.swaps,
        escapes: this.violations.length
      },
      violations: this.violations
    }
  }
}

/** The ground fills with what is written: a new one after so many. */
const batch = 500

const inBatches = <E, R>(
  { count, say, seed }: Options,
  what: string,
  run: (seeds: ReadonlyArray<number>) => Effect.Effect<void, E, R>
): Effect.Effect<void, E, Exclude<R, Scope.Scope>> =>
  Effect.gen(function* () {
    for (let from = 0; from < count; from += batch) {
      const size = Math.min(batch, count - from)
      yield* Effect.scoped(run(Array.from({ length: size }, (_, index) => seed + from + index)))
    }
    say(`${count} ${what}`)
  })

const spelled = Effect.fnUntraced(function* (seeds: ReadonlyArray<number>, tally: Tally) {
  const ground = yield* Ground.make
  const { call, escaped, root } = ground
  for (const seed of seeds) {
    const path = Spelling.make(new Random(seed), ground)
    tally.paths++
    const note = (what: string) => tally.violations.push(`seed ${seed}: ${what} by ${JSON.stringify(path)}`)
    for (const access of ["read", "write"] as const) {
      const place = yield* Effect.option(Root.resolve({ root }, access, path))
      if (place._tag === "None") continue
      if (access === "read") tally.within++
      const where = join(place.value.existing, ...place.value.missing)
      if (!`${where}/`.startsWith(`${root}/`)) note(`${access} leads to ${where}`)
    }
    for (const [tool, params] of Ground.calls(path)) {
      const found = escaped((yield* call(tool, params)).text)
      if (found !== undefined) note(`${tool}: ${found}`)
    }
  }
})

/** A tool that is asked for a path while a trick is played. */
interface Race {
  readonly trick: Swap.Trick
  readonly path: string
  readonly tool: string
  readonly params: object
}

const everyRace: ReadonlyArray<Race> = Swap.tricks.flatMap((trick) =>
  trick.paths.flatMap((path) => Ground.calls(path).map(([tool, params]) => ({ trick, path, tool, params })))
)

/** The system is asked for one thing after the other; in between, what it was asked about becomes a link. */
const stage = Effect.fnUntraced(function* (tally: Tally) {
  const { call, escaped, fs, outside, root } = yield* Ground.make
  const stage = new Swap.Stage(root, outside)
  const watched = Swap.watched(fs, stage.call)
  const race = Effect.fnUntraced(function* (
    { params, path, tool, trick }: Race,
    moments: ReadonlyArray<number>
  ) {
    const { swaps } = stage
    stage.begin(trick, moments)
    // The services of the caller win over those the tools were registered with.
    const { isError, text } = yield* call(tool, params).pipe(
      Effect.provideService(FileSystem.FileSystem, watched)
    )
    const found = escaped(text)
    const calls = stage.end()
    tally.races++
    tally.swaps += stage.swaps - swaps
    if (isError !== true) tally.answered++
    if (found !== undefined) tally.violations.push(`${tool} ${path}, swapped at ${moments.join()}: ${found}`)
    return calls
  })
  return race
})

/** Each race with one swap, at each of the calls there are, or at one of so many. */
const everySwap = Effect.fnUntraced(function* (tally: Tally, dice: Random, oneIn: number) {
  const race = yield* stage(tally)
  for (const each of everyRace) {
    const calls = yield* race(each, [])
    for (let moment = 1; moment <= calls; moment++) if (dice.once(oneIn)) yield* race(each, [moment])
  }
})

/** Races with several swaps, there and back. */
const severalSwaps = Effect.fnUntraced(function* (seeds: ReadonlyArray<number>, tally: Tally) {
  const race = yield* stage(tally)
  const [first, ...others] = everyRace
  if (first === undefined) return
  for (const seed of seeds) {
    const dice = new Random(seed)
    // A tool makes 10 to 30 calls; the first ones matter most.
    const moments = Array.from({ length: 2 + dice.upTo(2) }, () => 1 + dice.upTo(dice.pick(6, 12, 30)))
    yield* race(dice.pick(first, ...others), moments)
  }
})

const liveRaces = Effect.fnUntraced(function* (count: number, tally: Tally) {
  const { call, escaped, outside, root } = yield* Ground.make
  const script = join(import.meta.dirname, "paths/swapper.ts")
  const swapper = yield* ChildProcess.make(process.execPath, [script, root, outside], {
    forceKillAfter: "100 millis"
  })
  yield* Effect.forkScoped(
    Stream.runForEach(swapper.stdout, ({ length }) => Effect.sync(() => (tally.swaps += 10 * length)))
  )
  for (let made = 0, round = 0; made < count; round++) {
    const paths = ["d/secret.txt", "d", "d/e/x.txt", `d/new${round}.txt`]
    const calls = paths.flatMap(Ground.calls).slice(0, count - made)
    const done = yield* Effect.forEach(calls, ([tool, params]) => call(tool, params), { concurrency: 6 })
    made += calls.length
    tally.races += calls.length
    tally.answered += done.filter(({ isError }) => isError !== true).length
    const found = done.map(({ text }) => escaped(text)).find((what) => what !== undefined)
    if (found !== undefined) tally.violations.push(`round ${round} with another process: ${found}`)
  }
  if (!(yield* swapper.isRunning)) tally.violations.push("the process that swaps has ended")
})
