import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Karl } from "effect-agent/compat"
import { failed, play, twoTurns } from "./recording.ts"

const ofType = <const T extends Karl.Event["type"]>(events: ReadonlyArray<Karl.Event>, type: T) =>
  events.filter((event): event is Extract<Karl.Event, { readonly type: T }> => event.type === type)

describe("Karl", () => {
  it.effect("says what Karl says, in Karl's order (rows 57, 264, 265)", () =>
    Effect.gen(function* () {
      const events = play(Karl.initial, Karl.step, yield* twoTurns)
      const call = ["tool_call_start", "tool_call_end"]
      const execution = ["tool_execution_start", "tool_execution_end"]
      assert.deepStrictEqual(
        events.map(({ type }) => type),
        [
          "stream_start",
          "thinking_delta",
          "thinking_delta",
          "text_delta",
          "text_delta",
          ...call,
          ...call,
          ...call,
          ...call,
          ...call,
          "thinking_end",
          "text_end",
          "message_end",
          ...execution,
          ...execution,
          "stream_start",
          "text_delta",
          "text_end",
          "message_end",
          "turn_end"
        ]
      )
    })
  )

  it.effect("ends the text once per call, whole", () =>
    Effect.gen(function* () {
      const events = play(Karl.initial, Karl.step, yield* twoTurns)
      assert.deepStrictEqual(
        ofType(events, "text_end").map(({ text }) => text),
        ["I add", "5"]
      )
      assert.deepStrictEqual(ofType(events, "thinking_end"), [
        { type: "thinking_end", thinking: "Let me see" }
      ])
    })
  )

  it.effect("gives a call whole, with the text of its arguments", () =>
    Effect.gen(function* () {
      const [start] = ofType(play(Karl.initial, Karl.step, yield* twoTurns), "tool_call_start")
      assert.deepStrictEqual(start?.toolCall, {
        id: "good",
        type: "function",
        function: { name: "add", arguments: '{"a":2,"b":3}' }
      })
    })
  )

  it.effect("tells only of tools that ran", () =>
    Effect.gen(function* () {
      const events = play(Karl.initial, Karl.step, yield* twoTurns)
      assert.deepStrictEqual(
        ofType(events, "tool_execution_start").map(({ args, toolCallId }) => [toolCallId, args]),
        [
          ["good", { a: 2, b: 3 }],
          ["failing", {}]
        ]
      )
      assert.deepStrictEqual(
        ofType(events, "tool_execution_end").map(({ isError, result }) => [isError, result.content]),
        [
          [false, [{ type: "text", text: "5" }]],
          [true, [{ type: "text", text: "not today" }]]
        ]
      )
    })
  )

  it.effect("ends the turn once, with the last answer and the usage of the run (row 19)", () =>
    Effect.gen(function* () {
      const events = play(Karl.initial, Karl.step, yield* twoTurns)
      assert.deepStrictEqual(ofType(events, "turn_end"), [
        {
          type: "turn_end",
          message: { role: "assistant", content: "5" },
          usage: { input: 30, output: 5, total: 35 }
        }
      ])
      assert.deepStrictEqual(
        ofType(events, "message_end").map(({ usage }) => usage?.total),
        [14, 21]
      )
    })
  )

  it.effect("a failed run ends with its error, and no turn (row 247)", () =>
    Effect.gen(function* () {
      const events = play(Karl.initial, Karl.step, yield* failed)
      assert.strictEqual(events.at(-1)?.type, "error")
      assert.instanceOf(ofType(events, "error")[0]?.error, Error)
      assert.strictEqual(ofType(events, "turn_end").length, 0)
    })
  )

  it.effect("projects a stream as it projects its events (row 264)", () =>
    Effect.gen(function* () {
      const events = yield* twoTurns
      const streamed = yield* Stream.runCollect(Karl.project(Stream.fromIterable(events)))
      assert.deepStrictEqual(streamed, play(Karl.initial, Karl.step, events))
    })
  )
})
