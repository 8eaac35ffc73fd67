import { assert, describe, it } from "@effect/vitest"
import { Message, type Provider } from "effect-agent"
import { openAiResponses } from "../../src/providers/internal/openAiResponses/protocol.ts"
import { encoder as responsesEncoder } from "../../src/providers/internal/openAiResponses/request.ts"
import { isReason } from "../../src/providers/Protocol.ts"
import { asked as askedOf, questionOf } from "./asked.ts"

type Request = Partial<Provider.ModelRequest>

const server = { id: "acme", endpoint: "responses", vendor: "openai", keepsPrompts: true } as const

const encoder = (provider: string) => askedOf({ ...server, id: provider }, responsesEncoder(provider))

const encode = (request: Request) =>
  encoder("acme")({ model: "gpt-4o", messages: [], tools: [], options: {}, ...request })

/** The body as the server reads it. */
const bodyOf = (request: Request) => {
  const body = encode(request)
  assert(!isReason(body))
  return JSON.parse(body)
}

const inputOf = (messages: ReadonlyArray<Message.ModelMessage>, request: Request = {}) =>
  bodyOf({ messages, ...request }).input

/** What a request says besides the conversation. */
const asked = (options: Provider.ModelRequest["options"], request: Request = {}) => {
  const { input: _, model: __, store: ___, stream: ____, ...rest } = bodyOf({ options, ...request })
  return rest
}

const hi = Message.user("Hi")
const mine = { provider: "acme", model: "gpt-4o" }
const kept = (fields: object): NonNullable<Message.Text["opaque"]> =>
  JSON.parse(JSON.stringify({ provider: "acme", ...fields }))
const call = (id: string, rawArguments = "{}", opaque?: Message.Text["opaque"]): Message.ToolCall => ({
  type: "toolCall",
  id,
  name: "f",
  rawArguments,
  ...(opaque === undefined ? {} : { opaque })
})
const result = (id: string, content: string | Message.ToolResult["content"] = "ok") =>
  Message.toolResult({ id, name: "f" }, content)
const thought = (item: object): Message.Thinking => ({
  type: "thinking",
  text: "Hm",
  opaque: kept({ item: { type: "reasoning", ...item } })
})
const atVendor = (item: object): Message.Text => ({ type: "text", text: "", opaque: kept({ item }) })
const functionCall = (call_id: string, args = "{}") => ({
  type: "function_call",
  name: "f",
  arguments: args,
  call_id
})
const output = (call_id: string, output: unknown = "ok") => ({
  type: "function_call_output",
  call_id,
  output
})
const sealed = { id: "rs_1", summary: [], encrypted_content: "sealed" }
const png = Message.image("AAAA", "image/png")
const pngPart = { type: "input_image", detail: "auto", image_url: "data:image/png;base64,AAAA" }
const tool: Provider.ToolDefinition = {
  name: "f",
  description: "F.",
  parameters: { type: "object", properties: {} }
}

