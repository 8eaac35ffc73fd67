import { assert, describe, it } from "@effect/vitest"
import { ModelEvent } from "effect-agent"
import { Framing, type Protocol, Protocols, ReplyWriter } from "effect-agent/providers"
import { Answer } from "../../src/providers/internal/answer.ts"
import { maxArguments, maxText } from "../../src/internal/answerSize.ts"
import { events as sse } from "./server.ts"

const tools = ["echo", "clock", "echo_all"].map((name) => ({ name, description: "", parameters: {} }))
const plain = { thinkingLevel: undefined, thinking: {}, rule: undefined, adjusted: [], headers: {} }
const question = { model: "m", messages: [], tools, options: {}, vendor: {}, ...plain }

/** The answer of a request that declares the tools, and how it ended. */
const answerOf = (protocol: Protocol.Protocol, ...wire: ReadonlyArray<unknown>) => {
  const call = { model: "m", seed: "s", question }
  const reply = new ReplyWriter.ReplyWriter(protocol, call)
  const begun = { call, reply, decoder: protocol.decoder(call, reply) }
  const answer = new Answer({ protocol, framing: Framing.sse, redact: (text) => text }, begun)
  answer.push(new TextEncoder().encode(sse(...wire)))
  answer.end()
  const { content, finish } = answer.take().reduce(ModelEvent.append, ModelEvent.emptyReply)
  return { content, finish, outcome: answer.outcome }
}

const callsOf = (protocol: Protocol.Protocol, ...wire: ReadonlyArray<unknown>) => {
  const { content, outcome } = answerOf(protocol, ...wire)
  assert.strictEqual(outcome, "complete")
  const calls = content.flatMap((block) => (block.type === "toolCall" ? [block] : []))
  assert.strictEqual(new Set(calls.map(({ id }) => id)).size, calls.length)
  return calls.map(({ name, params, rawArguments }) => [name, params ?? rawArguments])
}

