import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Stream } from "effect"
import { Agent, Tool } from "effect-agent"
import { Agents, LiveRuns, RunLogStore, Runs } from "effect-agent/server"
import { MemorySessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"

const Tenant = Context.Reference<string>("test/Tenant", { defaultValue: () => "nobody" })

const who = Tool.make({ name: "who", description: "Says the tenant.", execute: () => Tenant })
const script = () =>
  ScriptedProvider.layer([
    ScriptedProvider.toolCall("who", {}),
    ({ messages }) => {
      const last = messages.at(-1)
      return ScriptedProvider.text(last?.role === "toolResult" ? JSON.stringify(last.content) : "none")
    }
  ])

/** Asks an agent of its own, for a tenant. */
const asking = Tool.make({
  name: "who",
  description: "Asks another agent.",
  execute: () =>
    Effect.gen(function* () {
      const helper = yield* Agent.make({ model: "m", tools: [who] })
      return (yield* helper.prompt("who?").pipe(Effect.provideService(Tenant, "the tool's"))).text
    }).pipe(Effect.scoped, Effect.provide(script()))
})

/** The answer of a run that a request with another tenant starts. */
const answerOf = (agents: Layer.Layer<Agents.Agents>) =>
  Effect.gen(function* () {
    const runs = yield* Runs.Runs
    yield* runs.sessions.create({ sessionId: "s" })
    const { runId } = yield* runs
      .start({ sessionId: "s", prompt: "who?" })
      .pipe(Effect.provideService(Tenant, "the request's"))
    const log = yield* Stream.runCollect(yield* runs.events(runId, 0))
    return log.flatMap(({ event }) =>
      event._tag === "MessageEnd" && event.message.role === "assistant"
        ? event.message.content.flatMap((block) => (block.type === "text" ? [block.text] : []))
        : []
    )[0]
  }).pipe(
    Effect.provide(
      LiveRuns.layer().pipe(Layer.provide([agents, MemorySessionStore.layer(), RunLogStore.layerMemory]))
    )
  )

describe("a tool of a run that a request starts sees", () => {
  const tenant = Layer.succeed(Tenant, "the application's")

  it.live("the services of the application", () =>
    Effect.gen(function* () {
      const layer = Agents.layer(({ session }) => Agent.make({ model: "m", tools: [who], session }))
      const made = yield* answerOf(layer.pipe(Layer.provide([tenant, script()])))
      assert.include(made, "the application's")
      const byHand = Layer.succeed(Agents.Agents, {
        make: ({ session }) =>
          Agent.make({ model: "m", tools: [who], session }).pipe(Effect.provide([tenant, script()]))
      })
      assert.include(yield* answerOf(byHand), "the application's")
    })
  )

  it.live("those that it gives to an agent of its own", () =>
    Effect.gen(function* () {
      const layer = Agents.layer(({ session }) => Agent.make({ model: "m", tools: [asking], session }))
      assert.include(yield* answerOf(layer.pipe(Layer.provide([tenant, script()]))), "the tool's")
    })
  )
})
