/** A request as it goes out: with its address, its headers, and the secrets to keep out of errors. */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { constTrue } from "effect/Function"
import type * as Redacted from "effect/Redacted"
import * as Tracer from "effect/Tracer"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Headers from "effect/http/Headers"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as UrlParams from "effect/http/UrlParams"
import { InvalidRequest, type Reason } from "../../ProviderError.ts"
import type { Unsigned } from "../Auth.ts"
import type { Deployment } from "../Deployment.ts"
import * as Secrets from "./secrets.ts"
import type { Redact } from "./secrets.ts"

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

// ───────────────────────── Spans

// Spans of requests without secrets, which may occur in the response of a server and in the errors of a client.

/** A tracer that redacts all texts. */
export const redacting = (tracer: Tracer.Tracer, redact: Redact): Tracer.Tracer =>
  Tracer.make({
    span: (options) => redactingSpan(tracer.span(options), redact),
    ...(tracer.context === undefined ? {} : { context: tracer.context })
  })

/** A proxy, because exporters store their own members in a span. */
const redactingSpan = (span: Tracer.Span, redact: Redact): Tracer.Span => {
  const clean = (value: unknown): unknown => (typeof value === "string" ? redact(value) : value)
  const overrides = {
    attribute: (key: string, value: unknown) => span.attribute(key, clean(value)),
    event: (name: string, startTime: bigint, attributes: Record<string, unknown> = {}) =>
      span.event(
        redact(name),
        startTime,
        Object.fromEntries(Object.entries(attributes).map(([key, value]) => [key, clean(value)]))
      ),
    end: (endTime: bigint, exit: Exit.Exit<unknown, unknown>) => span.end(endTime, cleanExit(exit, redact))
  }
  return new Proxy(span, {
    get: (target, name) => {
      const member: unknown = Reflect.get(Object.hasOwn(overrides, name) ? overrides : target, name)
      return typeof member === "function" ? member.bind(target) : member
    }
  })
}

/** Keeps only the message of a failure, because errors contain the request with its headers. */
const cleanExit = (exit: Exit.Exit<unknown, unknown>, redact: Redact): Exit.Exit<unknown, unknown> => {
  if (Exit.isSuccess(exit)) return Exit.void
  if (Cause.hasInterruptsOnly(exit.cause)) return exit
  const failure = Cause.squash(exit.cause)
  const error = new Error(redact(failure instanceof Error ? failure.message : String(failure)))
  if (failure instanceof Error) error.name = failure.name
  return Exit.fail(error)
}

// ───────────────────────── Plain requests

// Runs a request without following redirects, which would send the key to another origin, and without a span or
// trace headers unless a tracer is set.

export const sent = <A, E, R>(
  execute: Effect.Effect<A, E, R>,
  redact: Secrets.Redact
): Effect.Effect<A, E, R> =>
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
      Context.add(Tracer.Tracer, redacting(tracer, redact)),
      Context.add(Headers.CurrentRedactedNames, [...names, Secrets.secretName]),
      // The names of query parameters do not show which of them are secret.
      Context.add(UrlParams.CurrentRedactedNames, [/^/])
    )
  })
