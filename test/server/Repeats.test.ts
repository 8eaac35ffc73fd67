/** Requests that come twice, at once or one after the other. */
import { NodeHttpServer } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Redacted } from "effect"
import { Approval, Tool } from "effect-agent"
import { RunLogStore, Runs, Server, UiRoutes } from "effect-agent/server"
import { ScriptedProvider } from "effect-agent/testing"
import { HttpServer } from "effect/http"
import { createServer } from "node:http"
import { eventsOf, layer, type Setup, stores } from "./host.ts"
import { type Asked, send, serve, token } from "./http.ts"
import { gated, session } from "./runsContract.ts"

const done = ScriptedProvider.text("done")

const key = { "idempotency-key": "k" }

/** Sends a request twice at once, and once more. */
const thrice = Effect.fnUntraced(function* (port: number, asked: Asked) {
  const once = send(port, { ...asked, headers: { "idempotency-key": JSON.stringify(asked) } })
  const [first, second] = yield* Effect.all([once, once], { concurrency: 2 })
  return [first, second, yield* once].map(({ status, text }) => [status, text])
})

describe("an idempotency key", () => {
  it.live("gives the first answer again, whatever the request changes", () =>
    Effect.gen(function* () {
      const { gate, script, setup } = yield* gated
      const { port } = yield* serve(script, setup)
      const json = (path: string, body: object = {}, method = "POST"): Asked => ({ method, path, body })
      const asked = [
        json("/sessions"),
        json("/sessions", { sessionId: "s" }),
        json("/sessions/s", { name: "Trip" }, "PATCH"),
        json("/sessions/s/fork"),
        json("/sessions/s/runs", { prompt: "hi" })
      ]
      for (const one of asked) {
        const [first, ...others] = yield* thrice(port, one)
        assert.include([201, 204], first?.[0], one.path)
        assert.deepStrictEqual(others, [first, first], `${one.method} ${one.path}`)
      }
      const { items } = (yield* send(port, { path: "/sessions" })).json
      assert.lengthOf(items, 3)
      const [{ runId }] = (yield* send(port, { path: "/sessions/s/runs" })).json.items
      for (const [what, body] of [
        ["steer", { message: "By the way." }],
        ["follow-up", { message: "And then?" }],
        ["pause", {}],
        ["resume", {}],
        ["cancel", {}]
      ] as const)
        assert.deepStrictEqual(
          (yield* thrice(port, json(`/runs/${runId}/${what}`, body))).map(([status]) => status),
          [202, 202, 202],
          what
        )
      yield* Deferred.succeed(gate, undefined)
      yield* send(port, { path: `/runs/${runId}/events` })
      const entries = (yield* send(port, { path: "/sessions/s" })).text
      assert.lengthOf(entries.match(/By the way\./g) ?? [], (entries.match(/And then\?/g) ?? []).length)
      const again = { path: "/sessions", headers: key }
      yield* send(port, { ...again, body: {} })
      const other = yield* send(port, { ...again, body: { name: "x" } })
      assert.deepStrictEqual([other.status, other.json.type], [409, "urn:effect-agent:problem:key-reused"])
      for (const path of [`/runs/${runId}`, "/sessions/s"])
        assert.deepStrictEqual(
          (yield* thrice(port, { method: "DELETE", path })).map(([status]) => status),
          [204, 204, 204]
        )
    })
  )

  it.live("does not keep a refusal, and makes one session although the process ends in between", () =>
    Effect.gen(function* () {
      const places = yield* stores
      const made = Effect.gen(function* () {
        const { port } = yield* serve([done], {}, {}, places)
        const none = { path: "/sessions/none/fork", body: {}, headers: key }
        assert.strictEqual((yield* send(port, none)).status, 404)
        yield* send(port, { path: "/sessions", body: { sessionId: "none" } })
        const { json } = yield* send(port, { path: "/sessions", body: {}, headers: key })
        return [(yield* send(port, none)).status, json.sessionId]
      })
      const [first, id] = yield* Effect.scoped(made)
      assert.strictEqual(first, 201)
      const { port } = yield* serve([done], {}, {}, places)
      const again = yield* send(port, { path: "/sessions", body: {}, headers: key })
      assert.deepStrictEqual([again.status, again.json.sessionId], [201, id])
    })
  )
})

