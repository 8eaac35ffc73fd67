/** The texts of rows: lines, sizes, digests, and what values say in words. */
import type { Message } from "../../Message.ts"

/** A text on one line, with at most so many characters. Only its start counts. */
export const lineOf = (text: string, most: number): string => {
  const flat = text
    .slice(0, most * read)
    .replaceAll(/\s+/g, " ")
    .trim()
  return flat.length <= most ? flat : `${flat.slice(0, most - 1).replace(halfPair, "")}…`
}

/** How much of a text `lineOf` reads, in lengths of its line. */
export const read = 4

const halfPair = /[\ud800-\udbff]$/

/** The first line that is not empty. */
export const firstLine = (text: string): string => lineOf(/\S.*/.exec(text.slice(0, 4000))?.[0] ?? "", 80)

/** The bytes of a text as UTF-8. */
export const bytesOf = (text: string): number => {
  let bytes = text.length
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 0x80) continue
    // Each half of a pair has two of its four bytes.
    bytes += code < 0x800 || (code >= 0xd800 && code < 0xe000) ? 1 : 2
  }
  return bytes
}

/** The same for the same texts, and most likely another one for others. */
export const digestOf = (...texts: ReadonlyArray<string>): string => {
  let high = 0x811c9dc5
  let low = 0x9e3779b9
  for (const text of texts) {
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      high = Math.imul(high ^ code, 0x01000193)
      low = Math.imul(low ^ code, 0x85ebca6b) ^ (high >>> 15)
    }
    high = Math.imul(high ^ 0x10000, 0x01000193)
  }
  return `${(high >>> 0).toString(16).padStart(8, "0")}${(low >>> 0).toString(16).padStart(8, "0")}`
}

type Content = Extract<Message, { readonly role: "user" | "assistant" | "toolResult" }>["content"]

/** The texts of blocks, and a mark for each image and file. */
export const textOf = (content: Content): string =>
  content
    .flatMap((block) => {
      if (block.type === "text") return [block.text]
      if (block.type !== "image" && block.type !== "file") return []
      const name = "name" in block ? block.name : undefined
      const type = "mediaType" in block.source ? block.source.mediaType : undefined
      return [`[${name ?? type ?? block.type}]`]
    })
    .join("\n")

/** A value as JSON, `""` for none. */
export const jsonOf = (value: unknown): string => (value === undefined ? "" : JSON.stringify(value))

/** A tool with the first argument of its call. */
export const callTitle = (name: string, params: unknown): string => {
  const [first] = typeof params === "object" && params !== null ? Object.values(params) : []
  return lineOf(`${name} ${lineOf(typeof first === "string" ? first : jsonOf(first), 80)}`, 200)
}

/** An error of an event in words. Events that came as JSON have members alone. */
export const wordsOf = ({ _tag = "Error", detail, message, provider, reason }: Words): string => {
  if (typeof message === "string" && message !== "") return message
  if (typeof reason === "object") return `${provider ?? ""}: ${wordsOf(reason)}`
  const words = detail ?? reason
  return words === undefined ? _tag : `${_tag}: ${words}`
}

/** An error of an event, as a class or as JSON. */
interface Words {
  readonly _tag?: string
  readonly message?: string
  readonly detail?: string
  readonly provider?: string
  readonly reason?: string | Words
}
