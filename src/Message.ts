/**
 * The entries of a transcript: user messages, answers of the model, results of tools, and messages of the application.
 *
 * A message is a plain object that `JSON.stringify` writes without loss. The system prompt and the tools are options of a run,
 * not messages.
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { Usage } from "./Usage.ts"

/**
 * Members of a block, a message or a tool in the request, by the id of the provider that understands them.
 *
 * **Details**
 *
 * A provider reads the entry of its own id alone, and merges it with the members that it writes itself: objects are merged, and
 * everything else is replaced.
 *
 * **Example** (Marking a document for the cache of one vendor)
 *
 * ```ts
 * import { Message } from "effect-agent"
 *
 * const question = Message.user([
 *   { type: "text", text: "The contract: …", vendor: { anthropic: { cache_control: { type: "ephemeral" } } } },
 *   Message.text("Who signed it?")
 * ])
 *
 * console.log(question.content.length) // => 2
 * ```
 *
 * @category models
 * @since 0.2.0
 */
export const VendorMembers = Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Json))
export type VendorMembers = typeof VendorMembers.Type

const vendor = {
  /** Members of the block in a request by provider id: see `VendorMembers`. Default none. */
  vendor: Schema.optionalKey(VendorMembers)
}

const ofMessage = {
  /**
   * Members of the message in a request by provider id, or of its last block where the vendor's messages have none of their own:
   * see `VendorMembers`. Default none.
   */
  vendor: Schema.optionalKey(VendorMembers)
}

/**
 * A block of text.
 *
 * @category models
 * @since 0.1.0
 */
export const Text = Schema.Struct({
  /** Always `"text"`: the tag of the block, by which code distinguishes blocks. */
  type: Schema.Literal("text"),
  /** The text, which may be empty. */
  text: Schema.String,
  /** Data that the provider wants back unchanged, such as a signature; only that provider gets it. Default none. */
  opaque: Schema.optionalKey(Schema.Json),
  ...vendor
})
export interface Text extends Schema.Schema.Type<typeof Text> {}

/**
 * The detail in which a model sees an image.
 *
 * @category models
 * @since 0.2.0
 */
export const ImageDetail = Schema.Literals(["low", "high", "auto", "original"])
export type ImageDetail = typeof ImageDetail.Type

/** An inline source: `data` is base64. */
const Inline = Schema.Struct({ data: Schema.String, mediaType: Schema.String })

/**
 * An image, either inline or at an address that the provider can read.
 *
 * **Details**
 *
 * An inline source holds base64 `data` and a `mediaType` such as `"image/png"`.
 *
 * @category models
 * @since 0.1.0
 */
export const Image = Schema.Struct({
  /** Always `"image"`: the tag of the block, by which code distinguishes blocks. */
  type: Schema.Literal("image"),
  /** The bytes of the image, or its address. */
  source: Schema.Union([Inline, Schema.Struct({ url: Schema.String })]),
  /**
   * The detail in which the model sees the image, which decides on its tokens: `"original"` for all of its pixels. A provider without
   * such an option leaves it out, and reports it in `ModelCallEnd.adjusted`. Default `"auto"`.
   */
  detail: Schema.optionalKey(ImageDetail),
  ...vendor
})
export interface Image extends Schema.Schema.Type<typeof Image> {}

/** An address with the media type of its content, such as `"application/pdf"`. */
const Linked = Schema.Struct({ url: Schema.String, mediaType: Schema.optionalKey(Schema.String) })

/**
 * A file, such as a document or a recording: inline, at an address, or by the id that the provider gave it at its upload.
 *
 * **Details**
 *
 * An inline source holds base64 `data` and a `mediaType` such as `"application/pdf"` or `"audio/wav"`. An address may have a
 * `mediaType`, which some vendors require. A model that does not take a file gets a note in its place, which
 * `ModelCallEnd.adjusted` names.
 *
 * @category models
 * @since 0.1.0
 */
