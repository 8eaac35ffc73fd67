/**
 * What OpenAI's Chat Completions are sent, checked against the types of `openai`.
 */
import type OpenAI from "openai"
import { answer, png, schemas } from "./Conversation.ts"

type Body = OpenAI.Chat.ChatCompletionCreateParamsStreaming

const picture = { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } } as const

/** After three calls. */
export const session = {
  model: "gpt-5-mini",
  messages: [
    { role: "developer", content: "Be terse." },
    { role: "user", content: [{ type: "text", text: "What is this, and where?" }, picture] },
    {
      role: "assistant",
      content: "Let me look.",
      tool_calls: [
        {
          id: "call_w1",
          type: "function",
          function: { name: "weather", arguments: '{"city":"Zürich","days":3}' }
        },
        { id: "call_c2", type: "function", function: { name: "clock", arguments: "{}" } },
        {
          id: "call_n3",
          type: "function",
          function: {
            name: "note",
            arguments:
              '{"path":"a/b.txt","text":"say \\"hi\\"\\n\\tand go","tags":["x","y"],"deep":{"ok":true,"no":null}}'
          }
        }
      ]
    },
    { role: "tool", tool_call_id: "call_w1", content: "rain" },
    { role: "tool", tool_call_id: "call_c2", content: "The clock is broken" },
    { role: "tool", tool_call_id: "call_n3", content: "written" },
    { role: "user", content: [{ type: "text", text: "Attached image(s) from tool result:" }, picture] }
  ],
  tools: [
    {
      type: "function",
      function: {
        name: "weather",
        description: "The weather of the next days",
        parameters: schemas.weather
      }
    },
    {
      type: "function",
      function: { name: "clock", description: "What time it is", parameters: schemas.clock }
    },
    { type: "function", function: { name: "note", description: "Writes a note", parameters: schemas.note } }
  ],
  stream: true,
  stream_options: { include_usage: true },
  max_completion_tokens: 4000,
  tool_choice: "auto",
  reasoning_effort: "low"
} satisfies Body

export const everyOption = {
  model: "gpt-4.1",
  messages: [{ role: "user", content: "Hi" }],
  tools: [
    {
      type: "function",
      function: {
        name: "weather",
        description: "The weather of the next days",
        parameters: schemas.weather
      }
    }
  ],
  stream: true,
  stream_options: { include_usage: true },
  max_completion_tokens: 500,
  temperature: 0.5,
  top_p: 0.9,
  stop: ["END"],
  tool_choice: { type: "function", function: { name: "weather" } },
  response_format: { type: "json_schema", json_schema: { name: "answer", schema: answer, strict: true } },
  prompt_cache_key: "session-1",
  prompt_cache_retention: "24h"
} satisfies Body
