/** A message of the developer reaches the model over every protocol, and stands for the system prompt at the start of a conversation. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, Message } from "effect-agent"
import { OpenAiCompatible } from "effect-agent/providers"
import { serve } from "../providers/server.ts"
import { type Wire, wires } from "./wires.ts"

const { "Chat Completions": chat } = wires

/** Each protocol with the role of a message of the developer, at its place and at the start. */
const rows: ReadonlyArray<readonly [name: string, wire: Wire | undefined, role: string, leading: string]> = [
  ["Chat Completions", chat, "user", "system"],
  [
    "Chat Completions of OpenAI",
    chat && {
      ...chat,
      layer: (baseUrl) =>
        OpenAiCompatible.layer({
          ...OpenAiCompatible.presets.openAi,
          baseUrl: `${baseUrl}/v1`,
          apiKey: Redacted.make("k")
        }).pipe(Layer.provide(FetchHttpClient.layer))
    },
    "developer",
    "developer"
  ],
  ["Responses", wires["Responses"], "developer", "instructions"],
  ["Messages", wires["Messages"], "user", "system"],
  ["Gemini", wires["Gemini"], "user", "systemInstruction"],
  ["Converse", wires["Converse"], "user", "system"]
]

/** The role of the message that holds a text, or else the member of the body that does. */
const placeOf = (json: unknown, text: string): string | undefined => {
  if (typeof json !== "object" || json === null) return undefined
  for (const [name, value] of Object.entries(json)) {
    if (!JSON.stringify(value).includes(text)) continue
    const inner = placeOf(value, text)
    if (inner !== undefined && !/^(\d+|content|parts|text)$/.test(inner)) return inner
    return "role" in json && typeof json.role === "string" ? json.role : name
  }
  return undefined
}

describe("a message of the developer", () => {
  for (const [name, wire, role, leading] of rows) {
    it.live(`reaches the model over ${name} (rows 2, 37)`, () =>
      Effect.gen(function* () {
        if (wire === undefined) return assert.fail("no such protocol")
        const { baseUrl, requests } = yield* serve((response) =>
          response
            .writeHead(200, { "content-type": wire.contentType ?? "text/event-stream" })
            .end(wire.answer("ok"))
        )
        const body = (index: number): unknown => JSON.parse(requests[index]?.body ?? "")
        yield* Effect.gen(function* () {
          const agent = yield* Agent.make({ model: wire.model, system: "the prompt of the run" })
          yield* agent.prompt([Message.developer("the rules"), Message.user("one")])
          yield* agent.prompt([Message.developer("the news"), Message.user("two")])
          yield* agent.setMessages([])
          yield* agent.prompt([Message.user("three"), Message.developer("the rest")])
          assert.deepStrictEqual(
            (yield* agent.state.get).messages.map(({ role }) => role),
            ["user", "custom", "assistant"]
          )
        }).pipe(Effect.scoped, Effect.provide(wire.layer(new URL(baseUrl).origin)))
        for (const index of [0, 1]) {
          assert.strictEqual(placeOf(body(index), "the rules"), leading)
          assert.isUndefined(placeOf(body(index), "the prompt of the run"))
        }
        assert.strictEqual(placeOf(body(1), "the news"), role)
        assert.strictEqual(placeOf(body(2), "the prompt of the run"), leading)
        assert.strictEqual(placeOf(body(2), "the rest"), role)
      })
    )
  }
})
