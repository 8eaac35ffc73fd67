/**
 * What Anthropic's Messages are sent, checked against the types of `@anthropic-ai/sdk`.
 */
import type Anthropic from "@anthropic-ai/sdk"
import { answer, png, schemas } from "./Conversation.ts"

type Body = Anthropic.MessageCreateParamsStreaming

const picture = { type: "image", source: { type: "base64", media_type: "image/png", data: png } } as const
const short = { cache_control: { type: "ephemeral" } } as const
const long = { cache_control: { type: "ephemeral", ttl: "1h" } } as const

/** After a thought and three calls. */
export const session = {
  model: "claude-sonnet-5",
  system: [{ type: "text", text: "Be terse.", ...short }],
  tools: [
    {
      name: "weather",
      description: "The weather of the next days",
      input_schema: { ...schemas.weather, required: [...schemas.weather.required] }
    },
    { name: "clock", description: "What time it is", input_schema: schemas.clock },
    {
      name: "note",
      description: "Writes a note",
      input_schema: { ...schemas.note, required: [...schemas.note.required] },
      ...short
    }
  ],
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: "What is this, and where?" },
        { ...picture, ...short }
      ]
    },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "They want the weather.", signature: "c2lnbmF0dXJl" },
        { type: "text", text: "Let me look." },
        { type: "tool_use", name: "weather", input: { city: "Zürich", days: 3 }, id: "toolu_w1" },
        { type: "tool_use", name: "clock", input: {}, id: "toolu_c2" },
        {
          type: "tool_use",
          name: "note",
          input: {
            path: "a/b.txt",
            text: 'say "hi"\n\tand go',
            tags: ["x", "y"],
            deep: { ok: true, no: null }
          },
          id: "toolu_n3"
        }
      ]
    },
    {
      role: "user",
      content: [
        { type: "tool_result", content: [{ type: "text", text: "rain" }], tool_use_id: "toolu_w1" },
        {
          type: "tool_result",
          content: [{ type: "text", text: "The clock is broken" }],
          is_error: true,
          tool_use_id: "toolu_c2"
        },
        {
          type: "tool_result",
          content: [{ type: "text", text: "written" }, picture],
          tool_use_id: "toolu_n3",
          ...short
        }
      ]
    }
  ],
  stream: true,
  max_tokens: 4000,
  thinking: { type: "adaptive", display: "summarized" },
  output_config: { effort: "low" },
  tool_choice: { type: "auto" }
} satisfies Body

/**
 * The library speaks the newest version of the API, 2026-10-21, which has no temperature any more. The version that is
 * asked for here, 2023-06-01, has it.
 */
export const everyOption = {
  model: "claude-sonnet-4-5",
  tools: [
    {
      name: "weather",
      description: "The weather of the next days",
      input_schema: { ...schemas.weather, required: [...schemas.weather.required] },
      ...long
    }
  ],
  messages: [{ role: "user", content: [{ type: "text", text: "Hi", ...long }] }],
  stream: true,
  max_tokens: 500,
  temperature: 0.5,
  stop_sequences: ["END"],
  tool_choice: { type: "tool", name: "weather" },
  output_config: { format: { type: "json_schema", schema: answer } }
} satisfies Body & { readonly temperature: number }
