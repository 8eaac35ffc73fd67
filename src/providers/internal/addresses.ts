/**
 * Where the requests for a model go, and under which headers. The same from turn to turn, as long as the key is.
 */
import * as Headers from "effect/http/Headers"
import * as Redacted from "effect/Redacted"
import * as Secrets from "./secrets.ts"

/** What of an endpoint makes an address. */
export interface Places {
  /** Where requests for a model go. */
  readonly url: (model: string) => string
  /** Sent with each request, as they are. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The headers that carry a key. */
  readonly authorize: (key: string) => Readonly<Record<string, string>>
}

export interface Address {
  readonly url: string
  readonly headers: Headers.Headers
  readonly redact: Secrets.Redact
  /** Why no request can be sent there, if none can. */
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
    const { authorize, headers, url } = this.places
    const to = url(model)
    const named = Headers.fromInput({
      accept: "text/event-stream",
      ...headers,
      ...(secret === undefined ? {} : authorize(secret.trim())),
      "content-type": "application/json"
    })
    const redact = Secrets.make(this.used.with(key), named, to)
    return { url: to, headers: named, redact, problem: problemOf(named) }
  }
}

/** Clients differ in what they make of such headers: some fail with an error of their own, some die. */
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
