/** Figures of durable runs: waits of runs that are due, runs at a time, throughput, and what a turn costs. */
import type { Options, Outcome } from "../Chaos.ts"
import * as Load from "./load.ts"

export interface Place {
  readonly script: string
  readonly home: string
  readonly database: (name: string) => Promise<string>
}

const share = (values: ReadonlyArray<number>, part: number): number =>
  values.toSorted((left, right) => left - right)[
    Math.min(values.length - 1, Math.floor(values.length * part))
  ] ?? 0

/** No run that is due waits longer, in milliseconds. */
const longestWait = 30_000

/** Runs that are all due at once, since they are started or since their workers were killed: none waits too long for its model. */
export const due = async (
  place: Place,
  runs: number,
  { crash, rate, workers = 2 }: Options
): Promise<Outcome> => {
  const url = await place.database("due")
  const load = await Load.measure({
    ...place,
    url,
    name: "due",
    workers: url.startsWith("sqlite:") ? 1 : workers,
    runs,
    turns: 1,
    pace: 0,
    ...(rate === undefined ? {} : { rate }),
    ...(crash === undefined ? {} : { crash })
  })
  const longest = Math.max(0, ...load.waits)
  return {
    figures: {
      "runs that are due": runs,
      "started in a second": rate ?? "as many as it takes",
      "wait for the model (ms)": `p50 ${share(load.waits, 0.5)}, p99 ${share(load.waits, 0.99)}, max ${longest}`,
      "all had ended after (ms)": load.millis,
      ...costs(load, 1)
    },
    violations: [
      ...unended(load),
      ...(load.waits.length < runs ? [`${runs - load.waits.length} starts were refused`] : []),
      ...(longest > longestWait ? [`a run waited ${longest} ms`] : [])
    ]
  }
}

const unended = ({ ended, runs }: Load.Load): ReadonlyArray<string> =>
  ended === runs ? [] : [`${runs - ended} of ${runs} runs did not end`]

const perSecond = (count: number, millis: number): number => Math.round((count * 10_000) / millis) / 10

/** A run of `turns` with tools has as many steps: model calls and tool calls. */
const stepsOf = (turns: number): number => turns + 1 + 2 * turns

const costs = (load: Load.Load, turns: number) => ({
  "runs in a second": perSecond(load.ended, load.millis),
  "steps in a second": perSecond(load.ended * stepsOf(turns), load.millis),
  "CPU of the workers a step (ms)": Math.round((load.cpu * 100) / (load.ended * stepsOf(turns))) / 100,
  "memory of a worker (MiB)": load.rss
})

/** Runs that go on at one time on one worker; then throughput by the number of runs that are queued. */
export const concurrent = async (place: Place, runs: number, { queued, say }: Options): Promise<Outcome> => {
  const figures: Record<string, string | number> = {}
  const violations: Array<string> = []
  if (runs > 0) {
    const url = await place.database("concurrent")
    const load = await Load.measure({
      ...place,
      url,
      name: "concurrent",
      workers: 1,
      runs,
      turns: 2,
      pace: 20_000,
      gate: runs
    })
    violations.push(
      ...unended(load),
      ...(load.peak < runs ? [`only ${load.peak} runs went on at a time`] : [])
    )
    figures["most runs at a time"] = load.peak
    figures["their memory (MiB)"] = load.rss
    say(`${load.peak} runs at a time, ${load.rss} MiB`)
  }
  for (const count of queued ?? []) {
    const url = await place.database(`queued${count}`)
    const load = await Load.measure({
      ...place,
      url,
      name: `queued${count}`,
      warm: 60,
      workers: 1,
      runs: count,
      turns: 2,
      pace: 0
    })
    violations.push(...unended(load))
    const text = `first end after ${load.firstEnd} ms, last after ${load.millis}: ${JSON.stringify(costs(load, 2))}`
    figures[`${count} queued`] = text
    say(`${count} queued: ${text}`)
  }
  return { figures, violations }
}

/** What a turn of a durable run costs, against one of a server that keeps nothing, and of one that is not durable. */
export const cost = async (place: Place, runs: number, { say }: Options): Promise<Outcome> => {
  const turns = 10
  const figures: Record<string, string | number> = {}
  const one = async (engine: "memory" | "stored" | "live" | "cluster", count: number) => {
    const url = await place.database(`cost-${engine}-${count}`)
    const load = await Load.measure({
      ...place,
      url,
      name: `cost-${engine}-${count}`,
      workers: 1,
      runs: count,
      turns,
      pace: 0,
      warm: 60,
      engine
    })
    const text = JSON.stringify({
      "CPU a turn (ms)": Math.round((load.cpu * 100) / (load.ended * (turns + 1))) / 100,
      "wall a run (ms)": Math.round(load.millis / load.ended),
      ...costs(load, turns)
    })
    figures[`${engine}, ${count} runs`] = text
    say(`${engine}, ${count} runs: ${text}`)
    return { cpu: load.cpu / load.ended, violations: unended(load) }
  }
  const memory = await one("memory", runs)
  const stored = await one("stored", runs)
  const live = await one("live", runs)
  const cluster = await one("cluster", runs)
  const ratio = (other: { readonly cpu: number }) => Math.round((cluster.cpu / other.cpu) * 100) / 100
  return {
    figures: {
      ...figures,
      "durable against memory": ratio(memory),
      "durable against a stored session": ratio(stored)
    },
    violations: [memory, stored, live, cluster].flatMap(({ violations }) => violations)
  }
}
