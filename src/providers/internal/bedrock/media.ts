/** Images, documents and videos as Converse takes them: bytes, or objects of S3. */
import type * as Message from "../../../Message.ts"
import type { Reason } from "../../../ProviderError.ts"
import { UnsupportedContent } from "../../../ProviderError.ts"
import * as DataUrl from "../dataUrl.ts"

export interface Media {
  readonly kind: "image" | "document" | "video" | "audio"
  readonly format: string
  readonly source: { readonly bytes: string } | { readonly s3Location: { readonly uri: string } }
}

export const of = (part: Message.Image | Message.File): Media | Reason =>
  part.type === "image" ? image(part) : file(part)

const image = ({ source }: Message.Image): Media | Reason => {
  const inline = "url" in source ? DataUrl.read(source.url) : source
  if (inline !== undefined) return known(inline.mediaType, "image", { bytes: inline.data })
  const { url } = { url: "", ...source }
  return linked(url, typeAt(url), "image")
}

const file = ({ source }: Message.File): Media | Reason => {
  if ("fileId" in source) return refused("Bedrock takes no ids of uploaded files")
  if ("url" in source) return linked(source.url, source.mediaType ?? typeAt(source.url), "document")
  return known(source.mediaType, "document", { bytes: source.data })
}

/**
 * The name of a document in the characters that the vendor accepts. It never contains the name's extension, which the format
 * says.
 */
export const documentName = (name: string | undefined): string =>
  (name ?? "")
    .replace(/\.[^./\\]{1,8}$/, "")
    .replace(/[^a-zA-Z0-9\s()[\]-]/g, "-")
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, 150)
    .trim() || "document"

const refused = (detail: string): Reason => new UnsupportedContent({ detail })

const linked = (url: string, mediaType: string, kind: Media["kind"]): Media | Reason => {
  if (url.startsWith("s3://")) return known(mediaType, kind, { s3Location: { uri: url } })
  const inline = DataUrl.read(url)
  return inline === undefined
    ? refused("Bedrock takes files as bytes or at an s3:// address, and no other address")
    : known(inline.mediaType, kind, { bytes: inline.data })
}

/** The kind and format of a media type. `wanted` is the kind of a block whose type is none of the vendor's. */
const known = (mediaType: string, wanted: Media["kind"], source: Media["source"]): Media | Reason => {
  const [type = ""] = mediaType.toLowerCase().split(";")
  const [top = "", sub = ""] = type.trim().split("/")
  const format = formats.get(type.trim())
  if (format !== undefined) return { kind: kindOf(top), format, source }
  // The vendor reads all other text as such.
  if (wanted === "document" && (top === "text" || /(?:^|\+)(?:json|xml|yaml)$/.test(sub)))
    return { kind: "document", format: "txt", source }
  return refused(`Bedrock does not take ${wanted === "image" ? "images" : "files"} of type ${mediaType}`)
}

const kindOf = (top: string): Media["kind"] =>
  top === "image" || top === "video" || top === "audio" ? top : "document"

const formats: ReadonlyMap<string, string> = new Map([
  ...["jpeg", "png", "gif", "webp"].map((format) => [`image/${format}`, format] as const),
  ["image/jpg", "jpeg"],
  ["application/pdf", "pdf"],
  ["text/csv", "csv"],
  ["text/html", "html"],
  ["text/plain", "txt"],
  ["text/markdown", "md"],
  ["application/msword", "doc"],
  ["application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"],
  ["application/vnd.ms-excel", "xls"],
  ["application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"],
  ...["mp4", "webm", "mpeg", "flv"].map((format) => [`video/${format}`, format] as const),
  ["video/quicktime", "mov"],
  ["video/x-matroska", "mkv"],
  ["video/x-flv", "flv"],
  ["video/x-ms-wmv", "wmv"],
  ["video/3gpp", "three_gp"],
  ...["mp3", "wav", "flac", "ogg", "aac"].map((format) => [`audio/${format}`, format] as const),
  ["audio/mpeg", "mp3"],
  ["audio/mp4", "m4a"],
  ["audio/webm", "webm"]
])

/** The media type by the end of an address. */
const typeAt = (url: string): string => {
  const [, end = ""] = /\.(\w+)$/.exec(url) ?? []
  const format = end.toLowerCase().replace(/^jpg$/, "jpeg")
  const found = [...formats].find(([, known]) => known === format)
  return found?.[0] ?? end
}

/** The bytes of a file in an answer, and their media type. */
export const typeOf = (kind: string, format: string): string =>
  [...formats].find(([type, known]) => known === format && type.startsWith(`${kind}/`))?.[0] ??
  `${kind}/${format}`
