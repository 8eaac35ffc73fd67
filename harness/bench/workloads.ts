/**
 * What is done with an adapter, and what is counted meanwhile. Each workload warms up, measures once, and fails when the
 * run did not do all that it was asked for.
 */
import { getEventListeners } from "node:events"
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises"
import type { Adapter, Run, Tool } from "./Adapter.ts"

export type Figures = Readonly<Record<string, number>>

export interface Place {
  readonly adapter: Adapter
  /** Address of the server. */
  readonly origin: string
}

/** A workload of so much. */
export type Workload = (place: Place, size: ReadonlyArray<number>) => Promise<Figures>

const check = (isSo: boolean, what: string): void => {
  if (!isSo) throw new Error(what)
}

export const same = (what: string, got: number, expected: number): void =>
  check(got === expected, `${what}: ${got}, not ${expected}`)

/** What the last answer of a run with tools says, in characters. */
const answer = "all done".length

/** One run. Gives the characters that were heard. */
const agent = async (
  { adapter, origin }: Place,
  run: Pick<Run, "model"> & Partial<Run>
): Promise<{ readonly heard: number }> => {
  let heard = 0
  await adapter.run({
    baseURL: `${origin}/v1`,
    system: "You are a helpful assistant.",
    prompt: "Go.",
    maxTurns: 1000,
    ...run,
    onText: (text) => {
      heard += text.length
      run.onText?.(text)
    }
  })
  return { heard }
}

const tool = (name: string, props: Tool["props"], execute: Tool["execute"]): Tool => ({
  name,
  description: `The ${name} tool`,
  props,
  jsonSchema: {
    type: "object",
    properties: Object.fromEntries(Object.entries(props).map(([key, type]) => [key, { type }])),
    required: Object.keys(props),
    additionalProperties: false
  },
  execute
})

/** What the server has seen since it was last asked. */
const seenBy = async ({ origin }: Place) => {
  const response = await fetch(origin)
  const seen: {
    readonly requests: number
    readonly closedAt: Readonly<Record<string, string>>
  } = await response.json()
  return seen
}

const collect = (): void => globalThis.gc?.()

export const settled = async (): Promise<void> => {
  for (let round = 0; round < 8; round++) {
    collect()
    await sleep(50)
  }
}

/** CPU of the process, user and system, and time, in milliseconds. */
export const measured = async <A>(run: () => Promise<A>) => {
  collect()
  await sleep(30)
  const cpu = process.cpuUsage()
  const start = performance.now()
  const result = await run()
  const wall = performance.now() - start
  const { system, user } = process.cpuUsage(cpu)
  return { cpu: (user + system) / 1000, wall, result }
}

export const quantile = (values: ReadonlyArray<number>, part: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(part * (values.length - 1))] ?? NaN

const micros = (from: bigint, to: bigint): number => Number(to - from) / 1000

const stream: Workload = async (place, [count = 0, together = 1]) => {
  const hear = async (deltas: number) => {
    const { heard } = await agent(place, { model: `stream-${deltas}-${together}` })
    same("characters", heard, deltas * 4)
  }
  await hear(2000)
  await hear(Math.min(5000, count))
  const { cpu, wall } = await measured(() => hear(count))
  return {
    cpu: (cpu * 1000) / count,
    speed: count / (wall / 1000),
    memory: process.resourceUsage().maxRSS / 1024
  }
}

const turns: Workload = async (place, [count = 0]) => {
  const work = async (turns: number) => {
    const called: Array<unknown> = []
    const tick = tool("tick", { n: "integer" }, async ({ n }) => `ok ${called.push(n)}`)
    const { heard } = await agent(place, { model: `tools-${turns}`, tools: [tick] })
    same("characters", heard, answer)
    same("calls", called.length, turns)
    check(
      called.every((n, index) => n === index),
      "arguments are not those that were sent"
    )
  }
  await work(10)
  await work(20)
  await seenBy(place)
  const { cpu, wall } = await measured(() => work(count))
  same("requests", (await seenBy(place)).requests, count + 1)
  return { cpu: cpu / count, wall: wall / count }
}