describe("calls of Chat Completions from sloppy servers", () => {
  const chat = Protocols.openAiChat("acme")
  const delta = (fields: object, finish: string | null = null) => ({
    choices: [{ index: 0, delta: fields, finish_reason: finish }]
  })
  const piece = (
    index: number | string | undefined,
    id: string | undefined,
    name: string | undefined,
    args: unknown
  ) => delta({ tool_calls: [{ index, id, type: "function", function: { name, arguments: args } }] })
  const read = (...wire: ReadonlyArray<unknown>) => callsOf(chat, ...wire, delta({}, "tool_calls"), "[DONE]")
  const [one, two] = ['{"v":"1"}', '{"v":"2"}']
  const both = [
    ["echo", { v: "1" }],
    ["echo", { v: "2" }]
  ]

  it.each([
    ["no ids", undefined, undefined],
    ["empty ids", "", ""],
    ["one id", "x", "x"],
    ["ids of their own", "x", "y"]
  ])("are two where whole ones share an index and have %s", (_, first, second) => {
    assert.deepStrictEqual(read(piece(0, first, "echo", one), piece(0, second, "echo", two)), both)
    assert.deepStrictEqual(
      read(piece(undefined, first, "echo", one), piece(undefined, second, "echo", two)),
      both
    )
  })

  it("are two where the next begins in pieces behind a whole one", () => {
    const wire = [
      piece(0, "", "echo", '{"v":'),
      piece(0, "", "", '"1"}'),
      piece(0, "", "echo", '{"v"'),
      piece(0, "", "", ':"2"}')
    ]
    assert.deepStrictEqual(read(...wire), both)
  })

  it("are one where each piece has the name, or an id of its own", () => {
    assert.deepStrictEqual(
      read(piece(0, "x", "echo", '{"v":'), piece(0, "x", "echo", '"{"'), piece(0, "x", "echo", "}")),
      [["echo", { v: "{" }]]
    )
    assert.deepStrictEqual(read(piece(0, "a", "echo", '{"v"'), piece(0, "b", "echo", ':"2"}')), [
      ["echo", { v: "2" }]
    ])
    assert.deepStrictEqual(
      read(piece(undefined, undefined, "echo", '{"v"'), piece(undefined, undefined, "echo", ':"2"}')),
      [["echo", { v: "2" }]]
    )
  })

  it.each([
    ["again", two],
    ["again, with white space", '{ "v": "2" }'],
    ["encoded twice", JSON.stringify(two)],
    ["encoded three times", JSON.stringify(JSON.stringify(two))]
  ])("are one where the whole arguments come %s", (_, whole) => {
    for (const name of ["echo", undefined]) {
      const wire = [
        piece(0, "x", "echo", '{"v"'),
        piece(0, "x", undefined, ':"2"}'),
        piece(0, "x", name, whole)
      ]
      assert.deepStrictEqual(read(...wire), [["echo", { v: "2" }]])
    }
    assert.deepStrictEqual(read(piece(0, "x", "echo", whole)), [["echo", { v: "2" }]])
  })

  it.each([
    ["names and ids", "x", "echo"],
    ["neither", undefined, undefined]
  ])("are one where each piece has all the arguments so far, and %s", (_, id, name) => {
    const wanted = '{"a":{"a":"{\\"a\\":"},"b":[1,2]}'
    for (const step of [1, 2, 3, 7]) {
      const ends = Array.from({ length: Math.ceil(wanted.length / step) }, (_, index) => (index + 1) * step)
      const wire = ends.map((end, index) =>
        piece(0, index === 0 ? "x" : id, index === 0 ? "echo" : name, wanted.slice(0, end))
      )
      assert.deepStrictEqual(read(...wire), [["echo", JSON.parse(wanted)]])
    }
    // The same words within the arguments.
    const nested = ['{"a":', '{"a":', '{"a":1}', "}", "}"].map((args, index) =>
      piece(0, index === 0 ? "x" : id, index === 0 ? "echo" : name, args)
    )
    assert.deepStrictEqual(read(...nested), [["echo", { a: { a: { a: 1 } } }]])
  })

  it("drop an empty object before the arguments", () => {
    assert.deepStrictEqual(read(piece(0, "x", "echo", "{}"), piece(0, undefined, undefined, two)), [
      ["echo", { v: "2" }]
    ])
    assert.deepStrictEqual(read(piece(0, "x", "echo", "{}"), piece(0, "x", "echo", two)), [
      ["echo", { v: "2" }]
    ])
    assert.deepStrictEqual(read(piece(0, "x", "clock", "{}")), [["clock", {}]])
  })

  it("never run with arguments that contradict each other", () => {
    assert.deepStrictEqual(read(piece(0, "x", "echo", one), piece(0, undefined, undefined, two)), [
      ["echo", one + two]
    ])
  })

  it("put a name together from its pieces", () => {
    for (const names of [["ec", "ho"], ["e", "c", "ho"], ["echo"], ["echo", "_all"]]) {
      const [first, ...rest] = names
      const wire = [
        piece(0, "x", first, ""),
        ...rest.map((name) => piece(0, undefined, name, "")),
        piece(0, undefined, undefined, two)
      ]
      assert.deepStrictEqual(read(...wire), [[names.join(""), { v: "2" }]])
    }
    assert.deepStrictEqual(read(piece(0, undefined, "clock", ""), piece(0, undefined, "echo", two)), [
      ["clock", {}],
      ["echo", { v: "2" }]
    ])
  })

  it("take an index as text, and one call for a list", () => {
    assert.deepStrictEqual(read(piece("0", "x", "echo", '{"v"'), piece("0", undefined, undefined, ':"2"}')), [
      ["echo", { v: "2" }]
    ])
    assert.deepStrictEqual(
      read(delta({ tool_calls: { index: 0, id: "x", function: { name: "echo", arguments: two } } })),
      [["echo", { v: "2" }]]
    )
  })

  it("take the call of the old protocol, once", () => {
    const old = [
      delta({ function_call: { name: "echo", arguments: '{"v"' } }),
      delta({ function_call: { arguments: ':"2"}' } })
    ]
    assert.deepStrictEqual(read(...old), [["echo", { v: "2" }]])
    const fn = { name: "echo", arguments: two }
    assert.deepStrictEqual(
      read(delta({ tool_calls: [{ index: 0, id: "x", function: fn }], function_call: fn })),
      [["echo", { v: "2" }]]
    )
  })

  it("keep the name and the input of a custom call", () => {
    const custom = (fields: object) =>
      delta({ tool_calls: [{ index: 0, id: "x", type: "custom", custom: fields }] })
    assert.deepStrictEqual(read(custom({ name: "sql", input: "SELECT " }), custom({ input: '"a"' })), [
      ["sql", 'SELECT "a"']
    ])
  })
})

