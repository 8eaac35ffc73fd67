/** The options that the API of a server has no field for. A provider leaves them out and reports them. */
import { memoize } from "effect/Function"
import type { Adjustment } from "../../ModelEvent.ts"
import type { ImageDetail } from "../../Message.ts"
import type { ModelRequest, ToolDefinition } from "../../Provider.ts"
import { InvalidRequest, type Reason } from "../../ProviderError.ts"
import type { ThinkingLevel } from "../../RunOptions.ts"
import type { Serves } from "../Deployment.ts"
import type { Budget, Given, PartOption, Protocol, Changes, Question } from "../Protocol.ts"
import * as Json from "./json.ts"
import type { Endpoint, Rule, Thinking, Word } from "./models/rule.ts"
import { isClosed } from "./toolSchemas.ts"

/** Leaves out the options that the server lacks, and reports each strict tool to whose schema it does not hold the model. */
export const leaveOutLacking = (
  changes: Changes,
  { protocol, serves }: Server,
  tools: Question["tools"]
): void => {
  const { hostedTools, lacks = [], strictTools } = protocol
  const title = titleOf(protocol)
  for (const option of lacks) {
    // All APIs allow several calls, if they have an option for it or not.
    const isUsual = option === "parallelToolCalls" && changes.options.parallelToolCalls === true
    if (!isUsual) changes.leaveOut(option, `${title} has no such option.`)
  }
  if (hostedTools !== undefined) {
    const all = [...hostedTools, ...(serves.hostedTools ?? [])]
    const has = all.filter((type) => serves.withoutHostedTools?.includes(type) !== true)
    changes.keepHostedTools(has, `${title} has no such tool.`)
  }
  for (const { name, parameters, strict } of tools) {
    if (strict === true && strictTools === "closed" && !isClosed(parameters)) {
      const reason = `The schema of ${name} has optional members, or takes members of any name.`
      changes.report("strict", true, null, reason)
    }
  }
}

/** Reports the members of web searches that the server lacks. */
export const reportSearches = (changes: Changes, { protocol, serves }: Server): void => {
  const lacking: ReadonlyArray<string> = [...(protocol.searchLacks ?? []), ...(serves.searchLacks ?? [])]
  for (const { type, ...members } of changes.options.hostedTools ?? []) {
    for (const [member, asked] of type === "webSearch" ? Object.entries(members) : []) {
      if (lacking.includes(member))
        changes.report(
          `hostedTools.webSearch.${member}`,
          asked,
          null,
          `${titleOf(protocol)} has no such option.`
        )
    }
  }
}

/** The name of the API of a protocol in reports. */
const titleOf = ({ name, title = `The protocol ${name}` }: Protocol): string => title

// ───────────────────────── The server

// A server to whose API and models a provider adapts requests.

export interface Server {
  readonly protocol: Protocol
  readonly serves: Serves
  /** Returns the rule of a model. */
  readonly find: (model: string) => Rule | undefined
}

// ───────────────────────── Parts of blocks and tools

// Leaves out the options of blocks and tools that a server does not have, and reports them.

/** The tools of a request as the server takes them. Reports the options of blocks and tools that it leaves out. */
export const adaptParts = (
  changes: Changes,
  { protocol, serves }: Server,
  { messages, model, tools }: ModelRequest
): ModelRequest["tools"] => {
  const parts = protocol.parts?.(model, serves)
  if (parts === undefined) return tools
  const takes = (option: PartOption) => parts.includes(option)
  const lacking = `${titleOf(protocol)} has no such option for this model.`
  const { cites, detail } = asked(messages)
  if (detail !== undefined && !takes("detail")) changes.report("image.detail", detail, null, lacking)
  if (cites && !takes("citations")) changes.report("file.citations", { enabled: true }, null, lacking)
  const called = tools.find(isForPrograms)
  if (called?.allowedCallers !== undefined && !takes("allowedCallers"))
    changes.report("tool.allowedCallers", [...called.allowedCallers], null, lacking)
  const isPlain = takes("allowedCallers") || called === undefined
  const hasExamples =
    takes("inputExamples") || !tools.some(({ inputExamples }) => inputExamples !== undefined)
  if (isPlain && hasExamples) return tools
  return tools.map((tool) => {
    const callable = isPlain || !isForPrograms(tool) ? tool : callerless(tool)
    return hasExamples || callable.inputExamples === undefined ? callable : described(callable)
  })
}

