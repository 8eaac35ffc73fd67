import { Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent } from "effect-agent"
import { Models, OpenAiCompatible } from "effect-agent/providers"

const rules = Models.layer([
  { vendor: "acme", pattern: "^acme-1", maxOutput: 8000, sampling: "refused", input: ["text"] }
])
const provider = OpenAiCompatible.layer({ id: "acme", baseUrl: "http://127.0.0.1:8080/v1" }).pipe(
  Layer.provide([rules, FetchHttpClient.layer])
)

const program = Effect.scoped(
  Agent.make({
    model: "acme-1",
    modelOptions: { thinkingLevel: "high", vendor: { acme: { seed: 7 } } }
  }).pipe(Effect.provide(provider))
)

await Effect.runPromise(program)
console.log(Models.find("claude-opus-5", { vendor: "anthropic" })?.contextWindow)
