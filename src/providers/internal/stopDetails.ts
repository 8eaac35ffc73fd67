/** Why Claude refused to answer: https://platform.claude.com/docs/en/build-with-claude/refusals-and-fallback */
import type { Refusal } from "../../ModelEvent.ts"
import * as Json from "./json.ts"

/** Reads `stop_details`, which is `null` for answers that are no refusals. */
export const refusalIn = (details: Json.Json | undefined): { readonly refusal?: Refusal } => {
  const { category, explanation, recommended_model } = Json.object(details) ?? {}
  const refusal: Refusal = {
    ...(typeof category === "string" ? { category } : {}),
    ...(typeof explanation === "string" ? { explanation } : {}),
    ...(typeof recommended_model === "string" ? { recommendedModel: recommended_model } : {})
  }
  return Object.keys(refusal).length === 0 ? {} : { refusal }
}