/** A server with the routes of UI protocols. */
const ui = Effect.fnUntraced(function* (script: ScriptedProvider.Script, setup: Setup = {}) {
  const node = NodeHttpServer.layer(() => createServer(), { host: "127.0.0.1", port: 0 })
  const app = Layer.unwrap(
    Effect.map(UiRoutes.make, (routes) => Server.layer({ tokens: [Redacted.make(token)], grace: 0, routes }))
  ).pipe(Layer.provideMerge(layer(script, setup)), Layer.provideMerge(node))
  const { address } = Context.get(yield* Layer.build(app), HttpServer.HttpServer)
  return "port" in address ? address.port : 0
})

const requests: Readonly<Record<string, object>> = {
  "/ui/chat": {
    id: "c",
    trigger: "submit-message",
    messages: [{ id: "m1", role: "user", parts: [{ type: "text", text: "hi" }] }]
  },
  "/ag-ui": {
    threadId: "c",
    runId: "r1",
    messages: [{ id: "m1", role: "user", content: "hi" }],
    tools: [],
    context: [],
    state: {},
    forwardedProps: {}
  }
}

describe("a first message of a new chat", () => {
  for (const [path, body] of Object.entries(requests)) {
    it.live(`begins one run if two come at once, and the other one is refused or joins it: ${path}`, () =>
      Effect.gen(function* () {
        const port = yield* ui([done, done])
        const other = JSON.parse(JSON.stringify(body).replaceAll('"m1"', '"m2"'))
        const answers = yield* Effect.all([send(port, { path, body }), send(port, { path, body: other })], {
          concurrency: 2
        })
        const statuses = answers.map(({ status }) => status).toSorted()
        assert.include([JSON.stringify([200, 200]), JSON.stringify([200, 409])], JSON.stringify(statuses))
        const { items } = (yield* send(port, { path: "/sessions/c/runs" })).json
        assert.lengthOf(items, statuses.filter((status) => status === 200).length)
      })
    )

    it.live(`gives the answer that it had if it comes again without a key: ${path}`, () =>
      Effect.gen(function* () {
        const port = yield* ui([done])
        const first = yield* send(port, { path, body })
        const again = yield* send(port, { path, body })
        assert.deepStrictEqual([first.status, again.status], [200, 200])
        assert.lengthOf((yield* send(port, { path: "/sessions/c/runs" })).json.items, 1)
      })
    )

    it.live(`runs once with a key, also where its id is another one: ${path}`, () =>
      Effect.gen(function* () {
        const port = yield* ui([done, done])
        const asked = { path, body, headers: key }
        const first = yield* send(port, asked)
        assert.strictEqual((yield* send(port, asked)).status, first.status)
        assert.lengthOf((yield* send(port, { path: "/sessions/c/runs" })).json.items, 1)
        const other = JSON.parse(JSON.stringify(body).replaceAll('"hi"', '"other"'))
        assert.strictEqual((yield* send(port, { ...asked, body: other })).status, 409)
      })
    )
  }
})

const remove = Tool.make({ name: "remove", description: "x", execute: () => Effect.succeed("removed") })

