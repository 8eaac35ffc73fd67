/**
 * Tools that the model gets when it searches for them at Anthropic:
 * https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool, read in November 2026.
 */
import type { ToolDefinition } from "../../../Provider.ts"
import * as Json from "../json.ts"
import { isDeferred } from "../toolSearch.ts"

/** The tool that searches, by words, unless the application lists one among the tools of the vendor. */
export const definitions = (
  tools: ReadonlyArray<ToolDefinition>,
  theirs: ReadonlyArray<Json.Json>
): ReadonlyArray<Json.JsonObject> =>
  tools.some(isDeferred) && !theirs.some(isSearch)
    ? [{ type: "tool_search_tool_bm25_20251119", name: "tool_search_tool_bm25" }]
    : []

/** The names of all tools of a request, `undefined` if the model cannot search for any. */
export const namesOf = (
  tools: ReadonlyArray<ToolDefinition>,
  theirs: ReadonlyArray<Json.Json>
): ReadonlySet<string> | undefined => {
  if (!tools.some(isDeferred) && !theirs.some(isSearch)) return undefined
  const others = theirs.flatMap((tool) => Json.text(Json.object(tool)?.["name"]) ?? [])
  return new Set([...tools.map(({ name }) => name), ...others])
}

const isSearch = (tool: Json.Json): boolean => namesSearch(Json.object(tool)?.["name"])

const namesSearch = (name: Json.Json | undefined): boolean =>
  typeof name === "string" && name.startsWith("tool_search_tool_")

/** Whether a block is a search, or the result of one. */
export const isPart = ({ name, type }: Json.JsonObject): boolean =>
  type === "tool_search_tool_result" || (type === "server_tool_use" && namesSearch(name))

/** The names of the tools that the result of a search holds. */
export const found = ({ content }: Json.JsonObject): ReadonlyArray<string> =>
  referencesIn(content).flatMap((reference) => nameIn(reference) ?? [])

/** The result of a search without the tools that the request lacks, which the vendor rejects. */
export const without = (json: string, known: ReadonlySet<string>): string => {
  const { content, ...block } = Json.object(Json.parse(json)) ?? {}
  const kept = referencesIn(content).filter((reference) => known.has(nameIn(reference) ?? ""))
  return Json.encode({ ...block, content: { ...Json.object(content), tool_references: kept } })
}

const referencesIn = (content: Json.Json | undefined): ReadonlyArray<Json.Json> =>
  Json.array(Json.object(content)?.["tool_references"])

const nameIn = (reference: Json.Json): string | undefined => Json.text(Json.object(reference)?.["tool_name"])
