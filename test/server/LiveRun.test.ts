import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch } from "effect"
import type { AgentEvent } from "effect-agent"
import { RunLogStore } from "effect-agent/server"
import { LiveRun } from "../../src/runs/internal/LiveRun.ts"

const base = { runId: "r", timestamp: 0, turn: 1 }
const paused: AgentEvent.AgentEvent = { ...base, seq: 1, _tag: "RunPaused" }
const begun: AgentEvent.AgentEvent = { ...base, seq: 2, _tag: "TurnStart" }
const delta: AgentEvent.AgentEvent = {
  ...base,
  seq: 3,
  _tag: "MessageDelta",
  messageId: "m",
  delta: { _tag: "TextDelta", contentIndex: 0, delta: "x" }
}
const nowhere = { record: () => Effect.void, keep: () => Effect.void, write: () => Effect.void }

describe("a run of a process", () => {
  it.effect("shows no delta before the events that are held, or that the store does not have yet", () =>
    Effect.gen(function* () {
      const memory = yield* RunLogStore.RunLogStore
      const isFree = yield* Latch.make()
      const slow: RunLogStore.Service = { ...memory, open: () => Effect.succeed(() => isFree.await) }
      const run = new LiveRun({ runId: "r", sessionId: "s" }, 0, slow, nowhere)
      const kept = yield* Effect.forkChild(run.keep([], [paused]), { startImmediately: true })
      yield* Effect.yieldNow
      assert.isFalse(run.show([delta]))
      yield* isFree.open
      yield* Fiber.join(kept)
      assert.isTrue(run.show([delta]))
      yield* run.keep([], [begun])
      assert.isFalse(run.show([delta]))
      yield* run.keep([], [delta])
      assert.deepStrictEqual(
        run.log.pageAfter(0).map(({ position, tag }) => `${position} ${tag}`),
        ["1 RunPaused", "2 MessageDelta", "3 TurnStart", "4 MessageDelta"]
      )
    }).pipe(Effect.provide(RunLogStore.layerMemory))
  )
})
