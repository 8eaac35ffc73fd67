/**
 * The side of the server as a process of its own: the server as `serve` has it, or the same runs with their readers in process.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, Redacted, Stream } from "effect"
import { Agent } from "effect-agent"
import { Agents, JsonlRunLogStore, LiveRuns, Server } from "effect-agent/server"
import { JsonlSessionStore, SessionStore } from "effect-agent/sessions"
import { HttpServer } from "effect/http"
import { createServer } from "node:http"
import { join } from "node:path"
import * as Serving from "../../../src/cli/commands/Serving.ts"
import { Random } from "../Random.ts"
import * as Gauge from "./Gauge.ts"
import { Paced } from "./Paced.ts"
import { type Answer, token } from "./Wire.ts"

export interface Plan extends Answer {
  readonly seed: number
  readonly folder: string
  /** The runs that are read in process. Default: a server has them. */
  readonly inProcess?: number
}

/** The messages of the parent. */
export type Order = { readonly _tag: "Plan"; readonly plan: Plan } | { readonly _tag: "Go" | "Read" }

export type Report =
  | { readonly _tag: "Listening"; readonly port: number }
  | { readonly _tag: "Ready" }
  | { readonly _tag: "Over" }
  | ({ readonly _tag: "Reading"; readonly sent: number } & Gauge.Reading)

const report = (message: Report) => Effect.sync(() => void process.send?.(message))

const storesIn = (folder: string) =>
  Layer.mergeAll(
    JsonlSessionStore.layer({ directory: join(folder, "sessions") }),
    JsonlRunLogStore.layer({ directory: join(folder, "runs") })
  ).pipe(Layer.provide(NodeServices.layer))

/** The longest time by which an answer begins after another one, in milliseconds. */
const spread = 1000

const serve = (folder: string, paced: Paced) => {
  const agents = Agents.layer(({ session }) => Agent.make({ model: "paced", session }))
  const runs = LiveRuns.layer().pipe(Layer.provide([agents, storesIn(folder)]), Layer.provide(paced.layer))
  const node = NodeHttpServer.layer(() => createServer(), { host: "127.0.0.1", port: 0 })
  const listening = Layer.effectDiscard(
    HttpServer.HttpServer.use(({ address }) =>
      report({ _tag: "Listening", port: "port" in address ? address.port : 0 })
    )
  )
  return listening.pipe(
    Layer.provideMerge(Server.layer({ tokens: [Redacted.make(token)], grace: 0 })),
    Layer.provide(node),
    Layer.provide(runs),
    Layer.launch
  )
}

const readInProcess = (count: number, folder: string, paced: Paced) =>
  Effect.gen(function* () {
    const { create } = yield* SessionStore.SessionStore
    const agents = yield* Effect.forEach(Array.from({ length: count }), () =>
      Effect.flatMap(create({}), (session) => Agent.make({ model: "paced", session }))
    )
    yield* report({ _tag: "Ready" })
    yield* Effect.forEach(agents, (agent) => Stream.runForEach(agent.stream("Speak."), () => Effect.void), {
      concurrency: "unbounded",
      discard: true
    })
    yield* report({ _tag: "Over" })
    return yield* Effect.never
  }).pipe(Effect.provide([storesIn(folder), paced.layer]), Effect.scoped)

const main = ({ folder, inProcess, seed, ...answer }: Plan) => {
  const random = new Random(seed)
  const paced = new Paced(answer, () => random.upTo(spread))
  process.on("message", ({ _tag }: Order) => {
    if (_tag === "Go") {
      Gauge.reset()
      paced.gate.openUnsafe()
    }
    if (_tag === "Read")
      process.send?.({ _tag: "Reading", sent: paced.sent, ...Gauge.read() } satisfies Report)
  })
  const runs =
    inProcess === undefined
      ? Effect.orDie(serve(folder, paced))
      : Effect.orDie(readInProcess(inProcess, folder, paced))
  return Effect.andThen(Serving.keepLow, Effect.asVoid(runs))
}

process.once("message", (order: Order) => {
  if (order._tag === "Plan") Effect.runFork(main(order.plan))
})
// The parent may die without a signal for this process.
process.on("disconnect", () => process.exit(1))
