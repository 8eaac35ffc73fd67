import { assert, describe, it } from "@effect/vitest"
import { Message, type Provider } from "effect-agent"
import { anthropicMessages } from "../../src/providers/internal/anthropic/protocol.ts"
import { readerOf } from "./reader.ts"
import { events as sse } from "./server.ts"
import { questionOf } from "./asked.ts"

const protocol = anthropicMessages("acme")
const { failure, message, read, readPieces } = readerOf(protocol, { model: "claude-1", seed: "s1" })

const start = (fields: object = {}) => ({
  type: "message_start",
  message: { id: "msg_1", type: "message", role: "assistant", content: [], ...fields }
})
const begin = (index: number, content_block: object) => ({
  type: "content_block_start",
  index,
  content_block
})
const delta = (index: number, fields: object) => ({ type: "content_block_delta", index, delta: fields })
const said = (index: number, text: string) => delta(index, { type: "text_delta", text })
const json = (index: number, partial_json: string) => delta(index, { type: "input_json_delta", partial_json })
const ended = (index: number) => ({ type: "content_block_stop", index })
const closing = (stop_reason: string | null, fields: object = {}, usage?: object) => ({
  type: "message_delta",
  delta: { stop_reason, stop_sequence: null, ...fields },
  ...(usage === undefined ? {} : { usage })
})
const stop = { type: "message_stop" }

const textBlock = (index: number, text: string) => [
  begin(index, { type: "text", text: "" }),
  said(index, text),
  ended(index)
]
const toolUse = (index: number, id: string, ...pieces: ReadonlyArray<string>) => [
  begin(index, { type: "tool_use", id, name: "read", input: {} }),
  ...pieces.map((piece) => json(index, piece)),
  ended(index)
]
const weather = toolUse(1, "toolu_1", "", '{"pa', 'th":"a.ts"}')

