/** Matches ids of models in the spellings of gateways, clouds and dated releases. */

/** Whether a pattern of the table matches an id in any of its spellings. */
export const matches = (pattern: string, id: string): boolean => {
  const expression = compiled(pattern)
  return spellings(id).some((spelling) => expression.test(spelling))
}

/** Whether a text is a regular expression. */
export const isPattern = (pattern: string): boolean => {
  try {
    compiled(pattern)
    return true
  } catch {
    return false
  }
}

/** `gpt-5.6` of `openai/gpt-5.6`. */
export const withoutPrefix = (id: string): string => id.slice(id.lastIndexOf("/") + 1)

const expressions = new Map<string, RegExp>()

const compiled = (pattern: string): RegExp => {
  const known = expressions.get(pattern)
  if (known !== undefined) return known
  const expression = new RegExp(pattern, "i")
  expressions.set(pattern, expression)
  return expression
}

/** Maximum characters of an id to compare. A longer id is cut. */
const maxLength = 256

/**
 * The id without its date, unchanged and with a dot between the digits of its version: `gpt-5-6` is `gpt-5.6`
 * too.
 */
const spellings = (id: string): ReadonlyArray<string> => {
  const undated = id.slice(0, maxLength).replace(date, "")
  const dotted = undated.replace(version, "$1.$2")
  return dotted === undated ? [undated] : [undated, dotted]
}

const date = /(?:-\d{4}-\d{2}-\d{2}|[-@]\d{8})(?=$|[-:@])/

const version = /(\d)-(\d{1,2})(?![\da-z])/i
