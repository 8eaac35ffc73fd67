/**
 * Makes a provider of a protocol, a framing and a deployment: it sends requests, checks the status, and gives the frames of
 * the body to the protocol.
 *
 * All vendors use this module, so that one place handles keys, redirects, time limits and failures.
 *
 * @since 0.2.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import type { HttpClientError } from "effect/http/HttpClientError"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Credentials, type Service as Keys } from "../http/Credentials.ts"
import * as HttpConnection from "../http/HttpConnection.ts"
import * as VendorText from "../http/VendorText.ts"
import { makeId } from "../Message.ts"
import type { ModelEvent } from "../ModelEvent.ts"
import { CountingUnsupported, type ModelRequest, Provider, type TokenCount } from "../Provider.ts"
import { Protocol as ProtocolFault, ProviderError, type Reason, StreamTruncated } from "../ProviderError.ts"
import type { Deployment } from "./Deployment.ts"
import * as Framing from "./Framing.ts"
import { abilities, adjuster } from "./internal/adjust.ts"
import { Answer, type Wire, openReading } from "./internal/answer.ts"
import * as Connection from "./internal/connection.ts"
import * as Json from "./internal/json.ts"
import * as Outgoing from "./internal/connection.ts"
import { type Question, type Call, type Decoder, isReason, type Protocol } from "./Protocol.ts"
import { restorer } from "./internal/toolSchemas.ts"
import { Used } from "./internal/secrets.ts"
import { finder } from "./internal/models/rule.ts"
import { ReplyWriter } from "../reply/ReplyWriter.ts"

export type { Wire } from "./internal/answer.ts"
export type { Timeouts } from "./internal/connection.ts"

/**
 * The parts of a provider.
 *
 * @since 0.2.0
 * @category options
 */
export interface Options {
  /** The bodies of requests and the frames of answers. It names the provider. */
  readonly protocol: Protocol
  /** How the bytes of answers divide into frames (default: `Framing.sse`). */
  readonly framing?: Framing.Framing
  /** The server. */
  readonly deployment: Deployment
  /** How strictly answers are read (default: `"strict"`): see `Wire`. */
  readonly wire?: Wire | undefined
  /** Time limits of one answer (default: 60 seconds to the first byte, 120 seconds between two pieces, no total). */
  readonly timeouts?: Connection.Timeouts | undefined
}

/**
 * Makes a provider.
 *
 * **Details**
 *
 * The provider sends one request for each call, and a second one if the vendor refuses its credentials and there are new
 * ones. It does not retry failed requests: wrap it in `Retry.layer`.
 *
 * The provider leaves out or changes options that the model does not accept, by the rules of `Models`. A note stands in place of an
 * image or a file that the model does not take. `ModelCallEnd.adjusted` reports each change.
 *
 * **Example** (Making a provider for a server of one's own)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Auth, Protocols, Transport } from "effect-agent/providers"
 *
 * const program = Effect.gen(function* () {
 *   const provider = yield* Transport.make({
 *     protocol: Protocols.openAiChat("acme", { maxTokensField: "max_completion_tokens" }),
 *     deployment: {
 *       url: (model) => `https://api.acme.example/models/${model}/chat`,
 *       auth: Auth.header("x-acme-key")
 *     }
 *   })
 *   console.log(provider.id) // => acme
 * })
 *
 * await Effect.runPromise(program.pipe(Effect.provide(FetchHttpClient.layer)))
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Provider["Service"], never, HttpClient.HttpClient> {
  const { deployment, protocol } = options
  const { provider: id } = protocol
  const client = HttpConnection.scoped(yield* httpClient)
  const { serves = {} } = deployment
  const server = { protocol, serves, find: yield* finder({ ...serves, id }) }
  const opened: Opened = {
    framing: Framing.sse,
    ...options,
    client,
    keys: Context.getOrUndefined(yield* Effect.context<never>(), Credentials),
    limits: Connection.limits(options.timeouts),
    used: new Used(),
    adjust: adjuster(server)
  }
  return Provider.of({
    id,
    ...serverOf(deployment.url("model")),
    stream: (request) => answer(opened, request),
    ...abilities(server),
    countTokens: (request) => count(opened, request)
  })
})

/**
 * Makes the `Provider` layer of a protocol, a framing and a deployment.
 *
 * See `make` for its behaviour.
 *
 * **Example** (Giving an agent a server of one's own)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Agent } from "effect-agent"
 * import { Auth, Protocols, Transport } from "effect-agent/providers"
 *
 * const provider = Transport.layer({
 *   protocol: Protocols.openAiResponses("acme"),
 *   deployment: { url: () => "https://api.acme.example/v1/responses", auth: Auth.bearer }
 * }).pipe(Layer.provide(FetchHttpClient.layer))
 *
 * const program = Effect.scoped(Agent.make({ model: "small" }))
 *
 * await Effect.runPromise(program.pipe(Effect.provide(provider)))
 * ```
 *
 * @since 0.2.0
 * @category layers
 */
