/**
 * Detects the type of a file by its first bytes, not by its name: text, an image that models accept, or another
 * binary type.
 */

export type FileKind =
  | { readonly _tag: "Text" }
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
  if ((start[0] === 0xff && start[1] === 0xfe) || (start[0] === 0xfe && start[1] === 0xff)) {
    return { _tag: "Binary", format: "UTF-16 text" }
  }
  return start.subarray(0, 8_000).includes(0) ? { _tag: "Binary", format: "binary" } : { _tag: "Text" }
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
