import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, AgentEvent, Message } from "effect-agent"
import { OpenAiCompatible } from "effect-agent/providers"
import { serve, stream } from "./server.ts"

const png = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }

const chunk = (delta: object, fields: object = {}, choice: object = {}) => ({
  id: "c1",
  choices: [{ index: 0, delta, finish_reason: null, ...choice }],
  ...fields
})
const stop = { id: "c1", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }

/** What a run makes of an answer in these chunks. */
const run = (...chunks: ReadonlyArray<object>) =>
  Effect.gen(function* () {
    const lines = [...chunks, stop].map((each) => `data: ${JSON.stringify(each)}\n\n`)
    const server = yield* serve((response) => stream(response).end(`${lines.join("")}data: [DONE]\n\n`))
    const provider = OpenAiCompatible.layer({
      id: "acme",
      baseUrl: server.baseUrl,
      apiKey: Redacted.make("k")
    })
    const agent = yield* Agent.make({ model: "m" }).pipe(
      Effect.provide(provider),
      Effect.provide(FetchHttpClient.layer)
    )
    const ends: Array<AgentEvent.OfTag<"ModelCallEnd">> = []
    yield* agent.subscribe((event) =>
      Effect.sync(() => {
        if (event._tag === "ModelCallEnd") ends.push(event)
      })
    )
    const { newMessages } = yield* agent.prompt("Go")
    const answer = newMessages.find(({ role }) => role === "assistant")
    assert(answer?.role === "assistant")
    const kept = answer.content.flatMap((block) => (block.type === "text" ? (block.opaque ?? []) : []))
    return { text: Message.textOf(answer), kept, unrepresented: ends[0]?.unrepresented }
  })

describe("an answer of Chat Completions that holds more than text", () => {
  it.live("is not empty when it is an image alone", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* run(chunk({ role: "assistant", content: "", images: [png] })), {
        text: "[image]",
        kept: [{ provider: "acme", images: [png] }],
        unrepresented: ["images"]
      })
      const part = yield* run(chunk({ content: [png] }))
      assert.deepStrictEqual([part.text, part.unrepresented], ["[image]", ["images"]])
    })
  )

  it.live("keeps citations, annotations, search results and log probabilities, and names them", () =>
    Effect.gen(function* () {
      const pages = { citations: ["a.example", "b.example"], search_results: [{ title: "A" }] }
      const logprobs = (token: string) => ({ logprobs: { content: [{ token, logprob: -1 }] } })
      const annotation = { type: "url_citation", url_citation: { url: "a.example" } }
      const said = yield* run(
        chunk({ content: "Hel" }, pages, logprobs("Hel")),
        chunk({ content: "lo" }, pages, logprobs("lo")),
        chunk({ content: "!" }, pages, logprobs("!")),
        chunk({ annotations: [annotation] }, pages)
      )
      assert.strictEqual(said.text, "Hello!")
      assert.deepStrictEqual(said.unrepresented?.toSorted(), [
        "annotations",
        "citations",
        "logprobs",
        "search_results"
      ])
      const tokens = ["Hel", "lo", "!"].map((token) => ({ token, logprob: -1 }))
      assert.deepStrictEqual(said.kept, [
        { provider: "acme", ...pages, logprobs: tokens, annotations: [annotation] }
      ])
    })
  )

  it.live("says what was spoken, and keeps the sound", () =>
    Effect.gen(function* () {
      const first = { id: "audio_1", data: "AAAA", transcript: "Good " }
      const second = { data: "BBBB", transcript: "day" }
      assert.deepStrictEqual(yield* run(chunk({ audio: first }), chunk({ audio: second })), {
        text: "Good day",
        kept: [{ provider: "acme", audio: [first, second] }],
        unrepresented: ["audio"]
      })
    })
  )

  it.live("says nothing of it when there is nothing", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* run(chunk({ content: "Hi", annotations: [], images: [] })), {
        text: "Hi",
        kept: [],
        unrepresented: undefined
      })
    })
  )
})

describe("what a provider changed of a request", () => {
  it.live("stands in the end of the model call", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) =>
        stream(response).end(
          `data: ${JSON.stringify(chunk({ content: "Hi" }))}\n\ndata: ${JSON.stringify(stop)}\n\n`
        )
      )
      const preset = OpenAiCompatible.presets.openAi
      const provider = OpenAiCompatible.layer({
        ...preset,
        baseUrl: server.baseUrl,
        apiKey: Redacted.make("k")
      })
      const agent = yield* Agent.make({
        model: "gpt-5-mini",
        modelOptions: { temperature: 0.2, thinkingLevel: "max" }
      }).pipe(Effect.provide(provider), Effect.provide(FetchHttpClient.layer))
      const ends: Array<AgentEvent.OfTag<"ModelCallEnd">> = []
      yield* agent.subscribe((event) =>
        Effect.sync(() => {
          if (event._tag === "ModelCallEnd") ends.push(event)
        })
      )
      yield* agent.prompt("Go")
      assert.deepStrictEqual(
        ends[0]?.adjusted?.map(({ asked, option, reason, sent }) => [option, asked, sent, reason]),
        [
          ["thinkingLevel", "max", "high", "The model does not know this level."],
          ["temperature", 0.2, null, "The model refuses it."]
        ]
      )
      yield* agent.update({ modelOptions: { thinkingLevel: "low" } })
      yield* agent.prompt("Again")
      const body = JSON.parse(server.requests.at(-1)?.body ?? "")
      assert.strictEqual(body.reasoning_effort, "low")
    })
  )
})
