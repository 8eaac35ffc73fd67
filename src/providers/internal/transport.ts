/**
 * All the HTTP there is: encode, send, look at the status, hand the body to the protocol. One for all vendors and
 * protocols, so that keys, redirects, silence and failures are dealt with in one place.
 */
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Credentials, type Service as Keys } from "../../Credentials.ts"
import * as Handoff from "../../Handoff.ts"
import { makeId } from "../../Message.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import { type ModelRequest, Provider } from "../../Provider.ts"
import type { Reason } from "../../ProviderError.ts"
import { Protocol as ProtocolFault, ProviderError, StreamTruncated, Transport } from "../../ProviderError.ts"
import { Answer } from "./answer.ts"
import * as Connection from "./connection.ts"
import * as Failure from "./failure.ts"
import { Held } from "./held.ts"
import { isAtOnce, Kept } from "./kept.ts"
import * as Network from "./network.ts"
import * as Plain from "./plain.ts"
import { type Call, isReason, type Protocol } from "./Protocol.ts"
import * as Reading from "./reading.ts"
import * as Secrets from "./secrets.ts"
import { type Limits, limits, Silence, type Timeouts } from "./silence.ts"

/** A vendor: its language and its address. */
export interface Endpoint<Wire, State> {
  /** Names the provider in errors, in messages and to `Credentials`. */
  readonly id: string
  readonly protocol: Protocol<Wire, State>
  /** Where requests for a model go. */
  readonly url: (model: string) => string
  /** Sent with each request, as they are. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The headers that carry a key. */
  readonly authorize: (key: string) => Readonly<Record<string, string>>
  /** For when `Credentials` has none. Without any key the request goes out without one, as local servers like it. */
  readonly apiKey?: Redacted.Redacted | undefined
  readonly timeouts?: Timeouts | undefined
}

/** A provider of this endpoint. It asks once, if its socket is alive (`Kept`): `Retry` asks again, around any provider. */
export const make = Effect.fnUntraced(function* <Wire, State>(endpoint: Endpoint<Wire, State>) {
  const client = yield* HttpClient.HttpClient
  const keys = Context.getOrUndefined(yield* Effect.context<never>(), Credentials)
  const opened: Opened<Wire, State> = {
    endpoint,
    client,
    keys,
    limits: limits(endpoint.timeouts),
    kept: new Kept(),
    used: new Secrets.Used()
  }
  return Provider.of({
    id: endpoint.id,
    stream: (request) => Stream.suspend(() => parts(opened, request, begin(opened, request)))
  })
})

/** An endpoint with what it uses. */
interface Opened<Wire, State> {
  readonly endpoint: Endpoint<Wire, State>
  readonly client: HttpClient.HttpClient
  /** Those that were there when it was made; those that are there when it is asked win. */
  readonly keys: Keys | undefined
  readonly limits: Limits
  readonly kept: Kept
  readonly used: Secrets.Used
}

/** An answer, however many requests it takes. */
interface Begun<State> {
  readonly call: Call
  readonly state: State
}

const begin = <Wire, State>({ endpoint }: Opened<Wire, State>, { model }: ModelRequest): Begun<State> => {
  const call = { model, seed: makeId().slice("msg_".length) }
  return { call, state: endpoint.protocol.initial(call) }
}

/** Asks, and again for each time that the server pauses. */
const parts = <Wire, State>(
  opened: Opened<Wire, State>,
  request: ModelRequest,
  begun: Begun<State>
): Stream.Stream<ModelEvent, ProviderError> => {
  const part = Handoff.opened((scope) => ask(opened, request, begun, scope))
  const { resume } = opened.endpoint.protocol
  if (resume === undefined) return part
  const rest = Stream.suspend(() => {
    const next = resume(begun.state, request)
    return next === undefined ? Stream.empty : parts(opened, next, begun)
  })
  return Stream.concat(part, rest)
}

