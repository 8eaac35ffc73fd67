/**
 * Encodes images and files for Gemini:
 * https://ai.google.dev/gemini-api/docs/generate-content/file-input-methods, read in November 2026.
 */
import type * as Message from "../../../Message.ts"
import type { Reason } from "../../../ProviderError.ts"
import { UnsupportedContent } from "../../../ProviderError.ts"

export type Inline = { readonly inlineData: { readonly mimeType: string; readonly data: string } }
export type Linked = { readonly fileData: { readonly fileUri: string; readonly mimeType?: string } }

/** An inline image, or a link from which Google loads it. */
export const toImage = ({ source }: Message.Image): Inline | Linked | Reason => {
  if ("data" in source) return inline(source.mediaType, source.data)
  if (!source.url.startsWith("data:")) return linked(source.url, typeOf(source.url))
  const [, mediaType, data] = /^data:([^;,]+)[^,]*;base64,([^]*)$/.exec(source.url) ?? []
  return mediaType === undefined || data === undefined
    ? new UnsupportedContent({ detail: "Gemini takes an image in a data URL only as base64" })
    : inline(mediaType, data)
}

const inline = (mimeType: string, data: string): Inline => ({ inlineData: { mimeType, data } })

/** The media type of an address by its ending, which Google requires of addresses outside of its file service. */
const typeOf = (url: string): string | undefined =>
  mediaTypes.get(/\.(\w+)(?:[?#]|$)/.exec(url)?.[1]?.toLowerCase() ?? "")

const mediaTypes: ReadonlyMap<string, string> = new Map([
  ["png", "image/png"],
  ["jpg", "image/jpeg"],
  ["jpeg", "image/jpeg"],
  ["webp", "image/webp"],
  ["gif", "image/gif"],
  ["heic", "image/heic"],
  ["heif", "image/heif"],
  ["pdf", "application/pdf"],
  ["txt", "text/plain"],
  ["md", "text/markdown"],
  ["csv", "text/csv"],
  ["html", "text/html"],
  ["mp3", "audio/mp3"],
  ["wav", "audio/wav"],
  ["aac", "audio/aac"],
  ["ogg", "audio/ogg"],
  ["flac", "audio/flac"],
  ["mp4", "video/mp4"],
  ["mov", "video/mov"],
  ["mpeg", "video/mpeg"],
  ["webm", "video/webm"]
])

/** The id of an uploaded file is its URL, which may omit the address of the file service. */
export const toFile = ({ source }: Message.File): Inline | Linked =>
  "data" in source
    ? inline(source.mediaType, source.data)
    : "url" in source
      ? linked(source.url, source.mediaType ?? typeOf(source.url))
      : linked(
          source.fileId.includes("://") ? source.fileId : `${files}${source.fileId.replace(/^files\//, "")}`
        )

const linked = (fileUri: string, mimeType?: string): Linked => ({
  fileData: { fileUri, ...(mimeType === undefined ? {} : { mimeType }) }
})

const files = "https://generativelanguage.googleapis.com/v1beta/files/"

/** The file with its name. */
export const named = (file: Inline | Linked, displayName: string | undefined): object => {
  if (displayName === undefined) return file
  return "inlineData" in file
    ? { inlineData: { ...file.inlineData, displayName } }
    : { fileData: { ...file.fileData, displayName } }
}

/** A file that the model made. */
export const toMedia = ({ source }: Message.Media): Inline | Linked =>
  "data" in source ? inline(source.mediaType, source.data) : linked(source.url, source.mediaType)
