import { Effect, Schedule } from "effect"
import { Agent, ProviderError } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"

const program = Effect.gen(function* () {
  const agent = yield* Agent.make({
    model: "any",
    // Whole turns, beyond the retries of each model call: tools that ended do not run again.
    retry: Schedule.exponential("10 millis").pipe(Schedule.upTo({ times: 3 })),
    limits: { maxTurns: 20, executionTime: "5 minutes" }
  })
  return yield* agent.prompt("Do I need a coat in Oslo?").pipe(
    Effect.map(({ text }) => text),
    Effect.catchReasons("RunFailed", {
      LimitExceeded: ({ limit }) => Effect.succeed(`stopped at ${limit}`),
      ProviderError: (error) => Effect.succeed(`no answer: ${error.reason._tag}, ${error.reason.detail}`)
    })
  )
}).pipe(Effect.scoped)

const busy = ScriptedProvider.fail(new ProviderError.Overloaded({ detail: "at capacity" }))
const refused = ScriptedProvider.fail(new ProviderError.Unauthenticated({ detail: "no such key" }))
for (const script of [[busy, busy, ScriptedProvider.text("Yes.")], [refused]])
  console.log(await Effect.runPromise(Effect.provide(program, ScriptedProvider.layer(script))))
