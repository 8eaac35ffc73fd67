/**
 * All the HTTP there is: encode, send, look at the status, hand the body to the protocol. One for all vendors and
 * protocols, so that keys, redirects, silence and failures are dealt with in one place.
 */
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Alarm from "../../internal/alarm.ts"
import { Credentials, type Service as Keys } from "../../Credentials.ts"
import * as Handoff from "../../internal/handoff.ts"
import { makeId } from "../../Message.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import { type ModelRequest, Provider } from "../../Provider.ts"
import type { Reason } from "../../ProviderError.ts"
import { InvalidRequest, ProviderError, StreamTruncated } from "../../ProviderError.ts"
import * as Models from "../Models.ts"
import { type Address, Addresses, type Places } from "./addresses.ts"
import { adjuster, type Server } from "./adjust.ts"
import { Answer } from "./answer.ts"
import type * as Connection from "./connection.ts"
import * as Capability from "./capability.ts"
import * as Exchange from "./exchange.ts"
import { Held } from "./held.ts"
import { isAtOnce, Kept } from "./kept.ts"
import * as Network from "./network.ts"
import { type Call, isReason, type Protocol } from "./Protocol.ts"
import type { Question } from "./question.ts"
import * as Reading from "./reading.ts"
import * as Refusal from "./refusal.ts"
import { type Limits, limits, Silence, type Timeouts } from "./silence.ts"

/** A vendor: its language and its address. */
export interface Endpoint<Wire, State> extends Places {
  /** Names the provider in errors, in messages and to `Credentials`. */
  readonly id: string
  readonly protocol: Protocol<Wire, State>
  /** Whose models it serves, and by which API. */
  readonly serves: Omit<Server, "id" | "own">
  /** For when `Credentials` has none. Without any key the request goes out without one, as local servers like it. */
  readonly apiKey?: Redacted.Redacted | undefined
  readonly timeouts?: Timeouts | undefined
}

/** A provider of this endpoint. It asks once, if its socket is alive (`Kept`): `Retry` asks again, around any provider. */
export const make = Effect.fnUntraced(function* <Wire, State>(endpoint: Endpoint<Wire, State>) {
  const client = yield* Exchange.client
  const keys = Context.getOrUndefined(yield* Effect.context<never>(), Credentials)
  const server = { ...endpoint.serves, id: endpoint.id, own: yield* Models.Rules }
  const opened: Opened<Wire, State> = {
    endpoint,
    client,
    keys,
    limits: limits(endpoint.timeouts),
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
  /** Those that were there when it was made; those that are there when it is asked win. */
  readonly keys: Keys | undefined
  readonly limits: Limits
  readonly kept: Kept
  readonly addresses: Addresses
  readonly adjust: ReturnType<typeof adjuster>
}

/** An answer, however many requests it takes. */
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

/** Asks, and again for each time that the server pauses. */
const parts = <Wire, State>(
  opened: Opened<Wire, State>,
  request: ModelRequest
): Stream.Stream<ModelEvent, ProviderError> => {
  const { id: provider, protocol } = opened.endpoint
  const { resume } = protocol
  const question = opened.adjust(request)
  if (isReason(question)) return Stream.fail(new ProviderError({ provider, reason: question }))
  if (resume === undefined)
    return Handoff.opened((scope) => ask(opened, question, begin(opened, question), scope))
  const from = (question: Question, begun: Begun<State>): Stream.Stream<ModelEvent, ProviderError> => {
    const rest = Stream.suspend(() => {
      const next = resume(begun.state, question)
      return next === undefined ? Stream.empty : from(next, begun)
    })
    return Stream.concat(
      Handoff.opened((scope) => ask(opened, question, begun, scope)),
      rest
    )
  }
  return Stream.suspend(() => from(question, begin(opened, question)))
}

/** `isAgain`: the request has gone out before, over a socket that was dead. */
const ask = <Wire, State>(
  opened: Opened<Wire, State>,
  question: Question,
  begun: Begun<State>,
  scope: Scope.Scope,
  isAgain = false
): Effect.Effect<Reading.Next, ProviderError> => {
  const { addresses, client, endpoint, kept, keys, limits } = opened
  const { id: provider, protocol } = endpoint
  const fail = (reason: Reason) => new ProviderError({ provider, reason })
  const body = protocol.encode(question)
  if (isReason(body)) return Effect.fail(fail(body))

  return Effect.contextWith((context: Context.Context<never>) => {
    const clock = Context.get(context, Clock.Clock)
    const silence = new Silence(limits, clock)
    const held = new Held(silence)
    const given = Context.getOrUndefined(context, Credentials) ?? keys
    const { model } = question
    const means = { client, context, silence, held }
    const sent = send({ endpoint, addresses, means, kept, model, body, clock }, given)
    const read = ({ address: { redact, url }, connection }: Sent): Reading.Next => {
      const answer = new Answer(protocol, begun.call, redact, begun.state)
      const broken = (cause: unknown) => dropped(Network.reason(cause, url, redact))
      return Reading.pull({ provider, connection, answer, silence, broken })
    }
    const unsent = ({ reason, wasDead }: Unsent): Effect.Effect<Reading.Next, ProviderError> => {
      const error = fail(reason)
      return wasDead && !isAgain
        ? Effect.succeed(again(error, ask(opened, question, begun, scope, true)))
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
  readonly endpoint: Pick<Endpoint<never, never>, "id" | "apiKey">
  readonly addresses: Addresses
  readonly means: Exchange.Means
  readonly kept: Kept
  readonly model: string
  readonly body: string
  readonly clock: Clock.Clock
}

interface Sent {
  readonly connection: Connection.Connection
  readonly address: Address
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
  { addresses, body, clock, kept, means, model }: Sending,
  key: Redacted.Redacted | undefined
): Effect.Effect<Sent | Unsent> => {
  const address = addresses.of(model, key)
  if (address.problem !== undefined)
    return Effect.succeed({ reason: new InvalidRequest({ detail: address.problem }), wasDead: false })
  const began = Alarm.now(clock)
  const socket = kept.take(began)
  const opened = () => kept.open()
  const keep = () => kept.add(Alarm.now(clock))
  const posted = Exchange.post(means, { address, body, opened, keep })
  return Effect.matchEffect(posted, {
    onSuccess: (connection): Effect.Effect<Sent | Unsent> => {
      means.held.take(connection)
      return Refusal.isAnswer(connection)
        ? Effect.succeed({ connection, address })
        : Effect.map(Refusal.of(connection, address, model), (reason) => ({ reason, wasDead: false }))
    },
    onFailure: (error) => {
      const isStalled = error._tag === "StreamStalled"
      const reason = isStalled
        ? error
        : Network.reason(error.cause, address.url, address.redact, socket === "fresh")
      const isEarly = isAtOnce(began, Alarm.now(clock))
      return Effect.succeed({ reason, wasDead: socket === "kept" && isEarly && isReset(reason) })
    }
  })
}

const isReset = (reason: Reason): boolean => reason._tag === "Transport" && reason.kind === "reset"
