/** The promises of a store of the logs of runs, on any storage. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import type { RunLogStore } from "effect-agent/server"

type Store = RunLogStore.Service

/** A place of logs. */
export interface Place {
  /** Opens a store of the place, as another process does. */
  readonly open: Effect.Effect<Store, unknown, Scope.Scope>
}

/** A storage under test. */
export interface Subject {
  readonly name: string
  /** An empty place, which goes with the scope. */
  readonly place: Effect.Effect<Place, unknown, Scope.Scope>
}

const run = (runId: string, sessionId = "s"): RunLogStore.RunKey => ({ runId, sessionId })
const idsOf = (runs: ReadonlyArray<RunLogStore.RunKey>) => runs.map(({ runId }) => runId)
const reasonOf = <A, R>(effect: Effect.Effect<A, RunLogStore.RunLogError, R>) =>
  Effect.map(Effect.flip(effect), ({ reason }) => reason)
/** A log with its first line. */
const logged = (store: Store, key: RunLogStore.RunKey) => {
  const first = `"${key.runId}"`
  const opened = Effect.flatMap(store.open(key, first), (append) =>
    store.inSessions === true ? Effect.void : append([first])
  )
  return Effect.scoped(opened)
}

export const contract = ({ name, place }: Subject) => {
  const test = (
    title: string,
    check: (store: Store, at: Place) => Effect.Effect<void, unknown, Scope.Scope>
  ) =>
    it.live(title, () =>
      Effect.gen(function* () {
        const at = yield* place
        yield* check(yield* at.open, at)
      })
    )

  describe(`${name}: a store of the logs of runs`, () => {
    test("keeps lines in order, for other processes too", (store, at) =>
      Effect.gen(function* () {
        if (store.inSessions === true) return
        const append = yield* store.open(run("r"))
        yield* append(["1", '"ä😀"'])
        yield* append([])
        yield* append(["3"])
        const whole = ["1", '"ä😀"', "3"]
        assert.deepStrictEqual(yield* store.read(run("r")), whole)
        assert.deepStrictEqual(yield* (yield* at.open).read(run("r")), whole)
        assert.deepStrictEqual(yield* store.read(run("none")), [])
      }))

    test("lists the runs of all sessions in pages, the newest first", (store, at) =>
      Effect.gen(function* () {
        for (const [runId, sessionId] of [
          ["a", "s"],
          ["b", "t"],
          ["c", "s"],
          ["d", "u"]
        ] as const) {
          yield* logged(store, run(runId, sessionId))
          yield* Effect.sleep("2 millis")
        }
        yield* store.end(run("b", "t"))
        const first = yield* store.newest({ limit: 3 })
        assert.deepStrictEqual(idsOf(first), ["d", "c", "b"])
        const [, , before] = first
        assert.isDefined(before)
        const other = yield* at.open
        assert.deepStrictEqual(idsOf(yield* other.newest({ limit: 3, before })), ["a"])
        assert.deepStrictEqual(idsOf(yield* store.newest({ limit: 9, isUnended: true })), ["d", "c", "a"])
        yield* store.delete(before)
        assert.deepStrictEqual(idsOf(yield* store.newest({ limit: 3, before })), ["a"])
      }))

    test("keeps lines of any length and number", (store) =>
      Effect.gen(function* () {
        if (store.inSessions === true) return
        const lines = [
          JSON.stringify("x".repeat(262_143)),
          JSON.stringify("😀".repeat(300_000)),
          ...Array.from({ length: 2500 }, (_, index) => String(index))
        ]
        const append = yield* store.open(run("r"))
        yield* append(lines)
        yield* append(["0"])
        assert.isTrue(lines.concat("0").join("\n") === (yield* store.read(run("r"))).join("\n"))
      }))

    test("keeps the first line of a log", (store, at) =>
      Effect.gen(function* () {
        yield* logged(store, run("r"))
        yield* Effect.scoped(store.open(run("r"), '"other"'))
        assert.deepStrictEqual(yield* (yield* at.open).read(run("r")), ['"r"'])
      }))

    test("continues a log, and ends the appends of the one who had it", (store) =>
      Effect.gen(function* () {
        if (store.inSessions === true) return
        const one = yield* store.open(run("r"))
        yield* one(["1"])
        const two = yield* store.open(run("r"))
        assert.strictEqual(yield* reasonOf(one(["late"])), "taken")
        yield* two(["2"])
        assert.strictEqual(yield* reasonOf(one(["late"])), "taken")
        assert.deepStrictEqual(yield* store.read(run("r")), ["1", "2"])
      }))

    test("finds and lists runs, and those that have not ended", (store, at) =>
      Effect.gen(function* () {
        const before = Date.now() - 2000
        for (const key of [run("r1"), run("r2"), run("r3", "other")]) yield* logged(store, key)
        const found = yield* store.find("r1")
        assert.deepInclude(found, { ...run("r1"), ended: undefined, attempts: 0, parked: undefined })
        assert.isAtLeast(found?.created ?? 0, before)
        yield* store.end(run("r1"))
        yield* store.end(run("r1"))
        yield* store.end(run("none"))
        const another = yield* at.open
        for (const one of [store, another]) {
          assert.isAtLeast((yield* one.find("r1"))?.ended ?? 0, found?.created ?? Infinity)
          assert.deepStrictEqual(idsOf(yield* one.list("s")), ["r1", "r2"])
          assert.deepStrictEqual(idsOf(yield* one.active("s")), ["r2"])
          assert.deepStrictEqual(yield* one.list("none"), [])
          assert.sameMembers(idsOf(yield* one.unended), ["r2", "r3"])
          assert.isUndefined(yield* one.find("none"))
        }
        assert.deepStrictEqual(yield* another.read(run("r1")), ['"r1"'])
      }))

    test("opens no log that is complete", (store, at) =>
      Effect.gen(function* () {
        yield* logged(store, run("r"))
        yield* store.end(run("r"))
        assert.strictEqual(yield* reasonOf(Effect.scoped(store.open(run("r")))), "ended")
        assert.strictEqual(yield* reasonOf(Effect.scoped((yield* at.open).open(run("r")))), "ended")
      }))

    test("counts the starts of a run until it makes progress", (store, at) =>
      Effect.gen(function* () {
        yield* logged(store, run("r"))
        assert.deepInclude(yield* store.begun(run("r")), { ...run("r"), attempts: 1, parked: undefined })
        assert.strictEqual((yield* store.begun(run("r"))).attempts, 2)
        const another = yield* at.open
        assert.strictEqual((yield* another.begun(run("r"))).attempts, 3)
        yield* another.progressed(run("r"))
        yield* another.progressed(run("r"))
        assert.strictEqual((yield* another.find("r"))?.attempts, 0)
        assert.strictEqual((yield* another.begun(run("r"))).attempts, 1)
        assert.strictEqual(yield* reasonOf(store.begun(run("none"))), "missing")
      }))

    test("parks a run that five starts brought no further, until it may go on", (store, at) =>
      Effect.gen(function* () {
        yield* logged(store, run("r"))
        for (const attempt of [1, 2, 3, 4, 5])
          assert.deepInclude(yield* store.begun(run("r")), { attempts: attempt, parked: undefined })
        const parked = yield* store.begun(run("r"))
        assert.match(parked.parked ?? "", /5 times/)
        assert.deepStrictEqual(yield* store.begun(run("r")), parked)
        const another = yield* at.open
        assert.deepStrictEqual(yield* another.find("r"), parked)
        assert.deepStrictEqual(idsOf(yield* another.unended), ["r"])
        yield* another.unpark("r")
        assert.deepInclude(yield* another.begun(run("r")), { attempts: 1, parked: undefined })
        yield* another.park(run("r"), "it broke")
        assert.strictEqual((yield* another.begun(run("r"))).parked, "it broke")
        assert.strictEqual((yield* (yield* at.open).find("r"))?.parked, "it broke")
        yield* another.end(run("r"))
        assert.deepInclude(yield* another.find("r"), { attempts: 0, parked: undefined })
      }))

    test("keeps idempotency keys in order", (store, at) =>
      Effect.gen(function* () {
        for (const line of ["1", "2", "1"]) yield* store.addKey("s", line)
        yield* store.addKey("other", "3")
        assert.deepStrictEqual(yield* store.keys("s"), ["1", "2", "1"])
        assert.deepStrictEqual(yield* (yield* at.open).keys("other"), ["3"])
        assert.deepStrictEqual(yield* store.keys("none"), [])
      }))

    test("removes sessions, runs, and what has ended long ago", (store, at) =>
      Effect.gen(function* () {
        for (const id of ["r1", "r2", "r3"]) yield* logged(store, run(id))
        for (const id of ["o1", "o2"]) yield* logged(store, run(id, "other"))
        yield* store.addKey("s", "1")
        yield* store.addKey("other", "1")
        yield* store.delete(run("r1"))
        yield* store.delete(run("none"))
        yield* store.end(run("r2"))
        assert.deepStrictEqual(yield* store.retain("1 hour"), [])
        assert.deepStrictEqual(idsOf(yield* store.retain(0)), ["r2"])
        assert.deepStrictEqual(idsOf(yield* store.list("s")), ["r3"])
        yield* store.remove("other")
        yield* store.remove("none")
        for (const one of [store, yield* at.open]) {
          assert.deepStrictEqual(idsOf(yield* one.unended), ["r3"])
          assert.deepStrictEqual(yield* one.read(run("r2")), [])
          assert.deepStrictEqual(yield* one.read(run("o1", "other")), [])
          assert.deepStrictEqual(yield* one.keys("other"), [])
          assert.deepStrictEqual(yield* one.keys("s"), ["1"])
        }
      }))

    test("gives up nothing when a scope closes", (store) =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const append = yield* Scope.provide(store.open(run("r")), scope)
        yield* append(["1"])
        yield* Scope.close(scope, Exit.void)
        assert.deepStrictEqual(idsOf(yield* store.unended), ["r"])
      }))
  })
}
