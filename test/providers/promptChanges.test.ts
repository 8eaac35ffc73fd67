import { assert, describe, it } from "@effect/vitest"
import { Effect, type Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, AgentEvent, Message, Provider, type RunOptions } from "effect-agent"
import { Anthropic } from "effect-agent/providers"
import { MemorySessionStore, SessionStore } from "effect-agent/sessions"
import { encoder as messagesEncoder } from "../../src/providers/internal/anthropic/request.ts"
import { anthropicMessages } from "../../src/providers/internal/anthropic/protocol.ts"
import { encoder as converseEncoder } from "../../src/providers/internal/bedrock/request.ts"
import { encoder as responsesEncoder } from "../../src/providers/internal/openAiResponses/request.ts"
import { instead } from "../../src/providers/internal/promptChanges.ts"
import { Random } from "../../harness/chaos/Random.ts"
import { questionOf } from "./asked.ts"
import { events, serve, stream } from "./server.ts"

type Json = Schema.Json
type Wire = "messages" | "responses" | "converse"

const models: Readonly<Record<Wire, string>> = {
  messages: "claude-opus-5-5",
  responses: "gpt-6.1-sol",
  converse: "anthropic.claude-opus-5-5-20260922-v1:0"
}
const vendors = { messages: "anthropic", responses: "openai", converse: undefined } as const
const encoders = {
  messages: messagesEncoder("acme"),
  responses: responsesEncoder("acme"),
  converse: converseEncoder("acme").converse
}
const own = [{ pattern: "claude-opus-5-5", promptChanges: { converse: ["system", "tools"] } }] as const

/** The prompt as it is now. */
interface Now {
  readonly system: string
  readonly tools: ReadonlyArray<Provider.ToolDefinition>
  readonly level: RunOptions.ThinkingLevel
}

type Notes = NonNullable<Provider.ModelRequest["notes"]>

const ask = (
  wire: Wire,
  { level, system, tools }: Now,
  messages: ReadonlyArray<Message.ModelMessage>,
  notes: Notes = new Map(),
  more: RunOptions.ModelOptions = { promptChanges: "append" },
  server = {}
) => {
  const question = questionOf(
    {
      id: "acme",
      endpoint: wire,
      vendor: vendors[wire],
      promptChanges: true,
      own: wire === "converse" ? own : [],
      ...server
    },
    {
      model: models[wire],
      system,
      tools,
      messages,
      notes,
      options: { thinkingLevel: level, cacheRetention: "none", ...more }
    }
  )
  const json = encoders[wire](question)
  assert.isString(json)
  const body: any = JSON.parse(String(json))
  return { body, question, headers: anthropicMessages("acme").headers?.(question) ?? {} }
}

// ───────────────────────── Bodies, read as their vendor reads them

interface Read {
  /** The body in the order in which the vendor reads it. */
  readonly units: ReadonlyArray<string>
  readonly system: string
  readonly tools: Readonly<Record<string, Json>>
  readonly effort: Json
  /** How many items say changes. */
  readonly said: number
}

const textsOf = (content: any): ReadonlyArray<string> =>
  typeof content === "string"
    ? [content]
    : content.flatMap(({ text }: any) => (text === undefined ? [] : [text]))

const told = (before: string, texts: ReadonlyArray<string>): string =>
  texts.reduce(
    (system, text) => (text.startsWith(instead) ? text.slice(instead.length) : system + text),
    before
  )

