/**
 * A session of ten turns and twenty calls, in which every call to the world goes wrong once: the first, the second, the
 * n-th request, piece of an answer, call of the file system, sleep and process, until a session passes in which nothing
 * is left to go wrong. Each time the call fails before its effect or after it,
 * hangs, dies before its effect or after it.
 */
import { Effect, Logger } from "effect"
import type { Chaos, Options, Outcome } from "./Chaos.ts"
import { faults, type Point, worlds } from "./inject/Injector.ts"
import { type Manner, play, type Played } from "./inject/play.ts"
import { Random } from "./Random.ts"

/** `count` is of points, drawn by the seed; all of them unless told otherwise. */
export const inject: Chaos = {
  count: Infinity,
  unit: "points",
  run: (options) => run(options).pipe(Effect.provide(Logger.layer([])))
}

const manners: ReadonlyArray<Manner> = [
  { retryTurn: true, toolExecution: "parallel" },
  { retryTurn: false, toolExecution: "sequential" }
]
/** Sessions side by side: most of them wait most of the time. */
const concurrency = 6

interface Tried extends Played {
  readonly name: string
}

const run = Effect.fnUntraced(function* ({ count, say, seed }: Options): Effect.fn.Return<Outcome> {
  const tried = yield* Effect.forEach(manners, (manner) =>
    Number.isFinite(count)
      ? some(manner, Math.ceil(count / manners.length), new Random(seed))
      : all(manner, say)
  )
  return judge(tried.flat())
})

const attempt = (manner: Manner, point: Point): Effect.Effect<Tried> =>
  Effect.map(play(manner, point), (played) => ({
    ...played,
    name: `${manner.toolExecution}, ${point.world} ${point.call}, ${point.fault}, ${played.fired}`
  }))

/** One after another, until sessions pass in which the point was never reached. */
const all = Effect.fnUntraced(function* (manner: Manner, say: Options["say"]) {
  const tried: Array<Tried> = []
  for (const world of worlds) {
    for (let from = 1, reached = true; reached; from += concurrency) {
      const calls = Array.from({ length: concurrency }, (_, index) => from + index)
      const points = calls.flatMap((call) => faults.map((fault) => ({ world, call, fault })))
      const played = yield* Effect.forEach(points, (point) => attempt(manner, point), { concurrency })
      tried.push(...played.filter(({ fired }) => fired !== undefined))
      // On a busy machine a session may end before its point for want of time: that is not the last one.
      reached = played.some(({ fired }) => fired !== undefined)
    }
    const broken = tried.flatMap(({ violations }) => violations)
    say(`${manner.toolExecution}, ${world}: ${tried.length} points, ${broken.length} violations`)
  }
  return tried
})

/** As many as are wanted, from all over the session. */
const some = Effect.fnUntraced(function* (manner: Manner, count: number, random: Random) {
  const { counts } = yield* play(manner, undefined)
  const [first, ...others] = worlds
  const points = Array.from({ length: count }, (): Point => {
    const world = random.pick(first, ...others)
    return { world, call: 1 + random.upTo((counts.get(world) ?? 1) - 1), fault: random.pick(...faults) }
  })
  return yield* Effect.forEach(points, (point) => attempt(manner, point), { concurrency })
})

const judge = (tried: ReadonlyArray<Tried>): Outcome => {
  const reached = tried.filter(({ fired }) => fired !== undefined)
  const ends = new Map<string, number>()
  for (const { status } of reached) ends.set(status, (ends.get(status) ?? 0) + 1)
  return {
    figures: {
      points: reached.length,
      "points that broke something": reached.filter(({ violations }) => violations.length > 0).length,
      ends: [...ends].map(([status, count]) => `${status} ${count}`).join(", ")
    },
    violations: tried.flatMap(({ name, violations }) => violations.map((found) => `${name}: ${found}`))
  }
}
