/**
 * The connection that one response comes over.
 */
import type * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import type { ModelEvent, RateLimit } from "../../ModelEvent.ts"
import {
  Protocol as ProtocolFault,
  type ProviderError,
  type Reason,
  StreamStalled,
  InvalidRequest
} from "../../ProviderError.ts"
import * as VendorFailure from "../../http/VendorFailure.ts"
import { refusedPart } from "../../http/VendorErrors.ts"
import * as HttpConnection from "../../http/HttpConnection.ts"
import * as VendorText from "../../http/VendorText.ts"
import { ofResponse } from "./reading.ts"
import * as Secrets from "./secrets.ts"
import * as Context from "effect/Context"
import { constTrue } from "effect/Function"
import type * as Redacted from "effect/Redacted"
import * as Tracer from "effect/Tracer"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Headers from "effect/http/Headers"
import * as HttpBody from "effect/http/HttpBody"
import * as UrlParams from "effect/http/UrlParams"
import type { Unsigned } from "../Auth.ts"
import type { Deployment } from "../Deployment.ts"

/** A request. */
export interface Asking {
  readonly client: HttpClient.HttpClient.With<HttpClientError.HttpClientError, Scope.Scope>
  readonly request: HttpClientRequest.HttpClientRequest
  readonly redact: Secrets.Redact
}

/** Sends a request and waits for the head of its response. The scope releases the connection. */
export const open = (
  asking: Asking
): Effect.Effect<Connection, HttpClientError.HttpClientError, Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Scope.make(), (own) => {
      const opened = Effect.flatMap(sent(asking), (response) => answered(response, own))
      return restore(Scope.provide(opened, own)).pipe(
        Effect.onError((cause) => Scope.close(own, Exit.failCause(cause))),
        Effect.tap((connection) => Effect.addFinalizer(() => connection.release))
      )
    })
  )

const sent = ({ client, redact, request }: Asking) => plainly(client.execute(request), redact)

const answered = (
  response: HttpClientResponse.HttpClientResponse,
  scope: Scope.Closeable
): Effect.Effect<Connection> => {
  const { bytes, isDecoded } = bodyOf(response)
  return Effect.map(
    Channel.toPullScoped(Stream.toChannel(bytes), scope),
    (pull) => new Connection(response, { isDecoded, pull, scope })
  )
}

/** The next bytes of a body. */
type Bytes = Pull.Pull<Arr.NonEmptyReadonlyArray<Uint8Array>, HttpClientError.HttpClientError>

interface Parts {
  readonly isDecoded: boolean
  readonly pull: Bytes
  /** Closes the socket, unless the body was read to its end. */
  readonly scope: Scope.Closeable
}

/** An open connection. */
export class Connection {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** `false` if the body has an unknown encoding. */
  readonly isDecoded: boolean
  /** The next bytes of the body. */
  readonly pull: Bytes
  /** Closes the socket at once, unless the body was read to its end. */
  readonly close: Effect.Effect<void>
  private isFinishing = false

  constructor({ headers, status }: HttpClientResponse.HttpClientResponse, { isDecoded, pull, scope }: Parts) {
    this.status = status
    this.headers = headers
    this.isDecoded = isDecoded
    this.pull = pull
    this.close = Scope.close(scope, Exit.void)
  }

  /** Reports that the answer is complete. The release then reads to the end of the body, so that the client keeps the socket. */
  finish(): void {
    this.isFinishing = true
  }

  /** Closes the connection at once, unless the answer is complete. */
  get drop(): Effect.Effect<void> {
    return Effect.suspend(() => (this.isFinishing ? Effect.void : this.close))
  }

  /** Closes the connection. Of a complete answer, a detached fiber does it at the end of the body, at most `grace` later. */
  get release(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (!this.isFinishing) return this.close
      return Effect.flatMap(Effect.forkDetach(this.skip(maxRest), { startImmediately: true }), (rest) => {
        if (rest.pollUnsafe() !== undefined) return this.close
        const end = Effect.andThen(Effect.timeoutOption(Fiber.await(rest), grace), this.close)
        return Effect.asVoid(Effect.forkDetach(end))
      })
    })
  }

  /** Reads to the end of the body, if that is within `limit` bytes. */
  private skip(limit: number): Effect.Effect<void> {
    return Effect.matchEffect(this.pull, {
      onFailure: () => Effect.void,
      onSuccess: (pieces) => {
        const left = pieces.reduce((left, { length }) => left - length, limit)
        return left > 0 ? this.skip(left) : Effect.void
      }
    })
  }

  /** The start of the body as text: `limit` bytes or a little more, or fewer if the body ends or breaks before. */
  text(limit: number): Effect.Effect<string> {
    if (!this.isDecoded) return Effect.succeed("")
    const decoder = new TextDecoder()
    let text = ""
    let left = limit
    const more: Effect.Effect<void> = Effect.matchEffect(this.pull, {
      onFailure: () => Effect.void,
      onSuccess: (pieces) => {
        for (const bytes of pieces) {
          text += decoder.decode(bytes, { stream: true })
          left -= bytes.length
        }
        return left > 0 ? more : Effect.void
      }
    })
    return Effect.map(more, () => text)
  }
}

