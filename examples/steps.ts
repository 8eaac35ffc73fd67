import { Effect, Layer, Schema } from "effect"
import { Message, Provider, Tool, ToolRegistry } from "effect-agent"
import { Steps } from "effect-agent/steps"
import { ScriptedProvider } from "effect-agent/testing"

const weather = Tool.make({
  name: "weather",
  description: "Returns the weather.",
  execute: () => Effect.succeed("4 °C, rain")
})

// A queue or a workflow may keep this text between two steps, and another process takes the next one.
const Stored = Schema.fromJsonString(Schema.toCodecJson(Steps.State))

const step = Effect.fnUntraced(function* (stored: string) {
  const state = yield* Schema.decodeEffect(Stored)(stored)
  const { definitions } = yield* ToolRegistry.ToolRegistry
  const next = Steps.next(state, yield* definitions)
  console.log(next._tag)
  switch (next._tag) {
    case "CallModel": {
      const answer = yield* Provider.complete(next.request) // or an answer from elsewhere
      return yield* Schema.encodeEffect(Stored)(yield* Steps.answer(state, answer))
    }
    case "CallTools": {
      const results = yield* Effect.forEach(next.calls, (call) => Steps.call(state, call)) // or results from elsewhere
      return yield* Schema.encodeEffect(Stored)(yield* Steps.results(state, results))
    }
    case "Done":
      console.log(next.status, state.messages.map(Message.textOf))
      return undefined
  }
})

const program = Effect.gen(function* () {
  const started = yield* Steps.start("Do I need a coat?", { model: "any", maxTurns: 10 })
  let stored: string | undefined = yield* Schema.encodeEffect(Stored)(started)
  while (stored !== undefined) stored = yield* step(stored)
})

const script = [ScriptedProvider.toolCall("weather", {}), ScriptedProvider.text("Yes.")]
const services = Layer.merge(ScriptedProvider.layer(script), ToolRegistry.layer(weather))
await Effect.runPromise(Effect.provide(program, services))
// => CallModel
// => CallTools
// => CallModel
// => Done
// => completed [ 'Do I need a coat?', '', '4 °C, rain', 'Yes.' ]
