/**
 * Answers of OpenAI's Chat Completions: https://platform.openai.com/docs/api-reference/chat-streaming
 */
import { type Fixture, greeting, note, pieces, unnamed, weather } from "./Fixture.ts"

const chunk = (delta: object, finish: string | null = null, rest: object = {}) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1767225600,
  model: "gpt-5-mini",
  choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
  ...rest
})

const usage = (input: number, output: number, cached: number, reasoning: number) =>
  chunk({}, null, {
    choices: [],
    usage: {
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: input + output,
      prompt_tokens_details: { cached_tokens: cached, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: reasoning, audio_tokens: 0 }
    }
  })

const says = (texts: ReadonlyArray<string>) => texts.map((content) => chunk({ content }))

const begins = (index: number, id: string, name: string) =>
  chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] })

const goesOn = (index: number, json: string) =>
  chunk({ tool_calls: [{ index, function: { arguments: json } }] })

const calls = (index: number, id: string, name: string, params: object) => [
  begins(index, id, name),
  ...pieces(JSON.stringify(params), 7).map((json) => goesOn(index, json))
]

const role = chunk({ role: "assistant", content: "", refusal: null })

export const fixtures: ReadonlyArray<Fixture> = [
  {
    name: "text",
    body: unnamed(role, ...says(greeting), chunk({}, "stop"), usage(12, 9, 0, 0), "[DONE]"),
    said: {
      text: greeting.join(""),
      thinking: "",
      calls: [],
      stopReason: "stop",
      usage: { input: 12, output: 9, cacheRead: 0, cacheWrite: 0 }
    }
  },
  {
    name: "text and three calls",
    body: unnamed(
      role,
      ...says(["Let me", " look."]),
      ...calls(0, "call_w1", "weather", weather),
      ...calls(1, "call_c2", "clock", {}),
      ...calls(2, "call_n3", "note", note),
      chunk({}, "tool_calls"),
      usage(230, 87, 128, 20),
      "[DONE]"
    ),
    said: {
      text: "Let me look.",
      thinking: "",
      calls: [
        { id: "call_w1", name: "weather", params: weather },
        { id: "call_c2", name: "clock", params: {} },
        { id: "call_n3", name: "note", params: note }
      ],
      stopReason: "toolUse",
      usage: { input: 230, output: 87, cacheRead: 128, cacheWrite: 0 }
    }
  },
  {
    name: "one call",
    body: unnamed(
      role,
      ...calls(0, "call_1", "note", note),
      chunk({}, "tool_calls"),
      usage(50, 40, 0, 0),
      "[DONE]"
    ),
    said: {
      text: "",
      thinking: "",
      calls: [{ id: "call_1", name: "note", params: note }],
      stopReason: "toolUse",
      usage: { input: 50, output: 40, cacheRead: 0, cacheWrite: 0 }
    }
  },
  {
    name: "a text that a limit cut",
    body: unnamed(role, ...says(["Once upon", " a"]), chunk({}, "length"), usage(8, 4, 0, 0), "[DONE]"),
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
    body: unnamed(
      role,
      chunk({ refusal: "I cannot" }),
      chunk({ refusal: " do that." }),
      chunk({}, "stop"),
      usage(30, 6, 0, 0),
      "[DONE]"
    ),
    said: {
      text: "I cannot do that.",
      thinking: "",
      calls: [],
      stopReason: "refusal",
      usage: { input: 30, output: 6, cacheRead: 0, cacheWrite: 0 }
    }
  }
]
