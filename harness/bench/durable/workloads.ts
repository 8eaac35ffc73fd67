/**
 * What is done with a system that keeps its runs, and what is counted meanwhile: each measurement on an empty database.
 */
import { fork } from "node:child_process"
import { setTimeout as sleep } from "node:timers/promises"
import { type Figures, measured, quantile, settled } from "../workloads.ts"
import type { Adapter, Durable } from "./Adapter.ts"
import * as Store from "./store.ts"

interface Place {
  readonly adapter: Adapter
  /** The address of the model. */
  readonly origin: string
}
type Workload = (place: Place, size: ReadonlyArray<number>) => Promise<Figures>

/** The URL of a server, for systems that are measured on PostgreSQL. */
const server = process.env["BENCH_SERVER"]

const open = ({ adapter, origin }: Place, { port, url }: Store.Store, turns: number, asks = false) =>
  adapter.open({ baseURL: `${origin}/v1`, model: `tools-${turns}`, url, port, asks })

/** Does so many times something with a run of its own, so many of them at a time. */
const each = async (
  prefix: string,
  count: number,
  together: number,
  use: (id: string) => Promise<unknown>
) => {
  let next = 0
  const lane = async () => {
    while (next < count) await use(`${prefix}-${next++}`)
  }
  await Promise.all(Array.from({ length: together }, lane))
}

/** Runs of three model calls and two tool calls, so many at a time: `[together, warm, count]`. */
const rate: Workload = (place, [together = 1, warm = 0, count = 0]) =>
  Store.within(server, async (store) => {
    const system = await open(place, store, 2)
    await each("w", warm, together, system.run)
    const before = await store.used()
    const { cpu, wall } = await measured(() => each("r", count, together, system.run))
    const after = await store.used()
    return {
      cpu: cpu / count,
      speed: count / (wall / 1000),
      statements: (after.statements - before.statements) / count,
      written: (after.bytes - before.bytes) / 1024 / count
    }
  })

/** Runs of so many turns, one at a time: `[turns, all turns]`. */
const growth: Workload = (place, [turns = 1, all = 1]) =>
  Store.within(server, async (store) => {
    const system = await open(place, store, turns)
    await each("w", Math.ceil(all / 2 / turns), 1, system.run)
    const count = Math.ceil(all / turns)
    const { cpu } = await measured(() => each("r", count, 1, system.run))
    return { cpu: cpu / count / turns }
  })

const heap = async (): Promise<number> => {
  await settled()
  return process.memoryUsage().heapUsed
}

/** The time from an answer to the end of its run, in milliseconds. */
const answers = async (system: Durable, ids: ReadonlyArray<string>): Promise<number> => {
  const times: Array<number> = []
  for (const id of ids) times.push((await measured(() => system.approve(id))).wall)
  return quantile(times, 0.5)
}

const some = (prefix: string, from: number): ReadonlyArray<string> =>
  [0, 1, 2].map((at) => `${prefix}-${from + at}`)

/** Runs that wait for a person in this process: `[count, milliseconds without work]`. */
const held = async (place: Place, store: Store.Store, [count = 0, idle = 0]: ReadonlyArray<number>) => {
  const system = await open(place, store, 1, true)
  const warm = Math.min(20, count)
  await each("w", warm, 4, system.hold)
  await each("w", warm, 4, system.approve)
  const base = await heap()
  await each("p", count, 16, system.hold)
  await sleep(idle)
  const kept = await heap()
  const { cpu } = await measured(() => sleep(idle))
  return {
    heap: (kept - base) / 1024 / count,
    idle: cpu / (idle / 1000),
    answer: await answers(system, some("p", 0))
  }
}

/** The same runs after a process that has gone without a word, and what the next one needs to have them. */
const waiting: Workload = (place, size) =>
  Store.within(server, async (store) => {
    const first = await inProcess(store, size)
    const system = await open(place, store, 1, true)
    await sleep(size[1] ?? 0)
    const { system: kernel, user } = process.cpuUsage()
    return { ...first, start: (user + kernel) / 1000, again: await answers(system, some("p", 3)) }
  })

/** Holds the runs in a process of its own, which ends without letting go of anything. */
const inProcess = (store: Store.Store, size: ReadonlyArray<number>): Promise<Figures> => {
  const [, script = "", path = "", , origin = ""] = process.argv
  const args = [path, "held", origin, ...size.map(String)]
  const child = fork(script, args, { env: { ...process.env, BENCH_STORE: JSON.stringify(store) } })
  return new Promise((resolve, reject) => {
    let said: { readonly figures?: Figures; readonly trouble?: string } = { trouble: "It told nothing." }
    child.once("message", (message: typeof said) => (said = message))
    child.once("exit", () =>
      said.figures === undefined ? reject(new Error(said.trouble)) : resolve(said.figures)
    )
  })
}

export const workloads: Readonly<Record<string, Workload>> = {
  rate,
  growth,
  waiting,
  held: (place, size) => held(place, JSON.parse(process.env["BENCH_STORE"] ?? "{}"), size)
}
