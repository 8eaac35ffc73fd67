/**
 * The checks that a request passes before its handler: token, rate, and the type, size and time of its body, of which nothing is read before.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Semaphore from "effect/Semaphore"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as Json from "../../internal/json.ts"
import * as Problem from "../../api/Problem.ts"
import { answered, Refusal, refuse } from "./Guards.ts"
import type { Body } from "../Routes.ts"
import * as Duration from "effect/Duration"

export interface Options {
  readonly tokens: Effect.Effect<ReadonlyArray<Redacted.Redacted>>
  readonly maxBodySize: number
  readonly maxBodiesSize: number
  readonly bodyTime: Duration.Input
  readonly rate: RateOptions | undefined
  readonly wrongTokens: RateOptions
}

export class Admission {
  private readonly options: Options
  private readonly rate: RateLimit
  private readonly wrong: RateLimit
  private readonly bodies: Semaphore.Semaphore

  constructor(options: Options) {
    this.options = options
    this.rate = new RateLimit(options.rate)
    this.wrong = new RateLimit(options.wrongTokens)
    this.bodies = Semaphore.makeUnsafe(Math.max(options.maxBodiesSize, options.maxBodySize))
  }

  /** Passes a request on to a handler, for which its body has been read, or refuses it. */
  admit<E, R>(credential: Redacted.Redacted, body: Body, handler: Effect.Effect<HttpServerResponse, E, R>) {
    return Effect.gen({ self: this }, function* () {
      const request = yield* HttpServerRequest
      yield* this.authorized(credential, request)
      if (body !== "none") yield* this.readable(request, body)
      return yield* handler
    }).pipe(answered)
  }

  private authorized(
    credential: Redacted.Redacted,
    { remoteAddress }: HttpServerRequest
  ): Effect.Effect<void, Refusal> {
    return Effect.flatMap(Effect.zip(Clock.currentTimeMillis, this.options.tokens), ([now, tokens]) => {
      const token = findToken(tokens, credential)
      const isWrong = token === undefined && Redacted.value(credential) !== ""
      const address = isWrong ? Option.getOrElse(remoteAddress, () => "") : ""
      const wait =
        token !== undefined ? this.rate.take(token, now) : isWrong ? this.wrong.take(address, now) : 0
      if (wait === 0)
        return token === undefined
          ? refuse(new Problem.TokenRefused({}), { "www-authenticate": "Bearer" })
          : Effect.void
      const detail = token === undefined ? { detail: "Too many wrong tokens came from this address." } : {}
      return refuse(new Problem.TooManyRequests(detail), { "retry-after": String(wait) })
    })
  }

  private readable(request: HttpServerRequest, body: Exclude<Body, "none">): Effect.Effect<void, Refusal> {
    const { bodyTime, maxBodySize } = this.options
    const { headers } = request
    const type = headers["content-type"]
    const isJson = type === undefined ? body === "optional" : mediaTypeOf(type) === "application/json"
    const encoding = headers["content-encoding"] ?? "identity"
    if (!isJson || encoding !== "identity") return refuse(new Problem.UnsupportedMediaType({}))
    // Without a length it may be the largest.
    const size = Number(headers["content-length"] ?? ("transfer-encoding" in headers ? maxBodySize : 0))
    if (size > maxBodySize) return Effect.fail(isTooLarge)
    return request.text.pipe(
      Effect.mapError(({ reason }) =>
        reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge"
          ? isTooLarge
          : new Refusal(new Problem.MalformedRequest({ detail: "The body could not be read." }))
      ),
      // An interrupted reader destroys the connection, so that this one reads until the refusal is sent.
      Effect.forkChild,
      Effect.flatMap((reader) =>
        Effect.timeoutOrElse(Fiber.join(reader), {
          duration: bodyTime,
          orElse: () => Effect.fail(isLate)
        })
      ),
      this.bodies.withPermitsIfAvailable(size),
      Effect.flatMap(Option.match({ onNone: () => Effect.fail(isBusy), onSome: Effect.succeed })),
      Effect.flatMap((text) =>
        Json.nestsTooDeep(text)
          ? refuse(new Problem.MalformedRequest({ detail: "The body nests too deep." }))
          : Effect.void
      )
    )
  }
}

// A body that has not been read would come as the next request.
const close = { connection: "close" }
const isTooLarge = new Refusal(new Problem.BodyTooLarge({}), close)
const isLate = new Refusal(new Problem.BodyTimeout({}), close)
const isBusy = new Refusal(new Problem.TooManyBodies({}), { ...close, "retry-after": "1" })

const mediaTypeOf = (type: string): string => (type.split(";", 1)[0] ?? "").trim().toLowerCase()

// ───────────────────────── The limit on the requests of a token

/**
 * A limit on the requests of a token.
 *
 * @category options
 * @since 0.2.0
 */
export interface RateOptions {
  /** The most requests in the window. */
  readonly requests: number
  /** The length of the window, a duration. Default 1 minute. */
  readonly window?: Duration.Input
}

interface Window {
  readonly end: number
  count: number
}

/** The most tokens and addresses that are known. */
const most = 10_000

export class RateLimit {
  private readonly windows = new Map<string, Window>()
  private readonly options: RateOptions | undefined

  constructor(options: RateOptions | undefined) {
    this.options = options
  }

  /** Counts a request of a token, or of an address, at the time `now`. Returns 0, or the seconds to wait. */
  take(token: string, now: number): number {
    if (this.options === undefined) return 0
    const { requests, window = "1 minute" } = this.options
    const known = this.windows.get(token)
    const current =
      known !== undefined && now < known.end ? known : { end: now + Duration.toMillis(window), count: 0 }
    if (current !== known) {
      const [oldest] = this.windows.keys()
      if (this.windows.size >= most && oldest !== undefined) this.windows.delete(oldest)
      this.windows.delete(token)
      this.windows.set(token, current)
    }
    current.count++
    return current.count <= requests ? 0 : Math.max(1, Math.ceil((current.end - now) / 1000))
  }
}

// ───────────────────────── The tokens of a server

const encoder = new TextEncoder()

/** The credential if it is one of the tokens. */
export const findToken = (
  tokens: ReadonlyArray<Redacted.Redacted>,
  credential: Redacted.Redacted
): string | undefined => {
  const given = encoder.encode(Redacted.value(credential))
  let found: string | undefined
  for (const token of tokens.map(Redacted.value)) if (equal(given, encoder.encode(token))) found = token
  return found
}

/** Compares in a time that depends on the length of `given` alone. An empty secret equals nothing. */
const equal = (given: Uint8Array, secret: Uint8Array): boolean => {
  if (secret.length === 0) return false
  let difference = given.length ^ secret.length
  for (let index = 0; index < given.length; index++) {
    difference |= (given[index] ?? 0) ^ (secret[index % secret.length] ?? 0)
  }
  return difference === 0
}
