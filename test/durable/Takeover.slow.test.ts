import { assert, describe, it } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Effect, Exit, Fiber, Layer, Redacted, Scope, Stream } from "effect"
import { DurableRuns } from "effect-agent/durable"
import * as NodeCluster from "effect-agent/node/NodeCluster"
import { Runs, SqlRunLogStore } from "effect-agent/server"
import { SessionStore, SqlSessionStore } from "effect-agent/sessions"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { afterAll, beforeAll } from "vitest"
import * as Bundled from "../../harness/chaos/Bundled.ts"
import type { Make } from "../sql/databases.ts"
import * as Postgres from "../sql/postgres.ts"
import { onServer } from "../sql/suites.ts"
import { freePort } from "./ports.ts"
import { calls } from "./agentWorker.ts"

const lease = 5000

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-agent-durable-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** The workers' program as one file, which starts sooner than its sources. */
let script = ""

/** Starts a worker, and succeeds when it is ready. `said`: its lines. `held`: the step of the third turn that waits for the file EFFECTS.go. */
const worker = (url: Redacted.Redacted, effects: string, said: Array<string> = [], held = "") =>
  Effect.gen(function* () {
    const port = yield* freePort
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, [script, Redacted.value(url), String(port), String(lease), effects, held], {
          stdio: ["ignore", "pipe", "inherit"]
        })
      ),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    const lines = createInterface(child.stdout).on("line", (line) => said.push(line))
    yield* Effect.promise(() => once(lines, "line"))
    return child
  })

const outside = (url: Redacted.Redacted) =>
  DurableRuns.layer().pipe(
    Layer.provideMerge(NodeCluster.client({ lease })),
    Layer.provideMerge(SqlRunLogStore.layer()),
    Layer.provideMerge(SqlSessionStore.layer()),
    Layer.provide(PgClient.layer({ url, maxConnections: 4, startupParameters: { timezone: "UTC" } }))
  )

/** The calls of the tool, of which each names its number and its process. */
const effectsIn = (file: string) =>
  readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line) => (line === "" ? [] : [line.split(" ").map(Number)]))

type Fault = (owner: ChildProcess) => Effect.Effect<void>

const kill: Fault = (owner) =>
  Effect.promise(async () => {
    const end = once(owner, "exit")
    owner.kill("SIGKILL")
    await end
  })

const stop: Fault = (owner) =>
  Effect.promise(async () => {
    const end = once(owner, "exit")
    owner.kill("SIGTERM")
    await end
  })

const freeze: Fault = (owner) => Effect.sync(() => void owner.kill("SIGSTOP"))

/** The longest gap in milliseconds between two events of a run whose worker meets a fault in the middle. */
const gapAt = (make: Make, fault: Fault, thaw: boolean) =>
  Effect.gen(function* () {
    const url = Redacted.make(yield* make)
    const effects = join(yield* folder, "effects")
    const workers = yield* Effect.all([worker(url, effects), worker(url, effects)], { concurrency: 2 })
    const context = yield* Layer.build(outside(url))
    return yield* Effect.gen(function* () {
      const runs = yield* Runs.Runs
      const sessions = yield* SessionStore.SessionStore
      yield* Effect.scoped(sessions.create({ sessionId: "s" }))
      const { runId } = yield* runs.start({ sessionId: "s", prompt: "go" })
      const seen: Array<{
        readonly position: number
        readonly seq: number
        readonly tag: string
        readonly time: number
      }> = []
      const watching = yield* Effect.forkChild(
        Stream.runForEach(yield* runs.events(runId, 0), ({ event, position }) =>
          Effect.sync(
            () => void seen.push({ position, seq: event.seq, tag: event._tag, time: performance.now() })
          )
        )
      )
      yield* Effect.repeat(Effect.sleep(20), { until: () => Effect.sync(() => seen.length > 30) })
      const [, pid] = effectsIn(effects).at(-1) ?? []
      const owner = workers.find((one) => one.pid === pid)
      assert.isDefined(owner)
      if (owner !== undefined) yield* fault(owner)
      yield* Fiber.join(watching)
      if (thaw) owner?.kill("SIGCONT")
      if (thaw) yield* Effect.sleep(1000)
      const isDone = Effect.sync(() => effectsIn(effects).length >= calls)
      yield* Effect.repeat(Effect.sleep(100), { until: () => isDone }).pipe(
        Effect.timeoutOption("10 seconds")
      )
      // Each event of the log once and in order. Deltas that a watcher did not see in time are part of their message.
      const isKept = ({ tag }: { readonly tag: string }) => tag !== "MessageDelta"
      const kept = seen.filter(isKept).map(({ position }) => position)
      const log = yield* Stream.runCollect(yield* runs.events(runId, 0))
      assert.deepStrictEqual(
        log.map(({ position }) => position),
        kept
      )
      // A worker that ends lets the calls that go on end.
      const isUnknown = ({ event }: Runs.Positioned) =>
        event._tag === "ToolExecutionEnd" && event.outcome === "unknown"
      if (fault === stop) assert.isFalse(log.some(isUnknown))
      assert.isTrue(seen.every(({ seq }, index) => seq > (seen[index - 1]?.seq ?? 0)))
      assert.isTrue(seen.every(({ position }, index) => position > (seen[index - 1]?.position ?? 0)))
      // No call of the tool was repeated: the model asks for the next one.
      const counted = effectsIn(effects).map(([n = -1]) => n)
      // A frozen worker may have stored that a call begins: it does the call when it wakes up, and no other worker does.
      assert.deepStrictEqual(
        counted.sort((left, right) => left - right),
        Array.from({ length: calls }, (_, index) => index)
      )
      assert.deepInclude(yield* runs.get(runId), { status: "completed", turns: calls + 1 })
      return Math.max(...seen.map(({ time }, index) => time - (seen[index - 1]?.time ?? time)))
    }).pipe(Effect.provideContext(context))
  })