/** `isAgain`: the request has gone out before, over a socket that was dead. */
const ask = <Wire, State>(
  opened: Opened<Wire, State>,
  request: ModelRequest,
  begun: Begun<State>,
  scope: Scope.Scope,
  isAgain = false
): Effect.Effect<Reading.Next, ProviderError> => {
  const { client, endpoint, kept, keys, limits, used } = opened
  const { id: provider, protocol } = endpoint
  const fail = (reason: Reason) => new ProviderError({ provider, reason })
  const body = protocol.encode(request)
  if (isReason(body)) return Effect.fail(fail(body))

  return Effect.contextWith((context: Context.Context<never>) => {
    const clock = Context.get(context, Clock.Clock)
    const silence = new Silence(limits, context)
    const held = new Held(silence)
    const given = Context.getOrUndefined(context, Credentials) ?? keys
    const { model } = request
    const sent = send({ endpoint, client, kept, used, model, body, clock, silence, held }, given)
    const read = ({ connection, redact, url }: Sent): Reading.Next => {
      const answer = new Answer(protocol, begun.call, redact, begun.state)
      const broken = (cause: unknown) => dropped(Network.reason(cause, url, redact))
      return Reading.pull({ provider, connection, answer, silence, broken })
    }
    const unsent = ({ reason, wasDead }: Unsent): Effect.Effect<Reading.Next, ProviderError> => {
      const error = fail(reason)
      return wasDead && !isAgain
        ? Effect.succeed(again(error, ask(opened, request, begun, scope, true)))
        : Effect.fail(error)
    }
    return Effect.andThen(
      Scope.addFinalizer(scope, held.release),
      Effect.flatMap(sent, (sent) => (isUnsent(sent) ? unsent(sent) : Effect.succeed(read(sent))))
    )
  })
}

/** Tells that the request goes out once more, without a wait; then what comes of it. */
const again = (error: ProviderError, ask: Effect.Effect<Reading.Next, ProviderError>): Reading.Next => {
  let next: Reading.Next = Effect.suspend(() => {
    next = Effect.flatMap(ask, (opened) => (next = opened))
    return Effect.succeed(Arr.of<ModelEvent>({ _tag: "Attempt", attempt: 1, delay: Duration.zero, error }))
  })
  return Effect.suspend(() => next)
}

/** With the head of the response here, a connection that breaks cuts the answer, however it breaks. */
const dropped = (reason: Reason): Reason =>
  reason._tag === "Transport" ? new StreamTruncated({ detail: reason.detail }) : reason

interface Sending {
  readonly endpoint: Pick<Endpoint<never, never>, "url" | "headers" | "authorize" | "id" | "apiKey">
  readonly client: HttpClient.HttpClient
  readonly kept: Kept
  readonly used: Secrets.Used
  readonly model: string
  readonly body: string
  readonly clock: Clock.Clock
  readonly silence: Silence
  readonly held: Held
}

interface Sent {
  readonly connection: Connection.Connection
  readonly url: string
  readonly redact: Secrets.Redact
}

/** No answer. */
interface Unsent {
  readonly reason: Reason
  /** What broke was, as far as can be told, a socket that was dead before. */
  readonly wasDead: boolean
}

const isUnsent = (sent: Sent | Unsent): sent is Unsent => "reason" in sent

/** Sends with the key of the moment. */
const send = (sending: Sending, keys: Keys | undefined): Effect.Effect<Sent | Unsent, ProviderError> =>
  keys === undefined ? once(sending, sending.endpoint.apiKey) : sendWith(sending, keys)

/** A key that is refused may have been replaced since it was asked for: once more then. */
const sendWith = Effect.fnUntraced(function* (
  sending: Sending,
  keys: Keys
): Effect.fn.Return<Sent | Unsent, ProviderError> {
  const { apiKey, id } = sending.endpoint
  const asked = yield* keys.apiKey(id)
  const first = yield* once(
    sending,
    Option.getOrElse(asked, () => apiKey)
  )
  const isRefused = isUnsent(first) && first.reason._tag === "Unauthenticated"
  if (Option.isNone(asked) || !isRefused) return first

  const next = yield* keys.apiKey(id)
  const isNew = Option.isSome(next) && Redacted.value(next.value) !== Redacted.value(asked.value)
  return isNew ? yield* once(sending, next.value) : first
})

