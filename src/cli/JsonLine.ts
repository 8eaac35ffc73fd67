/** A value as a line of JSON. */

export const of = (value: unknown): string => `${escaped(JSON.stringify(value))}\n`

/** Escapes the control characters above the space in JSON, which terminals obey too. JSON itself escapes those below it. */
export const escaped = (json: string): string =>
  json.replaceAll(/[\u007f-\u009f]/g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`)
