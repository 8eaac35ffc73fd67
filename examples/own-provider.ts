import { Effect } from "effect"
import { Agent, Message, Provider } from "effect-agent"
import { FunctionProvider } from "effect-agent/providers"

// A whole answer: its text, or its blocks, stop reason and usage.
const whole = FunctionProvider.make({
  id: "whole",
  complete: async ({ messages }) => `You wrote ${messages.map(Message.textOf).join()}.`
})

// An answer piece by piece: text, thinking, tool calls.
const pieces = FunctionProvider.layer({
  id: "pieces",
  stream: async function* ({ model }) {
    yield { type: "thinking", text: "Who am I?" }
    yield "I am "
    yield `${model}.`
    return { usage: { input: 12, output: 3 } }
  }
})

const program = Effect.gen(function* () {
  const agent = yield* Agent.make({ model: "small" })
  console.log((yield* agent.prompt("Hello")).text) // I am small.
}).pipe(Effect.scoped, Effect.provide(pieces))
await Effect.runPromise(program)

// One answer of any provider, without an agent.
const request = { model: "any", messages: [Message.user("Hello")], tools: [], options: {} }
const answer = Effect.provideService(Provider.complete(request), Provider.Provider, whole)
console.log(Message.textOf(await Effect.runPromise(answer))) // You wrote Hello.
