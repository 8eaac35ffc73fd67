import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { HttpServerRequest } from "effect/http"
import { TestClock } from "effect/testing"
import { Provider, ProviderError, type RunOptions } from "effect-agent"
import { ModelStream } from "effect-agent/proxy"
import { ScriptedProvider } from "effect-agent/testing"
import { models, request } from "./served.ts"

const hello = Effect.map(ScriptedProvider.make([ScriptedProvider.text("Hi")]), ({ provider }) => provider)

const providing = (stream: Provider.Provider["Service"]["stream"]) =>
  Provider.Provider.of({ id: "acme", stream })

interface Asking {
  readonly body?: string
  readonly contentType?: string
  readonly maxBody?: number
}

const post = (provider: Provider.Provider["Service"], { body, contentType, maxBody }: Asking = {}) => {
  const handle = ModelStream.toWebHandler(provider, { models, maxBody })
  return Effect.promise(() =>
    handle(
      new Request("http://127.0.0.1/model/stream", {
        method: "POST",
        headers: { "content-type": contentType ?? "application/json" },
        body: body ?? JSON.stringify({ request })
      })
    )
  )
}

const textOf = (response: Response) => Effect.promise(() => response.text())

const refused = (asking: Asking) =>
  Effect.gen(function* () {
    const response = yield* post(
      providing(() => Stream.die("asked")),
      asking
    )
    assert.strictEqual(response.headers.get("content-type"), "application/problem+json")
    const problem: unknown = JSON.parse(yield* textOf(response))
    assert.deepInclude(problem, { status: response.status })
    return response.status
  })

const asked = (options: RunOptions.ModelOptions, model = "small") =>
  ModelStream.decode({ request: { ...request, model, options } }, { models })

