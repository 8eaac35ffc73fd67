/**
 * One load: a process that has the runs, a process that has their watchers, and what both use.
 */
import { Effect } from "effect"
import { type ChildProcess, fork } from "node:child_process"
import * as Bundled from "../Bundled.ts"
import type * as Gauge from "./Gauge.ts"
import { interval } from "./Wire.ts"
import type * as Served from "./served.ts"
import type * as Watchers from "./watchers.ts"

export interface Load {
  readonly seed: number
  readonly runs: number
  /** The seconds of each run. */
  readonly seconds: number
  /** The letters of each delta. */
  readonly fill: number
  /** The watchers of each run that read, and those that never do. */
  readonly watchers: number
  readonly silent: number
}

export interface Measured {
  /** Problems of what the watchers read. */
  readonly broken: ReadonlyArray<string>
  /** Deltas a second that the provider gave while all runs streamed. */
  readonly sent: number
  /** Events a second that all watchers read meanwhile. */
  readonly events: number
  /** Microseconds of CPU for a delta. */
  readonly cpu: { readonly server: number; readonly clients: number }
  readonly latency: { readonly p50: number; readonly p99: number }
  readonly server: Pick<Gauge.Reading, "lag" | "rss">
  readonly clients: Pick<Gauge.Reading, "lag" | "rss">
}

/** Seconds until all runs stream and are compiled, and seconds before the first one ends. */
const warmUp = 2

/** A process that takes orders and gives reports. */
class Peer<Order extends object, Report extends { readonly _tag: string }> {
  private readonly child: ChildProcess

  constructor(child: ChildProcess) {
    this.child = child
  }

  send(order: Order): void {
    this.child.send(order)
  }

  next<Tag extends Report["_tag"]>(tag: Tag): Promise<Extract<Report, { readonly _tag: Tag }>> {
    return new Promise((resolve, reject) => {
      const ended = () => reject(new Error(`ended before ${tag}`))
      const listen = (report: Report) => {
        if (report._tag !== tag) return
        this.child.off("message", listen).off("exit", ended)
        resolve(report as Extract<Report, { readonly _tag: Tag }>)
      }
      this.child.on("message", listen).on("exit", ended)
    })
  }

  ask<Tag extends Report["_tag"]>(order: Order, tag: Tag) {
    const next = this.next(tag)
    this.send(order)
    return next
  }
}

/** `LOAD_NODE_FLAGS` profiles: `--cpu-prof --cpu-prof-dir=/tmp/profiles`. */
const flags = (process.env["LOAD_NODE_FLAGS"] ?? "").split(" ").filter((flag) => flag !== "")

const peer = <Order extends object, Report extends { readonly _tag: string }>(
  name: string,
  home: string,
  execArgv: ReadonlyArray<string> = []
) =>
  Effect.acquireRelease(
    Effect.map(Bundled.make(`server/${name}.ts`, home), (file) => fork(file, { execArgv: [...execArgv] })),
    (child) =>
      Effect.promise(
        () =>
          new Promise<void>((resolve) => {
            if (child.exitCode !== null || child.signalCode !== null) return resolve()
            child.once("exit", () => resolve())
            // A profile is written at an exit, not at a signal.
            if (child.connected) child.disconnect()
            else child.kill("SIGKILL")
          })
      )
  ).pipe(Effect.map((child) => new Peer<Order, Report>(child)))

const pause = (seconds: number) => new Promise<void>((resolve) => setTimeout(resolve, seconds * 1000))

/** The runs over HTTP, with their watchers. */
export const overHttp = (load: Load): Effect.Effect<Measured> =>
  Effect.gen(function* () {
    const home = yield* Bundled.folder("load")
    const server = yield* peer<Served.Order, Served.Report>("served", home, flags)
    const clients = yield* peer<Watchers.Order, Watchers.Report>("watchers", home)
    const plan = planOf(load, home)
    return yield* Effect.promise(async (): Promise<Measured> => {
      const { port } = await server.ask({ _tag: "Plan", plan }, "Listening")
      const { fill, pieces } = plan
      const { runs, silent, watchers } = load
      await clients.ask({ _tag: "Plan", plan: { port, fill, pieces, runs, silent, watchers } }, "Following")
      const over = clients.next("Over")
      server.send({ _tag: "Go" })
      const read = async () => ({
        at: performance.now(),
        server: await server.ask({ _tag: "Read" }, "Reading"),
        clients: await clients.ask({ _tag: "Read" }, "Reading")
      })
      await pause(warmUp)
      const first = await read()
      await pause(load.seconds - warmUp - 0.5)
      const second = await read()
      const { broken } = await over
      const last = await read()
      const seconds = (second.at - first.at) / 1000
      const deltas = second.server.sent - first.server.sent
      return {
        broken,
        sent: deltas / seconds,
        events: (second.clients.events - first.clients.events) / seconds,
        cpu: {
          server: (second.server.cpu - first.server.cpu) / deltas,
          clients: (second.clients.cpu - first.clients.cpu) / deltas
        },
        latency: last.clients.latency,
        server: last.server,
        clients: last.clients
      }
    })
  }).pipe(Effect.scoped)

/** Microseconds of CPU for a delta of the same runs, read in process. */
export const inProcess = (load: Load): Effect.Effect<number> =>
  Effect.gen(function* () {
    const home = yield* Bundled.folder("load")
    const runs = yield* peer<Served.Order, Served.Report>("served", home, flags)
    const plan = { ...planOf(load, home), inProcess: load.runs }
    return yield* Effect.promise(async () => {
      await runs.ask({ _tag: "Plan", plan }, "Ready")
      await pause(0.5)
      const over = runs.next("Over")
      runs.send({ _tag: "Go" })
      await pause(warmUp)
      const first = await runs.ask({ _tag: "Read" }, "Reading")
      await pause(load.seconds - warmUp - 0.5)
      const second = await runs.ask({ _tag: "Read" }, "Reading")
      await over
      return (second.cpu - first.cpu) / (second.sent - first.sent)
    })
  }).pipe(Effect.scoped)

const planOf = ({ fill, seconds, seed }: Load, folder: string) => ({
  seed,
  folder,
  fill,
  pieces: Math.round((seconds * 1000) / interval)
})
