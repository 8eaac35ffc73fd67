import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import { Message, type Provider, type RunOptions } from "effect-agent"
import { encoder as messagesEncoder } from "../../src/providers/internal/anthropic/request.ts"
import { encoder as converseEncoder } from "../../src/providers/internal/bedrock/request.ts"
import { isReason } from "../../src/providers/Protocol.ts"
import { asked } from "./asked.ts"

// ───────────────────────── Conversations

const few = <S extends Schema.Constraint>(item: S, most: number) =>
  Schema.Array(item).check(Schema.isMaxLength(most))

const Answer = Schema.Struct({
  thinks: Schema.Boolean,
  texts: few(Schema.Literals(["Fine.", "Fine. \n", " ", ""]), 2),
  /** The content of the result of each call. */
  results: few(Schema.Literals(["ok", "", "image"]), 3),
  /** Has each of its calls ten times: more blocks than those that the vendor searches for a mark. */
  isLong: Schema.Boolean
})

/** The user asks, and the model answers until an answer has no calls, or none if the request failed. */
const Exchange = Schema.Struct({
  asks: few(Schema.Literals(["Hi", " ", "image", "pdf"]), 3),
  answers: few(Answer, 4)
})

const Mark = Schema.Literals(["none", "short", "long"])

const Plan = Schema.Struct({
  exchanges: few(Exchange, 4).check(Schema.isMinLength(1)),
  tools: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 })),
  hasSystem: Schema.Boolean,
  retention: Schema.Literals(["none", "short", "long", "unset"]),
  /** The marks of the application: on tools of its own, on a system prompt of its own, and on the whole body. */
  marks: Schema.Struct({ tools: few(Mark, 6), system: Mark, body: Mark })
})
type Plan = typeof Plan.Type

const png = Message.image("AAAA", "image/png")
const pdf: Message.File = {
  type: "file",
  source: { data: "AAAA", mediaType: "application/pdf" },
  name: "a.pdf"
}

const messageOf = (
  { isLong, results: kinds, texts, thinks }: typeof Answer.Type,
  provider: string,
  model: string
) => {
  const results = Array(isLong ? 10 : 1)
    .fill(kinds)
    .flat()
  const calls = results.map(
    (_, index): Message.ToolCall => ({
      type: "toolCall",
      id: `call ${index}`,
      name: "t0",
      rawArguments: "{}"
    })
  )
  const thinking: Message.Thinking = { type: "thinking", text: "Hm", opaque: { provider, signature: "sig" } }
  const content = [...(thinks ? [thinking] : []), ...texts.map(Message.text), ...calls]
  const answer = Message.assistant(content, { provider, model })
  const all = calls.map((call, index) =>
    Message.toolResult(call, results[index] === "image" ? [png] : (results[index] ?? ""))
  )
  return { answer, results: all }
}

/** The conversation at each request. */
const conversationsOf = ({ exchanges }: Plan, provider: string, model: string) => {
  const messages: Array<Message.ModelMessage> = []
  const conversations: Array<ReadonlyArray<Message.ModelMessage>> = []
  for (const { answers, asks } of exchanges) {
    messages.push(
      Message.user(asks.map((ask) => (ask === "image" ? png : ask === "pdf" ? pdf : Message.text(ask))))
    )
    conversations.push([...messages])
    for (const answer of answers) {
      const made = messageOf(answer, provider, model)
      messages.push(made.answer, ...made.results)
      if (made.results.length === 0) break
      conversations.push([...messages])
    }
  }
  return conversations
}

// ───────────────────────── Wires

interface Block {
  /** The block without its mark, and its part of the prompt. */
  readonly text: string
  readonly mark: "none" | "short" | "long"
}

