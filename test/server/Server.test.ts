import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Layer, Redacted } from "effect"
import { HttpServerResponse } from "effect/http"
import { Routes, Server } from "effect-agent/server"
import { LocalRules } from "effect-agent/providers"
import { ScriptedProvider } from "effect-agent/testing"
import { recorder } from "../behaviour/approving.ts"
import { layer, waiting } from "./host.ts"
import { framesOf, send, serve, token } from "./http.ts"

const done = ScriptedProvider.text("done")

const events = (port: number, runId: string, query = "", headers = {}) =>
  Effect.map(send(port, { path: `/runs/${runId}/events${query}`, headers }), (answer) => ({
    ...answer,
    frames: framesOf(answer.text)
  }))

const started = Effect.fnUntraced(function* (port: number, body: object = { prompt: "hi" }) {
  yield* send(port, { path: "/sessions", body: { sessionId: "s" } })
  const { json } = yield* send(port, { path: "/sessions/s/runs", body })
  return json.runId as string
})

const problem = (answer: { readonly type: string; readonly json: any; readonly status: number }) => {
  assert.strictEqual(answer.type, "application/problem+json")
  assert.strictEqual(answer.json.status, answer.status)
  return [answer.status, String(answer.json.type).split(":").at(-1)]
}

describe("Server", () => {
  it.live("keeps sessions: makes, lists, reads, forks and deletes them", () =>
    Effect.gen(function* () {
      const { port } = yield* serve([done])
      assert.deepStrictEqual(
        (yield* send(port, { path: "/health", headers: { authorization: undefined } })).json,
        {
          status: "ok"
        }
      )
      const made = yield* send(port, {
        path: "/sessions",
        body: { sessionId: "s", name: "Trip", system: "Be kind." }
      })
      assert.deepStrictEqual([made.status, made.json], [201, { sessionId: "s" }])
      assert.deepStrictEqual(problem(yield* send(port, { path: "/sessions", body: { sessionId: "s" } })), [
        409,
        "session-exists"
      ])
      const runId = yield* started(port)
      yield* events(port, runId)
      const list = yield* send(port, { path: "/sessions?limit=1&query=tri" })
      assert.deepStrictEqual(
        list.json.items.map(({ title }: { title: string }) => title),
        ["Trip"]
      )
      const read = yield* send(port, { path: "/sessions/s" })
      assert.strictEqual(read.json.view.messages.length, 2)
      assert.strictEqual(read.json.view.options.system, "Be kind.")
      assert.strictEqual(read.json.entries[0].type, "session")
      const fork = yield* send(port, { path: "/sessions/s/fork", body: {} })
      assert.strictEqual(fork.status, 201)
      const copy = yield* send(port, { path: `/sessions/${fork.json.sessionId}` })
      assert.strictEqual(copy.json.view.messages.length, 2)
      const bad = yield* send(port, { path: "/sessions/s/fork", body: { entryId: "none" } })
      assert.deepStrictEqual(problem(bad), [400, "invalid-request"])
      const changed = yield* send(port, {
        method: "PATCH",
        path: "/sessions/s",
        body: { name: "Oslo", model: "m" }
      })
      assert.strictEqual(changed.status, 204)
      const wrong = yield* send(port, { method: "PATCH", path: "/sessions/s", body: { tools: [] } })
      assert.strictEqual(wrong.status, 400)
      const again = yield* send(port, { path: "/sessions/s" })
      assert.deepStrictEqual([again.json.session.title, again.json.view.options.model], ["Oslo", "m"])
      assert.strictEqual((yield* send(port, { method: "DELETE", path: "/sessions/s" })).status, 204)
      assert.deepStrictEqual(problem(yield* send(port, { path: "/sessions/s" })), [404, "session-not-found"])
      assert.deepStrictEqual(problem(yield* send(port, { path: `/runs/${runId}` })), [404, "run-not-found"])
    })
  )

  it.live("runs a prompt, and serves its events from any position", () =>
    Effect.gen(function* () {
      const { port } = yield* serve([done, done])
      const runId = yield* started(port, {
        prompt: [{ type: "text", text: "hi" }],
        options: { limits: { maxTurns: 3 } }
      })
      const all = yield* events(port, runId)
      assert.strictEqual(all.type, "text/event-stream")
      assert.strictEqual(all.headers["cache-control"], "no-cache, no-transform")
      assert.strictEqual(all.frames[0]?.event, "RunStart")
      assert.strictEqual(all.frames[0]?.data.options.limits.maxTurns, 3)
      assert.strictEqual(all.frames.at(-1)?.event, "RunEnd")
      const whole = all.frames.filter(({ event, id }) => id > 4 && event !== "MessageDelta")
      assert.deepStrictEqual((yield* events(port, runId, "?after=4")).frames, whole)
      const resumed = yield* events(port, runId, "?after=1", { "last-event-id": "4" })
      assert.deepStrictEqual(resumed.frames, whole)
      const last = all.frames.at(-1)?.id ?? 0
      assert.strictEqual((yield* events(port, runId, `?after=${last}`)).status, 204)
      assert.strictEqual((yield* events(port, runId, "?after=99999")).status, 204)
      for (const query of ["?after=-1", "?after=x", "?after=1.5", "?after=", "?onDisconnect=maybe"]) {
        assert.deepStrictEqual((yield* events(port, runId, query)).status, 400, query)
      }
      assert.strictEqual((yield* events(port, runId, "", { "last-event-id": "abc" })).status, 400)
      const run = yield* send(port, { path: `/runs/${runId}` })
      assert.deepInclude(run.json, { runId, sessionId: "s", status: "completed", turns: 1 })
      const list = yield* send(port, { path: "/sessions/s/runs" })
      assert.deepStrictEqual(
        list.json.items.map((item: { runId: string }) => item.runId),
        [runId]
      )
      const over = yield* send(port, { method: "POST", path: `/runs/${runId}/cancel` })
      assert.deepStrictEqual([...problem(over), over.json.runId], [409, "run-over", runId])
      const options = yield* send(port, {
        path: "/sessions/s/runs",
        body: { prompt: "x", options: { limit: 1 } }
      })
      assert.strictEqual(options.status, 400)
      assert.strictEqual(options.type, "application/problem+json")
    })
  )

  it.live("steers, pauses, resumes and cancels a run, and refuses a second one with its id", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const tools = [waiting("wait", Deferred.await(gate))]
      const { port } = yield* serve([ScriptedProvider.toolCall("wait", {}), done], { tools })
      const runId = yield* started(port)
      const second = yield* send(port, { path: "/sessions/s/runs", body: { prompt: "two" } })
      assert.deepStrictEqual([...problem(second), second.json.runId], [409, "run-goes-on", runId])
      const joined = yield* send(port, { path: "/sessions/s/runs", body: { prompt: "two", when: "steer" } })
      assert.deepStrictEqual([joined.status, joined.json.runId], [202, runId])
      const to = (action: string, body?: object) =>
        Effect.map(
          send(port, {
            method: "POST",
            path: `/runs/${runId}/${action}`,
            ...(body === undefined ? {} : { body })
          }),
          ({ status }) => status
        )
      assert.strictEqual(yield* to("steer", { message: "more" }), 202)
      assert.strictEqual(yield* to("follow-up", { message: "later" }), 202)
      assert.strictEqual(yield* to("resume"), 409)
      assert.strictEqual(yield* to("pause"), 202)
      assert.strictEqual(yield* to("resume", { reason: "go" }), 202)
      assert.strictEqual(yield* to("steer"), 415)
      assert.strictEqual(yield* to("steer", {}), 400)
      const gone = yield* send(port, { method: "DELETE", path: "/sessions/s" })
      assert.deepStrictEqual([...problem(gone), gone.json.runId], [409, "run-goes-on", runId])
      assert.strictEqual(yield* to("cancel", { reason: "enough" }), 202)
      const { frames } = yield* events(port, runId)
      assert.deepInclude(frames.at(-1)?.data, { _tag: "RunEnd", status: "cancelled" })
    })
  )

  it.live("answers approvals over HTTP", () =>
    Effect.gen(function* () {
      const { ran, tool } = recorder()
      const script = [ScriptedProvider.toolCall("remove", { path: "a" }), done]
      const { port } = yield* serve(script, { tools: [tool], needsApproval: ["remove"] })
      const runId = yield* started(port)
      const asked = yield* Effect.repeat(send(port, { path: `/runs/${runId}` }), {
        until: ({ json }) => json.pending.approvals.length > 0
      })
      const [{ approvalId, argumentsHash }] = asked.json.pending.approvals
      const path = `/runs/${runId}/approvals/${approvalId}`
      const wrong = yield* send(port, { path, body: { decision: "approve", argumentsHash: "0" } })
      assert.deepStrictEqual(problem(wrong), [409, "answer-conflict"])
      const invalid = { decision: "approve", argumentsHash, params: { path: {} } }
      assert.deepStrictEqual(problem(yield* send(port, { path, body: invalid })), [422, "answer-invalid"])
      const right = yield* send(port, { path, body: { decision: "approve", argumentsHash } })
      assert.deepStrictEqual([right.status, right.json], [200, { decision: "approve", runId }])
      yield* events(port, runId)
      const again = yield* send(port, { path, body: { decision: "reject", argumentsHash } })
      assert.deepStrictEqual(problem(again), [409, "answer-conflict"])
      assert.include(again.json.detail, "approve")
      assert.deepStrictEqual(ran, ["a"])
    })
  )

  it.live("starts a run once for an idempotency key", () =>
    Effect.gen(function* () {
      const { port } = yield* serve([done, done])
      yield* send(port, { path: "/sessions", body: { sessionId: "s" } })
      const start = (body: string) =>
        send(port, { path: "/sessions/s/runs", body, headers: { "idempotency-key": "k" } })
      const [first, second] = yield* Effect.all([start('{"prompt":"hi"}'), start('{ "prompt": "hi" }')], {
        concurrency: 2
      })
      assert.deepStrictEqual([first.status, first.json], [second.status, second.json])
      assert.strictEqual(first.status, 201)
      const other = yield* start('{"prompt":"other"}')
      assert.deepStrictEqual([...problem(other), other.json.runId], [409, "key-reused", first.json.runId])
    })
  )

  it.live(
    "describes itself with OpenAPI 3.1, names the document at its root, serves routes beside its own, and limits requests",
    () =>
      Effect.gen(function* () {
        const hello = Routes.make("POST", "/hello", Effect.succeed(HttpServerResponse.text("hi")), {
          body: "json"
        })
        const rate = { requests: 4, window: "1 minute" } as const
        const provider = LocalRules.provider
        const { port } = yield* serve(
          [],
          {},
          { routes: [hello], rate, proxy: { provider, models: ["rules"] } }
        )
        const page = yield* send(port, { path: "/openapi.json" })
        assert.match(page.json.openapi, /^3\.1/)
        assert.includeMembers(Object.keys(page.json.paths), [
          "/runs/{runId}/events",
          "/ui/chat",
          "/ui/chat/{chatId}",
          "/ui/chat/{chatId}/stream",
          "/ui/chat/{chatId}/stop",
          "/ag-ui",
          "/ag-ui/{threadId}/stop",
          "/model/stream",
          "/api/stream",
          "/hello"
        ])
        for (const [path, item] of Object.entries<Record<string, any>>(page.json.paths))
          for (const [method, operation] of Object.entries(item)) {
            assert.isNotEmpty(operation.summary, `${method} ${path}`)
            const inPath = operation.parameters.filter((parameter: any) => parameter.in === "path")
            assert.deepStrictEqual(
              inPath.map(({ name }: { readonly name: string }) => `{${name}}`),
              path.match(/\{\w+\}/g) ?? []
            )
            if (path !== "/health") assert.deepStrictEqual(operation.security, [{ bearer: [] }])
          }
        const ids = Object.values<Record<string, any>>(page.json.paths).flatMap((item) =>
          Object.values(item).map(({ operationId }) => operationId)
        )
        assert.strictEqual(new Set(ids).size, ids.length)
        const root = yield* send(port, { path: "/", headers: { authorization: undefined } })
        assert.strictEqual(root.status, 200)
        assert.include(root.text, "/openapi.json")
        assert.strictEqual(
          (yield* send(port, { path: "/openapi.json", headers: { authorization: undefined } })).status,
          401
        )
        assert.strictEqual((yield* send(port, { path: "/hello", body: {} })).text, "hi")
        assert.strictEqual(
          (yield* send(port, { path: "/hello", body: "a", headers: { "content-type": "text/plain" } }))
            .status,
          415
        )
        const method = yield* send(port, { path: "/hello" })
        assert.deepStrictEqual(
          [...problem(method), method.headers["allow"]],
          [405, "method-not-allowed", "POST"]
        )
        yield* send(port, { path: "/sessions" })
        const many = yield* send(port, { path: "/sessions" })
        assert.deepStrictEqual(problem(many), [429, "too-many-requests"])
        assert.isAtLeast(Number(many.headers["retry-after"]), 1)
      })
  )

  it.live("answers web requests in any runtime", () =>
    Effect.gen(function* () {
      const { dispose, handler } = Server.toWebHandler(
        { tokens: [Redacted.make(token)] },
        Layer.orDie(layer([done]))
      )
      const ask = (path: string, init: RequestInit = {}) =>
        Effect.promise(() =>
          handler(
            new Request(`http://localhost${path}`, {
              ...init,
              headers: { authorization: `Bearer ${token}`, "content-type": "application/json" }
            })
          )
        )
      const body = JSON.stringify({ sessionId: "s" })
      assert.strictEqual((yield* ask("/sessions", { method: "POST", body })).status, 201)
      const run = yield* ask("/sessions/s/runs", { method: "POST", body: '{"prompt":"hi"}' })
      const { runId } = yield* Effect.promise(() => run.json())
      const stream = yield* ask(`/runs/${runId}/events`)
      assert.strictEqual(framesOf(yield* Effect.promise(() => stream.text())).at(-1)?.event, "RunEnd")
      const foreign = yield* Effect.promise(() => handler(new Request("http://evil.example/health")))
      assert.strictEqual(foreign.status, 421)
      yield* Effect.promise(dispose)
    })
  )
})
