import { Effect, Schema, Stream } from "effect"
import { Agent, AgentEvent, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"

const weather = Tool.make({
  name: "weather",
  description: "The weather in a city, now.",
  params: Schema.Struct({ city: Schema.String }),
  execute: ({ city }) => Effect.succeed(`4 °C and rain in ${city}`)
})

/** What a person reads of an event. */
const shown = (event: AgentEvent.AgentEvent): string => {
  if (AgentEvent.isTextDelta(event)) return event.delta.delta
  switch (event._tag) {
    case "ToolExecutionStart":
      return `\n> ${event.toolName} ${JSON.stringify(event.params)}\n`
    case "ToolExecutionEnd":
      return `< ${event.outcome} after ${event.durationMs} ms\n`
    case "RunEnd":
      return `\n${event.status}, ${event.usage.total} tokens\n`
    default:
      return ""
  }
}

const program = Effect.gen(function* () {
  const agent = yield* Agent.make({ model: "any", tools: [weather] })
  yield* Stream.runForEach(agent.stream("Do I need a coat in Oslo?"), (event) =>
    Effect.sync(() => process.stdout.write(shown(event)))
  )
}).pipe(Effect.scoped)

const script = [
  ScriptedProvider.toolCall("weather", { city: "Oslo" }),
  ScriptedProvider.text(["Yes, ", "take ", "a coat."])
]
await Effect.runPromise(Effect.provide(program, ScriptedProvider.layer(script)))