/** Whether an error of `pull` is the end of the body. `fetch` fails for a body that is absent, such as with status 204. */
export const isEnd = (error: HttpClientError.HttpClientError | Cause.Done): boolean =>
  Cause.isDone(error) || error.reason._tag === "EmptyBodyError"

/** Servers end the body within one round trip of the last event. */
const grace = "100 millis"
/** Maximum bytes after the last event. A server that sends more does not end the body. */
const maxRest = 64 * 1024

// ───────────────────────── The body

// The decoded bytes of a response body.
//
// `fetch` decodes a compressed body. Other clients leave that to their callers and request no encoding, but some servers
// compress without a request for it.

export interface Body {
  /** `false` if the body has an encoding that this module does not know, so that `bytes` cannot be read. */
  readonly isDecoded: boolean
  /** The bytes after decoding. */
  readonly bytes: Stream.Stream<Uint8Array, HttpClientError.HttpClientError>
}

type Response = HttpClientResponse.HttpClientResponse

/** The body of a response. */
export const bodyOf = (response: Response): Body => {
  const encoding = response.headers["content-encoding"]?.trim().toLowerCase() ?? ""
  if (Option.isSome(HttpClientResponse.toWeb(response))) {
    const isDecoded = encoding.split(",").every((name) => byFetch.has(name.trim()))
    return { isDecoded, bytes: response.stream }
  }
  const decompression = decompressionOf(encoding)
  return decompression === undefined
    ? { isDecoded: unencoded.has(encoding), bytes: response.stream }
    : { isDecoded: true, bytes: decompressed(response, decompression) }
}

/** `undefined` if the runtime does not know the encoding. */
const decompressionOf = (encoding: string): DecompressionStream | undefined => {
  const format = formats.get(encoding)
  try {
    return format === undefined ? undefined : runtime.decompression(format)
  } catch {
    return undefined
  }
}

/** Runtimes know more formats than the types of browsers list, or fewer. They throw for an unknown one. */
interface Runtime {
  decompression(format: string): DecompressionStream
}
const runtime: Runtime = { decompression: (format: CompressionFormat) => new DecompressionStream(format) }

const formats: ReadonlyMap<string, string> = new Map([
  ["gzip", "gzip"],
  ["x-gzip", "gzip"],
  ["deflate", "deflate"],
  ["br", "brotli"]
])

const unencoded: ReadonlySet<string> = new Set(["", "identity"])
const byFetch: ReadonlySet<string> = new Set([...unencoded, ...formats.keys(), "zstd"])

const decompressed = (response: Response, decompression: DecompressionStream): Body["bytes"] => {
  // `DecompressionStream` accepts no views of shared memory, and the type of `bytes` includes them.
  const compressed = Stream.map(response.stream, (bytes) => Uint8Array.from(bytes))
  const readable = Effect.map(Stream.toReadableStreamEffect(compressed), (stream) =>
    Stream.fromReadableStream({
      evaluate: () => stream.pipeThrough(decompression),
      onError: (cause) =>
        new HttpClientError.HttpClientError({
          reason: new HttpClientError.DecodeError({ request: response.request, response, cause })
        })
    })
  )
  return Stream.unwrap(readable)
}

// ───────────────────────── Silence

// Time limits for the silence of a provider.

/**
 * Time limits of one answer, where `"Infinity"` is no limit.
 *
 * @since 0.1.0
 * @category options
 */
export interface Timeouts {
  /** The time from the request to the head of the response (default: 60 seconds). */
  readonly firstByte?: Duration.Input
  /**
   * The time between two pieces of content, while the reader waits for one (default: 120 seconds).
   *
   * Keep-alives are not content.
   */
  readonly idle?: Duration.Input
  /** The time of the whole answer (default: none). */
  readonly total?: Duration.Input
}

