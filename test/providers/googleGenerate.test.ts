import { assert, describe, it } from "@effect/vitest"
import { ModelEvent } from "effect-agent"
import { questionOf } from "./asked.ts"
import { answerOf } from "./reader.ts"
import { googleGenerate } from "../../src/providers/internal/gemini/protocol.ts"

const protocol = googleGenerate("google")
const server = { id: "google", endpoint: "generateContent", vendor: "google" } as const
const call = { model: "gemini-3-pro-preview", seed: "seed" }

/** What becomes of an answer that is one text: its events, and how it ended. */
const read = (body: string) => {
  const answer = answerOf(protocol, call)
  answer.push(new TextEncoder().encode(body))
  answer.end()
  return { events: answer.take(), outcome: answer.outcome }
}

const sse = (...chunks: ReadonlyArray<unknown>) =>
  chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`).join("")

/** A chunk of these parts. */
const says = (parts: ReadonlyArray<unknown>, finishReason?: string) => ({
  candidates: [
    { content: { role: "model", parts }, ...(finishReason === undefined ? {} : { finishReason }) }
  ],
  responseId: "r1"
})

/** The message that a complete answer is. */
const message = (...chunks: ReadonlyArray<unknown>) => {
  const { events, outcome } = read(sse(...chunks))
  assert.strictEqual(outcome, "complete")
  return ModelEvent.toAssistant(events.reduce(ModelEvent.append, ModelEvent.emptyReply), {
    id: "m1",
    timestamp: 0,
    provider: "",
    model: "",
    protocol: ""
  })
}

const failure = (body: string) => {
  const { events, outcome } = read(body)
  assert.isFalse(events.some(({ _tag }) => _tag === "Finish" || _tag === "ToolCallEnd"))
  return typeof outcome === "string" ? assert.fail(outcome) : outcome
}

describe("googleGenerate", () => {
  it("tells text as it comes", () => {
    const { events } = read(
      sse(says([{ text: "Hel" }]), says([{ text: "lo" }]), says([{ text: "" }], "STOP"))
    )
    assert.deepStrictEqual(events, [
      {
        _tag: "Start",
        provider: "google",
        model: "gemini-3-pro-preview",
        protocol: "google-generative",
        responseId: "r1"
      },
      { _tag: "TextStart", contentIndex: 0 },
      { _tag: "TextDelta", contentIndex: 0, delta: "Hel" },
      { _tag: "TextDelta", contentIndex: 0, delta: "lo" },
      { _tag: "TextEnd", contentIndex: 0 },
      { _tag: "Finish", stopReason: "stop" }
    ])
  })

  it("tells thinking from text, and remembers which piece was signed", () => {
    const { content } = message(
      says([{ text: "I wonder", thought: true }]),
      says([{ text: "It " }, { text: "is", thoughtSignature: "c2ln" }]),
      says([{ text: " so" }]),
      says([{ text: "", thoughtSignature: "ZW5k" }], "STOP")
    )
    assert.deepStrictEqual(content, [
      { type: "thinking", text: "I wonder" },
      {
        type: "text",
        text: "It is so",
        opaque: {
          provider: "google",
          signed: [
            { from: 3, to: 5, thoughtSignature: "c2ln" },
            { from: 8, to: 8, thoughtSignature: "ZW5k" }
          ]
        }
      }
    ])
  })

  it("gives calls without ids ids of their own, and keeps those that came", () => {
    const { content, stopReason } = message(
      says([
        { functionCall: { name: "look", args: { at: 1 } }, thoughtSignature: "c2ln" },
        { functionCall: { name: "look", args: { at: 2 } } },
        { functionCall: { name: "now", id: "abc" } },
        { functionCall: { name: "now", id: "abc", args: {} } }
      ]),
      says([{ text: "" }], "STOP")
    )
    assert.strictEqual(stopReason, "toolUse")
    assert.deepStrictEqual(content, [
      {
        type: "toolCall",
        id: "call_seed_0",
        name: "look",
        rawArguments: '{"at":1}',
        params: { at: 1 },
        opaque: { provider: "google", thoughtSignature: "c2ln" }
      },
      { type: "toolCall", id: "call_seed_1", name: "look", rawArguments: '{"at":2}', params: { at: 2 } },
      {
        type: "toolCall",
        id: "abc",
        name: "now",
        rawArguments: "{}",
        params: {},
        opaque: { provider: "google", id: "abc" }
      },
      {
        type: "toolCall",
        id: "abc_3",
        name: "now",
        rawArguments: "{}",
        params: {},
        opaque: { provider: "google", id: "abc" }
      }
    ])
  })

  const partial = (...partialArgs: ReadonlyArray<unknown>) =>
    says([{ functionCall: { partialArgs, willContinue: true } }])

  it("builds arguments from their pieces, and tells the JSON while it grows", () => {
    const chunks = [
      says([{ functionCall: { name: "write", willContinue: true } }]),
      partial({ jsonPath: "$.path", stringValue: 'a"b' }),
      partial({ jsonPath: "$.edits[0]['old text']", stringValue: "x\n", willContinue: true }),
      partial({ jsonPath: "$.edits[0]['old text']", stringValue: "y", willContinue: true }),
      partial({ jsonPath: "$.edits[0]['old text']", stringValue: "" }),
      partial({ jsonPath: "$.edits[1].line", numberValue: 3 }, { jsonPath: "$.force", boolValue: true }),
      partial({ jsonPath: "$.none", nullValue: "NULL_VALUE" }),
      says([{ functionCall: {} }]),
      says([{ functionCall: { name: "done" } }], "STOP")
    ]
    const json = '{"path":"a\\"b","edits":[{"old text":"x\\ny"},{"line":3}],"force":true,"none":null}'
    const { events } = read(sse(...chunks))
    const deltas = events.flatMap((event) => (event._tag === "ToolCallDelta" ? [event] : []))
    const first = deltas.filter(({ contentIndex }) => contentIndex === 0).map(({ delta }) => delta)
    assert.isAbove(first.length, 5)
    assert.strictEqual(first.join(""), json)
    assert.deepStrictEqual(
      message(...chunks).content.map((block) => (block.type === "toolCall" ? block.rawArguments : "")),
      [json, "{}"]
    )
  })

  it("adds nothing to a call that is over", () => {
    const { content } = message(
      says([{ functionCall: { name: "write", args: { path: "a" } } }]),
      says([{ functionCall: { args: { path: "b" } } }], "STOP")
    )
    assert.deepStrictEqual(
      content.map((block) => (block.type === "toolCall" ? [block.name, block.params] : [])),
      [
        ["write", { path: "a" }],
        ["", { path: "b" }]
      ]
    )
  })

  it("leaves arguments that the length cut as they are", () => {
    const { content, stopReason } = message(
      says([{ functionCall: { name: "write", willContinue: true } }]),
      partial({ jsonPath: "$.text", stringValue: "half a sen", willContinue: true }),
      says([], "MAX_TOKENS")
    )
    assert.strictEqual(stopReason, "length")
    assert.deepStrictEqual(content, [
      { type: "toolCall", id: "call_seed_0", name: "write", rawArguments: '{"text":"half a sen' }
    ])
  })

  it("takes a path for what it is: a name", () => {
    const { content } = message(
      says([{ functionCall: { name: "set", willContinue: true } }]),
      partial(
        { jsonPath: "$.__proto__.polluted", boolValue: true },
        { jsonPath: "$.list[900000000]", numberValue: 1 },
        { jsonPath: "$", stringValue: "nowhere" },
        { jsonPath: `$${".a".repeat(10_000)}`, stringValue: "too deep" }
      ),
      says([{ functionCall: {} }], "STOP")
    )
    const [block] = content
    assert.strictEqual(
      block?.type === "toolCall" ? block.rawArguments : "",
      '{"__proto__":{"polluted":true},"list":[1]}'
    )
    assert.isFalse("polluted" in {})
  })

  it("does not take arguments that cannot be written for none", () => {
    const deep = `${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`
    const { events, outcome } = read(
      `data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":${deep}}}]},"finishReason":"STOP"}]}\n\n`
    )
    assert.deepInclude(outcome, { _tag: "Protocol", kind: "badShape" })
    assert.isUndefined(events.find((event) => event._tag === "ToolCallEnd"))
  })

  it("has code and searches that Google ran as hosted tools, in their place", () => {
    const code = { executableCode: { language: "PYTHON", code: "1+1" }, thoughtSignature: "c2ln" }
    const result = { codeExecutionResult: { outcome: "OUTCOME_OK", output: "2\n" } }
    const failed = { codeExecutionResult: { outcome: "OUTCOME_FAILED", output: "oops", id: "c2" } }
    const search = { toolCall: { id: "s1", toolType: "GOOGLE_SEARCH_WEB", args: { queries: ["q"] } } }
    const hits = { toolResponse: { id: "s1", toolType: "GOOGLE_SEARCH_WEB", response: { hits: 1 } } }
    const { content } = message(
      says([{ text: "Let me see" }, code, { text: "" }]),
      says([result, { text: "2" }, failed, search, hits], "STOP")
    )
    const ran = (id: string, name: string, rest: object, part: object) => ({
      type: "hostedTool",
      id,
      name,
      ...rest,
      opaque: { provider: "google", part }
    })
    const params = { language: "PYTHON", code: "1+1" }
    assert.deepStrictEqual<unknown>(content, [
      { type: "text", text: "Let me see" },
      ran("hosted_seed_0", "code_execution", { params }, code),
      ran("hosted_seed_0", "code_execution", { result: { outcome: "OUTCOME_OK", output: "2\n" } }, result),
      { type: "text", text: "2" },
      ran(
        "c2",
        "code_execution",
        { result: { outcome: "OUTCOME_FAILED", output: "oops" }, isError: true },
        failed
      ),
      ran("s1", "google_search_web", { params: { queries: ["q"] } }, search),
      ran("s1", "google_search_web", { result: { hits: 1 } }, hits)
    ])
  })

  it("keeps parts that no block stands for, in their place", () => {
    const news = { somethingNew: { a: 1 }, thoughtSignature: "c2ln" }
    const sketch = { inlineData: { mimeType: "image/png", data: "AAAA" }, thought: true }
    const { content } = message(says([{ text: "a" }, news, sketch, { text: "b" }], "STOP"))
    assert.deepStrictEqual(content, [
      { type: "text", text: "a" },
      { type: "text", text: "", opaque: { provider: "google", part: news } },
      { type: "thinking", text: "", redacted: true, opaque: { provider: "google", part: sketch } },
      { type: "text", text: "b" }
    ])
  })

  it("has citations as sources, each page once", () => {
    const cited = (uri: string, startIndex: number) => ({ uri, startIndex, endIndex: startIndex + 5 })
    const { content } = message(
      { candidates: [{ content: { parts: [{ text: "Fine" }] } }] },
      { candidates: [{ citationMetadata: { citationSources: [cited("https://a.test", 0)] } }] },
      {
        candidates: [
          {
            citationMetadata: {
              citations: [cited("https://a.test", 9), { title: "A book", startIndex: 1 }, { startIndex: 2 }]
            },
            finishReason: "STOP"
          }
        ]
      }
    )
    assert.deepStrictEqual(content, [
      { type: "text", text: "Fine" },
      {
        type: "source",
        sourceType: "url",
        url: "https://a.test",
        opaque: { provider: "google", citations: [cited("https://a.test", 0), cited("https://a.test", 9)] }
      },
      {
        type: "source",
        sourceType: "document",
        title: "A book",
        opaque: { provider: "google", citations: [{ title: "A book", startIndex: 1 }] }
      }
    ])
  })

  it("has the search behind an answer, its pages with the passages that rely on them, and documents", () => {
    const searchEntryPoint = { renderedContent: "<b>weather</b>" }
    const supports = [
      { segment: { endIndex: 4, text: "Fine" }, groundingChunkIndices: [0, 1, 7], confidenceScores: [0.5] },
      { segment: { startIndex: 5, endIndex: 9, text: "Dry." }, groundingChunkIndices: [0] }
    ]
    const groundingMetadata = {
      webSearchQueries: ["weather"],
      searchEntryPoint,
      groundingChunks: [
        { web: { uri: "https://a.test", title: "A" } },
        {
          retrievedContext: { fileSearchStore: "fileSearchStores/s", title: "notes.txt", text: "It is fine." }
        },
        { maps: { uri: "https://maps.test", title: "Oslo" } }
      ],
      groundingSupports: supports
    }
    const { content } = message(
      { candidates: [{ content: { parts: [{ text: "Fine Dry." }] }, groundingMetadata: {} }] },
      { candidates: [{ groundingMetadata }] },
      { candidates: [{ groundingMetadata, finishReason: "STOP" }] }
    )
    assert.deepStrictEqual(content, [
      { type: "text", text: "Fine Dry." },
      {
        type: "hostedTool",
        id: "hosted_seed_0",
        name: "google_search",
        params: { queries: ["weather"] },
        result: { searchEntryPoint }
      },
      {
        type: "source",
        sourceType: "url",
        url: "https://a.test",
        title: "A",
        citedText: "Fine\nDry.",
        opaque: { provider: "google", supports }
      },
      {
        type: "source",
        sourceType: "document",
        title: "notes.txt",
        id: "fileSearchStores/s",
        citedText: "It is fine.",
        opaque: { provider: "google", supports: supports.slice(0, 1) }
      },
      { type: "source", sourceType: "url", url: "https://maps.test", title: "Oslo" }
    ])
  })

  it("has the pages that Google read for the model, and those that it could not read", () => {
    const urlMetadata = [
      { retrievedUrl: "https://a.test", urlRetrievalStatus: "URL_RETRIEVAL_STATUS_SUCCESS" },
      { retrievedUrl: "https://b.test", urlRetrievalStatus: "URL_RETRIEVAL_STATUS_PAYWALL" }
    ]
    const groundingChunks = [{ web: { uri: "https://a.test", title: "A" } }]
    const { content } = message(
      { candidates: [{ content: { parts: [{ text: "Yes" }] }, urlContextMetadata: { urlMetadata } }] },
      { candidates: [{ groundingMetadata: { groundingChunks }, finishReason: "STOP" }] }
    )
    assert.deepStrictEqual(content, [
      { type: "text", text: "Yes" },
      {
        type: "hostedTool",
        id: "hosted_seed_0",
        name: "url_context",
        params: { urls: ["https://a.test", "https://b.test"] },
        result: { urlMetadata }
      },
      { type: "source", sourceType: "url", url: "https://a.test", title: "A" }
    ])
  })

  it("counts cached tokens in, thoughts as output, and takes the last count there is", () => {
    const usageMetadata = {
      promptTokenCount: 100,
      cachedContentTokenCount: 80,
      candidatesTokenCount: 7,
      thoughtsTokenCount: 30,
      toolUsePromptTokenCount: 40,
      totalTokenCount: 177
    }
    const { usage } = message(
      { usageMetadata: { promptTokenCount: 100, totalTokenCount: 100 } },
      { ...says([{ text: "a" }]), usageMetadata },
      { ...says([], "STOP"), usageMetadata: { trafficType: "ON_DEMAND" } }
    )
    assert.deepStrictEqual(usage, {
      input: 140,
      output: 37,
      cacheRead: 80,
      cacheWrite: 0,
      reasoning: 30,
      total: 177
    })
  })

  it("has the actions on a screen as calls of the tool for it", () => {
    const names = (question: Parameters<typeof questionOf>[1]) => {
      const answer = answerOf(protocol, { ...call, question: questionOf(server, question) })
      const parts = [
        { functionCall: { name: "click_at", args: { x: 5 } } },
        { functionCall: { name: "look", args: {} } }
      ]
      answer.push(new TextEncoder().encode(sse(says(parts, "STOP"))))
      answer.end()
      return answer.take().flatMap((event) => {
        if (event._tag === "ToolCallStart") return [event.name]
        return event._tag === "ToolCallEnd" ? [event.rawArguments, JSON.stringify(event.opaque ?? {})] : []
      })
    }
    const tools = ["computer", "look"].map((name) => ({ name, description: "", parameters: {} }))
    const question = { model: "gemini-3-flash", messages: [], tools, options: {} }
    const hostedTools = [{ type: "computerUse", width: 9, height: 9 }] as const
    assert.deepStrictEqual(names({ ...question, options: { hostedTools } }), [
      "computer",
      "look",
      '{"action":"click_at","x":5}',
      '{"provider":"google","action":"click_at"}',
      "{}",
      "{}"
    ])
    assert.deepStrictEqual(names(question).slice(0, 2), ["click_at", "look"])
  })

  it("has the probabilities of its tokens", () => {
    const chunk = (chosen: object, ...others: ReadonlyArray<object>) => ({
      candidates: [
        {
          content: { parts: [{ text: "x" }] },
          logprobsResult: { chosenCandidates: [chosen], topCandidates: [{ candidates: others }] }
        }
      ]
    })
    const { events } = read(
      sse(
        chunk({ token: "Yes", tokenId: 1, logProbability: -0.1 }, { token: "No", logProbability: -2 }),
        chunk({ token: "!", logProbability: 0 }),
        says([], "STOP")
      )
    )
    const end = events.at(-1)
    assert.deepStrictEqual(end?._tag === "Finish" ? end.logprobs : [], [
      { token: "Yes", logprob: -0.1, top: [{ token: "No", logprob: -2 }] },
      { token: "!", logprob: 0 }
    ])
  })

  it("reads the first candidate only", () => {
    const chunk = {
      candidates: [
        { index: 1, content: { parts: [{ text: "other" }] }, finishReason: "STOP" },
        { index: 0, content: { parts: [{ text: "mine" }] }, finishReason: "STOP" }
      ]
    }
    assert.deepStrictEqual(message(chunk).content, [{ type: "text", text: "mine" }])
  })

  it("reads an answer that is one JSON text, or a list of chunks", () => {
    const chunks = [says([{ text: "a" }]), says([{ text: "b" }], "STOP")]
    for (const body of [
      JSON.stringify(chunks, undefined, 2),
      JSON.stringify(says([{ text: "ab" }], "STOP"))
    ]) {
      const { events, outcome } = read(body)
      assert.strictEqual(outcome, "complete")
      assert.strictEqual(
        events.map((event) => (event._tag === "TextDelta" ? event.delta : "")).join(""),
        "ab"
      )
    }
  })
})

