/**
 * The provider of an endpoint: encodes the request, sends it, checks the status and gives the body to the protocol.
 *
 * All vendors and protocols use this module, so that one place handles keys, redirects, time limits and failures.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Credentials, type Service as Keys } from "../../Credentials.ts"
import { makeId } from "../../Message.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import { type ModelRequest, Provider } from "../../Provider.ts"
import type { Reason } from "../../ProviderError.ts"
import { InvalidRequest, ProviderError, StreamTruncated } from "../../ProviderError.ts"
import * as Models from "../Models.ts"
import { type Address, Addresses, type Places } from "./addresses.ts"
import { adjuster, type Server } from "./adjust.ts"
import { Answer } from "./answer.ts"
import * as Capability from "./capability.ts"
import * as Connection from "./connection.ts"
import * as Exchange from "./exchange.ts"
import { isAtOnce, Kept } from "./kept.ts"
import * as Network from "./network.ts"
import { type Call, isReason, type Protocol } from "./Protocol.ts"
import type { Question } from "./question.ts"
import * as Reading from "./reading.ts"
import * as Refusal from "./refusal.ts"
import * as Silence from "./silence.ts"

/** A vendor: its protocol and its address. */
export interface Endpoint<Wire, State> extends Places {
  /** Names the provider in errors, in messages and to `Credentials`. */
  readonly id: string
  readonly protocol: Protocol<Wire, State>
  /** The vendor of its models, and its API. */
  readonly serves: Omit<Server, "id" | "own">
  /** The key if `Credentials` has none. Without any key, requests have none, which local servers accept. */
  readonly apiKey?: Redacted.Redacted | undefined
  readonly timeouts?: Silence.Timeouts | undefined
}

/** Makes the provider of an endpoint. It sends one request, and a second one if a kept socket was dead (`Kept`). */
export const make = Effect.fnUntraced(function* <Wire, State>(endpoint: Endpoint<Wire, State>) {
  const client = yield* Exchange.client
  const keys = Context.getOrUndefined(yield* Effect.context<never>(), Credentials)
  const server = { ...endpoint.serves, id: endpoint.id, own: yield* Models.Rules }
  const opened: Opened<Wire, State> = {
    endpoint,
    client,
    keys,
    limits: Silence.limits(endpoint.timeouts),
    kept: new Kept(),
    addresses: new Addresses(endpoint),
    adjust: adjuster(server)
  }
  return Provider.of({
    id: endpoint.id,
    ...serverOf(endpoint.url("model")),
    stream: (request) => parts(opened, request),
    structuredOutput: Capability.structuredOutput(server)
  })
})

/** The server of a URL. Absent for text that is not a URL, which fails each call. */
const serverOf = (url: string): Pick<Provider["Service"], "server"> => {
  if (!URL.canParse(url)) return {}
  const { hostname, port, protocol } = new URL(url)
  return { server: { address: hostname, port: Number(port || (protocol === "http:" ? 80 : 443)) } }
}

interface Opened<Wire, State> {
  readonly endpoint: Endpoint<Wire, State>
  readonly client: HttpClient.HttpClient
  /** The `Credentials` at the time of `make`. Those at the time of a request win. */
  readonly keys: Keys | undefined
  readonly limits: Silence.Limits
  readonly kept: Kept
  readonly addresses: Addresses
  readonly adjust: ReturnType<typeof adjuster>
}

/** The state of one answer, which may need several requests. */
interface Begun<State> {
  readonly call: Call
  readonly state: State
}

const begin = <Wire, State>(
  { endpoint }: Opened<Wire, State>,
  { adjusted, model }: Question
): Begun<State> => {
  const call = { model, seed: makeId().slice("msg_".length), adjusted }
  return { call, state: endpoint.protocol.initial(call) }
}

/** The events of an answer. Sends a further request each time that the server pauses. */
const parts = <Wire, State>(
  opened: Opened<Wire, State>,
  request: ModelRequest
): Stream.Stream<ModelEvent, ProviderError> => {
  const { id: provider, protocol } = opened.endpoint
  const { resume } = protocol
  const question = opened.adjust(request)
  if (isReason(question)) return Stream.fail(new ProviderError({ provider, reason: question }))
  const answered = (question: Question, begun: Begun<State>) => Stream.unwrap(ask(opened, question, begun))
  if (resume === undefined) return Stream.suspend(() => answered(question, begin(opened, question)))
  const from = (question: Question, begun: Begun<State>): Stream.Stream<ModelEvent, ProviderError> => {
    const rest = Stream.suspend(() => {
      const next = resume(begun.state, question)
      return next === undefined ? Stream.empty : from(next, begun)
    })
    return Stream.concat(answered(question, begun), rest)
  }
  return Stream.suspend(() => from(question, begin(opened, question)))
}

