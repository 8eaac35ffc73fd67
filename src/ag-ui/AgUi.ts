/**
 * Shows runs to clients of AG-UI 1.0.
 *
 * **Details**
 *
 * `step` is a pure fold of the events of a run to those of AG-UI, `project` does it for a stream, and `response` and `webResponse` make
 * the answer of a server of it.
 *
 * | the run | AG-UI |
 * | --- | --- |
 * | a turn | a step `turn 1`, `turn 2`, … |
 * | text, thinking, tool calls | messages, reasoning and tool calls |
 * | a tool result | `TOOL_CALL_RESULT`, with an activity `TOOL_PROGRESS` before it |
 * | an approval, a question | an interrupt, which ends the run of AG-UI; `resume` of the next one answers it |
 * | a retraction | `MESSAGES_SNAPSHOT` with the conversation before it |
 * | a message that steers | a message of the user |
 * | a run inside | a sub-agent, with messages and calls of its own |
 * | a whole message | `metadata.effectAgent` of the message, from which `messagesOf` rebuilds the transcript |
 * | other events | `CUSTOM` |
 * | a failure, a cancellation | `RUN_ERROR`, the outcome `cancelled` |
 *
 * The module imports nothing of AG-UI. Tools that a client offers in its request are not called.
 *
 * **Example** (Answering a request)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-agent"
 * import { AgUi } from "effect-agent/ag-ui"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any" })
 *   const response = AgUi.webResponse(agent.streamEvents("Hi"), { threadId: "thread_1", runId: "run_1" })
 *   const text = yield* Effect.promise(() => response.text())
 *   console.log(text.startsWith('data: {"type":"RUN_STARTED"'))
 * }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("Hello")])), Effect.scoped)
 *
 * await Effect.runPromise(program) // => true
 * ```
 *
 * @since 0.2.0
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type { AgentEvent, OfTag } from "../AgentEvent.ts"
import * as Asking from "../ui/Asking.ts"
import * as Streamed from "../ui/Streamed.ts"
import * as Message from "../Message.ts"
import * as AgUiAnswer from "./internal/AgUiAnswer.ts"
import {
  initial as start,
  type Input,
  type State,
  snapshotOf,
  type AgUiMessage,
  type Event
} from "./internal/AgUiState.ts"
import { step as next } from "./internal/AgUiStep.ts"

export type { AgUiMessage, Event, Interrupt, JsonObject, Outcome, Tag } from "./internal/AgUiState.ts"
export type { Asking, OpenRun } from "../ui/Asking.ts"
export type { Streamed } from "../ui/Streamed.ts"
export type { Input, Producer, State } from "./internal/AgUiState.ts"

/**
 * The headers of a response with events of AG-UI.
 *
 * @since 0.2.0
 * @category constants
 */
export const headers: { readonly [name: string]: string } = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache",
  "x-accel-buffering": "no"
}

/**
 * Returns the state before the first event.
 *
 * **Details**
 *
 * `messages` is the conversation of the client. A retraction repeats it, and a message of the run with the id of one of them is that one.
 *
 * **Example** (Starting a stream)
 *
 * ```ts
 * import { AgUi } from "effect-agent/ag-ui"
 *
 * console.log(AgUi.initial({ threadId: "thread_1", runId: "run_1" }).hasEnded) // => false
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const initial: (input: Input) => State = start

/**
 * Returns the next state, and the events of AG-UI for one event.
 *
 * **Details**
 *
 * The function is pure, and neither changes the state. An answer whose deltas are missing comes whole with its `MessageEnd`.
 *
 * **Example** (Folding events)
 *
 * ```ts
 * import { AgUi } from "effect-agent/ag-ui"
 *
 * const [, events] = AgUi.step(AgUi.initial({ threadId: "thread_1", runId: "run_1" }), {
 *   _tag: "RunStart",
 *   runId: "run_a",
 *   seq: 1,
 *   timestamp: 0,
 *   v: 2,
 *   prompts: [],
 *   model: "any",
 *   continued: false
 * })
 *
 * console.log(events.map(({ type }) => type)) // => [ 'RUN_STARTED' ]
 * ```
 *
 * @since 0.2.0
 * @category folding
 */
