import { Effect, Schema } from "effect"
import { Agent } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"

// The model calls the tool with a prompt, and reads the answer of the inner agent as its result.
const researcher = Agent.asTool({
  name: "research",
  description: "Finds facts about a place.",
  agent: { model: "small", system: "You find facts.", limits: { maxTurns: 5 } }
})
// A sub-agent may have params and typed output of its own.
const scorer = Agent.asTool({
  name: "score",
  description: "Gives a text a grade.",
  params: Schema.Struct({ text: Schema.String }),
  prompt: ({ text }) => `Grade this: ${text}`,
  agent: { model: "small", output: Schema.Struct({ grade: Schema.Int }) }
})

const program = Effect.gen(function* () {
  const agent = yield* Agent.make({ model: "large", tools: [researcher, scorer] })
  const { text, usage } = yield* agent.prompt("Write about Oslo.")
  console.log(text, usage.total) // with the tokens of both sub-agents
}).pipe(Effect.scoped)

const script = [
  ScriptedProvider.toolCall("research", { prompt: "Oslo" }),
  ScriptedProvider.text("Oslo is the capital of Norway."),
  ScriptedProvider.toolCall("score", { text: "Oslo is the capital of Norway." }),
  ScriptedProvider.toolCall("final_answer", { grade: 2 }),
  ScriptedProvider.text("Oslo is the capital of Norway. Grade: 2.")
]
await Effect.runPromise(Effect.provide(program, ScriptedProvider.layer(script)))