describe("how a Gemini answer ends", () => {
  it("is complete with a finish reason only", () => {
    const cut = sse(says([{ functionCall: { name: "f", args: {} } }]))
    assert.strictEqual(failure(cut)._tag, "StreamTruncated")
    assert.strictEqual(failure(`${cut}data: [DONE]\n\n`)._tag, "StreamTruncated")
    assert.strictEqual(failure(`${cut}data: {"candidates": [{"con`)._tag, "StreamTruncated")
    assert.strictEqual(read(`${cut}${sse(says([], "STOP"))}data: [DONE]\n\n`).outcome, "complete")
  })

  it("is complete with the word for it of servers that stand in for Google", () => {
    const { stopReason } = message(says([{ functionCall: { name: "f", args: {} } }], "FUNCTION_CALL"))
    assert.strictEqual(stopReason, "toolUse")
  })

  it("is over with a finish reason only where it tells something: not on every chunk, not without the usage", () => {
    const usageMetadata = { promptTokenCount: 1, totalTokenCount: 2 }
    const outcomes = (...chunks: ReadonlyArray<object>) => {
      const answer = answerOf(protocol, call)
      return chunks.map((chunk) => {
        answer.push(new TextEncoder().encode(sse(chunk)))
        return answer.outcome
      })
    }
    const [a, last] = [says([{ text: "a" }]), says([{ text: "" }], "STOP")]
    assert.deepStrictEqual(outcomes(a, { ...last, usageMetadata }), ["open", "complete"])
    assert.deepStrictEqual(outcomes(a, last, { usageMetadata }), ["open", "open", "open"])
    const every = { ...says([{ text: "a" }], "STOP"), usageMetadata }
    assert.deepStrictEqual(outcomes(every, every, every), ["open", "open", "open"])
  })

  it("is no answer when nothing came", () => {
    assert.deepInclude(failure(""), { _tag: "Protocol", kind: "empty" })
  })

  it("is filtered when the prompt was blocked, and says why", () => {
    const promptFeedback = { blockReason: "SAFETY", safetyRatings: [] }
    const { content, stopReason } = message({ promptFeedback })
    assert.strictEqual(stopReason, "contentFilter")
    assert.deepStrictEqual(content, [
      { type: "text", text: "", opaque: { provider: "google", promptFeedback } }
    ])
  })

  it("is filtered when the answer was stopped, and keeps what was said", () => {
    for (const finishReason of ["SAFETY", "RECITATION", "PROHIBITED_CONTENT"]) {
      const { content, stopReason } = message(says([{ text: "Once" }]), { candidates: [{ finishReason }] })
      assert.strictEqual(stopReason, "contentFilter")
      assert.deepStrictEqual(content, [
        { type: "text", text: "Once", opaque: { provider: "google", filter: { finishReason } } }
      ])
    }
  })

  it("is cut by the length, even with nothing said", () => {
    const { content, stopReason } = message({
      candidates: [{ content: { role: "model" }, finishReason: "MAX_TOKENS" }]
    })
    assert.strictEqual(stopReason, "length")
    assert.deepStrictEqual(content, [])
  })

  it("fails, and may be tried again, when the model wrote no good call", () => {
    for (const finishReason of ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "NEVER_HEARD_OF"]) {
      const reason = failure(
        sse({
          candidates: [
            {
              content: { parts: [{ functionCall: { name: "f" } }] },
              finishReason,
              finishMessage: "What was that?"
            }
          ]
        })
      )
      assert.strictEqual(reason._tag, "ServerError")
      assert.isTrue(reason.isRetryable)
      assert.strictEqual(reason.detail, `The answer ended with ${finishReason}: What was that?`)
    }
  })

  const overloaded = { error: { code: 503, message: "The model is overloaded.", status: "UNAVAILABLE" } }

  it("fails with the vendor's words, wherever they stand", () => {
    const begun = sse(says([{ text: "a" }], "STOP"))
    for (const body of [
      sse(overloaded),
      `${begun}${sse(overloaded)}`,
      `${begun}${JSON.stringify(overloaded, undefined, 2)}\n`,
      JSON.stringify(overloaded),
      JSON.stringify([overloaded])
    ]) {
      const reason = failure(body)
      assert.strictEqual(reason.detail, "The model is overloaded.")
      assert.isTrue(reason.isRetryable)
    }
  })

  it("fails on what is no chunk", () => {
    for (const data of ["[1]", '{"candidates":"a"}', '{"candidates":[{"content":"a"}]}']) {
      assert.deepInclude(failure(`data: ${data}\n\n`), { _tag: "Protocol", kind: "badShape" })
    }
    assert.deepInclude(failure("data: {oops}\n\ndata: {}\n\n"), { _tag: "Protocol", kind: "badJson" })
  })

  it("has images and other files that the model made, with what Google wants back", () => {
    const { content } = message(
      says(
        [
          { inlineData: { mimeType: "image/png", data: "AAAA" }, thoughtSignature: "c2ln" },
          { fileData: { fileUri: "gs://b/a.wav", mimeType: "audio/wav" } },
          { text: "Look" }
        ],
        "STOP"
      )
    )
    assert.deepStrictEqual(content, [
      {
        type: "media",
        source: { data: "AAAA", mediaType: "image/png" },
        opaque: { provider: "google", thoughtSignature: "c2ln" }
      },
      { type: "media", source: { url: "gs://b/a.wav", mediaType: "audio/wav" } },
      { type: "text", text: "Look" }
    ])
  })

  it("is the same however the bytes are cut", () => {
    const body = sse(
      says([{ text: "Grüße 👋", thought: true, thoughtSignature: "c2ln" }]),
      says([{ functionCall: { name: "f", args: { é: "👋" } } }]),
      says([{ text: "" }], "STOP")
    )
    const bytes = new TextEncoder().encode(body)
    const whole = read(body)
    for (let at = 0; at <= bytes.length; at++) {
      const answer = answerOf(protocol, call)
      answer.push(bytes.subarray(0, at))
      answer.push(bytes.subarray(at))
      answer.end()
      assert.deepStrictEqual({ events: answer.take(), outcome: answer.outcome }, whole)
    }
  })
})
