import { Effect, Schema } from "effect"
import { Agent } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"

const program = Effect.gen(function* () {
  const agent = yield* Agent.make({ model: "any", output: Schema.Struct({ grade: Schema.Int }) })
  const { output } = yield* agent.prompt("Review my essay.")
  console.log(output.grade) // a number
}).pipe(Effect.scoped)
const script = [ScriptedProvider.toolCall("final_answer", { grade: 2 })]
await Effect.runPromise(Effect.provide(program, ScriptedProvider.layer(script)))
