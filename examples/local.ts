import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent } from "effect-agent"
import { OpenAiCompatible } from "effect-agent/providers"

// Ollama at its default address, or another server: `baseUrl: "http://127.0.0.1:8080/v1"`. `layer` takes the key in place of the
// environment, and needs none for a server on this machine.
const ollama = OpenAiCompatible.layer(OpenAiCompatible.presets.ollama)

const program = Effect.gen(function* () {
  const agent = yield* Agent.make({ model: "qwen3:8b" })
  return (yield* agent.prompt("Do I need a coat in Oslo?")).text
}).pipe(
  Effect.scoped,
  Effect.provide(ollama),
  Effect.provide(FetchHttpClient.layer),
  Effect.catchTag("RunFailed", ({ message }) => Effect.succeed(message))
)

console.log(await Effect.runPromise(program)) // the answer, or the reason why there is none
