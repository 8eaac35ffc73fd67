/** Runs of a server on scripted providers. */
import { NodeServices } from "@effect/platform-node"
import { type Duration, Effect, Layer, Schema, Stream } from "effect"
import { Agent, Approval, Tool } from "effect-agent"
import { Agents, LiveRuns, RunLogStore, Runs } from "effect-agent/server"
import { MemorySessionStore, SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import type { Places } from "../../src/runs/Gate.ts"

export interface Setup {
  readonly tools?: ReadonlyArray<Tool.Runnable>
  readonly asked?: Approval.Asked
  readonly needsApproval?: ReadonlyArray<string>
  readonly options?: LiveRuns.Options
  readonly agent?: Partial<Agent.AgentOptions<ReadonlyArray<Tool.Runnable>, readonly []>>
  readonly idle?: Duration.Input
}

/** Stores that outlive a server. */
export const stores = Effect.gen(function* () {
  const sessions = SessionStore.make(MemorySessionStore.storage())
  const logs = yield* Effect.provide(RunLogStore.RunLogStore, RunLogStore.layerMemory)
  return Layer.mergeAll(
    Layer.succeed(SessionStore.SessionStore, sessions),
    Layer.succeed(RunLogStore.RunLogStore, logs)
  )
})

/** Places of runs of which there are enough, or none. */
export const placesOf = (isFull: () => boolean): Places => ({
  reserve: () => !isFull(),
  leave: () => {},
  enter: () => Effect.void
})

/** A server in this process. Its watchers do not wait for more. */
export const layer = (
  script: ScriptedProvider.Script,
  { agent = {}, asked = "wait", needsApproval = [], options = {}, tools = [] }: Setup = {},
  places: Layer.Layer<SessionStore.SessionStore | RunLogStore.RunLogStore> = Layer.mergeAll(
    MemorySessionStore.layer(),
    RunLogStore.layerMemory
  )
) => {
  const policy = Approval.layer({
    rules: needsApproval.map((name) => Approval.ask(name)),
    otherwise: "allow",
    asked
  })
  const agents = Agents.layer(({ session }) => Agent.make({ model: "any", tools, ...agent, session })).pipe(
    Layer.provide([ScriptedProvider.layer(script), policy])
  )
  return LiveRuns.layer({ flush: 0, ...options }).pipe(Layer.provide([agents, places]))
}

/** The events of a run from a position on, until its end. */
export const eventsOf = Effect.fnUntraced(function* (runId: string, after = 0) {
  const runs = yield* Runs.Runs
  return yield* Stream.runCollect(yield* runs.events(runId, after))
})

export const tagsOf = (events: ReadonlyArray<Runs.Positioned>) => events.map(({ event }) => event._tag)

/** A tool that waits until the effect completes. */
export const waiting = (name: string, until: Effect.Effect<unknown>) =>
  Tool.make({
    name,
    description: "Waits.",
    params: Schema.Struct({}),
    execute: () => Effect.as(until, "waited")
  })

export const services = NodeServices.layer
