/** The fields of OpenAI's APIs for a long cache retention. */
import type { ModelOptions } from "../../RunOptions.ts"
import type * as Json from "./json.ts"
import type { Rule } from "../models/rule.ts"

/** The field that the model accepts. */
export const long = (
  { cacheRetention }: Pick<ModelOptions, "cacheRetention">,
  rule: Rule | undefined
): Json.JsonObject => {
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