export const File = Schema.Struct({
  /** Always `"file"`: the tag of the block, by which code distinguishes blocks. */
  type: Schema.Literal("file"),
  /** The bytes of the file, its address, or the id of an uploaded one. */
  source: Schema.Union([Inline, Schema.Struct({ fileId: Schema.String }), Linked]),
  /** The name of the file, such as `"invoice.pdf"`. Default none. */
  name: Schema.optionalKey(Schema.String),
  /**
   * Whether the answer cites the passages of the file that it relies on, as blocks `source`. A provider without such an option leaves
   * it out, and reports it in `ModelCallEnd.adjusted`. Default: the vendor's, mostly no citations.
   */
  citations: Schema.optionalKey(Schema.Struct({ enabled: Schema.Boolean })),
  ...vendor
})
export interface File extends Schema.Schema.Type<typeof File> {}

/**
 * The reasoning of the model before its answer.
 *
 * **Details**
 *
 * Thinking goes back only to the provider that made it: another provider gets the conversation without it.
 *
 * @category models
 * @since 0.1.0
 */
export const Thinking = Schema.Struct({
  /** Always `"thinking"`: the tag of the block, by which code distinguishes blocks. */
  type: Schema.Literal("thinking"),
  /** The text or a summary of it, empty where the vendor hides it. */
  text: Schema.String,
  /** Whether the vendor hides the text: the block then has `opaque` alone. Default `false`. */
  redacted: Schema.optionalKey(Schema.Boolean),
  /** Data that the provider wants back unchanged, such as a signature; only that provider gets it. Default none. */
  opaque: Schema.optionalKey(Schema.Json),
  ...vendor
})
export interface Thinking extends Schema.Schema.Type<typeof Thinking> {}

/**
 * A tool call of the model.
 *
 * @category models
 * @since 0.1.0
 */
export const ToolCall = Schema.Struct({
  /** Always `"toolCall"`: the tag of the block, by which code distinguishes blocks. */
  type: Schema.Literal("toolCall"),
  /** The id of the call, which its result names. */
  id: Schema.String,
  /** The name of the tool as the model wrote it. */
  name: Schema.String,
  /** The arguments as the model wrote them: JSON text, or text that is not valid JSON. */
  rawArguments: Schema.String,
  /** The value of `rawArguments`, absent if they are not valid JSON. */
  params: Schema.optionalKey(Schema.Json),
  /** Data that the provider wants back unchanged, such as a signature; only that provider gets it. Default none. */
  opaque: Schema.optionalKey(Schema.Json),
  /**
   * Whether the call is the vendor's request for an approval, after which the vendor runs it. The run only answers. Default `false`.
   */
  hosted: Schema.optionalKey(Schema.Boolean),
  ...vendor
})
export interface ToolCall extends Schema.Schema.Type<typeof ToolCall> {}

/**
 * A source of an answer: a citation, or a hit of a search that the vendor ran.
 *
 * **Details**
 *
 * It follows the text that it belongs to, where the vendor says to which.
 *
 * @category models
 * @since 0.2.0
 */
export const Source = Schema.Struct({
  /** Always `"source"`: the tag of the block, by which code distinguishes blocks. */
  type: Schema.Literal("source"),
  /** Whether the source is a web page, or a document of the request or of a store. */
  sourceType: Schema.Literals(["url", "document"]),
  /** The id of the source at the vendor. Default none. */
  id: Schema.optionalKey(Schema.String),
  /** The address of the source. Default none. */
  url: Schema.optionalKey(Schema.String),
  /** The title of the source. Default none. */
  title: Schema.optionalKey(Schema.String),
  /** The media type of a document, such as `"application/pdf"`. Default none. */
  mediaType: Schema.optionalKey(Schema.String),
  /** The file name of a document. Default none. */
  fileName: Schema.optionalKey(Schema.String),
  /** The passage of the source that the answer relies on. Default none. */
  citedText: Schema.optionalKey(Schema.String),
  /** Data that the provider wants back unchanged; only that provider gets it. Default none. */
  opaque: Schema.optionalKey(Schema.Json)
})
export interface Source extends Schema.Schema.Type<typeof Source> {}