interface Asked {
  readonly detail: ImageDetail | undefined
  readonly cites: boolean
}

/** The options in the blocks of a conversation. */
const asked = (messages: ModelRequest["messages"]): Asked => {
  let all: Asked = nothing
  for (const message of messages) {
    const { cites, detail } = askedBy(message)
    if (cites || detail !== undefined) all = { cites: all.cites || cites, detail: all.detail ?? detail }
  }
  return all
}

const nothing: Asked = { cites: false, detail: undefined }

const askedBy = memoize(({ content }: ModelRequest["messages"][number]): Asked => {
  let all = nothing
  for (const block of content) {
    if (block.type === "image" && block.detail !== undefined && block.detail !== "auto")
      all = { ...all, detail: all.detail ?? block.detail }
    if (block.type === "file" && block.citations?.enabled === true) all = { ...all, cites: true }
  }
  return all
})

const isForPrograms = ({ allowedCallers }: ToolDefinition): boolean =>
  allowedCallers?.includes("programmatic") === true

// Memoized, since encoders keep the encoding of a tool by its object.
const callerless = memoize(({ allowedCallers: _none, ...tool }: ToolDefinition): ToolDefinition => tool)

/** A tool that has its examples in its description. */
const described = memoize(({ inputExamples = [], ...tool }: ToolDefinition): ToolDefinition => {
  const lines = inputExamples.map((example) => JSON.stringify(example)).join("\n")
  return lines === ""
    ? tool
    : { ...tool, description: `${tool.description}\n\nExamples of its arguments:\n${lines}`.trimStart() }
})

// ───────────────────────── Deferred tools

// Tools that a request defers: the model gets them when it searches for them at the vendor.

/** Makes a function that returns whether the server lets the model of a request search for tools. */
export const searchServed =
  (server: Server) =>
  ({ model }: Pick<ModelRequest, "model">): boolean =>
    isServed(server, server.find(model))

/** The server alone decides for a protocol that says nothing of it. */
const isServed = ({ protocol, serves }: Server, rule: Rule | undefined): boolean =>
  serves.toolSearch === true &&
  (protocol.toolSearch === undefined || (protocol.toolSearch && rule?.toolSearch === true))

/** The tools of a request, none deferred where the server lets the model search for none, and not the one that it must call. */
export const declaredTools = (
  changes: Changes,
  server: Server,
  rule: Rule | undefined,
  { options, tools }: Pick<ModelRequest, "options" | "tools">
): ModelRequest["tools"] => {
  if (!tools.some(isDeferred)) return tools
  if (!isServed(server, rule)) {
    changes.report("deferred", true, null, "The model cannot search for tools here, so it gets all of them.")
    return tools.map(present)
  }
  const { toolChoice } = options
  return typeof toolChoice === "object" ? presentIf(tools, (name) => name === toolChoice.name) : tools
}

export const isDeferred = ({ deferred }: ToolDefinition): boolean => deferred === true

/** The tools, those of some names not deferred. */
export const presentIf = (
  tools: ModelRequest["tools"],
  is: (name: string) => boolean
): ModelRequest["tools"] => tools.map((tool) => (isDeferred(tool) && is(tool.name) ? present(tool) : tool))

const present = memoize(({ deferred: _deferred, ...tool }: ToolDefinition): ToolDefinition => tool)

// ───────────────────────── Betas

// Names of betas, which the application gives among the members of the body, as the vendor takes them.

