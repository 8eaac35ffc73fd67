import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { AgentEvent, ModelEvent } from "effect-agent"
import { Message } from "effect-agent"
import { Pi } from "effect-agent/compat"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { failed, play, record, takenBack, twoTurns } from "./recording.ts"

const project = (events: ReadonlyArray<AgentEvent.AgentEvent>) => play(Pi.initial, Pi.step, events)

const ofType = <const T extends Pi.Event["type"]>(events: ReadonlyArray<Pi.Event>, type: T) =>
  events.filter((event): event is Extract<Pi.Event, { readonly type: T }> => event.type === type)

/** The order of events, with the role of a message and the kind of an update; updates of one kind in a row are one. */
const order = (events: ReadonlyArray<Pi.Event>) =>
  events.map(label).filter((label, index, all) => !label.endsWith("_delta") || all[index - 1] !== label)

const label = (event: Pi.Event): string => {
  switch (event.type) {
    case "message_start":
    case "message_end":
      return `${event.type} ${event.message.role}`
    case "message_update":
      return event.assistantMessageEvent.type
    case "tool_execution_start":
    case "tool_execution_update":
    case "tool_execution_end":
      return `${event.type} ${event.toolCallId}`
    default:
      return event.type
  }
}

const said = (role: string) => [`message_start ${role}`, `message_end ${role}`]
const text = ["text_start", "text_delta", "text_end"]
const call = ["toolcall_start", "toolcall_delta", "toolcall_end"]
const answer = (...updates: ReadonlyArray<string>) => [
  "message_start assistant",
  ...updates,
  "message_end assistant"
]

