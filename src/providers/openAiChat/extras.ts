/**
 * Content of an answer besides text, thinking and calls: images, audio, annotations, citations, search results,
 * tools that the vendor ran, log probabilities. No block of a message represents them, so they are stored in
 * the `opaque` of a text block and named in `Finish.unrepresented`.
 */
import * as Json from "../internal/json.ts"

/** Lists in a delta, to which each delta adds. */
const inDelta = ["images", "annotations", "executed_tools"] as const

/** Lists in a chunk, which each chunk repeats completely. */
const inChunk = ["citations", "search_results"] as const

/** The members of a chunk that contain such content, `undefined` if there are none. */
export const ofChunk = (
  json: Json.JsonObject,
  choice: Json.JsonObject | undefined
): Json.JsonObject | undefined => {
  const found: Record<string, Json.Json> = {}
  for (const name of inChunk) if (Json.array(json[name]).length > 0) found[name] = Json.array(json[name])
  const logprobs = Json.object(choice?.["logprobs"])
  if (logprobs !== undefined) found["logprobs"] = logprobs
  return Object.keys(found).length === 0 ? undefined : found
}

/** Whether a delta contains such content. */
export const isIn = (delta: Json.JsonObject): boolean =>
  inDelta.some((name) => Json.array(delta[name]).length > 0) || Json.object(delta["audio"]) !== undefined

/** The content of one answer. */
export class Extras {
  private readonly found = new Map<string, Array<Json.Json>>()

  addChunk(members: Json.JsonObject): void {
    for (const name of inChunk) {
      const list = Json.array(members[name])
      if (list.length > 0) this.found.set(name, [...list])
    }
    this.add("logprobs", Json.array(Json.object(members["logprobs"])?.["content"]))
  }

  addDelta(delta: Json.JsonObject): void {
    for (const name of inDelta) this.add(name, Json.array(delta[name]))
    const audio = Json.object(delta["audio"])
    if (audio !== undefined) this.add("audio", [audio])
  }

  /** Adds a part of the content that is not text. */
  addPart(part: Json.JsonObject): void {
    this.add(Json.text(part["type"])?.includes("audio") === true ? "audio" : "images", [part])
  }

  private add(name: string, items: ReadonlyArray<Json.Json>): void {
    if (items.length === 0) return
    const known = this.found.get(name)
    if (known === undefined) this.found.set(name, [...items])
    else for (const item of items) known.push(item)
  }

  get names(): ReadonlyArray<string> {
    return [...this.found.keys()]
  }

  get members(): Json.JsonObject {
    return Object.fromEntries(this.found)
  }

  /** The text for images or audio in an answer without other content. */
  get caption(): string {
    return this.found.has("images") ? "[image]" : this.found.has("audio") ? "[audio]" : ""
  }
}
