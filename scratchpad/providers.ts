import { Effect, Layer, Schedule, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, AgentEvent } from "effect-agent"
import { OpenAiCompatible } from "effect-agent/providers"
import { Fallback, Retry } from "effect-agent/resilience"
import { ScriptedProvider } from "effect-agent/testing"

// Nobody listens there: two tries, then the next one is asked.
const nobody = OpenAiCompatible.layer({ id: "nobody", baseUrl: "http://127.0.0.1:47831/v1" })
const patient = Retry.layer({ schedule: Schedule.recurs(1) })(nobody)
const standIn = ScriptedProvider.layer([ScriptedProvider.text("I am standing in.")])

const provider = Fallback.layer([patient, { layer: standIn, model: "another-model" }]).pipe(
  Layer.provide(FetchHttpClient.layer)
)

const program = Effect.scoped(
  Effect.gen(function* () {
    const agent = yield* Agent.make({ model: "some-model" })
    yield* agent.stream("Is anybody there?").pipe(
      AgentEvent.ofTag("ModelCallRetry", "MessageEnd"),
      Stream.runForEach((event) =>
        Effect.sync(() =>
          console.log(event._tag === "ModelCallRetry" ? event.error.message : event.message.role)
        )
      )
    )
  })
)

await Effect.runPromise(program.pipe(Effect.provide(provider)))
