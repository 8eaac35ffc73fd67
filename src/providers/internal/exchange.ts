/**
 * The HTTP client that the application provides, and the request that a provider sends with it.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Option from "effect/Option"
import type { Address } from "./addresses.ts"

/** The client that the application provides. Dies with advice if plain JavaScript provides none. */
export const client: Effect.Effect<HttpClient.HttpClient, never, HttpClient.HttpClient> = Effect.contextWith(
  (context: Context.Context<HttpClient.HttpClient>) =>
    Option.match(Context.getOption(context, HttpClient.HttpClient), {
      onNone: () => Effect.die(new Error(noClient)),
      onSome: (client) => Effect.succeed(client)
    })
)

const noClient =
  "Service not found: effect/HttpClient. Provide one to the layer of the provider, such as FetchHttpClient.layer of " +
  "effect/http: program.pipe(Effect.provide(provider), Effect.provide(FetchHttpClient.layer))"

/** Makes a POST request with a JSON text. */
export const post = ({ headers, url }: Address, json: string): HttpClientRequest.HttpClientRequest =>
  HttpClientRequest.post(url, { headers, body: HttpBody.text(json, "application/json") })
