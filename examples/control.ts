import { Effect, Fiber, Stream } from "effect"
import { Agent, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"

const slow = Tool.make({ name: "slow", description: "Takes a while.", execute: () => Effect.sleep("1 hour") })

const program = Effect.gen(function* () {
  const agent = yield* Agent.make({ model: "any", tools: [slow] })
  const run = yield* Effect.forkChild(agent.prompt("Take your time."))
  yield* Stream.runHead(Stream.filter(agent.events, ({ _tag }) => _tag === "ToolInvoked"))
  yield* agent.steer("Actually, what is 2 + 2?") // waits in the queue
  yield* agent.cancel("changed my mind")
  const { newMessages, status } = yield* Fiber.join(run)
  console.log(status, newMessages.length) // cancelled 3: the prompt, the call, and an error result for it
  console.log((yield* agent.continue).text) // 4, the answer to the queued message
}).pipe(Effect.scoped)

const script = [ScriptedProvider.toolCall("slow", {}), ScriptedProvider.text("4")]
await Effect.runPromise(Effect.provide(program, ScriptedProvider.layer(script)))
