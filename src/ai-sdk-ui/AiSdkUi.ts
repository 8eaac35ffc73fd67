/**
 * Shows runs to clients of the AI SDK, as its UI message stream of version 1.
 *
 * **Details**
 *
 * A run is one UI message, and a turn is a step of it. `step` is a pure fold of events to chunks, `project` does it for a stream, and
 * `response` and `webResponse` make the answer of a server of it.
 *
 * | the run | the UI message |
 * | --- | --- |
 * | text, thinking, sources and files of an answer | `text`, `reasoning`, `source-url`, `source-document` and `file` |
 * | a tool call | a `tool-NAME` part, with `preliminary` outputs for its progress; a `dynamic-tool` part for tools of MCP servers |
 * | the value that a tool returns | the output of the part: an object stays one; `{ content, details }` where the tool chose its content |
 * | an approval | the state `approval-requested` of the part, answered by `addToolApprovalResponse` |
 * | a question | the tool part of `ask_user`, answered by `addToolOutput` |
 * | a retraction | `reset-step` |
 * | a message that steers | `steering-message` |
 * | a whole message | `data-message`, from which `messagesOf` rebuilds the transcript |
 * | other events, and those of runs inside | `data-event`, `data-child` |
 * | a failure, a cancellation | `finish` and then `error`, `abort` |
 *
 * The module imports nothing of the AI SDK.
 *
 * **Example** (Answering a request)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-agent"
 * import { AiSdkUi } from "effect-agent/ai-sdk-ui"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any" })
 *   const response = AiSdkUi.webResponse(agent.streamEvents("Hi"))
 *   const text = yield* Effect.promise(() => response.text())
 *   console.log(text.includes('{"type":"text-delta"'), text.endsWith("data: [DONE]\n\n"))
 * }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("Hello")])), Effect.scoped)
 *
 * await Effect.runPromise(program) // => true true
 * ```
 *
 * @since 0.2.0
 */
import * as Base64 from "effect/encoding/Base64"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type { AgentEvent, OfTag } from "../AgentEvent.ts"
import * as Message from "../Message.ts"
import type { Any, Tool } from "../Tool.ts"
import * as Asking from "../ui/Asking.ts"
import * as Streamed from "../ui/Streamed.ts"
import {
  initial as start,
  type Options,
  partId,
  type State,
  type Chunk,
  type Metadata
} from "./internal/ChatState.ts"
import { step as next } from "./internal/ChatStep.ts"
import * as UiMessages from "./internal/UiMessages.ts"

export type { Chunk, FinishReason, Metadata, UserPart } from "./internal/ChatState.ts"
export type { Asking, OpenRun } from "../ui/Asking.ts"
export type { Streamed } from "../ui/Streamed.ts"
export type { Options, PartApproval, State } from "./internal/ChatState.ts"
export type { UiMessage, UiPart, UiToolPart, UiToolState } from "./internal/UiMessages.ts"

/**
 * The headers of a response with a UI message stream.
 *
 * @since 0.2.0
 * @category constants
 */
export const headers: { readonly [name: string]: string } = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
  "x-vercel-ai-ui-message-stream": "v1"
}

/**
 * Returns the state before the first event.
 *
 * **Example** (Continuing a UI message)
 *
 * ```ts
 * import { AiSdkUi } from "effect-agent/ai-sdk-ui"
 *
 * console.log(AiSdkUi.initial({ messageId: "run_1" }).messageId) // => run_1
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const initial: (options?: Options) => State = start

/**
 * Returns the next state, and the chunks of one event.
 *
 * **Details**
 *
 * The function is pure, and neither changes the state. An answer whose deltas are missing comes whole with its `MessageEnd`.
 *
 * **Example** (Folding events)
 *
 * ```ts
 * import { AiSdkUi } from "effect-agent/ai-sdk-ui"
 *
 * const [state, chunks] = AiSdkUi.step(AiSdkUi.initial(), {
 *   _tag: "RunStart",
 *   runId: "run_1",
 *   seq: 1,
 *   timestamp: 0,
 *   v: 2,
 *   prompts: [],
 *   model: "any",
 *   continued: false
 * })
 *
 * console.log(state.messageId, chunks[0]?.type) // => run_1 start
 * ```
 *
 * @since 0.2.0
 * @category folding
 */
export const step: (state: State, event: AgentEvent) => readonly [State, ReadonlyArray<Chunk>] = next