describe("openAiResponsesRequest", () => {
  it("asks for a stream of which nothing is kept", () => {
    assert.deepStrictEqual(bodyOf({ system: "Be brief.", messages: [hi], tools: [tool] }), {
      model: "gpt-4o",
      instructions: "Be brief.",
      input: [{ role: "user", content: "Hi" }],
      tools: [{ type: "function", ...tool, strict: false }],
      stream: true,
      store: false
    })
  })

  it("says `anyOf` for `oneOf`, which is refused", () => {
    const [known, told] = ["oneOf", "anyOf"].map((keyword) => ({
      type: "object",
      properties: { a: { [keyword]: [{ type: "string" }, { type: "null" }] } }
    }))
    assert(known !== undefined)
    const output = { name: "answer", schema: known }
    const body = bodyOf({ messages: [hi], tools: [{ ...tool, parameters: known }], options: { output } })
    assert.deepStrictEqual([body.tools[0].parameters, body.text.format.schema], [told, told])
  })

  it("names the program that called a tool in the output, for the model that wrote it", () => {
    const caller = { type: "program", caller_id: "prog_1" }
    const program = { type: "program", id: "prg_1", call_id: "prog_1", code: "f()", fingerprint: "seal" }
    const called: Message.ToolCall = {
      ...call("call_1"),
      opaque: kept({ item: { type: "function_call", id: "fc_1", caller } })
    }
    const text: Message.ToolCall = {
      ...call("call_2"),
      opaque: kept({ item: { type: "custom_tool_call", caller } })
    }
    const answer = Message.assistant([atVendor(program), called, text, call("call_3")], mine)
    const messages = [hi, answer, result("call_1"), result("call_2"), result("call_3")]
    const { input } = bodyOf({ messages, tools: [tool] })
    assert.deepStrictEqual(input[1], program)
    assert.deepStrictEqual(input.slice(-3), [
      { ...output("call_1"), caller },
      { ...output("call_2"), type: "custom_tool_call_output", caller },
      output("call_3")
    ])
    const other = bodyOf({ messages: [hi, { ...answer, model: "gpt-5" }, result("call_1")], tools: [tool] })
    assert.notInclude(JSON.stringify(other.input), "prog_1")
  })

  it("says the same for the same, byte by byte", () => {
    const encodeBody = encoder("acme")
    const messages = [hi, Message.assistant([call("call_1")], mine), result("call_1")]
    const request = { model: "gpt-4o", messages, tools: [tool], options: { sessionId: "s" } }
    const first = encodeBody(request)
    const next = encodeBody({ ...request, messages: [...messages, Message.user("More")] })
    assert.strictEqual(encodeBody(request), first)
    assert(!isReason(first) && !isReason(next))
    const shared = first.slice(0, first.indexOf("]"))
    assert.isTrue(next.startsWith(shared))
  })

  it("sends texts, images and files (rows 5, 6)", () => {
    const pdf: Message.File = { type: "file", source: { data: "AAAA", mediaType: "application/pdf" } }
    const photo: Message.File = { type: "file", source: { data: "AAAA", mediaType: "image/png" } }
    const stored: Message.File = { type: "file", source: { fileId: "file-1" } }
    const named: Message.File = { ...pdf, name: "invoice.pdf" }
    const linked: Message.File = { type: "file", source: { url: "https://a.test/a.pdf" } }
    const url: Message.Image = { type: "image", source: { url: "https://a.test/a.png" } }
    const content = [Message.text("See"), Message.text(""), png, url, photo, pdf, stored, named, linked]
    assert.deepStrictEqual(inputOf([Message.user(content)])[0].content, [
      { type: "input_text", text: "See" },
      pngPart,
      { ...pngPart, image_url: "https://a.test/a.png" },
      pngPart,
      { type: "input_file", filename: "file.pdf", file_data: "data:application/pdf;base64,AAAA" },
      { type: "input_file", file_id: "file-1" },
      { type: "input_file", filename: "invoice.pdf", file_data: "data:application/pdf;base64,AAAA" },
      { type: "input_file", file_url: "https://a.test/a.pdf" }
    ])
    assert.deepStrictEqual(inputOf([Message.user([])]), [{ role: "user", content: "" }])
  })

  it("refuses sounds, before anything is sent (row 6)", () => {
    const wav: Message.File = { type: "file", source: { data: "AAAA", mediaType: "audio/wav" } }
    const refused = encode({ messages: [Message.user([wav])] })
    assert(isReason(refused))
    assert.strictEqual(refused._tag, "UnsupportedContent")
  })

  it("sends calls and their results, with images", () => {
    const messages = [
      hi,
      Message.assistant([Message.text("Look."), Message.text(""), call("call_1", '{"a":1}'), call("call_2")]),
      result("call_1", [Message.text("a"), Message.text("b")]),
      result("call_2", [Message.text("c"), png])
    ]
    assert.deepStrictEqual(inputOf(messages).slice(1), [
      { role: "assistant", content: "Look." },
      functionCall("call_1", '{"a":1}'),
      functionCall("call_2"),
      output("call_1", "a\nb"),
      output("call_2", [{ type: "input_text", text: "c" }, pngPart])
    ])
  })

  it("makes calls of any origin fit", () => {
    const long = `toolu_${"x".repeat(80)}`
    const odd: Message.ToolCall = { type: "toolCall", id: long, name: "a.b:c", rawArguments: '{"cut' }
    const other = { ...odd, id: `${long}y`, name: "" }
    const [first, second, ...results] = inputOf([
      Message.assistant([odd, other]),
      result(odd.id, "1"),
      result(other.id, "2")
    ])
    assert.match(first.call_id, /^[\w-]{1,64}$/)
    assert.notStrictEqual(first.call_id, second.call_id)
    assert.deepStrictEqual([first.name, first.arguments, second.name], ["a_b_c", "{}", "_"])
    assert.deepStrictEqual(results, [output(first.call_id, "1"), output(second.call_id, "2")])
  })

  it("gives each call an id and a result, where servers count anew and results are missing", () => {
    const again = Message.assistant([call("call_0")])
    const input = inputOf([
      again,
      result("call_0", "1"),
      again,
      result("call_0", "2"),
      result("lost"),
      again,
      hi
    ])
    const ids = input.flatMap((item: { type?: string; call_id?: string }) =>
      item.type === "function_call" ? [item.call_id] : []
    )
    assert.strictEqual(new Set(ids).size, 3)
    assert.deepStrictEqual(input, [
      functionCall("call_0"),
      output("call_0", "1"),
      functionCall(ids[1]),
      output(ids[1], "2"),
      functionCall(ids[2]),
      { role: "user", content: "Hi" },
      output(ids[2], "No result was recorded.")
    ])
  })

  it("gives an answer back as it came, to the model that gave it", () => {
    const annotations = [{ type: "url_citation", url: "https://a.test" }]
    const item = {
      id: "msg_1",
      type: "message",
      role: "assistant",
      status: "completed",
      phase: "final_answer"
    }
    const search = { id: "ws_1", type: "web_search_call", status: "completed" }
    const answer = Message.assistant(
      [
        thought(sealed),
        atVendor(search),
        { type: "text", text: "A", opaque: kept({ item, part: { type: "output_text", annotations } }) },
        { type: "text", text: "No", opaque: kept({ part: { type: "refusal" } }) },
        call("call_1", "{}", kept({ item: { id: "fc_1", type: "function_call", namespace: "n" } }))
      ],
      mine
    )
    assert.deepStrictEqual(inputOf([hi, answer, result("call_1")]).slice(1), [
      { type: "reasoning", ...sealed },
      search,
      {
        ...item,
        content: [
          { type: "output_text", annotations, text: "A" },
          { type: "refusal", refusal: "No" }
        ]
      },
      { ...functionCall("call_1"), id: "fc_1", namespace: "n" },
      output("call_1")
    ])
    const plain = [
      { role: "assistant", content: "A" },
      { role: "assistant", content: "No" },
      functionCall("call_1"),
      output("call_1")
    ]
    assert.deepStrictEqual(inputOf([answer, result("call_1")], { model: "gpt-5" }), plain)
    assert.deepStrictEqual(
      JSON.parse(
        String(
          encoder("other")({ model: "gpt-4o", messages: [answer, result("call_1")], tools: [], options: {} })
        )
      ).input,
      plain
    )
  })

  it("gives thinking back with what follows it, if it can be read", () => {
    const said = Message.text("A")
    const said1 = { role: "assistant", content: "A" }
    const sent = (content: Message.Assistant["content"], store = false) =>
      inputOf([Message.assistant(content, mine)], store ? { options: { vendor: { acme: { store } } } } : {})
    const raw = { id: "rs_2", summary: [], content: [{ type: "reasoning_text", text: "Hm" }] }
    const named = { id: "rs_3", summary: [], encrypted_content: null }
    assert.deepStrictEqual(sent([thought({ ...sealed, status: "completed" }), thought(raw), said]), [
      { type: "reasoning", ...sealed },
      { type: "reasoning", ...raw },
      said1
    ])
    assert.deepStrictEqual(sent([said, thought(sealed)]), [said1])
    assert.deepStrictEqual(sent([thought(sealed)]), [])
    assert.deepStrictEqual(sent([thought(sealed), atVendor({ type: "computer_call", call_id: "c" }), said]), [
      said1
    ])
    assert.deepStrictEqual(sent([thought(named), said]), [said1])
    assert.deepStrictEqual(sent([thought(named), said], true), [{ type: "reasoning", ...named }, said1])
    assert.deepStrictEqual(sent([{ type: "thinking", text: "Foreign" }, said]), [said1])
  })

  it("gives what ran at the vendor back with its result, or not at all", () => {
    const shell = { type: "shell_call", call_id: "c" }
    const shown = { type: "shell_call_output", call_id: "c", output: [] }
    const search = { type: "tool_search_call", call_id: null, execution: "server" }
    const sent = (...items: ReadonlyArray<object>) => inputOf([Message.assistant(items.map(atVendor), mine)])
    assert.deepStrictEqual(sent(shell, shown, search), [shell, shown, search])
    assert.deepStrictEqual(sent(shell), [])
  })

  it("gives results and files of the vendor's tools back with their items, in their order", () => {
    const code = { id: "ci_1", type: "code_interpreter_call", code: "1", container_id: "c" }
    const image = { id: "ig_1", type: "image_generation_call", status: "completed" }
    const content: Message.Assistant["content"] = [
      {
        type: "hostedTool",
        id: "ci_1",
        name: "code_interpreter",
        result: ["2"],
        opaque: kept({ item: code, result: "outputs" })
      },
      { type: "source", sourceType: "url", url: "https://a.test" },
      { type: "hostedTool", id: "ig_1", name: "image_generation", params: {} },
      {
        type: "media",
        source: { data: "AAAA", mediaType: "image/png" },
        opaque: kept({ item: image, result: "result" })
      },
      {
        type: "hostedTool",
        id: "c",
        name: "shell",
        opaque: kept({ item: { type: "shell_call", call_id: "c" } })
      },
      Message.text("Done")
    ]
    const done = { role: "assistant", content: "Done" }
    assert.deepStrictEqual(inputOf([Message.assistant(content, mine)]), [
      { ...code, outputs: ["2"] },
      { ...image, result: "AAAA" },
      done
    ])
    assert.deepStrictEqual(inputOf([Message.assistant(content, { ...mine, model: "gpt-5" })]), [done])
  })

  it("answers a custom tool as one", () => {
    const custom = call("call_1", "SELECT 1", kept({ item: { id: "ct_1", type: "custom_tool_call" } }))
    const messages = [Message.assistant([custom], mine), result("call_1")]
    const sent = { type: "custom_tool_call", name: "f", input: "SELECT 1", call_id: "call_1" }
    const answered = { ...output("call_1"), type: "custom_tool_call_output" }
    assert.deepStrictEqual(inputOf(messages), [{ ...sent, id: "ct_1" }, answered])
    assert.deepStrictEqual(inputOf(messages, { model: "gpt-5" }), [sent, answered])
  })

  it("leaves out ids that the vendor refuses, and halves of characters", () => {
    const id = "x".repeat(65)
    const answer = Message.assistant([thought({ ...sealed, id }), Message.text("\ud83d")], mine)
    const { id: _, ...rest } = sealed
    assert.deepStrictEqual(inputOf([answer]), [
      { type: "reasoning", ...rest },
      { role: "assistant", content: "\ufffd" }
    ])
  })

  it("asks for what a request wants", () => {
    const schema = { type: "object", properties: { a: {} }, required: ["a"], additionalProperties: false }
    assert.deepStrictEqual(
      asked(
        { maxTokens: 8, temperature: 0.5, topP: 0.9, stop: ["END"], toolChoice: { name: "f" } },
        { tools: [tool] }
      ),
      {
        tools: [{ type: "function", ...tool, strict: false }],
        max_output_tokens: 16,
        temperature: 0.5,
        top_p: 0.9,
        tool_choice: { type: "function", name: "f" }
      }
    )
    assert.deepStrictEqual(asked({ toolChoice: "required" }), {})
    assert.deepStrictEqual(asked({ output: { name: "o", schema } }), {
      text: { format: { type: "json_schema", name: "o", schema, strict: true } }
    })
    const open = { type: "object", properties: { a: {} } }
    assert.isFalse(asked({ output: { name: "o", schema: open } }).text.format.strict)
  })

  it("asks for what else the vendor has", () => {
    assert.deepStrictEqual(
      asked({ parallelToolCalls: false, serviceTier: "flex", logprobs: 2 }, { tools: [tool] }),
      {
        tools: [{ type: "function", ...tool, strict: false }],
        parallel_tool_calls: false,
        service_tier: "flex",
        top_logprobs: 2,
        include: ["message.output_text.logprobs"]
      }
    )
    assert.deepStrictEqual(asked({ parallelToolCalls: false }), {})
    assert.isTrue(bodyOf({ options: { store: true } }).store)
  })

  it("holds the model to the schema of a strict tool", () => {
    const closed = { type: "object", properties: {}, additionalProperties: false }
    const strictOf = (parameters: Provider.ToolDefinition["parameters"]) =>
      bodyOf({ tools: [{ ...tool, strict: true, parameters }] }).tools[0].strict
    assert.deepStrictEqual([strictOf(closed), strictOf(tool.parameters)], [true, false])
  })

  it("goes on from an answer that the vendor stored", () => {
    const first = Message.assistant([thought(sealed), call("call_1"), call("call_2")], {
      ...mine,
      responseId: "resp_1"
    })
    const sent = bodyOf({
      messages: [hi, Message.assistant("Old", mine), hi, first, result("call_1"), hi],
      system: "Be brief.",
      options: { previousResponseId: "resp_1", store: true }
    })
    assert.deepInclude(sent, { previous_response_id: "resp_1", store: true, instructions: "Be brief." })
    assert.deepStrictEqual(sent.input, [
      output("call_1"),
      { role: "user", content: "Hi" },
      output("call_2", "No result was recorded.")
    ])
    // An answer that the conversation does not have: all of it is new.
    const options = { previousResponseId: "resp_0" }
    assert.deepStrictEqual(inputOf([hi], { options }), [{ role: "user", content: "Hi" }])
  })

  it("offers the tools that the vendor runs", () => {
    const computer = { ...tool, name: "computer" }
    const hostedTools: Provider.ModelRequest["options"]["hostedTools"] = [
      {
        type: "webSearch",
        maxUses: 2,
        allowedDomains: ["a.test"],
        location: { country: "NO" },
        vendor: { acme: { search_context_size: "low" }, other: { x: 1 } }
      },
      { type: "codeExecution" },
      { type: "fileSearch", stores: ["vs_1"], maxResults: 3 },
      { type: "computerUse", width: 800, height: 600 }
    ]
    const request = { tools: [tool, computer], options: { hostedTools, toolChoice: { name: "computer" } } }
    const { include, tool_choice, tools } = bodyOf(request)
    assert.deepStrictEqual(tools, [
      { type: "function", ...tool, strict: false },
      {
        type: "web_search",
        filters: { allowed_domains: ["a.test"] },
        user_location: { type: "approximate", country: "NO" },
        search_context_size: "low"
      },
      { type: "code_interpreter", container: { type: "auto" } },
      { type: "file_search", vector_store_ids: ["vs_1"], max_num_results: 3 },
      { type: "computer" }
    ])
    assert.deepStrictEqual(include, [
      "web_search_call.action.sources",
      "code_interpreter_call.outputs",
      "file_search_call.results"
    ])
    assert.deepStrictEqual(tool_choice, { type: "computer" })
    const preview = bodyOf({ ...request, model: "computer-use-preview" }).tools.at(-1)
    assert.deepStrictEqual(preview, {
      type: "computer_use_preview",
      display_width: 800,
      display_height: 600,
      environment: "browser"
    })
    const { adjusted } = questionOf(server, { model: "gpt-4o", messages: [], ...request })
    assert.deepStrictEqual(
      adjusted.map(({ asked, option, sent }) => [option, asked, sent]),
      [["hostedTools.webSearch.maxUses", 2, null]]
    )
  })

  it("answers a call for the screen with an image of it", () => {
    const item = { type: "computer_call", id: "cu_1", status: "completed" }
    const checks = [{ id: "c1", code: "x", message: "Sure?" }]
    const params = { actions: [{ type: "wait" }], pending_safety_checks: checks }
    const first: Message.ToolCall = {
      ...call("call_1", JSON.stringify(params), kept({ item })),
      name: "computer"
    }
    const second = { ...call("call_2", '{"actions":[]}', kept({ item })), name: "computer" }
    const [sent, other, shown, failed, why] = inputOf([
      Message.assistant([first, second], mine),
      result("call_1", [png]),
      result("call_2", "No screen")
    ])
    assert.deepStrictEqual(sent, { ...item, ...params, call_id: "call_1" })
    assert.deepStrictEqual(other, { ...item, actions: [], call_id: "call_2" })
    assert.deepStrictEqual(shown, {
      type: "computer_call_output",
      call_id: "call_1",
      acknowledged_safety_checks: checks,
      output: { type: "computer_screenshot", image_url: pngPart.image_url }
    })
    assert.deepInclude(failed, { type: "computer_call_output", call_id: "call_2" })
    assert.match(failed.output.image_url, /^data:image\/png/)
    assert.deepStrictEqual(why, { role: "user", content: "No screen" })
  })

  it("counts what the vendor reads", () => {
    const { counting } = openAiResponses("acme")
    assert(counting !== undefined)
    const { encode, read } = counting
    const options = {
      maxTokens: 100,
      temperature: 1,
      serviceTier: "flex",
      sessionId: "s",
      vendor: { acme: { store: true, truncation: "auto" } }
    }
    const body = encode(
      questionOf(server, { model: "gpt-4o", system: "S", messages: [hi], tools: [tool], options })
    )
    assert(!isReason(body))
    assert.deepStrictEqual(JSON.parse(body), {
      model: "gpt-4o",
      instructions: "S",
      input: [{ role: "user", content: "Hi" }],
      tools: [{ type: "function", ...tool, strict: false }],
      truncation: "auto"
    })
    assert.strictEqual(read({ object: "response.input_tokens", input_tokens: 11 }), 11)
    assert.isUndefined(read({}))
  })

  it("asks for thinking, and for the seal of it where a model may think", () => {
    const include = ["reasoning.encrypted_content"]
    assert.deepStrictEqual(asked({ thinkingLevel: "high" }, { model: "gpt-5" }), {
      include,
      reasoning: { effort: "high", summary: "auto" }
    })
    assert.deepStrictEqual(asked({ thinkingLevel: "off" }), {})
    assert.deepStrictEqual(asked({ thinkingLevel: "high" }), {})
    for (const model of ["gpt-5", "openai/gpt-5.1-codex", "o4-mini", "gpt-10"]) {
      assert.deepStrictEqual(asked({}, { model }), { include }, model)
    }
    for (const model of ["gpt-4.1", "gpt-5-chat-latest", "llama-3"]) {
      assert.deepStrictEqual(asked({}, { model }), {}, model)
    }
  })

  it("names the cache by the session (row 41)", () => {
    const sessionId = "s".repeat(100)
    const long = { sessionId: "s", cacheRetention: "long" } as const
    const key = { prompt_cache_key: "s" }
    assert.deepStrictEqual(asked(long), key)
    assert.deepStrictEqual(asked(long, { model: "gpt-4.1" }), { ...key, prompt_cache_retention: "24h" })
    assert.deepInclude(asked(long, { model: "gpt-6-luna" }), {
      ...key,
      prompt_cache_options: { ttl: "12h" }
    })
    assert.isAtMost(asked({ sessionId }).prompt_cache_key.length, 64)
    assert.deepStrictEqual(asked({ sessionId: "s", cacheRetention: "none" }), {})
  })

  it("offers the vendor's own tools beside those of the agent", () => {
    const search = { type: "web_search" }
    const tool = { name: "f", description: "F.", parameters: { type: "object", properties: {} } }
    const { tools } = bodyOf({ tools: [tool], options: { vendor: { acme: { tools: [search] } } } })
    assert.deepStrictEqual(tools, [{ type: "function", ...tool, strict: false }, search])
  })

  it("lays the vendor's own parameters over it", () => {
    const text = { verbosity: "low" }
    const options = { thinkingLevel: "low", output: { name: "o", schema: {} } } as const
    const vendor = { store: true, user: "u", model: "gpt-6", text, reasoning: { summary: "detailed" } }
    const body = bodyOf({ model: "gpt-5", options: { ...options, vendor: { acme: vendor } } })
    assert.deepInclude(body, { store: true, user: "u", model: "gpt-6" })
    assert.deepStrictEqual(body.reasoning, { effort: "low", summary: "detailed" })
    assert.deepInclude(body.text, text)
    assert.deepInclude(body.text.format, { name: "o" })
  })
})
