/**
 * Requests that come again with their `Idempotency-Key`: they get the first answer, for 24 hours and while the process lives.
 *
 * The key of a prompt is that of its run, which the store keeps: see `IdempotencyKeys`.
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerRespondable from "effect/http/HttpServerRespondable"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as Problem from "../../api/Problem.ts"
import * as IdempotencyKeys from "../../runs/IdempotencyKeys.ts"

interface Known {
  /** The hash of the body: the most answers times the largest body would fill the memory. */
  readonly hash: string
  /** The time in milliseconds until which the answer is kept. */
  readonly until: number
  /** `undefined`: the request had no effect, and the next one with the key is the first. */
  readonly answer: Deferred.Deferred<HttpServerResponse | undefined>
}

const lifetime = 24 * 3_600_000

/** The most answers that are kept. */
const most = 10_000

/** The key of a request, with all that the request is about; `undefined` for one whose answer is not kept. */
const keyOf = (
  { headers, method, url }: HttpServerRequest,
  { identifier }: HttpApiEndpoint.Top
): string | undefined => {
  const key = headers["idempotency-key"]
  // A prompt begins a run, whose store keeps the key.
  if (key === undefined || method === "GET" || method === "HEAD" || identifier === "start") return undefined
  return JSON.stringify([headers["authorization"], method, url.split(/[?#]/, 1)[0], key])
}

export class Repeats {
  private readonly known = new Map<string, Known>()

  /** Answers a request that changes something, once for each key. */
  readonly once = <E, R>(app: Effect.Effect<HttpServerResponse, E, R>, endpoint: HttpApiEndpoint.Top) =>
    Effect.gen({ self: this }, function* () {
      const request = yield* HttpServerRequest
      const key = keyOf(request, endpoint)
      if (key === undefined) return yield* app
      // `Admission` has read the body of an endpoint that takes one, and nothing bounds that of another.
      const body = endpoint.payload.size === 0 ? "" : yield* Effect.orElseSucceed(request.text, () => "")
      const hash = yield* IdempotencyKeys.hashOf(body)
      while (true) {
        const now = yield* Clock.currentTimeMillis
        const known = this.known.get(key)
        if (known === undefined || known.until < now) return yield* this.first(key, hash, now, app)
        if (known.hash !== hash) return yield* HttpServerRespondable.toResponse(new Problem.KeyReused({}))
        const answer = yield* Deferred.await(known.answer)
        if (answer !== undefined) return answer
      }
    })

  private first<E, R>(key: string, hash: string, now: number, app: Effect.Effect<HttpServerResponse, E, R>) {
    return Effect.suspend(() => {
      const answer = Deferred.makeUnsafe<HttpServerResponse | undefined>()
      const [oldest] = this.known.keys()
      if (this.known.size >= most && oldest !== undefined) this.known.delete(oldest)
      this.known.delete(key)
      this.known.set(key, { hash, until: now + lifetime, answer })
      return Effect.onExit(app, (exit) => {
        const isDone = Exit.isSuccess(exit) && exit.value.status < 300
        if (!isDone) this.known.delete(key)
        return Deferred.succeed(answer, isDone ? exit.value : undefined)
      })
    })
  }
}