const readers: Readonly<Record<Wire, (body: any) => Read>> = {
  messages: ({ messages, output_config = {}, system = [], thinking, tools = [] }) => {
    const known = new Map<string, Json>(tools.map((tool: any) => [tool.name, tool]))
    let said = textsOf(system).join("")
    let { effort = null } = output_config
    let next: Json = null
    let count = 0
    for (const [index, { content, output_config: own, role }] of messages.entries()) {
      const isInput = role === "user" && content.some(({ type }: any) => type !== "tool_result")
      if (isInput && next !== null) [effort, next] = [next, null]
      if (role !== "system") continue
      const before = messages.slice(0, index).findLast(({ role }: any) => role !== "system")
      if (before?.role === "assistant")
        assert.isFalse(
          before.content.some(({ type }: any) => type === "tool_use"),
          "results follow their calls"
        )
      count++
      next = own?.effort ?? next
      said = told(said, textsOf(content))
      for (const { tool, type } of content) {
        if (type === "tool_removal") assert.isTrue(known.delete(tool.name), "a known tool is removed")
        if (type === "tool_addition") known.set(tool.definition.name, tool.definition)
      }
      if (content.length === 0) continue
      assert.strictEqual(messages[index - 1]?.role, "user")
      assert.oneOf(messages[index + 1]?.role, ["assistant", undefined])
    }
    assert.isNull(next, "each effort counts before the answer that is asked for")
    const units = [tools, system, { output_config, thinking }, ...messages].map((unit) =>
      JSON.stringify(unit)
    )
    return { units, system: said, tools: Object.fromEntries(known), effort, said: count }
  },
  responses: ({ input, instructions = "", reasoning, tools = [] }) => {
    const known = new Map<string, Json>(tools.map((tool: any) => [tool.name, tool]))
    let system = instructions
    let { effort } = reasoning
    let said = 0
    for (const item of input) {
      if (item.role === "developer" || item.type === "configuration_update") said++
      if (item.type === "configuration_update") effort = item.reasoning.effort
      else if (item.type === "additional_tools")
        for (const tool of item.tools) {
          assert.isFalse(known.has(tool.name), "only new tools are added")
          known.set(tool.name, tool)
        }
      else if (item.role === "developer") system = told(system, textsOf(item.content))
    }
    const units = [tools, instructions, reasoning, ...input].map((unit) => JSON.stringify(unit))
    return { units, system, tools: Object.fromEntries(known), effort, said }
  },
  converse: ({ additionalModelRequestFields = {}, messages, system = [], toolConfig = { tools: [] } }) => {
    const declared = new Map<string, Json>(toolConfig.tools.map((tool: any) => [tool.toolSpec.name, tool]))
    const known = new Map(declared)
    let said = textsOf(system).join("")
    let count = 0
    for (const [index, { content, role }] of messages.entries()) {
      if (role !== "system") continue
      count++
      said = told(said, textsOf(content))
      for (const { toolAddition, toolRemoval } of content) {
        if (toolRemoval !== undefined) assert.isTrue(known.delete(toolRemoval.tool.name))
        const name = toolAddition?.tool.name
        if (name !== undefined) known.set(name, declared.get(name) ?? "a tool that is not declared")
      }
      assert.strictEqual(messages[index - 1]?.role, "user")
      assert.oneOf(messages[index + 1]?.role, ["assistant", undefined])
    }
    const { anthropic_beta: _, ...fields } = additionalModelRequestFields
    const units = [toolConfig, system, fields, ...messages].map((unit) => JSON.stringify(unit))
    return {
      units,
      system: said,
      tools: Object.fromEntries(known),
      effort: fields.output_config ?? null,
      said: count
    }
  }
}

const isBeginning = (before: ReadonlyArray<string>, now: ReadonlyArray<string>): boolean =>
  before.every((unit, index) => unit === now[index])

// ───────────────────────── Conversations

const tool = (name: string, version = 1, more = {}): Provider.ToolDefinition => ({
  name,
  description: `${name}, version ${version}`,
  parameters: {
    type: "object",
    properties: { [`p${version}`]: { type: "string" } },
    additionalProperties: false
  },
  ...more
})

const start: Now = { system: "You are kind.", tools: [tool("a"), tool("b")], level: "medium" }

const answer = (wire: Wire, content: string | Message.Assistant["content"]): Message.Assistant =>
  Message.assistant(content, { provider: "acme", model: models[wire] })

