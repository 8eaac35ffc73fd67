import { assert, describe, it } from "@effect/vitest"
import { Message } from "effect-agent"
import { openAiResponses } from "../../src/providers/internal/openAiResponses/protocol.ts"
import { readerOf } from "./reader.ts"
import { events as sse } from "./server.ts"

const protocol = openAiResponses("acme")
const { failure, message, read, readPieces } = readerOf(protocol, { model: "m-1", seed: "s1" })

const created = (id = "resp_1") => ({ type: "response.created", response: { id, status: "in_progress" } })
const added = (output_index: number, item: object) => ({
  type: "response.output_item.added",
  output_index,
  item
})
const done = (output_index: number, item: object) => ({
  type: "response.output_item.done",
  output_index,
  item
})
const delta = (what: string, output_index: number, text: string, fields: object = {}) => ({
  type: `response.${what}.delta`,
  output_index,
  delta: text,
  ...fields
})
const said = (output_index: number, text: string, content_index = 0) =>
  delta("output_text", output_index, text, { content_index, sequence_number: 7, obfuscation: "x" })
const completed = (fields: object = {}) => ({
  type: "response.completed",
  response: { id: "resp_1", status: "completed", ...fields }
})

const outputText = (text: string, annotations: ReadonlyArray<object> = []) => ({
  type: "output_text",
  annotations,
  text
})
const shell = { id: "msg_1", type: "message", status: "completed", role: "assistant" }
const messageItem = (...content: ReadonlyArray<object>) => ({ ...shell, content })
const call1 = { id: "fc_1", type: "function_call", status: "completed", call_id: "call_1", name: "f" }
const reasoning = (fields: object = {}) => ({ id: "rs_1", type: "reasoning", summary: [], ...fields })
const summary = (...texts: ReadonlyArray<string>) => texts.map((text) => ({ type: "summary_text", text }))
const mine = (fields: object) => ({ opaque: { provider: "acme", ...fields } })

/** The one call of an answer. */
const calledWith = (...wire: ReadonlyArray<unknown>) => {
  const [found, ...others] = Message.toolCalls(message(...wire))
  assert.deepStrictEqual(others, [])
  return found
}

