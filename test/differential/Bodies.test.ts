import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, Message, type RunOptions, type Tool } from "effect-agent"
import { serve, stream } from "../providers/server.ts"
import * as Conversation from "../../harness/differential/bodies/Conversation.ts"
import { type Wire, wires } from "../../harness/differential/Wire.ts"

// The bodies are literals, which `tsc` checks against the types of the vendors' own libraries: a member they do not know
// is an error. Here each is compared with what is really sent, so what is really sent is of those types.

const { clock, note, png, weather } = Conversation

interface Setting {
  readonly tools: ReadonlyArray<Tool.Runnable>
  readonly modelOptions: RunOptions.ModelOptions
  readonly model?: string
  readonly system?: string
}

/** Prompts an agent over HTTP. The body of its last request: the first is answered with three calls, if it is not the last. */
const lastBody = Effect.fnUntraced(function* (
  wire: Wire,
  setting: Setting,
  prompt: Message.Input,
  turns: number
) {
  const [text, calls] = wire.fixtures
  const server = yield* serve((response, _, count) =>
    stream(response).end(count === turns ? text?.body : calls?.body)
  )
  const layer = wire.layer({ baseUrl: server.baseUrl, apiKey: Redacted.make("a key of this test") })
  const agent = yield* Agent.make({ model: wire.model, ...setting }).pipe(
    Effect.provide(layer),
    Effect.provide(FetchHttpClient.layer)
  )
  yield* agent.prompt(prompt)
  assert.strictEqual(server.requests.length, turns)
  return JSON.parse(server.requests.at(-1)?.body ?? "")
})

describe.each(wires)("$name", (wire) => {
  it.live("knows all that is sent in a session with a picture, a thought, calls and results", () =>
    Effect.gen(function* () {
      const body = yield* lastBody(
        wire,
        {
          system: "Be terse.",
          tools: [weather, clock, note],
          modelOptions: { maxTokens: 4000, thinkingLevel: "low", toolChoice: "auto" }
        },
        Message.user([Message.text("What is this, and where?"), Message.image(png, "image/png")]),
        2
      )
      assert.deepStrictEqual(body, wire.bodies.session)
    })
  )

  it.live("knows every option as it is sent", () =>
    Effect.gen(function* () {
      const setting = {
        model: wire.plainModel,
        tools: [weather],
        modelOptions: Conversation.everyOption
      }
      assert.deepStrictEqual(yield* lastBody(wire, setting, "Hi", 1), wire.bodies.everyOption)
    })
  )
})
