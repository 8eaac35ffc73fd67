/**
 * The checks that each request passes before its route: host, origin, path and method, token, rate, type and size of the body.
 *
 * They are in this order, so that a request learns nothing that a later check protects.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as ByteSize from "effect/ByteSize"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerRespondable from "effect/http/HttpServerRespondable"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Problem from "../api/Problem.ts"
import * as JsonDepth from "../internal/jsonDepth.ts"
import * as Cors from "./Cors.ts"
import * as Hosts from "./Hosts.ts"
import { RateLimit, type Options as RateOptions } from "./RateLimit.ts"
import * as RouteTable from "./RouteTable.ts"
import type { Body, Route } from "./Routes.ts"
import * as Tokens from "./Tokens.ts"
import type * as Redacted from "effect/Redacted"

export interface Options {
  readonly tokens: Effect.Effect<ReadonlyArray<Redacted.Redacted>>
  readonly hosts: ReadonlyArray<string>
  readonly cors: Cors.Cors
  readonly maxBodySize: number
  readonly rate: RateOptions | undefined
  readonly routes: ReadonlyArray<Route>
}

type Respond = Effect.Effect<HttpServerResponse.HttpServerResponse>

/** A refusal: a problem, and the headers that go with it. */
class Refusal {
  readonly _tag = "Refusal"
  readonly problem: HttpServerRespondable.Respondable
  readonly headers: Readonly<Record<string, string>>
  constructor(problem: HttpServerRespondable.Respondable, headers: Readonly<Record<string, string>> = {}) {
    this.problem = problem
    this.headers = headers
  }

  get response(): Respond {
    return Effect.map(HttpServerRespondable.toResponse(this.problem), (response) =>
      HttpServerResponse.setHeaders(response, this.headers)
    )
  }
}

const refuse = (problem: HttpServerRespondable.Respondable, headers?: Readonly<Record<string, string>>) =>
  Effect.fail(new Refusal(problem, headers))

export class Guards {
  private readonly options: Options
  private readonly table: (path: string) => RouteTable.Methods
  private readonly rate: RateLimit

  constructor(options: Options) {
    this.options = options
    this.table = RouteTable.make(options.routes)
    this.rate = new RateLimit(options.rate)
  }

  /** Passes a request on to the routes, or refuses it. */
  readonly before = <E, R>(app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
    Effect.gen({ self: this }, function* () {
      const request = yield* HttpServerRequest
      const admitted = Effect.catchTag(this.admit(request), "Refusal", ({ response }) => response)
      const response = (yield* admitted) ?? (yield* app)
      const { origin } = request.headers
      const host = Hosts.of(request)
      const { cors, hosts } = this.options
      const isCross = origin !== undefined && Hosts.allows(hosts, host) && cors.allows(origin, host)
      return HttpServerResponse.setHeaders(response, isCross ? cors.headers(origin) : Cors.vary)
    }).pipe(Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(this.options.maxBodySize)))

  /** Succeeds with the whole response for a request that needs no route. */
  private admit(request: HttpServerRequest) {
    return Effect.gen({ self: this }, function* () {
      const { headers, method } = request
      const host = Hosts.of(request)
      if (!Hosts.allows(this.options.hosts, host)) return yield* refuse(new Problem.Misdirected({}))
      const { origin } = headers
      if (origin !== undefined && !this.options.cors.allows(origin, host)) {
        return yield* refuse(new Problem.OriginForbidden({}))
      }
      const path = pathOf(request.url)
      const methods = this.table(path)
      if (methods.size === 0) return yield* refuse(new Problem.NoRoute({}))
      if (method === "OPTIONS" && origin !== undefined)
        return this.options.cors.preflight([...methods.keys()])
      const body = methods.get(method)
      if (body === undefined) {
        return yield* refuse(new Problem.MethodNotAllowed({}), { allow: [...methods.keys()].join(", ") })
      }
      if (!RouteTable.isPublic(path)) yield* this.authorized(headers["authorization"])
      yield* this.readable(request, body)
      return undefined
    })
  }

  private authorized(authorization: string | undefined): Effect.Effect<void, Refusal> {
    return Effect.flatMap(Effect.zip(Clock.currentTimeMillis, this.options.tokens), ([now, tokens]) => {
      const token = Tokens.find(tokens, authorization)
      if (token === undefined) {
        return refuse(new Problem.Unauthorized({}), { "www-authenticate": "Bearer" })
      }
      const wait = this.rate.take(token, now)
      if (wait === 0) return Effect.void
      return refuse(new Problem.TooManyRequests({}), { "retry-after": String(wait) })
    })
  }

  private readable(request: HttpServerRequest, body: Body): Effect.Effect<void, Refusal> {
    const { headers } = request
    if (body === "none") return Effect.void
    const type = headers["content-type"]
    const isJson = type === undefined ? body === "optional" : mediaTypeOf(type) === "application/json"
    const encoding = headers["content-encoding"] ?? "identity"
    if (!isJson || encoding !== "identity") return refuse(new Problem.UnsupportedMediaType({}))
    if (Number(headers["content-length"] ?? 0) > this.options.maxBodySize) return tooLarge
    const text = Effect.mapError(request.text, ({ reason }) =>
      reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge"
        ? isTooLarge
        : new Refusal(new Problem.InvalidRequest({ detail: "The body could not be read." }))
    )
    return Effect.flatMap(text, (text) =>
      JsonDepth.nestsTooDeep(text)
        ? refuse(new Problem.InvalidRequest({ detail: "The body nests too deep." }))
        : Effect.void
    )
  }
}

const isTooLarge = new Refusal(new Problem.BodyTooLarge({}), { connection: "close" })
const tooLarge = Effect.fail(isTooLarge)

const pathOf = (url: string): string => url.split(/[?#]/, 1)[0] ?? ""

const mediaTypeOf = (type: string): string => (type.split(";", 1)[0] ?? "").trim().toLowerCase()
