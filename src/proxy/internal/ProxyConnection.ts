/**
 * A request whose response is an answer as server-sent events, as a stream of model events.
 *
 * The stream sends the request when it starts, reads bytes only when its reader pulls events, and closes the connection when its reader
 * leaves.
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { constTrue } from "effect/Function"
import * as Option from "effect/Option"
import type * as Pull from "effect/Pull"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"
import * as Sse from "effect/encoding/Sse"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpClient from "effect/http/HttpClient"
import type { HttpClientError } from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import type { ModelEvent } from "../../ModelEvent.ts"
import type { Server } from "../../Provider.ts"
import {
  InvalidRequest,
  Protocol,
  ProviderError,
  type Reason,
  StreamStalled,
  StreamTruncated
} from "../../ProviderError.ts"
import * as HttpConnection from "../../http/HttpConnection.ts"
import * as VendorFailure from "../../http/VendorFailure.ts"
import * as VendorText from "../../http/VendorText.ts"
import { Retries } from "../../internal/attempts.ts"
import type { Frame } from "./EventFrame.ts"

/**
 * Time limits of one answer, where `"Infinity"` is no limit.
 *
 * @category options
 * @since 0.2.0
 */
export interface Timeouts {
  /** The time from the request to the head of the response (default: 60 seconds). */
  readonly firstByte?: Duration.Input
  /** The time between two pieces of the response, comments that keep the connection alive included (default: 120 seconds). */
  readonly idle?: Duration.Input
}

/** Reads the frames of one answer. */
export interface Decoder {
  /** The events of a frame. */
  readonly step: (frame: Frame) => Result.Result<ReadonlyArray<ModelEvent>, ProviderError>
  /** Whether the answer is complete if nothing follows. */
  readonly isComplete: () => boolean
}

interface Outgoing {
  readonly client: HttpClient.HttpClient
  /** The id of the provider in errors. */
  readonly provider: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly token: Redacted.Redacted | undefined
  readonly body: string
  readonly timeouts: Timeouts | undefined
  readonly decoder: Decoder
}

type Answer = Stream.Stream<ModelEvent, ProviderError>

export const answer = (outgoing: Outgoing): Answer => Stream.unwrap(open(outgoing))

const open = Effect.fnUntraced(function* (
  outgoing: Outgoing
): Effect.fn.Return<Answer, ProviderError, Scope.Scope> {
  const { client, provider, timeouts, url } = outgoing
  const redact = redactOf(outgoing)
  const fail = (reason: Reason) => new ProviderError({ provider, reason })
  const problem = problemOf(outgoing)
  if (problem !== undefined) return yield* fail(new InvalidRequest({ detail: problem }))
  const firstByte = Duration.fromInputUnsafe(timeouts?.firstByte ?? "60 seconds")
  const response = yield* direct(HttpClient.withScope(client).execute(requestOf(outgoing))).pipe(
    Effect.mapError((error) => fail(HttpConnection.reason(error, url, redact))),
    Effect.timeoutOrElse({
      duration: firstByte,
      orElse: () => Effect.fail(fail(stalled("firstByte", firstByte)))
    })
  )
  if (!isAnswer(response)) return yield* fail(yield* of(response, redact))
  return Stream.transformPull(response.stream, (pull) =>
    Effect.sync(() => new Reading(outgoing, pull, redact).pull)
  )
})

