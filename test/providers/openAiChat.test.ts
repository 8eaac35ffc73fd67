import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import { type ModelEvent, type ProviderError } from "effect-agent"
import { ReplyWriter } from "effect-agent/providers"
import { common } from "../../src/providers/internal/openAiChat/compat.ts"
import { openAiChat } from "../../src/providers/internal/openAiChat/protocol.ts"
import { isReason } from "../../src/providers/Protocol.ts"

const protocol = openAiChat("acme", common)

interface Replayed {
  readonly events: ReadonlyArray<ModelEvent.ModelEvent>
  readonly failure: ProviderError.Reason | undefined
}

/** Runs chunks through the protocol: no HTTP, no Effect. "[DONE]" is the sentinel. */
const replay = (...chunks: ReadonlyArray<unknown>): Replayed => {
  const made = { model: "m-1", seed: "s1" }
  const reply = new ReplyWriter.ReplyWriter(protocol, made)
  const decoder = protocol.decoder(made, reply)
  let told = false
  for (const chunk of chunks) {
    if (chunk === "[DONE]") {
      told = true
      break
    }
    const data = typeof chunk === "string" ? chunk : JSON.stringify(chunk)
    const isLast = decoder.step({ event: "", data })
    if (isReason(isLast)) return { events: reply.take(), failure: isLast }
  }
  const failure = decoder.end(told)
  return { events: reply.take(), failure }
}

const delta = (fields: object, finish: string | null = null) => ({
  id: "chatcmpl-1",
  choices: [{ index: 0, delta: fields, finish_reason: finish }]
})
const text = (content: string) => delta({ content })
const call = (index: number | undefined, fields: { id?: string | null; name?: string; json?: unknown }) =>
  delta({
    tool_calls: [
      {
        ...(index === undefined ? {} : { index }),
        ...(fields.id === undefined ? {} : { id: fields.id }),
        function: {
          ...(fields.name === undefined ? {} : { name: fields.name }),
          ...(fields.json === undefined ? {} : { arguments: fields.json })
        }
      }
    ]
  })
const finish = (reason: string) => delta({}, reason)
const usage = (fields: object) => ({ id: "chatcmpl-1", choices: [], usage: fields })

const ofTag = <Tag extends ModelEvent.ModelEvent["_tag"]>({ events }: Replayed, tag: Tag) =>
  events.filter(
    (event): event is Extract<ModelEvent.ModelEvent, { readonly _tag: Tag }> => event._tag === tag
  )

/** The complete calls, as [id, name, arguments]. */
const calls = (replayed: Replayed) =>
  ofTag(replayed, "ToolCallStart").flatMap((start) =>
    ofTag(replayed, "ToolCallEnd")
      .filter((end) => end.contentIndex === start.contentIndex)
      .map((end) => [start.id, start.name, end.rawArguments])
  )

const said = (replayed: Replayed, tag: "TextDelta" | "ThinkingDelta") =>
  ofTag(replayed, tag)
    .map((event) => event.delta)
    .join("")

const lastOf = (replayed: Replayed) => ofTag(replayed, "Finish")[0]

