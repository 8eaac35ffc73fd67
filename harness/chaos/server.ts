/**
 * A server under load, in a process of its own, over real HTTP: 500 runs with 50 deltas a second each, and a watcher for each in another
 * process, which checks positions, numbers and text. Then one run with 100 watchers of which 50 never read, with so much text that the
 * system cannot keep it for them. Then the same runs read in process, which tells what the server adds.
 */
import { Effect } from "effect"
import type { Chaos, Options, Outcome } from "./Chaos.ts"
import * as Load from "./server/Load.ts"

export const server: Chaos = { count: 500, unit: "runs", run: (options) => run(options) }

const megabyte = 1024 * 1024
/** The letters of a delta: a token. */
const token = 6
/** The bytes of the text that silent watchers do not read. */
const flood = 16 * megabyte

const bars = {
  /** Bytes of memory of the server. */
  rss: 512 * megabyte,
  /** Milliseconds. */
  lag: 100,
  /** Milliseconds until a watcher has a delta, beside silent ones. */
  latency: 250,
  /** Times the CPU of the same runs in process. */
  ratio: 2
}

/** `share` is that of the rate that must be reached. */
const run = Effect.fnUntraced(function* ({ count, say, seconds = 60, seed }: Options) {
  const many: Load.Load = { seed, runs: count, seconds, fill: token, watchers: 1, silent: 0 }
  const first = yield* Load.overHttp(many)
  say(`${count} runs: ${told(first)}`)
  const watchers = Math.max(1, Math.min(50, Math.round(count / 10)))
  const fill = Math.round(flood / (seconds * 50))
  const silent = { ...many, runs: 1, fill, watchers, silent: watchers }
  const second = yield* Load.overHttp(silent)
  say(`${watchers} silent watchers of ${2 * watchers}: ${told(second)}`)
  const alone = yield* Load.inProcess(many)
  return judge({ first, second, alone, count, watchers })
})

interface All {
  readonly first: Load.Measured
  readonly second: Load.Measured
  readonly alone: number
  readonly count: number
  readonly watchers: number
}

const told = ({ clients, cpu, events, latency, sent, server }: Load.Measured): string =>
  [
    `${Math.round(events)} events/s of ${Math.round(sent)} deltas/s`,
    `latency p50 ${latency.p50} ms, p99 ${latency.p99} ms`,
    `server ${cpu.server.toFixed(1)} µs/delta, ${megabytes(server.rss)}, lag p50 ${server.lag.p50.toFixed(0)} p99 ${server.lag.p99.toFixed(0)} max ${server.lag.max.toFixed(0)} ms`,
    `clients ${cpu.clients.toFixed(1)} µs/delta, ${megabytes(clients.rss)}, lag p99 ${clients.lag.p99.toFixed(0)} ms`
  ].join("; ")

const megabytes = (bytes: number): string => `${Math.round(bytes / megabyte)} MB`

const judge = ({ alone, count, first, second, watchers }: All): Outcome => {
  const ratio = first.cpu.server / alone
  const over = (name: string, value: number, most: number) =>
    value <= most ? [] : [`${name}: ${value.toFixed(1)}, and at most ${most}`]
  const under = (name: string, value: number, least: number) =>
    value >= least ? [] : [`${name}: ${value.toFixed(0)}, and at least ${least}`]
  return {
    figures: {
      "events/s": Math.round(first.events),
      "server's memory": megabytes(first.server.rss),
      "server's event loop delay p99": `${first.server.lag.p99.toFixed(0)} ms`,
      "server's CPU for a delta": `${first.cpu.server.toFixed(1)} µs`,
      "clients' CPU for a delta": `${first.cpu.clients.toFixed(1)} µs`,
      "CPU for a delta in process": `${alone.toFixed(1)} µs`,
      "server over in process": ratio.toFixed(2),
      "latency p99 beside silent watchers": `${second.latency.p99} ms`,
      "memory with silent watchers": megabytes(second.server.rss)
    },
    violations: [
      ...first.broken,
      ...second.broken,
      ...under("events/s", first.events, count * 50 * 0.98),
      ...under("events/s beside silent watchers", second.events, watchers * 50 * 0.98),
      ...over("bytes of the server", first.server.rss, bars.rss),
      ...over("bytes of the server with silent watchers", second.server.rss, bars.rss),
      ...over("event loop delay p99", first.server.lag.p99, bars.lag),
      ...over("latency p99 beside silent watchers", second.latency.p99, bars.latency),
      ...over("server over in process", ratio, bars.ratio)
    ]
  }
}
