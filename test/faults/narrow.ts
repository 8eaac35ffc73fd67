/**
 * A thread with a narrow heap: asks for one answer, and tells how much was said. It dies if that takes more memory.
 */
import { Effect, Redacted, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Message } from "effect-agent"
import { OpenAiCompatible } from "effect-agent/providers"
import { parentPort, workerData } from "node:worker_threads"

const ask = Effect.gen(function* () {
  const provider = yield* OpenAiCompatible.make({
    ...OpenAiCompatible.presets.openAi,
    baseUrl: workerData,
    apiKey: Redacted.make("a key of this test")
  })
  const request = { model: "m-1", messages: [Message.user("Hi")], tools: [], options: {} }
  return yield* Stream.runFold(
    provider.stream(request),
    () => 0,
    (length, event) => (event._tag === "TextDelta" ? length + event.delta.length : length)
  )
})

parentPort?.postMessage(await Effect.runPromise(Effect.provide(ask, FetchHttpClient.layer)))