const longArguments: Workload = async (place, [size = 0, pieces = 1]) => {
  const work = async (size: number, pieces: number) => {
    let saved = 0
    const save = tool("save", { body: "string" }, async ({ body }) => {
      saved = String(body).length
      return "saved"
    })
    const { heard } = await agent(place, { model: `args-${size}-${pieces}`, tools: [save] })
    same("characters of arguments", saved, size)
    same("characters", heard, answer)
  }
  await work(20_000, 400)
  const { cpu, wall } = await measured(() => work(size, pieces))
  return { cpu, wall }
}

const crowd: Workload = async (place, [count = 0, delay = 50]) => {
  let calls = 0
  const tick = tool("tick", { n: "integer" }, async () => `ok ${++calls}`)
  const work = async (agents: number) => {
    calls = 0
    const one = () => agent(place, { model: `tools-2-${delay}`, tools: [tick] })
    const runs = await Promise.all(Array.from({ length: agents }, one))
    same("calls", calls, agents * 2)
    check(
      runs.every(({ heard }) => heard === answer),
      "an answer is not whole"
    )
  }
  await work(20)
  await settled()
  const before = process.memoryUsage.rss()
  let most = before
  const look = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 20)
  const { cpu, wall } = await measured(() => work(count))
  clearInterval(look)
  most = Math.max(most, process.memoryUsage.rss())
  return { cpu: cpu / count, wall, memory: (most - before) / 1024 / count }
}

const latency: Workload = async (place, [count = 0, every = 5]) => {
  let late: Array<number> = []
  let rest = ""
  const onText = (text: string) => {
    const now = process.hrtime.bigint()
    const times = (rest + text).split(";")
    rest = times.pop() ?? ""
    for (const time of times) late.push(micros(BigInt(time), now))
  }
  await agent(place, { model: `clock-60-${every}`, onText })
  late = []
  await agent(place, { model: `clock-${count}-${every}`, onText })
  same("deltas", late.length, count)
  return { p50: quantile(late, 0.5), p99: quantile(late, 0.99) }
}

const together: Workload = async (place, [count = 0]) => {
  const work = async (tools: number) => {
    let calls = 0
    const wait = tool("wait", { n: "integer" }, async () => {
      await sleep(20)
      return `ok ${++calls}`
    })
    const { heard } = await agent(place, { model: `parallel-${tools}`, tools: [wait] })
    same("calls", calls, tools)
    same("characters", heard, answer)
  }
  await work(10)
  await work(count)
  const { cpu, wall } = await measured(() => work(count))
  return { wall, cpu }
}

/** Settled: by an answer or by an error, both are an end. */
const ended = (run: Promise<unknown>): Promise<unknown> => run.catch(() => undefined)

const aborts: Workload = async (place, [count = 0]) => {
  let listeners = 0
  const work = async (runs: number) => {
    const abortedAt = new Map<string, bigint>()
    for (let run = 0; run < runs; run++) {
      const controller = new AbortController()
      const prompt = `run ${run}`
      let begun = false
      const onText = async () => {
        if (begun) return
        begun = true
        await nextTurn()
        abortedAt.set(prompt, process.hrtime.bigint())
        controller.abort()
      }
      await ended(agent(place, { model: "endless-2", prompt, onText, signal: controller.signal }))
      listeners += getEventListeners(controller.signal, "abort").length
    }
    return abortedAt
  }
  await work(20)
  await settled()
  await seenBy(place)
  listeners = 0
  const heap = process.memoryUsage().heapUsed
  const { cpu, result: abortedAt } = await measured(() => work(count))
  await settled()
  const { closedAt } = await seenBy(place)
  const waits = [...abortedAt].flatMap(([run, at]) => {
    const closed = closedAt[run]
    return closed === undefined ? [] : [micros(at, BigInt(closed))]
  })
  same("aborted runs", abortedAt.size, count)
  return {
    p50: quantile(waits, 0.5),
    open: count - waits.length,
    listeners: listeners / count,
    heap: (process.memoryUsage().heapUsed - heap) / 1024 / count,
    cpu: cpu / count
  }
}

export const workloads: Readonly<Record<string, Workload>> = {
  stream,
  turns,
  longArguments,
  crowd,
  latency,
  together,
  aborts
}
