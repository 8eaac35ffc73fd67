import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { OpenApi } from "effect/http-api"
import { Api } from "effect-agent/api"
import { ScriptedProvider } from "effect-agent/testing"
import { send, serve } from "./http.ts"

const long = "n".repeat(201)

describe("the bounds of requests", () => {
  it.live("hold for names, prompts and lists of tools", () =>
    Effect.gen(function* () {
      const { port } = yield* serve([])
      yield* send(port, { path: "/sessions", body: { sessionId: "s", name: "n".repeat(200) } })
      for (const [path, body, method] of [
        ["/sessions", { name: long }, "POST"],
        ["/sessions", { model: long }, "POST"],
        ["/sessions", { system: "s".repeat(1_000_001) }, "POST"],
        ["/sessions", { tools: Array.from({ length: 1001 }, String) }, "POST"],
        ["/sessions/s", { name: long }, "PATCH"],
        [
          "/sessions/s/runs",
          { prompt: "x", options: { activeTools: Array.from({ length: 1001 }, String) } },
          "POST"
        ]
      ] as const) {
        assert.strictEqual(
          (yield* send(port, { path, body, method })).status,
          400,
          JSON.stringify(body).slice(0, 60)
        )
      }
      const { json } = yield* send(port, { path: "/sessions" })
      assert.strictEqual(json.items[0].name.length, 200)
    })
  )

  it.live("leave a session whole that the server streams", () =>
    Effect.gen(function* () {
      const { port } = yield* serve([ScriptedProvider.text("Yes.")])
      yield* send(port, { path: "/sessions", body: { sessionId: "s" } })
      const { json: run } = yield* send(port, { path: "/sessions/s/runs", body: { prompt: "Do I?" } })
      yield* send(port, { path: `/runs/${run.runId}/events` })
      const { json, type } = yield* send(port, { path: "/sessions/s" })
      assert.match(type, /^application\/json/)
      assert.deepStrictEqual(Object.keys(json), ["session", "entries", "view"])
      assert.isAbove(json.entries.length, 2)
      assert.deepStrictEqual(
        json.view.messages.map(({ role }: { readonly role: string }) => role),
        ["user", "assistant"]
      )
      assert.deepInclude(json.session, { sessionId: "s" })
    })
  )

  it("have an idempotency key on each route that changes something", () => {
    const paths = Object.entries(OpenApi.fromApi(Api.Api).paths)
    for (const [path, methods] of paths)
      for (const method of ["post", "patch", "delete"] as const) {
        const { parameters = [] } = methods[method] ?? { parameters: [{ name: "idempotency-key" }] }
        assert.isTrue(
          parameters.some((parameter) => "name" in parameter && parameter.name === "idempotency-key"),
          `${method} ${path}`
        )
      }
  })
})