interface Wire {
  readonly name: string
  readonly encode: (request: Provider.ModelRequest) => unknown
  readonly models: ReadonlyArray<string>
  readonly vendor: (marks: Plan["marks"]) => RunOptions.ModelOptions["vendor"]
  /** All blocks of a prompt, in the order in which the vendor reads them. */
  readonly blocks: (body: unknown) => ReadonlyArray<Block>
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
const listOf = (value: unknown): ReadonlyArray<Readonly<Record<string, unknown>>> =>
  Array.isArray(value) ? value.filter(isRecord) : []
const marked = (mark: unknown): Block["mark"] =>
  !isRecord(mark) ? "none" : mark["ttl"] === "1h" ? "long" : "short"
const ttl = (mark: Block["mark"]) => (mark === "long" ? { ttl: "1h" } : {})

/** A part of the prompt, and its blocks. */
const partsOf = (body: unknown, tools: (body: Readonly<Record<string, unknown>>) => unknown) => {
  if (!isRecord(body)) return []
  const { messages, system } = body
  return [
    { part: "tools", blocks: listOf(tools(body)) },
    { part: "system", blocks: listOf(system) },
    ...listOf(messages).map(({ content, role }) => ({ part: String(role), blocks: listOf(content) }))
  ]
}

const anthropic: Wire = {
  name: "Messages",
  encode: asked({ id: "acme", endpoint: "messages", vendor: "anthropic" }, messagesEncoder("acme")),
  models: ["claude-sonnet-4-5", "claude-opus-5"],
  vendor: ({ body, system, tools }) => {
    const member = (mark: Block["mark"]) =>
      mark === "none" ? {} : { cache_control: { type: "ephemeral", ...ttl(mark) } }
    const own = system === "none" ? {} : { system: [{ type: "text", text: "Mine", ...member(system) }] }
    const named = tools.map((mark, index) => ({ name: `s${index}`, ...member(mark) }))
    return { acme: { ...own, ...member(body), ...(tools.length === 0 ? {} : { tools: named }) } }
  },
  blocks: (body) => [
    ...partsOf(body, ({ tools }) => tools).flatMap(({ blocks, part }) =>
      blocks.map(({ cache_control: mark, ...block }) => ({
        text: `${part} ${JSON.stringify(block)}`,
        mark: marked(mark)
      }))
    ),
    ...(isRecord(body) && body["cache_control"] !== undefined
      ? [{ text: "", mark: marked(body["cache_control"]) }]
      : [])
  ]
}

const converse: Wire = {
  name: "Converse",
  encode: asked(
    { id: "acme", endpoint: "converse", vendor: "anthropic", keepsPrompts: true },
    converseEncoder("acme").converse
  ),
  models: ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.amazon.nova-pro-v1:0"],
  vendor: ({ system, tools }) => {
    const points = (mark: Block["mark"]) =>
      mark === "none" ? [] : [{ cachePoint: { type: "default", ...ttl(mark) } }]
    const named = tools.flatMap((mark, index) => [{ toolSpec: { name: `s${index}` } }, ...points(mark)])
    const own = system === "none" ? {} : { system: [{ text: "Mine" }, ...points(system)] }
    return { acme: { ...own, ...(tools.length === 0 ? {} : { toolConfig: { tools: named } }) } }
  },
  blocks: (body) =>
    partsOf(body, ({ toolConfig }) => (isRecord(toolConfig) ? toolConfig["tools"] : [])).flatMap(
      ({ blocks, part }) =>
        blocks.flatMap((block, index) => {
          if ("cachePoint" in block) return []
          const mark = marked(blocks[index + 1]?.["cachePoint"])
          return [{ text: `${part} ${JSON.stringify(block)}`, mark }]
        })
    )
}

// ───────────────────────── Laws

const count = (marks: ReadonlyArray<Block["mark"]>) => marks.filter((mark) => mark !== "none").length

/** The blocks of each request of a conversation. */
const promptsOf = (wire: Wire, model: string, plan: Plan, marks: Plan["marks"]) => {
  const tools = Array.from({ length: plan.tools }, (_, n) => ({
    name: `t${n}`,
    description: "T.",
    parameters: { type: "object", properties: {} }
  }))
  const vendor = wire.vendor(marks)
  const options = plan.retention === "unset" ? {} : { cacheRetention: plan.retention }
  return conversationsOf(plan, "acme", model).map((messages) => {
    const body = wire.encode({
      model,
      messages,
      tools,
      ...(plan.hasSystem ? { system: "Be brief." } : {}),
      options: { ...options, ...(vendor === undefined ? {} : { vendor }) }
    })
    assert(typeof body === "string", isReason(body) ? body.detail : "no body")
    return wire.blocks(JSON.parse(body))
  })
}

/** The vendor takes four marks, and none that lasts an hour after one that lasts minutes. Marks of the application stay. */
const overMarked = (prompt: ReadonlyArray<Block>, theirs: ReadonlyArray<Block["mark"]>) => {
  const marks = prompt.map(({ mark }) => mark).filter((mark) => mark !== "none")
  const own = theirs.filter((mark) => mark !== "none")
  const isOrdered = (all: ReadonlyArray<Block["mark"]>) => !all.join().includes("short,long")
  return marks.length > Math.max(4, own.length) || (isOrdered(own) && !isOrdered(marks))
}

/** The vendor finds the prompt of the last request up to its last mark at most twenty blocks before a mark. */
const unstable = (before: ReadonlyArray<Block>, after: ReadonlyArray<Block>) => {
  const at = before.findLastIndex(({ mark }) => mark !== "none")
  if (at === -1) return false
  const isPrefix = before.slice(0, at + 1).every(({ text }, index) => text === after[index]?.text)
  return !isPrefix || !after.slice(at, at + 20).some(({ mark }) => mark !== "none")
}

const unmarked: Plan["marks"] = { tools: [], system: "none", body: "none" }

describe.each([anthropic, converse])("prompt caching by $name", (wire) => {
  const holds = (law: (plan: Plan, model: string) => boolean) =>
    Effect.gen(function* () {
      const lawful = (plan: Plan) => Effect.succeed(wire.models.every((model) => law(plan, model)))
      const options = {
        seed: Number(process.env["CACHING_SEED"] ?? 1),
        runs: Number(process.env["CACHING_RUNS"] ?? 100),
        size: 8,
        maxShrinks: 300
      }
      const result = yield* Arbitrary.checkEffect(Arbitrary.schema(Plan), lawful, options)
      assert.strictEqual(Arbitrary.formatCheckFailure(result), undefined)
    })

  it.effect("never marks more than four blocks, nor in an order that the vendor rejects", () =>
    holds((plan, model) => {
      const { body, system, tools } = plan.marks
      const theirs = [...tools, system, ...(wire === anthropic ? [body] : [])]
      return promptsOf(wire, model, plan, plan.marks).every((prompt) => !overMarked(prompt, theirs))
    })
  )

  it.effect("marks by default what the next request begins with", () =>
    holds((plan, model) => {
      const prompts = promptsOf(wire, model, plan, unmarked)
      const isMarked =
        plan.retention === "none" || prompts.every((prompt) => count(prompt.map(({ mark }) => mark)) > 0)
      return isMarked && prompts.every((prompt, n) => n === 0 || !unstable(prompts[n - 1] ?? [], prompt))
    })
  )
})