/**
 * An image, a recording or another file that the model made.
 *
 * **Details**
 *
 * An inline source holds base64 `data`, and each source a `mediaType` such as `"image/png"` or `"audio/wav"`.
 *
 * @category models
 * @since 0.2.0
 */
export const Media = Schema.Struct({
  /** Always `"media"`: the tag of the block, by which code distinguishes blocks. */
  type: Schema.Literal("media"),
  /** The bytes of the file, or its address. */
  source: Schema.Union([Inline, Schema.Struct({ url: Schema.String, mediaType: Schema.String })]),
  /** The id of the file at the vendor. Default none. */
  id: Schema.optionalKey(Schema.String),
  /** The words of a recording. Default none. */
  transcript: Schema.optionalKey(Schema.String),
  /** Data that the provider wants back unchanged; only that provider gets it. Default none. */
  opaque: Schema.optionalKey(Schema.Json),
  ...vendor
})
export interface Media extends Schema.Schema.Type<typeof Media> {}

/**
 * A call of a tool that the vendor ran, its result, or both.
 *
 * **Details**
 *
 * A vendor that reports a call and its result apart makes two blocks with the same `id`, in the order of its answer. A run neither
 * executes nor answers such a call.
 *
 * @category models
 * @since 0.2.0
 */
export const HostedTool = Schema.Struct({
  /** Always `"hostedTool"`: the tag of the block, by which code distinguishes blocks. */
  type: Schema.Literal("hostedTool"),
  /** The id of the call. */
  id: Schema.String,
  /** The name of the tool at the vendor, such as `"web_search"`. */
  name: Schema.String,
  /** The params of the call, absent in a block of a result alone. */
  params: Schema.optionalKey(Schema.Json),
  /** The result of the call, absent in a block of a call alone. */
  result: Schema.optionalKey(Schema.Json),
  /** Whether the call failed. Default `false`. */
  isError: Schema.optionalKey(Schema.Boolean),
  /** Data that the provider wants back unchanged; only that provider gets it. Default none. */
  opaque: Schema.optionalKey(Schema.Json),
  ...vendor
})
export interface HostedTool extends Schema.Schema.Type<typeof HostedTool> {}

/**
 * The reason why an answer ended.
 *
 * **Details**
 *
 * - `"stop"`: the model finished its answer.
 * - `"length"`: the answer reached `maxTokens` or the end of the context window.
 * - `"toolUse"`: the model finished its answer with tool calls.
 * - `"contentFilter"`: the vendor cut the answer for its content.
 * - `"refusal"`: the model declined to answer.
 * - `"error"`: the provider failed during the answer.
 * - `"aborted"`: the run was cancelled or reached a limit during the answer.
 *
 * Tool calls of an answer that ended with `"length"`, `"contentFilter"` or `"refusal"` do not run, since their arguments may be
 * incomplete.
 *
 * @category models
 * @since 0.1.0
 */
export const StopReason = Schema.Literals([
  "stop",
  "length",
  "toolUse",
  "contentFilter",
  "refusal",
  "error",
  "aborted"
])
export type StopReason = typeof StopReason.Type

/**
 * The way in which a tool call ended.
 *
 * **Details**
 *
 * - `"success"`: the tool returned a result.
 * - `"error"`: the tool failed, or returned a result with `isError`.
 * - `"timeout"`: the tool ran longer than its time limit.
 * - `"unknownTool"`: the run offers no tool of this name.
 * - `"invalidArguments"`: the arguments do not fit the params of the tool.
 * - `"blocked"`: a `beforeTool` hook blocked the call.
 * - `"rejected"`: an `approveTool` hook, the approval policy or a person rejected the call, or a guard failed.
 * - `"expired"`: the call waited for an approval or an answer until its time limit.
 * - `"skipped"`: a `beforeTool` hook gave the result, or a steering message came first.
 * - `"aborted"`: the run ended before or during the call.
 * - `"truncated"`: the answer was cut, so its calls did not run.
 * - `"unknown"`: the process ended while the tool ran. The tool may have had effects.
 *
 * @category models
 * @since 0.1.0
 */
