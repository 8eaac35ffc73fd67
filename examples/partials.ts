import { Effect, Schema, Stream } from "effect"
import { Agent, AgentEvent, Tool } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"

const write = Tool.make({
  name: "write",
  description: "Writes a file.",
  params: Schema.Struct({ path: Schema.String, text: Schema.String }),
  execute: ({ path }) => Effect.succeed(`Wrote ${path}.`)
})

const program = Effect.gen(function* () {
  const agent = yield* Agent.make({ model: "any", tools: [write], partialValues: true })
  const events = agent.stream("Write a greeting.")
  yield* Stream.runForEach(AgentEvent.partials(events, { every: "50 millis" }), ({ toolName, value }) =>
    Effect.sync(() => console.log(toolName, value))
  )
}).pipe(Effect.scoped)

const pieces = ['{"path": "hi.txt", "te', 'xt": "Good mor', 'ning!"}']
const script = [
  ScriptedProvider.turn(Step.rawToolCall("write", pieces), Step.finish("toolUse")),
  ScriptedProvider.text("Done.")
]
await Effect.runPromise(Effect.provide(program, ScriptedProvider.layer(script)))
// => write { path: 'hi.txt', text: 'Good morning!' }