describe("ModelStream", () => {
  it.effect("answers with server-sent events (row 241)", () =>
    Effect.gen(function* () {
      const response = yield* post(yield* hello)
      assert.strictEqual(response.status, 200)
      assert.strictEqual(response.headers.get("content-type"), "text/event-stream")
      assert.match(response.headers.get("cache-control") ?? "", /no-cache/)
      const text = yield* textOf(response)
      assert.include(text, 'event: TextDelta\ndata: {"_tag":"TextDelta","contentIndex":0,"delta":"Hi"}\n\n')
      assert.match(text, /event: Finish\ndata: .*\n\n$/)
    })
  )

  it.effect("refuses what is no request", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* refused({ contentType: "text/plain" }), 415)
      assert.strictEqual(yield* refused({ maxBody: 20 }), 413)
      for (const body of ["", "{", "[]", "{}", '{"request":{}}', "[".repeat(5000)]) {
        assert.strictEqual(yield* refused({ body }), 400, body.slice(0, 20))
      }
      const other = JSON.stringify({ request: { ...request, model: "other" } })
      assert.strictEqual(yield* refused({ body: other }), 403)
    })
  )

  it.effect("takes a request without tools and options", () =>
    Effect.gen(function* () {
      const { messages, model } = request
      const decoded = yield* ModelStream.decode({ request: { model, messages } }, { models })
      assert.deepStrictEqual(decoded, request)
    })
  )

  it.effect("takes the id of a model without its prefix", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* asked({}, "large")).model, "acme/large")
      for (const model of ["", "acme", "acme/", "arge", "/large", "other/large", "acme/other"]) {
        assert.strictEqual((yield* Effect.flip(asked({}, model)))._tag, "ModelForbidden", model)
      }
    })
  )

  it.effect("refuses members for vendors that name another model", () =>
    Effect.gen(function* () {
      const refusals: ReadonlyArray<RunOptions.ModelOptions> = [
        { vendor: { acme: { model: "dear" } } },
        { vendor: { acme: { models: ["small", "dear"] } } },
        { vendor: { acme: { fallbacks: [{ model: "dear" }] } } },
        { vendor: { acme: { route: "fallback" } } },
        { vendor: { acme: { tools: [{ type: "advisor", model: "dear" }] } } },
        { hostedTools: [{ type: "codeExecution", vendor: { acme: { model: "dear" } } }] }
      ]
      for (const options of refusals) {
        const error = yield* Effect.flip(asked(options))
        assert.strictEqual(error._tag, "ModelForbidden", JSON.stringify(options))
      }
      const options = { vendor: { acme: { model: "small", user: "ada", modalities: ["text"] } } }
      assert.deepStrictEqual((yield* asked(options)).options, options)
    })
  )

  it.effect("takes no member for vendors that names a model of another vendor", () =>
    Effect.gen(function* () {
      const decoded = (vendor: string) =>
        ModelStream.decode(
          { request: { ...request, model: "acme/large", options: { vendor: { acme: { model: vendor } } } } },
          { models: ["acme/large", "acme/small", "dear/huge", "dear/large"] }
        )
      for (const model of ["huge", "dear/huge", "dear/large"])
        assert.strictEqual((yield* Effect.flip(decoded(model)))._tag, "ModelForbidden", model)
      for (const model of ["large", "small", "acme/small"]) yield* decoded(model)
    })
  )

  it.effect("tells clients nothing of a defect, and no key", () =>
    Effect.gen(function* () {
      const key = "sk-abcdefghijklmnop"
      const defect = yield* textOf(yield* post(providing(() => Stream.die(new Error(`with ${key}`)))))
      assert.match(defect, /^event: error\ndata: .*"ServerError".*\n\n$/)
      assert.notInclude(defect, key)
      const reason = new ProviderError.Unauthenticated({ detail: `No ${key}`, body: `Bearer ${key}"` })
      const error = new ProviderError.ProviderError({ provider: "acme", reason })
      const failure = yield* textOf(yield* post(providing(() => Stream.fail(error))))
      assert.notInclude(failure, key)
      const data: unknown = JSON.parse(failure.replace("event: error\ndata: ", ""))
      assert.deepNestedInclude(data, { "reason.detail": "No [redacted]", "reason._tag": "Unauthenticated" })
    })
  )

  it.effect("ends with an error after an event that JSON cannot have", () =>
    Effect.gen(function* () {
      const events = Stream.make(
        { _tag: "TextStart", contentIndex: 0 } as const,
        { _tag: "TextEnd", contentIndex: Number.NaN } as const,
        { _tag: "TextStart", contentIndex: 1 } as const
      )
      const text = yield* Stream.mkString(Stream.decodeText(ModelStream.encode(events)))
      assert.deepStrictEqual(
        [...text.matchAll(/^event: (.*)$/gm)].map(([, name]) => name),
        ["TextStart", "error"]
      )
    })
  )

  it.effect("gives counts of tokens that JSON cannot have as those of a run", () =>
    Effect.gen(function* () {
      const usage = { input: 3, output: Number.NaN, cacheRead: 0, cacheWrite: 0, total: Number.NaN }
      const events = Stream.make({ _tag: "Finish", stopReason: "stop", usage } as const)
      const text = yield* Stream.mkString(Stream.decodeText(ModelStream.encode(events)))
      assert.include(text, '"input":3,"output":0')
    })
  )

  it.effect("keeps the connection alive while the vendor is silent", () =>
    Effect.gen(function* () {
      const asking = new Request("http://127.0.0.1/model/stream", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ request })
      })
      const { body } = yield* ModelStream.handler({ models }).pipe(
        Effect.provideService(HttpServerRequest.HttpServerRequest, HttpServerRequest.fromWeb(asking)),
        Effect.provideService(
          Provider.Provider,
          providing(() => Stream.never)
        )
      )
      assert(body._tag === "Stream")
      const read = yield* Effect.forkChild(Stream.mkString(Stream.take(Stream.decodeText(body.stream), 2)))
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual(yield* Fiber.join(read), ": ping\n\n: ping\n\n")
    })
  )
})