export const ToolOutcome = Schema.Literals([
  "success",
  "error",
  "timeout",
  "unknownTool",
  "invalidArguments",
  "blocked",
  "rejected",
  "expired",
  "skipped",
  "aborted",
  "truncated",
  "unknown"
])
export type ToolOutcome = typeof ToolOutcome.Type

/**
 * The id of a message, unique in its transcript.
 *
 * **Details**
 *
 * Events name messages by their ids.
 *
 * @category models
 * @since 0.1.0
 */
export const MessageId = Schema.String
export type MessageId = string

/**
 * Whether an application may trust the content of a tool result.
 *
 * **Details**
 *
 * - `"trusted"`: the application vouches for the content.
 * - `"untrusted"`: others may have written the content, such as that of a web page or a mail, and it may hold instructions.
 *
 * A run treats both alike. Hooks and applications decide by it, such as an `approveTool` hook that rejects calls after untrusted content.
 *
 * @category models
 * @since 0.2.0
 */
export const Trust = Schema.Literals(["trusted", "untrusted"])
export type Trust = typeof Trust.Type

/**
 * The end of a tool call that continued in the background.
 *
 * @category models
 * @since 0.2.0
 */
export const BackgroundEnd = Schema.Struct({
  /** The handle by which the model knows the call, as `background` of its `ToolResult`. */
  handle: Schema.String,
  /** The id of the call. */
  toolCallId: Schema.String,
  /** The name of the tool. */
  toolName: Schema.String,
  /** The way in which the call ended. */
  outcome: ToolOutcome,
  /** Whether the application may trust the content. Default `"trusted"`. */
  trust: Schema.optionalKey(Trust)
})
export interface BackgroundEnd extends Schema.Schema.Type<typeof BackgroundEnd> {}

/**
 * A message of the user, or one of the run that reports the ends of background calls: `backgroundEnds` says which.
 *
 * @category models
 * @since 0.1.0
 */
export const User = Schema.Struct({
  /** Always `"user"`: the tag of the message, by which code distinguishes messages. */
  role: Schema.Literal("user"),
  /** The id of the message, unique in its transcript. */
  id: MessageId,
  /** The blocks of the message, in order. */
  content: Schema.Array(Schema.Union([Text, Image, File])),
  /** The author, where that is not the user: in a request, a message that `Message.developer` made. Default: the user. */
  from: Schema.optionalKey(Schema.Literal("developer")),
  /** The calls whose ends this message of the run reports; absent in what a person wrote. */
  backgroundEnds: Schema.optionalKey(Schema.Array(BackgroundEnd)),
  /** The time of the message in milliseconds since the epoch. */
  timestamp: Schema.Finite,
  ...ofMessage
})
export interface User extends Schema.Schema.Type<typeof User> {}

/**
 * A part of the conversation that the provider refused, and that later requests to the same model leave out.
 *
 * **Details**
 *
 * The transcript keeps all of it. A note stands in its place, except for thinking.
 *
 * - `"thinking"`: the thinking, of later answers too, and the data of the vendor on other blocks, such as signatures.
 * - `"image"`, `"file"`: the images or the files.
 * - `"result"`: the results of tools, and the arguments of their calls.
 * - `"answer"`: the answers, with their calls. The results of these calls become messages of the user.
 *
 * @category models
 * @since 0.2.0
 */
export const LeftOut = Schema.Struct({
  /** The kind of content. */
  kind: Schema.Literals(["thinking", "image", "file", "result", "answer"]),
  /** The id of the model in the requests. */
  model: Schema.String,
  /** The id of the first message whose content is left out, up to the answer. Default: the first of the transcript. */
  since: Schema.optionalKey(MessageId),
  /** The refusal in words. */
  reason: Schema.String
})
export interface LeftOut extends Schema.Schema.Type<typeof LeftOut> {}

/**
 * An answer of the model.
 *
 * @category models
 * @since 0.1.0
 */
