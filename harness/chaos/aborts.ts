/**
 * Runs over real connections, in all four languages, that are aborted at random moments: the run ends at once, its socket
 * is closed, nothing is left behind, and the next request is one that a vendor takes.
 */
import { Effect, Fiber, Latch, Logger, type Scope, Stream } from "effect"
import type { Agent } from "effect-agent"
import { createServer, type ServerResponse } from "node:http"
import { agentAt, looking } from "../../test/faults/talking.ts"
import { faults, type Wire, wires } from "../../test/faults/wires.ts"
import { at, enough, listed, megabytes, millis, strayFailures } from "./cancel.ts"
import type { Chaos, Options, Outcome } from "./Chaos.ts"
import type { Sample } from "./Heap.ts"
import * as Heap from "./Heap.ts"
import { Random } from "./Random.ts"

export const aborts: Chaos = {
  count: 10_000,
  run: (options) => Effect.scoped(run(options)).pipe(Effect.provide(Logger.layer([])))
}

const samples = 20
const concurrency = 16
/** Milliseconds from an abort to the end of its run: of all but one in a hundred, and of any. */
const usually = 250
const slowest = 1_000
/** Bytes per round the heap may grow by: less than one request. */
const flat = 500

const run = Effect.fnUntraced(function* ({
  count,
  say,
  seed
}: Options): Effect.fn.Return<Outcome, never, Scope.Scope> {
  const before = resources()
  const stray = yield* strayFailures
  const tally = new Tally()
  const heap: Array<Sample> = []
  const servers = yield* Effect.forEach(wires, (wire) => serve(wire, new Random(seed), tally))
  const size = Math.max(100, Math.ceil(count / samples))
  for (let from = 0; from < count; from += size) {
    const seeds = Array.from({ length: Math.min(size, count - from) }, (_, index) => seed + from + index)
    yield* Effect.forEach(seeds, (each) => round(each, servers, tally), { concurrency, discard: true })
    heap.push(yield* Heap.sample(from + seeds.length))
    say(`${from + seeds.length} rounds, heap ${megabytes(heap.at(-1)?.bytes ?? 0)}`)
  }
  const left = () => servers.reduce((sum, { asked }) => sum + asked.size, 0)
  yield* settled(() => left() === 0)
  const open = left()
  const unused = servers.reduce((sum, { sockets }) => sum + sockets.size, -open)
  for (const { close } of servers) close()
  yield* settled(() => grown(before).length === 0)
  return judge({ tally, heap, stray, open, unused, leaks: grown(before) })
})

/** What came of the rounds, in numbers. */
class Tally {
  readonly ways = new Map<string, number>()
  readonly ends = new Map<string, number>()
  readonly latencies: Array<number> = []
  readonly violations: Array<string> = []
  requests = 0

  count(map: Map<string, number>, key: string): void {
    map.set(key, (map.get(key) ?? 0) + 1)
  }
}

// ───────────────────────── The server

interface Server {
  readonly wire: Wire
  readonly baseUrl: string
  readonly sockets: ReadonlySet<object>
  /** Those of them over which something was asked. */
  readonly asked: ReadonlySet<object>
  readonly close: () => void
}

