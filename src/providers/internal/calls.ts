/**
 * The arguments of a tool call in the form that vendors accept. Vendors reject a conversation in which the
 * arguments of one call are not a JSON object. The result of the call describes the mistake to the model.
 */
import { parseArguments } from "../../ModelEvent.ts"
import * as Json from "./json.ts"

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
