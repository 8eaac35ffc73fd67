/**
 * What a tool gave back, as the model reads it.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { ToolOutput } from "./AgentEvent.ts"
import { text } from "./Message.ts"

export { ToolOutput }

/** A result said in full. */
export const output = (
  content: string | ToolOutput["content"],
  options?: Omit<ToolOutput, "content">
): ToolOutput => ({ content: typeof content === "string" ? [text(content)] : content, ...options })

/** A result that says what went wrong. */
export const failed = (message: string, details?: Schema.Json): ToolOutput =>
  output(message, { isError: true, ...(details === undefined ? {} : { details }) })

/** Any value as a result: a `ToolOutput` as it is, a string as text, nothing as no text, anything else as JSON. */
export const render = (value: unknown): ToolOutput =>
  isOutput(value) ? value : rendered(value, () => undefined)

export type Encoder<A> = (value: A) => Schema.Json | undefined

/** Encodes by a schema, where there is one and it knows the value. */
export const encoderOf = <A>(schema: Schema.Codec<A, any, never, never> | undefined): Encoder<A> => {
  if (schema === undefined) return () => undefined
  const encode = Schema.encodeUnknownResult(Schema.toCodecJson(schema))
  return (value) => Result.getOrUndefined(encode(value))
}

/** The value as it is encoded; what cannot be encoded, as far as it is JSON. */
export const rendered = <A>(value: A, encode: Encoder<A>): ToolOutput => {
  const encoded = encode(value)
  const shown = encoded ?? value
  const content = typeof shown === "string" ? shown : shown === undefined ? "" : jsonText(shown)
  if (content === undefined) return failed("The tool returned a value that is not JSON")
  return output(content, encoded === undefined ? {} : { details: encoded })
}

/** Characters of one text in a result: some 250,000 tokens, more than is of use, and few enough to send. */
const maxText = 1_000_000

/** A block of a result, its text no longer than that. */
export const bounded = (block: ToolOutput["content"][number]): ToolOutput["content"][number] =>
  block.type === "text" && block.text.length > maxText
    ? { ...block, text: `${block.text.slice(0, maxText)}\n[cut: ${block.text.length} characters in all]` }
    : block

const jsonText = (value: unknown): string | undefined => {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}

// A value with other keys beside `content` is the tool's own, to be encoded.
export const isOutput = (value: unknown): value is ToolOutput =>
  Predicate.isObject(value) &&
  Array.isArray(value["content"]) &&
  Object.keys(value).every((key) => Object.hasOwn(ToolOutput.fields, key)) &&
  isToolOutput(value)

const isToolOutput = Schema.is(ToolOutput)