/** Takes `betas` out of the members of the body. Fails for betas that are no texts. */
export const betasApart = (put: Protocol["betas"], given: Given): Given | Reason => {
  const { betas, ...vendor } = given.vendor
  if (betas === undefined || put === undefined) return given
  const all = Json.isArray(betas) ? betas : [betas]
  const names = all.filter(isName)
  return names.length === all.length
    ? put(names, { ...given, vendor })
    : new InvalidRequest({
        detail: `vendor holds betas as a list of texts; got ${JSON.stringify(betas).slice(0, 60)}`
      })
}

/** Puts the names of betas into a header. */
export const inHeader =
  (header: string): NonNullable<Protocol["betas"]> =>
  (names, { headers, vendor }) => ({
    vendor,
    headers: { ...headers, [header]: [headers[header] ?? "", ...names].filter(Boolean).join(",") }
  })

const isName = (name: Json.Json): name is string => typeof name === "string" && name !== ""

// ───────────────────────── Thinking

// Converts a thinking level to the members of the body that a model accepts.

/** The levels besides `off`, ascending. */
const ladder = ["minimal", "low", "medium", "high", "xhigh", "max"] as const

/** The encoded level. */
interface Sent {
  /** Members of the body. */
  readonly members: Json.JsonObject
  /** The value of the vendor if it differs from the level, `null` if nothing is sent. */
  readonly word?: string | number | null
}

/** The budgets of the application. */
interface Budgets {
  /** The budget for the level, in tokens. */
  readonly own: number | undefined
  /** Maximum tokens of the answer, including thinking. */
  readonly maxTokens: number | undefined
}

/** An API, and how it counts budgets. */
interface Way {
  readonly endpoint: Endpoint
  readonly budget: Budget | undefined
}

/** Encodes a level for an API. */
export const sendThinking = (
  thinking: Thinking,
  { budget: counts = {}, endpoint }: Way,
  level: ThinkingLevel,
  { maxTokens, own }: Budgets
): Sent => {
  const word = wordOf(thinking, endpoint, level)
  const wire = thinking.wire?.[endpoint]
  const budgetWire = thinking.budget?.wire?.[endpoint]
  if (own !== undefined && level !== "off" && budgetWire !== undefined)
    return { members: fill(budgetWire, bounded(thinking, counts, own, maxTokens, own)) }
  if (word === undefined || word === null) return { members: {}, word: null }
  if (typeof word === "object") return { members: word }
  if (wire === undefined) return { members: {}, word: null }
  if (typeof word === "string")
    return { members: level === "off" ? hidden(fill(wire, word)) : fill(wire, word), ...shown(level, word) }
  if (level === "off")
    return { members: hidden(fill(wire, own ?? word)), ...(word === 0 ? {} : { word: own ?? word }) }
  if (maxTokens !== undefined && maxTokens <= (counts.leaves ?? 0)) return { members: {}, word: null }
  return { members: fill(wire, bounded(thinking, counts, word, maxTokens, own)) }
}

const shown = (level: ThinkingLevel, word: string): Pick<Sent, "word"> =>
  word === level || (level === "off" && word === "none") ? {} : { word }

/** A token budget within the bounds of the model. */
const bounded = (
  { budget = {}, levels = {} }: Thinking,
  counts: Budget,
  usual: number,
  maxTokens: number | undefined,
  own: number | undefined
): number => {
  if (own !== undefined && (own === counts.unlimited || (own === 0 && levels.off === 0))) return own
  const room = roomFor(counts, maxTokens, own)
  return Math.max(budget.min ?? 0, Math.min(budget.max ?? Infinity, room, Math.floor(own ?? usual)))
}

/** Thinking counts as output, so the budget must leave tokens for the answer. */
const roomFor = ({ leaves }: Budget, maxTokens: number | undefined, own: number | undefined): number => {
  if (maxTokens === undefined) return Infinity
  if (leaves !== undefined) return maxTokens - leaves
  return own === undefined ? Math.floor(maxTokens / 2) : Infinity
}

