/**
 * The side of the clients as a process of its own: it starts runs, and follows each with watchers, some of which never read.
 */
import { Agent, request } from "node:http"
import { connect } from "node:net"
import { Frames, Latencies, wholeOf } from "./Frames.ts"
import * as Gauge from "./Gauge.ts"
import { type Answer, token } from "./Wire.ts"

export interface Plan extends Answer {
  readonly port: number
  readonly runs: number
  /** The watchers of each run that read. */
  readonly watchers: number
  /** The watchers of each run that never read. */
  readonly silent: number
}

/** The messages of the parent. */
export type Order = { readonly _tag: "Plan"; readonly plan: Plan } | { readonly _tag: "Read" }

export type Report =
  /** Each watcher has its response. */
  | { readonly _tag: "Following" }
  /** Each watcher that reads is at its end. */
  | { readonly _tag: "Over"; readonly broken: ReadonlyArray<string> }
  | ({
      readonly _tag: "Reading"
      /** The events of all watchers so far. */
      readonly events: number
      /** Milliseconds from the time of a delta to its reading. */
      readonly latency: { readonly p50: number; readonly p99: number }
    } & Gauge.Reading)

const report = (message: Report): void => void process.send?.(message)

/** Requests at a time, while runs are started. */
const lanes = 8

const headers = { authorization: `Bearer ${token}` }
const agent = new Agent({ keepAlive: true, maxSockets: lanes })

const post = (port: number, path: string, body: object) =>
  new Promise<string>((resolve, reject) => {
    const sent = request(
      {
        host: "127.0.0.1",
        port,
        path,
        method: "POST",
        agent,
        headers: { ...headers, "content-type": "application/json" }
      },
      (response) => {
        let text = ""
        response.setEncoding("utf8")
        response.on("data", (chunk: string) => (text += chunk))
        response.on("end", () =>
          response.statusCode === 201
            ? resolve(text)
            : reject(new Error(`${path}: ${response.statusCode} ${text}`))
        )
      }
    )
    sent.on("error", reject).end(JSON.stringify(body))
  })

/** Follows a run. Resolves when the response has begun; `over` when it has ended. */
const follow = (port: number, path: string, frames: Frames, over: () => void) =>
  new Promise<void>((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, agent: false, headers }, (response) => {
      if (response.statusCode !== 200) return reject(new Error(`${path}: ${response.statusCode}`))
      resolve()
      response.setEncoding("latin1")
      response.on("data", (text: string) => frames.take(text))
      const end = () => {
        frames.end()
        over()
      }
      response.once("close", end)
      response.on("error", () => {})
    })
    sent.on("error", reject).end()
  })

/** Asks for the events of a run, and never reads from the socket. */
const stare = (port: number, path: string) =>
  new Promise<void>((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port })
    socket.pause()
    socket.on("error", reject)
    socket.on("connect", () =>
      socket.write(
        `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: ${headers.authorization}\r\n\r\n`,
        () => resolve()
      )
    )
  })

class Watchers {
  private readonly frames: Array<Frames> = []
  private readonly latencies = new Latencies()
  private reading = 0
  private readonly plan: Plan

  constructor(plan: Plan) {
    this.plan = plan
  }

  async start(): Promise<void> {
    const { runs, silent, watchers } = this.plan
    this.reading = runs * watchers
    const whole = wholeOf(this.plan.pieces, this.plan.fill)
    let next = 0
    const lane = async () => {
      while (next < runs) {
        const sessionId = `s${next++}`
        const path = await this.run(sessionId)
        for (let at = 0; at < watchers; at++) await this.watch(path, whole)
        for (let at = 0; at < silent; at++) await stare(this.plan.port, path)
      }
    }
    await Promise.all(Array.from({ length: lanes }, lane))
    report({ _tag: "Following" })
  }

  private async run(sessionId: string): Promise<string> {
    const { port } = this.plan
    await post(port, "/sessions", { sessionId })
    const { runId } = JSON.parse(await post(port, `/sessions/${sessionId}/runs`, { prompt: "Speak." }))
    return `/runs/${runId}/events`
  }

  private watch(path: string, whole: string): Promise<void> {
    const frames = new Frames(whole, this.latencies)
    this.frames.push(frames)
    return follow(this.plan.port, path, frames, () => {
      if (--this.reading > 0) return
      report({ _tag: "Over", broken: this.frames.flatMap(({ broken }) => broken.slice(0, 3)) })
    })
  }

  read(): void {
    report({
      _tag: "Reading",
      events: this.frames.reduce((sum, { count }) => sum + count, 0),
      latency: { p50: this.latencies.percentile(0.5), p99: this.latencies.percentile(0.99) },
      ...Gauge.read()
    })
  }
}

process.once("message", (order: Order) => {
  if (order._tag !== "Plan") return
  Gauge.reset()
  const watchers = new Watchers(order.plan)
  process.on("message", ({ _tag }: Order) => {
    if (_tag === "Read") watchers.read()
  })
  watchers.start().catch((error: unknown) => {
    console.error(error)
    process.exit(1)
  })
})
process.on("disconnect", () => process.exit(1))
