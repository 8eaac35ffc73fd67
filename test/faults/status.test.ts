import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Tracer } from "effect"
import { FetchHttpClient, HttpClient } from "effect/http"
import { NodeHttp } from "effect-agent/node"
import { inspect } from "node:util"
import { refuse, serve, stream } from "../providers/server.ts"
import { answer, key, play, shown, told } from "./session.ts"
import { vendors } from "./vendors.ts"

const hello = { text: ["Hel", "lo"] }
const error = (message: string) => ({ error: { message } })

/** What leaves of a span: its name, its attributes, and its failure in words. */
const exported = ({ attributes, name, status }: Tracer.Span): string => {
  const failed = status._tag === "Ended" && Exit.isFailure(status.exit) ? Cause.pretty(status.exit.cause) : ""
  return `${name} ${inspect([...attributes], { depth: 12 })} ${failed}`
}

/** Keeps every span, with all headers that were sent. */
const traced = <A, E, R>(effect: Effect.Effect<A, E, R>) => {
  const spans: Array<Tracer.Span> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  return effect.pipe(
    Effect.provideService(HttpClient.TracerHeaderFilter, (_, phase) => phase === "request"),
    Effect.provideService(Tracer.Tracer, tracer),
    Effect.map((made) => ({ made, spans: spans.map(exported).join("\n") }))
  )
}

