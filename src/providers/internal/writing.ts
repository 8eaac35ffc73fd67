/** The parts that protocols share in writing conversations: the ids and names of calls, the members of an application, the data of a vendor, and content. */
import { parseArguments } from "../../ModelEvent.ts"
import * as Json from "./json.ts"
import type { VendorMembers } from "../../Message.ts"
import type * as Message from "../../Message.ts"
import type { Reason } from "../../ProviderError.ts"
import type { ModelOptions } from "../../RunOptions.ts"
import { isReason, type Counting, type Protocol } from "../Protocol.ts"
import type { Rule as ModelRule } from "./models/rule.ts"
import { tokens } from "./reading.ts"

export const paramsIn = (raw: string): Json.JsonObject => Json.object(parseArguments(raw)) ?? {}

/**
 * The arguments as the model wrote them, except for escapes of half a surrogate pair, because some vendors
 * parse the text.
 */
export const argumentsText = (raw: string): string => {
  const params = ["", "null"].includes(raw.trim()) ? undefined : parseArguments(raw)
  return Json.isObject(params) ? (surrogate.test(raw) ? Json.encode(params) : raw) : "{}"
}

const surrogate = /\\ud[89a-f][0-9a-f]{2}/i

// ───────────────────────── Ids of calls

/**
 * Tool call ids in the form that a vendor accepts.
 *
 * A conversation may contain longer ids, or ids with other characters, from other vendors.
 */

/**
 * The form of the tool call ids that a vendor accepts.
 *
 * @since 0.1.0
 * @category models
 */
export interface Rule {
  /** The ids that the vendor accepts. */
  readonly pattern: RegExp
  /** The length of an id that replaces one the vendor does not accept. */
  readonly length: number
}

/**
 * Returns an accepted id unchanged and derives another one from a rejected id. The result depends only on the
 * id, so that a call and its result match in every request and after a restart.
 */
export const fit = (id: string, rule: Rule | undefined): string =>
  rule === undefined || rule.pattern.test(id) ? id : digest(id, rule.length)

/** Letters and digits. Each eleven of them have 53 bits of hash, which makes collisions improbable. */
const digest = (id: string, length: number): string => {
  let out = ""
  for (let seed = 0; out.length < length; seed++) out += hash(id, seed).toString(36).padStart(11, "0")
  return out.slice(0, length)
}

/** cyrb53, public domain: https://github.com/bryc/code/blob/master/jshash/experimental/cyrb53.js */
const hash = (text: string, seed: number): number => {
  let high = 0xdeadbeef ^ seed
  let low = 0x41c6ce57 ^ seed
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    high = Math.imul(high ^ code, 2654435761)
    low = Math.imul(low ^ code, 1597334677)
  }
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909)
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909)
  return 4294967296 * (2097151 & low) + (high >>> 0)
}

/**
 * The ids of the calls of a conversation in the form that a vendor accepts, each once. Other vendors may repeat ids in each
 * answer: a result belongs to the last call with its id.
 */
export class FittedIds {
  private readonly used = new Set<string>()
  private readonly latest = new Map<string, string>()
  private readonly rule: Rule

  constructor(rule: Rule) {
    this.rule = rule
  }

  /** The id of a call. */
  add(id: string): string {
    let own = fit(id, this.rule)
    for (let n = 2; this.used.has(own); n++) own = fit(`${id} ${n}`, this.rule)
    this.used.add(own)
    this.latest.set(id, own)
    return own
  }

  /** The id of the call to which a result belongs. */
  of(id: string): string {
    return this.latest.get(id) ?? fit(id, this.rule)
  }
}

// ───────────────────────── Names of calls

/**
 * The names of tool calls in the form that vendors accept. A model may call a name that no tool has, with
 * characters that vendors reject.
 */
export const nameFor = (name: string, length: number): string =>
  name.replace(/[^\w-]/g, "_").slice(0, length) || "_"

// ───────────────────────── Members of an application

interface Having {
  readonly vendor?: VendorMembers
}

interface Marked extends Having {
  readonly content?: unknown
}

/** The members for a provider, `undefined` if there are none. */
export const membersOf = (provider: string, { vendor }: Having): Json.JsonObject | undefined =>
  vendor?.[provider]

/** The object of the wire with the members of what it stands for. */
export const over = (provider: string, from: Having, wire: object): object =>
  membersOf(provider, from) === undefined
    ? wire
    : (Json.object(Json.parse(into(provider, from, JSON.stringify(wire)))) ?? wire)

