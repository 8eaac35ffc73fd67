import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Array as Arr, Deferred, Effect, Fiber, FileSystem, Stream } from "effect"
import { JsonlRunLogStore, RunLogStore, Runs } from "effect-agent/server"
import {
  JsonlSessionStore,
  MemorySessionStore,
  type SessionStorage,
  SessionStore,
  SqlSessionStore
} from "effect-agent/sessions"
import { Random } from "../../harness/chaos/Random.ts"
import { sqlite } from "../sql/databases.ts"
import { check, foldOf, isDelta, killed, live, shape, texts } from "./continuing.ts"
import { disk, drive, hostOf, Life, processOf, turns, World } from "./killing.ts"
import { processOf as sqlProcessOf } from "./sqlRuns.ts"

describe("a run that survives its process", () => {
  it.effect(
    "reads like a run that was never killed, wherever it is killed",
    () =>
      Effect.gen(function* () {
        const whole = yield* killed([], Effect.succeed(yield* disk))
        const expected = shape(whole.entries)
        const count = whole.writes[0] ?? 0
        assert.isAbove(count, 50)
        for (let kill = 1; kill <= count; kill++) {
          const { entries, label, world } = yield* killed([kill], Effect.succeed(yield* disk))
          assert.isAtMost(world.modelCalls, whole.world.modelCalls + 1, label)
          const unknown = entries.filter(
            ({ event }) => event._tag === "ToolExecutionEnd" && event.outcome === "unknown"
          )
          assert.isAtMost(unknown.length, 2, label)
          assert.deepStrictEqual(texts(foldOf(entries)).length, texts(foldOf(whole.entries)).length, label)
          const end = entries.at(-1)?.event
          const first = whole.entries.at(-1)?.event
          if (end?._tag !== "RunEnd" || first?._tag !== "RunEnd") return assert.fail(label)
          assert.deepStrictEqual(
            [end.turns, end.newMessageIds.length],
            [turns, first.newMessageIds.length],
            label
          )
          if (unknown.length === 0) {
            assert.deepStrictEqual(shape(entries), expected, label)
            assert.deepStrictEqual([end.usage, end.childUsage], [first.usage, first.childUsage], label)
          }
        }
      }),
    600_000
  )

  it.effect(
    "reads like it also when the process that continues it is killed too, wherever the first one was",
    () =>
      Effect.gen(function* () {
        const whole = yield* killed([], Effect.succeed(yield* disk))
        const count = whole.writes[0] ?? 0
        const seed = Number(process.env["SEED"] ?? Math.floor(Math.random() * 2 ** 31))
        const random = new Random(seed)
        // One of three first points, with a second one: one of the first writes of the process that continues it, or any one.
        for (let kill = 1 + random.upTo(2); kill <= count; kill += 3) {
          const again = 1 + random.upTo(random.once(2) ? 8 : count - kill + 8)
          const { entries, label, world } = yield* killed([kill, again], Effect.succeed(yield* disk)).pipe(
            Effect.tapCause(() => Effect.logError(`SEED=${seed}, killed at ${kill} and ${again}`))
          )
          assert.isAtMost(world.modelCalls, whole.world.modelCalls + 2, label)
          const end = entries.at(-1)?.event
          assert.strictEqual(end?._tag === "RunEnd" ? end.turns : 0, turns, label)
        }
      }),
    600_000
  )

  it.effect(
    "reads like it when its host leaves it at any of its events, and another one adopts it",
    () =>
      Effect.gen(function* () {
        const whole = yield* killed([], Effect.succeed(yield* disk))
        const events = whole.entries.filter((entry) => !isDelta(entry)).length
        // One of three events, others each time; a failure names its event.
        for (let at = 1 + Math.floor(Math.random() * 3); at < events; at += 3) {
          const world = new World()
          const places = yield* disk
          const label = `left at event ${at}`
          const seen: Array<Runs.Positioned> = []
          const sent = { steered: false }
          const host = hostOf(world, places)
          const runId = yield* Effect.scoped(
            Effect.gen(function* () {
              const { host: first, runs } = yield* host
              yield* runs.sessions.create({ sessionId: "s" })
              const { runId } = yield* runs.start({ sessionId: "s", prompt: "Go" })
              const adopted = yield* Effect.forkChild(first.adopt({ runId, sessionId: "s" }))
              const leave = Effect.suspend(() =>
                seen.filter((entry) => !isDelta(entry)).length >= at ? Effect.void : Effect.never
              )
              yield* Effect.raceFirst(
                drive(runs, runId, seen, sent),
                Effect.andThen(
                  Effect.repeat(Effect.yieldNow, {
                    until: () => seen.filter((entry) => !isDelta(entry)).length >= at
                  }),
                  leave
                )
              )
              yield* first.leave("s")
              yield* first.leave("s")
              const answer = yield* Fiber.join(adopted)
              assert.isTrue(answer === "left" || seen.at(-1)?.event._tag === "RunEnd", label)
              return runId
            })
          )
          const entries: Array<Runs.Positioned> = []
          yield* Effect.scoped(
            Effect.gen(function* () {
              const { host: second, runs } = yield* host
              const adopted = yield* Effect.forkChild(second.adopt({ runId, sessionId: "s" }), {
                startImmediately: true
              })
              for (let index = 0; index < 100 && second.runs.size === 0; index++) yield* Effect.yieldNow
              yield* drive(runs, runId, entries, sent)
              assert.strictEqual(yield* Fiber.join(adopted), "over", label)
              assert.strictEqual(yield* second.adopt({ runId, sessionId: "s" }), "over", label)
            })
          )
          const stored: Array<Runs.Positioned> = []
          yield* Effect.scoped(Effect.flatMap(host, ({ runs }) => drive(runs, runId, stored, sent)))
          check(label, stored, seen, world)
        }
      }),
    600_000
  )

  it.effect("keeps queued runs, and begins them in their order", () =>
    Effect.gen(function* () {
      const world = new World()
      const places = yield* disk
      const life = new Life(30)
      const sent = { steered: true }
      const ids: Array<string> = []
      const work = Effect.gen(function* () {
        const runs = yield* Runs.Runs
        yield* runs.sessions.create({ sessionId: "s" })
        for (const prompt of ["one", "two", "three"]) {
          const { runId } = yield* runs.start({ sessionId: "s", prompt, when: "queue" })
          ids.push(runId)
        }
        return yield* Effect.never
      }).pipe(Effect.provide(processOf(world, places, life)))
      yield* Effect.forkDetach(work)
      yield* Deferred.await(life.over)
      for (let index = 0; index < 50; index++) yield* Effect.yieldNow
      yield* life.bury
      assert.lengthOf(ids, 3)
      yield* Effect.gen(function* () {
        const runs = yield* Runs.Runs
        for (const runId of ids) yield* drive(runs, runId, [], sent)
        const all = yield* runs.list("s")
        assert.deepStrictEqual(
          all.map(({ runId, status }) => [runId, status]),
          ids.map((runId) => [runId, "completed"])
        )
      }).pipe(Effect.provide(processOf(world, places, new Life(Infinity))))
      const { view } = yield* places.sessions.read("s")
      const prompts = view.messages.flatMap((message) => (message.role === "user" ? [message.content] : []))
      assert.deepStrictEqual(
        prompts.map((content) => JSON.stringify(content).match(/one|two|three/)?.[0]),
        ["one", "two", "three"]
      )
    })
  )

  it.effect("counts its turns and tokens over all of its processes", () =>
    Effect.gen(function* () {
      const bounds = [
        { limits: { maxTurns: 4 }, limit: "maxTurns", turns: 4 },
        // Each answer has 15 tokens.
        { limits: { maxTotalTokens: 40 }, limit: "maxTotalTokens", turns: 3 }
      ]
      for (const { limit, limits, turns } of bounds) {
        for (let kill = 8; kill < 60; kill += 5) {
          const world = new World()
          const places = yield* disk
          const given = { seen: [], sent: { steered: true }, limits }
          yield* live(world, places, kill, given)
          const { runId = "" } = yield* live(world, places, Infinity, given)
          const logs = yield* Effect.provide(Runs.Runs, processOf(world, places, new Life(Infinity)))
          const run = yield* logs.get(runId)
          const error = run.error?._tag === "LimitExceeded" ? run.error.limit : run.error?._tag
          assert.deepStrictEqual(
            [run.status, error, run.turns],
            ["failed", limit, turns],
            `killed at ${kill}`
          )
        }
      }
    })
  )

  it.effect("waits in a host that is full until it is adopted", () =>
    Effect.gen(function* () {
      const world = new World()
      const { host, runs } = yield* hostOf(world, yield* disk, () => true)
      yield* runs.sessions.create({ sessionId: "s" })
      const first = yield* runs.start({ sessionId: "s", prompt: "Go" })
      const second = yield* runs.start({ sessionId: "s", prompt: "Go on", when: "queue" })
      assert.deepStrictEqual([first.status, second.status], ["queued", "queued"])
      const drives = [first, second].map(({ runId }) =>
        Effect.all([host.adopt({ runId, sessionId: "s" }), drive(runs, runId, [], { steered: true })], {
          concurrency: 2
        })
      )
      assert.strictEqual(world.modelCalls, 0)
      for (const drive of drives) assert.strictEqual((yield* drive)[0], "over")
    }).pipe(Effect.scoped)
  )

  it.live(
    "reads like it in files, and in a database that other processes take over",
    () =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        for (const kill of [7, 23, 40, 61, 90, 130]) {
          const directory = yield* files.makeTempDirectoryScoped()
          const inFiles = Effect.gen(function* () {
            const sessions = SessionStore.make(yield* JsonlSessionStore.storage({ directory }))
            const logs = yield* Effect.provide(
              RunLogStore.RunLogStore,
              JsonlRunLogStore.layer({ directory: `${directory}/logs` })
            )
            return { sessions, logs }
          })
          const inFilesKilled = yield* killed([kill, 5], inFiles)
          const inDatabaseKilled = yield* killed([kill, 5], sqlProcessOf(`sqlite:${directory}/runs.db`))
          for (const { entries, label } of [inFilesKilled, inDatabaseKilled]) {
            const end = entries.at(-1)?.event
            assert.strictEqual(end?._tag === "RunEnd" ? end.turns : 0, turns, label)
          }
        }
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    120_000
  )

  it.live(
    "reads like it where the first process had the tables of the version before",
    () =>
      Effect.gen(function* () {
        for (const kill of [9, 20, 33, 47, 64, 90, 118]) {
          const url = yield* sqlite
          const before = MemorySessionStore.storage()
          const { logs } = yield* disk
          let processes = 0
          const stores = Effect.gen(function* () {
            if (processes++ === 0) return { logs, sessions: SessionStore.make(before) }
            const at = yield* sqlProcessOf(url)
            if (processes === 2) yield* copied(before, logs, at)
            return at
          })
          const { entries, label } = yield* killed([kill, 6], stores)
          const end = entries.at(-1)?.event
          assert.strictEqual(end?._tag === "RunEnd" ? end.turns : 0, turns, label)
        }
      }).pipe(Effect.scoped),
    120_000
  )
})

