import { Effect } from "effect"
import { Agent, StopCondition, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"

const weather = Tool.make({
  name: "weather",
  description: "The weather now.",
  execute: () => Effect.succeed("4 °C")
})
const submit = Tool.make({
  name: "submit",
  description: "Submits the form.",
  execute: () => Effect.fail("The office is closed.")
})

const program = Effect.gen(function* () {
  const agent = yield* Agent.make({
    model: "any",
    tools: [weather, submit],
    stopWhen: StopCondition.any(StopCondition.hasToolCall("submit"), StopCondition.turnCount(20)),
    history: { mode: "full", size: 20 } // default: a summary of the last 10 turns
  })
  const { report, status } = yield* agent.prompt("Submit the weather.")
  console.log(
    status,
    report.history.map(({ messages = [] }) => messages.length)
  )
  for (const { error, state, toolName } of report.calls) console.log(toolName, state, error ?? "")
  console.log(report.audit.map(({ type }) => type))
}).pipe(Effect.scoped)

const script = [ScriptedProvider.toolCall("weather", {}), ScriptedProvider.toolCall("submit", {})]
await Effect.runPromise(Effect.provide(program, ScriptedProvider.layer(script)))
// => stopped [ 3, 2 ]
// => weather completed
// => submit failed The office is closed.
// => [ 'tool_failed' ]
