/**
 * Functions that the model gets when it searches for them at OpenAI:
 * https://developers.openai.com/api/docs/guides/tools-tool-search, read in November 2026.
 *
 * The vendor loads each function into a namespace of its name. It rejects a call of a deferred function without a namespace,
 * such as one of an answer of another model.
 */
import * as Json from "../json.ts"
import { isDeferred, presentIf } from "../toolSearch.ts"
import type { Question } from "../question.ts"
import type { Item } from "./items.ts"

/** The calls of the input of a request. */
export class Calls {
  private readonly loaded = new Set<string>()
  private readonly bare = new Set<string>()

  /** The item, without its namespace if the input does not have the search that loaded it. */
  place(item: Item): Item {
    for (const name of item.loads ?? []) this.loaded.add(name)
    const placed = item.loaded === undefined || this.loaded.has(item.loaded.name) ? item : item.loaded.bare
    if (placed.bare !== undefined) this.bare.add(placed.bare)
    return placed
  }

  /** The tools of the request, those not deferred that the input calls without a namespace. */
  declared(tools: Question["tools"]): Question["tools"] {
    return this.bare.size === 0 ? tools : presentIf(tools, (name) => this.bare.has(name))
  }
}

/** The tool that searches, unless the application lists it among the tools of the vendor. */
export const definitions = (
  tools: Question["tools"],
  theirs: ReadonlyArray<Json.Json>
): ReadonlyArray<Json.JsonObject> =>
  tools.some(isDeferred) && !theirs.some((tool) => Json.object(tool)?.["type"] === "tool_search")
    ? [{ type: "tool_search" }]
    : []
