import { Effect, Layer, Schedule } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent } from "effect-agent"
import { OpenAiCompatible } from "effect-agent/providers"
import { Fallback, Retry } from "effect-agent/resilience"
import { ScriptedProvider } from "effect-agent/testing"

// No server listens at this address: the run tries it twice, then it calls the next provider.
const absent = OpenAiCompatible.layer({ id: "absent", baseUrl: "http://127.0.0.1:47831/v1" })
const primary = Retry.layer({ schedule: Schedule.recurs(1) })(absent)
const backup = { layer: ScriptedProvider.layer([ScriptedProvider.text("Yes.")]), model: "another-model" }
const provider = Fallback.layer([primary, backup]).pipe(Layer.provide(FetchHttpClient.layer))

const program = Effect.gen(function* () {
  const agent = yield* Agent.make({ model: "some-model" })
  const { report, text } = yield* agent.prompt("Do I need a coat in Oslo?")
  console.log(text, report.retries) // Yes. 2
}).pipe(Effect.scoped)

await Effect.runPromise(Effect.provide(program, provider))