/**
 * Returns whether the run waits for a person, and does nothing else before an answer.
 *
 * **When to use**
 *
 * Use it to end a response there: a client sends an answer only after the response before it has ended.
 *
 * **Example** (Looking at a run that waits for no person)
 *
 * ```ts
 * import { AiSdkUi } from "effect-agent/ai-sdk-ui"
 *
 * console.log(AiSdkUi.isWaiting(AiSdkUi.initial())) // => false
 * ```
 *
 * @since 0.2.0
 * @category predicates
 */
export const isWaiting = ({ asking }: State): boolean => Asking.isWaiting(asking)

/**
 * Returns the open requests to a person, each with the id of its tool part.
 *
 * **Example** (Finding the question of an output)
 *
 * ```ts
 * import { AiSdkUi } from "effect-agent/ai-sdk-ui"
 *
 * const requests = AiSdkUi.requests(AiSdkUi.initial())
 * console.log(requests.find(({ toolCallId }) => toolCallId === "call_1")?.request.runId) // => undefined
 * ```
 *
 * @since 0.2.0
 * @category getters
 */
export const requests = ({
  asking,
  runId
}: State): ReadonlyArray<{
  readonly toolCallId: string
  readonly request: OfTag<"ApprovalRequested" | "QuestionAsked">
}> => Asking.requests(asking).map((request) => ({ toolCallId: partId(runId, request), request }))

/**
 * Returns the chunks that end a response while the run waits for a person.
 *
 * **Details**
 *
 * The metadata reaches the server again with the next request of the client.
 *
 * **Example** (Ending a response)
 *
 * ```ts
 * import { AiSdkUi } from "effect-agent/ai-sdk-ui"
 *
 * console.log(AiSdkUi.pause({ position: 12 }).map(({ type }) => type)) // => [ 'finish-step', 'finish' ]
 * ```
 *
 * @since 0.2.0
 * @category converting
 */
export const pause = (messageMetadata: Metadata = {}): ReadonlyArray<Chunk> => [
  { type: "finish-step" },
  { type: "finish", finishReason: "tool-calls", messageMetadata }
]

/**
 * Converts the events of a run to chunks.
 *
 * **Details**
 *
 * The stream of chunks does not fail: where that of the events fails before the run has ended, it ends with a chunk `error`. A defect
 * is not shown.
 *
 * **Gotchas**
 *
 * It does not end where the run waits for a person, since `agent.stream` cancels a run that loses its reader. Let the policy defer
 * (`asked: "defer"`), and continue with the answers in the next request.
 *
 * **Example** (Listing the chunks of a run)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent } from "effect-agent"
 * import { AiSdkUi } from "effect-agent/ai-sdk-ui"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any" })
 *   const chunks = yield* agent.stream("Hi").pipe(AiSdkUi.project(), Stream.runCollect)
 *   console.log(chunks.filter(({ type }) => !type.startsWith("data-")).map(({ type }) => type).join(" "))
 * }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("Hello")])), Effect.scoped)
 *
 * await Effect.runPromise(program)
 * // => start start-step text-start text-delta text-end finish-step finish
 * ```
 *
 * @since 0.2.0
 * @category converting
 */
export const project =
  (options?: Options) =>
  <E, R>(self: Stream.Stream<AgentEvent, E, R>): Stream.Stream<Chunk, never, R> =>
    Streamed.project({
      initial: () => initial(options),
      step,
      failed: (message): Chunk => ({ type: "error", errorText: message })
    })(self)

/**
 * Converts chunks to the text of server-sent events, with `[DONE]` at the end.
 *
 * **Example** (Writing a chunk)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { AiSdkUi } from "effect-agent/ai-sdk-ui"
 *
 * const frames = Stream.runCollect(AiSdkUi.encode(Stream.make({ type: "start-step" })))
 * console.log((await Effect.runPromise(frames)).map((frame) => frame.trim()))
 * // => [ 'data: {"type":"start-step"}', 'data: [DONE]' ]
 * ```
 *
 * @since 0.2.0
 * @category encoding
 */
export const encode = <E, R>(self: Stream.Stream<Chunk, E, R>): Stream.Stream<string, E, R> =>
  Stream.concat(Streamed.encode(self), Stream.succeed("data: [DONE]\n\n"))

