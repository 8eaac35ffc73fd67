/** The sources of an answer of Anthropic Messages: citations of its text, and hits of the vendor's searches. */
import type { Source } from "../../../Message.ts"
import * as Json from "../json.ts"

/** A source without the data for the vendor, which the text or the result of the search keeps. */
export type Found = Omit<Source, "type" | "opaque">

/** The source of a citation. Its place in the source stays with the text. */
export const ofCitation = (json: Json.Json): ReadonlyArray<Found> => {
  const citation = Json.object(json)
  if (citation === undefined) return []
  const { cited_text, document_title, file_id, source, title, url } = citation
  const passage = Json.text(cited_text)
  const cited = passage === undefined ? {} : { citedText: passage }
  const address = Json.text(url) ?? addressIn(source)
  return address === undefined
    ? [{ ...document(Json.text(file_id) ?? Json.text(source), document_title ?? title), ...cited }]
    : [{ ...page(address, title), ...cited }]
}

/** The pages that a search found, or that the vendor fetched. */
export const ofResult = (content: Json.Json | undefined): ReadonlyArray<Found> =>
  (Json.isArray(content) ? content : [content]).flatMap((json) => {
    const { content: fetched, title, type, url } = Json.object(json) ?? {}
    const address = Json.text(url)
    if (address === undefined || (type !== "web_search_result" && type !== "web_fetch_result")) return []
    return [page(address, title ?? Json.object(fetched)?.["title"])]
  })

/** The `source` of a search result that the application gave, which may be any text. */
const addressIn = (source: Json.Json | undefined): string | undefined => {
  const text = Json.text(source)
  return text !== undefined && /^https?:\/\//i.test(text) ? text : undefined
}

const page = (url: string, title: Json.Json | undefined): Found => ({
  sourceType: "url",
  url,
  ...named(title)
})

const document = (id: string | undefined, title: Json.Json | undefined): Found => ({
  sourceType: "document",
  ...(id === undefined ? {} : { id }),
  ...named(title)
})

const named = (title: Json.Json | undefined): Pick<Found, "title"> => {
  const text = Json.text(title)
  return text === undefined ? {} : { title: text }
}
