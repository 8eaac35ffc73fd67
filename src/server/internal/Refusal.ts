/** The refusal of a request before its handler: a problem, and the headers that go with it. */
import * as Effect from "effect/Effect"
import * as HttpServerRespondable from "effect/http/HttpServerRespondable"
import * as HttpServerResponse from "effect/http/HttpServerResponse"

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
