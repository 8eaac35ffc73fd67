import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted, Schedule, Stream } from "effect"
import { Message } from "effect-agent"
import { RemoteRuns } from "effect-agent/client"
import { Runs } from "effect-agent/server"
import { ScriptedProvider } from "effect-agent/testing"
import { FetchHttpClient } from "effect/http"
import { token as right, serve } from "../server/http.ts"
import * as Contract from "../server/runsContract.ts"

const never = Schedule.recurs(0)

const remote = (url: string, token = right) =>
  RemoteRuns.make(url, { token: Redacted.make(token), reconnect: never, retry: never }).pipe(
    Effect.provide(FetchHttpClient.layer)
  )

const make: Contract.Make = (script, setup, places) =>
  Layer.effect(
    Runs.Runs,
    Effect.flatMap(serve(script, setup, {}, places), ({ url }) => remote(url))
  )

const done = ScriptedProvider.text("done")

describe("RemoteRuns", () => {
  Contract.check(make, it.live, { takesMessages: false })

  it.live("answers a key again with the run that it started", () =>
    Effect.gen(function* () {
      const runs = yield* Runs.Runs
      const sessionId = yield* Contract.session
      const start = (prompt: string) =>
        runs.start({ sessionId, prompt, idempotency: { key: "k", body: { prompt } } })
      const first = yield* start("hi")
      assert.deepStrictEqual(yield* start("hi"), first)
      assert.strictEqual((yield* Effect.flip(start("other")))._tag, "KeyReused")
    }).pipe(Effect.provide(make([done])))
  )

  it.live("cancels a run when the last watcher that wants it has left", () =>
    Effect.gen(function* () {
      const { script, setup } = yield* Contract.gated
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        const sessionId = yield* Contract.session
        const { runId } = yield* runs.start({ sessionId, prompt: "hi" })
        const leaving = (cancelOnLeave: boolean | (() => boolean)) =>
          Effect.flatMap(runs.watch(runId, 0, { cancelOnLeave }), (pages = Stream.empty) =>
            Stream.runDrain(Stream.take(pages, 2))
          )
        const staying = yield* Effect.forkChild(
          Effect.flatMap(runs.events(runId, 0, { cancelOnLeave: true }), Stream.runCollect),
          { startImmediately: true }
        )
        yield* leaving(() => false)
        yield* leaving(true)
        assert.strictEqual((yield* runs.get(runId)).status, "running")
        yield* Fiber.interrupt(staying)
        yield* Effect.repeat(runs.get(runId), {
          until: ({ status }) => status === "cancelled",
          schedule: Schedule.spaced("20 millis")
        })
      }).pipe(Effect.provide(make(script, setup)))
    })
  )

  it.live("refuses what HTTP does not offer", () =>
    Effect.gen(function* () {
      const runs = yield* Runs.Runs
      const sessionId = yield* Contract.session
      const refused = [
        runs.start({ sessionId, prompt: Message.user("hi") }),
        runs.sessions.create({ cwd: "/" }),
        runs.sessions.list({ cwd: "/" })
      ]
      for (const request of refused)
        assert.strictEqual(
          (yield* Effect.flip<unknown, { readonly _tag: string }, never>(request))._tag,
          "MalformedRequest"
        )
      const body = { prompt: "hi" }
      assert.isUndefined(yield* runs.known(sessionId, { key: "k", body }))
      yield* runs.drain(0)
      yield* runs.health
    }).pipe(Effect.provide(make([done])))
  )

  it.live("says why a server is of no use, as a storage that is not available", () =>
    Effect.gen(function* () {
      const { url } = yield* serve([done])
      const other = yield* remote(url, "another")
      const unknown = yield* Effect.flip(other.sessions.create({}))
      assert.strictEqual(
        unknown._tag === "StorageUnavailable" && unknown.detail,
        "The request needs a valid token"
      )
      const nowhere = yield* remote("http://127.0.0.1:1")
      const away = yield* Effect.flip(nowhere.health)
      assert.match(away.detail ?? "", /The server does not answer/)
      assert.isUndefined(yield* nowhere.active("s"))
    }).pipe(Effect.scoped)
  )
})