describe("openAiChat", () => {
  it("says who answers, what, and how it ended (row 16)", () => {
    assert.deepStrictEqual(
      replay(
        delta({ role: "assistant", content: "" }),
        text("Hel"),
        text("lo"),
        finish("stop"),
        usage({ prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 }),
        "[DONE]"
      ),
      {
        events: [
          {
            _tag: "Start",
            provider: "acme",
            model: "m-1",
            protocol: "openai-chat",
            responseId: "chatcmpl-1"
          },
          { _tag: "TextStart", contentIndex: 0 },
          { _tag: "TextDelta", contentIndex: 0, delta: "Hel" },
          { _tag: "TextDelta", contentIndex: 0, delta: "lo" },
          { _tag: "TextEnd", contentIndex: 0 },
          {
            _tag: "Finish",
            stopReason: "stop",
            usage: { input: 5, output: 2, cacheRead: 0, cacheWrite: 0, total: 7 }
          }
        ],
        failure: undefined
      }
    )
  })

  it("reads the first choice only", () => {
    const other = (content: string) => ({ choices: [{ index: 1, delta: { content } }] })
    assert.strictEqual(
      said(replay(text("a"), other("x"), text("b"), other("y"), finish("stop")), "TextDelta"),
      "ab"
    )
  })

  it("reads a whole answer in place of a stream", () => {
    const replayed = replay({
      id: "chatcmpl-1",
      choices: [
        {
          index: 0,
          message: {
            content: "Hi",
            tool_calls: [
              { id: "a", function: { name: "f", arguments: "{}" } },
              { id: "b", function: { name: "f", arguments: "{}" } }
            ]
          },
          finish_reason: "tool_calls"
        }
      ]
    })
    assert.strictEqual(said(replayed, "TextDelta"), "Hi")
    assert.deepStrictEqual(calls(replayed), [
      ["a", "f", "{}"],
      ["b", "f", "{}"]
    ])
  })

  it("takes the delta where a server sends the whole message too", () => {
    const both = (content: string, all: string) => ({
      choices: [{ delta: { content }, message: { content: all } }]
    })
    assert.strictEqual(said(replay(both("a", "a"), both("b", "ab"), finish("stop")), "TextDelta"), "ab")
  })

  it("keeps what only looks like nothing", () => {
    assert.strictEqual(said(replay(text("0"), text(" "), finish("stop")), "TextDelta"), "0 ")
  })

  describe("thinking", () => {
    it("has many names, and is never said twice (row 61)", () => {
      for (const name of ["reasoning_content", "reasoning", "reasoning_text"]) {
        const replayed = replay(delta({ content: "", [name]: "hm" }), text("ok"), finish("stop"))
        assert.deepStrictEqual([said(replayed, "ThinkingDelta"), said(replayed, "TextDelta")], ["hm", "ok"])
      }
      const twice = delta({
        reasoning: "hm",
        reasoning_content: "hm",
        reasoning_details: [{ type: "reasoning.text", text: "hm" }]
      })
      assert.strictEqual(said(replay(twice, text("ok"), finish("stop")), "ThinkingDelta"), "hm")
    })

    it("comes in parts of the content", () => {
      const part = { type: "thinking", thinking: [{ type: "text", text: "hm" }] }
      const replayed = replay(delta({ content: [part, { type: "text", text: "ok" }] }), finish("stop"))
      assert.deepStrictEqual([said(replayed, "ThinkingDelta"), said(replayed, "TextDelta")], ["hm", "ok"])
    })

    it("carries what the provider wants back, its pieces joined", () => {
      const detail = (fields: object) =>
        delta({ reasoning_details: [{ type: "reasoning.text", index: 0, ...fields }] })
      const replayed = replay(
        detail({ text: "a", signature: "" }),
        detail({ text: "b" }),
        detail({ signature: "sig" }),
        text("ok"),
        finish("stop")
      )
      assert.strictEqual(said(replayed, "ThinkingDelta"), "ab")
      assert.deepStrictEqual(ofTag(replayed, "ThinkingEnd"), [
        {
          _tag: "ThinkingEnd",
          contentIndex: 0,
          opaque: {
            provider: "acme",
            reasoningDetails: [{ type: "reasoning.text", index: 0, text: "ab", signature: "sig" }]
          }
        }
      ])
    })

    it("may be hidden altogether", () => {
      const sealed = { type: "reasoning.encrypted", data: "x" }
      const replayed = replay(
        delta({ reasoning_details: [sealed] }),
        call(0, { id: "a", name: "f", json: "{}" }),
        finish("tool_calls")
      )
      assert.deepStrictEqual(ofTag(replayed, "ThinkingEnd"), [
        {
          _tag: "ThinkingEnd",
          contentIndex: 0,
          opaque: { provider: "acme", reasoningDetails: [sealed] },
          redacted: true
        }
      ])
    })
  })

  describe("tool calls", () => {
    const complete = (...chunks: ReadonlyArray<unknown>) =>
      calls(replay(...chunks, finish("tool_calls"), "[DONE]"))

    it("come in pieces, interleaved by index (row 55)", () => {
      assert.deepStrictEqual(
        complete(
          call(0, { id: "a", name: "f", json: "" }),
          call(1, { id: "b", name: "g", json: "" }),
          call(0, { json: '{"x":' }),
          call(1, { json: "{" }),
          call(0, { json: "1}" }),
          call(1, { json: "}" })
        ),
        [
          ["a", "f", '{"x":1}'],
          ["b", "g", "{}"]
        ]
      )
    })

    it("come whole, all with index 0", () => {
      assert.deepStrictEqual(
        complete(call(0, { id: "a", name: "f", json: "{}" }), call(0, { id: "b", name: "g", json: "{}" })),
        [
          ["a", "f", "{}"],
          ["b", "g", "{}"]
        ]
      )
    })

    it("come without an index, by id or in order", () => {
      assert.deepStrictEqual(
        complete(
          call(undefined, { id: "a", name: "f", json: '{"x"' }),
          call(undefined, { json: ":1}" }),
          call(undefined, { id: "b", name: "g", json: "{" }),
          call(undefined, { id: "b", json: "}" })
        ),
        [
          ["a", "f", '{"x":1}'],
          ["b", "g", "{}"]
        ]
      )
    })

    it("may count from any index", () => {
      assert.deepStrictEqual(
        complete(call(1e9, { id: "a", name: "f", json: "{" }), call(1e9, { json: "}" })),
        [["a", "f", "{}"]]
      )
    })

    it("may repeat or blank their id and name (row 55)", () => {
      assert.deepStrictEqual(
        complete(
          call(0, { id: "a", name: "f", json: "" }),
          call(0, { id: "a", name: "f", json: "{" }),
          call(0, { id: "", name: "", json: "}" }),
          call(0, { id: null, json: " " })
        ),
        [["a", "f", "{} "]]
      )
    })

    it("get an id where there is none, and one each where two share one (row 55)", () => {
      assert.deepStrictEqual(
        complete(call(0, { name: "f", json: "{}" }), call(1, { name: "f", json: "{}" })),
        [
          ["call_s1_0", "f", "{}"],
          ["call_s1_1", "f", "{}"]
        ]
      )
      assert.deepStrictEqual(complete(call(0, { id: "a", name: "f" }), call(1, { id: "a", name: "f" })), [
        ["a", "f", ""],
        ["a_1", "f", ""]
      ])
    })

    it("wait for their name (row 57)", () => {
      const replayed = replay(
        call(0, { id: "a", json: "{" }),
        call(0, { name: "f", json: "}" }),
        finish("stop")
      )
      assert.deepStrictEqual(replayed.events.slice(1, 4), [
        { _tag: "ToolCallStart", contentIndex: 0, id: "a", name: "f" },
        { _tag: "ToolCallDelta", contentIndex: 0, delta: "{" },
        { _tag: "ToolCallDelta", contentIndex: 0, delta: "}" }
      ])
    })

    it("may have a value where its text belongs", () => {
      assert.deepStrictEqual(complete(call(0, { id: "a", name: "f", json: { x: 1 } })), [
        ["a", "f", '{"x":1}']
      ])
    })

    it("keep what Google wants back", () => {
      const extra = { google: { thought_signature: "sig" } }
      const wire = { index: 0, id: "a", function: { name: "f", arguments: "{}" }, extra_content: extra }
      const replayed = replay(delta({ tool_calls: [wire] }), finish("tool_calls"))
      assert.deepStrictEqual(ofTag(replayed, "ToolCallEnd")[0]?.opaque, {
        provider: "acme",
        extraContent: extra
      })
      // It comes with the first piece, and with none after it; or with a later one.
      for (const order of [
        [wire, { index: 0, function: { arguments: "" } }, { index: 0, function: { arguments: "" } }],
        [
          { ...wire, extra_content: undefined },
          { index: 0, extra_content: extra, function: { arguments: "" } }
        ],
        [wire, { index: 0, extra_content: { google: { thought_signature: "other" } }, function: {} }]
      ]) {
        const pieces = replay(...order.map((piece) => delta({ tool_calls: [piece] })), finish("tool_calls"))
        assert.deepStrictEqual(ofTag(pieces, "ToolCallEnd")[0]?.opaque, {
          provider: "acme",
          extraContent: extra
        })
      }
    })
  })

  describe("the end", () => {
    const a = call(0, { id: "a", name: "f", json: "{}" })

    it("is a finish reason, in our words (row 17)", () => {
      const reasons = {
        stop: "stop",
        length: "length",
        content_filter: "contentFilter",
        eos: "stop",
        max_tokens: "length"
      }
      for (const [wire, ours] of Object.entries(reasons)) {
        assert.strictEqual(lastOf(replay(text("a"), finish(wire)))?.stopReason, ours, wire)
      }
    })

    it("is toolUse when there are calls, whatever the word, but for a cut (row 56)", () => {
      assert.strictEqual(lastOf(replay(a, finish("stop")))?.stopReason, "toolUse")
      assert.strictEqual(lastOf(replay(a, finish("length")))?.stopReason, "length")
    })

    it("tells a refusal", () => {
      const replayed = replay(delta({ refusal: "I can't." }), finish("stop"))
      assert.deepStrictEqual(
        [said(replayed, "TextDelta"), lastOf(replayed)?.stopReason],
        ["I can't.", "refusal"]
      )
    })

    it("keeps the last finish reason that says something", () => {
      assert.strictEqual(
        lastOf(replay(text("a"), finish("length"), delta({}, ""), delta({}), "[DONE]"))?.stopReason,
        "length"
      )
    })

    it("is the sentinel, for servers that give no reason", () => {
      assert.strictEqual(lastOf(replay(text("a"), "[DONE]"))?.stopReason, "stop")
      assert.strictEqual(lastOf(replay(a, "[DONE]"))?.stopReason, "toolUse")
    })

    it("is missing when the stream just stops, and no block looks complete then", () => {
      const cut = replay(text("a"), call(0, { id: "a", name: "f", json: "{}" }))
      assert.strictEqual(cut.failure?._tag, "StreamTruncated")
      assert.deepStrictEqual(
        cut.events.map((event) => event._tag),
        ["Start", "TextStart", "TextDelta", "TextEnd", "ToolCallStart", "ToolCallDelta"]
      )
    })

    it("is missing when a gateway ends what was cut", () => {
      assert.strictEqual(
        replay(call(0, { id: "a", name: "f", json: '{"x' }), "[DONE]").failure?._tag,
        "StreamTruncated"
      )
    })

    it("is no answer when nothing was said", () => {
      const { failure } = replay("[DONE]")
      assert.deepStrictEqual(
        [failure?._tag, failure?._tag === "Protocol" && failure.kind],
        ["Protocol", "empty"]
      )
    })

    it("is for calls, although none is there, if the server says so", () => {
      const { events } = replay(text("Let me see."), finish("tool_calls"))
      assert.deepInclude(events.at(-1), { _tag: "Finish", stopReason: "toolUse" })
    })

    it.each(["abort", "cancelled", "network_error", "timeout", "MALFORMED_FUNCTION_CALL"])(
      "is a failure of the server with the reason %s",
      (reason) => {
        assert.strictEqual(replay(text("Hel"), finish(reason)).failure?._tag, "ServerError")
      }
    )

    it("is a failure of the server where OpenRouter tells it in the words of the vendor alone", () => {
      const choices = [{ index: 0, delta: {}, finish_reason: "stop", native_finish_reason: "network_error" }]
      const { failure } = replay({ id: "c", choices })
      assert.strictEqual(failure?._tag, "ServerError")
      assert.isTrue(failure?.isRetryable)
    })

    it("names a reason that nobody knows", () => {
      const { events } = replay(text("Hello"), finish("enough"))
      assert.deepInclude(events.at(-1), {
        _tag: "Finish",
        stopReason: "stop",
        unrepresented: ['the stop reason "enough"']
      })
      assert.notProperty(replay(text("Hello"), finish("eos")).events.at(-1), "unrepresented")
    })

    it("fails when the server says that it failed", () => {
      assert.strictEqual(replay(text("a"), finish("error")).failure?._tag, "ServerError")
      assert.strictEqual(
        replay(text("a"), finish("insufficient_system_resource")).failure?._tag,
        "Overloaded"
      )
    })
  })

  describe("failures in the stream", () => {
    it("come in every shape, with the vendor's words (rows 62, 260)", () => {
      const shapes: ReadonlyArray<readonly [object, ProviderError.Reason["_tag"], string]> = [
        [{ error: { message: "slow down", code: "rate_limit_exceeded" } }, "RateLimited", "slow down"],
        [
          { error: { message: "gone", code: 502 }, choices: [{ delta: {}, finish_reason: "error" }] },
          "ServerError",
          "gone"
        ],
        [{ error: "it broke" }, "ServerError", '"it broke"'],
        [{ object: "error", message: "engine died", code: 500 }, "ServerError", "engine died"],
        [{ error: { message: "no money", code: "insufficient_quota" } }, "QuotaExceeded", "no money"],
        [{ error: { message: "busy", type: "overloaded_error" } }, "Overloaded", "busy"]
      ]
      for (const [shape, tag, detail] of shapes) {
        const { failure } = replay(text("a"), shape)
        assert.deepStrictEqual([failure?._tag, failure?.detail], [tag, detail])
      }
    })

    it("are told from what is no chunk", () => {
      const kindOf = (data: unknown) => {
        const { failure } = replay(text("a"), data)
        return failure?._tag === "Protocol" ? failure.kind : failure?._tag
      }
      assert.strictEqual(kindOf("{not json"), "badJson")
      assert.strictEqual(kindOf("7"), "badShape")
      assert.strictEqual(kindOf(delta({ content: 7 })), "badShape")
      assert.strictEqual(kindOf(delta({ tool_calls: "x" })), "badShape")
    })

    it("are not made of fields of a wrong type that hold nothing", () => {
      const odd = [
        { choices: "none" },
        { choices: null },
        { choices: [null] },
        { choices: [{ delta: null }] }
      ]
      assert.strictEqual(replay(text("a"), ...odd, finish("stop")).failure, undefined)
    })
  })

  describe("usage", () => {
    const of = (...chunks: ReadonlyArray<unknown>) =>
      lastOf(replay(text("a"), finish("stop"), ...chunks, "[DONE]"))?.usage

    it("is the last that came, never a sum (row 59)", () => {
      const first = usage({ prompt_tokens: 5, completion_tokens: 1 })
      const last = usage({ prompt_tokens: 5, completion_tokens: 3 })
      assert.strictEqual(of(first, last)?.output, 3)
      assert.strictEqual(of(last, { choices: [], usage: null })?.output, 3)
      assert.strictEqual(of(), undefined)
    })

    it("includes what was read from a cache, and reasoning", () => {
      assert.deepStrictEqual(
        of(
          usage({
            prompt_tokens: 10,
            completion_tokens: 8,
            total_tokens: 18,
            prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 },
            completion_tokens_details: { reasoning_tokens: 6 },
            cost: 0.5
          })
        ),
        { input: 10, output: 8, cacheRead: 4, cacheWrite: 2, reasoning: 6, total: 18, cost: 0.5 }
      )
      assert.strictEqual(of(usage({ prompt_tokens: 10, prompt_cache_hit_tokens: 4 }))?.cacheRead, 4)
    })

    it("adds the reasoning where the vendor leaves it out", () => {
      const xai = {
        prompt_tokens: 10,
        completion_tokens: 2,
        total_tokens: 19,
        completion_tokens_details: { reasoning_tokens: 7 }
      }
      assert.strictEqual(of(usage(xai))?.output, 9)
    })

    it("may stand elsewhere", () => {
      assert.strictEqual(of({ choices: [], x_groq: { usage: { prompt_tokens: 3 } } })?.input, 3)
    })
  })

  /** No two of them share a frame: each is read in full. */
  const apart = (chunks: ReadonlyArray<object>) => chunks.map((chunk, created) => ({ ...chunk, created }))

  describe("events that differ in one string only", () => {
    const words = ['"', "\\", "\\u", "é🌍", "\n", "a", '{"content":"x"}', "\ud83d", "]}"]
    const pieces = Array.from({ length: 60 }, (_, index) => words[index % words.length] ?? "")

    it("are read as they are one by one", () => {
      const thinking = pieces.map((piece) => delta({ reasoning_content: piece }))
      const args = pieces.map((piece) => call(0, { json: piece }))
      const chunks = [...thinking, ...pieces.map(text), call(0, { id: "a", name: "f" }), ...args]
      const replayed = replay(...chunks, finish("stop"), "[DONE]")
      const whole = pieces.join("")
      assert.strictEqual(said(replayed, "ThinkingDelta"), whole)
      assert.strictEqual(said(replayed, "TextDelta"), whole)
      assert.deepStrictEqual(calls(replayed), [["a", "f", whole]])
      assert.deepStrictEqual(replayed, replay(...apart(chunks), finish("stop"), "[DONE]"))
    })

    it("are read as one by one when they say something else, too", () => {
      const withExtra = (json: string) =>
        delta({
          tool_calls: [{ index: 0, function: { arguments: json }, extra_content: { google: json.length } }]
        })
      const shapes: ReadonlyArray<(said: string) => object> = [
        (said) => delta({ content: said, reasoning: "hm" }),
        (said) => delta({ content: said, refusal: "no" }),
        (said) =>
          delta({ content: said, tool_calls: [{ index: 1, function: { name: "g", arguments: "{}" } }] }),
        (said) => delta({ content: said }, "length"),
        (said) => ({ ...text(said), usage: { completion_tokens: 3 } }),
        (said) => delta({ reasoning: said, reasoning_details: [{ type: "reasoning.text", text: "t" }] }),
        (said) => delta({ reasoning: said, reasoning_text: "again" }),
        (said) => call(0, { name: "f", json: said }),
        (said) => call(0, { id: "a", name: "f", json: said }),
        (said) => call(undefined, { json: said }),
        withExtra
      ]
      for (const shape of shapes) {
        const between = [usage({ completion_tokens: 9 }), finish("stop"), call(0, { id: "b", name: "g" })]
        const chunks = [call(0, { id: "a", name: "f" }), ...pieces.map(shape), ...between, shape("z")]
        assert.deepStrictEqual(replay(...chunks, "[DONE]"), replay(...apart(chunks), "[DONE]"))
      }
    })

    it("belong to the call that has their index now", () => {
      const chunks = ["a", "b"].flatMap((id) => [
        call(0, { id, name: "f" }),
        ...pieces.map((json) => call(0, { json }))
      ])
      const replayed = replay(...chunks, finish("tool_calls"), "[DONE]")
      assert.deepStrictEqual(
        calls(replayed),
        ["a", "b"].map((id) => [id, "f", pieces.join("")])
      )
    })
  })

  describe("padding of random length", () => {
    const paddings = ["", "a", "Xy9", '"', "\\", '",', "é"]
    const words = ["Hi", '"', ',"obfuscation":"x"', "\\", '\\",', "\n", '{"obfuscation":"x"}']
    /** Adds padding to a chunk, as its last member or before others. */
    const padded = (chunk: object, index: number) => {
      const obfuscation = paddings[index % paddings.length]
      return index % 2 === 0
        ? { ...chunk, obfuscation }
        : { created: 1, obfuscation, system_fingerprint: null, ...chunk }
    }

    it("changes no answer", () => {
      const pieces = Array.from({ length: 90 }, (_, index) => words[(index * 4) % words.length] ?? "")
      const opened = [...pieces.map(text), call(0, { id: "a", name: "f" })]
      const chunks = [...opened, ...pieces.map((json) => call(0, { json })), finish("tool_calls")]
      const replayed = replay(...chunks.map(padded), "[DONE]")
      assert.strictEqual(said(replayed, "TextDelta"), pieces.join(""))
      assert.deepStrictEqual(replayed, replay(...chunks, "[DONE]"))
    })
  })

  describe("events that differ in their delta only", () => {
    const deltas = Array.from({ length: 90 }, (_, index) => [
      call(index, { id: `c${index}`, name: "f" }),
      call(index, { json: '{"n":' }),
      call(index, { json: `"\\"delta\\":{${index}]"}` }),
      text(index % 7 === 0 ? "" : `w${index}`),
      delta(index % 5 === 0 ? { refusal: "no" } : { reasoning: "hm", content: null }),
      delta(index % 9 === 0 ? {} : { reasoning_details: [{ type: "reasoning.text", text: "x", index }] })
    ]).flat()
    it("are read as they are one by one", () => {
      const end = [finish("tool_calls"), "[DONE]"]
      const replayed = replay(...deltas, ...end)
      assert.strictEqual(calls(replayed).length, 90)
      assert.strictEqual(replayed.failure, undefined)
      assert.deepStrictEqual(replayed, replay(...apart(deltas), ...end))
    })

    it("fail as they do one by one", () => {
      for (const odd of [{ content: 5 }, { tool_calls: 5 }]) {
        const { failure } = replay(...deltas, delta(odd))
        assert.strictEqual(failure?._tag === "Protocol" && failure.kind, "badShape")
        assert.deepStrictEqual(failure, replay(delta(odd)).failure)
      }
      const cut = JSON.stringify(text("a")).slice(0, -1)
      assert.deepStrictEqual(replay(...deltas, cut).failure, replay(cut).failure)
    })

    it("may have a message in place of the delta", () => {
      const message = (content: string) => ({ choices: [{ index: 0, message: { content } }] })
      const words = Array.from({ length: 40 }, (_, index) => message(`${index} `))
      assert.strictEqual(
        said(replay(...words, finish("stop")), "TextDelta"),
        said(replay(...apart(words)), "TextDelta")
      )
    })
  })

  it.effect("never throws, and gives the same for the same", () =>
    Effect.gen(function* () {
      const keys = [
        "choices",
        "delta",
        "content",
        "tool_calls",
        "function",
        "arguments",
        "index",
        "id",
        "usage",
        "error"
      ]
      const json = Arbitrary.schema(Schema.Array(Schema.Record(Schema.Literals(keys), Schema.Json)))
      const result = yield* Arbitrary.checkEffect(
        json,
        (chunks) =>
          Effect.sync(() => {
            const wrapped = chunks.flatMap((chunk) => [chunk, { choices: [{ delta: chunk }] }])
            return JSON.stringify(replay(...wrapped)) === JSON.stringify(replay(...wrapped))
          }),
        { runs: 100, seed: 3 }
      )
      assert.strictEqual(result._tag, "Passed", JSON.stringify(result))
    })
  )
})