describe("anthropicMessages", () => {
  it("says who answers, what, and how it ended", () => {
    const usage = { input_tokens: 5, output_tokens: 1 }
    assert.deepStrictEqual(
      read(
        start({ usage }),
        begin(0, { type: "text", text: "" }),
        { type: "ping" },
        said(0, "Hel"),
        said(0, "lo"),
        ended(0),
        closing("end_turn", {}, { output_tokens: 2 }),
        stop
      ),
      {
        events: [
          {
            _tag: "Start",
            provider: "acme",
            model: "claude-1",
            protocol: "anthropic-messages",
            responseId: "msg_1"
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
        outcome: "complete"
      }
    )
  })

  it("reads the same however the bytes are cut, padded and many", () => {
    const pad = (event: object, length: number) =>
      `${JSON.stringify(event).slice(0, -1)}${" ".repeat(length)}}`
    const words = Array.from({ length: 20 }, (_, n) => pad(said(0, `wörd "${n}" `), n % 7))
    const wire = [
      start(),
      begin(0, { type: "text", text: "" }),
      ...words,
      ended(0),
      ...weather,
      closing("tool_use"),
      stop
    ]
    const bytes = new TextEncoder().encode(sse(...wire))
    const whole = readPieces([bytes])
    assert.strictEqual(Message.textOf(message(...wire)).split(" ").length, 41)
    for (let cut = 1; cut < bytes.length; cut += 7) {
      assert.deepStrictEqual(readPieces([bytes.subarray(0, cut), bytes.subarray(cut)]), whole)
    }
  })

  it("says which service tier answered", () => {
    const usage = { input_tokens: 5, output_tokens: 1, service_tier: "standard" }
    const tierOf = (last: object) =>
      read(start({ usage }), ...textBlock(0, "Hi"), closing("end_turn", {}, last), stop).events.at(-1)
    assert.propertyVal(tierOf({ output_tokens: 2 }), "serviceTier", "standard")
    assert.propertyVal(tierOf({ output_tokens: 2, service_tier: "priority" }), "serviceTier", "priority")
    assert.propertyVal(tierOf({ output_tokens: 2, service_tier: null }), "serviceTier", "standard")
  })

  it("leaves out events and deltas it does not know", () => {
    const wire = [
      start(),
      { type: "future_event", x: 1 },
      begin(0, { type: "text", text: "" }),
      delta(0, { type: "future_delta", x: 1 }),
      said(0, "Hi"),
      ended(0),
      closing("end_turn"),
      stop
    ]
    assert.deepStrictEqual(message(...wire).content, [{ type: "text", text: "Hi" }])
  })

  it("takes deltas of a block that never began, and a block that never ended (row 65)", () => {
    const wire = [
      start(),
      delta(0, { type: "thinking_delta", thinking: "Hm" }),
      begin(1, { type: "text", text: "A" }),
      begin(1, { type: "text", text: "" }),
      said(1, "B"),
      closing("end_turn"),
      stop
    ]
    assert.deepStrictEqual(message(...wire).content, [
      { type: "thinking", text: "Hm" },
      { type: "text", text: "A" },
      { type: "text", text: "B" }
    ])
  })

  it("reads a whole answer in place of a stream", () => {
    const whole = {
      ...start().message,
      content: [
        { type: "thinking", thinking: "Hm", signature: "sig" },
        { type: "text", text: "Hi" },
        { type: "tool_use", id: "toolu_1", name: "read", input: { path: "a.ts" } }
      ],
      stop_reason: "tool_use",
      usage: { input_tokens: 5, output_tokens: 2 }
    }
    const { content, stopReason, usage } = message(JSON.stringify(whole))
    assert.strictEqual(stopReason, "toolUse")
    assert.strictEqual(usage?.total, 7)
    assert.deepStrictEqual(content, [
      { type: "thinking", text: "Hm", opaque: { provider: "acme", signature: "sig" } },
      { type: "text", text: "Hi" },
      {
        type: "toolCall",
        id: "toolu_1",
        name: "read",
        rawArguments: '{"path":"a.ts"}',
        params: { path: "a.ts" }
      }
    ])
  })

  describe("tool calls", () => {
    const calls = (...wire: ReadonlyArray<unknown>) =>
      Message.toolCalls(message(start(), ...wire, stop)).map(({ id, params }) => [id, params])

    it("joins the pieces of the arguments, none being no arguments", () => {
      const wire = [...weather, ...toolUse(2, "toolu_2", ""), closing("tool_use")]
      assert.deepStrictEqual(calls(...wire), [
        ["toolu_1", { path: "a.ts" }],
        ["toolu_2", {}]
      ])
    })

    it("runs no call whose arguments went to another block", () => {
      const [begun] = toolUse(0, "toolu_1")
      const text = begin(1, { type: "text", text: "" })
      const reason = failure(start(), begun, text, json(1, '{"path":"a.ts"}'), closing("tool_use"), stop)
      assert.deepInclude(reason, { _tag: "Protocol", kind: "badShape" })
    })

    it("ends no call before the answer is complete", () => {
      const tags = read(start(), ...weather, closing("tool_use"), stop).events.map(({ _tag }) => _tag)
      assert.deepStrictEqual(tags.slice(-2), ["ToolCallEnd", "Finish"])
      assert.strictEqual(failure(start(), ...weather)._tag, "StreamTruncated")
    })

    it("makes ids that are missing or come twice", () => {
      const unnamed = [begin(2, { type: "tool_use", name: "read", input: {} }), ended(2)]
      const wire = [...weather, ...unnamed, ...toolUse(3, "toolu_1"), closing("tool_use")]
      assert.deepStrictEqual(
        calls(...wire).map(([id]) => id),
        ["toolu_1", "call_s1_1", "toolu_1_2"]
      )
    })

    it("are a reason to go on, whatever the answer says", () => {
      assert.strictEqual(message(start(), ...weather, closing("end_turn"), stop).stopReason, "toolUse")
    })

    it("are missing where the answer says that there are some", () => {
      const { content, stopReason } = message(start(), ...textBlock(0, "Hi"), closing("tool_use"), stop)
      assert.deepStrictEqual([content.length, stopReason], [1, "toolUse"])
    })

    it("stay without params when the token limit cuts them", () => {
      const cut = [begin(0, { type: "tool_use", id: "toolu_1", name: "read" }), json(0, '{"path":"a')]
      const { content, stopReason } = message(start(), ...cut, closing("max_tokens"), stop)
      assert.strictEqual(stopReason, "length")
      assert.deepStrictEqual(content, [
        { type: "toolCall", id: "toolu_1", name: "read", rawArguments: '{"path":"a' }
      ])
    })

    it("go on, whatever else is said at their place", () => {
      const wire = [
        begin(0, { type: "tool_use", id: "toolu_1", name: "read", input: {} }),
        json(0, '{"pa'),
        said(0, "Hi"),
        json(0, 'th":"a.ts"}'),
        ended(0),
        closing("tool_use")
      ]
      assert.deepStrictEqual(calls(...wire), [["toolu_1", { path: "a.ts" }]])
    })

    it("stay without params when a refusal cuts them", () => {
      const cut = [begin(0, { type: "tool_use", id: "toolu_1", name: "wipe" })]
      const { content, stopReason } = message(start(), ...cut, closing("refusal"), stop)
      assert.strictEqual(stopReason, "refusal")
      assert.deepStrictEqual(content, [{ type: "toolCall", id: "toolu_1", name: "wipe", rawArguments: "" }])
    })
  })

  describe("what only the vendor can read", () => {
    /** The blocks that this answer goes back as. */
    const replayed = (...wire: ReadonlyArray<unknown>) => {
      const answer = message(start(), ...wire, closing("end_turn"), stop)
      return sentOf([Message.user("Hi"), answer, Message.user("More")])[1]
    }

    it("is kept: signatures, hidden thinking, citations (rows 4, 7)", () => {
      const citation = { type: "char_location", cited_text: "Hi", document_index: 0 }
      const wire = [
        begin(0, { type: "thinking", thinking: "", signature: "" }),
        delta(0, { type: "thinking_delta", thinking: "Hm" }),
        delta(0, { type: "signature_delta", signature: "sig1" }),
        ended(0),
        begin(1, { type: "redacted_thinking", data: "xyz" }),
        ended(1),
        begin(2, { type: "thinking", thinking: "", signature: "" }),
        delta(2, { type: "signature_delta", signature: "sig2" }),
        ended(2),
        begin(3, { type: "text", text: "", citations: [] }),
        delta(3, { type: "citations_delta", citation }),
        said(3, "Hi"),
        ended(3)
      ]
      assert.deepStrictEqual(
        message(start(), ...wire, closing("end_turn"), stop).content.map((block) => "redacted" in block),
        [false, true, true, false, false]
      )
      assert.deepStrictEqual(replayed(...wire), {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Hm", signature: "sig1" },
          { type: "redacted_thinking", data: "xyz" },
          { type: "thinking", thinking: "", signature: "sig2" },
          { type: "text", text: "Hi", citations: [citation] }
        ]
      })
    })

    it("is kept: tools that run there, summaries, and blocks nobody knows", () => {
      const found = {
        type: "web_search_tool_result",
        tool_use_id: "srv_1",
        content: [{ url: "https://a.b" }]
      }
      const wire = [
        begin(0, { type: "compaction", content: null }),
        delta(0, { type: "compaction_delta", content: "Short." }),
        ended(0),
        begin(1, { type: "server_tool_use", id: "srv_1", name: "web_search", input: {} }),
        json(1, '{"que'),
        json(1, 'ry":"x"}'),
        ended(1),
        begin(2, found),
        ended(2),
        begin(3, { type: "future", note: "" }),
        delta(3, { type: "future_delta", note: "a" }),
        delta(3, { type: "future_delta", note: "b" }),
        ended(3),
        ...textBlock(4, "Done.")
      ]
      const answer = message(start(), ...wire, closing("end_turn"), stop)
      assert.strictEqual(Message.textOf(answer), "Done.")
      assert.deepStrictEqual(Message.toolCalls(answer), [])
      assert.deepStrictEqual(replayed(...wire).content, [
        { type: "compaction", content: "Short." },
        { type: "server_tool_use", id: "srv_1", name: "web_search", input: { query: "x" } },
        found,
        { type: "future", note: "ab" },
        { type: "text", text: "Done." }
      ])
    })

    it("goes back in an older transcript too, which has empty texts in place of the vendor's tools", () => {
      const blocks = [
        { type: "server_tool_use", id: "srv_1", name: "web_search", input: { query: "x" } },
        { type: "web_search_tool_result", tool_use_id: "srv_1", content: [] }
      ]
      const old = blocks.map(
        (block) => ({ type: "text", text: "", opaque: { provider: "acme", block } }) as const
      )
      const cut = Message.assistant([...old, ...old.slice(0, 1)], { stopReason: "length", model: "claude-1" })
      assert.deepStrictEqual(sentOf([Message.user("Hi"), cut, Message.user("More")])[1].content, blocks)
    })

    it("is kept: who made a call, and where it waits for the result", () => {
      const caller = { type: "code_execution_20250825", tool_id: "srv_1" }
      const wire = [
        start(),
        begin(0, { type: "tool_use", id: "toolu_1", name: "read", input: {}, caller }),
        ended(0),
        closing("tool_use", { container: { id: "container_1" } }),
        stop
      ]
      const answer = message(...wire)
      const sent = bodyOf([
        Message.user("Hi"),
        answer,
        Message.toolResult({ id: "toolu_1", name: "read" }, "x")
      ])
      assert.strictEqual(sent.container, "container_1")
      assert.deepStrictEqual(sent.messages[1].content, [
        { type: "tool_use", id: "toolu_1", name: "read", input: {}, caller }
      ])
    })

    it("is kept: an action on the screen, which is a call of the tool `computer`", () => {
      const member = (index: number, id: string, name: string, ...pieces: ReadonlyArray<string>) => [
        begin(index, { type: "tool_use", id, name, toolset_name: "computer", input: {} }),
        ...pieces.map((piece) => json(index, piece)),
        ended(index)
      ]
      const wire = [
        start(),
        ...member(0, "toolu_1", "left_click", "", '{"coord', 'inate":[1,2]}'),
        ...member(1, "toolu_2", "screenshot"),
        closing("tool_use"),
        stop
      ]
      const calls = message(...wire).content.flatMap((block) =>
        block.type === "toolCall" ? [[block.name, block.rawArguments]] : []
      )
      assert.deepStrictEqual(calls, [
        ["computer", '{"action":"left_click","coordinate":[1,2]}'],
        ["computer", '{"action":"screenshot"}']
      ])
      const pieces = read(...wire).events.flatMap((event) =>
        event._tag === "ToolCallDelta" && event.contentIndex === 0 ? [event.delta] : []
      )
      assert.strictEqual(pieces.join(""), calls[0]?.[1])
      const named = { toolset_name: "computer" }
      assert.deepStrictEqual(replayed(...wire).content, [
        { type: "tool_use", id: "toolu_1", name: "left_click", ...named, input: { coordinate: [1, 2] } },
        { type: "tool_use", id: "toolu_2", name: "screenshot", ...named, input: {} }
      ])
      const cut = message(start(), ...member(0, "toolu_1", "type", '{"text":"h'), closing("max_tokens"), stop)
      assert.deepInclude(cut.content[0], { type: "toolCall", rawArguments: '{"text":"h' })
      const results = ["toolu_1", "toolu_2"].map((id) => Message.toolResult({ id, name: "computer" }, "ok"))
      const body = protocol.encode(
        questionOf(
          { id: "acme", endpoint: "messages", vendor: "anthropic" },
          {
            model: "claude-1",
            messages: [Message.user("Hi"), message(...wire), ...results],
            tools: [],
            options: { cacheRetention: "none" }
          }
        )
      )
      const result = { type: "tool_result", content: [{ type: "text", text: "ok" }], ...named }
      assert.deepStrictEqual(JSON.parse(String(body)).messages.at(-1).content, [
        { ...result, tool_use_id: "toolu_1" },
        { ...result, tool_use_id: "toolu_2" }
      ])
    })

    it("is left out where an answer was cut before its result", () => {
      const search = (index: number, id: string) => [
        begin(index, { type: "server_tool_use", id, name: "web_search", input: {} }),
        ended(index)
      ]
      const result = [
        begin(1, { type: "web_search_tool_result", tool_use_id: "srv_1", content: [] }),
        ended(1)
      ]
      const wire = [
        start(),
        ...search(0, "srv_1"),
        ...result,
        ...search(2, "srv_2"),
        closing("max_tokens"),
        stop
      ]
      const [, answer] = sentOf([Message.user("Hi"), message(...wire), Message.user("More")])
      assert.deepStrictEqual(
        answer.content.map((block: { type: string }) => block.type),
        ["server_tool_use", "web_search_tool_result"]
      )
    })
  })

  describe("sources", () => {
    const contentOf = (...wire: ReadonlyArray<unknown>) =>
      message(start(), ...wire, closing("end_turn"), stop).content

    it("follow the text that cites them", () => {
      const citations = [
        {
          type: "web_search_result_location",
          url: "https://a.b",
          title: "A",
          cited_text: "one",
          encrypted_index: "e"
        },
        {
          type: "char_location",
          document_index: 0,
          document_title: "Doc",
          file_id: "file_1",
          cited_text: "two"
        },
        {
          type: "page_location",
          document_index: 1,
          document_title: null,
          cited_text: "three",
          start_page_number: 1
        },
        { type: "search_result_location", source: "https://c.d", title: "C", cited_text: "four" },
        { type: "search_result_location", source: "shelf 7", title: "S", cited_text: "five" }
      ]
      const content = contentOf(
        begin(0, { type: "text", text: "" }),
        said(0, "Hi"),
        ...citations.map((citation) => delta(0, { type: "citations_delta", citation })),
        ended(0),
        ...textBlock(1, "Bye")
      )
      assert.deepStrictEqual(content, [
        { type: "text", text: "Hi", opaque: { provider: "acme", citations } },
        { type: "source", sourceType: "url", url: "https://a.b", title: "A", citedText: "one" },
        { type: "source", sourceType: "document", id: "file_1", title: "Doc", citedText: "two" },
        { type: "source", sourceType: "document", citedText: "three" },
        { type: "source", sourceType: "url", url: "https://c.d", title: "C", citedText: "four" },
        { type: "source", sourceType: "document", id: "shelf 7", title: "S", citedText: "five" },
        { type: "text", text: "Bye" }
      ])
    })

    it("are the pages that a search found, behind its result", () => {
      const page = { type: "web_search_result", url: "https://a.b", title: "A", encrypted_content: "e" }
      const fetched = {
        type: "web_fetch_result",
        url: "https://c.d",
        content: {
          type: "document",
          title: "C",
          source: { type: "text", media_type: "text/plain", data: "…" }
        }
      }
      const content = contentOf(
        begin(0, { type: "web_search_tool_result", tool_use_id: "srv_1", content: [page] }),
        ended(0),
        begin(1, { type: "web_fetch_tool_result", tool_use_id: "srv_2", content: fetched }),
        ended(1)
      )
      assert.deepStrictEqual(
        content.map((block) => (block.type === "source" ? [block.url, block.title] : block.type)),
        ["hostedTool", ["https://a.b", "A"], "hostedTool", ["https://c.d", "C"]]
      )
    })
  })

  describe("tools that the vendor runs", () => {
    const hosted = (...wire: ReadonlyArray<unknown>) =>
      message(start(), ...wire, closing("end_turn"), stop).content.flatMap((block) =>
        block.type === "hostedTool" ? [block] : []
      )

    it("have a block for the call and one for the result, with one id and one name", () => {
      const output = { type: "bash_code_execution_output", file_id: "file_1" }
      const ran = {
        type: "bash_code_execution_result",
        stdout: "1",
        stderr: "",
        return_code: 0,
        content: [output]
      }
      const [use, result] = hosted(
        begin(0, { type: "server_tool_use", id: "srv_1", name: "bash_code_execution", input: {} }),
        json(0, '{"command":"ls"}'),
        ended(0),
        begin(1, { type: "bash_code_execution_tool_result", tool_use_id: "srv_1", content: ran }),
        ended(1)
      )
      const name = "bash_code_execution"
      assert.deepStrictEqual(use, {
        type: "hostedTool",
        id: "srv_1",
        name,
        params: { command: "ls" },
        opaque: { provider: "acme", block: { type: "server_tool_use", id: "srv_1", name } }
      })
      assert.deepStrictEqual(result, {
        type: "hostedTool",
        id: "srv_1",
        name,
        result: ran,
        opaque: {
          provider: "acme",
          block: { type: "bash_code_execution_tool_result", tool_use_id: "srv_1" }
        }
      })
    })

    it.each([
      [
        "web_search_tool_result",
        { content: { type: "web_search_tool_result_error", error_code: "x" } },
        true
      ],
      ["mcp_tool_result", { content: [], is_error: true }, true],
      ["mcp_tool_result", { content: [], is_error: false }, false],
      ["future_tool_result", { content: "x" }, false]
    ])("fail as %s says", (type, fields, isError) => {
      const [result] = hosted(begin(0, { type, tool_use_id: "srv_1", ...fields }), ended(0))
      assert.strictEqual(result?.isError ?? false, isError)
      assert.strictEqual(result?.name, type.replace("_tool_result", ""))
    })
  })

  describe("usage", () => {
    const usage = (first: object | undefined, last: object | undefined) =>
      message(start(first && { usage: first }), ...textBlock(0, "Hi"), closing("end_turn", {}, last), stop)
        .usage

    it("counts what is cached as input, and thinking as output", () => {
      const first = {
        input_tokens: 10,
        cache_read_input_tokens: 90,
        cache_creation_input_tokens: 5,
        output_tokens: 1
      }
      const last = { output_tokens: 7, output_tokens_details: { thinking_tokens: 3 } }
      assert.deepStrictEqual(usage(first, last), {
        input: 105,
        output: 7,
        cacheRead: 90,
        cacheWrite: 5,
        reasoning: 3,
        total: 112
      })
    })

    it("is replaced by what is said later, but not by zeros", () => {
      const first = { input_tokens: 612, cache_read_input_tokens: 0, output_tokens: 1 }
      assert.strictEqual(usage(first, { input_tokens: 28, output_tokens: 7 })?.input, 28)
      const zeros = { input_tokens: 0, cache_read_input_tokens: null, output_tokens: 7 }
      assert.deepInclude(usage(first, zeros), { input: 612, output: 7 })
    })

    it("is absent when nobody counts (row 59)", () => {
      assert.isUndefined(usage(undefined, undefined))
    })
  })

  it.each([
    ["end_turn", "stop"],
    ["stop_sequence", "stop"],
    ["max_tokens", "length"],
    ["model_context_window_exceeded", "length"],
    ["refusal", "refusal"],
    ["constructor", "stop"]
  ])("ends for %s with %s", (word, stopReason) => {
    assert.strictEqual(message(start(), ...textBlock(0, "Hi"), closing(word), stop).stopReason, stopReason)
  })

  describe("is complete", () => {
    it("with a stop reason, though the last event is missing", () => {
      assert.strictEqual(message(start(), ...weather, closing("tool_use")).stopReason, "toolUse")
    })

    it("with the last event, though the stop reason is missing, if all can be read", () => {
      assert.strictEqual(message(start(), ...weather, closing(null), stop).stopReason, "toolUse")
      const cut = [begin(0, { type: "tool_use", id: "toolu_1", name: "read" }), json(0, '{"pa')]
      assert.strictEqual(failure(start(), ...cut, stop)._tag, "StreamTruncated")
      assert.deepInclude(failure(start(), stop), { _tag: "Protocol", kind: "empty" })
    })

    it("not without either", () => {
      assert.strictEqual(failure(start(), ...textBlock(0, "Hi"))._tag, "StreamTruncated")
    })
  })

  describe("failures", () => {
    it("are told in the vendor's words, at any time", () => {
      const error = {
        type: "error",
        error: { type: "overloaded_error", message: "Overloaded" },
        request_id: "req_1"
      }
      const told = { _tag: "Overloaded", detail: "Overloaded", requestId: "req_1" } as const
      assert.deepInclude(failure(error), told)
      assert.deepInclude(failure(start(), begin(0, { type: "tool_use", id: "t", name: "read" }), error), told)
    })

    it("are events that lack what they are about", () => {
      for (const event of [{}, [1], { type: "content_block_delta", index: 0, delta: null }, "{oops"]) {
        assert.strictEqual(failure(start(), event)._tag, "Protocol")
      }
    })

    it("are second answers behind a first, unless it is the same one", () => {
      const second = { ...start(), message: { ...start().message, id: "msg_2" } }
      assert.strictEqual(
        failure(start(), ...weather, second, closing("tool_use"), stop)._tag,
        "StreamTruncated"
      )
      assert.strictEqual(
        message(start(), start(), ...textBlock(0, "Hi"), closing("end_turn"), stop).stopReason,
        "stop"
      )
    })
  })
})

/** The body of a request, as the server reads it. */
const bodyOf = (
  messages: ReadonlyArray<Message.ModelMessage>,
  options: Provider.ModelRequest["options"] = {}
) =>
  JSON.parse(
    String(
      protocol.encode(
        questionOf(
          { id: "acme", endpoint: "messages", vendor: "anthropic" },
          { model: "claude-1", messages, tools: [], options: { cacheRetention: "none", ...options } }
        )
      )
    )
  )

const sentOf = (messages: ReadonlyArray<Message.ModelMessage>) => bodyOf(messages).messages
