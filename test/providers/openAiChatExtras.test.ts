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
    return { text: Message.textOf(answer), content: answer.content, end: ends[0] }
  })

const block =
  (type: Message.Assistant["content"][number]["type"]) =>
  (answer: { readonly content: Message.Assistant["content"] }) =>
    answer.content.filter((block) => block.type === type)

describe("an answer of Chat Completions that holds more than text", () => {
  it.live("has an image that the model made, alone or as a part of the content", () =>
    Effect.gen(function* () {
      const media = { type: "media", source: { data: "AAAA", mediaType: "image/png" } }
      const opaque = { provider: "acme", part: png }
      for (const delta of [{ role: "assistant", content: "", images: [png] }, { content: [png] }]) {
        const answer = yield* run(chunk(delta))
        assert.deepStrictEqual<unknown>(answer.content, [{ ...media, opaque }])
      }
      const remote = yield* run(chunk({ images: [{ image_url: { url: "https://a.example/1.png" } }] }))
      assert.deepInclude(remote.content[0], {
        source: { url: "https://a.example/1.png", mediaType: "image/png" }
      })
    })
  )

  it.live("has its sources after the text, each address once, with what the vendor wrote of them", () =>
    Effect.gen(function* () {
      const pages = {
        citations: ["https://a.example", "https://b.example"],
        search_results: [{ title: "A", url: "https://a.example", snippet: "About a" }]
      }
      const annotation = {
        type: "url_citation",
        url_citation: { url: "https://c.example", title: "C", start_index: 0, end_index: 5 }
      }
      const answer = yield* run(
        chunk({ content: "Hel" }, pages),
        chunk({ content: "lo!" }, pages),
        chunk({ annotations: [annotation] }, pages)
      )
      assert.strictEqual(answer.text, "Hello!")
      const url = { type: "source", sourceType: "url" }
      assert.deepStrictEqual<unknown>(block("source")(answer), [
        { ...url, url: "https://c.example", title: "C", opaque: { provider: "acme", annotation } },
        {
          ...url,
          url: "https://a.example",
          title: "A",
          citedText: "About a",
          opaque: { provider: "acme", searchResult: pages.search_results[0] }
        },
        { ...url, url: "https://b.example", opaque: { provider: "acme", citation: "https://b.example" } }
      ])
    })
  )

  it.live("reports the service tier that answered", () =>
    Effect.gen(function* () {
      const tier = { service_tier: "flex" }
      const { end } = yield* run(chunk({ content: "Hel" }, tier), chunk({ content: "lo" }, tier))
      assert.strictEqual(end?.serviceTier, "flex")
    })
  )

  it.live("reports the probabilities of its tokens", () =>
    Effect.gen(function* () {
      const logprobs = (token: string) => ({
        logprobs: {
          content: [{ token, logprob: -1, bytes: null, top_logprobs: [{ token: "x", logprob: -2 }] }]
        }
      })
      const { end } = yield* run(
        chunk({ content: "Hel" }, {}, logprobs("Hel")),
        chunk({ content: "lo" }, {}, logprobs("lo"))
      )
      const top = [{ token: "x", logprob: -2 }]
      assert.deepStrictEqual(end?.logprobs, [
        { token: "Hel", logprob: -1, top },
        { token: "lo", logprob: -1, top }
      ])
    })
  )

  it.live("has the tools that the vendor ran, in their place", () =>
    Effect.gen(function* () {
      const tool = { index: 0, type: "search", arguments: '{"query":"x"}', output: "found" }
      const answer = yield* run(chunk({ executed_tools: [tool] }), chunk({ content: "Found." }))
      assert.deepStrictEqual<unknown>(answer.content, [
        {
          type: "hostedTool",
          id: "tool_0",
          name: "search",
          params: { query: "x" },
          result: "found",
          opaque: { provider: "acme", tool }
        },
        { type: "text", text: "Found." }
      ])
    })
  )

  it.live("has the words of a recording as text, and the recording", () =>
    Effect.gen(function* () {
      const first = { id: "audio_1", data: "AAA=", transcript: "Good " }
      const second = { data: "AQI=", transcript: "day" }
      const { content, text } = yield* run(chunk({ audio: first }), chunk({ audio: second }))
      assert.strictEqual(text, "Good day")
      assert.deepStrictEqual<unknown>(content.at(-1), {
        type: "media",
        source: { data: "AAABAg==", mediaType: "audio/pcm" },
        id: "audio_1",
        transcript: "Good day"
      })
    })
  )

  it.live("has no further blocks when there is nothing of the kind", () =>
    Effect.gen(function* () {
      const { content, end } = yield* run(chunk({ content: "Hi", annotations: [], images: [] }))
      assert.deepStrictEqual(content, [{ type: "text", text: "Hi" }])
      assert.isUndefined(end?.logprobs)
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
