/**
 * Calls of several tools at once that a GPT sometimes writes as one call of a tool `parallel`, which no request declares:
 * `{"tool_uses": [{"recipient_name": "functions.read", "parameters": {…}}]}`.
 */
import * as Json from "../../internal/json.ts"

export interface Use {
  readonly name: string
  readonly params: Json.JsonObject
}

/** Whether a name is that of the tool, unless a tool of the request has it. */
export const isParallel = (name: string | undefined, declared: ReadonlySet<string>): boolean =>
  name !== undefined && names.has(name) && !declared.has(name)

const names: ReadonlySet<string> = new Set(["parallel", "multi_tool_use.parallel", "multi_tool_use_parallel"])

/** The calls in the arguments, `undefined` if they have another form. */
export const usesIn = (json: string): ReadonlyArray<Use> | undefined => {
  const uses = Json.array(Json.object(Json.parse(json))?.["tool_uses"]).map(useOf)
  return uses.length > 0 && uses.every((use) => use !== undefined) ? uses : undefined
}

const useOf = (json: Json.Json): Use | undefined => {
  const { parameters, recipient_name: recipient } = Json.object(json) ?? {}
  const name = Json.text(recipient)?.replace(/^functions\./, "")
  const params = parameters === undefined ? {} : Json.object(parameters)
  return name === undefined || params === undefined ? undefined : { name, params }
}