const changed = (random: Random, now: Now, step: number): Now => {
  const kind = random.pick<"none" | "system" | "append" | "add" | "remove" | "back" | "redefine" | "level">(
    "none",
    "system",
    "append",
    "add",
    "remove",
    "back",
    "redefine",
    "level"
  )
  const { level, system, tools } = now
  switch (kind) {
    case "none":
      return now
    case "system":
      return { ...now, system: `You are someone else since ${step}.` }
    case "append":
      return { ...now, system: `${system}\nNote ${step}.` }
    case "add":
      return { ...now, tools: [...tools.filter(({ name }) => name !== `t${step}`), tool(`t${step}`)] }
    case "remove":
      return { ...now, tools: tools.filter((_, index) => index !== random.upTo(tools.length)) }
    case "back":
      return { ...now, tools: [...tools.filter(({ name }) => name !== "a"), tool("a")] }
    case "redefine":
      return { ...now, tools: tools.map((one, index) => (index === 0 ? tool(one.name, step + 2) : one)) }
    case "level":
      return { ...now, level: level === "low" ? "high" : "low" }
  }
}

/** The next messages of the conversation: a question, or the result of a call. */
const news = (random: Random, wire: Wire, messages: ReadonlyArray<Message.ModelMessage>, step: number) => {
  const last = messages.at(-1)
  const calls = last?.role === "assistant" ? Message.toolCalls(last) : []
  const results = calls.map((call) => Message.toolResult(call, `result ${step}`))
  const said = results.length === 0 || random.once(4) ? [Message.user(`question ${step}`)] : []
  const call: Message.ToolCall = {
    type: "toolCall",
    id: `call_${step}`,
    name: "a",
    rawArguments: "{}",
    params: {}
  }
  return { asked: [...results, ...said], answer: answer(wire, random.once(2) ? `answer ${step}` : [call]) }
}

/** A server that says "Fine.", but never ends one of its answers, counted from 1. */
const claude = Effect.fnUntraced(function* (endless = 0) {
  const bodies: Array<any> = []
  const server = yield* serve((response, { body }) => {
    bodies.push(JSON.parse(body))
    const message = {
      id: `msg_${bodies.length}`,
      model: "claude-opus-5-5",
      usage: { input_tokens: 1, output_tokens: 1 }
    }
    const beginning = [
      { type: "message_start", message },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Fine." } }
    ]
    if (bodies.length === endless) stream(response).write(events(...beginning))
    else
      stream(response).end(
        events(
          ...beginning,
          { type: "content_block_stop", index: 0 },
          { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } },
          { type: "message_stop" }
        )
      )
  })
  return { bodies, server }
})