/** As `over`, for an object that is JSON. */
export const into = (provider: string, from: Having, json: string): string => {
  const members = membersOf(provider, from)
  return members === undefined ? json : Json.encode(Json.merge(Json.object(Json.parse(json)) ?? {}, members))
}

/** The members for a provider in all of the parts of a prompt as JSON, by which marks for its cache are counted. */
export const all = (provider: string, parts: ReadonlyArray<Marked>): string => {
  let json = ""
  for (const part of parts) {
    if (part.vendor !== undefined) json += Json.encode(membersOf(provider, part) ?? null)
    if (isParts(part.content)) json += all(provider, part.content)
  }
  return json
}

const isParts = (content: unknown): content is ReadonlyArray<Marked> => Array.isArray(content)

// ───────────────────────── Data of a vendor

// Data that a vendor requires back unchanged. It is stored in a message with the id of its provider, and
// returned to that provider only.

/** The data to store in a block. */
export const keep = (provider: string, fields: Json.JsonObject): Json.JsonObject => ({ provider, ...fields })

/** The data of this provider in a block, `undefined` if there is none. */
export const keptFor = (
  provider: string,
  block: { readonly opaque?: Json.Json | undefined }
): Json.JsonObject | undefined => {
  const kept = Json.object(block.opaque)
  return kept?.["provider"] === provider ? kept : undefined
}

// ───────────────────────── Content

/** Files in `data:` URLs. */
interface Inline {
  /** The bytes, in base64. */
  readonly data: string
  readonly mediaType: string
}

/** The file in a URL, `undefined` for any other URL. */
export const readDataUrl = (url: string): Inline | undefined => {
  const [, mediaType, data] = /^data:([^;,]+);base64,(.*)$/s.exec(url) ?? []
  return mediaType === undefined || data === undefined ? undefined : { data, mediaType }
}

// Encodes the content of a message for both APIs of OpenAI: a text, or a list of parts.

export interface Part {
  readonly type: string
  readonly [field: string]: unknown
}

/** The content as JSON. OpenAI rejects an empty text as a part, and a list without parts. */
export const encodeContent = (
  provider: string,
  content: Message.User["content"],
  textType: string,
  toMedia: (block: Message.Image | Message.File) => Part | Reason
): string | Reason => {
  const [first] = content
  const isPlain = content.length === 1 && first?.type === "text" && membersOf(provider, first) === undefined
  if (isPlain) return Json.encode(first.text)
  const parts: Array<object> = []
  for (const block of content) {
    if (block.type === "text" && block.text === "") continue
    const part = block.type === "text" ? { type: textType, text: block.text } : toMedia(block)
    if (isReason(part)) return part
    parts.push(over(provider, block, part))
  }
  return Json.encode(parts.length === 0 ? "" : parts)
}

export const dataUrl = (source: { readonly data: string; readonly mediaType: string }): string =>
  `data:${source.mediaType};base64,${source.data}`

// ───────────────────────── Caching

// The fields of OpenAI's APIs for the cache of prompts.

type Options = Pick<ModelOptions, "cacheRetention" | "sessionId">

/** The fields for a session: requests with one key reach one cache. */
export const cachingFields = (options: Options, rule: ModelRule | undefined): Json.JsonObject =>
  options.sessionId === undefined || options.cacheRetention === "none"
    ? {}
    : { prompt_cache_key: fit(options.sessionId, keyRule), ...long(options, rule) }

/** The vendor rejects an empty key, and one of more characters. */
const keyRule: Rule = { pattern: /^[^]{1,64}$/, length: 32 }

/** The field that the model accepts. */
const long = ({ cacheRetention }: Options, rule: ModelRule | undefined): Json.JsonObject => {
  if (cacheRetention !== "long") return {}
  switch (rule?.longCache) {
    case "retention":
      return { prompt_cache_retention: "24h" }
    case "options":
      return { prompt_cache_options: { ttl: "12h" } }
    case undefined:
      return {}
  }
}

// ───────────────────────── Counts

/** Counts the tokens of a request by those members of its body that the vendor takes there. */
export const byMembers = (encode: Protocol["encode"], members: ReadonlyArray<string>): Counting => ({
  encode: (question) => {
    const body = encode(question)
    if (isReason(body)) return body
    const all = Object.entries(Json.object(Json.parse(body)) ?? {})
    return Json.encode(Object.fromEntries(all.filter(([name]) => members.includes(name))))
  },
  read: (response) => tokens(Json.object(response)?.["input_tokens"])
})
