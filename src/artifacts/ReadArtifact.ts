/**
 * The tool `read_artifact`: returns pages of the whole text of a large result, or the places of a text in it.
 *
 * @since 0.2.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tool from "../Tool.ts"
import { type Artifact, ArtifactNotFound, ArtifactStore, ArtifactStoreFailed } from "./ArtifactStore.ts"
import * as Excerpt from "./internal/Excerpt.ts"

const positive = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

const Params = Schema.Struct({
  id: Schema.String.annotate({ description: "The id of the artifact" }),
  offset: Schema.optionalKey(positive).annotate({
    description: "The first line or character, from 1. Default: 1"
  }),
  limit: Schema.optionalKey(positive).annotate({
    description: "Lines, characters or matches to return. Default: as many as fit; 50 matches"
  }),
  unit: Schema.optionalKey(Schema.Literals(["lines", "characters"])).annotate({
    description: "The unit of offset and limit. Default: lines"
  }),
  search: Schema.optionalKey(Schema.String.check(Schema.isNonEmpty())).annotate({
    description: "Returns the places of this text, in any case, from the offset on"
  })
})
type Params = typeof Params.Type

/**
 * Makes the tool `read_artifact`.
 *
 * **Details**
 *
 * `maxCharacters`, default 20,000, is the size of a page. A page ends with the offset of the next one. The tool has the trust of the
 * result that the artifact was made of. It fails with `ArtifactNotFound` for an id that the store does not have.
 *
 * **Gotchas**
 *
 * The tool reads each result of its store. The id of a result is a random UUID, and a model of another conversation that gets it reads
 * the result too. Give each tenant a store of its own.
 *
 * **Example** (Paging through an artifact)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Message } from "effect-agent"
 * import { ArtifactStore, ReadArtifact } from "effect-agent/artifacts"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const store = yield* ArtifactStore.ArtifactStore
 *   const call = { runId: "run_1", toolCallId: "call_1", toolName: "log", mediaType: "text/plain" }
 *   yield* store.put({ id: "log-1", ...call, text: "one\ntwo\nthree" })
 *   const agent = yield* Agent.make({ model: "any", tools: [ReadArtifact.make()] })
 *   const { newMessages } = yield* agent.prompt("Read the second line.")
 *   console.log(newMessages.map(Message.textOf)[2])
 * }).pipe(Effect.scoped, Effect.provide(ArtifactStore.layerMemory()))
 *
 * const script = [
 *   ScriptedProvider.toolCall("read_artifact", { id: "log-1", offset: 2, limit: 1 }),
 *   ScriptedProvider.text("two")
 * ]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => two
 * // => [line 2 of 3; next: offset 3]
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = (options?: { readonly maxCharacters?: number }) =>
  Tool.make({
    name: "read_artifact",
    label: "Read artifact",
    effect: "pure",
    description:
      "Reads the whole text of a tool result that was too large, page by page, or finds the places of a text in it.",
    params: Params,
    failure: Schema.Union([ArtifactNotFound, ArtifactStoreFailed]),
    execute: Effect.fnUntraced(function* (params: Params) {
      const store = yield* ArtifactStore
      const artifact = yield* store.get(params.id)
      const max = Math.max(1, options?.maxCharacters ?? 20_000)
      const { trust } = artifact
      return Tool.output(pageOf(artifact, params, max), trust === undefined ? {} : { trust })
    })
  })

const pageOf = ({ text }: Artifact, params: Params, max: number): string => {
  const { limit = Infinity, offset = 1, search, unit = "lines" } = params
  if (text === "") return "[the artifact is empty]"
  const start = unit === "lines" ? Excerpt.startOf(text, offset) : Excerpt.whole(text, offset - 1)
  if (start === undefined || start >= text.length) return beyond(text, unit)
  if (search !== undefined) return matches(text, start, { search, limit: params.limit ?? 50, max })
  return unit === "lines"
    ? lines(text, start, { first: offset, limit, max })
    : characters(text, start, Math.min(limit, max))
}

const beyond = (text: string, unit: "lines" | "characters"): string => {
  const total = unit === "lines" ? Excerpt.total(text) : text.length
  return `[the artifact ends before that offset: it has ${total} ${unit}]`
}

interface Page {
  readonly first: number
  readonly limit: number
  readonly max: number
}

const lines = (text: string, start: number, { first, limit, max }: Page): string => {
  const total = Excerpt.total(text)
  let end = start
  let last = first - 1
  while (last < total && last - first + 1 < limit) {
    const next = text.indexOf("\n", end) + 1
    const lineEnd = next === 0 ? text.length : next
    if (lineEnd - start > max) break
    end = lineEnd
    last++
  }
  if (last < first) {
    const long = `line ${first} of ${total} is longer than a page. It begins at character ${start + 1}`
    return `${characters(text, start, max)}\n[${long}]`
  }
  const range = last === first ? `line ${first}` : `lines ${first} to ${last}`
  const next = last < total ? `; next: offset ${last + 1}` : ""
  return `${text.slice(start, end).replace(/\n$/, "")}\n[${range} of ${total}${next}]`
}

const characters = (text: string, start: number, length: number): string => {
  const cut = Excerpt.whole(text, start + length)
  // A page of one character has a pair of surrogates whole.
  const end = cut > start ? cut : Math.min(text.length, start + 2)
  const next = end < text.length ? `; next: {"unit":"characters","offset":${end + 1}}` : ""
  return `${text.slice(start, end)}\n[characters ${start + 1} to ${end} of ${text.length}${next}]`
}

interface Query {
  readonly search: string
  readonly limit: number
  readonly max: number
}

/** Characters of the text around a match. */
const around = 200

const matches = (text: string, start: number, { limit, max, search }: Query): string => {
  const pattern = new RegExp(search.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"), "gi")
  pattern.lastIndex = start
  const found: Array<string> = []
  let size = 0
  let line = 1
  let counted = 0
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const { index } = match
    line += Excerpt.count(text, counted, index)
    counted = index
    const [shown, end] = placeOf(text, index, index + match[0].length)
    const entry = `line ${line}, character ${index + 1}: ${shown}`
    size += entry.length + 1
    if (found.length >= limit || size > max) {
      return `${found.join("\n")}\n[there are more: search again with unit characters from offset ${index + 1}]`
    }
    found.push(entry)
    // One line, or one piece of a long line, is one match.
    pattern.lastIndex = Math.max(end, index + 1)
  }
  return found.length === 0 ? "[no match]" : `${found.join("\n")}\n[${found.length} found; there are no more]`
}

/** Returns the line around a match, or a piece of it, and the end of that. */
const placeOf = (text: string, from: number, to: number): readonly [shown: string, end: number] => {
  const lineStart = text.lastIndexOf("\n", from - 1) + 1
  const newline = text.indexOf("\n", to)
  const lineEnd = newline < 0 ? text.length : newline
  const start = Excerpt.whole(text, Math.max(from === 0 ? 0 : lineStart, from - around))
  const end = Excerpt.whole(text, Math.min(lineEnd, to + around))
  return [`${start > lineStart ? "…" : ""}${text.slice(start, end)}${end < lineEnd ? "…" : ""}`, end]
}
