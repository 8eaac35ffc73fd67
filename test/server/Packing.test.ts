import { assert, describe, it } from "@effect/vitest"
import { Message } from "effect-agent"
import type { SessionEntry, SessionStore } from "effect-agent/sessions"
import { unpacked } from "../../src/runs/internal/LogLine.ts"

const logged = (line: object): SessionStore.Logged => ({
  _tag: "Logged",
  runId: "r",
  text: JSON.stringify(line)
})
const call = { runId: "r", toolCallId: "a" }
const line = (position: number) =>
  logged({ type: "event", position, event: { _tag: "ToolExecutionEnd", ...call } })
const output = { content: [{ type: "text", text: "done" }] } as const
const entry: SessionEntry.SessionEntry = {
  v: 1,
  id: "e",
  parentId: null,
  timestamp: 0,
  type: "custom",
  kind: "tool",
  data: {
    phase: "end",
    ...call,
    toolName: "look",
    output,
    isError: false,
    outcome: "success",
    durationMs: 1
  }
}
const go = Message.user("Go")
const message: SessionEntry.SessionEntry = {
  v: 1,
  id: "m",
  parentId: null,
  timestamp: 0,
  type: "message",
  message: go
}

describe("the events of a log in its session", () => {
  it("get the texts of the entries before them, and a start those of its prompts", () => {
    const start = logged({
      type: "event",
      position: 1,
      event: { _tag: "RunStart", runId: "r", promptIds: [go.id] }
    })
    const read = unpacked([start, entry, line(2), message])
    assert.deepInclude(read[0], { event: { _tag: "RunStart", runId: "r", prompts: [go] } })
    assert.deepInclude(read[1], { event: { _tag: "ToolExecutionEnd", ...call, result: output } })
  })

  it("count for nothing without the entry, also when the run has continued", () => {
    const continued = logged({ type: "continued", at: 0, countedMs: 0 })
    const read = unpacked([line(1), continued, entry, line(2)])
    assert.deepStrictEqual(read, [
      { type: "continued", at: 0, countedMs: 0 },
      { type: "event", position: 2, event: { _tag: "ToolExecutionEnd", ...call, result: output } }
    ])
  })

  it("begin with the last start: a crash cut the write of one before it", () => {
    const start = (position: number) =>
      logged({ type: "event", position, event: { _tag: "RunStart", runId: "r", promptIds: [go.id] } })
    const turn = logged({ type: "event", position: 2, event: { _tag: "TurnStart", runId: "r" } })
    assert.deepStrictEqual(unpacked([start(1), turn]), [])
    assert.deepStrictEqual(unpacked([start(1), turn, start(3), message]), [
      { type: "event", position: 3, event: { _tag: "RunStart", runId: "r", prompts: [go] } }
    ])
  })
})
