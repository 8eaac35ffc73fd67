/**
 * Answers of Gemini's generateContent: https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent
 */
import { type Fixture, greeting, note, unnamed, weather } from "./Fixture.ts"

const chunk = (parts: ReadonlyArray<object>, rest: object = {}, usage: object = {}) => ({
  candidates: [{ content: { parts, role: "model" }, index: 0, ...rest }],
  usageMetadata: { promptTokenCount: 12, totalTokenCount: 12, ...usage },
  modelVersion: "gemini-2.5-pro",
  responseId: "resp-1"
})

const says = (texts: ReadonlyArray<string>) => texts.map((text) => chunk([{ text }]))
const thinks = (texts: ReadonlyArray<string>) => texts.map((text) => chunk([{ text, thought: true }]))
const call = (id: string, name: string, args: object, rest: object = {}) => ({
  functionCall: { id, name, args },
  ...rest
})

const tokens = (input: number, output: number, cached = 0, thoughts = 0) => ({
  promptTokenCount: input,
  candidatesTokenCount: output,
  totalTokenCount: input + output + thoughts,
  ...(cached === 0 ? {} : { cachedContentTokenCount: cached }),
  ...(thoughts === 0 ? {} : { thoughtsTokenCount: thoughts })
})

const stops = { finishReason: "STOP" }

export const fixtures: ReadonlyArray<Fixture> = [
  {
    name: "text",
    body: unnamed(...says(greeting.slice(0, -1)), chunk([{ text: greeting.at(-1) }], stops, tokens(12, 9))),
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
    body: unnamed(
      ...thinks(["They want", " the weather."]),
      ...says(["Let me", " look."]),
      chunk([call("w1", "weather", weather, { thoughtSignature: "c2lnbmF0dXJl" }), call("c2", "clock", {})]),
      chunk([call("n3", "note", note)], stops, tokens(230, 67, 128, 20))
    ),
    said: {
      text: "Let me look.",
      thinking: "They want the weather.",
      calls: [
        { id: "w1", name: "weather", params: weather },
        { id: "c2", name: "clock", params: {} },
        { id: "n3", name: "note", params: note }
      ],
      stopReason: "toolUse",
      usage: { input: 230, output: 87, cacheRead: 128, cacheWrite: 0 }
    }
  },
  {
    name: "one call",
    body: unnamed(chunk([call("n1", "note", note)]), chunk([{ text: "" }], stops, tokens(50, 40))),
    said: {
      text: "",
      thinking: "",
      calls: [{ id: "n1", name: "note", params: note }],
      stopReason: "toolUse",
      usage: { input: 50, output: 40, cacheRead: 0, cacheWrite: 0 }
    }
  },
  {
    name: "a text that a limit cut",
    body: unnamed(
      ...says(["Once upon"]),
      chunk([{ text: " a" }], { finishReason: "MAX_TOKENS" }, tokens(8, 4))
    ),
    said: {
      text: "Once upon a",
      thinking: "",
      calls: [],
      stopReason: "length",
      usage: { input: 8, output: 4, cacheRead: 0, cacheWrite: 0 }
    }
  },
  {
    name: "a text that a filter cut",
    body: unnamed(
      ...says(["I cannot"]),
      chunk(
        [{ text: " do" }],
        {
          finishReason: "SAFETY",
          safetyRatings: [{ category: "HARM_CATEGORY_HARASSMENT", probability: "HIGH" }]
        },
        tokens(30, 6)
      )
    ),
    said: {
      text: "I cannot do",
      thinking: "",
      calls: [],
      stopReason: "contentFilter",
      usage: { input: 30, output: 6, cacheRead: 0, cacheWrite: 0 }
    }
  }
]