/** The rows of all sessions and logs. */
const rowsIn = (url: Redacted.Redacted) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    return [
      yield* sql`SELECT session, position, text FROM effect_agent_session_entry ORDER BY session, position`
        .values,
      yield* sql`SELECT run, line, text FROM effect_agent_run_line ORDER BY run, line`.values
    ]
  }).pipe(Effect.provide(PgClient.layer({ url })))

/** What a worker says and does when it wakes, which was frozen at an event of its run until another one had ended the run. */
const woken = (make: Make, at: "ToolInvoked" | "ModelCallStart") =>
  Effect.gen(function* () {
    const url = Redacted.make(yield* make)
    const effects = join(yield* folder, "effects")
    const said: ReadonlyArray<Array<string>> = [[], []]
    const workers = yield* Effect.all(
      said.map((lines) => worker(url, effects, lines, at)),
      { concurrency: 2 }
    )
    const context = yield* Layer.build(outside(url))
    return yield* Effect.gen(function* () {
      const runs = yield* Runs.Runs
      const sessions = yield* SessionStore.SessionStore
      yield* Effect.scoped(sessions.create({ sessionId: "s" }))
      const { runId } = yield* runs.start({ sessionId: "s", prompt: "go" })
      const seen: Array<Runs.Positioned> = []
      let owner = -1
      yield* Stream.runForEach(yield* runs.events(runId, 0), (entry) =>
        Effect.sync(() => {
          seen.push(entry)
          if (owner >= 0 || entry.event._tag !== at || entry.event.turn !== 3) return
          owner = workers.findIndex(({ pid }) => pid === effectsIn(effects).at(-1)?.[1])
          workers[owner]?.kill("SIGSTOP")
          // It is frozen in the middle of the step that the event begins. The other worker, which does the step again, does not wait.
          writeFileSync(`${effects}.go`, "")
        })
      )
      const rows = yield* rowsIn(url)
      const done = effectsIn(effects)
      const lines = said[owner] ?? assert.fail("no worker was frozen")
      const before = lines.length
      workers[owner]?.kill("SIGCONT")
      const isRefused = Effect.sync(() => lines.slice(before).some((line) => line.startsWith("refused")))
      yield* Effect.timeoutOption(Effect.repeat(Effect.sleep(20), { until: () => isRefused }), 5000)
      yield* Effect.sleep(1000)
      // One history: the database has what it had, and all watchers see that.
      assert.deepStrictEqual(yield* rowsIn(url), rows)
      const isKept = ({ event }: Runs.Positioned) => event._tag !== "MessageDelta"
      const log = yield* Stream.runCollect(yield* runs.events(runId, 0))
      assert.deepStrictEqual(log.filter(isKept), seen.filter(isKept))
      assert.deepInclude(yield* runs.get(runId), { status: "completed", turns: calls + 1 })
      // The run has ended here: no tool runs, and the model is not asked.
      assert.deepStrictEqual(effectsIn(effects), done)
      const after = lines.slice(before)
      assert.notInclude(after, "model")
      // Nothing is refused where the cluster, which notices the lost lease, stops the run before it writes.
      return after.find((line) => line.startsWith("refused"))
    }).pipe(Effect.provideContext(context))
  })

describe.skipIf(!Postgres.isInstalled)("taking over", () => {
  const scope = Scope.makeUnsafe()
  beforeAll(async () => {
    const bundle = Effect.flatMap(Bundled.folder("takeover"), (home) =>
      Bundled.make("../../test/durable/agentWorker.ts", home)
    )
    script = await Effect.runPromise(Scope.provide(bundle, scope))
  }, 60_000)
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  onServer((make) => {
    it.live(
      "the run of a killed worker goes on within two seconds, and its watcher sees each event once",
      () => Effect.map(gapAt(make, kill, false), (gap) => assert.isBelow(gap, 2000)),
      60_000
    )

    it.live(
      "the run of a worker that ends goes on at once",
      () => Effect.map(gapAt(make, stop, false), (gap) => assert.isBelow(gap, 2000)),
      60_000
    )

    it.live(
      "the run of a frozen worker goes on within two leases, and nothing that it does later counts",
      () => Effect.map(gapAt(make, freeze, true), (gap) => assert.isBelow(gap, 2 * lease)),
      60_000
    )

    it.live(
      "a frozen worker that wakes in a call of a tool writes nothing to the session, and its run ends there",
      () =>
        Effect.map(woken(make, "ToolInvoked"), (said) =>
          assert.include(["refused session Locked", undefined], said)
        ),
      60_000
    )

    it.live(
      "a frozen worker that wakes in an answer of the model writes nothing to the log, and its run ends there",
      () =>
        Effect.map(woken(make, "ModelCallStart"), (said) =>
          assert.include(["refused log Locked", "refused session Locked", undefined], said)
        ),
      60_000
    )
  })
})
