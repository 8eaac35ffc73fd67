/**
 * Runs whose worker is killed at a write to the database, before it or after it, or at a random time, and half of them again while they
 * recover.
 */
import { join } from "node:path"
import { Random } from "../Random.ts"
import * as Beside from "./beside.ts"
import type { Point } from "./deaths.ts"
import { sleep } from "./http.ts"
import { port } from "./ports.ts"
import { describePoint, Play, type Played } from "./round.ts"
import type { Settings } from "./stack.ts"
import { never, Workers } from "./workers.ts"

export interface Place {
  readonly script: string
  readonly home: string
  readonly engine: Settings["engine"]
  /** Makes the URL of a database for a run. */
  readonly database: (name: string) => Promise<string>
  /** Whether the model has calls in the background, in place of turns with two tools. Default `false`. */
  readonly background?: boolean
}

/** When a process is killed. */
interface Kill extends Point {
  /** Milliseconds after its first event, or after its start if it is a recovery. */
  readonly after?: number
}

export interface Round {
  readonly place: Place
  readonly seed: number
  readonly index: number
  /** The writes of a run that nothing happened to. */
  readonly writes: number
}

export interface Result extends Played {
  readonly kills: number
  readonly starts: ReadonlyArray<number>
}

export const turns = 10
/** Milliseconds that an answer takes. */
const pace = 4
/** Milliseconds that a run takes, about. */
const length = 900

const settingsOf = (place: Place, url: string, name: string, asks = false): Settings => ({
  asks,
  url,
  ...(place.engine === undefined ? {} : { engine: place.engine }),
  ...(place.background === undefined ? {} : { background: place.background }),
  // Each run has a database of its own, and its worker comes back at its address.
  ...(url.startsWith("sqlite:") ? {} : { cluster: { port: port(), lease: 15_000 } }),
  world: join(place.home, `${name}.world`),
  turns,
  pace,
  isChecked: true
})

const judgeOf = ({ background }: Place) => (background === true ? { judge: Beside.violations } : {})

/** Plays a run that nothing happens to, and counts its writes. */
export const unkilled = async (
  place: Place
): Promise<{ readonly writes: number; readonly result: Played }> => {
  const name = "unkilled"
  const url = await place.database(name)
  const settings = settingsOf(place, url, name)
  const workers = new Workers({ script: place.script, settings: () => settings, size: 1 })
  await workers.whenReady()
  const play = await Play.start({
    ...judgeOf(place),
    workers,
    url,
    world: settings.world,
    sessionId: name,
    turns
  })
  if (typeof play === "string") {
    await workers.end()
    return {
      writes: 0,
      result: { sessionId: name, unknown: 0, repeats: 0, events: 0, takeovers: [], violations: [play] }
    }
  }
  const result = await play.end()
  await sleep(300)
  const writes = (await workers.all[0]?.number("writes")) ?? 0
  await workers.end()
  return { writes, result }
}

/** Each write before and after, in an order that spreads a small count over all of them; then random times. */
export const killOf = ({ index, seed, writes }: Round): Kill => {
  const random = new Random(seed)
  if (random.once(4)) return { ...never, after: random.upTo(length) }
  const points = 2 * writes
  // A step that has no factor in common with the number of points comes to each of them.
  const at = (index * coprime(points)) % points
  return { write: 1 + (at >> 1), isAfter: at % 2 === 1 }
}

const divisor = (left: number, right: number): number => (right === 0 ? left : divisor(right, left % right))

const coprime = (points: number): number => {
  let step = Math.max(1, Math.round(points * 0.618))
  while (divisor(points, step) !== 1) step++
  return step
}

const recoveryKill = (random: Random): Kill =>
  random.once(3)
    ? { ...never, after: random.upTo(400) }
    : { write: 1 + random.upTo(24), isAfter: random.once(2) }

export const round = async (options: Round): Promise<Result> => {
  const { place, seed } = options
  const random = new Random(seed + 1)
  const first = killOf(options)
  const kills: ReadonlyArray<Kill> = random.once(2) ? [first, recoveryKill(random)] : [first]
  const name = `s${seed}`
  const url = await place.database(name)
  const isPlain = place.background !== true
  const asks = isPlain && seed % 3 === 0
  const settings = settingsOf(place, url, name, asks)
  const workers = new Workers({ script: place.script, settings: () => settings, size: 1, points: kills })
  const later = kills.map(({ after }, index) => killLater(workers, index, after))
  const play = await Play.start({
    workers,
    url,
    world: settings.world,
    sessionId: name,
    turns,
    ...judgeOf(place),
    steers: random.once(3) && isPlain,
    asks,
    pauses: seed % 3 === 1
  })
  const played: Played =
    typeof play === "string"
      ? { sessionId: name, unknown: 0, repeats: 0, events: 0, takeovers: [], violations: [play] }
      : await ended(play, workers)
  const during = workers.deaths.length
  await workers.end()
  await Promise.all(later)
  const said = kills
    .map((kill) => (kill.after === undefined ? describePoint(kill) : `after ${kill.after} ms`))
    .join(", ")
  return {
    ...played,
    kills: during,
    starts: workers.starts.slice(1),
    violations: [...played.violations, ...workers.failures].map((found) => `seed ${seed} (${said}): ${found}`)
  }
}

const ended = async (play: Play, workers: Workers): Promise<Played> => {
  const known = () => void play.faults.splice(0, play.faults.length, ...workers.deaths.map(({ at }) => at))
  const looking = setInterval(known, 2)
  const played = await play.end()
  clearInterval(looking)
  return played
}

/** Kills the process of a number some time after it has begun to serve. */
const killLater = async (workers: Workers, index: number, after: number | undefined): Promise<void> => {
  if (after === undefined) return
  while (workers.deaths.length < index || workers.ready.length === 0) {
    if (workers.isOver) return
    await sleep(2)
  }
  await sleep(after)
  if (!workers.isOver && workers.deaths.length === index) workers.all[0]?.signal("SIGKILL")
}
