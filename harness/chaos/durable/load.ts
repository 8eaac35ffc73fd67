/** Many durable runs at a time: how long each waits for its start, and how many end in a second. */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { ask, sleep } from "./http.ts"
import { port } from "./ports.ts"
import type { Settings } from "./stack.ts"
import { Workers } from "./workers.ts"
import * as World from "./world.ts"

export interface Options {
  readonly script: string
  readonly home: string
  readonly url: string
  /** The name of the measurement, part of the ids of its sessions. */
  readonly name: string
  readonly workers: number
  readonly runs: number
  readonly turns: number
  /** Milliseconds that an answer takes. */
  readonly pace: number
  /** Runs that are started in a second. Default: as many as the workers take. */
  readonly rate?: number
  /** The most runs that go on at a time on a worker. Default: that of the library. */
  readonly gate?: number
  readonly engine?: Settings["engine"]
  /** Runs before those that are measured, so that code is compiled. Default 0. */
  readonly warm?: number
  /** Whether all workers are killed when each run has been started and none has had an answer: then all are due at once. Default `false`. */
  readonly crash?: boolean
}

export interface Load {
  readonly runs: number
  /** Runs that came to their end. */
  readonly ended: number
  /** Milliseconds from the request for a run, or from the crash, until its model was asked. */
  readonly waits: ReadonlyArray<number>
  /** The most runs that went on at one time. */
  readonly peak: number
  /** Milliseconds from the first start to the last answer. */
  readonly millis: number
  /** Milliseconds from the first start to the end of the first run. */
  readonly firstEnd: number
  /** Milliseconds of CPU of all workers, and MiB of memory of the largest at the end. */
  readonly cpu: number
  readonly rss: number
}

/** Milliseconds without anything done after which the rest is given up. */
const patience = 60_000

/** Milliseconds of an answer that does not come before the crash. */
const never = 600_000

const starter = async (options: Options, workers: Workers, starts: Map<string, number>): Promise<void> => {
  const { name, rate, runs } = options
  const began = Date.now()
  let next = 0
  const one = async (): Promise<void> => {
    while (next < runs) {
      const index = next++
      if (rate !== undefined) await sleep(Math.max(0, began + (index * 1000) / rate - Date.now()))
      const sessionId = `${name}-${index}`
      const { url = "" } = workers
      const asked = Date.now()
      await ask(url, { path: "/sessions", body: { sessionId }, silence: 60_000 })
      const answer = await ask(url, {
        path: `/sessions/${sessionId}/runs`,
        body: { prompt: "Work." },
        headers: { "idempotency-key": sessionId },
        silence: 60_000
      })
      if (answer !== undefined && answer.status < 300) starts.set(sessionId, asked)
    }
  }
  await Promise.all(Array.from({ length: rate === undefined ? 32 : 128 }, one))
}

const linesOf = (path: string): number =>
  Number(spawnSync("wc", ["-l", path], { encoding: "utf8" }).stdout.trim().split(" ")[0] ?? 0)

/** What a run does outside, in lines. */
const deedsOf = (turns: number): number => turns + 1 + 4 * turns

/** Waits until the file has as many lines, or none is added any more. */
const lines = async (path: string, wanted: number): Promise<void> => {
  let known = 0
  for (let last = Date.now(); known < wanted && Date.now() < last + patience; ) {
    await sleep(100)
    const now = linesOf(path)
    if (now !== known) last = Date.now()
    known = now
  }
}

/** Kills all workers, which start again. */
const kill = async (workers: Workers): Promise<void> => {
  for (const process of workers.all) process.signal("SIGKILL")
  while (workers.ready.length > 0) await sleep(2)
}

/** Starts the runs, and waits until all have ended or nothing is done any more. */
export const measure = async (options: Options): Promise<Load> => {
  const { home, name, pace, runs, script, turns, url } = options
  const world = join(home, `${name}.world`)
  const isLocal = url.startsWith("sqlite:")
  const ports = Array.from({ length: options.workers }, port)
  let isHeld = options.crash === true
  const settings = (index: number): Settings => ({
    url,
    world,
    turns,
    pace: isHeld ? never : pace,
    isChecked: false,
    ...(options.gate === undefined ? {} : { gate: options.gate }),
    ...(options.engine === undefined ? {} : { engine: options.engine }),
    ...(isLocal ? {} : { cluster: { port: ports[index] ?? port(), lease: 15_000 } })
  })
  const workers = new Workers({ script, settings, size: options.workers })
  await workers.whenReady()
  const { warm = 0 } = options
  if (warm > 0) {
    await starter({ ...options, runs: warm, name: `${name}-warm` }, workers, new Map())
    await lines(world, warm * deedsOf(turns))
  }
  const cpu = () => Promise.all(workers.all.map((each) => each.number("cpu")))
  const sum = (values: ReadonlyArray<number>) => values.reduce((total, value) => total + value, 0)
  const before = sum(await cpu())
  let began = Date.now()
  let known = warm * deedsOf(turns)
  const starts = new Map<string, number>()
  const starting = starter(options, workers, starts)
  if (isHeld) {
    await starting
    isHeld = false
    began = Date.now()
    await kill(workers)
    known = linesOf(world)
    for (const sessionId of starts.keys()) starts.set(sessionId, began)
  }
  await lines(world, known + runs * deedsOf(turns))
  await starting
  // The last answers are on their way into the store.
  await sleep(500)
  const after = sum(await cpu())
  const rss = Math.max(...(await Promise.all(workers.all.map((each) => each.number("rss")))))
  await workers.end()
  const deeds = World.read(world).filter(
    ({ at, sessionId, what }) =>
      what === "model" && !sessionId.startsWith(`${name}-warm`) && (options.crash !== true || at >= began)
  )
  const first = new Map<string, number>()
  const ends = new Map<string, number>()
  for (const { at, sessionId, turn } of deeds) {
    if (!first.has(sessionId)) first.set(sessionId, at)
    if (turn === turns) ends.set(sessionId, at)
  }
  const last = Math.max(0, ...ends.values())
  return {
    runs,
    ended: ends.size,
    waits: [...starts].map(([sessionId, at]) => Math.max(0, (first.get(sessionId) ?? Date.now()) - at)),
    peak: peakOf(first, ends),
    millis: last - began,
    firstEnd: Math.min(...ends.values()) - began,
    cpu: after - before,
    rss
  }
}

const peakOf = (first: ReadonlyMap<string, number>, ends: ReadonlyMap<string, number>): number => {
  const changes = [...first.values()].map((at): [number, number] => [at, 1])
  for (const at of ends.values()) changes.push([at, -1])
  let now = 0
  let most = 0
  for (const [, change] of changes.toSorted(([left], [right]) => left - right))
    most = Math.max(most, (now += change))
  return most
}