/**
 * Makes a response of the events of a run, for a server of Effect.
 *
 * **Example** (Adding a route)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { HttpRouter, HttpServerRequest } from "effect/http"
 * import { Agent } from "effect-agent"
 * import { AiSdkUi } from "effect-agent/ai-sdk-ui"
 *
 * export const route = (agent: Agent.Agent) =>
 *   HttpRouter.add(
 *     "POST",
 *     "/chat",
 *     Effect.map(HttpServerRequest.schemaBodyJson(AiSdkUi.ChatRequest), (request) =>
 *       AiSdkUi.response(agent.streamEvents(AiSdkUi.prompt(request)))
 *     )
 *   )
 * ```
 *
 * @since 0.2.0
 * @category converting
 */
export const response = <E>(
  events: Stream.Stream<AgentEvent, E>,
  options?: Options
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.stream(bytes(events, options), { headers, contentType: "text/event-stream" })

/**
 * Makes a web `Response` of the events of a run.
 *
 * **Details**
 *
 * The stream of events begins when the body is read, and the runtime interrupts it when the client leaves.
 *
 * **Example** (Handling a request)
 *
 * ```ts
 * import { Schema } from "effect"
 * import { Agent } from "effect-agent"
 * import { AiSdkUi } from "effect-agent/ai-sdk-ui"
 *
 * const decode = Schema.decodeUnknownPromise(AiSdkUi.ChatRequest)
 *
 * export const POST = (agent: Agent.Agent) => async (request: Request) => {
 *   const chat = await decode(await request.json())
 *   return AiSdkUi.webResponse(agent.streamEvents(AiSdkUi.prompt(chat)))
 * }
 * ```
 *
 * @since 0.2.0
 * @category converting
 */
export const webResponse = <E>(events: Stream.Stream<AgentEvent, E>, options?: Options): Response =>
  new Response(Stream.toReadableStream(bytes(events, options)), { headers: { ...headers } })

const bytes = <E>(events: Stream.Stream<AgentEvent, E>, options: Options | undefined) =>
  events.pipe(project(options), encode, Stream.encodeText)

// ───────────────────────── The request of a client

const Approval = Schema.Struct({
  id: Schema.String,
  approved: Schema.optional(Schema.Boolean),
  reason: Schema.optional(Schema.String),
  isAutomatic: Schema.optional(Schema.Boolean)
})

const Part = Schema.Struct({
  type: Schema.String,
  id: Schema.optional(Schema.String),
  text: Schema.optional(Schema.String),
  url: Schema.optional(Schema.String),
  mediaType: Schema.optional(Schema.String),
  filename: Schema.optional(Schema.String),
  toolCallId: Schema.optional(Schema.String),
  state: Schema.optional(Schema.String),
  approval: Schema.optional(Approval),
  output: Schema.optional(Schema.Json),
  preliminary: Schema.optional(Schema.Boolean),
  errorText: Schema.optional(Schema.String)
}).check(
  Schema.makeFilter(({ mediaType, type, url = "" }) =>
    type !== "file" || (mediaType !== undefined && /^(https?:\/\/|data:[^,]*,)/.test(url))
      ? undefined
      : "A file has a media type, and a URL with the scheme http, https or data"
  )
)
type Part = typeof Part.Type

const SentMessage = Schema.Struct({
  id: Schema.String,
  role: Schema.Literals(["system", "user", "assistant"]),
  parts: Schema.Array(Part),
  metadata: Schema.optional(Schema.NullOr(Schema.Record(Schema.String, Schema.Json)))
})

type SentMessage = typeof SentMessage.Type

/**
 * Schema of the body that a client posts.
 *
 * **Details**
 *
 * It keeps the members that a server needs. The history in it is that of the client: this library reads only the prompt and the answers.
 *
 * @since 0.2.0
 * @category schemas
 */
export const ChatRequest = Schema.Struct({
  /** The id of the chat. */
  id: Schema.String,
  /** The act of the person that the client sends. */
  trigger: Schema.Literals(["submit-message", "regenerate-message"]),
  /** The id of the message that it is about. */
  messageId: Schema.optional(Schema.String),
  /** The messages of the page. */
  messages: Schema.Array(SentMessage)
})
export interface ChatRequest extends Schema.Schema.Type<typeof ChatRequest> {}

/**
 * Returns the messages of the user at the end of a request, under the ids of the client.
 *
 * **Details**
 *
 * `timestamp` is in milliseconds since the epoch. Default: now. Empty where the request has answers.
 *
 * **Example** (Reading a prompt)
 *
 * ```ts
 * import { Message } from "effect-agent"
 * import { AiSdkUi } from "effect-agent/ai-sdk-ui"
 *
 * const [message] = AiSdkUi.prompt({
 *   id: "chat_1",
 *   trigger: "submit-message",
 *   messages: [{ id: "user_1", role: "user", parts: [{ type: "text", text: "Hi" }] }]
 * })
 *
 * console.log(message?.id, message && Message.textOf(message)) // => user_1 Hi
 * ```
 *
 * @since 0.2.0
 * @category decoding
 */
export const prompt = (request: ChatRequest, timestamp = Date.now()): ReadonlyArray<Message.User> => {
  if (answeredIn(request) !== undefined) return []
  const { messages } = request
  const last = messages.findLastIndex(({ role }) => role !== "user")
  return messages.slice(last + 1).flatMap(({ id, parts }) => {
    const content = parts.flatMap((part) => blockOf(part))
    return content.length === 0 ? [] : [{ ...Message.user(content, timestamp), id }]
  })
}

/**
 * Returns the id of the UI message whose parts have the answers of a person.
 *
 * **Details**
 *
 * It is the message that the client names, else the last one. `undefined` for a request with a prompt.
 *
 * **Example** (Looking for answers)
 *
 * ```ts
 * import { AiSdkUi } from "effect-agent/ai-sdk-ui"
 *
 * const messages = [{ id: "run_1", role: "assistant" as const, parts: [] }]
 * console.log(AiSdkUi.answered({ id: "chat_1", trigger: "submit-message", messages })) // => run_1
 * ```
 *
 * @since 0.2.0
 * @category decoding
 */
export const answered = (request: ChatRequest): string | undefined => answeredIn(request)?.id

/**
 * Returns the answers of a person in a request.
 *
 * **Example** (Reading an approval)
 *
 * ```ts
 * import { AiSdkUi } from "effect-agent/ai-sdk-ui"
 *
 * const part = { type: "dynamic-tool", state: "approval-responded", approval: { id: "approval_1", approved: true } }
 * const { approvals } = AiSdkUi.answers({
 *   id: "chat_1",
 *   trigger: "submit-message",
 *   messages: [{ id: "run_1", role: "assistant", parts: [part] }]
 * })
 *
 * console.log(approvals) // => [ { approvalId: 'approval_1', decision: 'approve' } ]
 * ```
 *
 * @since 0.2.0
 * @category decoding
 */
export const answers = (request: ChatRequest): Answers => {
  const { parts = [] } = answeredIn(request) ?? {}
  return {
    approvals: parts.flatMap(({ approval }) => {
      if (approval?.approved === undefined || approval.isAutomatic === true) return []
      const { approved, id: approvalId, reason } = approval
      const decision = approved ? "approve" : "reject"
      return [{ approvalId, decision, ...(reason === undefined ? {} : { reason }) }]
    }),
    outputs: parts.flatMap((part) => {
      const { toolCallId } = part
      const answer = answerOf(part)
      return toolCallId === undefined || answer === undefined ? [] : [{ toolCallId, answer }]
    })
  }
}

/**
 * The answers of a person in a request.
 *
 * @since 0.2.0
 * @category models
 */
export interface Answers {
  /** The decisions about tool calls. */
  readonly approvals: ReadonlyArray<{
    readonly approvalId: string
    readonly decision: "approve" | "reject"
    readonly reason?: string
  }>
  /** The answers of the tool parts, by the id of the part: the output, or that the person declines, of a part with an error. */
  readonly outputs: ReadonlyArray<{
    readonly toolCallId: string
    readonly answer: { readonly answer: Schema.Json } | { readonly declined: true; readonly reason?: string }
  }>
}

/**
 * Returns the whole messages in the UI messages of a client, as `AgentEvent.fold` gives them.
 *
 * **Example** (Rebuilding a transcript)
 *
 * ```ts
 * import { Message } from "effect-agent"
 * import { AiSdkUi } from "effect-agent/ai-sdk-ui"
 *
 * const data = { ...Message.user("Hi") }
 * console.log(AiSdkUi.messagesOf([{ parts: [{ type: "data-message", data }] }]).map(Message.textOf)) // => [ 'Hi' ]
 * ```
 *
 * @since 0.2.0
 * @category decoding
 */
export const messagesOf = (
  messages: ReadonlyArray<{
    readonly parts: ReadonlyArray<{ readonly type: string; readonly data?: unknown }>
  }>
): ReadonlyArray<Message.Message> =>
  messages.flatMap(({ parts }) =>
    parts.flatMap(({ data, type }) => (type === "data-message" ? Option.toArray(decodeMessage(data)) : []))
  )

/**
 * Converts a transcript to the messages of a page, for the option `messages` of `useChat`.
 *
 * **Details**
 *
 * A message of the user keeps its id. The answers to it, with their calls and results, are one message, which has the id of the first answer.
 *
 * **Example** (Showing an old conversation)
 *
 * ```ts
 * import { Message } from "effect-agent"
 * import { AiSdkUi } from "effect-agent/ai-sdk-ui"
 *
 * const messages = AiSdkUi.uiMessages([Message.user("Hi"), Message.assistant("Hello")])
 * console.log(messages.map(({ role }) => role)) // => [ 'user', 'assistant' ]
 * ```
 *
 * @since 0.2.0
 * @category converting
 */
export const uiMessages = (
  transcript: ReadonlyArray<Message.Message>,
  options: Pick<Options, "dynamic"> = {}
): Array<UiMessages.UiMessage> => UiMessages.of(transcript, options)

const decodeMessage = Schema.decodeUnknownOption(Schema.toCodecJson(Message.Message))

/**
 * The inputs and outputs of tools by their names, for the type of the messages of a page.
 *
 * **Details**
 *
 * It is `InferUITools` of the AI SDK for the tools of this package: `useChat<UIMessage<AiSdkUi.Metadata, UIDataTypes, AiSdkUi.UiTools<typeof tools>>>`.
 * An output is what `execute` returns. A value that a `success` schema encodes reaches the page encoded.
 *
 * **Example** (Typing the parts of a tool)
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Tool } from "effect-agent"
 * import type { AiSdkUi } from "effect-agent/ai-sdk-ui"
 *
 * const weather = Tool.make({
 *   name: "weather",
 *   description: "The weather in a city.",
 *   params: Schema.Struct({ city: Schema.String }),
 *   execute: ({ city }) => Effect.succeed({ city, celsius: 4 })
 * })
 *
 * type Tools = AiSdkUi.UiTools<[typeof weather]>
 * const output: Tools["weather"]["output"] = { city: "Oslo", celsius: 4 }
 * console.log(output.celsius) // => 4
 * ```
 *
 * @since 0.2.0
 * @category utility types
 */
export type UiTools<Tools extends ReadonlyArray<Any>> = {
  [Name in Tools[number]["name"]]: UiTool<Extract<Tools[number], { readonly name: Name }>>
}

type UiTool<One> =
  One extends Tool<infer _Name, infer Params, infer Success, infer _Failure, infer _R>
    ? { input: Params; output: Success }
    : never

// ───────────────────────── The parts of a request

/** The message whose parts have the answers of a person: the one that the client names, else the last one. */
const answeredIn = ({ messageId, messages, trigger }: ChatRequest): SentMessage | undefined => {
  const named = messages.find(({ id }) => id === messageId)
  const message = trigger === "submit-message" && named?.role === "assistant" ? named : messages.at(-1)
  return message?.role === "assistant" ? message : undefined
}

const blockOf = (part: Part): Message.User["content"] => {
  if (part.type === "text" && part.text !== undefined) return [Message.text(part.text)]
  if (part.type !== "file" || part.url === undefined || part.mediaType === undefined) return []
  const source = sourceOf(part.url, part.mediaType)
  if (/^image(\/|$)/.test(part.mediaType)) {
    return [{ type: "image", source: "url" in source ? { url: source.url } : source }]
  }
  return [{ type: "file", source, ...(part.filename === undefined ? {} : { name: part.filename }) }]
}

const sourceOf = (url: string, mediaType: string) => {
  const [, given = mediaType, base64, data = ""] = /^data:([^;,]*)[^,]*?(;base64)?,([^]*)$/.exec(url) ?? []
  if (!url.startsWith("data:")) return { url, mediaType }
  return {
    data: base64 === undefined ? Base64.encode(percentDecoded(data)) : data,
    mediaType: given === "" ? mediaType : given
  }
}

const percentDecoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const answerOf = ({
  errorText,
  output,
  preliminary,
  state
}: Part): Answers["outputs"][number]["answer"] | undefined => {
  // The progress of the call.
  if (preliminary === true) return undefined
  if (state === "output-available" && output !== undefined) return { answer: output }
  if (state !== "output-error") return undefined
  return { declined: true, ...(errorText === undefined || errorText === "" ? {} : { reason: errorText }) }
}
