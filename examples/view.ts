import { Effect, Schema, Stream } from "effect"
import { Agent, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { RunView } from "effect-agent/view"

const weather = Tool.make({
  name: "weather",
  description: "The weather in a city, now.",
  params: Schema.Struct({ city: Schema.String }),
  execute: ({ city }) => Effect.succeed(`4 °C and rain in ${city}`)
})

const lineOf = ({ depth, kind, preview, state, title }: RunView.Block): string =>
  `${"  ".repeat(depth)}${kind} ${title}, ${state}${kind === "tool" ? `: ${preview}` : ""}`

const program = Effect.gen(function* () {
  const agent = yield* Agent.make({ model: "any", tools: [weather] })
  const view = yield* Stream.runFold(agent.stream("Do I need a coat?"), () => RunView.initial, RunView.fold)
  for (const row of view.rows) console.log(lineOf(row))
}).pipe(Effect.scoped)

const script = [
  ScriptedProvider.toolCall("weather", { city: "Oslo" }),
  ScriptedProvider.text("Yes, take one.")
]
await Effect.runPromise(Effect.provide(program, ScriptedProvider.layer(script)))
// => user Do I need a coat?, done
// => turn 1, done
// =>   call any, done
// =>   tool weather Oslo, done: 4 °C and rain in Oslo
// => turn 2, done
// =>   call any, done
// =>   answer Yes, take one., done
