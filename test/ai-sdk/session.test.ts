import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, Message } from "effect-agent"
import { AiSdk } from "effect-agent/ai-sdk"
import { clock, note, png, weather } from "../../harness/differential/bodies/Conversation.ts"
import * as Fixtures from "../../harness/differential/streams/Fixture.ts"
import { serve, stream } from "../providers/server.ts"
import { claude, gemini, openai, openaiChat, type Vendor } from "./vendors.ts"

/** A run whose first answer has three calls, and the bodies of its two requests. */
const session = Effect.fnUntraced(function* ({ fixtures, model }: Vendor, options?: Partial<AiSdk.Options>) {
  const server = yield* serve((response, _, count) =>
    stream(response).end(fixtures[count === 1 ? 1 : 0]?.body)
  )
  const agent = yield* Agent.make({
    model: "any",
    system: "Be brief.",
    tools: [weather, clock, note],
    modelOptions: { maxTokens: 500, thinkingLevel: "low", vendor: { openai: { store: false } } }
  }).pipe(Effect.provide(AiSdk.layer({ model: model(server.baseUrl), ...options })))
  const result = yield* agent.prompt([Message.text("See this."), Message.image(png, "image/png")])
  const [first, second] = server.requests.map(({ body }) => JSON.parse(body))
  return { first, result, second }
})

const args = { weather: JSON.stringify(Fixtures.weather), note: JSON.stringify(Fixtures.note) }
const image = `data:image/png;base64,${png}`

describe("a run", () => {
  it.live("of OpenAI's Responses sends reasoning and its encrypted content back", () =>
    Effect.gen(function* () {
      const { first, result, second } = yield* session(openai)
      assert.strictEqual(result.text, Fixtures.greeting.join(""))
      assert.deepStrictEqual(first.reasoning, { effort: "low", summary: "detailed" })
      assert.deepStrictEqual(
        first.tools.map(({ name }: { name: string }) => name),
        ["weather", "clock", "note"]
      )
      assert.deepStrictEqual(second.input, [
        { role: "developer", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "input_text", text: "See this." },
            { type: "input_image", image_url: image }
          ]
        },
        {
          type: "reasoning",
          id: "rs_0",
          encrypted_content: "c2VhbGVk",
          summary: [{ type: "summary_text", text: "They want the weather." }]
        },
        { role: "assistant", content: "Let me look." },
        { type: "function_call", call_id: "call_w1", name: "weather", arguments: args.weather },
        { type: "function_call", call_id: "call_c2", name: "clock", arguments: "{}" },
        { type: "function_call", call_id: "call_n3", name: "note", arguments: args.note },
        { type: "function_call_output", call_id: "call_w1", output: "rain" },
        { type: "function_call_output", call_id: "call_c2", output: '{"error":"The clock is broken"}' },
        {
          type: "function_call_output",
          call_id: "call_n3",
          output: [
            { type: "input_text", text: "written" },
            { type: "input_image", image_url: image }
          ]
        }
      ])
    })
  )

  it.live("of OpenAI's Chat Completions sends calls and results back", () =>
    Effect.gen(function* () {
      const { result, second } = yield* session(openaiChat)
      assert.strictEqual(result.status, "completed")
      assert.deepStrictEqual(
        second.messages.map(({ role }: { role: string }) => role),
        ["system", "user", "assistant", "tool", "tool", "tool"]
      )
    })
  )

  it.live("of Anthropic sends thinking and its signature back", () =>
    Effect.gen(function* () {
      const { result, second } = yield* session(claude)
      assert.strictEqual(result.text, Fixtures.greeting.join(""))
      assert.deepStrictEqual(second.messages.slice(1), [
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "They want the weather.", signature: "c2lnbmF0dXJl" },
            { type: "text", text: "Let me look." },
            { type: "tool_use", id: "toolu_w1", name: "weather", input: Fixtures.weather },
            { type: "tool_use", id: "toolu_c2", name: "clock", input: {} },
            { type: "tool_use", id: "toolu_n3", name: "note", input: Fixtures.note }
          ]
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "toolu_w1", content: "rain" },
            {
              type: "tool_result",
              tool_use_id: "toolu_c2",
              content: "The clock is broken",
              is_error: true
            },
            {
              type: "tool_result",
              tool_use_id: "toolu_n3",
              content: [
                { type: "text", text: "written" },
                { type: "image", source: { type: "base64", media_type: "image/png", data: png } }
              ]
            }
          ]
        }
      ])
    })
  )

  it.live("of Google sends the signature of a call back", () =>
    Effect.gen(function* () {
      const { result, second } = yield* session(gemini)
      assert.strictEqual(result.text, Fixtures.greeting.join(""))
      assert.deepStrictEqual(second.contents[1], {
        role: "model",
        parts: [
          { text: "They want the weather.", thought: true },
          { text: "Let me look." },
          {
            functionCall: { id: "w1", name: "weather", args: Fixtures.weather },
            thoughtSignature: "c2lnbmF0dXJl"
          },
          { functionCall: { id: "c2", name: "clock", args: {} } },
          { functionCall: { id: "n3", name: "note", args: Fixtures.note } }
        ]
      })
    })
  )

  it.live("keeps the thinking of another provider to itself", () =>
    Effect.gen(function* () {
      const { result } = yield* session(claude)
      const server = yield* serve((response) => stream(response).end(claude.fixtures[0]?.body))
      const options = { model: "any", messages: result.newMessages }
      const agent = yield* Agent.make(options).pipe(
        Effect.provide(AiSdk.layer({ model: claude.model(server.baseUrl), id: "another" }))
      )
      yield* agent.prompt("And now?")
      const { body = "" } = server.requests[0] ?? {}
      assert.notInclude(body, "They want the weather.")
      assert.include(body, "Let me look.")
    })
  )
})

describe("typed output", () => {
  const output = Schema.Struct({ rain: Schema.Boolean })

  it.live("is an answer by the schema, where the model has no tools", () =>
    Effect.gen(function* () {
      const said = openaiChat.fixtures[0]?.body ?? ""
      const answer = said.replace(/"content":"Grüße"/, '"content":"{\\"rain\\":true}"')
      const body = answer.replace(/"content":"(?! *\{)[^"\\]+"/g, '"content":""')
      const server = yield* serve((response) => stream(response).end(body))
      const agent = yield* Agent.make({ model: "any", output }).pipe(
        Effect.provide(AiSdk.layer({ model: openaiChat.model(server.baseUrl) }))
      )
      const result = yield* agent.prompt("Rain?")
      assert.deepStrictEqual(result.output, { rain: true })
      const { response_format } = JSON.parse(server.requests[0]?.body ?? "")
      assert.strictEqual(response_format.type, "json_schema")
      assert.deepStrictEqual(response_format.json_schema.schema.required, ["rain"])
    })
  )

  it("is a tool beside other tools, unless the application says otherwise", () => {
    const tool = { name: "t", description: "", parameters: { type: "object" } }
    const model = openaiChat.model("http://127.0.0.1:1/v1")
    const native = (tools: ReadonlyArray<typeof tool>, structuredOutput?: boolean) =>
      AiSdk.make({
        model,
        ...(structuredOutput === undefined ? {} : { structuredOutput })
      }).structuredOutput?.({
        model: "any",
        tools
      })
    assert.deepStrictEqual(
      [native([]), native([tool]), native([tool], true), native([], false)],
      [true, false, true, false]
    )
  })
})
