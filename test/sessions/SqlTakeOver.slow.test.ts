import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer, type Scope, Stream } from "effect"
import { Message } from "effect-agent"
import { SessionStore, SqlSessionStore } from "effect-agent/sessions"
import { client, type Make } from "../sql/databases.ts"
import { onEach } from "../sql/suites.ts"
import { said } from "./records.ts"

/** A store of a process, which takes sessions over. */
const storeOf = (url: string, takeOver = true) =>
  Effect.map(
    Layer.build(SqlSessionStore.layer({ takeOver }).pipe(Layer.provide(client(url)))),
    (context) => ({
      store: Context.get(context, SessionStore.SessionStore),
      claims: Context.get(context, SqlSessionStore.Claims)
    })
  )

const tagOf = <A, R>(effect: Effect.Effect<A, { readonly reason: { readonly _tag: string } }, R>) =>
  Effect.map(Effect.flip(effect), ({ reason }) => reason._tag)
const hello = [said(Message.user("hello"))] as const

onEach((_, make: Make) => {
  const test = (name: string, check: (url: string) => Effect.Effect<void, unknown, Scope.Scope>) =>
    it.live(name, () => Effect.flatMap(make, check), 60_000)

  test("takes a session from an owner that lives, whose late appends are refused", (url) =>
    Effect.gen(function* () {
      const [one, two] = [yield* storeOf(url), yield* storeOf(url)]
      const first = yield* one.store.create({ sessionId: "s" })
      yield* first.record(hello)
      const second = yield* two.store.open("s")
      assert.strictEqual(second.restored.messages.length, 1)
      assert.strictEqual(yield* tagOf(first.record(hello)), "Locked")
      yield* second.record(hello)
      assert.isAbove(two.claims.of("s")?.fence ?? 0, one.claims.of("s")?.fence ?? Infinity)
      assert.strictEqual((yield* two.store.read("s")).view.messages.length, 2)
    }))

  test("gives a session back and forth, and keeps each entry", (url) =>
    Effect.gen(function* () {
      const stores = [yield* storeOf(url), yield* storeOf(url)]
      yield* Effect.scoped(storeOf(url).pipe(Effect.flatMap(({ store }) => store.create({ sessionId: "s" }))))
      for (let round = 0; round < 6; round++) {
        const { claims, store } = stores[round % 2] ?? assert.fail()
        yield* Effect.scoped(Effect.flatMap(store.open("s"), (session) => session.record(hello)))
        assert.isUndefined(claims.of("s"))
      }
      const { store } = stores[0] ?? assert.fail()
      assert.strictEqual((yield* store.read("s")).view.messages.length, 6)
    }))

  test("opens no session twice in one store, and takes none without the option", (url) =>
    Effect.gen(function* () {
      const [one, polite] = [yield* storeOf(url), yield* storeOf(url, false)]
      const first = yield* one.store.create({ sessionId: "s" })
      assert.strictEqual(yield* tagOf(Effect.scoped(one.store.open("s"))), "Locked")
      assert.strictEqual(yield* tagOf(Effect.scoped(polite.store.open("s"))), "Locked")
      assert.strictEqual(yield* tagOf(Effect.scoped(one.store.open("none"))), "NotFound")
      // A process that takes over removes none that another one has open.
      assert.strictEqual(yield* tagOf((yield* storeOf(url)).store.delete("s")), "Locked")
      yield* first.record(hello)
      const entries = yield* Stream.runCollect(polite.store.export("s", "jsonl"))
      assert.isAbove(entries.length, 0)
    }))
})
