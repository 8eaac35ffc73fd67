/**
 * Bodies that each model accepts. Every `DIR/<api>/<case>.json` names a model and a request in words of no vendor. The
 * public provider of its API sends it to a server that records address and body, and `grade-models.mjs`, which lies beside
 * the folder, judges them.
 */
import { Effect, type Layer, Redacted, Stream } from "effect"
import { FetchHttpClient, type HttpClient } from "effect/http"
import { Provider } from "effect-agent"
import { OpenAi, OpenAiCompatible } from "effect-agent/providers"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { refuse, serve } from "../../test/providers/server.ts"
import { apis, toRequest } from "./requests.ts"
import type { Kind } from "./suite.ts"
import { defined, type Words } from "./words.ts"

export const kind: Kind = async (dir) => {
  const { gradeModel }: Words = await import(pathToFileURL(join(dir, "..", "grade-models.mjs")).href)
  const folders = readdirSync(dir, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const cases = folders.flatMap(({ name: api }) =>
    readdirSync(join(dir, api))
      .filter((file) => file.endsWith(".json"))
      .map((file) => ({ api, file }))
  )
  return {
    concurrency: 4,
    cases: cases.map(({ api, file }) => {
      const words: Words = JSON.parse(readFileSync(join(dir, api, file), "utf8"))
      return {
        name: `${api}/${file.replace(/\.json$/, "")}`,
        run: async () => {
          const sent: Words = await Effect.runPromise(capture(api, words))
          return { problems: gradeModel(words, sent), actual: sent }
        }
      }
    })
  }
}

/** The address and the body that the provider sends, or why it sends none. */
const capture = (api: string, words: Words) =>
  Effect.gen(function* () {
    const server = yield* serve((response) => refuse(response, 501, { error: { message: "captured" } }))
    const provider = yield* Effect.provide(Provider.Provider, layerOf(api, words, server.baseUrl))
    const failure = yield* Effect.flip(Stream.runDrain(provider.stream(requestOf(api, words))))
    const [seen] = server.requests
    return seen === undefined ? { refused: failure.message } : { url: seen.url, body: JSON.parse(seen.body) }
  }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer), Effect.orDie)

const apiKey = Redacted.make("key")

const layerOf = (
  api: string,
  { preset }: Words,
  baseUrl: string
): Layer.Layer<Provider.Provider, never, HttpClient.HttpClient> => {
  const vendor = apis[api]
  if (vendor === undefined) throw new Error(`No provider speaks ${api}`)
  if (api !== "openai-chat") return vendor.layer(baseUrl, {})
  if (preset === undefined) return OpenAi.layer({ baseUrl, apiKey })
  const { compat = {}, id }: Words = OpenAiCompatible.presets[preset as keyof typeof OpenAiCompatible.presets]
  return OpenAiCompatible.layer({ id, baseUrl, apiKey, compat })
}

const requestOf = (api: string, words: Words): Provider.ModelRequest => {
  const { cacheRetention, sessionId }: Words = words.neutral.params ?? {}
  const vendor: Words = apis[api]
  const request = toRequest(vendor, { ...words, body: { model: words.model } })
  return { ...request, options: { ...request.options, ...defined({ cacheRetention, sessionId }) } }
}
