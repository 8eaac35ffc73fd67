/**
 * A vendor that refuses a call, a result or an answer of a conversation for ever: the run goes on without it, and so does each later one,
 * in the same agent and after a restart. The session keeps all of it.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, Stream } from "effect"
import { Agent, Tool } from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { MemorySessionStore, SessionStore } from "effect-agent/sessions"
import { refuse, serve } from "../providers/server.ts"
import { type Wire, wires } from "./wires.ts"

/** What the server refuses: the text of a result, of arguments or of an answer, an answer that it took before, an id, or any call. */
type Part = "RESULT" | "ARGUMENT" | "ANSWER" | "OLD" | "fc_1" | "CALL"

type Row = readonly [wire: string, part: Part, message: string, code?: string | number]

const unknown = "history no good"
const rows: ReadonlyArray<Row> = [
  [
    "Chat Completions",
    "RESULT",
    "Invalid 'messages[3].content': string too long. Expected a string with maximum length 10485760",
    "string_above_max_length"
  ],
  ["Chat Completions", "RESULT", "messages.3.content: unterminated string"],
  ["Chat Completions", "RESULT", "Request Entity Too Large", 413],
  ["Chat Completions", "RESULT", unknown],
  [
    "Chat Completions",
    "ARGUMENT",
    "Invalid value for tool_calls[0].function.arguments: image.png is no object"
  ],
  ["Chat Completions", "ARGUMENT", "Can only get item pairs from a mapping."],
  ["Chat Completions", "ANSWER", "Unsupported value: 'messages[1].content'", "unsupported_value"],
  ["Chat Completions", "ANSWER", "[{'loc': ('body', 'messages', 3), 'msg': 'Value error'}]", 422],
  ["Chat Completions", "OLD", "The request body is not valid JSON: lone leading surrogate in hex escape"],
  ["Chat Completions", "CALL", "Conversation roles must alternate user/assistant/user/assistant/..."],
  [
    "Chat Completions",
    "CALL",
    "Invalid 'messages[3].tool_calls[0].function.name': string does not match pattern."
  ],
  [
    "Responses",
    "RESULT",
    "Invalid 'input[4].output': string too long. Expected a string with maximum length 10485760"
  ],
  ["Responses", "RESULT", "No tool output found for function call c1."],
  ["Responses", "ARGUMENT", "Invalid 'input[3].arguments'", "unknown_parameter"],
  ["Responses", "ARGUMENT", unknown],
  ["Responses", "ANSWER", "Unknown parameter: 'input[1].status'.", "unknown_parameter"],
  ["Responses", "OLD", unknown],
  ["Responses", "fc_1", "Item with id 'fc_1' not found.", 404],
  ["Messages", "RESULT", "messages.5.content.0.tool_result: content is invalid"],
  [
    "Messages",
    "RESULT",
    "messages.5.content.0.tool_result.content.0.image.source.base64.data: invalid base64"
  ],
  ["Messages", "RESULT", unknown],
  ["Messages", "ARGUMENT", "messages.3.content.0.tool_use.input: Input should be a valid dictionary"],
  ["Messages", "ANSWER", "messages: text content blocks must be non-empty"],
  ["Messages", "ANSWER", "messages: final assistant content cannot end with trailing whitespace"],
  ["Messages", "OLD", "messages.1: all messages must have non-empty content"],
  [
    "Messages",
    "CALL",
    "messages.3.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"
  ],
  [
    "Messages",
    "CALL",
    "messages.4.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1"
  ],
  ["Messages", "CALL", "messages: `tool_use` ids must be unique"],
  ["Gemini", "RESULT", "Invalid value at 'contents[4].parts[0].function_response'"],
  ["Gemini", "ARGUMENT", "Request contains an invalid argument."],
  ["Gemini", "ANSWER", "Unable to submit request because it must have a text parameter."],
  [
    "Gemini",
    "OLD",
    "Invalid JSON payload received. Unknown name \"x\" at 'contents[1].parts[0]': Cannot find field."
  ],
  [
    "Gemini",
    "CALL",
    "Please ensure that the number of function response parts is equal to the number of function call parts"
  ],
  ["Converse", "RESULT", "The value at messages.4.content.0.toolResult is invalid."],
  ["Converse", "ARGUMENT", "The format of the value at messages.3.content.0.toolUse.input is invalid."],
  ["Converse", "ANSWER", "The text field in the ContentBlock object at messages.1.content.0 is blank."],
  ["Converse", "OLD", unknown],
  ["Converse", "CALL", "The toolUse blocks at messages.3.content contain duplicate Ids"]
]

const look = Tool.make({
  name: "look",
  description: "Looks.",
  params: Schema.Struct({ at: Schema.String }),
  execute: () => Effect.succeed("a RESULT")
})

const storage = MemorySessionStore.storage()
const store = SessionStore.make(storage)