describe("the arguments of calls", () => {
  const encoded = JSON.stringify('{"v":"2"}')
  const expected = [["echo", { v: "2" }]]

  it("may be encoded twice in Responses", () => {
    const item = { type: "function_call", id: "f", call_id: "c", name: "echo", arguments: encoded }
    const response = { id: "r", status: "completed", output: [item] }
    assert.deepStrictEqual(
      callsOf(Protocols.openAiResponses("acme"), { type: "response.completed", response }),
      expected
    )
  })

  it("may be encoded twice, or follow an empty object, in Messages", () => {
    const start = { type: "message_start", message: { id: "m", content: [] } }
    const block = {
      type: "content_block_start",
      index: 0,
      content_block: { type: "tool_use", id: "t", name: "echo", input: {} }
    }
    const input = (partial_json: string) => ({
      type: "content_block_delta",
      index: 0,
      delta: { type: "input_json_delta", partial_json }
    })
    const end = [{ type: "message_delta", delta: { stop_reason: "tool_use" } }, { type: "message_stop" }]
    const messages = Protocols.anthropicMessages("acme")
    assert.deepStrictEqual(callsOf(messages, start, block, input(encoded), ...end), expected)
    assert.deepStrictEqual(callsOf(messages, start, block, input("{}"), input('{"v":"2"}'), ...end), expected)
  })

  it("may be JSON text in Gemini", () => {
    const parts = [{ functionCall: { name: "echo", args: '{"v":"2"}' } }]
    const chunk = { candidates: [{ content: { parts }, finishReason: "STOP" }] }
    assert.deepStrictEqual(callsOf(Protocols.gemini("acme"), chunk), expected)
  })
})

describe("an answer of Messages that comes with its start", () => {
  it("is read, with results and calls", () => {
    const content = [
      {
        type: "code_execution_tool_result",
        tool_use_id: "s",
        content: { type: "code_execution_result", stdout: "x" }
      },
      { type: "text", text: "Now." },
      { type: "tool_use", id: "t", name: "echo", input: { v: "2" } }
    ]
    const start = { type: "message_start", message: { id: "m", content, stop_reason: "tool_use" } }
    const answer = answerOf(Protocols.anthropicMessages("acme"), start, { type: "message_stop" })
    assert.deepStrictEqual(
      answer.content.map(({ type }) => type),
      ["hostedTool", "text", "toolCall"]
    )
    assert.strictEqual(answer.finish?.stopReason, "toolUse")
  })
})

describe("one call that stands for several", () => {
  const uses = {
    tool_uses: [
      { recipient_name: "functions.echo", parameters: { v: "1" } },
      { recipient_name: "clock", parameters: {} }
    ]
  }
  const item = (name: string) => ({
    type: "response.completed",
    response: {
      status: "completed",
      output: [{ type: "function_call", id: "f", call_id: "c", name, arguments: JSON.stringify(uses) }]
    }
  })
  const responses = Protocols.openAiResponses("acme")

  it("is split, unless a tool has its name", () => {
    assert.deepStrictEqual(callsOf(responses, item("parallel")), [
      ["echo", { v: "1" }],
      ["clock", {}]
    ])
    assert.deepStrictEqual(callsOf(responses, item("other")), [["other", uses]])
  })
})

describe("an answer that no honest model gives", () => {
  const chat = Protocols.openAiChat("acme")
  const delta = (fields: object) => ({ choices: [{ index: 0, delta: fields }] })

  it("fails typed when the arguments of its calls, or its text, are too large", () => {
    const large = "x".repeat(maxArguments / 4)
    const call = delta({ tool_calls: [{ index: 0, id: "a", function: { name: "echo", arguments: large } }] })
    const text = delta({ content: "x".repeat(maxText / 8) })
    for (const wire of [Array.from({ length: 5 }, () => call), Array.from({ length: 9 }, () => text)]) {
      const { outcome } = answerOf(chat, ...wire)
      assert.deepInclude(outcome, { _tag: "Protocol", kind: "tooLarge" })
    }
  })
})
