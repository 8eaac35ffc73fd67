/**
 * Durable runs of ten turns with twenty tool calls, whose workers are killed at each of their writes and at random times, and half of them
 * again while they recover. Whatever the moment: the run ends like one that was not killed, no event that a client saw is lost, no `once`
 * tool runs twice, and a kill costs at most one model call.
 */
import { Effect, Scope } from "effect"
import { join } from "node:path"
import * as Databases from "../../test/sql/databases.ts"
import * as Postgres from "../../test/sql/postgres.ts"
import * as Bundled from "./Bundled.ts"
import type { Chaos, Options, Outcome } from "./Chaos.ts"
import * as Figures from "./durable/figures.ts"
import * as Points from "./durable/points.ts"
import * as Rounds from "./durable/rounds.ts"

export const durable: Chaos = {
  count: 500,
  unit: "runs",
  run: (options) => Effect.scoped(run(options))
}

/** Durable runs with three calls in the background, whose workers are killed as those of `durable`. */
export const background: Chaos = {
  count: 50,
  unit: "runs",
  run: (options) => Effect.scoped(run(options, true))
}

/** Runs side by side. */
const concurrency = 2

/** Makes databases: files in the folder, or those of a server of PostgreSQL. */
const databases = Effect.fnUntraced(function* (home: string, store: string) {
  if (store !== "postgres") {
    const database = (name: string) => Promise.resolve(`sqlite:${join(home, `${name}.db`)}`)
    return { database, server: undefined }
  }
  const server = yield* Postgres.start
  const scope = yield* Effect.scope
  const database = (_name: string) => Effect.runPromise(Scope.provide(Databases.postgres(server), scope))
  return { database, server }
})

const run = Effect.fnUntraced(function* (
  options: Options,
  background = false
): Effect.fn.Return<Outcome, never, Scope.Scope> {
  const { concurrent, cost, due, store = "sqlite" } = options
  if (store === "postgres" && !Postgres.isInstalled)
    return { figures: {}, violations: ["there is no PostgreSQL"] }
  const home = yield* Bundled.folder("durable")
  const script = yield* Bundled.make("durable/worker.ts", home)
  const { database, server } = yield* databases(home, store)
  const engine = store === "live" ? ("live" as const) : ("cluster" as const)
  const place: Points.Place = { script, home, engine, database, ...(background ? { background } : {}) }
  if (due !== undefined) return yield* Effect.promise(() => Figures.due(place, due, options))
  if (cost !== undefined) return yield* Effect.promise(() => Figures.cost(place, cost, options))
  if (concurrent !== undefined)
    return yield* Effect.promise(() => Figures.concurrent(place, concurrent, options))
  if (options.workers !== undefined && server !== undefined) {
    const { workers } = options
    const url = yield* Effect.promise(() => database("rounds"))
    return judgeRounds(
      yield* Effect.promise(() => Rounds.play({ ...options, script, home, server, url, workers }))
    )
  }
  return yield* points(place, options)
})

const judgeRounds = (played: ReadonlyArray<Rounds.Result>): Outcome => {
  const of = (fault: string) => played.filter((one) => one.fault === fault)
  const sum = (all: ReadonlyArray<Rounds.Result>, number: (one: Rounds.Result) => number) =>
    all.reduce((total, one) => total + number(one), 0)
  const faults = [...new Set(played.map(({ fault }) => fault))].map((fault): [string, string] => {
    const takeovers = of(fault).flatMap((one) => (one.isTouched ? one.takeovers : []))
    return [
      `${fault}: longest time without an event of a run that it touched (ms)`,
      `${takeovers.length} runs, p50 ${median(takeovers)}, max ${Math.max(0, ...takeovers)}`
    ]
  })
  return {
    figures: {
      runs: played.length,
      "events seen": sum(played, ({ events }) => events),
      "model calls repeated": sum(played, ({ repeats }) => repeats),
      "tool calls with an unknown end": sum(played, ({ unknown }) => unknown),
      ...Object.fromEntries(faults)
    },
    violations: played.flatMap(({ violations }) => violations)
  }
}

const points = Effect.fnUntraced(function* (place: Points.Place, { count, say, seed }: Options) {
  const { result, writes } = yield* Effect.promise(() => Points.unkilled(place))
  if (result.violations.length > 0) {
    return { figures: {}, violations: result.violations.map((found) => `unkilled: ${found}`) }
  }
  say(`a run that is not killed writes ${writes} times`)
  const played: Array<Points.Result> = []
  yield* Effect.forEach(
    Array.from({ length: count }, (_, index) => ({ place, seed: seed + index, index, writes })),
    (each) =>
      Effect.map(
        Effect.promise(() => Points.round(each)),
        (one) => {
          played.push(one)
          for (const violation of one.violations.slice(0, 3)) say(violation)
          if (played.length % 50 === 0) say(`${played.length} runs`)
        }
      ),
    { concurrency, discard: true }
  )
  return judge(writes, played)
})

const median = (values: ReadonlyArray<number>, share = 0.5): number =>
  values.toSorted((left, right) => left - right)[
    Math.min(values.length - 1, Math.floor(values.length * share))
  ] ?? 0

const judge = (writes: number, played: ReadonlyArray<Points.Result>): Outcome => {
  const sum = (of: (one: Points.Result) => number) => played.reduce((total, one) => total + of(one), 0)
  const takeovers = played.flatMap((one) => one.takeovers)
  const starts = played.flatMap((one) => one.starts)
  return {
    figures: {
      "writes of a run": writes,
      runs: played.length,
      kills: sum(({ kills }) => kills),
      "kills during a recovery": sum(({ kills }) => Math.max(0, kills - 1)),
      "events seen": sum(({ events }) => events),
      "model calls repeated": sum(({ repeats }) => repeats),
      "tool calls with an unknown end": sum(({ unknown }) => unknown),
      "longest time without an event after a kill, with the start of the next process (ms)": `p50 ${median(takeovers)}, max ${Math.max(0, ...takeovers)}`,
      "start of a process (ms)": `p50 ${median(starts)}, max ${Math.max(0, ...starts)}`
    },
    violations: played.flatMap(({ violations }) => violations)
  }
}