export const step: (state: State, event: AgentEvent) => readonly [State, ReadonlyArray<Event>] = next

/**
 * Returns whether the run waits for a person, and does nothing else before an answer.
 *
 * **When to use**
 *
 * Use it to end a response there with the events of {@link pause}: a client sends an answer only after the run of AG-UI has finished.
 *
 * **Example** (Looking at a run that waits for no person)
 *
 * ```ts
 * import { AgUi } from "effect-agent/ag-ui"
 *
 * console.log(AgUi.isWaiting(AgUi.initial({ threadId: "thread_1", runId: "run_1" }))) // => false
 * ```
 *
 * @since 0.2.0
 * @category predicates
 */
export const isWaiting = ({ asking }: State): boolean => Asking.isWaiting(asking)

/**
 * Returns the open requests to a person.
 *
 * **Example** (Counting the requests)
 *
 * ```ts
 * import { AgUi } from "effect-agent/ag-ui"
 *
 * console.log(AgUi.requests(AgUi.initial({ threadId: "thread_1", runId: "run_1" })).length) // => 0
 * ```
 *
 * @since 0.2.0
 * @category getters
 */
export const requests = ({ asking }: State): ReadonlyArray<OfTag<"ApprovalRequested" | "QuestionAsked">> =>
  Asking.requests(asking)

/**
 * Returns the events that end a run of AG-UI while the run waits for a person.
 *
 * **Example** (Ending a response)
 *
 * ```ts
 * import { AgUi } from "effect-agent/ag-ui"
 *
 * const state = AgUi.initial({ threadId: "thread_1", runId: "run_1" })
 * console.log(AgUi.pause(state).map(({ type }) => type)) // => [ 'RUN_FINISHED' ]
 * ```
 *
 * @since 0.2.0
 * @category converting
 */
export const pause: (state: State) => ReadonlyArray<Event> = AgUiAnswer.pause

/**
 * Returns the state of the next run of AG-UI, and the events that begin it, for a run that has waited for a person.
 *
 * **Example** (Continuing a run)
 *
 * ```ts
 * import { AgUi } from "effect-agent/ag-ui"
 *
 * const state = AgUi.initial({ threadId: "thread_1", runId: "run_1" })
 * const [, events] = AgUi.resume(state, { threadId: "thread_1", runId: "run_2" })
 * console.log(events.map(({ type }) => type)) // => [ 'RUN_STARTED' ]
 * ```
 *
 * @since 0.2.0
 * @category converting
 */
export const resume = (state: State, input: Input): readonly [State, ReadonlyArray<Event>] => {
  const next = { ...state, input }
  return [next, AgUiAnswer.begin(next)]
}

/**
 * Returns the event that gives a client the whole conversation.
 *
 * **When to use**
 *
 * Use it behind `RUN_STARTED`, for a client whose list lacks messages of the thread.
 *
 * **Example** (Showing an old thread)
 *
 * ```ts
 * import { Message } from "effect-agent"
 * import { AgUi } from "effect-agent/ag-ui"
 *
 * const messages = AgUi.messages([Message.user("Hi")])
 * const state = AgUi.initial({ threadId: "thread_1", runId: "run_1", messages })
 * console.log(AgUi.snapshot(state).type) // => MESSAGES_SNAPSHOT
 * ```
 *
 * @since 0.2.0
 * @category converting
 */
export const snapshot = (state: State): Event => ({
  type: "MESSAGES_SNAPSHOT",
  messages: snapshotOf(state, [])
})