/** One HTTP request: the body of the answer, or why there is none. */
const once = (
  { body, client, clock, endpoint, held, kept, model, silence, used }: Sending,
  key: Redacted.Redacted | undefined
): Effect.Effect<Sent | Unsent> => {
  const url = endpoint.url(model)
  const headers = {
    accept: "text/event-stream",
    ...endpoint.headers,
    ...(key === undefined ? {} : endpoint.authorize(Redacted.value(key).trim()))
  }
  const redact = Secrets.make(used.with(key), headers, url)
  const request = HttpClientRequest.post(url, { headers, body: HttpBody.text(body, "application/json") })
  const began = clock.currentTimeMillisUnsafe()
  const socket = kept.take(began)
  const keep = () => kept.add(clock.currentTimeMillisUnsafe())
  const opened = Effect.flatMap(Plain.sent(client.execute(request), redact, held.own), (response) => {
    kept.open()
    return Connection.open(response, keep)
  })
  return Effect.matchEffect(
    silence.head(opened, (late) => late.cancel()),
    {
      onSuccess: (connection): Effect.Effect<Sent | Unsent> => {
        held.take(connection)
        return isAnswer(connection)
          ? Effect.succeed({ connection, redact, url })
          : Effect.map(refusal(connection, redact, model), (reason) => ({ reason, wasDead: false }))
      },
      onFailure: (error) => {
        const isStalled = error._tag === "StreamStalled"
        const reason = isStalled ? error : Network.reason(error, url, redact, socket === "fresh")
        const isEarly = isAtOnce(began, clock.currentTimeMillisUnsafe())
        return Effect.succeed({ reason, wasDead: socket === "kept" && isEarly && isReset(reason) })
      }
    }
  )
}

const isAnswer = ({ headers, isDecoded, status }: Connection.Connection): boolean =>
  status >= 200 && status < 300 && !(headers["content-type"] ?? "").includes("html") && isDecoded

const isReset = (reason: Reason): boolean => reason._tag === "Transport" && reason.kind === "reset"

/** Why a response is no answer. */
const refusal = Effect.fnUntraced(function* (
  connection: Connection.Connection,
  redact: Secrets.Redact,
  model: string
): Effect.fn.Return<Reason> {
  const { headers, status } = connection
  if (status >= 300 && status < 400) return redirected(status, redact(headers["location"] ?? ""))
  // A browser does not tell what it redirects.
  if (status === 0) return redirected(0, "")

  const body = redact(yield* startOf(connection))
  connection.cancel()
  if (status < 300) {
    const got = connection.isDecoded
      ? (headers["content-type"] ?? "")
      : `the encoding ${headers["content-encoding"]}`
    const detail = `Expected an event stream, got ${redact(got).slice(0, 200)}`
    const told = body === "" ? {} : { body: Failure.excerpt(body) }
    return new ProtocolFault({ kind: "contentType", detail, status, ...told })
  }
  const now = (yield* Clock.Clock).currentTimeMillisUnsafe()
  return Failure.ofResponse({ status, headers: redacted(headers, redact), body, model, now })
})

const redirected = (status: number, location: string): Reason => {
  const target = URL.canParse(location) ? new URL(location).origin : "elsewhere"
  return new Transport({
    kind: "redirect",
    detail: `Redirected to ${target}, which is not followed`,
    ...(status === 0 ? {} : { status })
  })
}

const redacted = (headers: HttpClientResponse.HttpClientResponse["headers"], redact: Secrets.Redact) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, redact(value)]))

/** Enough of a body to tell a failure by, if it comes in time: the status alone says something too. */
const startOf = (connection: Connection.Connection): Effect.Effect<string> =>
  Effect.timeoutOrElse(connection.text(64 * 1024), {
    duration: "2 seconds",
    orElse: () => Effect.succeed("")
  })
