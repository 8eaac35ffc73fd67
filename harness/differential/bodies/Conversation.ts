/**
 * The conversations whose requests are compared: their tools, their picture, and the options of one of them.
 */
import { Effect, Schema } from "effect"
import { Message, type RunOptions, Tool } from "effect-agent"

/** One pixel. */
export const png =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

export const weather = Tool.make({
  name: "weather",
  description: "The weather of the next days",
  params: Schema.Struct({ city: Schema.String, days: Schema.Finite }),
  execute: () => Effect.succeed("rain")
})

export const clock = Tool.make({
  name: "clock",
  description: "What time it is",
  params: Schema.Struct({}),
  execute: () => Effect.fail("The clock is broken")
})

export const note = Tool.make({
  name: "note",
  description: "Writes a note",
  params: Schema.Struct({
    path: Schema.String,
    text: Schema.String,
    tags: Schema.Array(Schema.String),
    deep: Schema.Struct({ ok: Schema.Boolean, no: Schema.Null })
  }),
  execute: () => Effect.succeed(Tool.output([Message.text("written"), Message.image(png, "image/png")]))
})

/** The parameters of the tools, as JSON Schemas. */
export const schemas = {
  weather: {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "number" } },
    required: ["city", "days"]
  },
  clock: { type: "object", properties: {} },
  note: {
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
} as const

/** What the answer has to be, where one is asked for in JSON. */
export const answer = {
  type: "object",
  properties: { rain: { type: "boolean" } },
  required: ["rain"],
  additionalProperties: false
} as const

/** Every option that more than one vendor has. */
export const everyOption: RunOptions.ModelOptions = {
  maxTokens: 500,
  temperature: 0.5,
  topP: 0.9,
  stop: ["END"],
  toolChoice: { name: "weather" },
  sessionId: "session-1",
  cacheRetention: "long",
  output: { name: "answer", schema: answer }
}
