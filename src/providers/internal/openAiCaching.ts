/** The fields of OpenAI's APIs for the cache of prompts. */
import type { ModelOptions } from "../../RunOptions.ts"
import type { Rule as ModelRule } from "./models/rule.ts"
import { fit, type Rule } from "./callId.ts"
import type * as Json from "./json.ts"

type Options = Pick<ModelOptions, "cacheRetention" | "sessionId">

/** The fields for a session: requests with one key reach one cache. */
export const fields = (options: Options, rule: ModelRule | undefined): Json.JsonObject =>
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