describe("promptChanges: append", () => {
  for (const wire of ["messages", "responses", "converse"] as const)
    it(`keeps the beginning of ${wire}, and the model reads the prompt of now, for any changes`, () => {
      let kept = 0
      let steps = 0
      for (let seed = 0; seed < 30; seed++) {
        const random = new Random(seed)
        let now = start
        let messages: ReadonlyArray<Message.ModelMessage> = []
        let notes = new Map<string, Json>()
        let before: Read | undefined
        const asked = new Map<string, Read>()
        for (let step = 0; step < 12; step++) {
          if (step > 0) for (let count = random.upTo(2); count >= 0; count--) now = changed(random, now, step)
          const next = news(random, wire, messages, step)
          messages = [...messages, ...next.asked]
          const { body, question } = ask(wire, now, messages, notes)
          const read = readers[wire](body)
          const plain = readers[wire](ask(wire, now, messages, notes, {}).body)
          assert.deepStrictEqual(
            { system: read.system, tools: read.tools, effort: read.effort },
            { system: plain.system, tools: plain.tools, effort: plain.effort }
          )
          if (before !== undefined) {
            steps++
            const isKept = isBeginning(before.units, read.units)
            if (isKept) kept++
            else assert.strictEqual(read.said, 0, "a prompt that begins anew has no changes")
            const isLoop = next.asked.some(({ role }) => role === "toolResult")
            if (wire === "messages")
              assert.strictEqual(
                isKept,
                !isLoop || read.effort === before.effort,
                "only an effort in a loop renews"
              )
          }
          before = read
          asked.set(next.answer.id, read)
          messages = [...messages, next.answer]
          if (question.note !== undefined) notes.set(next.answer.id, question.note)
          if (random.once(8)) {
            // The conversation goes on from an earlier answer.
            const last =
              messages.filter(({ role }) => role === "assistant")[random.upTo(step)]?.id ?? next.answer.id
            messages = messages.slice(0, messages.findIndex(({ id }) => id === last) + 1)
            before = asked.get(last)
          } else if (random.once(7)) {
            // A summary stands in place of older messages.
            const from = messages.findIndex(
              ({ role }, index) => role === "user" && index > messages.length / 2
            )
            messages = [Message.user("The story so far."), ...messages.slice(from)]
            before = undefined
            asked.clear()
          } else if (random.once(5)) {
            messages = JSON.parse(JSON.stringify(messages))
            notes = new Map(JSON.parse(JSON.stringify([...notes])))
          }
        }
      }
      assert.isAbove(kept, steps / 4)
    })

  it("says each change that the vendor has words for behind the messages of the earlier requests", () => {
    const question = Message.user("One")
    const first = ask("messages", start, [question])
    const one = answer("messages", "1")
    const notes = new Map([[one.id, first.question.note ?? null]])
    const now: Now = { system: "You are kind.\nBe short.", tools: [tool("b", 2), tool("c")], level: "high" }
    const { body, headers } = ask("messages", now, [question, one, Message.user("Two")], notes)
    assert.deepStrictEqual(body.messages.slice(2), [
      { role: "system", content: [], output_config: { effort: "high" } },
      { role: "user", content: [{ type: "text", text: "Two" }] },
      {
        role: "system",
        content: [
          { type: "text", text: "\nBe short." },
          { type: "tool_removal", tool: { type: "tool_reference", name: "a" } },
          ...[tool("b", 2), tool("c")].map(({ description, name, parameters }) => ({
            type: "tool_addition",
            tool: { type: "tool_definition", definition: { name, description, input_schema: parameters } }
          }))
        ]
      }
    ])
    assert.strictEqual(
      headers["anthropic-beta"],
      "inline-tools-2026-09-15,mid-conversation-output-config-2026-07-01"
    )
  })

  it("begins anew with an effort that changes between a call and its result, since no question follows there", () => {
    const question = Message.user("One")
    const call: Message.ToolCall = { type: "toolCall", id: "c1", name: "a", rawArguments: "{}", params: {} }
    const one = answer("messages", [call])
    const notes = new Map([[one.id, ask("messages", start, [question]).question.note ?? null]])
    const asked = [question, one, Message.toolResult(call, "1")]
    const now: Now = { ...start, level: "high" }
    for (const more of [[], [Message.user("Quick!")]]) {
      const { body } = ask("messages", now, [...asked, ...more], notes)
      assert.strictEqual(body.output_config.effort, "high")
      assert.notInclude(JSON.stringify(body.messages), '"system"')
    }
    const { question: second } = ask("messages", now, asked, notes)
    const two = answer("messages", "2")
    notes.set(two.id, second.note ?? null)
    const { body } = ask("messages", { ...now, level: "low" }, [...asked, two, Message.user("Two")], notes)
    assert.strictEqual(body.output_config.effort, "high")
    assert.deepStrictEqual(body.messages.at(-2), {
      role: "system",
      content: [],
      output_config: { effort: "low" }
    })
  })

  it("adds tools, instructions and an effort to the input of the Responses API", () => {
    const question = Message.user("One")
    const one = answer("responses", "1")
    const notes = new Map([[one.id, ask("responses", start, [question]).question.note ?? null]])
    const now: Now = { system: "You are quick.", tools: [...start.tools, tool("c")], level: "low" }
    const { body } = ask("responses", now, [question, one, Message.user("Two")], notes)
    assert.deepStrictEqual(
      body.input.slice(3).map(({ tools, type, ...rest }: any) => ({
        type,
        names: tools?.map(({ name }: any) => name),
        ...rest
      })),
      [
        { type: undefined, names: undefined, role: "developer", content: `${instead}You are quick.` },
        { type: "additional_tools", names: ["c"], role: "developer" },
        { type: "configuration_update", names: undefined, reasoning: { effort: "low" } }
      ]
    )
    assert.strictEqual(body.instructions, start.system)
    assert.strictEqual(body.reasoning.effort, "medium")
  })

  it("takes tools of Converse away and gives them back by name, with the beta of Claude", () => {
    const question = Message.user("One")
    const one = answer("converse", "1")
    const notes = new Map([[one.id, ask("converse", start, [question]).question.note ?? null]])
    const now = { ...start, tools: [tool("a")] }
    const { body } = ask("converse", now, [question, one, Message.user("Two")], notes)
    assert.deepStrictEqual(body.messages.at(-1), {
      role: "system",
      content: [{ toolRemoval: { tool: { name: "b" } } }]
    })
    assert.strictEqual(body.toolConfig.tools.length, 2)
    assert.deepStrictEqual(body.additionalModelRequestFields.anthropic_beta, [
      "mid-conversation-tool-changes-2026-07-01"
    ])
  })

  it("sends the request without it where a server, a model or a stored answer rules it out, and reports that", () => {
    const messages = [Message.user("One")]
    const ruledOut = [
      ask("messages", start, messages, new Map(), undefined, { promptChanges: false }),
      ask("messages", start, messages, new Map(), undefined, {
        own: [{ pattern: "opus", promptChanges: {} }]
      }),
      ask("responses", start, messages, new Map(), { promptChanges: "append", previousResponseId: "resp_1" })
    ]
    for (const { body, question } of ruledOut) {
      assert.deepInclude(
        question.adjusted.map(({ asked, option, sent }) => ({ asked, option, sent })),
        { option: "promptChanges", asked: "append", sent: "replace" }
      )
      assert.isUndefined(question.note)
      assert.notProperty(body, "promptChanges")
    }
    assert.deepStrictEqual(ruledOut[0]?.body, ask("messages", start, messages, new Map(), {}).body)
    for (const endpoint of ["chat", "generateContent"] as const) {
      const { adjusted } = questionOf(
        { id: "acme", endpoint },
        { model: "m", messages, tools: [], options: { promptChanges: "append" } }
      )
      assert.deepStrictEqual(
        adjusted.map(({ option }) => option),
        ["promptChanges"]
      )
    }
  })

  it("begins anew with a tool that the model searches for, which the vendor finds at the beginning alone", () => {
    const question = Message.user("One")
    const one = answer("messages", "1")
    const notes = new Map([[one.id, ask("messages", start, [question]).question.note ?? null]])
    const now = { ...start, tools: [...start.tools, tool("c", 1, { deferred: true })] }
    const more = { promptChanges: "append" } as const
    const { body } = ask("messages", now, [question, one, Message.user("Two")], notes, more, {
      toolSearch: true
    })
    assert.deepStrictEqual(
      body.tools.map(({ name }: any) => name),
      ["tool_search_tool_bm25", "a", "b", "c"]
    )
    assert.notInclude(JSON.stringify(body.messages), "system")
  })

  it("counts the marks of tools that came later among those of a request", () => {
    const mark = { cache_control: { type: "ephemeral" } }
    const marked = (name: string) => tool(name, 1, { vendor: { acme: mark } })
    const question = Message.user("One")
    const one = answer("messages", "1")
    const notes = new Map([[one.id, ask("messages", start, [question]).question.note ?? null]])
    const now = { ...start, tools: [...start.tools, ...["c", "d", "e"].map(marked)] }
    const { body } = ask("messages", now, [question, one, Message.user("Two")], notes, {
      promptChanges: "append",
      cacheRetention: "short"
    })
    assert.strictEqual(JSON.stringify(body).split('"cache_control"').length, 5)
  })

  it("reads no notes of another model, provider or API", () => {
    const question = Message.user("One")
    const one = answer("messages", "1")
    const two = Message.user("Two")
    const { note = null } = ask("messages", start, [question]).question
    const now = { ...start, system: "You are quick." }
    const plain = ask("messages", now, [question, one, two], new Map(), {}).body
    for (const strange of [
      { ...Object(note), provider: "other" },
      { ...Object(note), endpoint: "converse" },
      "note",
      null,
      { ...Object(note), tools: 1 }
    ])
      assert.deepStrictEqual(
        ask("messages", now, [question, one, two], new Map([[one.id, strange]])).body,
        plain
      )
    const other = { ...one, model: "claude-opus-5" }
    const { body } = ask("messages", now, [question, other, two], new Map([[one.id, note]]))
    assert.strictEqual(body.system[0].text, "You are quick.")
  })

  it.effect("goes on after a restart with what the session kept, which no event has", () =>
    Effect.gen(function* () {
      const { bodies, server } = yield* claude()
      const provider = yield* Anthropic.make({ apiKey: "key", baseUrl: server.baseUrl, promptChanges: true })
      const seen: Array<string> = []
      const open = (...prompts: ReadonlyArray<readonly [system: string, prompt: string]>) =>
        Effect.gen(function* () {
          const session = yield* SessionStore.SessionStore.use((store) => store.openOrCreate("one"))
          const agent = yield* Agent.make({
            model: "claude-opus-5-5",
            session,
            modelOptions: { promptChanges: "append", cacheRetention: "none" }
          })
          yield* agent.subscribe((event) => Effect.sync(() => void seen.push(JSON.stringify(event))))
          for (const [system, prompt] of prompts) {
            yield* agent.update({ system })
            yield* agent.prompt(prompt)
          }
        }).pipe(Effect.provideService(Provider.Provider, provider), Effect.scoped)
      yield* open(["You are kind.", "One"], ["You are kind. Be short.", "Two"])
      yield* open(["You are kind. Be short. Be quick.", "Three"])
      const [first, second, third] = bodies.map(readers.messages)
      assert.isDefined(first)
      assert.isTrue(isBeginning(first?.units ?? [], second?.units ?? []))
      assert.isTrue(isBeginning(second?.units ?? [], third?.units ?? []))
      assert.deepStrictEqual(
        bodies[2].messages.map(({ role }: any) => role).join(" "),
        "user assistant user system assistant user system"
      )
      assert.strictEqual(third?.system, "You are kind. Be short. Be quick.")
      assert.notInclude(seen.join(), "You are kind")
    }).pipe(Effect.scoped, Effect.provide(MemorySessionStore.layer()), Effect.provide(FetchHttpClient.layer))
  )

  it.effect("keeps the place of a change that was sent before the answer was stopped", () =>
    Effect.gen(function* () {
      const { bodies, server } = yield* claude(2)
      const provider = yield* Anthropic.make({ apiKey: "key", baseUrl: server.baseUrl, promptChanges: true })
      const options = { promptChanges: "append", cacheRetention: "none" } as const
      yield* Effect.gen(function* () {
        const agent = yield* Agent.make({
          model: "claude-opus-5-5",
          system: "You are kind.",
          modelOptions: { ...options, thinkingLevel: "medium" }
        })
        yield* agent.prompt("One")
        yield* agent.update({ system: "You are quick.", modelOptions: { thinkingLevel: "high" } })
        yield* agent.subscribe((event) =>
          AgentEvent.isTextDelta(event) && bodies.length === 2 ? agent.cancel() : Effect.void
        )
        yield* Effect.exit(agent.prompt("Two"))
        yield* agent.prompt("Three")
        yield* agent.prompt("Four")
      }).pipe(Effect.provideService(Provider.Provider, provider), Effect.scoped)
      const [, second, third, fourth] = bodies.map(readers.messages)
      assert.strictEqual(bodies.length, 4)
      assert.isTrue(isBeginning(second?.units ?? [], third?.units ?? []))
      assert.isTrue(isBeginning(third?.units ?? [], fourth?.units ?? []))
      assert.deepInclude(fourth, { system: "You are quick.", effort: "high" })
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )
})
