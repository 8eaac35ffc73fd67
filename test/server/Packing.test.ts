import { assert, describe, it } from "@effect/vitest"
import { Message } from "effect-agent"
import type { SessionEntry, SessionStore } from "effect-agent/sessions"
import { unpacked } from "../../src/runs/internal/Packing.ts"

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
  it("get the texts of the entries directly behind them", () => {
    const start = logged({
      type: "event",
      position: 1,
      event: { _tag: "RunStart", runId: "r", promptIds: [go.id] }
    })
    const read = unpacked([start, line(2), entry, message])
    assert.deepInclude(read[0], { event: { _tag: "RunStart", runId: "r", prompts: [go] } })
    assert.deepInclude(read[1], { event: { _tag: "ToolExecutionEnd", ...call, result: output } })
  })

  it("count for nothing where a crash cut the entry, also when the run has continued", () => {
    const continued = logged({ type: "continued", at: 0, countedMs: 0 })
    const read = unpacked([line(1), continued, line(2), entry])
    assert.deepStrictEqual(read, [
      { type: "continued", at: 0, countedMs: 0 },
      { type: "event", position: 2, event: { _tag: "ToolExecutionEnd", ...call, result: output } }
    ])
  })
})
