/**
 * The checks that each request passes before the router: host and origin. Behind it come the path and the method, and then `Admission`.
 *
 * They are in this order, so that a request learns nothing that a later check protects.
 */
import * as Effect from "effect/Effect"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Problem from "../../api/Problem.ts"
import * as Cors from "./Cors.ts"
import { answered, refuse } from "./Refusal.ts"

export interface Options {
  readonly hosts: ReadonlyArray<string>
  readonly cors: Cors.Cors
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
      return HttpServerResponse.setHeaders(
        yield* answered(response),
        isCross ? cors.headers(origin) : Cors.vary
      )
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
