/**
 * The sources of an answer, and the searches behind them, which arrive beside its parts:
 * https://ai.google.dev/gemini-api/docs/google-search, read in November 2026.
 */
import type * as Message from "../../../Message.ts"
import * as Json from "../json.ts"
import type { ReplyWriter } from "../../../reply/ReplyWriter.ts"

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