describe("openAiResponses", () => {
  it("says who answers, what, and how it ended", () => {
    const usage = {
      input_tokens: 12,
      input_tokens_details: { cached_tokens: 8, cache_write_tokens: 2 },
      output_tokens: 5,
      output_tokens_details: { reasoning_tokens: 3 },
      total_tokens: 17
    }
    const part = { type: "output_text", annotations: [] }
    assert.deepStrictEqual(
      read(
        created(),
        { type: "response.in_progress", response: { id: "resp_1" } },
        added(0, { ...shell, status: "in_progress", content: [] }),
        { type: "response.content_part.added", output_index: 0, content_index: 0, part: outputText("") },
        said(0, "Hel"),
        said(0, "lo"),
        { type: "response.output_text.done", output_index: 0, content_index: 0, text: "Hello" },
        done(0, messageItem({ ...outputText("Hello"), logprobs: [] })),
        completed({ usage, output: [messageItem(outputText("Hello"))] })
      ),
      {
        events: [
          {
            _tag: "Start",
            provider: "acme",
            model: "m-1",
            protocol: "openai-responses",
            responseId: "resp_1"
          },
          { _tag: "TextStart", contentIndex: 0 },
          { _tag: "TextDelta", contentIndex: 0, delta: "Hel" },
          { _tag: "TextDelta", contentIndex: 0, delta: "lo" },
          { _tag: "TextEnd", contentIndex: 0, ...mine({ item: shell, part }) },
          {
            _tag: "Finish",
            stopReason: "stop",
            usage: { input: 12, output: 5, cacheRead: 8, cacheWrite: 2, reasoning: 3, total: 17 }
          }
        ],
        outcome: "complete"
      }
    )
  })

  it("reads the same however the bytes are cut", () => {
    const wire = [
      created(),
      added(0, reasoning()),
      delta("reasoning_summary_text", 0, "Hm…"),
      done(0, reasoning({ summary: summary("Hm…"), encrypted_content: "sealed" })),
      added(1, { ...call1, arguments: "" }),
      delta("function_call_arguments", 1, '{"wo":'),
      delta("function_call_arguments", 1, '"😀"}'),
      done(1, { ...call1, arguments: '{"wo":"😀"}' }),
      completed()
    ]
    const bytes = new TextEncoder().encode(sse(...wire).replaceAll("\n", "\r\n"))
    const whole = readPieces([bytes])
    assert.strictEqual(whole.outcome, "complete")
    for (let cut = 0; cut <= bytes.length; cut++) {
      const again = readPieces([bytes.subarray(0, cut), bytes.subarray(cut)])
      assert.strictEqual(JSON.stringify(again), JSON.stringify(whole), `cut at ${cut}`)
    }
  })

  it("keeps the thinking, sealed, with its summary for text", () => {
    const item = reasoning({ summary: summary("One", "Two"), encrypted_content: "sealed" })
    const { content, stopReason } = message(
      created(),
      added(0, reasoning()),
      delta("reasoning_summary_text", 0, "On", { summary_index: 0 }),
      delta("reasoning_summary_text", 0, "e", { summary_index: 0 }),
      { type: "response.reasoning_summary_text.done", output_index: 0, summary_index: 0, text: "One" },
      delta("reasoning_summary_text", 0, "Two", { summary_index: 1 }),
      done(0, item),
      completed()
    )
    assert.deepStrictEqual(content, [{ type: "thinking", text: "One\n\nTwo", ...mine({ item }) }])
    assert.strictEqual(stopReason, "stop")
  })

  it("reads thinking in the words of which there are any, once", () => {
    const content = [{ type: "reasoning_text", text: "Raw" }]
    const thoughts = [
      [delta("reasoning_text", 0, "Raw", { content_index: 0 }), done(0, reasoning({ content }))],
      [
        delta("reasoning_text", 0, "Raw"),
        delta("reasoning_summary_text", 0, "Short"),
        done(0, reasoning({ content }))
      ],
      [done(0, reasoning({ content }))],
      [{ type: "response.reasoning_text.done", output_index: 0, text: "Raw" }]
    ]
    for (const thought of thoughts) {
      const answer = message(created(), added(0, reasoning()), ...thought, completed())
      assert.deepStrictEqual(
        answer.content.map((block) => block.type === "thinking" && block.text),
        ["Raw"]
      )
    }
  })

  it("keeps thinking that shows nothing", () => {
    const item = reasoning({ encrypted_content: "sealed" })
    assert.deepStrictEqual(message(created(), added(0, reasoning()), done(0, item), completed()).content, [
      { type: "thinking", text: "", redacted: true, ...mine({ item }) }
    ])
  })

  it("keeps parts of a message, citations, phases and a refusal (row 4)", () => {
    const citation = { type: "url_citation", url: "https://a.test", start_index: 0, end_index: 1 }
    const item = { ...shell, phase: "commentary" }
    const { content, stopReason } = message(
      created(),
      added(0, { ...item, content: [] }),
      said(0, "A"),
      {
        type: "response.output_text.annotation.added",
        output_index: 0,
        content_index: 0,
        annotation: citation
      },
      delta("refusal", 0, "No", { content_index: 1 }),
      done(0, { ...item, content: [outputText("A"), { type: "refusal", refusal: "No." }] }),
      completed()
    )
    assert.deepStrictEqual(content, [
      { type: "text", text: "A", ...mine({ item, part: { type: "output_text", annotations: [citation] } }) },
      { type: "text", text: "No.", ...mine({ part: { type: "refusal" } }) },
      { type: "source", sourceType: "url", url: "https://a.test" }
    ])
    assert.strictEqual(stopReason, "refusal")
  })

  it("takes the arguments of a call from wherever they are", () => {
    const open = added(0, { ...call1, arguments: "" })
    const closed = done(0, { ...call1, arguments: '{"a":1}' })
    const whole = { type: "response.function_call_arguments.done", output_index: 0, arguments: '{"a":1}' }
    const answers = [
      [open, delta("function_call_arguments", 0, '{"a":1}'), whole, closed],
      [open, delta("function_call_arguments", 0, '{"a":1}')],
      [open, delta("function_call_arguments", 0, '{"a":1}'), done(0, call1)],
      [open, whole],
      [open, closed],
      [closed],
      [delta("function_call_arguments", 0, '{"a"'), delta("function_call_arguments", 0, ":1}"), closed],
      [open, done(0, { ...call1, arguments: { a: 1 } })]
    ]
    for (const answer of answers) {
      const { id, name, params } = calledWith(created(), ...answer, completed()) ?? {}
      assert.deepStrictEqual([id, name, params], ["call_1", "f", { a: 1 }], JSON.stringify(answer))
    }
    const { opaque } = calledWith(created(), open, closed, completed()) ?? {}
    assert.deepStrictEqual(
      { opaque },
      mine({ item: { id: "fc_1", type: "function_call", status: "completed" } })
    )
  })

  it("says a call before its end, and its end only with the end of the answer", () => {
    const { events } = read(
      created(),
      added(0, { ...call1, arguments: "" }),
      delta("function_call_arguments", 0, "{"),
      done(0, { ...call1, arguments: "{}" }),
      added(1, { ...shell, content: [] }),
      said(1, "Hi"),
      completed({ status: "completed" })
    )
    assert.deepStrictEqual(
      events.map((event) => ("contentIndex" in event ? `${event._tag} ${event.contentIndex}` : event._tag)),
      [
        "Start",
        "ToolCallStart 0",
        "ToolCallDelta 0",
        "ToolCallDelta 0",
        "TextStart 1",
        "TextDelta 1",
        "TextEnd 1",
        "ToolCallEnd 0",
        "Finish"
      ]
    )
  })

  it("gives each call an id of its own", () => {
    const same = { ...call1, arguments: "{}" }
    const { call_id: _, id: __, ...nameless } = same
    const answer = message(created(), done(0, same), done(1, same), done(2, nameless), completed())
    const ids = Message.toolCalls(answer).map(({ id }) => id)
    assert.strictEqual(new Set(ids).size, 3)
    assert.strictEqual(ids[0], "call_1")
    assert.isTrue(ids.every((id) => id !== ""))
    assert.strictEqual(answer.stopReason, "toolUse")
  })

  it("makes one call of all that is told about it", () => {
    const [open, closed] = [
      { ...call1, arguments: "" },
      { ...call1, arguments: '{"a":1}' }
    ]
    const nowhere = { output_index: undefined }
    const answers = [
      [added(0, open), { ...done(0, closed), ...nowhere }],
      [{ ...added(0, open), ...nowhere }, done(0, closed)],
      [added(0, open), done(0, closed), added(0, open)],
      [added(0, open), done(0, closed), done(0, closed)],
      [added(0, open), added(0, open), done(0, closed)]
    ]
    for (const answer of answers) {
      for (const output of [[], [closed]]) {
        const { params } = calledWith(created(), ...answer, completed({ output })) ?? {}
        assert.deepStrictEqual(params, { a: 1 }, JSON.stringify(answer))
      }
    }
  })

  it("never gives a call the arguments of another", () => {
    const [first, second] = [
      { ...call1, arguments: '{"a":1}' },
      { ...call1, id: "fc_2", call_id: "call_2", name: "g", arguments: '{"b":2}' }
    ]
    const told = [added(0, { ...call1, arguments: "" }), added(1, { ...second, arguments: "" })]
    const inTurn = message(created(), ...told, completed({ output: [second, first] }))
    // The ids of the last event are none of those told: what is left to go by is the name.
    const renamed = [second, first].map((call) => ({ ...call, call_id: `x_${call.call_id}` }))
    for (const answer of [inTurn, message(created(), ...told, completed({ output: renamed }))]) {
      assert.deepStrictEqual(
        Message.toolCalls(answer).map(({ name, params }) => [name, params]),
        [
          ["f", { a: 1 }],
          ["g", { b: 2 }]
        ]
      )
    }
  })

  it("is no answer where the arguments of a call are nowhere", () => {
    const begun = [created(), added(0, call1)]
    assert.strictEqual(failure(...begun, completed())._tag, "StreamTruncated")
    assert.strictEqual(
      failure(...begun, done(0, call1), completed({ output: [call1] }))._tag,
      "StreamTruncated"
    )
    const none = { ...call1, arguments: "" }
    assert.deepStrictEqual(calledWith(...begun, done(0, none), completed())?.params, {})
    const cut = { type: "response.incomplete", response: { status: "incomplete" } }
    assert.strictEqual(message(...begun, cut).stopReason, "length")
  })

  it("runs a call once, however its events are out of place", () => {
    const begun = { ...call1, status: "in_progress", arguments: "" }
    const ended = { ...call1, arguments: '{"a":1}' }
    const placeless = { type: "response.output_item.added", item: begun }
    for (const wire of [
      // Its beginning says no place.
      [placeless, delta("function_call_arguments", 4, `{"a":1}`, { item_id: "fc_1" }), done(4, ended)],
      // Another item has taken its place.
      [added(0, begun), added(0, { ...shell, content: [] }), done(0, ended)],
      // Another item has taken its place, and it begins there once more, and has its end.
      [added(0, begun), added(0, messageItem()), added(0, begun), done(0, ended)],
      // Its beginning comes after its end.
      [done(0, ended), added(0, begun)],
      // Its end comes twice, once without a place.
      [added(0, begun), done(0, ended), { type: "response.output_item.done", item: ended }],
      // Another item has taken its place, and its end lacks its id.
      [added(0, begun), added(0, { ...shell, content: [] }), done(0, { ...ended, call_id: undefined })],
      // Its beginning says no place, and its end comes twice.
      [placeless, done(4, ended), done(4, ended)]
    ]) {
      const call = calledWith(created(), ...wire, completed({ output: [ended] }))
      assert.deepStrictEqual([call?.id, call?.params], ["call_1", { a: 1 }])
    }
    // Its id and its name are others where it ends.
    const torn = done(0, { ...ended, call_id: "ca", name: "ff" })
    const whole = calledWith(created(), added(0, begun), torn, completed({ output: [ended] }))
    assert.deepStrictEqual([whole?.id, whole?.name, whole?.params], ["call_1", "f", { a: 1 }])
    // Its id is another one in the last event.
    const renamed = { ...ended, call_id: "call_7" }
    const call = calledWith(created(), added(0, begun), done(0, ended), completed({ output: [renamed] }))
    assert.deepStrictEqual([call?.id, call?.params], ["call_1", { a: 1 }])
  })

  it("is incomplete if the last event lists other calls than those before it", () => {
    const ended = { ...call1, arguments: '{"a":1}' }
    const other = { ...ended, id: "fc_2", call_id: "call_2" }
    const wire = [created(), done(0, ended), done(1, other)]
    assert.strictEqual(failure(...wire, completed({ output: [ended] }))._tag, "StreamTruncated")
    for (const output of [[], [messageItem(outputText("x"))], [ended, other]])
      assert.strictEqual(Message.toolCalls(message(...wire, completed({ output }))).length, 2)
  })

  it("takes the text of a custom tool as it is", () => {
    const item = { id: "ct_1", type: "custom_tool_call", call_id: "call_1", name: "sql" }
    const found = calledWith(
      created(),
      added(0, { ...item, input: "" }),
      delta("custom_tool_call_input", 0, "SELECT "),
      done(0, { ...item, input: "SELECT 1" }),
      completed()
    )
    assert.deepStrictEqual(found, {
      type: "toolCall",
      id: "call_1",
      name: "sql",
      rawArguments: "SELECT 1",
      ...mine({ item: { id: "ct_1", type: "custom_tool_call" } })
    })
  })

  it("keeps what runs at the vendor, and what nobody knows, in its place", () => {
    const action = { type: "search", query: "x", sources: [{ type: "url", url: "https://b.test" }] }
    const search = { id: "ws_1", type: "web_search_call", status: "completed", action }
    const mcp = { id: "mcp_1", type: "mcp_call", name: "f", arguments: '{"a":1}' }
    const summary = { id: "cmp_1", type: "compaction", encrypted_content: "sealed" }
    const { content, stopReason } = message(
      created(),
      added(0, { ...search, status: "in_progress" }),
      { type: "response.web_search_call.searching", output_index: 0, item_id: "ws_1" },
      added(1, { ...shell, content: [] }),
      said(1, "Hi"),
      done(0, search),
      done(2, { ...mcp, output: "1" }),
      done(3, summary),
      completed()
    )
    assert.deepStrictEqual(content, [
      { type: "hostedTool", id: "ws_1", name: "web_search", params: action, ...mine({ item: search }) },
      { type: "text", text: "Hi" },
      { type: "source", sourceType: "url", url: "https://b.test" },
      {
        type: "hostedTool",
        id: "mcp_1",
        name: "f",
        params: { a: 1 },
        result: "1",
        ...mine({ item: mcp, result: "output" })
      },
      { type: "text", text: "", ...mine({ item: summary }) }
    ])
    assert.strictEqual(stopReason, "stop")
  })

  it("shows the params, the result and the failure of each tool at the vendor", () => {
    const runOf = (item: object) => {
      const [block, ...others] = message(created(), done(0, { id: "i1", ...item }), completed()).content
      assert(block?.type === "hostedTool")
      const { id, isError, name, params, result } = block
      return { id, name, params, result, isError, others: others.map(({ type }) => type).join() }
    }
    const run = (name: string, params: unknown, result?: unknown, isError?: boolean, others = "") => ({
      id: "i1",
      name,
      params,
      result,
      isError,
      others
    })
    const code = { code: "1+1", container_id: "c1" }
    const outputs = [
      { type: "logs", logs: "2" },
      { type: "image", url: "https://c.test/a.png" }
    ]
    assert.deepStrictEqual(
      runOf({ type: "code_interpreter_call", status: "completed", ...code, outputs }),
      run("code_interpreter", code, outputs, undefined, "media")
    )
    const hits = [{ file_id: "f1", filename: "a.pdf", text: "Passage", score: 1 }]
    assert.deepStrictEqual(
      runOf({ type: "file_search_call", queries: ["q"], results: hits }),
      run("file_search", { queries: ["q"] }, hits, undefined, "source")
    )
    assert.deepStrictEqual(
      runOf({ type: "file_search_call", status: "failed", queries: ["q"], results: null }),
      run("file_search", { queries: ["q"] }, undefined, true)
    )
    const mcp = { server_label: "s", name: "f", arguments: "{}" }
    assert.deepStrictEqual(
      runOf({ type: "mcp_call", ...mcp, output: null, error: "Down" }),
      run("f", {}, "Down", true)
    )
    assert.deepStrictEqual(
      runOf({ type: "mcp_list_tools", server_label: "s", tools: [{ name: "f" }] }),
      run("mcp_list_tools", undefined, [{ name: "f" }])
    )
    const operation = { type: "delete_file", path: "a" }
    assert.deepStrictEqual(
      runOf({ type: "apply_patch_call", call_id: "i1", operation }),
      run("apply_patch", operation)
    )
    const action = { type: "exec", command: ["ls"] }
    assert.deepStrictEqual(
      runOf({ type: "local_shell_call", call_id: "i1", action }),
      run("local_shell", action)
    )
    assert.deepStrictEqual(
      runOf({ type: "shell_call_output", call_id: "i1", output: [] }),
      run("shell", undefined, [])
    )
  })

  it("keeps an image with its bytes once", () => {
    const item = {
      id: "ig_1",
      type: "image_generation_call",
      status: "completed",
      output_format: "webp",
      revised_prompt: "A cat"
    }
    const { content } = message(
      created(),
      added(0, { ...item, status: "in_progress" }),
      done(0, { ...item, result: "aGVsbG8=" }),
      completed()
    )
    const params = { output_format: "webp", revised_prompt: "A cat" }
    assert.deepStrictEqual(content, [
      { type: "hostedTool", id: "ig_1", name: "image_generation", params },
      {
        type: "media",
        source: { data: "aGVsbG8=", mediaType: "image/webp" },
        id: "ig_1",
        ...mine({ item, result: "result" })
      }
    ])
  })

  it("calls the tool of the agent for the screen", () => {
    const item = { id: "cu_1", type: "computer_call", call_id: "call_1", status: "completed" }
    const params = { actions: [{ type: "screenshot" }], pending_safety_checks: [] }
    const found = calledWith(created(), added(0, item), done(0, { ...item, ...params }), completed())
    assert.deepStrictEqual(found, {
      type: "toolCall",
      id: "call_1",
      name: "computer",
      rawArguments: JSON.stringify(params),
      params,
      ...mine({ item: { type: "computer_call", id: "cu_1", status: "completed" } })
    })
  })

  it("names the documents that a text cites", () => {
    const annotations = [
      { type: "file_citation", file_id: "f1", filename: "a.pdf", index: 1 },
      { type: "container_file_citation", container_id: "c", file_id: "f2", filename: "b.csv" },
      { type: "file_path", file_id: "f3", index: 2 },
      { type: "url_citation", url: "https://a.test", title: "A", start_index: 0, end_index: 1 }
    ]
    const { content } = message(created(), done(0, messageItem(outputText("A", annotations))), completed())
    assert.deepStrictEqual(content.slice(1), [
      { type: "source", sourceType: "document", id: "f1", fileName: "a.pdf" },
      { type: "source", sourceType: "document", id: "f2", fileName: "b.csv" },
      { type: "source", sourceType: "document", id: "f3" },
      { type: "source", sourceType: "url", url: "https://a.test", title: "A" }
    ])
  })

  it("reports the service tier that answered", () => {
    const finish = read(created(), completed({ service_tier: "flex" })).events.at(-1)
    assert.deepStrictEqual(finish, { _tag: "Finish", stopReason: "stop", serviceTier: "flex" })
  })

  it("reports the probabilities of tokens", () => {
    const token = { token: "A", logprob: -0.1, bytes: [65] }
    const part = { ...outputText("A"), logprobs: [{ ...token, top_logprobs: [token] }] }
    const { events } = read(created(), done(0, messageItem(part)), completed())
    const known = { token: "A", logprob: -0.1 }
    const finish = events.at(-1)
    assert(finish?._tag === "Finish")
    assert.deepStrictEqual(finish.logprobs, [{ ...known, top: [known] }])
  })

  it("goes by the place of an item, whatever its id", () => {
    const { content } = message(
      created("a"),
      added(0, { ...shell, id: "b", content: [] }),
      added(3, { ...shell, id: "c", content: [] }),
      said(3, "two"),
      said(0, "one "),
      done(3, { ...messageItem(outputText("two")), id: "d" }),
      done(0, { ...messageItem(outputText("one ")), id: "e" }),
      completed({ id: "f", output: [messageItem(outputText("one ")), messageItem(outputText("two"))] })
    )
    // In the order in which they began to be said.
    assert.deepStrictEqual(
      content.map((block) => block.type === "text" && block.text),
      ["two", "one "]
    )
  })

  it("reads an answer whose server leaves out the events", () => {
    const item = reasoning({ encrypted_content: "sealed" })
    const output = [item, messageItem(outputText("Hello")), { ...call1, arguments: '{"a":1}' }]
    const answers = [
      [completed({ output })],
      [created(), added(0, reasoning()), completed({ output })],
      [created(), { ...said(0, "Hel"), output_index: undefined }, completed({ output })],
      [{ object: "response", id: "resp_1", status: "completed", error: null, output }]
    ]
    for (const answer of answers) {
      const { content, stopReason } = message(...answer)
      const byType = (type: string) => content.filter((block) => block.type === type)
      assert.deepStrictEqual(byType("thinking"), [
        { type: "thinking", text: "", redacted: true, ...mine({ item }) }
      ])
      assert.deepInclude(byType("text")[0], { text: "Hello" })
      assert.deepInclude(byType("toolCall")[0], { id: "call_1", params: { a: 1 } })
      assert.deepStrictEqual([content.length, stopReason], [3, "toolUse"])
    }
  })

  it("says why an answer was cut short", () => {
    const cut = (reason: string, type = "response.incomplete") => ({
      type,
      response: { status: "incomplete", incomplete_details: { reason } }
    })
    const opened = [
      created(),
      added(0, { ...call1, arguments: "" }),
      delta("function_call_arguments", 0, '{"a')
    ]
    const { content, stopReason } = message(...opened, cut("max_output_tokens"))
    assert.strictEqual(stopReason, "length")
    assert.deepInclude(content[0], { rawArguments: '{"a' })
    assert.notProperty(content[0], "params")
    assert.strictEqual(message(created(), said(0, "Hi"), cut("content_filter")).stopReason, "contentFilter")
    assert.strictEqual(
      message(created(), said(0, "Hi"), { type: "response.incomplete" }).stopReason,
      "length"
    )
    assert.strictEqual(message(cut("max_output_tokens", "response.completed")).stopReason, "length")
  })

  it("takes only a last event for the end", () => {
    const all = [created(), added(0, call1), done(0, { ...call1, arguments: "{}" })]
    assert.strictEqual(failure(...all)._tag, "StreamTruncated")
    assert.strictEqual(failure(...all, "[DONE]")._tag, "StreamTruncated")
    assert.strictEqual(failure()._tag, "Protocol")
    assert.strictEqual(message(created(), completed(), "[DONE]").stopReason, "stop")
  })

  it("tells a second answer behind the first", () => {
    const begun = [created(), added(0, { ...shell, content: [] }), said(0, "Hi")]
    assert.strictEqual(failure(...begun, created("resp_2"))._tag, "StreamTruncated")
    assert.strictEqual(message(...begun, created(), completed()).responseId, "resp_1")
    assert.strictEqual(message(created(), created("resp_2"), said(0, "Hi"), completed()).responseId, "resp_1")
  })

  it("fails as the vendor says, in its words", () => {
    const failed = (error: unknown, status = "failed") => ({
      type: "response.failed",
      response: { status, error }
    })
    const failures: ReadonlyArray<readonly [unknown, string, string]> = [
      [{ type: "error", code: "server_error", message: "Sorry." }, "ServerError", "Sorry."],
      [
        { type: "error", error: { code: "insufficient_quota", message: "No money." } },
        "QuotaExceeded",
        "No money."
      ],
      [
        failed({ code: "rate_limit_exceeded", message: "Try again in 2s." }),
        "RateLimited",
        "Try again in 2s."
      ],
      [failed({ code: "invalid_prompt", message: "Bad." }), "InvalidRequest", "Bad."],
      [failed({ code: "context_length_exceeded", message: "Too long." }), "ContextOverflow", "Too long."],
      [failed(null), "ServerError", "failed"],
      [completed({ status: "cancelled" }), "ServerError", "cancelled"],
      [completed({ status: "failed", error: { code: "server_error", message: "Oh." } }), "ServerError", "Oh."]
    ]
    for (const [event, tag, words] of failures) {
      const reason = failure(created(), added(0, call1), done(0, { ...call1, arguments: "{}" }), event)
      assert.strictEqual(reason._tag, tag, JSON.stringify(event))
      assert.include(reason.detail, words)
    }
    const first = failure({ type: "error", error: { message: "First." } }, failed({ message: "Second." }))
    assert.strictEqual(first.detail, "First.")
  })

  it("ignores events that nobody knows, and refuses what is none", () => {
    const { content } = message(created(), { type: "keepalive" }, { type: "response.new.thing" }, completed())
    assert.deepStrictEqual(content, [])
    const wrong = [
      "[1]",
      { id: "chatcmpl-1", object: "chat.completion.chunk", choices: [] },
      { type: "response.output_item.done", output_index: 0 },
      delta("output_text", 0, "Hi", { delta: 1 })
    ]
    for (const event of wrong) assert.deepInclude({ ...failure(created(), event) }, { kind: "badShape" })
  })

  it("reads what an answer cost, where the server says it", () => {
    const costing = (usage: object | null) => message(created(), completed({ usage })).usage
    assert.strictEqual(costing({ input_tokens: 1, output_tokens: 1, cost: 0.5 })?.cost, 0.5)
    assert.strictEqual(costing({ input_tokens: 1, output_tokens: 1, cost_in_usd_ticks: 5e9 })?.cost, 0.5)
    assert.isUndefined(costing(null))
  })
})
