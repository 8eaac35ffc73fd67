/**
 * The connection of a request to a provider: why it failed, and when it closes.
 *
 * Runtimes and clients wrap errors differently; the code is in one of the causes.
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { hasProperty } from "effect/Predicate"
import * as Scope from "effect/Scope"
import * as HttpClient from "effect/http/HttpClient"
import type { HttpClientRequest } from "effect/http/HttpClientRequest"
import { type Reason, InvalidRequest, StreamStalled, Transport } from "../ProviderError.ts"

/**
 * The reason for an error of a client. `redact` replaces secrets in its message, which contains only the host of the URL, because the
 * rest may contain a key.
 */
export const reason = (cause: unknown, url: string, redact: (text: string) => string): Reason => {
  const chain = causes(cause)
  const code = chain.map(codeOf).find((found) => found !== undefined) ?? ""
  const last = chain.findLast((link) => link instanceof Error && link.message !== "")
  const original = last instanceof Error ? last.message : String(last ?? "The connection failed")
  // Redacts first, because white space may be part of a secret.
  const message = redact(original.slice(0, maxMessage)).replace(/\s+/g, " ").trim().slice(0, 300)
  const host = URL.canParse(url) ? new URL(url).host : "no URL"
  const detail = `${message.includes(code) ? message : `${code}: ${message}`} (${host})`
  if (chain.some(isOurs) || /^ERR_INVALID_|invalid header|bad port/i.test(`${code} ${message}`))
    return new InvalidRequest({ detail })
  const stall = stalls.get(code)
  if (stall !== undefined) return new StreamStalled({ kind: stall, detail, after: Duration.seconds(300) })
  const kind = chain.some(isBadHttp) ? "badHttp" : kindOf(code)
  return new Transport({ kind, detail, ...(code === "" ? {} : { code }) })
}

// Only these characters are searched with patterns, which may take quadratic time.
const maxMessage = 4096

type Kind = Transport["kind"]

/**
 * The part of a connection that failed and its code, by an error of a client that wraps the cause and has perhaps only its words,
 * `undefined` if nothing in it is about a connection.
 */
export const kindIn = (
  cause: unknown,
  words = ""
): { readonly kind: Kind; readonly code?: string } | undefined => {
  const chain = causes(cause)
  const text = [words, ...chain.map((link) => (link instanceof Error ? link.message : ""))]
    .join(" ")
    .slice(0, maxMessage)
  const codes = [...chain.map(codeOf), ...(text.match(/\b(?:E[A-Z]{3}[A-Z_]+|[A-Z]{3,}_[A-Z_]+)\b/g) ?? [])]
  for (const code of codes) {
    const kind = kinds.find(([pattern]) => pattern.test(code ?? ""))?.[1]
    if (code !== undefined && (kind !== undefined || broken.test(code)))
      return { kind: kind ?? "reset", code }
  }
  if (/certificate|\b(?:TLS|SSL)\b/.test(text)) return { kind: "tls" }
  if (/getaddrinfo/.test(text)) return { kind: "dns" }
  return /\bterminated\b|fetch failed|socket hang up|other side closed/.test(text)
    ? { kind: "reset" }
    : undefined
}

const broken = /^(?:ECONNRESET|ECONNABORTED|EPIPE|UND_ERR_\w+)$/

const kindOf = (code: string): Kind => kinds.find(([pattern]) => pattern.test(code))?.[1] ?? "reset"

const kinds: ReadonlyArray<readonly [RegExp, Kind]> = [
  [/^(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, "refused"],
  [/^(?:ENOTFOUND|EAI_\w+)$/, "dns"],
  [
    /^(?:ERR_SSL_|ERR_TLS_|EPROTO|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(?:VERIFY|GET)_|HOSTNAME_MISMATCH)/,
    "tls"
  ],
  [/^(?:HPE_|UND_ERR_(?:HEADERS_OVERFLOW|RES_)|Z_|ERR_HTTP_)/, "badHttp"]
]

/** The timeouts of undici, for applications that set longer ones here. */
const stalls: ReadonlyMap<string, StreamStalled["kind"]> = new Map([
  ["UND_ERR_HEADERS_TIMEOUT", "firstByte"],
  ["UND_ERR_BODY_TIMEOUT", "idle"]
])

/** The HTTP parser of undici does not always set a code. */
const isBadHttp = (link: unknown): boolean => link instanceof Error && link.name === "HTTPParserError"

/** A request that no client can send. */
const isOurs = (link: unknown): boolean =>
  hasProperty(link, "_tag") && (link._tag === "InvalidUrlError" || link._tag === "EncodeError")

/** The error and its causes, up to depth 8. Of several attempts, the first one. */
const causes = (cause: unknown, depth = 0): ReadonlyArray<unknown> => {
  if (cause === undefined || cause === null || depth > 8) return []
  const inner = hasProperty(cause, "reason")
    ? cause.reason
    : hasProperty(cause, "cause") && cause.cause !== undefined
      ? cause.cause
      : hasProperty(cause, "errors") && Array.isArray(cause.errors)
        ? cause.errors[0]
        : undefined
  return [cause, ...causes(inner, depth + 1)]
}

const codeOf = (link: unknown): string | undefined =>
  hasProperty(link, "code") && typeof link.code === "string" && link.code !== "" ? link.code : undefined

/** The reason for a redirect, which no client follows; `undefined` for another status. Browsers hide that of a redirect, and its target. */
export const redirectOf = (status: number, location: string): Reason | undefined => {
  if (status !== 0 && (status < 300 || status >= 400)) return undefined
  const target = URL.canParse(location) ? new URL(location).origin : "elsewhere"
  return new Transport({
    kind: "redirect",
    detail: `Redirected to ${target}, which is not followed`,
    ...(status === 0 ? {} : { status })
  })
}

// ───────────────────────── The request that is being sent
//
// A provider reads a body at most once, as a stream, and closes a scope when it needs the connection no longer. A client that relies on
// that needs neither a Node stream nor an abort controller.

/** A request of a provider. */
interface ProviderRequest {
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