export const layer = (options: Options): Layer.Layer<Provider, never, HttpClient.HttpClient> =>
  Layer.effect(Provider, make(options))

/** The client that the application provides. Dies with advice if plain JavaScript provides none. */
const httpClient: Effect.Effect<HttpClient.HttpClient, never, HttpClient.HttpClient> = Effect.contextWith(
  (context: Context.Context<HttpClient.HttpClient>) =>
    Option.match(Context.getOption(context, HttpClient.HttpClient), {
      onNone: () => Effect.die(new Error(noClient)),
      onSome: (client) => Effect.succeed(client)
    })
)

const noClient =
  "Service not found: effect/HttpClient. Provide one to the layer of the provider, such as FetchHttpClient.layer of " +
  "effect/http: program.pipe(Effect.provide(provider), Effect.provide(FetchHttpClient.layer))"

/** The server of a URL. Absent for text that is not a URL, which fails each call. */
const serverOf = (url: string): Pick<Provider["Service"], "server"> => {
  if (!URL.canParse(url)) return {}
  const { hostname, port, protocol } = new URL(url)
  return { server: { address: hostname, port: Number(port || (protocol === "http:" ? 80 : 443)) } }
}

interface Opened extends Options {
  readonly framing: Framing.Framing
  readonly client: HttpClient.HttpClient.With<HttpClientError, Scope.Scope>
  /** The `Credentials` at the time of `make`. Those at the time of a request win. */
  readonly keys: Keys | undefined
  readonly limits: Connection.Limits
  readonly used: Used
  readonly adjust: ReturnType<typeof adjuster>
}

// ───────────────────────── An answer

/** The state of one answer, which may need several requests. */
interface Begun {
  readonly call: Call
  readonly decoder: Decoder
  readonly reply: ReplyWriter
}

const begin = ({ protocol }: Opened, question: Question): Begun => {
  const { adjusted, model } = question
  const call = {
    model,
    seed: makeId().slice("msg_".length),
    adjusted,
    question,
    restore: restorer(question.tools)
  }
  const reply = new ReplyWriter(protocol, call)
  return { call, decoder: protocol.decoder(call, reply), reply }
}

/** The events of an answer. Sends a further request each time that the server pauses. */
const answer = (opened: Opened, request: ModelRequest): Stream.Stream<ModelEvent, ProviderError> => {
  const { provider } = opened.protocol
  const question = opened.adjust(request)
  if (isReason(question)) return Stream.fail(new ProviderError({ provider, reason: question }))
  const from = (question: Question, begun: Begun): Stream.Stream<ModelEvent, ProviderError> => {
    const answered = Stream.unwrap(ask(opened, question, begun))
    const { decoder } = begun
    if (decoder.resume === undefined) return answered
    const rest = Stream.suspend(() => {
      const next = decoder.resume?.(question)
      return next === undefined ? Stream.empty : from(next, begun)
    })
    return Stream.concat(answered, rest)
  }
  return Stream.suspend(() => from(question, begin(opened, question)))
}

/** Sends a request, and returns the events of its answer. */
const ask = Effect.fnUntraced(function* (
  opened: Opened,
  question: Question,
  begun: Begun
): Effect.fn.Return<Stream.Stream<ModelEvent, ProviderError>, ProviderError, Scope.Scope> {
  const { deployment, framing, limits, protocol, wire } = opened
  const { provider } = protocol
  const clock = yield* Clock.Clock
  const silence = new Connection.Silence(limits, clock)
  const { model } = question
  const target = {
    model,
    url: deployment.url(model),
    accept: framing.accept,
    body: protocol.encode(question),
    given: question.headers,
    asked: protocol.headers?.(question)
  }
  const { connection, outgoing } = yield* Effect.mapError(send(opened, target, silence), failed(provider))
  const { redact, url } = outgoing
  begun.reply.respond(Connection.headOf(connection.headers, redact, clock.currentTimeMillisUnsafe()))
  const answer = new Answer({ protocol, framing, redact, isLenient: wire === "lenient" }, begun)
  const broken = (cause: unknown) => dropped(HttpConnection.reason(cause, url, redact))
  const next = yield* openReading({ provider, connection, answer, silence, broken })
  return Stream.fromPull(Effect.succeed(next))
})

const failed =
  (provider: string) =>
  (error: Reason | ProviderError): ProviderError =>
    error._tag === "ProviderError" ? error : new ProviderError({ provider, reason: error })

/** A connection that breaks after the head of the response truncates the answer. */
const dropped = (reason: Reason): Reason =>
  reason._tag === "Transport" ? new StreamTruncated({ detail: reason.detail }) : reason

// ───────────────────────── A count of tokens