export const Assistant = Schema.Struct({
  /** Always `"assistant"`: the tag of the message, by which code distinguishes messages. */
  role: Schema.Literal("assistant"),
  /** The id of the message, unique in its transcript. */
  id: MessageId,
  /** The blocks of the answer, in order. */
  content: Schema.Array(Schema.Union([Text, Thinking, ToolCall, Source, Media, HostedTool])),
  /** The reason why the answer ended. */
  stopReason: StopReason,
  /** The tokens of this answer and of its request, absent if the provider did not report them. */
  usage: Schema.optionalKey(Usage),
  /** The id of the provider that answered, or `""` if no provider did. */
  provider: Schema.String,
  /** The id of the model that the provider asked, or `""`. */
  model: Schema.String,
  /** The name of the wire protocol, such as `"openai-responses"`, or `""`. */
  protocol: Schema.String,
  /** The id of the answer at the vendor, absent if the vendor gave none. */
  responseId: Schema.optionalKey(Schema.String),
  /** The id of the model that answered, as the vendor reports it; absent if it reports none, or the id in `model`. */
  responseModel: Schema.optionalKey(Schema.String),
  /** The failure in words, set where `stopReason` is `"error"` or `"aborted"`. */
  errorMessage: Schema.optionalKey(Schema.String),
  /** The ids of the messages that an input guard or the provider refused, absent if none did. No later request has them. */
  refused: Schema.optionalKey(Schema.Array(MessageId)),
  /** The content before this answer that its provider refused, absent if it refused none. */
  leftOut: Schema.optionalKey(Schema.Array(LeftOut)),
  /** The time at which the answer began, in milliseconds since the epoch. */
  timestamp: Schema.Finite,
  ...ofMessage
})
export interface Assistant extends Schema.Schema.Type<typeof Assistant> {}

/**
 * The result of a tool call.
 *
 * @category models
 * @since 0.1.0
 */
export const ToolResult = Schema.Struct({
  /** Always `"toolResult"`: the tag of the message, by which code distinguishes messages. */
  role: Schema.Literal("toolResult"),
  /** The id of the message, unique in its transcript. */
  id: MessageId,
  /** The id of the call that this message answers. */
  toolCallId: Schema.String,
  /** The name of the tool. */
  toolName: Schema.String,
  /** The blocks that the model reads. */
  content: Schema.Array(Schema.Union([Text, Image])),
  /** Data for programs and displays, which the model does not read. Default none. */
  details: Schema.optionalKey(Schema.Json),
  /** Whether the text is the JSON of the value that the tool returned, and not a text of its own. Default `false`. */
  isJson: Schema.optionalKey(Schema.Boolean),
  /** Whether the call failed. */
  isError: Schema.Boolean,
  /** The way in which the call ended. */
  outcome: ToolOutcome,
  /** The handle of a call that continues in the background; absent if this is its end. A later message reports the end. */
  background: Schema.optionalKey(Schema.String),
  /** The names of registered tools that the result adds to `activeTools`. Default none. */
  addedTools: Schema.optionalKey(Schema.Array(Schema.String)),
  /** Whether the application may trust the content. Default `"trusted"`. */
  trust: Schema.optionalKey(Trust),
  /** The time of the message in milliseconds since the epoch. */
  timestamp: Schema.Finite,
  ...ofMessage
})
export interface ToolResult extends Schema.Schema.Type<typeof ToolResult> {}

/**
 * A message of the application, which providers never get, but for those of {@link developer}.
 *
 * **When to use**
 *
 * Use to keep facts such as notes or state in the transcript, beside the conversation. A `toModelMessages` hook can convert
 * them to user messages for the model.
 *
 * @category models
 * @since 0.1.0
 */
export const Custom = Schema.Struct({
  /** Always `"custom"`: the tag of the message, by which code distinguishes messages. */
  role: Schema.Literal("custom"),
  /** The kind of the message, a name that the application chooses. */
  kind: Schema.String,
  /** The id of the message, unique in its transcript. */
  id: MessageId,
  /** Any JSON. */
  data: Schema.Json,
  /** The time of the message in milliseconds since the epoch. */
  timestamp: Schema.Finite
})
export interface Custom extends Schema.Schema.Type<typeof Custom> {}

