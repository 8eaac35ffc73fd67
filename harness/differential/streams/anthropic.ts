/**
 * Answers of Anthropic's Messages: https://docs.anthropic.com/en/docs/build-with-claude/streaming
 */
import { type Fixture, greeting, named, note, pieces, weather } from "./Fixture.ts"

const begin = (usage: object) => ({
  type: "message_start",
  message: {
    id: "msg_01",
    type: "message",
    role: "assistant",
    model: "claude-sonnet-4-5",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage
  }
})

const tokens = (input: number, cacheRead = 0, cacheWrite = 0) => ({
  input_tokens: input,
  cache_read_input_tokens: cacheRead,
  cache_creation_input_tokens: cacheWrite,
  output_tokens: 1
})

const start = (index: number, block: object) => ({ type: "content_block_start", index, content_block: block })
const delta = (index: number, delta: object) => ({ type: "content_block_delta", index, delta })
const stop = (index: number) => ({ type: "content_block_stop", index })
const ping = { type: "ping" }

const says = (index: number, texts: ReadonlyArray<string>) => [
  start(index, { type: "text", text: "" }),
  ping,
  ...texts.map((text) => delta(index, { type: "text_delta", text })),
  stop(index)
]

const thinks = (index: number, texts: ReadonlyArray<string>) => [
  start(index, { type: "thinking", thinking: "", signature: "" }),
  ...texts.map((thinking) => delta(index, { type: "thinking_delta", thinking })),
  delta(index, { type: "signature_delta", signature: "c2lnbmF0dXJl" }),
  stop(index)
]

const calls = (index: number, id: string, name: string, params: object) => [
  start(index, { type: "tool_use", id, name, input: {} }),
  delta(index, { type: "input_json_delta", partial_json: "" }),
  ...pieces(JSON.stringify(params), 7).map((json) =>
    delta(index, { type: "input_json_delta", partial_json: json })
  ),
  stop(index)
]

const end = (reason: string, output: number) => [
  {
    type: "message_delta",
    delta: { stop_reason: reason, stop_sequence: null },
    usage: { output_tokens: output }
  },
  { type: "message_stop" }
]

export const fixtures: ReadonlyArray<Fixture> = [
  {
    name: "text",
    body: named(begin(tokens(12)), ...says(0, greeting), ...end("end_turn", 9)),
    said: {
      text: greeting.join(""),
      thinking: "",
      calls: [],
      stopReason: "stop",
      usage: { input: 12, output: 9, cacheRead: 0, cacheWrite: 0 }
    }
  },
  {
    name: "thought, text and three calls",
    body: named(
      begin(tokens(102, 100, 28)),
      ...thinks(0, ["They want", " the weather."]),
      ...says(1, ["Let me", " look."]),
      ...calls(2, "toolu_w1", "weather", weather),
      ...calls(3, "toolu_c2", "clock", {}),
      ...calls(4, "toolu_n3", "note", note),
      ...end("tool_use", 87)
    ),
    said: {
      text: "Let me look.",
      thinking: "They want the weather.",
      calls: [
        { id: "toolu_w1", name: "weather", params: weather },
        { id: "toolu_c2", name: "clock", params: {} },
        { id: "toolu_n3", name: "note", params: note }
      ],
      stopReason: "toolUse",
      usage: { input: 230, output: 87, cacheRead: 100, cacheWrite: 28 }
    }
  },
  {
    name: "one call",
    body: named(begin(tokens(50)), ...calls(0, "toolu_1", "note", note), ...end("tool_use", 40)),
    said: {
      text: "",
      thinking: "",
      calls: [{ id: "toolu_1", name: "note", params: note }],
      stopReason: "toolUse",
      usage: { input: 50, output: 40, cacheRead: 0, cacheWrite: 0 }
    }
  },
  {
    name: "a text that a limit cut",
    body: named(begin(tokens(8)), ...says(0, ["Once upon", " a"]), ...end("max_tokens", 4)),
    said: {
      text: "Once upon a",
      thinking: "",
      calls: [],
      stopReason: "length",
      usage: { input: 8, output: 4, cacheRead: 0, cacheWrite: 0 }
    }
  },
  {
    name: "a refusal",
    body: named(begin(tokens(30)), ...says(0, ["I cannot", " do that."]), ...end("refusal", 6)),
    said: {
      text: "I cannot do that.",
      thinking: "",
      calls: [],
      stopReason: "refusal",
      usage: { input: 30, output: 6, cacheRead: 0, cacheWrite: 0 }
    }
  }
]
