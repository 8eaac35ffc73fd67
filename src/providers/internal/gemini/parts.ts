/**
 * The arguments of one Gemini call, which arrive complete or as pieces of values, each with a path:
 * https://docs.cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling#streaming-fc
 *
 * The values count. Their JSON text is also streamed while it only grows at its end.
 */
import type * as Message from "../../../Message.ts"
import type { ReplyWriter } from "../../../reply/ReplyWriter.ts"
import * as Json from "../json.ts"

/** A value that can get members, or a final one. */
type Tree = Map<string, Tree> | Array<Tree> | Json.Json

export class Arguments {
  /** The JSON text streamed so far, without the closing brackets and the closing quote. */
  shown = ""

  private readonly root = new Map<string, Tree>()
  /** The incomplete string, with its path and position. */
  private open: { readonly path: string; readonly slot: Slot; readonly isShown: boolean } | undefined =
    undefined
  /** Number of pieces since the text was last written, and its length then. */
  private unwritten = 0
  private written = 0

  /** The complete JSON text. */
  get json(): string {
    return write(this.root)
  }

  /** Adds complete members. */
  assign(members: Json.JsonObject): void {
    for (const [name, value] of Object.entries(members)) this.root.set(name, value)
  }

  /**
   * Adds a piece: `{jsonPath, stringValue | numberValue | boolValue | nullValue, willContinue}`. Returns the
   * new text.
   */
  add(piece: Json.JsonObject): string {
    const path = Json.text(piece["jsonPath"]) ?? "$"
    const value = valueOf(piece)
    const more = piece["willContinue"] === true
    const { open } = this
    if (open?.path === path && typeof value === "string") return this.grow(open, value, more)

    const slot = slotAt(this.root, path)
    if (slot === undefined || value === undefined) return ""
    const known = slot.get()
    slot.set(typeof known === "string" && typeof value === "string" ? known + value : value)
    const isOpen = more && typeof value === "string"
    // Each piece writes the complete text. With many pieces and a long text, only some of them do.
    const isShown = ++this.unwritten * piecesPerText >= this.written
    this.open = isOpen ? { path, slot, isShown } : undefined
    return isShown ? this.emit(write(this.root, isOpen)) : ""
  }

  /** Returns the rest of the text. */
  finish(): string {
    return this.emit(this.json)
  }

  /** Appends to a string, the most frequent case, without writing the rest. */
  private grow(
    { isShown, slot }: { readonly isShown: boolean; readonly slot: Slot },
    value: string,
    more: boolean
  ): string {
    slot.set(`${slot.get()}${value}`)
    if (!more) this.open = undefined
    if (!isShown) return ""
    const delta = JSON.stringify(value).slice(1, more ? -1 : undefined)
    this.shown += delta
    return delta
  }

  private emit(text: string): string {
    this.unwritten = 0
    this.written = text.length
    if (!text.startsWith(this.shown)) return ""
    const delta = text.slice(this.shown.length)
    this.shown = text
    return delta
  }
}

/** Characters of text for each piece that writes it: at most about 50 times while the text doubles. */
const piecesPerText = 256

const valueOf = (piece: Json.JsonObject): string | number | boolean | null | undefined => {
  const { boolValue, numberValue, stringValue } = piece
  if (typeof stringValue === "string") return stringValue
  if (typeof numberValue === "number") return numberValue
  if (typeof boolValue === "boolean") return boolValue
  return "nullValue" in piece ? null : undefined
}

// ───────────────────────── Paths

interface Slot {
  readonly get: () => Tree | undefined
  readonly set: (value: Tree) => void
}

/** The position of a path, created if it is missing. `undefined` if the path leads nowhere. */
const slotAt = (root: Map<string, Tree>, path: string): Slot | undefined => {
  const steps = stepsOf(path)
  if (steps.length > maxDepth) return undefined
  let slot: Slot | undefined
  let node: Tree | undefined = root
  for (const [index, step] of steps.entries()) {
    slot = slotIn(node, step)
    if (slot === undefined) return undefined
    if (index < steps.length - 1) node = container(slot, steps[index + 1])
  }
  return slot
}

const maxDepth = 64