/**
 * The value of the vendor for a level, else that of the next lower level, else that of the next higher one.
 * `none` only stands for `off`.
 */
const wordOf = (
  { levels = {}, perEndpoint }: Thinking,
  endpoint: Endpoint,
  level: ThinkingLevel
): Word | undefined => {
  const known = { ...levels, ...perEndpoint?.[endpoint] }
  if (level === "off") return known.off === undefined ? lowest(known) : known.off
  const at = ladder.indexOf(level)
  const nearest = [...ladder.slice(0, at + 1).reverse(), ...ladder.slice(at + 1)]
  return nearest.map((near) => known[near]).find((word) => word !== undefined && word !== "none")
}

const lowest = (known: NonNullable<Thinking["levels"]>): Word | undefined =>
  ladder.map((level) => known[level]).find((word) => word !== undefined && word !== "none")

/** Replaces each `"$"` by the value. */
const fill = (wire: Json.JsonObject, word: string | number): Json.JsonObject =>
  Object.fromEntries(Object.entries(wire).map(([name, value]) => [name, filled(value, word)]))

const filled = (value: Json.Json, word: string | number): Json.Json =>
  value === "$" ? word : Json.isObject(value) ? fill(value, word) : value

/** The members without those that show the thinking, for a model that cannot stop thinking. */
const hidden = (members: Json.JsonObject): Json.JsonObject =>
  Object.fromEntries(
    Object.entries(members)
      .filter(([name]) => name !== "summary" && name !== "display")
      .map(([name, value]) => [
        name,
        name === "includeThoughts" ? false : Json.isObject(value) ? hidden(value) : value
      ])
  )

/** Whether the model thinks at a level, or without one. */
export const thinks = (thinking: Thinking, level: ThinkingLevel | undefined): boolean => {
  if (level === undefined || thinking.kind === "none") return thinking.omitted !== "doesNotThink"
  if (level !== "off") return true
  return (
    thinking.kind === "always-on" || (thinking.levels?.off === null && thinking.omitted !== "doesNotThink")
  )
}

// ───────────────────────── Claude

// The limits of Claude, which are the same at the Messages API and at Amazon Bedrock.

const MiB = 1024 * 1024

/** https://platform.claude.com/docs/en/build-with-claude/vision, read in November 2026. */
export const media = { length: 5 * MiB, pixels: 8000, crowd: 20, crowdedPixels: 2000, total: 30 * MiB }

/** The minimum budget, and the tokens that it leaves of `max_tokens` for the answer. */
export const budget = { leaves: 1024 }

// ───────────────────────── Changes

// The options of a request while they are adapted to the model, with a report of each change.

type Options = Question["options"]

export class Adapted implements Changes {
  options: Options
  readonly adjusted: Array<Adjustment> = []

  constructor(options: Options) {
    this.options = options
  }

  report(option: string, asked: Json.Json | undefined, sent: Json.Json, reason: string): void {
    this.adjusted.push({ option, asked: asked ?? null, sent, reason })
  }

  leaveOut(option: keyof Options, reason: string): void {
    const { [option]: asked, ...rest } = this.options
    if (asked === undefined) return
    this.options = rest
    this.report(option, asked, null, reason)
  }

  keepHostedTools(types: ReadonlyArray<string>, reason: string): void {
    const { hostedTools: asked = [], ...rest } = this.options
    const hostedTools = asked.filter(({ type }) => types.includes(type))
    if (hostedTools.length === asked.length) return
    this.options = hostedTools.length === 0 ? rest : { ...rest, hostedTools }
    for (const { type } of asked) {
      if (!types.includes(type)) this.report("hostedTools", type, null, reason)
    }
  }

  set(option: "logprobs" | "maxTokens" | "temperature", value: number, reason: string): void {
    const asked = this.options[option]
    this.options = { ...this.options, [option]: value }
    this.report(option, asked, value, reason)
  }
}
