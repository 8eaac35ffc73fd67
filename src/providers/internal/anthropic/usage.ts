/** The usage of an answer of Anthropic Messages, which the server sends twice, with the counts known so far. */
import * as Usage from "../../../Usage.ts"
import * as Counting from "../counting.ts"
import * as Json from "../json.ts"

/** Merges counts: a later value replaces an earlier one. */
export const count = (before: Json.JsonObject | undefined, update: Json.JsonObject): Json.JsonObject => {
  // Some servers send zeros for input that they counted before.
  const isBlank = before !== undefined && inputOf(update) === 0 && inputOf(before) > 0
  const isNews = ([field, value]: readonly [string, Json.Json]) =>
    fields.has(field) && value !== null && !(isBlank && inputFields.includes(field))
  return { ...before, ...Object.fromEntries(Object.entries(update).filter(isNews)) }
}

/** Converts the counts, `undefined` if there are none. */
export const read = (counted: Json.JsonObject | undefined): Usage.Usage | undefined =>
  Json.array(counted?.["iterations"]).reduce<Usage.Usage | undefined>((sum, iteration) => {
    const { type, ...counts } = Json.object(iteration) ?? {}
    const usage = apart.has(type) ? messageOf(counts) : undefined
    return usage === undefined ? sum : Usage.add(sum ?? Usage.zero, usage)
  }, messageOf(counted))

/** The requests of the vendor itself that the counts of the message leave out, though they cost as much. */
const apart: ReadonlySet<Json.Json | undefined> = new Set(["compaction", "advisor_message"])

const messageOf = (counted: Json.JsonObject | undefined): Usage.Usage | undefined => {
  if (counted === undefined || !Object.values(counted).some((value) => typeof value === "number"))
    return undefined
  const reasoning = Counting.tokens(Json.object(counted["output_tokens_details"])?.["thinking_tokens"])
  const cacheWriteLong = Counting.first(Json.object(counted["cache_creation"]), "ephemeral_1h_input_tokens")
  const cost = Counting.cost(counted["cost"])
  return Usage.make({
    input: inputOf(counted),
    output: Counting.tokens(counted["output_tokens"]) ?? 0,
    cacheRead: Counting.tokens(counted["cache_read_input_tokens"]) ?? 0,
    cacheWrite: Counting.tokens(counted["cache_creation_input_tokens"]) ?? 0,
    ...(cacheWriteLong === undefined ? {} : { cacheWriteLong }),
    ...Counting.hostedToolCalls(counted["server_tool_use"]),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(cost === undefined ? {} : { cost })
  })
}

const inputFields: ReadonlyArray<string> = [
  "input_tokens",
  "cache_read_input_tokens",
  "cache_creation_input_tokens"
]

/** The members that are read. A server may send any number of others. */
const fields: ReadonlySet<string> = new Set([
  ...inputFields,
  "output_tokens",
  "output_tokens_details",
  "cache_creation",
  "server_tool_use",
  "iterations",
  "cost",
  "service_tier"
])

/** The server counts tokens that are read from and written to a cache separately. */
const inputOf = (counted: Json.JsonObject): number =>
  inputFields.reduce((sum, field) => sum + (Counting.tokens(counted[field]) ?? 0), 0)