/** A request for which each client has another error, or none. */
const problemOf = ({ token, url }: Outgoing): string | undefined => {
  if (!/^https?:\/\//i.test(url)) return "The url has no protocol. Begin it with https:// or http://"
  return token === undefined || /^[\x21-\x7e]+$/.test(Redacted.value(token))
    ? undefined
    : "The token is empty, or has a character that no header may have"
}

const requestOf = ({ body, headers, token, url }: Outgoing): HttpClientRequest.HttpClientRequest => {
  const request = HttpClientRequest.post(url, {
    headers: { accept: "text/event-stream", ...headers },
    body: HttpBody.text(body, "application/json")
  })
  return token === undefined ? request : HttpClientRequest.bearerToken(request, Redacted.value(token))
}

/** Does not follow redirects, which would send the token elsewhere, and sends trace headers only if a tracer is set. */
const direct = <A, E, R>(execute: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.updateContext(execute, (context: Context.Context<R>) => {
    const init = {
      ...Context.getOrUndefined(context, FetchHttpClient.RequestInit),
      redirect: "manual" as const
    }
    const manual = Context.add(context, FetchHttpClient.RequestInit, init)
    return Context.getOrUndefined(context, Tracer.Tracer) === undefined
      ? Context.add(manual, HttpClient.TracerDisabledWhen, constTrue)
      : manual
  })

const redactOf = ({ token }: Outgoing): Redact => {
  const secret = token === undefined ? "" : Redacted.value(token)
  return (text) => VendorText.cutOut(secret === "" ? text : text.replaceAll(secret, VendorText.redacted))
}

const stalled = (kind: StreamStalled["kind"], after: Duration.Duration): StreamStalled =>
  new StreamStalled({ kind, after, detail: `No response of the server within ${Duration.format(after)}` })

// ───────────────────────── The body

/** The next bytes of a body. */
type Bytes<E> = Pull.Pull<Arr.NonEmptyReadonlyArray<Uint8Array>, E>

/** Maximum code units of one event: 32 Mi. */
const maxEvent = 32 * 1024 * 1024

class Reading {
  private readonly outgoing: Outgoing
  private readonly redact: Redact
  private readonly bytes: Bytes<HttpClientError | StreamStalled>
  private readonly utf8 = new TextDecoder()
  private readonly parser: Sse.Parser
  private events: Array<ModelEvent> = []
  private failure: ProviderError | undefined = undefined

  constructor(outgoing: Outgoing, bytes: Bytes<HttpClientError>, redact: Redact) {
    const idle = Duration.fromInputUnsafe(outgoing.timeouts?.idle ?? "120 seconds")
    this.outgoing = outgoing
    this.redact = redact
    this.bytes = Duration.isFinite(idle)
      ? Effect.timeoutOrElse(bytes, { duration: idle, orElse: () => Effect.fail(stalled("idle", idle)) })
      : bytes
    this.parser = Sse.makeParser((event) => this.read(event), { maxEventSize: maxEvent })
  }

  /** The next events. */
  readonly pull: Pull.Pull<Arr.NonEmptyReadonlyArray<ModelEvent>, ProviderError> = Effect.suspend(() => {
    const { events, failure } = this
    if (Arr.isReadonlyArrayNonEmpty(events)) {
      this.events = []
      return Effect.succeed(events)
    }
    return failure === undefined ? this.more() : Effect.fail(failure)
  })

  private more(): typeof this.pull {
    return Effect.matchEffect(this.bytes, {
      onFailure: (error) => {
        if (Cause.isDone(error)) return this.end(new StreamTruncated({ detail: cut }))
        return this.end(error._tag === "StreamStalled" ? error : this.dropped(error))
      },
      onSuccess: (pieces) => {
        for (const bytes of pieces) this.push(this.utf8.decode(bytes, { stream: true }))
        return this.pull
      }
    })
  }

  private push(text: string): void {
    if (this.failure === undefined && this.parser.feed(text) !== undefined) {
      this.failure = this.failed(new Protocol({ kind: "tooLarge", detail: "An event is too large" }))
    }
  }

  private read(event: Sse.AnyEvent): void {
    if (this.failure !== undefined || event._tag === "Retry") return
    const result = this.outgoing.decoder.step(event)
    if (Result.isSuccess(result)) this.events.push(...result.success)
    else this.failure = result.failure
  }

  /** The end of the body, which is that of the answer if it is complete. */
  private end(reason: Reason): Effect.Effect<never, ProviderError | Cause.Done> {
    return this.outgoing.decoder.isComplete() ? Cause.done() : Effect.fail(this.failed(reason))
  }

  /** A connection that breaks after the head of the response truncates the answer. */
  private dropped(error: HttpClientError): Reason {
    const reason = HttpConnection.reason(error, this.outgoing.url, this.redact)
    return reason._tag === "Transport" ? new StreamTruncated({ detail: reason.detail }) : reason
  }

  private failed(reason: Reason): ProviderError {
    return new ProviderError({ provider: this.outgoing.provider, reason })
  }
}

const cut = "The answer ended without its last event"

// ───────────────────────── Refusals

type Redact = (text: string) => string

/** Whether the body of a response is an answer. */
const isAnswer = ({ headers, status }: HttpClientResponse): boolean =>
  status >= 200 && status < 300 && contentType(headers).startsWith("text/event-stream")

const contentType = (headers: HttpClientResponse["headers"]): string => headers["content-type"] ?? ""

const of = Effect.fnUntraced(function* (
  response: HttpClientResponse,
  redact: Redact
): Effect.fn.Return<Reason> {
  const { headers, status } = response
  const redirect = HttpConnection.redirectOf(status, headers["location"] ?? "")
  if (redirect !== undefined) return redirect
  const body = redact(yield* startOf(response))
  const now = (yield* Clock.Clock).currentTimeMillisUnsafe()
  const shown = Object.entries(headers).map(([name, value]) => [name, redact(value)] as const)
  const reason = VendorFailure.ofResponse({ status, headers: Object.fromEntries(shown), body, now })
  if (status >= 300) return reason
  const detail = `Expected an event stream, got ${contentType(headers).slice(0, 200)}`
  const { body: excerpt, requestId } = reason
  return new Protocol({
    kind: "contentType",
    detail,
    status,
    ...(requestId === undefined ? {} : { requestId }),
    ...(excerpt === undefined ? {} : { body: excerpt })
  })
})

/** The start of a body, or `""` for one that does not come within 2 seconds. */
const startOf = (response: HttpClientResponse): Effect.Effect<string> => {
  let text = ""
  const read = response.stream.pipe(
    Stream.decodeText,
    Stream.takeUntil((piece) => (text += piece).length > maxBody),
    Stream.runDrain,
    Effect.ignore
  )
  return Effect.map(Effect.timeoutOption(read, "2 seconds"), (done) => (Option.isNone(done) ? "" : text))
}

const maxBody = 64 * 1024

// ───────────────────────── Another connection

type Reconnected = Stream.Stream<ModelEvent, ProviderError>

/** Three times, after about a quarter of a second, a half, and one second. */
export const schedule: Schedule.Schedule<unknown, ProviderError> = Schedule.exponential("250 millis").pipe(
  Schedule.jittered,
  Schedule.setInputType<ProviderError>(),
  Schedule.upTo({ times: 3 })
)

/** One attempt. `hasBegun`: the server has sent an event. */
export interface Attempt {
  readonly answer: Reconnected
  readonly hasBegun: () => boolean
}

/** The answer of the first attempt that begins. Each further attempt emits an `Attempt` event. */
export const reconnecting = (
  attempt: () => Attempt,
  policy: Schedule.Schedule<unknown, ProviderError>
): Reconnected => Stream.suspend(() => from(attempt, new Retries(policy, maxRetryAfter)))

const maxRetryAfter = "60 seconds"

const from = (attempt: () => Attempt, retries: Retries): Reconnected =>
  Stream.suspend(() => {
    const { answer, hasBegun } = attempt()
    return Stream.catch(answer, (error) => {
      if (hasBegun() || !isOfConnection(error)) return Stream.fail(error)
      const again = Effect.map(retries.delay(error), (delay): Reconnected => {
        if (delay === undefined) return Stream.fail(error)
        const next = Effect.as(Effect.sleep(delay), from(attempt, retries))
        const event: ModelEvent = { _tag: "Attempt", attempt: retries.attempt, delay, error }
        return Stream.concat(Stream.succeed(event), Stream.unwrap(next))
      })
      return Stream.unwrap(again)
    })
  })

/** Whether the connection failed, or a gateway in front of the server refused it. */
const isOfConnection = ({ reason }: ProviderError): boolean =>
  reason._tag === "Transport" ||
  reason._tag === "StreamTruncated" ||
  (reason._tag === "ServerError" && (reason.status === 502 || reason.status === 503 || reason.status === 504))

// ───────────────────────── Addresses

/** The route below an address, which may name the route itself. */
export const addressOf = (url: string, route: string): string => {
  const bare = url.replace(/\/+$/, "")
  return bare.endsWith(route) ? bare : `${bare}${route}`
}

/** The server of a URL. Absent for text that is not a URL, which fails each call. */
export const serverOf = (url: string): { readonly server?: Server } => {
  if (!URL.canParse(url)) return {}
  const { hostname, port, protocol } = new URL(url)
  return { server: { address: hostname, port: Number(port || (protocol === "http:" ? 80 : 443)) } }
}
