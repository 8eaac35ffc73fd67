import { assert, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import type { RunLogStore } from "effect-agent/server"
import { onEach } from "../sql/suites.ts"
import { contract } from "./runLogContract.ts"
import { processOf } from "./sqlRuns.ts"

const run = { runId: "r", sessionId: "s" }
const reasonOf = <A, R>(effect: Effect.Effect<A, RunLogStore.RunLogError, R>) =>
  Effect.map(Effect.flip(effect), ({ reason }) => reason)

onEach((name, make) => {
  contract({
    name,
    place: Effect.map(make, (url) => ({ open: Effect.map(processOf(url), ({ logs }) => logs) }))
  })

  const test = (title: string, check: (url: string) => Effect.Effect<void, unknown, Scope.Scope>) =>
    it.live(title, () => Effect.flatMap(make, check), 60_000)

  test("refuses every late write of the process whose session another one has opened", (url) =>
    Effect.gen(function* () {
      const [one, two] = [yield* processOf(url), yield* processOf(url)]
      yield* one.sessions.create({ sessionId: "s" })
      const append = yield* one.logs.open(run)
      yield* append(["1"])
      yield* one.logs.begun(run)
      yield* two.sessions.open("s")
      // Before the new owner has opened the log, too.
      assert.strictEqual(yield* reasonOf(append(["late"])), "taken")
      const next = yield* two.logs.open(run)
      yield* next(["2"])
      assert.strictEqual(yield* reasonOf(append(["late", "late"])), "taken")
      const { begun, end, open, park, progressed } = one.logs
      const late: ReadonlyArray<Effect.Effect<unknown, RunLogStore.RunLogError, Scope.Scope>> = [
        begun(run),
        end(run),
        open(run),
        open({ runId: "new", sessionId: "s" }),
        park(run, "late"),
        progressed(run),
        one.logs.addKey("s", "late")
      ]
      for (const write of late) assert.strictEqual(yield* reasonOf(write), "taken")
      yield* next(["3"])
      yield* two.logs.end(run)
      assert.deepStrictEqual(yield* one.logs.read(run), ["1", "2", "3"])
      assert.deepStrictEqual(yield* one.logs.keys("s"), [])
      assert.isUndefined(yield* one.logs.find("new"))
    }))

  test("keeps all appends that come at one time to a log that was opened again", (url) =>
    Effect.gen(function* () {
      const { logs, sessions } = yield* processOf(url)
      yield* sessions.create({ sessionId: "s" })
      const first = yield* logs.open(run)
      yield* first(["1"])
      // It does not know how many lines the log has.
      const append = yield* logs.open(run)
      yield* Effect.all([append(["2"]), append(["3", "4"]), append(["5"])], { concurrency: "unbounded" })
      assert.deepStrictEqual(yield* logs.read(run), ["1", "2", "3", "4", "5"])
    }))

  test("lets the owner of a session alone write, and each process read", (url) =>
    Effect.gen(function* () {
      const [one, two] = [yield* processOf(url), yield* processOf(url)]
      yield* Effect.scoped(one.sessions.create({ sessionId: "s" }))
      assert.strictEqual(yield* reasonOf(one.logs.open(run)), "taken")
      const scope = yield* Scope.make()
      yield* Scope.provide(one.sessions.open("s"), scope)
      const append = yield* one.logs.open(run)
      yield* append(["1"])
      assert.strictEqual(yield* reasonOf(two.logs.open(run)), "taken")
      assert.strictEqual(yield* reasonOf(two.logs.addKey("s", "k")), "taken")
      assert.deepStrictEqual(yield* two.logs.read(run), ["1"])
      yield* two.logs.unpark("r")
      // The process has let go of the session.
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(yield* reasonOf(append(["late"])), "taken")
      yield* two.sessions.open("s")
      const next = yield* two.logs.open(run)
      yield* next(["2"])
      assert.deepStrictEqual(yield* one.logs.read(run), ["1", "2"])
    }))

  test("has one owner of log and session, whoever opens at one time", (url) =>
    Effect.gen(function* () {
      const processes = [yield* processOf(url), yield* processOf(url), yield* processOf(url)]
      yield* Effect.scoped((processes[0] ?? assert.fail()).sessions.create({ sessionId: "s" }))
      // Each writes 1, 2, 3 … behind what it has read, as long as it may.
      const worker = ({ logs, sessions }: (typeof processes)[number], rounds: number) =>
        Effect.gen(function* () {
          for (let round = 0; round < rounds; round++) {
            const turn = Effect.gen(function* () {
              yield* sessions.open("s")
              const append = yield* logs.open(run)
              let next = (yield* logs.read(run)).length
              for (let n = 0; n < 4; n++) yield* append([String(++next)])
            })
            yield* Effect.ignore(Effect.scoped(turn))
          }
        })
      yield* Effect.forEach(processes, (one) => worker(one, 15), { concurrency: "unbounded" })
      const lines = yield* (processes[0] ?? assert.fail()).logs.read(run)
      assert.isAbove(lines.length, 3)
      assert.deepStrictEqual(
        lines,
        lines.map((_, index) => String(index + 1))
      )
    }))
})