/** Time limits in milliseconds. `Infinity` is no limit. */
export interface Limits {
  readonly firstByte: number
  readonly idle: number
  readonly total: number
}

/** The limits in milliseconds, with the defaults. */
export const limits = (timeouts: Timeouts = {}): Limits => ({
  firstByte: Duration.toMillis(timeouts.firstByte ?? "60 seconds"),
  idle: Duration.toMillis(timeouts.idle ?? "120 seconds"),
  total: Duration.toMillis(timeouts.total ?? Duration.infinity)
})

/** The time limits of one answer, which begins when this is made. */
export class Silence {
  private readonly limits: Limits
  private readonly clock: Clock.Clock
  /** The end of the time limit of the whole answer, in milliseconds of `now`. */
  private readonly last: number
  /** The end of the time limit of the current wait, in milliseconds of `now`. `Infinity` while the reader does not wait. */
  private until = Infinity

  constructor(limits: Limits, clock: Clock.Clock) {
    this.limits = limits
    this.clock = clock
    this.last = now(clock) + limits.total
  }

  /** Waits for the head of a response. Fails with `StreamStalled` if that takes too long. */
  head<A, E, R>(head: Effect.Effect<A, E, R>): Effect.Effect<A, E | StreamStalled, R> {
    const { firstByte } = this.limits
    const left = this.last - now(this.clock)
    return Effect.timeoutOrElse(head, {
      duration: Math.min(firstByte, left),
      orElse: () => Effect.fail(this.stalled(left < firstByte ? "total" : "firstByte"))
    })
  }

  /** Starts the time limit of content, for which the reader waits from now on. */
  startContent(): void {
    this.until = now(this.clock) + this.limits.idle
  }

  /** Starts the time limit of the end of an answer that may be over: 10 seconds at most. */
  startEnd(): void {
    this.until = now(this.clock) + Math.min(this.limits.idle, afterEnd)
  }

  /** Ends the time limit that runs: the reader does not wait any longer. */
  stop(): void {
    this.until = Infinity
  }

  /** Waits until a time limit passes. One fiber must run this until the answer is over: `Effect.timeout` is two for each wait. */
  readonly passed: Effect.Effect<StreamStalled> = Effect.suspend(() => {
    const { last, until } = this
    const left = Math.min(until, last) - now(this.clock)
    if (left > 0) return Effect.andThen(Effect.sleep(Math.min(left, this.shortest)), this.passed)
    return Effect.succeed(this.stalled(last <= until ? "total" : "idle"))
  })

  /** The shortest time limit in milliseconds: a wait that begins while `passed` sleeps is not over when it wakes. */
  private get shortest(): number {
    return Math.max(10, Math.min(this.limits.idle, afterEnd))
  }

  private stalled(kind: StreamStalled["kind"]): StreamStalled {
    const after = Duration.millis(this.limits[kind])
    return new StreamStalled({ kind, after, detail: `${words[kind]} ${Duration.format(after)}` })
  }
}

/** Milliseconds of a monotonic clock. */
export const now = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1_000_000

/** Maximum wait for the end of an answer that may be over, in milliseconds. */
const afterEnd = 10_000

const words: Readonly<Record<StreamStalled["kind"], string>> = {
  firstByte: "No response within",
  idle: "No content for",
  total: "The answer took more than"
}

// ───────────────────────── The head

// The head of a response as events have it: its headers, and the rate limits that they report.

export type Head = Pick<Extract<ModelEvent, { readonly _tag: "Start" }>, "headers" | "rateLimits">
type Headers = Readonly<Record<string, string>>
type RateLimits = Readonly<Record<string, RateLimit>>

/** Reads the headers of a response. `now` is in milliseconds since the epoch. */
export const headOf = (all: Headers, redact: Secrets.Redact, now: number): Head => {
  const headers = redactedNames(VendorText.shown(all), redact)
  const limits = Object.entries(headers).reduce((limits, field) => added(limits, field, now), none)
  return {
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    ...(limits === none ? {} : { rateLimits: limits })
  }
}

const none: RateLimits = {}

/** Most responses have no secret, which one search shows. */
const redactedNames = (headers: Headers, redact: Secrets.Redact): Headers => {
  const text = Object.values(headers).join("\n")
  if (redact(text) === text) return headers
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, redact(value)]))
}

