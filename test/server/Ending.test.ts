import { assert, describe, it } from "@effect/vitest"
import type { AgentEvent } from "effect-agent"
import { RunLogStore, Runs } from "effect-agent/server"
import { MemorySessionStore, SessionStore } from "effect-agent/sessions"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Completion } from "../../src/runs/internal/Completion.ts"
import * as Ending from "../../src/runs/internal/Ending.ts"
import * as LogLine from "../../src/runs/internal/LogLine.ts"
import { LogProgress } from "../../src/runs/internal/RunProgress.ts"
import * as LogEntry from "../../src/runs/LogEntry.ts"
import { layer } from "./host.ts"

const of = (runId: string, seq: number, timestamp: number) => ({ runId, seq, timestamp })

const start = (runId: string, timestamp: number): AgentEvent.AgentEvent => ({
  ...of(runId, 1, timestamp),
  _tag: "RunStart",
  v: 2,
  prompts: [],
  options: { model: "m" },
  model: "m",
  continued: false
})

const called = (runId: string, seq: number, timestamp: number): ReadonlyArray<AgentEvent.AgentEvent> => [
  {
    ...of(runId, seq, timestamp),
    _tag: "ToolExecutionStart",
    toolCallId: `call of ${runId}`,
    toolName: "t",
    params: {}
  },
  {
    ...of(runId, seq + 1, timestamp + 1),
    _tag: "ToolInvoked",
    toolCallId: `call of ${runId}`,
    toolName: "t",
    params: {},
    modified: false,
    approved: true
  }
]

/** A run whose call has another run inside of it, with a call of its own. */
const events: ReadonlyArray<AgentEvent.AgentEvent> = [
  start("outer", 1000),
  ...called("outer", 2, 1010),
  start("inner", 1020),
  ...called("inner", 2, 1030)
]

const inOrder = (events: ReadonlyArray<AgentEvent.AgentEvent>) => {
  const last = new Map<string, AgentEvent.AgentEvent>()
  for (const event of events) {
    const before = last.get(event.runId)
    if (before !== undefined) {
      assert.isAbove(event.seq, before.seq, `the number of ${event._tag}`)
      assert.isAtLeast(event.timestamp, before.timestamp, `the time of ${event._tag}`)
    }
    last.set(event.runId, event)
  }
}

describe("the end of a run that lost its process", () => {
  for (const now of [2000, 500])
    it(`has numbers and times behind those of each run, by a clock at ${now}`, () => {
      const end = Ending.of({ runId: "outer" }, events, { status: "failed", error: Ending.processEnded }, now)
      assert.deepStrictEqual(
        end.map(({ _tag, runId }) => `${_tag} of ${runId}`),
        ["ToolExecutionEnd of inner", "ToolExecutionEnd of outer", "RunError of outer", "RunEnd of outer"]
      )
      inOrder([...events, ...end])
      const last = end.at(-1)
      assert.isTrue(last?._tag === "RunEnd" && last.durationMs >= 0)
    })

  it("has no member that the log loses", () => {
    const progress = new LogProgress(events)
    const completion = new Completion(progress, 2000)
    const outer = progress.runs.get("outer")
    if (outer !== undefined) completion.endRun(outer, { status: "cancelled" })
    const ended = Ending.of({ runId: "outer" }, events, { status: "cancelled" }, 2000)
    assert.isNotEmpty(completion.added)
    for (const event of [...ended, ...completion.added])
      assert.deepStrictEqual(LogEntry.eventOf(JSON.parse(JSON.stringify(event))), event)
  })

  it.effect("has numbers behind those of deltas that watchers have seen and no log keeps", () =>
    Effect.gen(function* () {
      const sessions = yield* SessionStore.SessionStore
      yield* Effect.scoped(sessions.create({ sessionId: "s" }))
      const logs = yield* RunLogStore.RunLogStore
      const run = { runId: "outer", sessionId: "s" }
      const message: AgentEvent.AgentEvent = {
        ...of("outer", 2, 1010),
        _tag: "MessageStart",
        messageId: "m",
        role: "assistant"
      }
      yield* Effect.scoped(
        Effect.flatMap(logs.open(run), (append) =>
          append([
            LogLine.run("outer", "s", 1000),
            ...[start("outer", 1000), message].map((event, index) =>
              LogLine.event(index + 1, JSON.stringify(event))
            ),
            LogLine.reserved(1024)
          ])
        )
      )
      yield* TestClock.setTime(900)
      // Its session is gone.
      yield* sessions.delete("s")
      const places = Layer.merge(
        Layer.succeed(SessionStore.SessionStore, sessions),
        Layer.succeed(RunLogStore.RunLogStore, logs)
      )
      yield* Effect.provide(Runs.Runs, layer([], {}, places))
      const { entries } = LogLine.read(yield* logs.read(run))
      const all = entries.flatMap(({ event }) => event ?? [])
      assert.deepStrictEqual(
        all.slice(2).map(({ _tag }) => _tag),
        ["MessageRetracted", "RunError", "RunEnd"]
      )
      inOrder(all)
      // A watcher may have seen up to 1022 deltas behind the start of the message.
      assert.isAbove(all[2]?.seq ?? 0, 1024)
    }).pipe(Effect.provide([RunLogStore.layerMemory, MemorySessionStore.layer()]))
  )
})