/** Copies a session and its runs into a database, as the version before had them there. */
const copied = Effect.fnUntraced(function* (
  before: SessionStorage.SessionStorage,
  logs: RunLogStore.Service,
  { context, sql }: Effect.Success<ReturnType<typeof sqlProcessOf>>
) {
  const lines = (yield* Stream.runCollect(before.lines("s"))).flat().map(String)
  const storage = yield* Effect.provideContext(SqlSessionStore.storage, context)
  const types = lines.map((text) => ({ type: String(JSON.parse(text).type), text }))
  yield* Effect.scoped(
    Effect.flatMap(storage.create({ sessionId: "s", cwd: "", created: 0 }), ({ append }) =>
      Arr.isReadonlyArrayNonEmpty(types) ? append(types) : Effect.void
    )
  )
  for (const { attempts, created, runId } of yield* logs.list("s")) {
    const row = { run_id: runId, session_id: "s", created, fence: 1, attempts }
    const [made] = yield* sql`INSERT INTO effect_agent_run ${sql.insert(row)} RETURNING id`
    const rows = (yield* logs.read({ runId, sessionId: "s" })).map((text, line) => ({
      run: Number(made?.["id"]),
      line: line + 1,
      continues: 0,
      text
    }))
    for (const row of rows) yield* sql`INSERT INTO effect_agent_run_line ${sql.insert(row)}`
  }
  for (const text of yield* logs.keys("s"))
    yield* sql`INSERT INTO effect_agent_run_key ${sql.insert({ session_id: "s", created: Date.now(), text })}`
})
