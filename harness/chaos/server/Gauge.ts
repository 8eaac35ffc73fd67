/**
 * What a process uses: its CPU, its memory and the delay of its event loop.
 */
import { monitorEventLoopDelay } from "node:perf_hooks"

export interface Reading {
  /** Microseconds of CPU since the process began, of all its threads. */
  readonly cpu: number
  /** The most bytes of memory so far. */
  readonly rss: number
  /** Milliseconds of delay of the event loop since `reset`, the resolution of 10 included. */
  readonly lag: { readonly p50: number; readonly p99: number; readonly max: number }
}

const delay = monitorEventLoopDelay({ resolution: 10 })

export const reset = (): void => {
  delay.enable()
  delay.reset()
}

export const read = (): Reading => {
  const { system, user } = process.cpuUsage()
  const millis = (nanos: number) => nanos / 1e6
  return {
    cpu: user + system,
    rss: process.resourceUsage().maxRSS * 1024,
    lag: {
      p50: millis(delay.percentile(50)),
      p99: millis(delay.percentile(99)),
      max: millis(delay.max)
    }
  }
}