/**
 * A message that a provider can send to a model: any message but a custom one.
 *
 * @category models
 * @since 0.1.0
 */
export const ModelMessage = Schema.Union([User, Assistant, ToolResult])
export type ModelMessage = User | Assistant | ToolResult

/**
 * An entry of a transcript.
 *
 * **Example** (Reading a stored transcript)
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Message } from "effect-agent"
 *
 * const Transcript = Schema.fromJsonString(Schema.toCodecJson(Schema.Array(Message.Message)))
 *
 * const program = Effect.gen(function* () {
 *   const stored = yield* Schema.encodeEffect(Transcript)([Message.user("Hello")])
 *   const messages = yield* Schema.decodeEffect(Transcript)(stored)
 *   return messages.map(Message.textOf)
 * })
 *
 * console.log(await Effect.runPromise(program)) // => [ 'Hello' ]
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export const Message = Schema.Union([User, Assistant, ToolResult, Custom])
export type Message = User | Assistant | ToolResult | Custom

/**
 * The input of `prompt`, `steer`, `followUp` and their like: a text, the content of a user message, or messages.
 *
 * @see {@link fromInput} for converting an input to messages
 *
 * @category models
 * @since 0.1.0
 */
export type Input = string | Message | ReadonlyArray<Message> | User["content"]

// An id is a random prefix of the process and a count, so that it is unique in and across processes. The first id makes the prefix, and not
// the import of this module, because Node then loads its cryptography.
let prefix: string | undefined
let count = 0

const makePrefix = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(6)), (byte) => byte.toString(36)).join("")

/**
 * Makes a new message id, unique in and across processes.
 *
 * **Example** (Making an id)
 *
 * ```ts
 * import { Message } from "effect-agent"
 *
 * console.log(Message.makeId().startsWith("msg_")) // => true
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeId = (): MessageId => `msg_${(prefix ??= makePrefix())}_${(++count).toString(36)}`

/**
 * Makes a block of text.
 *
 * **Example** (Making a block)
 *
 * ```ts
 * import { Message } from "effect-agent"
 *
 * console.log(Message.text("Hello")) // => { type: 'text', text: 'Hello' }
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const text = (text: string): Text => ({ type: "text", text })

/**
 * Makes an image from base64 data and a media type such as `"image/png"`.
 *
 * **Example** (Sending an image with a question)
 *
 * ```ts
 * import { Message } from "effect-agent"
 *
 * const question = Message.user([
 *   Message.text("Which animal is this?"),
 *   Message.image("iVBORw0KGgo=", "image/png")
 * ])
 *
 * console.log(question.content.map(({ type }) => type)) // => [ 'text', 'image' ]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const image = (data: string, mediaType: string): Image => ({
  type: "image",
  source: { data, mediaType }
})

/**
 * Makes a message of the user with a new id.
 *
 * **Details**
 *
 * `timestamp` is in milliseconds since the epoch. Default: now.
 *
 * **Example** (Prompting with a message)
 *
 * ```ts
 * import { Message } from "effect-agent"
 *
 * const message = Message.user("Do I need a coat in Oslo?", 0)
 *
 * console.log(message.role, message.content, message.timestamp)
 * // => user [ { type: 'text', text: 'Do I need a coat in Oslo?' } ] 0
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const user = (content: string | User["content"], timestamp = Date.now()): User => ({
  role: "user",
  id: makeId(),
  content: typeof content === "string" ? [text(content)] : content,
  timestamp
})

/**
 * Makes an answer by hand.
 *
 * **When to use**
 *
 * Use in tests, to import conversations from elsewhere, and in hooks that answer in place of the model.
 *
 * **Details**
 *
 * Defaults: a new id, `stopReason` `"stop"`, `timestamp` now, and `""` for `provider`, `model` and `protocol`.
 *
 * **Example** (Importing a conversation)
 *
 * ```ts
 * import { Message } from "effect-agent"
 *
 * const messages = [
 *   Message.user("What is 2 + 2?"),
 *   Message.assistant("4", { model: "gpt-5.4-mini" })
 * ]
 *
 * console.log(messages.map(Message.textOf)) // => [ 'What is 2 + 2?', '4' ]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const assistant = (
  content: string | Assistant["content"],
  options?: Partial<Omit<Assistant, "role" | "content">>
): Assistant => ({
  role: "assistant",
  id: makeId(),
  content: typeof content === "string" ? [text(content)] : content,
  stopReason: "stop",
  provider: "",
  model: "",
  protocol: "",
  timestamp: Date.now(),
  ...options
})

/**
 * Makes the result of a tool call by hand.
 *
 * **Details**
 *
 * Defaults: a new id, `isError` `false`, `timestamp` now, and as `outcome` `"success"`, or `"error"` where `isError` is `true`.
 *
 * **Example** (Answering a call)
 *
 * ```ts
 * import { Message } from "effect-agent"
 *
 * const result = Message.toolResult({ id: "call-1", name: "weather" }, "4 °C and rain")
 *
 * console.log(result.toolCallId, result.outcome) // => call-1 success
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const toolResult = (
  call: { readonly id: string; readonly name: string },
  content: string | ToolResult["content"],
  options?: Partial<
    Pick<
      ToolResult,
      "addedTools" | "background" | "details" | "isJson" | "isError" | "outcome" | "timestamp" | "trust"
    >
  >
): ToolResult => ({
  role: "toolResult",
  id: makeId(),
  toolCallId: call.id,
  toolName: call.name,
  content: typeof content === "string" ? [text(content)] : content,
  isError: false,
  outcome: options?.isError === true ? "error" : "success",
  timestamp: options?.timestamp ?? Date.now(),
  ...options
})

/** Gives the start, or block, of a tool call an id that no other call of the answer has. `ids` keeps those of the answer. @internal */
export const withUniqueId = <Call extends { readonly id: string }>(
  ids: Map<string, number>,
  call: Call
): Call => {
  let id = call.id === "" ? `call_${makeId()}` : call.id
  let n = ids.get(call.id) ?? 1
  while (ids.has(id)) id = `${call.id}_${++n}`
  ids.set(call.id, n).set(id, ids.get(id) ?? 1)
  return id === call.id ? call : { ...call, id }
}

