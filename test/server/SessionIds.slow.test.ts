import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import { JsonlRunLogStore, RunLogStore, SqlRunLogStore } from "effect-agent/server"
import {
  JsonlSessionStore,
  MemorySessionStore,
  type SessionStore,
  SqlSessionStore
} from "effect-agent/sessions"
import * as NodeSqlite from "effect-agent/node/NodeSqlite"
import { ScriptedProvider } from "effect-agent/testing"
import { framesOf, send, serve } from "./http.ts"

const ids = [
  "_x",
  "-x",
  ".x",
  "...",
  "user:1",
  "a/b",
  "../../etc/passwd",
  "a\\b",
  "me@x.org",
  "50%",
  "%2F",
  "a b?c#d&e=f",
  "日本 – é 🙂",
  "con",
  "x".repeat(200)
]
const refused = ["", "x".repeat(201), ".", "..", "a\u0000b", "a\nb", "\ud800"]

type Stores = SessionStore.SessionStore | RunLogStore.RunLogStore

const places = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const directory = yield* files.makeTempDirectoryScoped()
  const jsonl = Layer.merge(
    JsonlSessionStore.layer({ directory: `${directory}/sessions` }),
    JsonlRunLogStore.layer({ directory: `${directory}/runs` })
  )
  const sql = SqlRunLogStore.layer().pipe(
    Layer.provideMerge(SqlSessionStore.layer()),
    Layer.provide(NodeSqlite.layer({ filename: `${directory}/sessions.db` }))
  )
  const memory: Layer.Layer<Stores> = Layer.merge(MemorySessionStore.layer(), RunLogStore.layerMemory)
  const named: ReadonlyArray<readonly [string, Layer.Layer<Stores>]> = [
    ["memory", memory],
    ["jsonl", Layer.orDie(Layer.provide(jsonl, NodeServices.layer))],
    ["sqlite", Layer.orDie(Layer.provide(sql, NodeServices.layer))]
  ]
  return named
})

describe("ids of sessions", () => {
  it.live("are any text that a URL can name, in each store and over a restart", () =>
    Effect.gen(function* () {
      for (const [name, place] of yield* places) {
        const script = ids.map(() => () => ScriptedProvider.text("Hi"))
        const made = Effect.gen(function* () {
          const { port } = yield* serve(script, {}, {}, place)
          for (const [at, sessionId] of ids.entries()) {
            const path = `/sessions/${encodeURIComponent(sessionId)}`
            const user = { id: "u1", role: "user", parts: [{ type: "text", text: sessionId }] }
            if (at % 2 === 0)
              assert.strictEqual(
                (yield* send(port, { path: "/sessions", body: { sessionId } })).status,
                201,
                name
              )
            const body = { id: sessionId, trigger: "submit-message", messages: [user] }
            assert.include(
              (yield* send(port, { path: "/ui/chat", body })).text,
              "[DONE]",
              `${name} ${sessionId}`
            )
            const run = yield* send(port, { path: `${path}/runs`, body: { prompt: "again" } })
            assert.strictEqual(run.status, 201)
            const events = yield* send(port, { path: `/runs/${run.json.runId}/events` })
            assert.strictEqual(framesOf(events.text).at(-1)?.event, "RunEnd")
          }
          for (const sessionId of refused) {
            const answer = yield* send(port, { path: "/sessions", body: { sessionId } })
            assert.strictEqual(answer.status, 400, JSON.stringify(sessionId))
          }
        })
        yield* Effect.scoped(made)
        if (name === "memory") continue
        const { port } = yield* serve([], {}, {}, place)
        const list = yield* send(port, { path: "/sessions?limit=100" })
        assert.deepStrictEqual(
          list.json.items.map((item: { readonly sessionId: string }) => item.sessionId).toSorted(),
          ids.toSorted()
        )
        for (const sessionId of ids) {
          const path = encodeURIComponent(sessionId)
          const chat = yield* send(port, { path: `/ui/chat/${path}` })
          assert.strictEqual(chat.json[0]?.parts[0]?.text, sessionId, name)
          assert.lengthOf((yield* send(port, { path: `/sessions/${path}/runs` })).json.items, 2)
        }
        const [first = ""] = ids
        const removed = yield* send(port, {
          method: "DELETE",
          path: `/sessions/${encodeURIComponent(first)}`
        })
        assert.strictEqual(removed.status, 204)
        assert.strictEqual(
          (yield* send(port, { path: `/sessions/${encodeURIComponent(first)}` })).status,
          404
        )
      }
    }).pipe(Effect.provide(NodeServices.layer), Effect.scoped)
  )
})
