/**
 * Detects the type of a file by its first bytes, not by its name: text, an image that models accept, or another
 * binary type.
 */

export type FileKind =
  | { readonly _tag: "Text"; readonly encoding: "utf-8" | "utf-16le" | "utf-16be" }
  | { readonly _tag: "Image"; readonly mediaType: string }
  | { readonly _tag: "Binary"; readonly format: string }

/** Detects the type by the first bytes of a file. 8,000 bytes are enough: git searches as many for a NUL. */
export const of = (start: Uint8Array): FileKind => {
  const mediaType = images.find(({ at, bytes }) =>
    bytes.every((byte, index) => start[at + index] === byte)
  )?.mediaType
  if (mediaType === "image/webp" && !ascii(start.subarray(0, 4), "RIFF"))
    return { _tag: "Binary", format: "binary" }
  if (mediaType !== undefined) return { _tag: "Image", mediaType }
  if (start[0] === 0xff && start[1] === 0xfe) return { _tag: "Text", encoding: "utf-16le" }
  if (start[0] === 0xfe && start[1] === 0xff) return { _tag: "Text", encoding: "utf-16be" }
  return ofPlain(start.subarray(0, 8_000))
}

/** Detects text without a byte order mark. Text may have a few NULs, as a script with a NUL in a string. */
const ofPlain = (start: Uint8Array): FileKind => {
  if (!start.includes(0)) return { _tag: "Text", encoding: "utf-8" }
  const count = (is: (byte: number, index: number) => boolean) => start.filter(is).length
  const controls = count((byte) => (byte > 0 && byte < 7) || (byte > 13 && byte < 27))
  const zeros = count((byte) => byte === 0)
  const odd = count((byte, index) => byte === 0 && index % 2 === 1)
  // ASCII in UTF-16 has a zero in each pair.
  if (controls === 0 && zeros * 5 > start.length * 2 && (odd === 0 || odd === zeros)) {
    return { _tag: "Text", encoding: odd === 0 ? "utf-16be" : "utf-16le" }
  }
  return (controls + zeros) * 10 < start.length && isUtf8(start)
    ? { _tag: "Text", encoding: "utf-8" }
    : { _tag: "Binary", format: "binary" }
}

/** Whether the start of a text is UTF-8. */
export const isUtf8 = (start: Uint8Array): boolean => {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(start, { stream: true }) !== ""
  } catch {
    return false
  }
}

const images: ReadonlyArray<{
  readonly mediaType: string
  readonly at: number
  readonly bytes: ReadonlyArray<number>
}> = [
  { mediaType: "image/png", at: 0, bytes: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] },
  { mediaType: "image/jpeg", at: 0, bytes: [0xff, 0xd8, 0xff] },
  { mediaType: "image/gif", at: 0, bytes: [0x47, 0x49, 0x46, 0x38] },
  { mediaType: "image/webp", at: 8, bytes: [0x57, 0x45, 0x42, 0x50] }
]

const ascii = (bytes: Uint8Array, text: string): boolean =>
  Array.from(bytes, (byte) => String.fromCharCode(byte)).join("") === text