/** Sends a request. `isAgain`: the provider has sent it before, over a socket that was dead. */
const ask = Effect.fnUntraced(function* <Wire, State>(
  opened: Opened<Wire, State>,
  question: Question,
  begun: Begun<State>,
  isAgain = false
): Effect.fn.Return<Stream.Stream<ModelEvent, ProviderError>, ProviderError, Scope.Scope> {
  const { addresses, client, endpoint, kept, keys, limits } = opened
  const { id: provider, protocol } = endpoint
  const fail = (reason: Reason) => new ProviderError({ provider, reason })
  const body = protocol.encode(question)
  if (isReason(body)) return yield* fail(body)

  const context = yield* Effect.context<never>()
  const clock = Context.get(context, Clock.Clock)
  const silence = new Silence.Silence(limits, clock)
  const { model } = question
  const given = Context.getOrUndefined(context, Credentials) ?? keys
  const sent = yield* send({ endpoint, addresses, client, silence, kept, model, body, clock }, given)
  if (isUnsent(sent)) {
    const error = fail(sent.reason)
    if (!sent.wasDead || isAgain) return yield* error
    return Stream.concat(Stream.make(again(error)), Stream.unwrap(ask(opened, question, begun, true)))
  }
  const { address, connection } = sent
  const { redact, url } = address
  const answer = new Answer(protocol, begun.call, redact, begun.state)
  const broken = (cause: unknown) => dropped(Network.reason(cause, url, redact))
  const next = yield* Reading.open({ provider, connection, answer, silence, broken })
  return Stream.fromPull(Effect.succeed(next))
})

/** Announces that the provider sends the request again, without a wait. */
const again = (error: ProviderError): ModelEvent => ({
  _tag: "Attempt",
  attempt: 1,
  delay: Duration.zero,
  error
})

/** A connection that breaks after the head of the response truncates the answer. */
const dropped = (reason: Reason): Reason =>
  reason._tag === "Transport" ? new StreamTruncated({ detail: reason.detail }) : reason

interface Sending {
  readonly endpoint: Pick<Endpoint<never, never>, "id" | "apiKey">
  readonly addresses: Addresses
  readonly client: HttpClient.HttpClient
  readonly silence: Silence.Silence
  readonly kept: Kept
  readonly model: string
  readonly body: string
  readonly clock: Clock.Clock
}

interface Sent {
  readonly connection: Connection.Connection
  readonly address: Address
}

/** The request has no answer. */
interface Unsent {
  readonly reason: Reason
  /** Whether a socket was probably dead before the request. */
  readonly wasDead: boolean
}

const isUnsent = (sent: Sent | Unsent): sent is Unsent => "reason" in sent

/** Sends a request with the current key. */
const send = (
  sending: Sending,
  keys: Keys | undefined
): Effect.Effect<Sent | Unsent, ProviderError, Scope.Scope> =>
  keys === undefined ? once(sending, sending.endpoint.apiKey) : sendWith(sending, keys)

/** Sends a request, and sends it again if the vendor refuses the key and `keys` has a new one. */
const sendWith = Effect.fnUntraced(function* (
  sending: Sending,
  keys: Keys
): Effect.fn.Return<Sent | Unsent, ProviderError, Scope.Scope> {
  const { apiKey, id } = sending.endpoint
  const current = yield* keys.apiKey(id)
  const first = yield* once(
    sending,
    Option.getOrElse(current, () => apiKey)
  )
  const isRefused = isUnsent(first) && first.reason._tag === "Unauthenticated"
  if (Option.isNone(current) || !isRefused) return first

  const next = yield* keys.apiKey(id)
  const isNew = Option.isSome(next) && Redacted.value(next.value) !== Redacted.value(current.value)
  return isNew ? yield* once(sending, next.value) : first
})

/** Sends one HTTP request. Returns the connection of its answer, or the reason why it has none. */
const once = (
  { addresses, body, client, clock, kept, model, silence }: Sending,
  key: Redacted.Redacted | undefined
): Effect.Effect<Sent | Unsent, never, Scope.Scope> => {
  const address = addresses.of(model, key)
  if (address.problem !== undefined)
    return Effect.succeed({ reason: new InvalidRequest({ detail: address.problem }), wasDead: false })
  const { redact, url } = address
  const began = Silence.now(clock)
  const socket = kept.take(began)
  const connection = Connection.open({
    client,
    request: Exchange.post(address, body),
    redact,
    opened: () => kept.open(),
    kept: () => kept.add(Silence.now(clock))
  })
  return Effect.matchEffect(silence.head(connection), {
    onSuccess: (connection): Effect.Effect<Sent | Unsent> =>
      Refusal.isAnswer(connection)
        ? Effect.succeed({ connection, address })
        : Effect.map(Refusal.of(connection, address, model), (reason) => ({ reason, wasDead: false })),
    onFailure: (error) => {
      const isStalled = error._tag === "StreamStalled"
      const reason = isStalled ? error : Network.reason(error, url, redact, socket === "fresh")
      const isEarly = isAtOnce(began, Silence.now(clock))
      return Effect.succeed({ reason, wasDead: socket === "kept" && isEarly && isReset(reason) })
    }
  })
}

const isReset = (reason: Reason): boolean => reason._tag === "Transport" && reason.kind === "reset"