/**
 * Converts a transcript to messages of AG-UI, as a client has them that has followed its runs.
 *
 * **Example** (Converting a transcript)
 *
 * ```ts
 * import { Message } from "effect-agent"
 * import { AgUi } from "effect-agent/ag-ui"
 *
 * console.log(AgUi.messages([Message.user("Hi")]).map(({ content, role }) => `${role} ${content}`)) // => [ 'user Hi' ]
 * ```
 *
 * @since 0.2.0
 * @category converting
 */
export const messages = (transcript: ReadonlyArray<Message.Message>): ReadonlyArray<AgUiMessage> => {
  const start: State = { ...initial({ threadId: "", runId: "" }), runId: "" }
  const event = { _tag: "MessageEnd", runId: "", seq: 0 } as const
  const last = transcript.reduce(
    (state, message) => step(state, { ...event, timestamp: message.timestamp, message })[0],
    start
  )
  return last.messages
}

/**
 * Converts the events of a run to those of AG-UI.
 *
 * **Details**
 *
 * The stream does not fail: where that of the events fails before the run has ended, it ends with `RUN_ERROR`. A defect is not shown.
 *
 * **Gotchas**
 *
 * It does not end where the run waits for a person, since `agent.stream` cancels a run that loses its reader. Let the policy defer
 * (`asked: "defer"`), and continue with the answers in the next request.
 *
 * **Example** (Listing the events of a run)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent } from "effect-agent"
 * import { AgUi } from "effect-agent/ag-ui"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const input = { threadId: "thread_1", runId: "run_1", messages: [] }
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any" })
 *   const events = yield* agent.stream("Hi").pipe(AgUi.project(input), Stream.runCollect)
 *   const first = events.find((event) => event.type === "TEXT_MESSAGE_CONTENT" && event.delta === "Hello")
 *   console.log(events[0]?.type, first?.type, events.at(-1)?.type)
 * }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("Hello")])), Effect.scoped)
 *
 * await Effect.runPromise(program) // => RUN_STARTED TEXT_MESSAGE_CONTENT RUN_FINISHED
 * ```
 *
 * @since 0.2.0
 * @category converting
 */
export const project =
  (input: Input) =>
  <E, R>(self: Stream.Stream<AgentEvent, E, R>): Stream.Stream<Event, never, R> =>
    Streamed.project({
      initial: () => initial(input),
      step,
      failed: (message): Event => ({ type: "RUN_ERROR", message })
    })(self)

/**
 * Converts events of AG-UI to the text of server-sent events.
 *
 * **Example** (Writing an event)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { AgUi } from "effect-agent/ag-ui"
 *
 * const frames = Stream.runCollect(AgUi.encode(Stream.make({ type: "STEP_STARTED", stepName: "turn 1" })))
 * console.log((await Effect.runPromise(frames)).join("").trim()) // => data: {"type":"STEP_STARTED","stepName":"turn 1"}
 * ```
 *
 * @since 0.2.0
 * @category encoding
 */
export const encode: <E, R>(self: Stream.Stream<Event, E, R>) => Stream.Stream<string, E, R> = Streamed.encode

/**
 * Makes a response of the events of a run, for a server of Effect.
 *
 * **Example** (Adding a route)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { HttpRouter, HttpServerRequest } from "effect/http"
 * import { Agent } from "effect-agent"
 * import { AgUi } from "effect-agent/ag-ui"
 *
 * export const route = (agent: Agent.Agent) =>
 *   HttpRouter.add(
 *     "POST",
 *     "/agent",
 *     Effect.map(HttpServerRequest.schemaBodyJson(AgUi.RunAgentInput), (input) =>
 *       AgUi.response(agent.streamEvents(AgUi.prompt(input)), input)
 *     )
 *   )
 * ```
 *
 * @since 0.2.0
 * @category converting
 */
