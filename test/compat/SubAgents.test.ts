import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Agent, Tool } from "effect-agent"
import { Karl, OneRingEmitter, OneRingStream, Pi } from "effect-agent/compat"
import { ScriptedProvider } from "effect-agent/testing"
import { play } from "./recording.ts"

const ping = Tool.make({ name: "ping", description: "Answers.", execute: () => Effect.succeed("pong") })

const helper = Agent.asTool({
  name: "helper",
  description: "Helps.",
  agent: { model: "child", tools: [ping] }
})

const recording = Effect.gen(function* () {
  const agent = yield* Agent.make({ model: "m", tools: [helper] })
  const events = yield* Stream.runCollect(agent.stream("Go"))
  const own = events.filter(({ path }) => path === undefined)
  assert.isBelow(own.length, events.length)
  return { events, own }
}).pipe(
  Effect.scoped,
  Effect.provide(
    ScriptedProvider.layer([
      ScriptedProvider.toolCall("helper", { prompt: "Help" }),
      ScriptedProvider.toolCall("ping", {}),
      ScriptedProvider.text("inside"),
      ScriptedProvider.text("outside")
    ])
  )
)

describe("projections of a run with a sub-agent", () => {
  it.effect("show the run without the runs inside of it", () =>
    Effect.gen(function* () {
      const { events, own } = yield* recording
      assert.deepStrictEqual(play(Karl.initial, Karl.step, events), play(Karl.initial, Karl.step, own))
      assert.deepStrictEqual(play(Pi.initial, Pi.step, events), play(Pi.initial, Pi.step, own))
      assert.deepStrictEqual(
        play(OneRingEmitter.initial, OneRingEmitter.step, events),
        play(OneRingEmitter.initial, OneRingEmitter.step, own)
      )
      assert.deepStrictEqual(
        play(OneRingStream.initial(), OneRingStream.step, events),
        play(OneRingStream.initial(), OneRingStream.step, own)
      )
    })
  )
})
