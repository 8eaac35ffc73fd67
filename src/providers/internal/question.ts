/**
 * A request as a protocol writes it: its options are those that the model accepts, and the members of the body that the
 * model's rule and the application ask for stand beside them.
 */
import type { Adjustment } from "../../ModelEvent.ts"
import type { ModelRequest } from "../../Provider.ts"
import type { Reason } from "../../ProviderError.ts"
import { InvalidRequest } from "../../ProviderError.ts"
import type { ModelOptions } from "../../RunOptions.ts"
import * as Json from "./json.ts"
import type { Rule } from "./models/rule.ts"

export interface Question extends Omit<ModelRequest, "options"> {
  readonly options: Omit<ModelOptions, "vendor" | "thinkingLevel" | "thinkingBudgets">
  /** Members of the body that ask the model to think. */
  readonly thinking: Json.JsonObject
  /** Members of the body that the application gives for this provider. */
  readonly vendor: Json.JsonObject
  /** The rule of the model, if one is known. */
  readonly rule: Rule | undefined
  readonly adjusted: ReadonlyArray<Adjustment>
}

/** The members that `modelOptions.vendor` has for a provider. */
export const vendorOf = (vendor: ModelOptions["vendor"], provider: string): Json.JsonObject | Reason => {
  for (const [id, members] of Object.entries(vendor ?? {})) {
    if (!Json.isObject(members)) return misplaced(id, members, provider)
  }
  return vendor?.[provider] ?? {}
}

const misplaced = (name: string, value: Json.Json, provider: string): Reason => {
  const shown = (JSON.stringify(value) ?? "…").slice(0, 60)
  const member = `${JSON.stringify(name)}: ${shown}`
  return new InvalidRequest({
    detail:
      `modelOptions.vendor holds an object for each provider id: ` +
      `write vendor: { ${JSON.stringify(provider)}: { ${member} } } instead of vendor: { ${member} }`
  })
}

/** Lays one object over another, member by member: objects in both are merged, all else is replaced. */
export const merge = (under: Json.JsonObject, over: Json.JsonObject): Json.JsonObject => {
  const merged: Record<string, Json.Json> = { ...under }
  for (const [name, value] of Object.entries(over)) {
    const below = Object.hasOwn(under, name) ? under[name] : undefined
    merged[name] = Json.isObject(below) && Json.isObject(value) ? merge(below, value) : value
  }
  return merged
}
