/**
 * Answers of Bedrock's ConverseStream, as server-sent events: `test/providers/bedrock.ts` makes AWS's bytes of them.
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
 */
import { type Fixture, greeting, note, pieces, weather } from "./Fixture.ts"

type Event = readonly [name: string, data: object]

const events = (...all: ReadonlyArray<Event>): string =>
  all.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join("")

const begin: Event = ["messageStart", { role: "assistant", p: "abcdefghijkl" }]

const delta = (index: number, delta: object): Event => [
  "contentBlockDelta",
  { contentBlockIndex: index, delta, p: "abcde" }
]
const stop = (index: number): Event => ["contentBlockStop", { contentBlockIndex: index, p: "abc" }]

const says = (index: number, texts: ReadonlyArray<string>): ReadonlyArray<Event> => [
  ...texts.map((text) => delta(index, { text })),
  stop(index)
]

const thinks = (index: number, texts: ReadonlyArray<string>): ReadonlyArray<Event> => [
  ...texts.map((text) => delta(index, { reasoningContent: { text } })),
  delta(index, { reasoningContent: { signature: "c2lnbmF0dXJl" } }),
  stop(index)
]

const calls = (index: number, toolUseId: string, name: string, params: object): ReadonlyArray<Event> => [
  ["contentBlockStart", { contentBlockIndex: index, start: { toolUse: { toolUseId, name } }, p: "ab" }],
  ...pieces(JSON.stringify(params), 7).map((input) => delta(index, { toolUse: { input } })),
  stop(index)
]

const end = (stopReason: string, counts: object): ReadonlyArray<Event> => [
  ["messageStop", { stopReason, p: "abcd" }],
  ["metadata", { metrics: { latencyMs: 512 }, usage: counts, p: "abcdefg" }]
]

const tokens = (input: number, output: number, cacheRead = 0, cacheWrite = 0) => ({
  inputTokens: input,
  outputTokens: output,
  totalTokens: input + output + cacheRead + cacheWrite,
  cacheReadInputTokens: cacheRead,
  cacheWriteInputTokens: cacheWrite
})

const said = {
  text: "",
  thinking: "",
  calls: [],
  stopReason: "stop",
  usage: { input: 12, output: 9, cacheRead: 0, cacheWrite: 0 }
} as const

export const fixtures: ReadonlyArray<Fixture> = [
  {
    name: "text",
    body: events(begin, ...says(0, greeting), ...end("end_turn", tokens(12, 9))),
    said: { ...said, text: greeting.join("") }
  },
  {
    name: "cached tokens and a limit",
    body: events(begin, ...says(0, ["One", " two"]), ...end("max_tokens", tokens(2, 9, 8, 2))),
    said: {
      ...said,
      text: "One two",
      stopReason: "length",
      usage: { input: 12, output: 9, cacheRead: 8, cacheWrite: 2 }
    }
  },
  {
    name: "thinking, text and a call",
    body: events(
      begin,
      ...thinks(0, ["The weather", " in Zürich."]),
      ...says(1, ["Let me", " look."]),
      ...calls(2, "tooluse_1", "weather", weather),
      ...end("tool_use", tokens(12, 9))
    ),
    said: {
      ...said,
      text: "Let me look.",
      thinking: "The weather in Zürich.",
      calls: [{ id: "tooluse_1", name: "weather", params: weather }],
      stopReason: "toolUse"
    }
  },
  {
    name: "several calls",
    body: events(
      begin,
      ...calls(0, "tooluse_1", "weather", weather),
      ...calls(1, "tooluse_2", "clock", {}),
      ...calls(2, "tooluse_3", "note", note),
      ...end("tool_use", tokens(12, 9))
    ),
    said: {
      ...said,
      calls: [
        { id: "tooluse_1", name: "weather", params: weather },
        { id: "tooluse_2", name: "clock", params: {} },
        { id: "tooluse_3", name: "note", params: note }
      ],
      stopReason: "toolUse"
    }
  },
  {
    name: "citations and a blocked end",
    body: events(
      begin,
      delta(0, { text: "It rose." }),
      delta(0, {
        citation: {
          title: "Report",
          sourceContent: [{ text: "rose" }],
          location: { documentPage: { documentIndex: 0, start: 1, end: 2 } }
        }
      }),
      stop(0),
      ...end("guardrail_intervened", tokens(12, 9))
    ),
    said: { ...said, text: "It rose.", stopReason: "contentFilter" }
  }
]
