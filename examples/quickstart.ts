import { Effect, Schema, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, AgentEvent, Tool } from "effect-agent"
import { OpenAi } from "effect-agent/providers"

const weather = Tool.make({
  name: "weather",
  description: "The weather in a city, now.",
  params: Schema.Struct({ city: Schema.String }),
  execute: ({ city }) => Effect.succeed(`4 °C and rain in ${city}`)
})

const program = Effect.gen(function* () {
  const agent = yield* Agent.make({ model: "gpt-5.4-mini", tools: [weather] })
  yield* agent.stream("Do I need a coat in Oslo?").pipe(
    AgentEvent.textOnly,
    Stream.runForEach((text) => Effect.sync(() => process.stdout.write(text)))
  )
}).pipe(Effect.scoped, Effect.provide(OpenAi.layerConfig()), Effect.provide(FetchHttpClient.layer))

await Effect.runPromise(program)
