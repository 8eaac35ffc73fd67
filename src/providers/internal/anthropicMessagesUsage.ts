/**
 * What an answer costs, as Anthropic Messages says it: twice, as far as it is known.
 */
import * as Usage from "../../Usage.ts"
import * as Counting from "./counting.ts"
import * as Json from "./json.ts"

/** Counts more: what is said again replaces what was said before. */
export const count = (before: Json.JsonObject | undefined, said: Json.JsonObject): Json.JsonObject => {
  // Some servers fill in zeros where the input was counted before.
  const isBlank = before !== undefined && inputOf(said) === 0 && inputOf(before) > 0
  const isNews = ([field, value]: readonly [string, Json.Json]) =>
    fields.has(field) && value !== null && !(isBlank && inputFields.includes(field))
  return { ...before, ...Object.fromEntries(Object.entries(said).filter(isNews)) }
}

/** The same in our terms; absent when nothing was counted. */
export const read = (counted: Json.JsonObject | undefined): Usage.Usage | undefined => {
  if (counted === undefined || !Object.values(counted).some((value) => typeof value === "number"))
    return undefined
  const reasoning = Counting.tokens(Json.object(counted["output_tokens_details"])?.["thinking_tokens"])
  const cost = Counting.cost(counted["cost"])
  return Usage.make({
    input: inputOf(counted),
    output: Counting.tokens(counted["output_tokens"]) ?? 0,
    cacheRead: Counting.tokens(counted["cache_read_input_tokens"]) ?? 0,
    cacheWrite: Counting.tokens(counted["cache_creation_input_tokens"]) ?? 0,
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(cost === undefined ? {} : { cost })
  })
}

const inputFields: ReadonlyArray<string> = [
  "input_tokens",
  "cache_read_input_tokens",
  "cache_creation_input_tokens"
]

/** All that is read. Of others there may be any number. */
const fields: ReadonlySet<string> = new Set([
  ...inputFields,
  "output_tokens",
  "output_tokens_details",
  "cost"
])

/** The wire counts apart what is read from a cache and what is written to it. */
const inputOf = (counted: Json.JsonObject): number =>
  inputFields.reduce((sum, field) => sum + (Counting.tokens(counted[field]) ?? 0), 0)