/** The answers to the prompts of an agent that opens the session, and the content that its last request left out. */
const ask = (sessionId: string, { layer, model }: Wire, baseUrl: string, prompts: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const agent = yield* Agent.make({ model, session: yield* store.openOrCreate(sessionId), tools: [look] })
    let adjusted: ReadonlyArray<string> = []
    yield* agent.subscribe((event) =>
      Effect.sync(() => {
        if (event._tag === "ModelCallEnd") adjusted = (event.adjusted ?? []).map(({ option }) => option)
      })
    )
    const answers = yield* Effect.forEach(prompts, (prompt) =>
      Effect.match(agent.prompt(prompt), {
        onSuccess: ({ text }) => text,
        onFailure: ({ message }) => message
      })
    )
    return { answers, adjusted }
  }).pipe(Effect.scoped, Effect.provide(Retry.layer()(layer(baseUrl))))

const count = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].length

/** The most requests that find out about a refusal, one for each guess. */
const guesses = 4

describe("a conversation with a part that a vendor refuses", () => {
  for (const [index, [name, part, message, code]] of rows.entries()) {
    const status = typeof code === "number" ? code : 400
    it.live(`goes on over ${name} after ${status} ${JSON.stringify(message)} for ${part}`, () =>
      Effect.gen(function* () {
        const wire = wires[name]
        if (wire === undefined) return assert.fail(name)
        const [call, result] = wire.pair
        const isPoison = (body: string) => (part === "CALL" ? count(body, call) > 0 : body.includes(part))
        // An old answer is one that the server took at first.
        let [answered, isStrict] = [0, part !== "OLD"]
        const { baseUrl, requests } = yield* serve((response, { body }) => {
          if (isStrict && isPoison(body))
            return refuse(response, status, { error: { type: "invalid_request_error", message, code } })
          const bodies = [wire.answer(`ok ANSWER OLD`), wire.call(`{"at":"ARGUMENT"}`)]
          response
            .writeHead(200, { "content-type": wire.contentType ?? "text/event-stream" })
            .end(bodies[answered++] ?? wire.answer("ok"))
        })
        const origin = new URL(baseUrl).origin
        const id = `refused-${index}`
        const first = yield* ask(id, wire, origin, ["first", "look"])
        assert.deepStrictEqual(first.answers, ["ok ANSWER OLD", "ok"])
        isStrict = true
        const found = requests.length
        const next = yield* ask(id, wire, origin, ["next"])
        assert.deepStrictEqual(next.answers, ["ok"])
        assert.isAtMost(requests.length, (part === "OLD" ? found : 3) + 1 + guesses)
        const before = requests.length
        const later = yield* ask(id, wire, origin, ["later", "and later"])
        assert.deepStrictEqual([later.answers, requests.length], [["ok", "ok"], before + 2])
        for (const { body } of requests) assert.strictEqual(count(body, call), count(body, result))
        const lines = yield* Stream.runCollect(storage.lines(id))
        for (const text of ["RESULT", "ARGUMENT", "ANSWER"]) assert.include(JSON.stringify(lines), text)
      })
    )
  }
})

/** Refusals that no other history would change. */
const others: ReadonlyArray<readonly [status: number, message: string, code?: string]> = [
  [401, "Incorrect API key provided"],
  [403, "Your organization may not use this"],
  [404, "The model `m` does not exist", "model_not_found"],
  [402, "Insufficient balance"],
  [400, "You exceeded your current quota", "insufficient_quota"],
  [400, "Output blocked by content filtering policy"],
  [400, "messages.3.content: flagged by our usage policies", "content_policy_violation"],
  [400, "Unknown parameter: 'frobnicate'.", "unknown_parameter"],
  [400, "Unrecognized request argument supplied: reasoning"],
  [400, "output_config.effort: Extra inputs are not permitted"],
  [400, "tool_choice: Input should be a valid dictionary"],
  [400, "max_tokens: 300000 > 128000, which is the maximum allowed"],
  [400, "Invalid schema for function 'look': None is not of type 'array'", "invalid_function_parameters"],
  [400, "tools.0.custom.input_schema: JSON schema is invalid"]
]

describe("a refusal of something else than the conversation", () => {
  for (const [index, [status, message, code]] of others.entries()) {
    it.live(`is asked once after ${status} ${JSON.stringify(message)}`, () =>
      Effect.gen(function* () {
        const wire = wires["Chat Completions"]
        if (wire === undefined) return assert.fail()
        const { baseUrl, requests } = yield* serve((response, _, n) => {
          if (n > 3) return refuse(response, status, { error: { message, code } })
          const body = n === 2 ? wire.call(`{"at":"ARGUMENT"}`) : wire.answer("ok")
          response.writeHead(200, { "content-type": "text/event-stream" }).end(body)
        })
        const prompts = ["first", "look", "next"]
        const { answers } = yield* ask(`other-${index}`, wire, new URL(baseUrl).origin, prompts)
        assert.deepStrictEqual([answers.slice(0, 2), requests.length], [["ok", "ok"], 4])
        assert.include(answers[2], message)
      })
    )
  }
})
