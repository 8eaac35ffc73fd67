import { assert, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import type { RunLogStore } from "effect-agent/server"
import type { SessionStore } from "effect-agent/sessions"
import { onEach } from "../sql/suites.ts"
import { contract } from "./runLogContract.ts"
import { processOf } from "./sqlRuns.ts"

const run = { runId: "r", sessionId: "s" }
const reasonOf = <A, R>(effect: Effect.Effect<A, RunLogStore.RunLogError, R>) =>
  Effect.map(Effect.flip(effect), ({ reason }) => reason)

/** The lines of the log that the session has. */
const linesOf = (sessions: SessionStore.Service) =>
  Effect.map(sessions.log("s", "r"), (items) => items.map((item) => ("_tag" in item ? item.text : "")))

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
      yield* one.logs.open(run, "1")
      yield* one.logs.begun(run)
      yield* two.sessions.open("s")
      yield* two.logs.open(run, "late")
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
      yield* two.logs.end(run)
      assert.deepStrictEqual(yield* one.logs.read(run), ["1"])
      assert.deepStrictEqual(yield* one.logs.keys("s"), [])
      assert.isUndefined(yield* one.logs.find("new"))
    }))

  test("lets the owner of a session alone write, and each process read", (url) =>
    Effect.gen(function* () {
      const [one, two] = [yield* processOf(url), yield* processOf(url)]
      yield* Effect.scoped(one.sessions.create({ sessionId: "s" }))
      assert.strictEqual(yield* reasonOf(one.logs.open(run)), "taken")
      const scope = yield* Scope.make()
      yield* Scope.provide(one.sessions.open("s"), scope)
      yield* one.logs.open(run, "1")
      assert.strictEqual(yield* reasonOf(two.logs.open(run)), "taken")
      assert.strictEqual(yield* reasonOf(two.logs.addKey("s", "k")), "taken")
      assert.deepStrictEqual(yield* two.logs.read(run), ["1"])
      yield* two.logs.unpark("r")
      // The process has let go of the session.
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(yield* reasonOf(one.logs.end(run)), "taken")
      yield* two.sessions.open("s")
      yield* two.logs.open(run)
      yield* two.logs.end(run)
      assert.isDefined((yield* one.logs.find("r"))?.ended)
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
              const session = yield* sessions.open("s")
              yield* logs.open(run)
              let next = (yield* linesOf(sessions)).length
              for (let n = 0; n < 4; n++)
                yield* session.log([{ _tag: "Logged", runId: "r", text: String(++next) }])
            })
            yield* Effect.ignore(Effect.scoped(turn))
          }
        })
      yield* Effect.forEach(processes, (one) => worker(one, 15), { concurrency: "unbounded" })
      const lines = yield* linesOf((processes[0] ?? assert.fail()).sessions)
      assert.isAbove(lines.length, 3)
      assert.deepStrictEqual(
        lines,
        lines.map((_, index) => String(index + 1))
      )
    }))
})