export const response = <E>(
  events: Stream.Stream<AgentEvent, E>,
  input: Input
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.stream(bytes(events, input), { headers, contentType: "text/event-stream" })

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
 * import { AgUi } from "effect-agent/ag-ui"
 *
 * const decode = Schema.decodeUnknownPromise(AgUi.RunAgentInput)
 *
 * export const POST = (agent: Agent.Agent) => async (request: Request) => {
 *   const input = await decode(await request.json())
 *   return AgUi.webResponse(agent.streamEvents(AgUi.prompt(input)), input)
 * }
 * ```
 *
 * @since 0.2.0
 * @category converting
 */
export const webResponse = <E>(events: Stream.Stream<AgentEvent, E>, input: Input): Response =>
  new Response(Stream.toReadableStream(bytes(events, input)), { headers: { ...headers } })

const bytes = <E>(events: Stream.Stream<AgentEvent, E>, input: Input) =>
  events.pipe(project(input), encode, Stream.encodeText)

const AnyMessage = Schema.StructWithRest(Schema.Struct({ id: Schema.String, role: Schema.String }), [
  Schema.Record(Schema.String, Schema.Json)
])
const Resume = Schema.Struct({
  interruptId: Schema.String,
  status: Schema.Literals(["resolved", "cancelled"]),
  payload: Schema.optional(Schema.Json)
})

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
export const RunAgentInput = Schema.Struct({
  /** The id of the conversation. */
  threadId: Schema.String,
  /** The id that the client gives the run. */
  runId: Schema.String,
  /** The history of the client, the new messages last. */
  messages: Schema.Array(AnyMessage).check(
    Schema.makeFilter((messages) => {
      const unread = messages.find((message) => message.role === "user" && Option.isNone(contentOf(message)))
      return unread === undefined
        ? undefined
        : `Message ${JSON.stringify(unread.id)} has content that AG-UI does not describe, or no http or https address`
    })
  ),
  /** The answers of a person to interrupts. Default none. */
  resume: Schema.optional(Schema.NullOr(Schema.Array(Resume)))
})
export interface RunAgentInput extends Schema.Schema.Type<typeof RunAgentInput> {}

/**
 * Returns the messages of the user at the end of a request, under the ids of the client.
 *
 * **Details**
 *
 * `timestamp` is in milliseconds since the epoch. Default: now.
 *
 * **Example** (Reading a prompt)
 *
 * ```ts
 * import { Message } from "effect-agent"
 * import { AgUi } from "effect-agent/ag-ui"
 *
 * const [message] = AgUi.prompt({
 *   threadId: "thread_1",
 *   runId: "run_1",
 *   messages: [{ id: "user_1", role: "user", content: "Hi" }]
 * })
 *
 * console.log(message?.id, message && Message.textOf(message)) // => user_1 Hi
 * ```
 *
 * @since 0.2.0
 * @category decoding
 */
export const prompt = ({ messages }: RunAgentInput, timestamp = Date.now()): ReadonlyArray<Message.User> => {
  const last = messages.findLastIndex(({ role }) => role !== "user")
  return messages.slice(last + 1).flatMap((message) =>
    Option.match(contentOf(message), {
      onNone: () => [],
      onSome: (content) => [
        {
          ...Message.user(typeof content === "string" ? content : content.map(blockOf), timestamp),
          id: message.id
        }
      ]
    })
  )
}

/**
 * Returns the answers of a person in a request.
 *
 * **Example** (Reading an approval)
 *
 * ```ts
 * import { AgUi } from "effect-agent/ag-ui"
 *
 * const [reply] = AgUi.replies({
 *   threadId: "thread_1",
 *   runId: "run_2",
 *   messages: [],
 *   resume: [{ interruptId: "approval_1", status: "resolved", payload: { approved: true } }]
 * })
 *
 * console.log(reply?.id, reply?.decision?.decision) // => approval_1 approve
 * ```
 *
 * @since 0.2.0
 * @category decoding
 */
export const replies = ({ resume }: RunAgentInput): ReadonlyArray<Reply> =>
  (resume ?? []).map(({ interruptId: id, payload, status }): Reply => {
    if (status === "cancelled") return { id, isCancelled: true, decision: { decision: "reject" } }
    const decision = Option.match(decodeDecision(payload), {
      onNone: () => ({}),
      onSome: ({ approved, reason }) => ({
        decision: {
          decision: approved ? ("approve" as const) : ("reject" as const),
          ...(reason === undefined || reason === null ? {} : { reason })
        }
      })
    })
    return { id, isCancelled: false, ...decision, ...(payload === undefined ? {} : { answer: payload }) }
  })

/**
 * Returns the whole messages of the agent in the messages of a client, as `AgentEvent.fold` gives them.
 *
 * **Details**
 *
 * It leaves out those of sub-agents, as the fold does.
 *
 * **Example** (Rebuilding a transcript)
 *
 * ```ts
 * import { Message } from "effect-agent"
 * import { AgUi } from "effect-agent/ag-ui"
 *
 * const metadata = { effectAgent: Message.user("Hi") }
 * console.log(AgUi.messagesOf([{ metadata }]).map(Message.textOf)) // => [ 'Hi' ]
 * ```
 *
 * @since 0.2.0
 * @category decoding
 */
export const messagesOf = (
  messages: ReadonlyArray<{
    readonly subagentRunId?: string | undefined
    readonly metadata?: { readonly [key: string]: unknown } | undefined
  }>
): ReadonlyArray<Message.Message> =>
  messages.flatMap(({ metadata, subagentRunId }) =>
    subagentRunId === undefined ? Option.toArray(decodeMessage(metadata?.["effectAgent"])) : []
  )

const decodeMessage = Schema.decodeUnknownOption(Schema.toCodecJson(Message.Message))

// ───────────────────────── Requests

const HttpUrl = Schema.String.check(Schema.isPattern(/^https?:\/\//))
const Source = Schema.Union([
  Schema.Struct({ type: Schema.Literal("data"), value: Schema.String, mimeType: Schema.String }),
  Schema.Struct({ type: Schema.Literal("url"), value: HttpUrl, mimeType: Schema.optional(Schema.String) }),
  Schema.Struct({ type: Schema.Literal("file"), value: Schema.String })
])
const Part = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Schema.Struct({ type: Schema.Literals(["image", "audio", "video", "document"]), source: Source })
])
const Content = Schema.Union([Schema.String, Schema.Array(Part)])
const decodeContent = Schema.decodeUnknownOption(Content)

const contentOf = (message: { readonly [key: string]: Schema.Json }) => decodeContent(message["content"])

const blockOf = (part: typeof Part.Type): Message.User["content"][number] => {
  if (part.type === "text") return Message.text(part.text)
  const { source, type } = part
  switch (source.type) {
    case "data": {
      const inline = { data: source.value, mediaType: source.mimeType }
      return type === "image" ? { type, source: inline } : { type: "file", source: inline }
    }
    case "url": {
      const { mimeType, value: url } = source
      if (type === "image") return { type, source: { url } }
      return { type: "file", source: { url, ...(mimeType === undefined ? {} : { mediaType: mimeType }) } }
    }
    case "file":
      return { type: "file", source: { fileId: source.value } }
  }
}

const Decision = Schema.Struct({
  approved: Schema.Boolean,
  reason: Schema.optional(Schema.NullOr(Schema.String))
})
const decodeDecision = Schema.decodeUnknownOption(Decision)

/**
 * The answer of a person to an interrupt.
 *
 * @since 0.2.0
 * @category models
 */
export interface Reply {
  /** The id of the approval or of the question. */
  readonly id: string
  /** Whether the person gave no answer. */
  readonly isCancelled: boolean
  /** The decision about a tool call, absent if the payload is none. A cancelled one rejects. */
  readonly decision?: { readonly decision: "approve" | "reject"; readonly reason?: string }
  /** The answer to a question. Default none. */
  readonly answer?: Schema.Json
}
