import { assert, it } from "@effect/vitest"
import { Clock, Context, Effect, Layer, Scope, Stream } from "effect"
import { Agent, Message, type Session, Tool } from "effect-agent"
import { SessionStore, SqlSessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
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
      assert.strictEqual(yield* tagOf(Effect.scoped(one.store.open("none"))), "Missing")
      // A process that takes over removes none that another one has open.
      assert.strictEqual(yield* tagOf((yield* storeOf(url)).store.delete("s")), "Locked")
      yield* first.record(hello)
      const entries = yield* Stream.runCollect(polite.store.export("s", "jsonl"))
      assert.isAbove(entries.length, 0)
    }))

  /** Runs a call of a tool while the clock jumps, as it does for a process that is frozen. Returns how often the tool ran. */
  const called = (
    url: string,
    jump: (session: Session.Session) => Effect.Effect<unknown, unknown, Scope.Scope>
  ) =>
    Effect.gen(function* () {
      const { store } = yield* storeOf(url)
      const session = yield* store.create({ sessionId: "s" })
      const scope = yield* Effect.scope
      let calls = 0
      const tool = Tool.make({
        name: "pay",
        description: "Pays.",
        execute: () => Effect.sync(() => `paid ${++calls}`)
      })
      const isIntent = (record: Session.Record) =>
        record._tag === "Event" && record.event._tag === "ToolInvoked"
      const frozen: Session.Session = {
        ...session,
        record: (records) =>
          Effect.tap(session.record(records), () =>
            records.some(isIntent)
              ? Effect.orDie(Effect.provideService(jump(session), Scope.Scope, scope))
              : Effect.void
          )
      }
      const script = [ScriptedProvider.toolCall("pay", {}), ScriptedProvider.text("done")]
      const agent = yield* Effect.provide(
        Agent.make({ model: "any", tools: [tool], session: frozen }),
        ScriptedProvider.layer(script)
      )
      const run = yield* Effect.result(agent.prompt("go"))
      return { calls, run }
    })

  const shifted = Effect.map(Clock.Clock, (clock) => {
    let by = 0
    let atEachLook = 0
    const now = () => clock.currentTimeMillisUnsafe() + (by += atEachLook)
    const slow = Effect.sync(() => void (atEachLook = 2100))
    const shift = (millis: number) => Effect.sync(() => void (by += millis))
    const shifted: Clock.Clock = {
      currentTimeMillisUnsafe: now,
      currentTimeMillis: Effect.sync(now),
      currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
      currentTimeNanos: clock.currentTimeNanos,
      monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
      monotonicTimeNanos: clock.monotonicTimeNanos,
      sleep: (duration) => clock.sleep(duration)
    }
    return { shift, slow, clock: shifted }
  })

  test("runs no tool for a writer that was frozen until another one had followed it", (url) =>
    Effect.gen(function* () {
      const { clock, shift } = yield* shifted
      const other = yield* storeOf(url)
      const frozen = called(url, () => Effect.andThen(shift(3000), other.store.open("s")))
      const { calls, run } = yield* Effect.provideService(frozen, Clock.Clock, clock)
      assert.strictEqual(calls, 0)
      assert.strictEqual(
        run._tag === "Failure" && run.failure._tag === "RunFailed" && run.failure.reason._tag,
        "SessionError"
      )
    }))

  test("runs a tool for a writer that was frozen and that no other one has followed", (url) =>
    Effect.gen(function* () {
      const { clock, shift } = yield* shifted
      const { calls, run } = yield* Effect.provideService(
        called(url, () => shift(3000)),
        Clock.Clock,
        clock
      )
      assert.deepStrictEqual([calls, run._tag], [1, "Success"])
    }))

  test("ends a run whose database takes too long to say who has the session", (url) =>
    Effect.gen(function* () {
      const { clock, slow } = yield* shifted
      // From then on more than two seconds lie between two looks at the clock.
      const { calls, run } = yield* called(url, () => slow).pipe(
        Effect.provideService(Clock.Clock, clock),
        Effect.timeout("10 seconds")
      )
      assert.strictEqual(calls, 0)
      assert.strictEqual(
        run._tag === "Failure" && run.failure._tag === "RunFailed" && run.failure.reason._tag,
        "SessionError"
      )
      assert.include(JSON.stringify(run), "took more than 2 seconds")
    }))
})