/**
 * Makes a message of the application with a new id.
 *
 * **Details**
 *
 * `timestamp` is in milliseconds since the epoch. Default: now.
 *
 * **Example** (Keeping a note in the transcript)
 *
 * ```ts
 * import { Message } from "effect-agent"
 *
 * const note = Message.custom("note", { author: "Ada", text: "Ask again on Monday" })
 *
 * console.log(note.role, note.kind) // => custom note
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const custom = (kind: string, data: Schema.Json, timestamp = Date.now()): Custom => ({
  role: "custom",
  kind,
  id: makeId(),
  data,
  timestamp
})

/**
 * Makes a message with instructions of the application, which the model reads at its place in the conversation.
 *
 * **Details**
 *
 * It is a custom message of the kind `"developer"`, so that pages for users do not show it. At the start of the conversation it stands
 * for the system prompt of the run, and windows and summaries keep it. Elsewhere a provider sends it with the role `developer` where its
 * vendor has that, and else as a message of the user. `timestamp` is in milliseconds since the epoch. Default: now.
 *
 * **Example** (Instructing the model within a conversation)
 *
 * ```ts
 * import { Message } from "effect-agent"
 *
 * const messages = [Message.developer("Answer in one word."), Message.user("What is the capital of Norway?")]
 *
 * console.log(messages.map(({ role }) => role)) // => [ 'custom', 'user' ]
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const developer = (text: string, timestamp = Date.now()): Custom =>
  custom("developer", { text }, timestamp)

/** @internal The text of a message of the developer, `undefined` for another message. */
export const developerText = ({ data, kind }: Custom): string | undefined => {
  if (kind !== "developer") return undefined
  const words = Predicate.hasProperty(data, "text") ? data.text : data
  return typeof words === "string" ? words : undefined
}

/**
 * A kind of messages of the application, whose data have a type.
 *
 * @category models
 * @since 0.2.0
 */
