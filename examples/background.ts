import { Effect, Schema } from "effect"
import { Agent, AgentEvent, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"

/** Each call returns at once. The run continues, and gives the model the result when it is there. */
const deploy = Tool.make({
  name: "deploy",
  description: "Deploys a service.",
  blocking: false,
  timeout: "10 minutes",
  params: Schema.Struct({ service: Schema.String }),
  execute: Effect.fnUntraced(function* ({ service }) {
    const { progress } = yield* Tool.ToolContext
    yield* progress(`${service} starts`)
    yield* Effect.sleep("50 millis")
    return `${service} is up`
  })
})

/** Decides while it runs: the model waits for a short test, and not for a long one. */
const test = Tool.make({
  name: "test",
  description: "Runs tests.",
  blocking: "optional",
  params: Schema.Struct({ files: Schema.Int }),
  execute: Effect.fnUntraced(function* ({ files }) {
    const { background } = yield* Tool.ToolContext
    if (files > 10 && background !== undefined) yield* background(`${files} files take a while.`)
    yield* Effect.sleep(files)
    return `${files} files passed`
  })
})

const program = Effect.gen(function* () {
  const agent = yield* Agent.make({ model: "any", tools: [deploy, test] })
  yield* agent.subscribe((event) => {
    if (event._tag === "ToolBackgrounded") console.log(`${event.toolName} runs as ${event.handle}`)
    if (AgentEvent.isTextDelta(event)) console.log(event.delta.delta)
    return Effect.void
  })
  yield* agent.prompt("Deploy the shop, and test it.")
}).pipe(Effect.scoped)

const script = [
  ScriptedProvider.toolCalls(
    { name: "deploy", params: { service: "shop" } },
    { name: "test", params: { files: 20 } }
  ),
  ScriptedProvider.toolCall("background_calls", { action: "wait", calls: ["bg_2"] }),
  ScriptedProvider.text("The tests passed. The shop still starts."),
  ScriptedProvider.text("The shop is up.")
]
await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
// => deploy runs as bg_1
// => test runs as bg_2
// => The tests passed. The shop still starts.
// => The shop is up.
