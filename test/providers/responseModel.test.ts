import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, type AgentEvent } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { anthropicMessages } from "../../src/providers/internal/anthropic/protocol.ts"
import { common } from "../../src/providers/internal/openAiChat/compat.ts"
import { googleGenerate } from "../../src/providers/internal/gemini/protocol.ts"
import { openAiChat } from "../../src/providers/internal/openAiChat/protocol.ts"
import { openAiResponses } from "../../src/providers/internal/openAiResponses/protocol.ts"
import { readerOf } from "./reader.ts"

const call = { model: "m-1", seed: "s1" }

/** The answer of each protocol whose server names this model. */
const answers = (model: string | undefined) => [
  readerOf(openAiChat("acme", common), call).message(
    { model, choices: [{ index: 0, delta: { content: "h" } }] },
    { model: "m-3", choices: [{ index: 0, delta: { content: "i" }, finish_reason: "stop" }] }
  ),
  readerOf(openAiResponses("acme"), call).message(
    { type: "response.created", response: { id: "r", model } },
    { type: "response.completed", response: { id: "r", model } }
  ),
  readerOf(anthropicMessages("acme"), call).message(
    { type: "message_start", message: { id: "m", model } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "hi" } },
    { type: "message_delta", delta: { stop_reason: "end_turn" } },
    { type: "message_stop" }
  ),
  readerOf(googleGenerate("acme"), call).message(
    { modelVersion: model, candidates: [{ content: { parts: [{ text: "h" }] } }] },
    { modelVersion: "m-3", candidates: [{ content: { parts: [{ text: "i" }] }, finishReason: "STOP" }] }
  )
]

describe("the model that answered", () => {
  it("is in the answer of each protocol, beside the model that was asked", () => {
    for (const answer of answers("m-1-2026")) {
      assert.deepInclude(answer, { model: "m-1", responseModel: "m-1-2026" }, answer.protocol)
    }
  })

  it("is left out if the server does not name it, or names the model that was asked", () => {
    for (const answer of [...answers(undefined), ...answers("m-1")]) {
      assert.notProperty(answer, "responseModel", answer.protocol)
    }
  })

  it.effect("is in the message and in ModelCallEnd (row 16)", () =>
    Effect.gen(function* () {
      const start = {
        _tag: "Start",
        provider: "p",
        model: "m",
        protocol: "x",
        responseModel: "m-2026"
      } as const
      const script = [ScriptedProvider.turn(Step.event(start), Step.text("Hi"), Step.finish())]
      const ends: Array<AgentEvent.AgentEvent> = []
      const { message } = yield* Effect.gen(function* () {
        const agent = yield* Agent.make({ model: "m" })
        yield* agent.subscribe((event) =>
          Effect.sync(() => {
            if (event._tag === "ModelCallEnd") ends.push(event)
          })
        )
        return yield* agent.prompt("Hi")
      }).pipe(Effect.scoped, Effect.provide(ScriptedProvider.layer(script)))
      assert.deepInclude(message, { model: "m", responseModel: "m-2026" })
      assert.deepInclude(ends[0], { responseModel: "m-2026" })
    })
  )
})
