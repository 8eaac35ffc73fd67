/**
 * A vendor that speaks Chat Completions at an address of its own, with tokens that it issues and revokes.
 */
import { Effect, Layer, Option, Redacted, Ref, Schema } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { ProviderError, type Provider } from "effect-agent"
import { type Auth, type Deployment, Protocols, Transport } from "effect-agent/providers"

const Issued = Schema.Struct({ token: Schema.String })

/** Sends the current token in a header, and asks for another one after a refusal. */
const issuedBy = Effect.fnUntraced(function* (url: string) {
  const client = yield* HttpClient.HttpClient
  const held = yield* Ref.make(Option.none<Redacted.Redacted>())
  const issue = client.post(`${url}/token`).pipe(
    Effect.flatMap(HttpClientResponse.schemaBodyJson(Issued)),
    Effect.map(({ token }) => Redacted.make(token)),
    Effect.tap((token) => Ref.set(held, Option.some(token))),
    Effect.mapError(({ message }) => new ProviderError.Unauthenticated({ detail: message }))
  )
  const auth: Auth.Auth = Effect.fnUntraced(function* ({ isRefused }) {
    const current = isRefused ? Option.none() : yield* Ref.get(held)
    const token = Option.isSome(current) ? current.value : yield* issue
    return { headers: { "x-acme-token": Redacted.value(token) }, secrets: [token] }
  })
  return auth
})

const deployment = (url: string, auth: Auth.Auth): Deployment.Deployment => ({
  url: (model) => `${url}/models/${model}/chat`,
  auth,
  headers: { "x-acme-team": "weather" }
})

export const layer = (url: string): Layer.Layer<Provider.Provider, never, HttpClient.HttpClient> =>
  Layer.unwrap(
    Effect.map(issuedBy(url), (auth) =>
      Transport.layer({
        protocol: Protocols.openAiChat("acme", { maxTokensField: "max_completion_tokens" }),
        deployment: deployment(url, auth),
        timeouts: { idle: "5 seconds" }
      })
    )
  )