describe("requests to a run", () => {
  it.effect("lists the runs that wait for a person, also one that is suspended", () =>
    Effect.gen(function* () {
      for (const asked of ["wait", "defer"] as const)
        yield* Effect.gen(function* () {
          const runs = yield* Runs.Runs
          const waits = Effect.map(runs.listAll({ status: "waiting" }), ({ items }) =>
            items.map(({ runId }) => runId)
          )
          const first = yield* runs.start({ sessionId: yield* session, prompt: "Go" })
          yield* Effect.repeat(runs.get(first.runId), {
            until: ({ pending }) => pending.approvals.length > 0
          })
          yield* runs.sessions.create({ sessionId: "other" })
          yield* eventsOf((yield* runs.start({ sessionId: "other", prompt: "Go" })).runId)
          assert.deepStrictEqual(yield* waits, [first.runId])
          const [{ approvalId, argumentsHash } = { approvalId: "", argumentsHash: "" }] = (yield* runs.get(
            first.runId
          )).pending.approvals
          const next = yield* runs.approve(first.runId, approvalId, { decision: "approve", argumentsHash })
          yield* eventsOf(next.runId)
          assert.deepStrictEqual(yield* waits, [])
        }).pipe(
          Effect.provide(
            layer([ScriptedProvider.toolCall("remove", {}), done, done], {
              tools: [remove],
              needsApproval: ["remove"],
              asked
            })
          )
        )
    })
  )

  it.effect("takes an answer for the run that asked alone, and names the one that continues it", () =>
    Effect.gen(function* () {
      const runs = yield* Runs.Runs
      const sessionId = yield* session
      const asks = Effect.fnUntraced(function* (runId: string) {
        const { pending } = yield* Effect.repeat(runs.get(runId), {
          until: ({ pending }) => pending.approvals.length > 0
        })
        const { approvalId = "", argumentsHash = "" } = pending.approvals[0] ?? {}
        return [approvalId, { decision: "approve", argumentsHash }] as const
      })
      const first = yield* runs.start({ sessionId, prompt: "Go" })
      yield* eventsOf(first.runId)
      const one = yield* asks(first.runId)
      const second = yield* runs.approve(first.runId, ...one)
      yield* eventsOf(second.runId)
      const other = yield* asks(second.runId)
      const wrong = yield* Effect.flip(runs.approve(first.runId, ...other))
      assert.deepInclude(wrong, { _tag: "RequestNotFound", runId: first.runId })
      assert.include(wrong._tag === "RequestNotFound" ? wrong.detail : "", second.runId)
      assert.strictEqual(
        (yield* Effect.flip(runs.approve(second.runId, "none", one[1])))._tag,
        "RequestNotFound"
      )
      yield* eventsOf((yield* runs.approve(second.runId, ...other)).runId)
    }).pipe(
      Effect.provide(
        layer([ScriptedProvider.toolCall("remove", {}), ScriptedProvider.toolCall("remove", {}), done], {
          tools: [remove],
          needsApproval: ["remove"],
          asked: "defer"
        })
      )
    )
  )

  it.effect("takes an answer to a question again whose members have another order", () =>
    Effect.gen(function* () {
      const schema = {
        type: "object",
        properties: { x: { type: "integer" }, y: { type: "integer" } },
        required: ["x", "y"]
      }
      const script = [ScriptedProvider.toolCall("ask_user", { question: "Where?", schema }), done]
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const { runId } = yield* runs.start({ sessionId: yield* session, prompt: "Go" })
        const { pending } = yield* Effect.repeat(runs.get(runId), {
          until: ({ pending }) => pending.questions.length > 0
        })
        const id = pending.questions[0]?.questionId ?? ""
        const first = yield* runs.answer(runId, id, { answer: { x: 1, y: 2 } })
        yield* eventsOf(runId)
        assert.deepStrictEqual(yield* runs.answer(runId, id, { answer: { y: 2, x: 1 } }), first)
        const late = yield* Effect.flip(runs.answer(runId, id, { answer: { x: 1, y: 3 } }))
        assert.include(late._tag === "AnswerConflict" ? late.detail : "", '{"x":1,"y":2}')
      }).pipe(Effect.provide(layer(script, { tools: [Approval.askUser()] })))
    })
  )

  it.effect("begins the next run as soon as the one before it reads as ended", () =>
    Effect.gen(function* () {
      const places = yield* stores
      const logs = yield* Effect.provide(RunLogStore.RunLogStore, places)
      const gate = yield* Deferred.make<void>()
      const ending = yield* Deferred.make<void>()
      const end: RunLogStore.Service["end"] = (run) =>
        Deferred.succeed(ending, undefined).pipe(
          Effect.andThen(Deferred.await(gate)),
          Effect.andThen(logs.end(run))
        )
      const slow = Layer.merge(places, Layer.succeed(RunLogStore.RunLogStore, { ...logs, end }))
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* session
        const first = yield* runs.start({ sessionId, prompt: "one" })
        yield* Deferred.await(ending)
        assert.strictEqual((yield* runs.get(first.runId)).status, "completed")
        const next = yield* Effect.forkChild(
          Effect.all([runs.remove(first.runId), runs.start({ sessionId, prompt: "two" })], {
            concurrency: 2
          }),
          { startImmediately: true }
        )
        yield* Effect.yieldNow
        yield* Deferred.succeed(gate, undefined)
        const [, { status }] = yield* Fiber.join(next)
        assert.strictEqual(status, "started")
      }).pipe(Effect.provide(layer([done, done], {}, slow)))
    })
  )
})
