import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Fiber, Logger, Ref, References, Stream } from "effect"
import { RunLogStore } from "effect-agent/server"
import { MemorySessionStore, SessionStore } from "effect-agent/sessions"
import { TestClock } from "effect/testing"
import { live } from "../../src/durable/internal/Calls.ts"

const sessions = SessionStore.make(MemorySessionStore.storage())

describe("a watcher of a run of a cluster", () => {
  it.effect("gets the end of the run although the store is away when the run is over", () =>
    Effect.gen(function* () {
      const logs = yield* RunLogStore.RunLogStore
      const run = { runId: "r", sessionId: "s" }
      const event = JSON.stringify({ type: "event", position: 1, event: { _tag: "RunEnd" } })
      yield* Effect.scoped(Effect.flatMap(logs.open(run), (append) => append([event])))
      yield* logs.end(run)
      let faults = 1
      const read: RunLogStore.Service["read"] = (run) =>
        Effect.suspend(() =>
          faults-- > 0 ? new RunLogStore.RunLogError({ detail: "the database is away" }) : logs.read(run)
        )
      // The worker of the run is gone.
      const pages = live({ logs: { ...logs, read }, sessions }, () => Stream.empty, run, 0)
      const seen = yield* Effect.forkChild(Stream.runCollect(pages))
      yield* TestClock.adjust("1 second")
      const tags = (yield* Fiber.join(seen)).flatMap((page) => page.map(({ tag }) => tag))
      assert.deepStrictEqual(tags, ["RunEnd"])
    }).pipe(Effect.provide(RunLogStore.layerMemory))
  )

  /** A watcher of a run that has not ended, at a worker. Succeeds with how often it has looked for the run. */
  const watching = Effect.fnUntraced(function* (
    worker: (after: number) => Stream.Stream<ReadonlyArray<{ position: number; tag: string; frame: string }>>
  ) {
    const logs = yield* RunLogStore.RunLogStore
    const run = { runId: "r", sessionId: "s" }
    yield* Effect.scoped(logs.open(run))
    const looks = yield* Ref.make(0)
    const find = (runId: string) =>
      Effect.andThen(
        Ref.update(looks, (count) => count + 1),
        logs.find(runId)
      )
    const pages = live({ logs: { ...logs, find }, sessions }, worker, run, 0)
    yield* Effect.forkChild(Stream.runDrain(pages), { startImmediately: true })
    return { looks: Ref.getAndSet(looks, 0) }
  })

  it.effect("looks for the run less often while no worker answers, and soon again after an entry", () =>
    Effect.gen(function* () {
      let position = 0
      let isThere = false
      const { looks } = yield* watching(() =>
        isThere ? Stream.make([{ position: ++position, tag: "TurnStart", frame: "" }]) : Stream.empty
      )
      yield* TestClock.adjust("1 minute")
      assert.isAtMost(yield* looks, 130)
      isThere = true
      yield* TestClock.adjust("500 millis")
      isThere = false
      yield* looks
      yield* TestClock.adjust("150 millis")
      assert.strictEqual(yield* looks, 2)
    }).pipe(Effect.provide(RunLogStore.layerMemory))
  )

  it.effect("logs a defect of the stream of a worker, and looks for the next worker", () =>
    Effect.gen(function* () {
      const messages: Array<string> = []
      const logger = Logger.make(
        ({ cause, fiber, message }) =>
          void messages.push(
            `${String(message)}: ${Cause.pretty(cause)} ${JSON.stringify(fiber.getRef(References.CurrentLogAnnotations))}`
          )
      )
      const { looks } = yield* Effect.provide(
        watching(() => Stream.die("a bug")),
        Logger.layer([logger])
      )
      yield* Effect.yieldNow
      assert.strictEqual(yield* looks, 1)
      yield* TestClock.adjust("50 millis")
      assert.strictEqual(yield* looks, 1)
      assert.lengthOf(messages, 2)
      assert.match(messages.join(), /The worker of the run has failed.*a bug/)
      assert.lengthOf(
        messages.filter((line) => line.endsWith(JSON.stringify({ runId: "r", sessionId: "s" }))),
        2
      )
    }).pipe(Effect.provide(RunLogStore.layerMemory))
  )
})
