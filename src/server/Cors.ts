/**
 * The origins whose pages may use a server.
 */
import * as HttpServerResponse from "effect/http/HttpServerResponse"

/** An origin as browsers send it: without a path, a port that is the usual one, and capitals. */
export const originOf = (text: string): string =>
  /^https?:\/\//i.test(text) && URL.canParse(text) ? new URL(text).origin : text

/** Whether a page of an origin may use the server: one of the list, and a page of the server itself. */
export const allowing =
  (origins: ReadonlyArray<string>) =>
  (origin: string, host: string): boolean =>
    origins.includes(origin) || (host !== "" && (origin === `http://${host}` || origin === `https://${host}`))

export const vary = { vary: "origin", "x-content-type-options": "nosniff" }

/** The headers by which a browser lets a page of an origin read the response. */
export const headers = (origin: string): Readonly<Record<string, string>> => ({
  ...vary,
  "access-control-allow-origin": origin,
  "access-control-expose-headers": "retry-after, location, x-vercel-ai-ui-message-stream"
})

/** The answer to the question of a browser before a request. */
export const preflight = (methods: ReadonlyArray<string>): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.empty({
    status: 204,
    headers: {
      "access-control-allow-methods": methods.join(", "),
      "access-control-allow-headers": "authorization, content-type, idempotency-key, last-event-id",
      "access-control-max-age": "600"
    }
  })
