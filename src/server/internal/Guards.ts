/**
 * The checks that each request passes before the router: host and origin. Behind it come the path and the method, and then `Admission`.
 *
 * They are in this order, so that a request learns nothing that a later check protects.
 */
import * as Effect from "effect/Effect"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Problem from "../../api/Problem.ts"
import * as HttpServerRespondable from "effect/http/HttpServerRespondable"
import * as FindMyWay from "effect/http/FindMyWay"
import * as HttpApi from "effect/http-api/HttpApi"
import { Api } from "../../api/Api.ts"
import type { Route } from "../Routes.ts"

export interface Options {
  readonly hosts: ReadonlyArray<string>
  readonly cors: Cors
  /** The methods of a path. */
  readonly methods: (url: string) => ReadonlyArray<string>
}

export class Guards {
  private readonly options: Options

  constructor(options: Options) {
    this.options = options
  }

  /** Passes a request on to the router, or refuses it. */
  readonly before = <E, R>(router: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
    Effect.gen({ self: this }, function* () {
      const request = yield* HttpServerRequest
      const { cors, hosts } = this.options
      const { origin } = request.headers
      const host = hostOf(request)
      const isKnown = allowsHost(hosts, host)
      const isAllowed = origin === undefined || cors.allows(origin, host)
      const response = !isKnown
        ? refuse(new Problem.Misdirected({}))
        : isAllowed
          ? router
          : refuse(new Problem.OriginForbidden({}))
      const isCross = origin !== undefined && isKnown && isAllowed
      return HttpServerResponse.setHeaders(yield* answered(response), isCross ? cors.headers(origin) : vary)
    })

  /** Answers a request for which the router has no route. */
  readonly missed = Effect.gen({ self: this }, function* () {
    const { headers, method, url } = yield* HttpServerRequest
    const methods = this.options.methods(url)
    if (methods.length === 0) return yield* refuse(new Problem.NoRoute({}))
    if (method === "OPTIONS" && "origin" in headers) return this.options.cors.preflight(methods)
    return yield* refuse(new Problem.MethodNotAllowed({}), { allow: methods.join(", ") })
  }).pipe(answered)
}

// ───────────────────────── Hosts

// The hosts that a server answers to, against pages that let their own name resolve to the address of the server.

/** The host of a request with its port, in lower case: the header `Host`, or that of its URL for a runtime that keeps the header. */
export const hostOf = ({ headers, originalUrl }: HttpServerRequest): string =>
  (headers["host"] ?? /^https?:\/\/([^/?#]+)/i.exec(originalUrl)?.[1] ?? "").toLowerCase()

/** A host without its port, in lower case. */
export const hostNameOf = (host: string): string => host.toLowerCase().replace(/:\d+$/, "")

/** Whether a host is one of the names, at any port. */
export const allowsHost = (names: ReadonlyArray<string>, host: string): boolean => {
  const name = hostNameOf(host)
  return name !== "" && names.includes(name)
}

/** The names of this machine that no other one has. */
export const loopback: ReadonlyArray<string> = ["localhost", "127.0.0.1", "[::1]"]

// ───────────────────────── Refusals
//
// The refusal of a request before its handler: a problem, and the headers that go with it.

type Headers = Readonly<Record<string, string>>

export class Refusal {
  readonly _tag = "Refusal"
  readonly problem: HttpServerRespondable.Respondable
  readonly headers: Headers
  constructor(problem: HttpServerRespondable.Respondable, headers: Headers = {}) {
    this.problem = problem
    this.headers = headers
  }

  get response(): Effect.Effect<HttpServerResponse.HttpServerResponse> {
    return Effect.map(HttpServerRespondable.toResponse(this.problem), (response) =>
      HttpServerResponse.setHeaders(response, this.headers)
    )
  }
}

/** Fails with a refusal. */
export const refuse = (problem: HttpServerRespondable.Respondable, headers?: Headers) =>
  Effect.fail(new Refusal(problem, headers))

/** Answers with the refusal. */
export const answered = <A, E, R>(effect: Effect.Effect<A, E | Refusal, R>) =>
  Effect.catchIf(
    effect,
    (error: E | Refusal): error is Refusal => error instanceof Refusal,
    ({ response }) => response
  )

// ───────────────────────── Cors
//
// The origins whose pages may use a server.

/** An origin as browsers send it: without a path, a port that is the usual one, and capitals. */
export const originOf = (text: string): string =>
  /^https?:\/\//i.test(text) && URL.canParse(text) ? new URL(text).origin : text

export const vary = { vary: "origin", "x-content-type-options": "nosniff" }

const usual = {
  allowed: ["authorization", "content-type", "idempotency-key", "last-event-id"],
  exposed: ["retry-after", "location", "x-vercel-ai-ui-message-stream"]
}

interface CorsOptions {
  readonly origins: ReadonlyArray<string>
  readonly allowHeaders: ReadonlyArray<string>
  readonly exposeHeaders: ReadonlyArray<string>
}

export class Cors {
  private readonly origins: ReadonlyArray<string>
  private readonly allowed: string
  private readonly exposed: string

  constructor({ allowHeaders, exposeHeaders, origins }: CorsOptions) {
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

// ───────────────────────── Routes
//
// The methods of each path, for requests that have no route: Effect's router does not distinguish a path that it does not have from a method
// that it does not have.

/** The way in which paths are matched: as they are written. */
export const matching = {
  maxParamLength: 2400,
  caseSensitive: true,
  ignoreDuplicateSlashes: false,
  ignoreTrailingSlash: false
}

const methods = ["GET", "POST", "PATCH", "DELETE", "HEAD"]

/** Makes the table of the API and of other routes. */
export const routeTable = (
  routes: ReadonlyArray<Pick<Route, "method" | "path">>
): ((url: string) => ReadonlyArray<string>) => {
  const router = FindMyWay.make<undefined>(matching)
  const add = (method: string, path: Route["path"]) =>
    router.on(method === "GET" ? ["GET", "HEAD"] : method, path, undefined)
  for (const { method, path } of routes) add(method, path)
  HttpApi.reflect(Api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint: { method, path } }) => add(method, `/${path.slice(1)}`)
  })
  return (url) => methods.filter((method) => router.find(method, url) !== undefined)
}
