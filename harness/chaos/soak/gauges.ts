/**
 * What a process holds: memory, descriptors, what its event loop waits for, listeners, fibers, children. And whether it
 * becomes more.
 */
import { Metric } from "effect"
import { getEventListeners } from "node:events"
import { readdirSync, readFileSync } from "node:fs"

/** One look at everything, by name. */
export type Levels = Readonly<Record<string, number>>

export interface Sample {
  readonly minutes: number
  readonly levels: Levels
}

/** Counts the fibers of what it is provided to. */
export class Fibers {
  alive = 0
  /** In all. */
  started = 0
  readonly service: Metric.FiberRuntimeMetricsService = {
    recordFiberStart: () => {
      this.alive++
      this.started++
    },
    recordFiberEnd: () => void this.alive--
  }
}

/** Everything but the heap, which wants a garbage collection first. */
export const levels = (fibers: Fibers, signal: AbortSignal): Levels => {
  const waiting = process.getActiveResourcesInfo()
  const count = (name: RegExp) => waiting.filter((resource) => name.test(resource)).length
  return {
    descriptors: readdirSync("/proc/self/fd").length,
    timers: count(/^(Timeout|Immediate)$/),
    sockets: count(/^(TCP|TLS)/),
    "other resources": count(/^(?!Timeout|Immediate|TCP|TLS)/),
    "listeners of the process": process
      .eventNames()
      .reduce((sum, name) => sum + process.listenerCount(name), 0),
    "listeners of the signal": getEventListeners(signal, "abort").length,
    fibers: fibers.alive,
    children: (readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").match(/\d+/g) ?? []).length
  }
}

/** What is measured before this share of the time is warming up: code is being compiled, pools are being filled. */
const warmUp = 0.25

export interface Trend {
  readonly name: string
  /** Mean after the warm-up. */
  readonly level: number
  /** By how much it changes in the whole time, as a share of the level; by least squares. */
  readonly drift: number
}

export const trends = (samples: ReadonlyArray<Sample>): ReadonlyArray<Trend> => {
  const total = samples.at(-1)?.minutes ?? 0
  const kept = samples.filter(({ minutes }) => minutes >= total * warmUp)
  return Object.keys(kept[0]?.levels ?? {}).map((name) => {
    const points = kept.map(({ levels, minutes }) => ({ x: minutes, y: levels[name] ?? 0 }))
    const level = mean(points.map(({ y }) => y))
    return { name, level, drift: (slope(points) * total) / Math.max(1, level) }
  })
}

const slope = (points: ReadonlyArray<{ readonly x: number; readonly y: number }>): number => {
  const middle = { x: mean(points.map(({ x }) => x)), y: mean(points.map(({ y }) => y)) }
  const spread = mean(points.map(({ x }) => (x - middle.x) ** 2))
  return spread === 0 ? 0 : mean(points.map(({ x, y }) => (x - middle.x) * (y - middle.y))) / spread
}

const mean = (values: ReadonlyArray<number>): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length
