/**
 * What Gemini's generateContent is sent, checked against the types of `@google/genai`. That library has no type for the
 * body: it takes one object and spreads it over the members below.
 */
import type { Content, FunctionDeclaration, GenerationConfig, Tool, ToolConfig } from "@google/genai"
import { png } from "./Conversation.ts"

interface Body {
  readonly contents: Array<Wire<Content>>
  readonly systemInstruction?: Wire<Content>
  readonly tools?: Array<
    Omit<Tool, "functionDeclarations"> & { readonly functionDeclarations: Array<FunctionDeclaration> }
  >
  readonly toolConfig?: Wire<ToolConfig>
  readonly generationConfig?: Wire<GenerationConfig>
}

/** The same with the members of enums as the strings they are. */
type Wire<T> = T extends string ? `${T}` : T extends object ? { [K in keyof T]: Wire<T[K]> } : T

const picture = { inlineData: { mimeType: "image/png", data: png } }

const weather = {
  name: "weather",
  description: "The weather of the next days",
  parametersJsonSchema: {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "number" } },
    required: ["city", "days"]
  }
} satisfies FunctionDeclaration

/** After a thought and three calls. */
export const session = {
  contents: [
    { role: "user", parts: [{ text: "What is this, and where?" }, picture] },
    {
      role: "model",
      parts: [
        { text: "They want the weather.", thought: true },
        { text: "Let me look." },
        {
          functionCall: { id: "w1", name: "weather", args: { city: "Zürich", days: 3 } },
          thoughtSignature: "c2lnbmF0dXJl"
        },
        { functionCall: { id: "c2", name: "clock", args: {} } },
        {
          functionCall: {
            id: "n3",
            name: "note",
            args: {
              path: "a/b.txt",
              text: 'say "hi"\n\tand go',
              tags: ["x", "y"],
              deep: { ok: true, no: null }
            }
          }
        }
      ]
    },
    {
      role: "user",
      parts: [
        { functionResponse: { id: "w1", name: "weather", response: { output: "rain" } } },
        { functionResponse: { id: "c2", name: "clock", response: { error: "The clock is broken" } } },
        { functionResponse: { id: "n3", name: "note", response: { output: "written" } } },
        { text: "Image from the result of note:" },
        picture
      ]
    }
  ],
  tools: [
    {
      functionDeclarations: [
        weather,
        { name: "clock", description: "What time it is" },
        {
          name: "note",
          description: "Writes a note",
          parametersJsonSchema: {
            type: "object",
            properties: {
              path: { type: "string" },
              text: { type: "string" },
              tags: { type: "array", items: { type: "string" } },
              deep: {
                type: "object",
                properties: { ok: { type: "boolean" }, no: { type: "null" } },
                required: ["ok", "no"]
              }
            },
            required: ["path", "text", "tags", "deep"]
          }
        }
      ]
    }
  ],
  systemInstruction: { parts: [{ text: "Be terse." }] },
  generationConfig: {
    maxOutputTokens: 4000,
    thinkingConfig: { includeThoughts: true, thinkingBudget: 2000 }
  },
  toolConfig: { functionCallingConfig: { mode: "AUTO" } }
} satisfies Body

/** Before Gemini 3 a schema of the answer is told in words where there are tools. Caching is not asked for. */
export const everyOption = {
  contents: [{ role: "user", parts: [{ text: "Hi" }] }],
  tools: [{ functionDeclarations: [weather] }],
  systemInstruction: {
    parts: [
      {
        text: 'Give your final answer as one JSON value, with nothing around it, of this JSON Schema:\n{"type":"object","properties":{"rain":{"type":"boolean"}},"required":["rain"],"additionalProperties":false}'
      }
    ]
  },
  generationConfig: { temperature: 0.5, topP: 0.9, maxOutputTokens: 500, stopSequences: ["END"] },
  toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["weather"] } }
} satisfies Body
