import { Effect, Stream } from "effect"
import { Agent, AgentEvent, Run } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"

const program = Effect.gen(function* () {
  const agent = yield* Agent.make({ model: "any" })
  const run = yield* agent.start("Do I need a coat?")
  yield* run.events.pipe(
    AgentEvent.accumulateText,
    Stream.runForEach((text) => Effect.sync(() => console.log(text)))
  )
  const { status } = yield* run.result
  const { report } = yield* Run.collect(run.events) // each reader gets all events
  console.log(status, report.turns)
}).pipe(Effect.scoped)

const script = [ScriptedProvider.text(["Yes, ", "take one."])]
await Effect.runPromise(Effect.provide(program, ScriptedProvider.layer(script)))
// => Yes,
// => Yes, take one.
// => completed 1