/** `$.files[0]['a name']`: names, and numbers for array indices. */
const stepsOf = (path: string): ReadonlyArray<string | number> =>
  [...path.matchAll(/\.([^.[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/g)].map(
    ([, name, index, single, double]) =>
      index === undefined ? (name ?? (single ?? double ?? "").replace(/\\(.)/g, "$1")) : Number(index)
  )

const slotIn = (node: Tree | undefined, step: string | number): Slot | undefined => {
  if (node instanceof Map) {
    const key = String(step)
    return { get: () => node.get(key), set: (value) => void node.set(key, value) }
  }
  if (!isList(node) || typeof step === "string") return undefined
  // Arrays have no holes: a higher index means the next one.
  const index = Math.min(step, node.length)
  return {
    get: () => node[index],
    set: (value) => {
      node[index] = value
    }
  }
}

/** The value in a slot, as one that has members. */
const container = (slot: Slot, next: string | number | undefined): Tree => {
  const known = slot.get()
  if (known instanceof Map || isList(known)) return known
  const made: Tree = isMembers(known)
    ? new Map(Object.entries(known))
    : typeof next === "number"
      ? []
      : new Map()
  slot.set(made)
  return made
}

const isList = (tree: Tree | undefined): tree is Array<Tree> => Array.isArray(tree)

const isMembers = (tree: Tree | undefined): tree is Json.JsonObject =>
  typeof tree === "object" && tree !== null && !(tree instanceof Map) && !isList(tree)

// ───────────────────────── Text

/** Invalid JSON if the values are nested too deep to be written, so that it is not taken for arguments. */
const write = (root: Tree, isOpen?: boolean): string => {
  try {
    return textOf(root, isOpen)
  } catch {
    return "…"
  }
}

/**
 * The JSON text. With `isOpen` the brackets at the end stay open, and with `true` also the quote of a string at
 * the end.
 */
const textOf = (tree: Tree, isOpen?: boolean): string => {
  if (tree instanceof Map) {
    const last = tree.size - 1
    const members = [...tree].map(
      ([name, value], index) =>
        `${JSON.stringify(name)}:${textOf(value, index === last ? isOpen : undefined)}`
    )
    return `{${members.join(",")}${isOpen === undefined ? "}" : ""}`
  }
  if (isList(tree)) {
    const items = tree.map((item, index) => textOf(item, index === tree.length - 1 ? isOpen : undefined))
    return `[${items.join(",")}${isOpen === undefined ? "]" : ""}`
  }
  const text = JSON.stringify(tree)
  return isOpen === true && typeof tree === "string" ? text.slice(0, -1) : text
}

// ───────────────────────── Sources

// The sources of an answer, and the searches behind them, which arrive beside its parts:
// https://ai.google.dev/gemini-api/docs/google-search, read in November 2026.

type Fields = Omit<Message.Source, "type" | "opaque" | "citedText">

/** A source, the passages that rely on it, and what Google says of it, by the JSON text. */
interface Found {
  readonly fields: Fields
  readonly passages: Set<string>
  readonly supports: Map<string, Json.Json>
  readonly citations: Map<string, Json.Json>
}

/** The members of a candidate that `Sources` reads. */
export const members = ["citationMetadata", "groundingMetadata", "urlContextMetadata"]

export class Sources {
  private readonly found = new Map<string, Found>()
  private readonly queries = new Set<string>()
  private readonly pages = new Map<string, Json.Json>()
  private search: Json.JsonObject | undefined = undefined

  /** Reads the metadata of a candidate. Google may repeat or extend in one chunk what it sent before. */
  read({ citationMetadata, groundingMetadata, urlContextMetadata }: Json.JsonObject): void {
    if (groundingMetadata !== undefined) this.readGrounding(Json.object(groundingMetadata) ?? {})
    for (const entry of Json.array(Json.object(urlContextMetadata)?.["urlMetadata"])) {
      const url = Json.text(Json.object(entry)?.["retrievedUrl"])
      if (url !== undefined) this.pages.set(url, entry)
    }
    if (citationMetadata === undefined) return
    const { citationSources, citations } = Json.object(citationMetadata) ?? {}
    for (const citation of [...Json.array(citationSources), ...Json.array(citations)]) {
      if (Json.isObject(citation)) note(this.add(page(citation))?.citations, citation)
    }
  }

  /** Writes the searches and the sources. `hasCalls`: the answer has the searches already, as calls. */
  write(reply: ReplyWriter, hasCalls: boolean, idOf: () => string): void {
    const queries = [...this.queries]
    const isSearch = queries.length > 0 || this.search?.["searchEntryPoint"] !== undefined
    if (isSearch && !hasCalls)
      reply.hostedTool(idOf(), "google_search").end({ params: { queries }, result: this.search ?? {} })
    const urlMetadata = [...this.pages.values()]
    if (urlMetadata.length > 0 && !hasCalls)
      reply
        .hostedTool(idOf(), "url_context")
        .end({ params: { urls: [...this.pages.keys()] }, result: { urlMetadata } })
    for (const [uri, entry] of this.pages) {
      if (Json.object(entry)?.["urlRetrievalStatus"] === "URL_RETRIEVAL_STATUS_SUCCESS")
        this.add(page({ uri }))
    }
    for (const found of this.found.values()) writeSource(reply, found)
  }

  private readGrounding(metadata: Json.JsonObject): void {
    const { groundingChunks, groundingSupports, webSearchQueries, ...rest } = metadata
    if (Object.keys(rest).length > 0) this.search = { ...this.search, ...rest }
    for (const query of Json.array(webSearchQueries)) if (typeof query === "string") this.queries.add(query)
    const chunks = Json.array(groundingChunks).map((chunk) => {
      const object = Json.object(chunk) ?? {}
      const found = this.add(fieldsOf(object))
      const passage = Json.text(Json.object(object["retrievedContext"])?.["text"])
      if (passage !== undefined) found?.passages.add(passage)
      return { found, isQuoted: passage !== undefined }
    })
    for (const support of Json.array(groundingSupports)) {
      const { groundingChunkIndices, segment } = Json.object(support) ?? {}
      const passage = Json.text(Json.object(segment)?.["text"])
      for (const index of Json.array(groundingChunkIndices)) {
        const { found, isQuoted = false } = (typeof index === "number" ? chunks[index] : undefined) ?? {}
        if (passage !== undefined && !isQuoted) found?.passages.add(passage)
        note(found?.supports, support)
      }
    }
  }

  private add(fields: Fields): Found | undefined {
    const key = fields.url ?? (fields.title === undefined ? fields.id : `${fields.id ?? ""} ${fields.title}`)
    if (key === undefined) return undefined
    const empty = { passages: new Set<string>(), supports: new Map(), citations: new Map() }
    const known = this.found.get(key)
    const found = { ...empty, ...known, fields: { ...fields, ...known?.fields } }
    this.found.set(key, found)
    return found
  }
}

const note = (notes: Map<string, Json.Json> | undefined, value: Json.Json): void => {
  notes?.set(JSON.stringify(value), value)
}

const writeSource = (reply: ReplyWriter, { citations, fields, passages, supports }: Found): void => {
  const kept = {
    ...(supports.size === 0 ? {} : { supports: [...supports.values()] }),
    ...(citations.size === 0 ? {} : { citations: [...citations.values()] })
  }
  reply.source(
    { ...fields, ...(passages.size === 0 ? {} : { citedText: [...passages].join("\n") }) },
    Object.keys(kept).length === 0 ? undefined : kept
  )
}

// ───────────────────────── One source

/** https://ai.google.dev/api/generate-content#GroundingChunk */
const fieldsOf = ({ image, maps, retrievedContext, web }: Json.JsonObject): Fields => {
  const picture = Json.object(image)
  const context = Json.object(retrievedContext)
  if (picture !== undefined) return page({ ...picture, uri: picture["sourceUri"] ?? "" })
  return context === undefined ? page(Json.object(web) ?? Json.object(maps) ?? {}) : document(context)
}

const page = ({ title, uri }: Json.JsonObject): Fields => ({
  sourceType: Json.text(uri) === undefined ? "document" : "url",
  ...member("url", uri),
  ...member("title", title)
})

/** A document of a store, or a page of a search of one's own. */
const document = (context: Json.JsonObject): Fields => {
  const { documentName, fileSearchStore, uri } = context
  const isPage = /^https?:/.test(Json.text(uri) ?? "")
  return {
    ...page(context),
    sourceType: isPage ? "url" : "document",
    ...member("id", documentName ?? fileSearchStore)
  }
}

const member = (name: string, value: Json.Json | undefined): Readonly<Record<string, string>> => {
  const text = Json.text(value)
  return text === undefined ? {} : { [name]: text }
}
