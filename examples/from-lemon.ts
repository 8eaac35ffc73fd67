import { Effect, Schema } from "effect"
import { Agent, Message, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"

const add = Tool.make({
  name: "add",
  description: "Adds two numbers.",
  params: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  execute: ({ a, b }) => Effect.succeed(a + b) // {:ok, result}; Effect.fail stands for {:error, reason}
})

const program = Effect.gen(function* () {
  // AgentCore.new_agent(…): it lives as long as its scope, not as a process.
  const agent = yield* Agent.make({ model: "any", tools: [add], followUpMode: "all" })
  // AgentCore.subscribe(agent, self())
  yield* agent.subscribe((event) =>
    Effect.sync(() => event._tag === "ToolExecutionEnd" && console.log(event.toolName, event.outcome))
  )
  // :ok = AgentCore.prompt(agent, …): the run goes on in its own fiber.
  const run = yield* agent.start("2 + 3?")
  yield* agent.followUp("Sure?")
  // AgentCore.wait_for_idle(agent, timeout: 5000)
  yield* agent.waitForIdle.pipe(Effect.timeout("5 seconds"))
  const { newMessages } = yield* run.result
  console.log(newMessages.map(Message.textOf).join(" · "))
})

const provider = ScriptedProvider.layer([
  ScriptedProvider.toolCall("add", { a: 2, b: 3 }),
  ScriptedProvider.text("5"),
  ScriptedProvider.text("Yes.")
])
await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(provider)))
// => add success
// => 2 + 3? ·  · 5 · 5 · Sure? · Yes.