export interface CustomKind<out K extends string, A extends Schema.Json> {
  /** Makes a message of the kind with a new id. */
  readonly make: (data: A, timestamp?: number) => CustomOf<K, A>
  /** Returns whether a message is of the kind, with data that match the schema. */
  readonly is: (message: Message) => message is CustomOf<K, A>
}

/**
 * A message of one kind of the application.
 *
 * @category models
 * @since 0.2.0
 */
export interface CustomOf<out K extends string, out A extends Schema.Json> extends Custom {
  /** The kind of the message. */
  readonly kind: K
  /** The data of the message. */
  readonly data: A
}

/**
 * Declares a kind of messages of the application by the schema of its data, so that reading them needs no cast.
 *
 * **Example** (Reading typed data)
 *
 * ```ts
 * import { Schema } from "effect"
 * import { Message } from "effect-agent"
 *
 * const Note = Message.customKind("note", Schema.Struct({ author: Schema.String }))
 * const messages: ReadonlyArray<Message.Message> = [Message.user("Hi"), Note.make({ author: "Ada" })]
 *
 * console.log(messages.filter(Note.is).map(({ data }) => data.author)) // => [ 'Ada' ]
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const customKind = <const K extends string, A extends Schema.Json>(
  kind: K,
  schema: Schema.Schema<A>
): CustomKind<K, A> => {
  const isData = Schema.is(schema)
  return {
    make: (data, timestamp) => ({ ...custom(kind, data, timestamp), kind, data }),
    is: (message): message is CustomOf<K, A> =>
      message.role === "custom" && message.kind === kind && isData(message.data)
  }
}

/**
 * Converts an input to messages.
 *
 * **Details**
 *
 * A text, or the content of a user message, becomes one user message. Messages stay as they are. `timestamp` is the time of a
 * new message in milliseconds since the epoch. Default: now.
 *
 * **Example** (Converting inputs)
 *
 * ```ts
 * import { Message } from "effect-agent"
 *
 * const [message] = Message.fromInput("Hello")
 *
 * console.log(message?.role) // => user
 * ```
 *
 * @category converting
 * @since 0.1.0
 */
export const fromInput = (input: Input, timestamp?: number): ReadonlyArray<Message> => {
  if (typeof input === "string") return [user(input, timestamp)]
  if (isMessage(input)) return [input]
  if (isMessages(input)) return input
  return [user(input, timestamp)]
}

const isMessage = (input: Exclude<Input, string>): input is Message => "role" in input

const isMessages = (input: ReadonlyArray<Message> | User["content"]): input is ReadonlyArray<Message> =>
  input.every((one) => "role" in one)

/**
 * Joins the text blocks of a message, or of the output of a tool.
 *
 * **Details**
 *
 * Returns `""` for a message without text blocks. Thinking is no text.
 *
 * **Example** (Reading an answer)
 *
 * ```ts
 * import { Message } from "effect-agent"
 *
 * const answer = Message.assistant([
 *   { type: "thinking", text: "Rain, so yes." },
 *   Message.text("Take "),
 *   Message.text("a coat.")
 * ])
 *
 * console.log(Message.textOf(answer)) // => Take a coat.
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const textOf = (message: Message | Pick<ToolResult, "content">): string =>
  "content" in message
    ? message.content.reduce((joined, block) => (block.type === "text" ? joined + block.text : joined), "")
    : ""

/**
 * Returns the tool calls of an answer, in the order in which the model made them.
 *
 * **Example** (Listing the calls of an answer)
 *
 * ```ts
 * import { Message } from "effect-agent"
 *
 * const answer = Message.assistant([
 *   Message.text("I look it up."),
 *   { type: "toolCall", id: "call-1", name: "weather", rawArguments: '{"city":"Oslo"}', params: { city: "Oslo" } }
 * ])
 *
 * console.log(Message.toolCalls(answer).map(({ name }) => name)) // => [ 'weather' ]
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const toolCalls = (message: Assistant): ReadonlyArray<ToolCall> =>
  message.content.filter((block) => block.type === "toolCall")
