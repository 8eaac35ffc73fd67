import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Message, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"

/** In a test this is the body of `it.effect` of `@effect/vitest`, which provides the TestClock. */
const test = Effect.gen(function* () {
  const begun = yield* Deferred.make<void>()
  const slow = Tool.make({
    name: "slow",
    description: "Takes an hour.",
    execute: () => Effect.andThen(Deferred.succeed(begun, undefined), Effect.sleep("1 hour"))
  })
  const agent = yield* Agent.make({ model: "any", tools: [slow], toolTimeout: "30 seconds" })
  const run = yield* Effect.forkChild(agent.prompt("Take your time."))
  yield* Deferred.await(begun) // without this the clock moves before the tool waits for it
  yield* TestClock.adjust("30 seconds")
  const { newMessages } = yield* Fiber.join(run)
  console.log(newMessages.map(Message.textOf)[2])
}).pipe(Effect.scoped)

const script = [ScriptedProvider.toolCall("slow", {}), ScriptedProvider.text("It takes too long.")]
await Effect.runPromise(Effect.provide(test, [ScriptedProvider.layer(script), TestClock.layer()]))