/** OpenAI's form, also without a subject or with a period at the end, and Anthropic's. */
const forms = [
  /^(?:x-)?ratelimit-(?<kind>limit|remaining|reset)(?:-(?<subject>req|requests|tokens|(?:in|out)put-tokens))?(?:-\w+)?$/,
  /^anthropic-ratelimit-(?<subject>requests|tokens|(?:in|out)put-tokens)-(?<kind>limit|remaining|reset)$/
]

const names: Readonly<Record<string, string>> = {
  tokens: "tokens",
  "input-tokens": "inputTokens",
  "output-tokens": "outputTokens"
}

const added = (limits: RateLimits, [header, value]: readonly [string, string], now: number): RateLimits => {
  const { kind, subject = "" } = forms.map((form) => form.exec(header)?.groups).find((found) => found) ?? {}
  const member = kind === "reset" ? "resetAfter" : kind
  if (member === undefined) return limits
  const name = names[subject] ?? "requests"
  const known = limits[name] ?? {}
  const found = kind === "reset" ? VendorFailure.resetAt(value.trim(), now) : numberIn(value)
  if (found === undefined || member in known) return limits
  const read = kind === "reset" ? Duration.millis(Math.max(0, found)) : found
  return { ...limits, [name]: { ...known, [member]: read } }
}

const numberIn = (value: string): number | undefined =>
  /^\d+(?:\.\d+)?$/.test(value.trim()) ? Number(value) : undefined

// ───────────────────────── Refusals

// The reason of a response that is not an answer.

/** Whether the body of a response may be an event stream. */
export const isAnswer = ({ headers, isDecoded, status }: Connection): boolean =>
  status >= 200 && status < 300 && !(headers["content-type"] ?? "").includes("html") && isDecoded

/** Reads the reason from a response that is not an answer, and closes its connection. */
export const refusalOf = Effect.fnUntraced(function* (
  connection: Connection,
  { otherwise, redact }: { readonly otherwise: string | undefined; readonly redact: Secrets.Redact },
  model: string
): Effect.fn.Return<Reason> {
  const { headers, status } = connection
  const redirect = HttpConnection.redirectOf(status, redact(headers["location"] ?? ""))
  if (redirect !== undefined) return redirect
  const body = redact(yield* startOf(connection))
  yield* connection.close
  if (status < 300) {
    const got = connection.isDecoded
      ? (headers["content-type"] ?? "")
      : `the encoding ${headers["content-encoding"]}`
    const detail = `Expected an event stream, got ${redact(got).slice(0, 200)}. Check the base URL, which often ends with /v1`
    const excerpt = body === "" ? {} : { body: VendorText.excerpt(body) }
    return new ProtocolFault({ kind: "contentType", detail, status, ...excerpt })
  }
  const now = (yield* Clock.Clock).currentTimeMillisUnsafe()
  const advice = hasNoRoute(status, body) ? otherwise : undefined
  return ofResponse({ status, headers: redacted(headers, redact), body, model, now, advice })
})

/** Whether the server does not know the route. A server that knows it mentions the model or the part that it does not find. */
const hasNoRoute = (status: number, body: string): boolean =>
  status === 405 || (status === 404 && !/model/i.test(body) && refusedPart([], body) === undefined)

/** Whether a request failed because the server does not know its route. */
export const isNoRoute = (error: Reason | ProviderError): boolean =>
  error._tag !== "ProviderError" && error.status !== undefined && hasNoRoute(error.status, error.body ?? "")

const redacted = (headers: Connection["headers"], redact: Secrets.Redact) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, redact(value)]))

/** Reads the first 64 KiB of a body, for 2 seconds at most. Returns "" after that: the status is a reason too. */
export const startOf = (connection: Connection): Effect.Effect<string> =>
  Effect.timeoutOrElse(connection.text(64 * 1024), {
    duration: "2 seconds",
    orElse: () => Effect.succeed("")
  })

// ───────────────────────── Requests

// A request as it goes out: with its address, its headers, and the secrets to keep out of errors.

export interface Outgoing {
  readonly request: HttpClientRequest.HttpClientRequest
  readonly url: string
  readonly redact: Secrets.Redact
  /** The secrets of its credentials. */
  readonly secrets: ReadonlyArray<Redacted.Redacted>
}

/** The parts of a request that the credentials depend on. */
export interface Draft extends Pick<Unsigned, "body" | "key" | "isRefused"> {
  readonly url: string
  readonly accept: string
  /** The headers of the application for this request (default: none). */
  readonly given?: Readonly<Record<string, string>> | undefined
  /** The headers that the options of the request need (default: none). */
  readonly asked?: Readonly<Record<string, string>> | undefined
}

