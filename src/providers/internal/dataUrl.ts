/** Files in `data:` URLs. */
export interface Inline {
  /** The bytes, in base64. */
  readonly data: string
  readonly mediaType: string
}

/** The file in a URL, `undefined` for any other URL. */
export const read = (url: string): Inline | undefined => {
  const [, mediaType, data] = /^data:([^;,]+);base64,(.*)$/s.exec(url) ?? []
  return mediaType === undefined || data === undefined ? undefined : { data, mediaType }
}
