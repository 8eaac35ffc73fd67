import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { Loop, Message, type ModelEvent, Provider, ToolRegistry } from "effect-agent"
import * as Anthropic from "../../src/providers/Anthropic.ts"
import * as OpenAiCompatible from "../../src/providers/OpenAiCompatible.ts"
import { failing } from "./play.ts"

const vendors = [
  {
    name: "OpenAI",
    layer: OpenAiCompatible.layer(OpenAiCompatible.presets.openAi),
    end: ["[DONE]"],
    answer: [
      { id: "c1", choices: [{ index: 0, delta: { role: "assistant", content: "Grüße, " } }] },
      { id: "c1", choices: [{ index: 0, delta: { content: "🎉" } }] },
      {
        id: "c1",
        choices: [
          {
            index: 0,
            delta: {
              tool_calls: [
                { index: 0, id: "t1", type: "function", function: { name: "ping", arguments: "{" } }
              ]
            }
          }
        ]
      },
      {
        id: "c1",
        choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: "}" } }] } }]
      },
      { id: "c1", choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
      { id: "c1", choices: [], usage: { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 } }
    ],
    farewell: [
      { id: "c2", choices: [{ index: 0, delta: { role: "assistant", content: "Bye" } }] },
      { id: "c2", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }
    ]
  },
  {
    name: "Anthropic",
    layer: Anthropic.layer({}),
    end: [],
    answer: [
      {
        type: "message_start",
        message: { id: "m1", content: [], usage: { input_tokens: 9, output_tokens: 1 } }
      },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Grüße, 🎉" } },
      { type: "content_block_stop", index: 0 },
      {
        type: "content_block_start",
        index: 1,
        content_block: { type: "tool_use", id: "t1", name: "ping", input: {} }
      },
      { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: "{" } },
      { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: "}" } },
      { type: "content_block_stop", index: 1 },
      { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 4 } },
      { type: "message_stop" }
    ],
    farewell: [
      {
        type: "message_start",
        message: { id: "m2", content: [], usage: { input_tokens: 9, output_tokens: 1 } }
      },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Bye" } },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 4 } },
      { type: "message_stop" }
    ]
  }
] as const

/** How servers write the same events. */
const styles = {
  plain: { line: "\n", prefix: "data: ", last: "\n\n" },
  crlf: { line: "\r\n", prefix: "data: ", last: "\r\n\r\n" },
  tight: { line: "\n", prefix: "data:", last: "\n\n" },
  unfinished: { line: "\n", prefix: "data: ", last: "" }
} as const

const bodyOf = (events: ReadonlyArray<object>, end: ReadonlyArray<string>, style: keyof typeof styles) => {
  const { last, line, prefix } = styles[style]
  const frames = [...events.map((event) => JSON.stringify(event)), ...end].map((text) => prefix + text)
  return new TextEncoder().encode(frames.join(line + line) + last)
}

/** An `HttpClient` that answers each request with the next body, cut into these pieces, and keeps what it was sent. */
const answering = (bodies: ReadonlyArray<ReadonlyArray<Uint8Array>>) => {
  const sent: Array<string> = []
  const client = HttpClient.make((request) =>
    Effect.sync(() => {
      const { body } = request
      const pieces =
        bodies[sent.push(body._tag === "Uint8Array" ? new TextDecoder().decode(body.body) : "") - 1] ?? []
      const stream = new ReadableStream<Uint8Array>({
        start: (controller) => {
          for (const piece of pieces) controller.enqueue(piece)
          controller.close()
        }
      })
      return HttpClientResponse.fromWeb(
        request,
        new Response(stream, { headers: { "content-type": "text/event-stream" } })
      )
    })
  )
  return { sent, layer: Layer.succeed(HttpClient.HttpClient, client) }
}

const request: Provider.ModelRequest = { model: "m", messages: [Message.user("Hi")], tools: [], options: {} }

const heard = (
  provider: Layer.Layer<Provider.Provider, never, HttpClient.HttpClient>,
  pieces: ReadonlyArray<Uint8Array>
) =>
  Effect.flatMap(Provider.Provider, ({ stream }) => Stream.runCollect(stream(request))).pipe(
    Effect.provide(provider.pipe(Layer.provide(answering([pieces]).layer)))
  )

const shown = (events: ReadonlyArray<ModelEvent.ModelEvent>) => JSON.stringify(events)

describe("Wire", () => {
  for (const { answer, end, farewell, layer, name } of vendors) {
    it.effect(`${name} says the same however its bytes are cut, and however its events are written`, () =>
      Effect.gen(function* () {
        const whole = shown(yield* heard(layer, [bodyOf(answer, end, "plain")]))
        assert.include(whole, "🎉")
        for (const style of ["plain", "crlf", "tight", "unfinished"] as const) {
          const body = bodyOf(answer, end, style)
          const single = Array.from(body, (byte) => Uint8Array.of(byte))
          assert.strictEqual(shown(yield* heard(layer, [body])), whole, style)
          assert.strictEqual(shown(yield* heard(layer, single)), whole, `${style}, byte by byte`)
        }
        const body = bodyOf(answer, end, "crlf")
        for (let cut = 1; cut < body.length; cut++) {
          const events = yield* heard(layer, [body.slice(0, cut), body.slice(cut)])
          if (shown(events) !== whole) assert.strictEqual(shown(events), whole, `cut at ${cut}`)
        }
      })
    )

    it.effect(`the text of a tool's failure is in the body of the next request to ${name}`, () =>
      Effect.gen(function* () {
        const { layer: http, sent } = answering([
          [bodyOf(answer, end, "plain")],
          [bodyOf(farewell, end, "plain")]
        ])
        const { message, usage } = yield* Loop.run("Hi", { messages: [] }, { model: "m" }).pipe(
          Effect.provide([
            layer.pipe(Layer.provide(http)),
            ToolRegistry.layer(failing("ping", "the cable is unplugged"))
          ])
        )
        assert.strictEqual(sent.length, 2)
        assert.notInclude(sent[0], "unplugged")
        assert.include(sent[1], "the cable is unplugged")
        assert.strictEqual(message === undefined ? "" : Message.textOf(message), "Bye")
        assert.isAbove(usage.total, 0)
      })
    )
  }
})
