/**
 * What OpenAI's Responses are sent, checked against the types of `openai`.
 */
import type OpenAI from "openai"
import { answer, png, schemas } from "./Conversation.ts"

type Body = OpenAI.Responses.ResponseCreateParamsStreaming

const picture = { type: "input_image", detail: "auto", image_url: `data:image/png;base64,${png}` } as const

/** After a thought and three calls. */
export const session = {
  model: "gpt-5-mini",
  instructions: "Be terse.",
  input: [
    { role: "user", content: [{ type: "input_text", text: "What is this, and where?" }, picture] },
    {
      id: "rs_0",
      type: "reasoning",
      encrypted_content: "c2VhbGVk",
      summary: [{ type: "summary_text", text: "They want the weather." }]
    },
    {
      id: "msg_1",
      type: "message",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", annotations: [], text: "Let me look." }]
    },
    {
      type: "function_call",
      id: "fc_2",
      status: "completed",
      name: "weather",
      arguments: '{"city":"Zürich","days":3}',
      call_id: "call_w1"
    },
    {
      type: "function_call",
      id: "fc_3",
      status: "completed",
      name: "clock",
      arguments: "{}",
      call_id: "call_c2"
    },
    {
      type: "function_call",
      id: "fc_4",
      status: "completed",
      name: "note",
      arguments:
        '{"path":"a/b.txt","text":"say \\"hi\\"\\n\\tand go","tags":["x","y"],"deep":{"ok":true,"no":null}}',
      call_id: "call_n3"
    },
    { type: "function_call_output", call_id: "call_w1", output: "rain" },
    { type: "function_call_output", call_id: "call_c2", output: "The clock is broken" },
    {
      type: "function_call_output",
      call_id: "call_n3",
      output: [{ type: "input_text", text: "written" }, picture]
    }
  ],
  tools: [
    {
      type: "function",
      name: "weather",
      description: "The weather of the next days",
      parameters: schemas.weather,
      strict: false
    },
    {
      type: "function",
      name: "clock",
      description: "What time it is",
      parameters: schemas.clock,
      strict: false
    },
    { type: "function", name: "note", description: "Writes a note", parameters: schemas.note, strict: false }
  ],
  stream: true,
  store: false,
  max_output_tokens: 4000,
  tool_choice: "auto",
  include: ["reasoning.encrypted_content"],
  reasoning: { effort: "low", summary: "auto" }
} satisfies Body

/** There is no `stop` in this language. */
export const everyOption = {
  model: "gpt-4.1",
  input: [{ role: "user", content: "Hi" }],
  tools: [
    {
      type: "function",
      name: "weather",
      description: "The weather of the next days",
      parameters: schemas.weather,
      strict: false
    }
  ],
  stream: true,
  store: false,
  max_output_tokens: 500,
  temperature: 0.5,
  top_p: 0.9,
  tool_choice: { type: "function", name: "weather" },
  text: { format: { type: "json_schema", name: "answer", schema: answer, strict: true } },
  prompt_cache_key: "session-1",
  prompt_cache_retention: "24h"
} satisfies Body
