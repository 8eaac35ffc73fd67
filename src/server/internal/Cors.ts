/**
 * The origins whose pages may use a server.
 */
import * as HttpServerResponse from "effect/http/HttpServerResponse"

/** An origin as browsers send it: without a path, a port that is the usual one, and capitals. */
export const originOf = (text: string): string =>
  /^https?:\/\//i.test(text) && URL.canParse(text) ? new URL(text).origin : text

export const vary = { vary: "origin", "x-content-type-options": "nosniff" }

const usual = {
  allowed: ["authorization", "content-type", "idempotency-key", "last-event-id"],
  exposed: ["retry-after", "location", "x-vercel-ai-ui-message-stream"]
}

interface Options {
  readonly origins: ReadonlyArray<string>
  readonly allowHeaders: ReadonlyArray<string>
  readonly exposeHeaders: ReadonlyArray<string>
}

export class Cors {
  private readonly origins: ReadonlyArray<string>
  private readonly allowed: string
  private readonly exposed: string

  constructor({ allowHeaders, exposeHeaders, origins }: Options) {
    this.origins = origins
    this.allowed = [...usual.allowed, ...allowHeaders].join(", ")
    this.exposed = [...usual.exposed, ...exposeHeaders].join(", ")
  }

  /** Whether a page of an origin may use the server: one of the list, and a page of the server itself. */
  allows(origin: string, host: string): boolean {
    return (
      this.origins.includes(origin) ||
      (host !== "" && (origin === `http://${host}` || origin === `https://${host}`))
    )
  }

  /** The headers by which a browser lets a page of an origin read the response. */
  headers(origin: string): Readonly<Record<string, string>> {
    return {
      ...vary,
      "access-control-allow-origin": origin,
      "access-control-expose-headers": this.exposed
    }
  }

  /** The answer to the question of a browser before a request. */
  preflight(methods: ReadonlyArray<string>): HttpServerResponse.HttpServerResponse {
    return HttpServerResponse.empty({
      status: 204,
      headers: {
        "access-control-allow-methods": methods.join(", "),
        "access-control-allow-headers": this.allowed,
        "access-control-max-age": "600"
      }
    })
  }
}
