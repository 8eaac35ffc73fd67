/**
 * Marks the requests of providers, so that a client can distinguish them from other requests.
 *
 * A provider reads a body at most once, as a stream, and closes a scope when it needs the connection no longer. A client that
 * relies on that needs neither a Node stream nor an abort controller.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import type { HttpClientRequest } from "effect/http/HttpClientRequest"
import * as Scope from "effect/Scope"

/** A request of a provider. */
export interface ProviderRequest {
  readonly request: HttpClientRequest
  /** Closes when the provider needs the connection no longer. */
  readonly scope: Scope.Scope
}

/** The request of a provider that is being sent. Decorators of the client may send others meanwhile. */
export const Current = Context.Reference<ProviderRequest | undefined>("effect-agent/ProviderRequest", {
  defaultValue: () => undefined
})

/** A client whose requests are those of a provider. The scope of a request closes its connection, with every client. */
export const scoped = <E, R>(
  client: HttpClient.HttpClient.With<E, R>
): HttpClient.HttpClient.With<E, R | Scope.Scope> =>
  HttpClient.withScope(
    HttpClient.transform(client, (response, request) =>
      Effect.flatMap(Effect.scope, (scope) => Effect.provideService(response, Current, { request, scope }))
    )
  )
