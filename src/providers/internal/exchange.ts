/**
 * Sends one request and waits for the head of its response: by the way of its own that a client of ours has, in one step, or
 * as an effect, which any client can do.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Option from "effect/Option"
import * as ByteSource from "../../internal/byteSource.ts"
import type { StreamStalled } from "../../ProviderError.ts"
import type { Address } from "./addresses.ts"
import * as Connection from "./connection.ts"
import type { Held } from "./held.ts"
import * as Plain from "./plain.ts"
import { type Ask, byEffect, type Silence } from "./silence.ts"

/** What there is to send with. */
export interface Means {
  readonly client: HttpClient.HttpClient
  readonly context: Context.Context<never>
  readonly silence: Silence
  readonly held: Held
}

/** The client that the application provides. Dies with advice where plain JavaScript provides none. */
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

/** A request to be posted. */
export interface Posted {
  readonly address: Address
  /** JSON. */
  readonly body: string
  /** Called when the head is here, and when the client has put the socket away. */
  readonly opened: () => void
  readonly keep: () => void
}

/** There is no response. */
export class Failed {
  readonly _tag = "Failed"
  readonly cause: unknown
  constructor(cause: unknown) {
    this.cause = cause
  }
}

export const post = (
  means: Means,
  posted: Posted
): Effect.Effect<Connection.Connection, Failed | StreamStalled> => {
  const send = ByteSource.sendOf(means.client, means.context)
  const ask = send === undefined ? asEffect(means, posted) : directly(send, means, posted)
  return means.silence.head(ask, (late) => late.cancel())
}

const asEffect = (
  { client, context }: Means,
  { address: { headers, redact, url }, body, keep, opened }: Posted
): Ask<Connection.Connection, Failed> => {
  const request = HttpClientRequest.post(url, { headers, body: HttpBody.text(body, "application/json") })
  const answered = Effect.flatMap(Plain.sent(client.execute(request), redact), (response) => {
    opened()
    return Connection.open(response, keep)
  })
  return byEffect(
    Effect.mapError(answered, (cause) => new Failed(cause)),
    context
  )
}

/** Without a fiber. */
const directly =
  (
    send: ByteSource.Send,
    { held }: Means,
    { address: { headers, url }, body, keep, opened }: Posted
  ): Ask<Connection.Connection, Failed> =>
  (tell) => {
    const close = send(
      { method: "POST", url, headers, body },
      (answered) => {
        opened()
        tell(Exit.succeed(Connection.take(answered, keep)))
      },
      (cause) => tell(Exit.fail(new Failed(cause)))
    )
    held.await(close)
    return { stop: close, leave: Effect.sync(close) }
  }
