/** effect-agent: `DurableRuns`, a cluster of one process on SQLite and a worker on PostgreSQL. */
import { Effect, Layer, ManagedRuntime, Redacted, Schema, Stream } from "effect"
import { Agent, Approval, Tool } from "effect-agent"
import { Cluster, DurableRuns } from "effect-agent/durable"
import { NodeHttp } from "effect-agent/node"
import * as NodeCluster from "effect-agent/node/NodeCluster"
import { OpenAiCompatible } from "effect-agent/providers"
import { Agents, Runs } from "effect-agent/server"
import * as Stores from "../../chaos/durable/stores.ts"
import type { Durable, Setup } from "./Adapter.ts"

const tick = Tool.make({
  name: "tick",
  description: "The tick tool",
  params: Schema.Struct({ n: Schema.Int }),
  execute: ({ n }) => Effect.succeed(`${n} ${"x".repeat(1000)}`)
})

const runsOf = ({ asks, baseURL, model, port, url }: Setup) => {
  const provider = OpenAiCompatible.layer({ id: "bench", baseUrl: baseURL, apiKey: Redacted.make("x") })
  const policy = Approval.layer({
    rules: asks ? [Approval.ask("tick")] : [],
    otherwise: "allow",
    asked: "wait"
  })
  const agents = Agents.layer(({ session }) =>
    Agent.make({
      model,
      session,
      system: "You are a helpful agent.",
      tools: [tick],
      limits: { maxTurns: 1000, maxIdenticalToolCalls: Infinity }
    })
  ).pipe(Layer.provide([provider.pipe(Layer.provide(NodeHttp.layer)), policy]))
  const cluster = url.startsWith("sqlite:") ? Cluster.embedded() : NodeCluster.worker({ port })
  return DurableRuns.layer().pipe(
    Layer.provideMerge(DurableRuns.worker()),
    Layer.provide([agents, Layer.provideMerge(cluster, Stores.layer(url))])
  )
}

export const open = async (setup: Setup): Promise<Durable> => {
  const runtime = ManagedRuntime.make(runsOf(setup))
  const runs = await runtime.runPromise(Runs.Runs)
  const begin = (sessionId: string) =>
    Effect.andThen(runs.sessions.create({ sessionId }), runs.start({ sessionId, prompt: "Go." }))
  const over = (runId: string) => Stream.runDrain(Stream.unwrap(runs.events(runId, Number.MAX_SAFE_INTEGER)))
  const waits = (runId: string) =>
    Stream.runDrain(
      Stream.takeUntil(
        Stream.unwrap(runs.events(runId, 0)),
        ({ event }) => event._tag === "ApprovalRequested"
      )
    )
  const approved = Effect.fnUntraced(function* (sessionId: string) {
    for (const { pending, runId } of yield* runs.list(sessionId)) {
      for (const { approvalId, argumentsHash } of pending.approvals)
        yield* runs.approve(runId, approvalId, { decision: "approve", argumentsHash })
      yield* over(runId)
    }
  })
  return {
    run: (id) => runtime.runPromise(Effect.flatMap(begin(id), ({ runId }) => over(runId))),
    hold: (id) => runtime.runPromise(Effect.flatMap(begin(id), ({ runId }) => waits(runId))),
    approve: (id) => runtime.runPromise(approved(id))
  }
}