/** Makes a POST request with a JSON text. */
export const post = Effect.fnUntraced(function* (
  { auth, headers }: Pick<Deployment, "auth" | "headers">,
  { accept, asked = {}, body, given = {}, isRefused, key, url }: Draft,
  used: Secrets.Used
): Effect.fn.Return<Outgoing, Reason> {
  const usual = Headers.fromInput({ accept, ...headers })
  const named = Object.entries(given).reduce(
    (all, [name, value]) =>
      isList.test(name) ? withItems(all, [name, value]) : Headers.set(all, name, value),
    usual
  )
  const typed = Headers.set(named, "content-type", "application/json")
  const plain = Object.entries(asked).reduce(withItems, typed)
  const wrong = problemOfUrl(url)
  if (wrong !== undefined) return yield* new InvalidRequest({ detail: wrong })
  const signed = yield* auth({ method: "POST", url, headers: plain, body, key, isRefused })
  // Credentials win over headers of the application, which win over those of the provider.
  const all = Headers.setAll(plain, signed.headers)
  const problem = problemOf(all)
  if (problem !== undefined) return yield* new InvalidRequest({ detail: problem })
  return {
    request: HttpClientRequest.post(url, { headers: all, body: HttpBody.text(body, "application/json") }),
    url,
    redact: Secrets.make(used.with(signed.secrets), all, url),
    secrets: signed.secrets
  }
})

/** Headers whose values are lists, to which requests add. */
const isList = /-beta$/i

/** Adds the items of a list to a header, except those that it has. */
const withItems = (headers: Headers.Headers, [name, list]: readonly [string, string]): Headers.Headers => {
  const items = [headers[name.toLowerCase()] ?? "", list].flatMap((text) => text.split(","))
  const all = new Set(items.map((item) => item.trim()).filter((item) => item !== ""))
  return Headers.set(headers, name, [...all].join(","))
}

/**
 * An address without a protocol, for which each client has another error. The message contains only the host,
 * because the rest may contain a key.
 */
const problemOfUrl = (url: string): string | undefined => {
  if (/^https?:\/\//i.test(url)) return undefined
  const host = url
    .replace(/[/?#].*$/s, "")
    .replace(/^.*@/s, "")
    .slice(0, 200)
  const isLocal = /^(?:localhost|127\.|\[?::1)/.test(host)
  return (
    `The baseUrl ${JSON.stringify(host)} has no protocol. ` +
    `Begin it with ${isLocal ? "http" : "https"}://, as in ${JSON.stringify(`${isLocal ? "http" : "https"}://${host}`)}`
  )
}

/** A header that HTTP does not permit. Some clients fail with their own error, some die. */
const problemOf = (headers: Headers.Headers): string | undefined => {
  for (const [name, value] of Object.entries(headers)) {
    if (!isName.test(name)) return `No header can have the name ${JSON.stringify(name)}`
    if (!isValue.test(value)) {
      return (
        `The header ${name} has a line end, or another character that no header may have. ` +
        "Check the key or the value that was set for it."
      )
    }
  }
  return undefined
}

/** https://www.rfc-editor.org/rfc/rfc9110#name-fields */
const isName = /^[\w!#$%&'*+.^`|~-]+$/
const isValue = /^[\t\x20-\x7e\x80-\xff]*$/

// ───────────────────────── Plain requests

// Runs a request without following redirects, which would send the key to another origin, and without a span or
// trace headers unless a tracer is set.

const plainly = <A, E, R>(execute: Effect.Effect<A, E, R>, redact: Secrets.Redact): Effect.Effect<A, E, R> =>
  Effect.updateContext(execute, (context: Context.Context<R>) => {
    const init = {
      ...Context.getOrUndefined(context, FetchHttpClient.RequestInit),
      redirect: "manual" as const
    }
    const direct = Context.add(context, FetchHttpClient.RequestInit, init)
    // The loop has its own spans, so a parent span does not prove that the application has a tracer.
    const tracer = Context.getOrUndefined(context, Tracer.Tracer)
    if (tracer === undefined) {
      return Context.add(direct, HttpClient.TracerDisabledWhen, constTrue)
    }
    const names = Context.get(context, Headers.CurrentRedactedNames)
    return direct.pipe(
      Context.add(Tracer.Tracer, Secrets.redacting(tracer, redact)),
      Context.add(Headers.CurrentRedactedNames, [...names, Secrets.secretName]),
      // The names of query parameters do not show which of them are secret.
      Context.add(UrlParams.CurrentRedactedNames, [/^/])
    )
  })