describe("Pi", () => {
  it.effect(
    "keeps pi's order: tools side by side, ends as they come, results in the order of the calls (rows 97, 100, 101, 265)",
    () =>
      Effect.gen(function* () {
        const events = project(
          yield* record([
            ScriptedProvider.turn(
              Step.toolCall("nope", {}, { id: "1" }),
              Step.toolCall("add", { a: 1, b: 2 }, { id: "2" }),
              Step.finish("toolUse")
            ),
            ScriptedProvider.text("3")
          ])
        )
        assert.deepStrictEqual(order(events), [
          "agent_start",
          "turn_start",
          ...said("user"),
          ...answer(...call, ...call),
          "tool_execution_start 1",
          "tool_execution_end 1",
          "tool_execution_start 2",
          "tool_execution_update 2",
          "tool_execution_end 2",
          ...said("toolResult"),
          ...said("toolResult"),
          "turn_end",
          "turn_start",
          ...answer(...text),
          "turn_end",
          "agent_end"
        ])
      })
  )

  it.effect("keeps pi's order: tools one after another, each with its result", () =>
    Effect.gen(function* () {
      const events = project(
        yield* record(
          [
            ScriptedProvider.toolCalls(
              { name: "moody", params: {}, id: "1" },
              { name: "moody", params: {}, id: "2" }
            ),
            ScriptedProvider.text("I see")
          ],
          { toolExecution: "sequential" }
        )
      )
      assert.deepStrictEqual(
        order(events).slice(4),
        [
          answer(...call, ...call),
          ["tool_execution_start 1", "tool_execution_end 1", ...said("toolResult")],
          ["tool_execution_start 2", "tool_execution_end 2", ...said("toolResult")],
          ["turn_end", "turn_start", ...answer(...text), "turn_end", "agent_end"]
        ].flat()
      )
    })
  )

  it.effect("keeps pi's order: a failed answer ends its turn and the run", () =>
    Effect.gen(function* () {
      const events = project(yield* failed)
      assert.deepStrictEqual(order(events), [
        "agent_start",
        "turn_start",
        ...said("user"),
        ...answer(...text),
        "turn_end",
        "agent_end"
      ])
      const [end] = ofType(events, "turn_end")
      assert.strictEqual(end?.message.stopReason, "error")
      assert.include(end?.message.errorMessage, "busy")
      assert.deepStrictEqual(end?.toolResults, [])
    })
  )

  it.effect("shows the answer so far with each piece of it", () =>
    Effect.gen(function* () {
      const updates = ofType(project(yield* twoTurns), "message_update")
      const deltas = updates.filter(({ assistantMessageEvent: { type } }) => type === "text_delta")
      assert.deepStrictEqual(
        deltas.map(({ message }) => message.content.at(-1)),
        [
          { type: "text", text: "I " },
          { type: "text", text: "I add" },
          { type: "text", text: "5" }
        ]
      )
      const ends = updates.map(({ assistantMessageEvent }) => assistantMessageEvent)
      const [textEnd] = ends.flatMap((event) => (event.type === "text_end" ? [event.content] : []))
      const [callEnd] = ends.flatMap((event) => (event.type === "toolcall_end" ? [event.toolCall] : []))
      assert.strictEqual(textEnd, "I add")
      assert.deepStrictEqual(callEnd, {
        type: "toolCall",
        id: "good",
        name: "add",
        arguments: { a: 2, b: 3 }
      })
      assert.isTrue(updates.every(({ message }) => message.stopReason === "pending" && message.model === "m"))
    })
  )

  it.effect("gives messages in pi's shape, and all of the run at its end", () =>
    Effect.gen(function* () {
      const recorded = yield* twoTurns
      const events = project(recorded)
      const [end] = ofType(events, "agent_end")
      const whole = end?.messages ?? []
      assert.deepStrictEqual(
        whole.map(({ role }) => role),
        ["user", "assistant", ...Array.from({ length: 5 }, () => "toolResult"), "assistant"]
      )
      const first = whole[1]
      assert.deepStrictEqual(first?.role === "assistant" ? first.usage : undefined, {
        input: 5,
        output: 4,
        cacheRead: 3,
        cacheWrite: 2,
        totalTokens: 14,
        cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }
      })
      assert.deepStrictEqual(first?.role === "assistant" ? first.content[0] : undefined, {
        type: "thinking",
        thinking: "Let me see",
        thinkingSignature: "signed"
      })
      assert.deepStrictEqual(
        ofType(events, "message_end").map(({ message }) => message),
        whole
      )
      const [turnEnd] = ofType(events, "turn_end")
      assert.deepStrictEqual<ReadonlyArray<Pi.Message>>(turnEnd?.toolResults ?? [], whole.slice(2, 7))
    })
  )

  it.effect("an answer that was taken back goes on under the same start", () =>
    Effect.gen(function* () {
      const events = project(yield* takenBack)
      assert.deepStrictEqual(order(events).slice(4), [...answer(...text, ...text), "turn_end", "agent_end"])
      const [last] = ofType(events, "message_update").slice(-1)
      assert.deepStrictEqual(last?.message.content, [{ type: "text", text: "Hi" }])
    })
  )

  it.effect("starts over with each run", () =>
    Effect.gen(function* () {
      const recorded = yield* failed
      const ends = ofType(project([...recorded, ...recorded]), "agent_end")
      assert.deepStrictEqual(
        ends.map(({ messages }) => messages.length),
        [2, 2]
      )
    })
  )

  it("writes out a signature once, however much is said after it", () => {
    let written = 0
    const opaque = {
      get data() {
        written++
        return "image"
      }
    }
    const base = { runId: "r", seq: 1, timestamp: 0, turn: 1, messageId: "m" }
    const deltas: ReadonlyArray<ModelEvent.ModelEvent> = [
      { _tag: "TextStart", contentIndex: 0 },
      { _tag: "TextEnd", contentIndex: 0, opaque },
      { _tag: "TextStart", contentIndex: 1 },
      ...Array.from({ length: 100 }, () => ({ _tag: "TextDelta", contentIndex: 1, delta: "x" }) as const)
    ]
    const events = project(deltas.map((delta) => ({ _tag: "MessageDelta", ...base, delta }) as const))
    const [last] = ofType(events, "message_update").slice(-1)
    assert.deepStrictEqual(last?.message.content, [
      { type: "text", text: "", textSignature: '{"data":"image"}' },
      { type: "text", text: "x".repeat(100) }
    ])
    assert.strictEqual(written, 1)
  })

  it.effect("keeps the numbers of blocks beside those that pi does not have", () =>
    Effect.gen(function* () {
      const script = ScriptedProvider.turn(
        Step.start,
        Step.hostedTool({ id: "s", name: "web_search", params: {} }),
        Step.source({ sourceType: "url", url: "https://weather.test" }),
        Step.text("Rain"),
        Step.media({ source: { data: "aGk=", mediaType: "image/png" } }),
        Step.finish()
      )
      const events = project(yield* record([script]))
      const updates = ofType(events, "message_update").map(
        ({ assistantMessageEvent }) => assistantMessageEvent
      )
      assert.deepStrictEqual(
        updates.map(({ contentIndex, type }) => [type, contentIndex]),
        text.map((type) => [type, 2])
      )
      const ended = ofType(events, "message_end").at(-1)?.message
      assert.deepStrictEqual(
        ended?.role === "assistant" ? ended.content : undefined,
        ["", "", "Rain", "(media: image/png)"].map((text) => ({ type: "text", text }))
      )
    })
  )

  it.effect("has arguments as far as they came in updates of a run with partialValues (row 58)", () =>
    Effect.gen(function* () {
      const script = [
        ScriptedProvider.turn(
          Step.rawToolCall("add", ['{"a":1', ',"b":', "2}"], { id: "1" }),
          Step.finish("toolUse")
        ),
        ScriptedProvider.text("3")
      ]
      const updates = Effect.fnUntraced(function* (partialValues: boolean) {
        const events = project(yield* record(script, { partialValues }))
        return ofType(events, "message_update").flatMap(({ assistantMessageEvent: update, message }) => {
          const [block] = message.role === "assistant" ? message.content : []
          if (block?.type !== "toolCall") return []
          return [[update.type === "toolcall_delta" ? update.delta : update.type, block.arguments]]
        })
      })
      assert.deepStrictEqual(yield* updates(true), [
        ["toolcall_start", {}],
        ['{"a":1', {}],
        ["", {}],
        [',"b":', {}],
        ["", { a: 1 }],
        ["2}", { a: 1 }],
        ["", { a: 1, b: 2 }],
        ["toolcall_end", { a: 1, b: 2 }]
      ])
      const off = yield* updates(false)
      assert.deepStrictEqual(
        off.map(([update]) => update),
        ["toolcall_start", '{"a":1', ',"b":', "2}", "toolcall_end"]
      )
      assert.deepStrictEqual(off.at(-2), ["2}", {}])
    })
  )

  it("names in words what pi cannot carry", () => {
    const message = Message.user([
      Message.image("aGk=", "image/png"),
      { type: "image", source: { url: "https://example.test/a.png" } },
      { type: "file", source: { fileId: "f1" } }
    ])
    const base = { runId: "r", seq: 1, timestamp: 0, turn: 1 }
    const [start] = project([{ _tag: "MessageEnd", ...base, message }])
    assert.deepStrictEqual(start?.type === "message_start" ? start.message : undefined, {
      role: "user",
      content: [
        { type: "image", data: "aGk=", mimeType: "image/png" },
        { type: "text", text: "(image: https://example.test/a.png)" },
        { type: "text", text: "(file: f1)" }
      ],
      timestamp: message.timestamp
    })
  })
})
