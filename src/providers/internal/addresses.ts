/** The URL and the headers of requests for a model, cached while model and key stay equal. */
import * as Headers from "effect/http/Headers"
import * as Redacted from "effect/Redacted"
import * as Secrets from "./secrets.ts"

/** The parts of an endpoint that make an address. */
export interface Places {
  /** The URL of requests for a model. */
  readonly url: (model: string) => string
  /** Headers of each request. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The headers that contain the key. */
  readonly authorize: (key: string) => Readonly<Record<string, string>>
  /** Advice for the error if the server does not know the route. Default: none. */
  readonly otherwise?: string | undefined
}

export interface Address {
  readonly url: string
  readonly headers: Headers.Headers
  readonly redact: Secrets.Redact
  readonly otherwise: string | undefined
  /** Why no request can be sent to the address, `undefined` if one can. */
  readonly problem: string | undefined
}

type Key = Redacted.Redacted | undefined

export class Addresses {
  private readonly places: Places
  private readonly used = new Secrets.Used()
  private last:
    | { readonly model: string; readonly secret: string | undefined; readonly address: Address }
    | undefined

  constructor(places: Places) {
    this.places = places
  }

  of(model: string, key: Key): Address {
    const { last } = this
    const secret = key === undefined ? undefined : Redacted.value(key)
    if (last !== undefined && last.model === model && last.secret === secret) return last.address
    const address = this.make(model, key, secret)
    this.last = { model, secret, address }
    return address
  }

  private make(model: string, key: Key, secret: string | undefined): Address {
    const { authorize, headers, otherwise, url } = this.places
    const to = url(model)
    const named = Headers.fromInput({
      accept: "text/event-stream",
      ...headers,
      ...(secret === undefined ? {} : authorize(secret.trim())),
      "content-type": "application/json"
    })
    const redact = Secrets.make(this.used.with(key), named, to)
    const problem = problemOfUrl(to) ?? problemOf(named)
    return { url: to, headers: named, redact, otherwise, problem }
  }
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
