/**
 * What a tool gave back, as the model reads it.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AgentEvent from "../AgentEvent.ts"
import * as JsonText from "./jsonText.ts"
import { text } from "../Message.ts"

/** Marks the values that `output` and `failure` make: the shape alone could be a value of the application. */
const TypeId = "~effect-agent/ToolOutput"

/** A result said in full. Only `Tool.output` and `Tool.failure` make one; a copy by spread stays one. */
export interface ToolOutput extends AgentEvent.ToolOutput {
  readonly [TypeId]: true
}

/**
 * A result said in full: content for the model, `details` for programs and displays, whether it is an error, whether the
 * run may end with it.
 */
export const output = (
  content: string | AgentEvent.ToolOutput["content"],
  options?: Omit<AgentEvent.ToolOutput, "content">
): ToolOutput => ({
  content: typeof content === "string" ? [text(content)] : content,
  ...options,
  [TypeId]: true
})

/** A result that says what went wrong. */
export const failure = (message: string, details?: Schema.Json): ToolOutput =>
  output(message, { isError: true, ...(details === undefined ? {} : { details }) })

/** Whether `output` or `failure` made the value, or a copy by spread of such a value. */
export const isOutput = (value: unknown): value is ToolOutput =>
  Predicate.isObject(value) && value[TypeId] === true

/** As it is told in events: without the mark, and without members that are `undefined`. */
export const plain = ({
  content,
  details,
  isError,
  terminate
}: AgentEvent.ToolOutput): AgentEvent.ToolOutput => ({
  content,
  ...(details === undefined ? {} : { details }),
  ...(isError === undefined ? {} : { isError }),
  ...(terminate === undefined ? {} : { terminate })
})

/**
 * Any value as a result: a `ToolOutput` as it is, a string as text, nothing as no text, anything else as JSON. What is not
 * JSON is an error that says what to return instead.
 */
export const render = (value: unknown): ToolOutput =>
  Result.match(
    rendered(value, () => undefined),
    { onSuccess: (output) => output, onFailure: notJson }
  )

/** What the model reads of a result that is not JSON. */
export const notJson = (fault: JsonText.Fault): ToolOutput =>
  failure(`The tool returned a value that is not JSON. ${fault}`)

export type Encoder = (value: unknown) => Schema.Json | undefined

const none: Encoder = () => undefined

/** Encodes by a schema, where there is one and it knows the value. */
export const encoderOf = <A>(schema: Schema.Codec<A, any, never, never> | undefined): Encoder => {
  if (schema === undefined) return none
  const encode = Schema.encodeUnknownResult(Schema.toCodecJson(schema))
  return (value) => Result.getOrUndefined(encode(value))
}

/** The value as it is encoded; one that cannot be encoded, as JSON. Fails with what is not JSON. */
export const rendered = (
  value: unknown,
  encode: Encoder = none
): Result.Result<ToolOutput, JsonText.Fault> => {
  if (isOutput(value)) return isToolOutput(plain(value)) ? Result.succeed(value) : Result.fail(badContent)
  const encoded = encode(value)
  const shown = encoded ?? value
  const content = typeof shown === "string" ? Result.succeed(shown) : JsonText.of(shown)
  return Result.map(content, (content) => output(content, encoded === undefined ? {} : { details: encoded }))
}

const badContent =
  "The content of Tool.output must be a string, or a list of text and image blocks, and its details JSON."

/** Characters of one text in a result: some 250,000 tokens, more than is of use, and few enough to send. */
const maxText = 1_000_000

/** A block of a result, its text no longer than that. */
export const bounded = (
  block: AgentEvent.ToolOutput["content"][number]
): AgentEvent.ToolOutput["content"][number] =>
  block.type === "text" && block.text.length > maxText
    ? { ...block, text: `${block.text.slice(0, maxText)}\n[cut: ${block.text.length} characters in all]` }
    : block

const isToolOutput = Schema.is(AgentEvent.ToolOutput)
