/** A run that waits for a person, and whose process lets go of it. */
import { Deferred, Effect, Layer } from "effect"
import { Tool } from "effect-agent"
import { RunLogStore, Runs } from "effect-agent/server"
import { MemorySessionStore, SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import { layer } from "./host.ts"
import { type Make, session } from "./runsContract.ts"

const remove = Tool.make({ name: "remove", description: "x", execute: () => Effect.succeed("removed") })
const script = [
  ScriptedProvider.toolCall("remove", {}),
  ...Array.from({ length: 3 }, () => ScriptedProvider.text("done"))
]

/** A run that waits for an approval, whose session takes no write while `state.isSlow`, until the gate is open. */
export const asking = Effect.fnUntraced(function* (make: Make = layer) {
  const gate = yield* Deferred.make<void>()
  const state = { isSlow: false }
  const sessions = SessionStore.make(MemorySessionStore.storage())
  const slow = (session: SessionStore.OpenSession): SessionStore.OpenSession => ({
    ...session,
    get restored() {
      return session.restored
    },
    record: (records) =>
      Effect.suspend(() =>
        Effect.andThen(state.isSlow ? Deferred.await(gate) : Effect.void, session.record(records))
      )
  })
  const places = Layer.merge(
    Layer.succeed(SessionStore.SessionStore, {
      ...sessions,
      create: (made) => Effect.map(sessions.create(made), slow),
      open: (id) => Effect.map(sessions.open(id), slow)
    }),
    RunLogStore.layerMemory
  )
  const context = yield* Layer.build(make(script, { tools: [remove], needsApproval: ["remove"] }, places))
  return yield* Effect.gen(function* () {
    const runs = yield* Runs.Runs
    const { runId } = yield* runs.start({ sessionId: yield* session, prompt: "Go" })
    const { pending } = yield* Effect.repeat(Effect.tap(runs.get(runId), Effect.yieldNow), {
      until: ({ pending }) => pending.approvals.length > 0
    })
    const { approvalId = "", argumentsHash = "" } = pending.approvals[0] ?? {}
    const approve = runs.approve(runId, approvalId, { decision: "approve", argumentsHash })
    return { approve, context, gate, runId, runs, state }
  }).pipe(Effect.provideContext(context))
})
