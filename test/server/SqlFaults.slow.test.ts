import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Redacted, References, Result, Scope, Stream } from "effect"
import { isSqlError } from "effect/sql/SqlError"
import { Message } from "effect-agent"
import type { SessionStore } from "effect-agent/sessions"
import { said } from "../sessions/records.ts"
import * as Cuts from "../sql/cuts.ts"
import { postgres } from "../sql/databases.ts"
import * as Postgres from "../sql/postgres.ts"
import { processOf } from "./sqlRuns.ts"

type Process = Effect.Success<ReturnType<typeof processOf>>

const logged = (runId: string, text: string): SessionStore.Logged => ({ _tag: "Logged", runId, text })

/** The lines of a log. */
const linesOf = (sessions: SessionStore.Service, sessionId: string, runId: string) =>
  Effect.map(sessions.log(sessionId, runId), (items) =>
    items.flatMap((item) => ("_tag" in item ? [item.text] : []))
  )

/** Appends to a session and to the log of its run, one entry at a time. */
const write = ({ logs, sessions }: Process, name: string, count: number) =>
  Effect.gen(function* () {
    const run = { runId: `run-${name}`, sessionId: name }
    const session = yield* sessions.create({ sessionId: name })
    yield* logs.open(run)
    for (let n = 1; n <= count; n++) {
      // More rows than one statement takes, now and then.
      const lines = n % 40 === 0 ? Array.from({ length: 250 }, (_, index) => `${n}.${index}`) : [`${n}`]
      const [first = "", ...more] = lines
      const rest = more.map((text) => logged(run.runId, text))
      yield* session.log([logged(run.runId, first), ...rest, said(Message.user(`${name} ${n}`))])
      yield* logs.addKey(name, String(n))
    }
    yield* logs.end(run)
  })

/** Each entry is stored once, in order. */
const check = ({ logs, sessions }: Process, name: string, count: number) =>
  Effect.gen(function* () {
    const run = { runId: `run-${name}`, sessionId: name }
    const numbers = Array.from({ length: count }, (_, index) => index + 1)
    const { view } = yield* sessions.read(name)
    assert.deepStrictEqual(
      view.messages.map(Message.textOf),
      numbers.map((n) => `${name} ${n}`)
    )
    assert.deepStrictEqual(
      yield* linesOf(sessions, name, run.runId),
      numbers.flatMap((n) =>
        n % 40 === 0 ? Array.from({ length: 250 }, (_, index) => `${n}.${index}`) : [`${n}`]
      )
    )
    assert.sameMembers(
      [...new Set(yield* logs.keys(name))],
      numbers.map((n) => String(n))
    )
    assert.isDefined((yield* logs.find(run.runId))?.ended)
  })

/** A test in real time that prints no warnings. */
const test = (title: string, check: Effect.Effect<void, unknown, Scope.Scope>) =>
  it.live(title, () => Effect.provideService(check, References.MinimumLogLevel, "Error"), 120_000)

describe.skipIf(!Postgres.isInstalled)("PostgreSQL that fails", () => {
  test(
    "loses no append and doubles none while connections are cut",
    Effect.gen(function* () {
      const server = yield* Postgres.start
      const url = yield* postgres(server)
      for (const seed of [1, 2]) {
        const network = yield* Cuts.to(url, seed)
        const scope = yield* Scope.make()
        const at = yield* Scope.provide(processOf(network.url, "1 minute"), scope)
        network.setShare(0.04)
        const names = [`a${seed}`, `b${seed}`]
        yield* Effect.scoped(
          Effect.forEach(names, (name) => write(at, name, 80), { concurrency: "unbounded", discard: true })
        )
        network.setShare(0)
        assert.isAbove(network.cuts(), 20, `seed ${seed}`)
        yield* Scope.close(scope, Exit.void)
        const reader = yield* processOf(url)
        for (const name of names) yield* check(reader, name, 80)
      }
    })
  )

  test(
    "loses no append and doubles none while it is killed and starts again",
    Effect.gen(function* () {
      const server = yield* Postgres.start
      const url = yield* postgres(server)
      const at = yield* processOf(url, "1 minute")
      const writers = yield* Effect.forkChild(
        Effect.scoped(
          Effect.forEach(["a", "b", "c"], (name) => write(at, name, 400), { concurrency: "unbounded" })
        )
      )
      for (let round = 0; round < 3; round++) {
        yield* Effect.sleep("300 millis")
        yield* server.restart("200 millis")
      }
      yield* Fiber.join(writers)
      const reader = yield* processOf(url)
      for (const name of ["a", "b", "c"]) yield* check(reader, name, 400)
    })
  )

  test(
    "refuses the writes that a process retries when another one has opened the session meanwhile",
    Effect.gen(function* () {
      const server = yield* Postgres.start
      const url = yield* postgres(server)
      const run = { runId: "r", sessionId: "s" }
      const network = yield* Cuts.to(url, 7)
      const [frozen, other] = [yield* processOf(network.url, "1 minute"), yield* processOf(url)]
      const session = yield* frozen.sessions.create({ sessionId: "s" })
      yield* frozen.logs.open(run)
      yield* session.log([logged("r", "1")])
      // It reaches nothing, and tries on.
      network.setShare(1)
      const late = yield* Effect.forkChild(
        Effect.all(
          [
            Effect.flip(frozen.logs.end(run)),
            Effect.flip(session.log([logged("r", "late"), said(Message.user("late"))]))
          ],
          {
            concurrency: "unbounded"
          }
        )
      )
      yield* Effect.repeat(Effect.sleep("20 millis"), { until: () => network.cuts() > 3 })
      const next = yield* other.sessions.open("s")
      yield* other.logs.open(run)
      yield* next.log([logged("r", "2")])
      network.setShare(0)
      const [ofLog, ofSession] = yield* Fiber.join(late)
      assert.strictEqual(ofLog.reason, "taken")
      assert.strictEqual(ofSession.reason._tag, "Locked")
      yield* next.record([said(Message.user("2"))])
      assert.deepStrictEqual(yield* linesOf(other.sessions, "s", "r"), ["1", "2"])
      const text = yield* Stream.mkString(other.sessions.export("s", "jsonl"))
      assert.notInclude(text, "late")
    })
  )

  test(
    "fails at once without patience",
    Effect.gen(function* () {
      const server = yield* Postgres.start
      const network = yield* Cuts.to(Redacted.value(server.url), 1)
      const at = yield* processOf(network.url)
      const session = yield* at.sessions.create({ sessionId: "s" })
      const run = { runId: "r", sessionId: "s" }
      network.setShare(1)
      assert.strictEqual((yield* Effect.flip(at.logs.open(run))).reason, "storage")
      assert.strictEqual((yield* Effect.flip(session.log([logged("r", "1")]))).reason._tag, "StorageFailed")
      network.setShare(0)
      yield* Effect.eventually(session.log([logged("r", "2")]))
    })
  )

  test(
    "makes a defect of a transaction whose connection is lost: once it fails, `SqlTransaction` can go",
    Effect.gen(function* () {
      const server = yield* Postgres.start
      const { sql } = yield* processOf(Redacted.value(server.url))
      const exit = yield* Effect.exit(sql.withTransaction(sql`SELECT pg_terminate_backend(pg_backend_pid())`))
      const defect = Exit.isFailure(exit) ? Cause.findDefect(exit.cause) : undefined
      assert.isTrue(defect !== undefined && Result.isSuccess(defect) && isSqlError(defect.success))
    })
  )
})
