/**
 * A server of the proxy over real HTTP on loopback, and a proxy's client for it.
 */
import type { Model } from "@earendil-works/pi-ai"
import { NodeHttpServer } from "@effect/platform-node"
import { Effect, type Scope } from "effect"
import { FetchHttpClient, type HttpServerRequest, type HttpServerResponse } from "effect/http"
import { Message, Provider } from "effect-agent"
import { ModelStream, ProxyProvider } from "effect-agent/proxy"
import { createServer } from "node:http"
import { opened } from "../providers/server.ts"

type Handler = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  never,
  Provider.Provider | HttpServerRequest.HttpServerRequest
>

/** Serves a handler at each path until the scope closes. Gives the origin. */
export const serveHandler = Effect.fnUntraced(function* (
  provider: Provider.Provider["Service"],
  handler: Handler
): Effect.fn.Return<string, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const handle = yield* NodeHttpServer.makeHandler(handler, { scope }).pipe(
    Effect.provideService(Provider.Provider, provider)
  )
  return yield* opened(createServer(handle))
})

export const models = ["small", "acme/large"]

export const request: Provider.ModelRequest = {
  model: "small",
  messages: [Message.user("Hi", 0)],
  tools: [],
  options: {}
}

/** A proxy's client for a server with this provider. */
export const proxied = Effect.fnUntraced(function* (
  provider: Provider.Provider["Service"],
  options: Omit<ProxyProvider.Options, "url"> = {}
) {
  const url = yield* serveHandler(provider, ModelStream.handler({ models }))
  return yield* ProxyProvider.make({ ...options, url })
}, Effect.provide(FetchHttpClient.layer))

/** A model as pi describes it. */
export const model: Model<"anthropic-messages"> = {
  id: "large",
  name: "Large",
  api: "anthropic-messages",
  provider: "acme",
  baseUrl: "http://127.0.0.1:9",
  reasoning: true,
  input: ["text", "image"],
  cost: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 },
  contextWindow: 1000,
  maxTokens: 100
}
