/**
 * Several workers of one PostgreSQL database, in rounds: some runs go on, something bad happens to a worker or to the database, and all
 * runs come to their ends.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Redacted } from "effect"
import { join } from "node:path"
import type { Server } from "../../../test/sql/postgres.ts"
import { Random } from "../Random.ts"
import { sleep } from "./http.ts"
import { port } from "./ports.ts"
import { Play, type Played } from "./round.ts"
import type { Settings } from "./stack.ts"
import { type Process, Workers } from "./workers.ts"

export interface Options {
  readonly script: string
  readonly home: string
  readonly server: Server
  readonly url: string
  readonly workers: number
  readonly count: number
  readonly seed: number
  readonly say: (line: string) => void
}

/** Milliseconds after which others take the sessions of a frozen worker. */
const lease = 6000
const runs = 6
/** Milliseconds between two looks at how the workers share the sessions. */
const settling = 750
const turns = 5
/** Milliseconds that an answer takes. */
const pace = 150

const faults = ["kill", "kill all", "freeze", "short freeze", "cut", "restart", "leave"] as const
export type Fault = (typeof faults)[number]

export interface Result extends Played {
  readonly fault: Fault
  /** Whether the run was on the worker that the fault touched. */
  readonly isTouched: boolean
}

const run = (url: string, statement: string): Promise<void> =>
  PgClient.PgClient.pipe(
    Effect.flatMap((sql) => sql.unsafe(statement)),
    Effect.provide(PgClient.layer({ url: Redacted.make(url) })),
    Effect.ignore,
    Effect.runPromise
  )

/** The shares of the sessions that workers hold, a lock each, by connection. */
const shares = (url: string) =>
  PgClient.PgClient.pipe(
    Effect.flatMap((sql) =>
      sql.unsafe<{ readonly pid: number; readonly held: number }>(
        `SELECT pid, count(*)::int AS held FROM pg_locks JOIN pg_database ON oid = database
         WHERE locktype = 'advisory' AND objsubid = 2 AND datname = current_database() GROUP BY pid ORDER BY pid`
      )
    ),
    Effect.provide(PgClient.layer({ url: Redacted.make(url) })),
    Effect.orElseSucceed(() => [])
  )

/** Waits until each worker has a share, and two looks find the same ones: on a busy machine a worker that comes takes its share late. */
const settle = (url: string, workers: number): Promise<unknown> => {
  let before = ""
  const isSettled = Effect.map(Effect.delay(shares(url), settling), (held) => {
    const now = JSON.stringify(held)
    const isSame = now === before && held.length === workers
    before = now
    return isSame
  })
  return Effect.repeat(isSettled, { until: (is) => is }).pipe(
    Effect.timeoutOption("20 seconds"),
    Effect.runPromise
  )
}

const others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"

export const play = async (options: Options): Promise<ReadonlyArray<Result>> => {
  const { count, home, say, script, seed, url } = options
  const world = join(home, "rounds.world")
  const ports = Array.from({ length: options.workers }, port)
  const settings = (index: number): Settings => ({
    url,
    world,
    turns,
    pace,
    isChecked: false,
    cluster: { port: ports[index] ?? port(), lease }
  })
  const workers = new Workers({ script, settings, size: options.workers })
  await workers.whenReady()
  const all: Array<Result> = []
  for (let index = 0; index < count; index++) {
    const results = await round(options, { workers, world, seed: seed + index, name: `r${seed + index}` })
    all.push(...results)
    const slowest = Math.max(
      0,
      ...results.filter(({ isTouched }) => isTouched).flatMap(({ takeovers }) => takeovers)
    )
    say(`round ${index + 1}, ${results[0]?.fault}: a run that it touched had no event for ${slowest} ms`)
    for (const { violations } of results) for (const found of violations.slice(0, 3)) say(`BROKEN ${found}`)
  }
  await workers.end()
  return all
}

interface Round {
  readonly workers: Workers
  readonly world: string
  readonly seed: number
  readonly name: string
}

const round = async (
  options: Options,
  { name, seed, workers, world }: Round
): Promise<ReadonlyArray<Result>> => {
  const random = new Random(seed)
  const fault = faults[seed % faults.length] ?? "kill"
  await workers.whenReady()
  // A worker that comes gets a share of the sessions. Those of this round begin after that.
  await settle(options.url, options.workers)
  const started = await Promise.all(
    Array.from({ length: runs }, (_, index) =>
      Play.start({
        workers,
        url: options.url,
        world,
        sessionId: `${name}-${index}`,
        turns,
        steers: random.once(4)
      })
    )
  )
  const plays = started.filter((play) => typeof play !== "string")
  await sleep(random.upTo(900))
  const { all } = workers
  const owners = plays.flatMap((play) => (play.isOver ? [] : all.filter(({ pid }) => pid === play.owner)))
  const victim = owners[random.upTo(owners.length - 1)] ?? all[0]
  const touched = new Set<Play>()
  if (victim !== undefined) {
    const isTouched = await touchedBy(fault, victim.pid)
    for (const play of plays) if (!play.isOver && isTouched(play)) touched.add(play)
    const at = Date.now()
    // The worker that comes back gets a share of the sessions: each such move may cost a model call, as the end of a worker may.
    for (const play of plays) if (!play.isOver) play.faults.push(at, at)
    await apply(fault, { options, victim, workers, plays, random })
  }
  const played = await Promise.all(plays.map((play) => play.end()))
  if (workers.isAnyFrozen) for (const process of workers.all) process.signal("SIGCONT")
  return [
    ...started
      .filter((play) => typeof play === "string")
      .map(
        (found): Result => ({
          ...nothing,
          fault,
          isTouched: false,
          violations: [`seed ${seed} (${fault}): ${found}`]
        })
      ),
    ...played.map((one, index): Result => {
      const play = plays[index]
      return {
        ...one,
        fault,
        isTouched: play !== undefined && touched.has(play),
        takeovers: one.takeovers.slice(0, 1),
        violations: one.violations.map((found) => `seed ${seed} (${fault}, ${one.sessionId}): ${found}`)
      }
    })
  ]
}

const nothing: Played = { sessionId: "", unknown: 0, repeats: 0, events: 0, takeovers: [], violations: [] }

/** Whether a fault of a worker touches a run: it is the last that did something for it. */
const touchedBy = async (fault: Fault, pid: number): Promise<(play: Play) => boolean> =>
  fault === "kill all" || fault === "cut" || fault === "restart" ? () => true : (play) => play.owner === pid

interface Blow {
  readonly options: Options
  readonly victim: Process
  readonly workers: Workers
  readonly plays: ReadonlyArray<Play>
  readonly random: Random
}

const apply = async (fault: Fault, { options, plays, random, victim, workers }: Blow): Promise<void> => {
  switch (fault) {
    case "kill":
      return victim.signal("SIGKILL")
    case "kill all":
      for (const process of workers.all) process.signal("SIGKILL")
      return
    case "leave":
      return victim.signal("SIGTERM")
    case "freeze":
    case "short freeze": {
      victim.signal("SIGSTOP")
      // A watcher on a frozen worker would wait for its silence.
      for (const play of plays) play.watcher.cut()
      await sleep(
        fault === "freeze" ? lease * 1.5 + random.upTo(1000) : lease * 0.2 + random.upTo(lease * 0.3)
      )
      return victim.signal("SIGCONT")
    }
    case "cut":
      return run(options.url, `SELECT pg_terminate_backend(pid) ${others}`)
    case "restart":
      return Effect.runPromise(options.server.restart(500 + random.upTo(2000)))
  }
}