/** Sends the request that counts the tokens of another one. */
const count = (
  opened: Opened,
  request: ModelRequest
): Effect.Effect<TokenCount, ProviderError | CountingUnsupported> => {
  const { deployment, limits, protocol } = opened
  const { counting, provider } = protocol
  const { countingUrl } = deployment
  const unsupported = new CountingUnsupported({ provider })
  if (counting === undefined || countingUrl === undefined) return Effect.fail(unsupported)
  const question = opened.adjust(request)
  if (isReason(question)) return Effect.fail(failed(provider)(question))
  const { model } = question
  const target = {
    model,
    url: countingUrl(model),
    accept: "application/json",
    body: counting.encode(question),
    given: question.headers,
    asked: protocol.headers?.(question)
  }
  return Effect.gen(function* () {
    const silence = new Connection.Silence(limits, yield* Clock.Clock)
    const { connection, outgoing } = yield* send(opened, target, silence)
    const body = yield* Connection.startOf(connection)
    const inputTokens = counting.read(Json.parseShallow(body) ?? null)
    if (inputTokens !== undefined) return { inputTokens }
    const excerpt = VendorText.excerpt(outgoing.redact(body))
    return yield* new ProtocolFault({ kind: "badShape", detail: "Not a count of tokens", body: excerpt })
  }).pipe(
    Effect.scoped,
    Effect.mapError((error) => (Connection.isNoRoute(error) ? unsupported : failed(provider)(error)))
  )
}

// ───────────────────────── A request

interface Sent {
  readonly connection: Connection.Connection
  readonly outgoing: Outgoing.Outgoing
}

interface Target {
  readonly model: string
  readonly url: string
  readonly accept: string
  /** The encoded request, or the reason why there is none. */
  readonly body: string | Reason
  /** The headers of the application for this request. */
  readonly given: Readonly<Record<string, string>>
  /** The headers that the options of the request need. */
  readonly asked: Readonly<Record<string, string>> | undefined
}

/** Sends a request, and sends it again if the vendor refuses its credentials and there are new ones. */
const send = Effect.fnUntraced(function* (
  opened: Opened,
  target: Target,
  silence: Connection.Silence
): Effect.fn.Return<Sent, Reason | ProviderError, Scope.Scope> {
  const { body, model } = target
  if (isReason(body)) return yield* body
  const stored = yield* givenKey(opened)
  const first = yield* signed(opened, { ...target, body, stored, isRefused: false })
  const sent = yield* Effect.result(once(opened, first, model, silence))
  if (sent._tag === "Success") return { connection: sent.success, outgoing: first }
  const isFixed = Option.isNone(stored) && opened.deployment.apiKey !== undefined
  if (sent.failure._tag !== "Unauthenticated" || isFixed) return yield* sent.failure

  const again = { ...target, body, stored: yield* givenKey(opened), isRefused: true }
  const second = yield* signed(opened, again)
  if (!isNew(second.secrets, first.secrets)) return yield* sent.failure
  return { connection: yield* once(opened, second, model, silence), outgoing: second }
})

const isNew = (
  secrets: ReadonlyArray<Redacted.Redacted>,
  refused: ReadonlyArray<Redacted.Redacted>
): boolean => {
  const known = new Set(refused.map(Redacted.value))
  return secrets.some((secret) => !known.has(Redacted.value(secret)))
}

/** The key that `Credentials` has for the provider now. */
const givenKey = ({
  keys,
  protocol
}: Opened): Effect.Effect<Option.Option<Redacted.Redacted>, ProviderError> =>
  Effect.contextWith((context: Context.Context<never>) => {
    const current = Context.getOrUndefined(context, Credentials) ?? keys
    return current === undefined ? Effect.succeedNone : current.apiKey(protocol.provider)
  })

interface Draft extends Target {
  readonly body: string
  readonly stored: Option.Option<Redacted.Redacted>
  readonly isRefused: boolean
}

/** Makes a request with its credentials. */
const signed = (
  { deployment, used }: Opened,
  { accept, asked, body, given, isRefused, stored, url }: Draft
): Effect.Effect<Outgoing.Outgoing, Reason> => {
  const key = Option.getOrElse(stored, () => deployment.apiKey)
  return Outgoing.post(deployment, { url, accept, given, asked, body, key, isRefused }, used)
}

/** Sends one HTTP request, and waits for the head of its answer. */
const once = (
  { client, deployment }: Opened,
  { redact, request, url }: Outgoing.Outgoing,
  model: string,
  silence: Connection.Silence
): Effect.Effect<Connection.Connection, Reason, Scope.Scope> =>
  Effect.matchEffect(silence.head(Connection.open({ client, request, redact })), {
    onSuccess: (connection) =>
      Connection.isAnswer(connection)
        ? Effect.succeed(connection)
        : Effect.flip(Connection.refusalOf(connection, { redact, otherwise: deployment.otherwise }, model)),
    onFailure: (error) =>
      Effect.fail(error._tag === "StreamStalled" ? error : HttpConnection.reason(error, url, redact))
  })
