/** A value as a line of JSON. */

// JSON escapes control characters below the space. Terminals obey some above it too.
export const of = (value: unknown): string =>
  `${JSON.stringify(value).replaceAll(/[\u007f-\u009f]/g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`)}\n`