describe.each(vendors)("$name", (vendor) => {
  it.effect("F009: a bad request is one request, with the vendor's words and the request's id", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) =>
        refuse(response, 400, error("max_tokens is too large"), { "x-request-id": "req-9" })
      )
      const { reason, retries } = yield* play(vendor, server)
      assert.strictEqual(told(reason), "InvalidRequest")
      assert.deepStrictEqual(
        [reason?.detail, reason?.requestId, reason?.status],
        ["max_tokens is too large", "req-9", 400]
      )
      assert.deepStrictEqual([server.requests.length, retries.length], [1, 0])
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F010: a key that is refused is refused once, and shows nowhere, however it is echoed", () =>
    Effect.gen(function* () {
      const planted = key.slice(0, -4)
      const query = "q-planted-0123456789"
      for (const [status, tag] of [
        [401, "Unauthenticated"],
        [403, "Forbidden"]
      ] as const) {
        const server = yield* serve((response, seen) =>
          refuse(response, status, error(`${JSON.stringify(seen.headers)} may not ask ${seen.url}`), {
            "x-request-id": key,
            "www-authenticate": `Bearer ${key}`
          })
        )
        const echoing = { baseUrl: `${server.baseUrl}/?key=${query}&path=/v1` }
        const { made, spans } = yield* traced(play(vendor, echoing))
        assert.include(JSON.stringify(server.requests[0]), key)
        assert.strictEqual(told(made.reason), tag)
        assert.strictEqual(server.requests.length, 1)
        assert.include(spans, "POST")
        for (const text of [
          shown(made.events, made.exit),
          JSON.stringify(made.reason),
          String(made.reason),
          spans
        ]) {
          assert.notInclude(text, planted)
          assert.notInclude(text, query)
        }
      }
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F011: a model that is not there is named, and asked for once", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => refuse(response, 404, error("no such thing here")))
      const { reason, retries } = yield* play(vendor, server)
      assert.strictEqual(told(reason), "NotFound")
      assert.include(reason?.detail, "m-1")
      assert.deepStrictEqual([server.requests.length, retries.length], [1, 0])
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F013: a failure that passes is asked again, after about a second, and told", () =>
    Effect.gen(function* () {
      const delays: Array<number> = []
      for (const status of [408, 409, 500, 502, 503, 529]) {
        const server = yield* serve((response, _, count) =>
          count === 1 ? refuse(response, status, error("try later")) : answer(response, vendor.answer(hello))
        )
        const { events, messages, retries, text } = yield* play(vendor, server)
        assert.strictEqual(text, "Hello", String(status))
        assert.deepStrictEqual([server.requests.length, messages.length], [2, 2])
        assert.deepStrictEqual(
          retries.map(({ attempt, error }) => [attempt, error.reason.status]),
          [[1, status]]
        )
        const [retry] = retries
        const next = events[events.findIndex(({ _tag }) => _tag === "ModelCallRetry") + 1]
        assert.closeTo((next?.timestamp ?? 0) - (retry?.timestamp ?? 0), retry?.delayMs ?? 0, 1)
        delays.push(retry?.delayMs ?? 0)
      }
      assert.isTrue(
        delays.every((delay) => delay >= 800 && delay <= 1200),
        String(delays)
      )
      assert.isAbove(new Set(delays).size, 1)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F014: a server that stays down is given up after three requests, with its last words", () =>
    Effect.gen(function* () {
      const server = yield* serve((response, _, count) =>
        refuse(response, 503, error(`down, ${count}`), { "x-request-id": `req-${count}` })
      )
      const { events, reason, retries } = yield* play(vendor, server)
      assert.strictEqual(told(reason), "ServerError")
      assert.deepStrictEqual([reason?.status, reason?.requestId, reason?.detail], [503, "req-3", "down, 3"])
      assert.deepStrictEqual([server.requests.length, retries.length], [3, 2])
      const taken = (events.at(-1)?.timestamp ?? 0) - (events[0]?.timestamp ?? 0)
      assert.isTrue(taken >= 2000 && taken <= 30_000, `${taken} ms`)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F023: of a page of 100 kB behind a 502, at most 4 kB are kept", () =>
    Effect.gen(function* () {
      const page = `<html><body>${"<p>Bad gateway, Grüße</p>".repeat(4500)}</body></html>`
      const server = yield* serve((response) =>
        response.writeHead(502, { "content-type": "text/html" }).end(page)
      )
      const { exit, reason } = yield* play(vendor, server)
      assert.deepStrictEqual([told(reason), reason?.status], ["ServerError", 502])
      assert.isAtMost(Buffer.byteLength(reason?.body ?? ""), 4096)
      assert.isAbove(Buffer.byteLength(reason?.body ?? ""), 1000)
      assert.isAtMost(reason?.detail.length ?? 0, 400)
      assert.isAtMost(JSON.stringify(reason).length, 6000)
      assert.isTrue(exit._tag === "Failure")
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F024: a page to sign in is no answer, and no empty one", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) =>
        response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end("<html>Sign in</html>")
      )
      const { last, reason } = yield* play(vendor, server)
      assert.strictEqual(told(reason), "Protocol contentType")
      assert.deepStrictEqual([reason?.status, reason?.body], [200, "<html>Sign in</html>"])
      assert.include(reason?.detail, "text/html")
      assert.strictEqual(last?.stopReason, "error")
      assert.strictEqual(server.requests.length, 1)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F025: an error in the place of a stream is told in its words", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) =>
        refuse(response, 200, vendor.error("the cluster is on fire").data)
      )
      const { last, reason } = yield* play(vendor, server)
      assert.include(["Overloaded", "ServerError"], told(reason))
      assert.strictEqual(reason?.detail, "the cluster is on fire")
      assert.strictEqual(last?.stopReason, "error")
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect(
    "F027: a stream of nothing, or no content, is no answer; nothing was said, so it is asked again",
    () =>
      Effect.gen(function* () {
        for (const status of [200, 204]) {
          const empty = yield* serve((response) =>
            status === 200 ? stream(response).end() : response.writeHead(204).end()
          )
          const given = yield* play(vendor, empty)
          assert.strictEqual(told(given.reason), "Protocol empty", String(status))
          assert.strictEqual(empty.requests.length, 3)
          const once = yield* serve((response, _, count) => {
            if (count > 1) answer(response, vendor.answer(hello))
            else if (status === 200) stream(response).end()
            else response.writeHead(204).end()
          })
          const { retries, text } = yield* play(vendor, once)
          assert.deepStrictEqual([text, retries.length], ["Hello", 1])
        }
      }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F029: a redirect is not followed, so no key goes along", () =>
    Effect.gen(function* () {
      const other = yield* serve((response) => answer(response, vendor.answer(hello)))
      for (const status of [301, 302, 303, 307, 308]) {
        for (const client of [FetchHttpClient.layer, NodeHttpClient.layerUndici, NodeHttp.layer]) {
          const server = yield* serve((response, { url }) => {
            response.writeHead(status, { location: new URL(url, other.baseUrl).href }).end()
          })
          const { reason } = yield* Effect.provide(play(vendor, server), client)
          assert.deepStrictEqual([told(reason), reason?.status], ["Transport redirect", status])
          assert.strictEqual(server.requests.length, 1)
        }
      }
      assert.strictEqual(other.requests.length, 0)
    })
  )
})
