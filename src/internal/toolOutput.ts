/**
 * Renders the values that tools return as results for the model.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import * as AgentEvent from "../AgentEvent.ts"
import * as JsonText from "./jsonText.ts"
import * as Message from "../Message.ts"
import * as RunOptions from "../RunOptions.ts"

/** Marks the values that `output` and `failure` make, because a value of the application may have the same members. */
const TypeId = "~effect-agent/ToolOutput"

/**
 * A result with content of its own.
 *
 * **Details**
 *
 * Only `Tool.output` and `Tool.failure` make one. A copy by spread is one too. `render` says which other values a tool may return.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToolOutput extends AgentEvent.ToolOutput {
  /** Marks the result. */
  readonly [TypeId]: true
}

/**
 * Makes a result with content of its own.
 *
 * **Details**
 *
 * The model reads the content, programs and displays read `details`. `isError` marks an error. If all results of a turn have
 * `terminate`, the run ends without asking the model again. `usage` is that of model calls that the tool made itself: it counts in the
 * report and for the limits. `addedTools` names registered tools that `activeTools` leaves out, and that the model may call from the next
 * turn on.
 *
 * **Example** (Returning an image and details)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Message, Tool } from "effect-agent"
 *
 * export const screenshot = Tool.make({
 *   name: "screenshot",
 *   description: "Takes a screenshot.",
 *   execute: () =>
 *     Effect.succeed(
 *       Tool.output([Message.text("The screen"), Message.image("iVBORw0KGgo=", "image/png")], { details: { width: 800 } })
 *     )
 * })
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const output = (
  content: string | AgentEvent.ToolOutput["content"],
  options?: Omit<AgentEvent.ToolOutput, "content">
): ToolOutput => ({
  content: typeof content === "string" ? [Message.text(content)] : content,
  ...options,
  [TypeId]: true
})

/**
 * Makes an error result from the message that the model reads.
 *
 * **Example** (Refusing a call)
 *
 * ```ts
 * import { Tool } from "effect-agent"
 *
 * console.log(Tool.failure("No such city", { city: "Atlantis" }).isError)
 * // => true
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const failure = (message: string, details?: Schema.Json): ToolOutput =>
  output(message, { isError: true, ...(details === undefined ? {} : { details }) })

/**
 * Returns whether `output` or `failure` made the value, or whether it is a copy by spread of such a value.
 *
 * **Example** (Separating results from values)
 *
 * ```ts
 * import { Tool } from "effect-agent"
 *
 * console.log(Tool.isOutput(Tool.output("done")), Tool.isOutput({ content: [] }))
 * // => true false
 * ```
 *
 * @since 0.1.0
 * @category guards
 */
export const isOutput = (value: unknown): value is ToolOutput =>
  Predicate.isObject(value) && value[TypeId] === true

/** Removes the mark and `undefined` members, which events do not have. Adds the `trust` of the tool, unless the output has one. */
export const plain = (
  output: AgentEvent.ToolOutput,
  { trust }: Pick<AgentEvent.ToolOutput, "trust"> = {}
): AgentEvent.ToolOutput =>
  RunOptions.given(
    Struct.pick(
      trust === undefined ? output : { trust, ...output },
      Struct.keys(AgentEvent.ToolOutput.fields)
    ),
    1
  )

/**
 * Makes a result of any value: a `ToolOutput` as it is, a string as text, `undefined` as an empty text, other values as JSON.
 *
 * **Details**
 *
 * An object in the shape that tools of MCP, pi and Karl return is that result: one with no members but `content`, `isError`, `details`,
 * `structuredContent`, `terminate`, `usage` and `_meta`, whose `content` is a list of blocks of theirs. Beside a boolean `isError` it may
 * also be a text or an empty list. Any other object is data, and so is a value that a `success` schema encodes.
 *
 * A value that is not JSON, such as a `Map` or `NaN`, becomes an error that says what to return instead.
 *
 * **Example** (Rendering values)
 *
 * ```ts
 * import { Tool } from "effect-agent"
 *
 * console.log(Tool.render({ degrees: 21 }).content, Tool.render(new Map()).isError)
 * // => [ { type: 'text', text: '{"degrees":21}' } ] true
 * ```
 *
 * @since 0.1.0
 * @category converting
 */
export const render = (value: unknown): ToolOutput =>
  Result.match(
    rendered(value, () => undefined),
    { onSuccess: (output) => output, onFailure: notJson }
  )

/** The error that the model reads in place of a value that is not JSON. */
export const notJson = (fault: JsonText.Fault): ToolOutput =>
  failure(`The tool returned a value that is not JSON. ${fault}`)

export type Encoder = (value: unknown) => Schema.Json | undefined

const none: Encoder = () => undefined

/** Makes the encoder for a schema. It returns `undefined` without a schema, and for values that the schema cannot encode. */
export const encoderOf = <A>(schema: Schema.Codec<A, any, never, never> | undefined): Encoder => {
  if (schema === undefined) return none
  const encode = Schema.encodeUnknownResult(Schema.toCodecJson(schema))
  return (value) => Result.getOrUndefined(encode(value))
}