/** Answers at a random pace, sometimes never, and looks at what it is asked. Whole answers close their connection. */
const serve = (wire: Wire, random: Random, tally: Tally): Effect.Effect<Server, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const sockets = new Set<object>()
      const asked = new Set<object>()
      const server = createServer((request, response) => {
        asked.add(request.socket)
        const chunks: Array<Buffer> = []
        request.on("data", (chunk) => chunks.push(chunk))
        request.on("end", () => {
          const body = Buffer.concat(chunks).toString()
          tally.requests++
          tally.violations.push(...faults(wire, body).map((fault) => `${wire.name}: ${fault}`))
          response.setHeader("connection", "close")
          void tell(response, eventsFor(wire, body), body.includes("go on") ? undefined : random)
        })
      })
      server.on("connection", (socket) => {
        sockets.add(socket)
        socket.on("error", () => {})
        socket.on("close", () => {
          sockets.delete(socket)
          asked.delete(socket)
        })
      })
      const close = () => {
        server.closeAllConnections()
        server.close()
      }
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" ? address?.port : undefined
        resume(Effect.succeed({ wire, baseUrl: `http://127.0.0.1:${port}/v1`, sockets, asked, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

const calls = [1, 2].map((n) => ({ id: `call_${n}`, name: "look", args: JSON.stringify({ n }) }))

const eventsFor = (wire: Wire, body: string): ReadonlyArray<string> => {
  const turns = wire.turns(JSON.parse(body))
  const isLast = body.includes("go on") || turns.some(({ by }) => by === "tools")
  return wire.answer(isLast ? { text: ["That", " is", " it."] } : { text: ["Let", " me"], calls })
}

/** Without dice it answers at once. */
const tell = async (response: ServerResponse, events: ReadonlyArray<string>, random: Random | undefined) => {
  const pause = () => new Promise<void>((wake) => setTimeout(wake, random?.upTo(3)))
  for (const event of events) {
    if (random?.once(3) === true) await pause()
    // Nobody there any more, or nobody here.
    if (response.destroyed || random?.once(60) === true) return
    if (!response.headersSent) response.writeHead(200, { "content-type": "text/event-stream" })
    response.write(event)
  }
  response.end()
}

// ───────────────────────── One round

const ways = ["cancel", "interrupt a prompt", "interrupt a stream", "leave a stream"] as const

/** Again and again until a run is aborted that would have gone on. */
const round = (seed: number, servers: ReadonlyArray<Server>, tally: Tally): Effect.Effect<void> =>
  Effect.suspend(() => {
    const random = new Random(seed)
    const once = Effect.scoped(aborted(seed, random, servers, tally))
    return Effect.asVoid(Effect.repeat(once, { until: (isAborted) => isAborted, times: 20 }))
  })

const aborted = Effect.fnUntraced(function* (
  seed: number,
  random: Random,
  [first, ...others]: ReadonlyArray<Server>,
  tally: Tally
): Effect.fn.Return<boolean, never, Scope.Scope> {
  if (first === undefined) return true
  const { baseUrl, wire } = random.pick(first, ...others)
  const [cancel, ...rest] = ways
  const way = random.pick(cancel, ...rest)
  const agent = yield* agentAt(wire, baseUrl, { tools: [looking] }).pipe(Effect.orDie)
  let status = "gone on"
  const events = yield* Effect.forkScoped(
    Stream.runForEach(agent.events, (event) =>
      Effect.sync(() => {
        if (event._tag === "RunEnd" && status === "gone on") status = event.status
      })
    ),
    { startImmediately: true }
  )
  const moment = yield* momentOf(agent, random)
  const started = yield* Effect.forkChild(Effect.exit(ask(agent, way, random)))
  yield* Effect.raceFirst(moment, Fiber.await(started))
  const begun = performance.now()
  // A run that has not begun is not cancelled, and would go on for as long as the server says nothing.
  const isRunning = agent.state.getUnsafe().phase !== "idle"
  yield* way === "cancel" && isRunning ? agent.cancel("enough") : Fiber.interrupt(started)
  yield* Fiber.await(started)
  yield* agent.waitForIdle
  const took = performance.now() - begun
  const next = yield* Effect.exit(agent.prompt("go on"))
  const answered = next._tag === "Success" ? next.value.status : String(next.cause)
  if (answered !== "completed") tally.violations.push(`seed ${seed}, ${way}: the next prompt ${answered}`)
  yield* Fiber.interrupt(events)
  if (status === "cancelled") tally.latencies.push(took)
  tally.count(tally.ways, way)
  tally.count(tally.ends, status)
  return status === "cancelled"
})

const ask = (agent: Agent.Agent, way: (typeof ways)[number], random: Random) => {
  switch (way) {
    case "interrupt a stream":
      return Stream.runDrain(agent.stream("hi"))
    case "leave a stream":
      return agent.stream("hi").pipe(Stream.take(1 + random.upTo(45)), Stream.runDrain)
    default:
      return agent.prompt("hi")
  }
}

/** A moment nobody planned for: after some time, some turns of the scheduler, or some events. */
const momentOf = (
  agent: Agent.Agent,
  random: Random
): Effect.Effect<Effect.Effect<void>, never, Scope.Scope> => {
  switch (random.upTo(2)) {
    case 0:
      return Effect.succeed(Effect.sleep(random.upTo(15)))
    case 1:
      return Effect.succeed(Effect.asVoid(Effect.repeat(Effect.yieldNow, { times: random.upTo(200) })))
    default: {
      const reached = Latch.makeUnsafe(false)
      let left = random.upTo(45)
      const heard = agent.subscribe(() => (left-- === 0 ? reached.open : Effect.void))
      // Where the server says no more, an event may never come.
      return Effect.as(heard, Effect.asVoid(Effect.timeoutOption(reached.await, 100)))
    }
  }
}

// ───────────────────────── What is left

/** What keeps the process alive, and who listens to it, by kind. */
const resources = (): ReadonlyMap<string, number> => {
  const found = new Map<string, number>()
  for (const kind of process.getActiveResourcesInfo()) found.set(kind, (found.get(kind) ?? 0) + 1)
  for (const event of process.eventNames()) {
    // Those of this very run.
    if (event === "unhandledRejection" || event === "uncaughtException") continue
    found.set(`listeners of ${String(event)}`, process.listenerCount(event))
  }
  return found
}

const grown = (before: ReadonlyMap<string, number>): ReadonlyArray<string> =>
  [...resources()].flatMap(([kind, count]) => {
    const more = count - (before.get(kind) ?? 0)
    // Something waits here for the rest to go.
    return more > (kind === "Timeout" ? 1 : 0) ? [`${more} more of ${kind}`] : []
  })

/** Waits a second at most. */
const settled = (holds: () => boolean) =>
  Effect.repeat(Effect.sleep(10), { while: () => !holds(), times: 100 })

interface Found {
  readonly tally: Tally
  readonly heap: ReadonlyArray<Sample>
  readonly stray: ReadonlyArray<string>
  readonly open: number
  readonly unused: number
  readonly leaks: ReadonlyArray<string>
}

const judge = ({ heap, leaks, open, stray, tally, unused }: Found): Outcome => {
  const latencies = tally.latencies.toSorted((left, right) => left - right)
  const p99 = at(latencies, 0.99)
  const max = latencies.at(-1) ?? 0
  const slope = Heap.slope(heap)
  const last = heap.at(-1) ?? { rounds: 0, bytes: 0 }
  return {
    figures: {
      ways: listed(tally.ways),
      ends: listed(tally.ends),
      requests: tally.requests,
      "abort to end": `p50 ${millis(at(latencies, 0.5))}, p99 ${millis(p99)}, max ${millis(max)}`,
      heap: `${megabytes(heap[0]?.bytes ?? 0)} first, ${megabytes(last.bytes)} last, ${slope.toFixed(1)} bytes per round`,
      "open sockets": `${open}, and ${unused} that fetch opened and keeps for a next request`,
      left: leaks.length,
      unhandled: stray.length
    },
    violations: [
      ...tally.violations,
      ...stray,
      ...leaks,
      ...(open === 0 ? [] : [`${open} sockets are open a second after`]),
      ...(unused <= concurrency * wires.length ? [] : [`fetch keeps ${unused} sockets`]),
      ...(p99 > usually ? [`one in a hundred aborts took ${millis(p99)}`] : []),
      ...(max > slowest ? [`an abort took ${millis(max)}`] : []),
      ...(last.rounds >= enough && slope > flat
        ? [`the heap grows by ${slope.toFixed(1)} bytes per round`]
        : [])
    ]
  }
}
