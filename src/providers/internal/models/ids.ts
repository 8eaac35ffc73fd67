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

/** The vendor in an id of Amazon Bedrock: `anthropic` of `us.anthropic.claude-opus-5`, and of an ARN that ends in it. */
export const vendorAtBedrock = (id: string): string | undefined => {
  const vendor = bedrock.exec(id)?.groups?.["vendor"]
  return vendor === "moonshotai" ? "moonshot" : vendor
}

const bedrock =
  /^(?:.*[./])?(?<vendor>ai21|amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshot|moonshotai|nvidia|openai|qwen|writer|xai|zai)\./

const expressions = new Map<string, RegExp>()

const compiled = (pattern: string): RegExp => {
  const known = expressions.get(pattern)
  if (known !== undefined) return known
  const expression = new RegExp(pattern, "i")
  expressions.set(pattern, expression)
  return expression
}

/** Maximum characters of an id to compare: the last ones, because an ARN ends in the id. */
const maxLength = 256

/**
 * The id as it is, without its date, and with a dot between the digits of its version: `gpt-5-6` and `glm-5p3` are `gpt-5.6` and
 * `glm-5.3` too. An id of Amazon Bedrock also without the region and the vendor before it.
 */
const spellings = (id: string): ReadonlyArray<string> => {
  const whole = id.slice(-maxLength)
  const undated = whole.replace(date, "")
  const bare = undated.replace(bedrock, "")
  return [
    ...new Set([
      whole,
      ...[undated, bare].flatMap((id) => [id, id.replace(version, "$1.$2"), id.replace(pointed, "$1.$2")])
    ])
  ]
}

const date = /(?:-\d{4}-\d{2}-\d{2}|[-@]\d{8})(?=$|[-:@])/

const version = /(\d)-(\d{1,2})(?![\da-z])/i

/** Fireworks writes `p` for the dot. */
const pointed = /(\d)p(\d)/gi