/** Renders the encoded value, or the value itself if it cannot be encoded. Fails with the fault of a value that is not JSON. */
export const rendered = (
  value: unknown,
  encode: Encoder = none
): Result.Result<ToolOutput, JsonText.Fault> => {
  if (isOutput(value)) return isToolOutput(plain(value)) ? Result.succeed(value) : Result.fail(badContent)
  const encoded = encode(value)
  const ported = encoded === undefined ? read(value) : undefined
  if (ported !== undefined) return fromPorted(ported)
  const shown = encoded ?? value
  const details = encoded === undefined ? {} : { details: encoded }
  if (typeof shown === "string") return Result.succeed(output(shown, details))
  const isJson = shown === undefined ? {} : { isJson: true }
  return Result.map(JsonText.of(shown), (text) => output(text, { ...details, ...isJson }))
}

const fromPorted = ({ content, details, isError, terminate }: Ported) =>
  Result.map(JsonText.of(details), (json) =>
    output(content, {
      ...(details === undefined ? {} : { details: JSON.parse(json) }),
      ...(isError ? { isError } : {}),
      ...(terminate ? { terminate } : {})
    })
  )

const badContent =
  "The content of Tool.output must be a string, or a list of text and image blocks, and its details JSON."

/** The most characters of one text in a result, some 250,000 tokens. */
const maxText = 1_000_000

/** Cuts the text of a block to `maxText` characters. */
export const bounded = (
  block: AgentEvent.ToolOutput["content"][number]
): AgentEvent.ToolOutput["content"][number] =>
  block.type === "text" && block.text.length > maxText
    ? { ...block, text: `${block.text.slice(0, maxText)}\n[cut: ${block.text.length} characters in all]` }
    : block

const isToolOutput = Schema.is(AgentEvent.ToolOutput)

// ───────────────────────── Results of other systems

type Block = AgentEvent.ToolOutput["content"][number]

/** A result that was read from an object in the shape of another system. */
export interface Ported {
  readonly content: AgentEvent.ToolOutput["content"]
  readonly isError: boolean
  readonly terminate: boolean
  /** The details, which may not be JSON; `undefined` for none. */
  readonly details: unknown
}

/** The members of results of MCP, pi and Karl. An object with any other member is data of the application. */
const members: ReadonlySet<string> = new Set([
  "content",
  "isError",
  "details",
  "structuredContent",
  "terminate",
  "usage",
  "_meta"
])

/**
 * Reads an object as a result; `undefined` for data that merely has a member `content`. Its content is a list of blocks, or a text
 * beside an `isError`. An empty list counts beside an `isError` or a `structuredContent`.
 */
export const read = (value: unknown): Ported | undefined => {
  if (!Predicate.isObject(value) || !Object.keys(value).every((name) => members.has(name))) return undefined
  const { content, details, isError, structuredContent, terminate } = value
  const isFlagged = typeof isError === "boolean"
  if (isError !== undefined && !isFlagged) return undefined
  const given = typeof content === "string" && isFlagged ? [Message.text(content)] : blocksOf(content)
  if (given === undefined) return undefined
  const isBare = given.length === 0
  if (isBare && !isFlagged && structuredContent === undefined) return undefined
  const shown = isBare && structuredContent !== undefined ? JSON.stringify(structuredContent) : undefined
  return {
    content: shown === undefined ? given : [Message.text(shown)],
    isError: isError === true,
    terminate: terminate === true,
    details: details ?? structuredContent
  }
}

const blocksOf = (content: unknown): ReadonlyArray<Block> | undefined => {
  if (!Array.isArray(content)) return undefined
  const blocks = content.flatMap((block) => blockOf(block) ?? [])
  return blocks.length === content.length ? blocks : undefined
}

/** Reads a block of content; `undefined` for any other value. Content other than texts and images becomes a note. */
export const blockOf = (block: unknown): Block | undefined => {
  if (!Predicate.isObject(block)) return undefined
  const { data, mimeType, text, type, uri } = block
  if (type === "text") return isText(text) ? Message.text(text) : undefined
  if (type === "image") return imageOf(block)
  if (type === "audio" && isText(data)) return Message.text(`[audio: ${String(mimeType)}, ${bytes(data)}]`)
  if (type === "resource") return resourceOf(block["resource"])
  if (type !== "resource_link" || !isText(uri)) return undefined
  const named = [block["title"] ?? block["name"], block["description"]].filter(isText)
  return Message.text([`[resource: ${uri}]`, ...named].join(" "))
}

/** Reads an image in the form of MCP and pi, or with a `source` as in Karl and in this library. */
const imageOf = ({ data, mimeType, source }: { readonly [name: string]: unknown }): Block | undefined => {
  if (isText(data) && isText(mimeType)) return Message.image(data, mimeType)
  if (!Predicate.isObject(source)) return undefined
  const { data: inline, mediaType, url } = source
  if (isText(inline) && isText(mediaType)) return Message.image(inline, mediaType)
  return isText(url) ? { type: "image", source: { url } } : undefined
}

/** Reads a resource of MCP: texts and images as they are, and for other bytes a note with their size. */
export const resourceOf = (resource: unknown): Block | undefined => {
  if (!Predicate.isObject(resource)) return undefined
  const { blob, mimeType = "application/octet-stream", text, uri } = resource
  if (isText(text)) return Message.text(text)
  if (!isText(blob) || !isText(mimeType)) return undefined
  return mimeType.startsWith("image/")
    ? Message.image(blob, mimeType)
    : Message.text(`[resource: ${String(uri)}, ${mimeType}, ${bytes(blob)}]`)
}

const isText = Predicate.isString

const bytes = (base64: string): string => `${Math.floor((base64.length * 3) / 4)} bytes`
