import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Tracer } from "effect"
import { FetchHttpClient, HttpClient } from "effect/http"
import { Agent } from "effect-agent"
import { Google } from "effect-agent/providers"
import { inspect } from "node:util"
import { refuse, serve } from "./server.ts"

const key = "sk-planted-0123456789abcdef"

/** Runs an agent against a server that refuses; gives the headers it saw. */
const run = Effect.gen(function* () {
  const server = yield* serve((response) => refuse(response, 400, { error: { message: `no ${key}` } }))
  const provider = Google.layer({
    apiKey: Redacted.make(key),
    baseUrl: server.baseUrl,
    headers: { "x-team-token": key }
  })
  const agent = yield* Effect.provide(Agent.make({ model: "m-1" }), provider)
  yield* Effect.flip(agent.prompt("Hi"))
  return server.requests[0]?.headers ?? {}
}).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

/** Keeps every span, with all headers. */
const tracing = () => {
  const spans: Array<Tracer.Span> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  return {
    spans,
    traced: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      effect.pipe(
        Effect.provideService(HttpClient.TracerHeaderFilter, () => true),
        Effect.provideService(Tracer.Tracer, tracer)
      )
  }
}

describe("tracing", () => {
  it.effect("that nobody does makes no headers of it, in a run neither", () =>
    Effect.gen(function* () {
      const headers = yield* run
      assert.notProperty(headers, "traceparent")
      assert.notProperty(headers, "b3")
    })
  )

  it.effect("shows the request, and no secret of it", () =>
    Effect.gen(function* () {
      const { spans, traced } = tracing()
      assert.property(yield* traced(run), "traceparent")
      assert.deepStrictEqual(
        spans.map(({ name }) => name),
        ["invoke_agent", "chat m-1", "POST"]
      )
      const shown = inspect(
        spans.map(({ attributes, status }) => [...attributes, status]),
        { depth: 12 }
      )
      assert.include(shown, "x-goog-api-key")
      assert.include(shown, "x-team-token")
      assert.notInclude(shown, key)
    })
  )
})
