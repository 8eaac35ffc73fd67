/**
 * A run in the events of Karl's agent loop: `agent.stream("…").pipe(Karl.project)`.
 *
 * Where Karl differs from what its names suggest: `turn_end` comes once, at the end of the run; `text_end` and
 * `thinking_end` come once per model call, with the whole text; `tool_call_start` comes when the call is complete, right
 * before `tool_call_end`; only calls that really ran have execution events; only answers have a `message_end`.
 *
 * Source: the events of bwl/karl, packages/karl/src/agent-loop.ts.
 */
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { AgentEvent, OfTag, RunStatus, ToolOutput } from "../AgentEvent.ts"
import * as Message from "../Message.ts"
import type { ModelEvent } from "../ModelEvent.ts"
import type * as Usage from "../Usage.ts"

/** `arguments` is JSON text, as the model wrote it. */
export interface ToolCall {
  readonly id: string
  readonly type: "function"
  readonly function: { readonly name: string; readonly arguments: string }
}

export interface AssistantMessage {
  readonly role: "assistant"
  readonly content: string
  readonly tool_calls?: ReadonlyArray<ToolCall>
}

/** An image by address has no counterpart in Karl, which knows base64 alone. */
export interface ToolResult {
  readonly content: ReadonlyArray<
    | { readonly type: "text"; readonly text: string }
    | { readonly type: "image"; readonly source: Base64 | { readonly type: "url"; readonly url: string } }
  >
  readonly isError?: boolean
}

/** The source of an image whose data is inline. */
export interface Base64 {
  readonly type: "base64"
  readonly mediaType: string
  readonly data: string
}

/** Tokens. */
export interface TokenUsage {
  readonly input: number
  readonly output: number
  readonly total: number
  readonly cost?: number
}

export type Event =
  | { readonly type: "stream_start" }
  | { readonly type: "text_delta"; readonly delta: string }
  | { readonly type: "text_end"; readonly text: string }
  | { readonly type: "thinking_delta"; readonly delta: string }
  | { readonly type: "thinking_end"; readonly thinking: string }
  | { readonly type: "tool_call_start"; readonly toolCall: ToolCall }
  | { readonly type: "tool_call_end"; readonly toolCall: ToolCall }
  | {
      readonly type: "tool_execution_start"
      readonly toolName: string
      readonly toolCallId: string
      readonly args: Schema.Json
    }
  | {
      readonly type: "tool_execution_end"
      readonly toolName: string
      readonly toolCallId: string
      readonly result: ToolResult
      readonly isError: boolean
    }
  /** `usage` is that of the call. */
  | { readonly type: "message_end"; readonly message: AssistantMessage; readonly usage?: TokenUsage }
  /** `usage` is that of the run. */
  | { readonly type: "turn_end"; readonly message: AssistantMessage; readonly usage: TokenUsage }
  | { readonly type: "error"; readonly error: Error }

/** What has to be remembered between two events. */
export interface State {
  /** The calls of the answer being said, by `contentIndex`. */
  readonly calls: ReadonlyMap<number, { readonly id: string; readonly name: string }>
  /** Calls that run. */
  readonly invoked: ReadonlySet<string>
  readonly lastAnswer: AssistantMessage
}

/** Before any event. */
export const initial: State = {
  calls: new Map(),
  invoked: new Set(),
  lastAnswer: { role: "assistant", content: "" }
}

/** What Karl would say after one more event. Pure. */
export const step = (state: State, event: AgentEvent): readonly [State, ReadonlyArray<Event>] => {
  switch (event._tag) {
    case "RunStart":
      return [initial, []]
    case "ModelCallStart":
      return [{ ...state, calls: new Map() }, [{ type: "stream_start" }]]
    case "MessageDelta":
      return delta(state, event.delta)
    case "MessageEnd":
      return event.message.role === "assistant" ? answered(state, event.message) : [state, []]
    case "ToolInvoked":
      return invoked(state, event)
    case "ToolExecutionEnd":
      return executed(state, event)
    case "RunError":
      return [state, [{ type: "error", error: errorOf(event.error) }]]
    case "RunEnd": {
      const usage = usageOf(event.usage)
      return [
        state,
        finished.has(event.status) ? [{ type: "turn_end", message: state.lastAnswer, usage }] : []
      ]
    }
    default:
      return [state, []]
  }
}

/** The same for a whole stream. */
export const project = <E, R>(self: Stream.Stream<AgentEvent, E, R>): Stream.Stream<Event, E, R> =>
  Stream.mapAccum(self, () => initial, step)

/** Runs that came to an end of their own. */
const finished: ReadonlySet<RunStatus> = new Set<RunStatus>([
  "completed",
  "stopped",
  "terminated",
  "incomplete"
])

const delta = (state: State, said: ModelEvent): readonly [State, ReadonlyArray<Event>] => {
  switch (said._tag) {
    case "TextDelta":
      return [state, [{ type: "text_delta", delta: said.delta }]]
    case "ThinkingDelta":
      return [state, [{ type: "thinking_delta", delta: said.delta }]]
    case "ToolCallStart": {
      const { id, name } = said
      return [{ ...state, calls: new Map(state.calls).set(said.contentIndex, { id, name }) }, []]
    }
    case "ToolCallEnd": {
      const begun = state.calls.get(said.contentIndex) ?? { id: "", name: "" }
      const toolCall = callOf({ ...begun, rawArguments: said.rawArguments })
      return [
        state,
        [
          { type: "tool_call_start", toolCall },
          { type: "tool_call_end", toolCall }
        ]
      ]
    }
    default:
      return [state, []]
  }
}

const answered = (state: State, answer: Message.Assistant): readonly [State, ReadonlyArray<Event>] => {
  const message = messageOf(answer)
  const thinking = answer.content.map((block) => (block.type === "thinking" ? block.text : "")).join("")
  return [
    { ...state, calls: new Map(), lastAnswer: message },
    [
      ...(thinking === "" ? [] : [{ type: "thinking_end", thinking } as const]),
      ...(message.content === "" ? [] : [{ type: "text_end", text: message.content } as const]),
      {
        type: "message_end",
        message,
        ...(answer.usage === undefined ? {} : { usage: usageOf(answer.usage) })
      }
    ]
  ]
}

const invoked = (
  state: State,
  { params, toolCallId, toolName }: OfTag<"ToolInvoked">
): readonly [State, ReadonlyArray<Event>] => [
  { ...state, invoked: new Set(state.invoked).add(toolCallId) },
  [{ type: "tool_execution_start", toolName, toolCallId, args: params }]
]

const executed = (
  state: State,
  { isError, result, toolCallId, toolName }: OfTag<"ToolExecutionEnd">
): readonly [State, ReadonlyArray<Event>] => {
  if (!state.invoked.has(toolCallId)) return [state, []]
  const running = new Set(state.invoked)
  running.delete(toolCallId)
  return [
    { ...state, invoked: running },
    [{ type: "tool_execution_end", toolName, toolCallId, result: resultOf(result), isError }]
  ]
}

const messageOf = (answer: Message.Assistant): AssistantMessage => {
  const calls = Message.toolCalls(answer)
  return {
    role: "assistant",
    content: Message.textOf(answer),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map(callOf) })
  }
}

const callOf = ({
  id,
  name,
  rawArguments
}: Pick<Message.ToolCall, "id" | "name" | "rawArguments">): ToolCall => ({
  id,
  type: "function",
  function: { name, arguments: rawArguments }
})

const resultOf = ({ content, isError }: ToolOutput): ToolResult => ({
  content: content.map((block) =>
    block.type === "text"
      ? { type: "text", text: block.text }
      : { type: "image", source: "url" in block.source ? byAddress(block.source.url) : inline(block.source) }
  ),
  ...(isError === undefined ? {} : { isError })
})

const byAddress = (url: string) => ({ type: "url", url }) as const

const inline = ({ data, mediaType }: { readonly data: string; readonly mediaType: string }): Base64 => ({
  type: "base64",
  mediaType,
  data
})

const usageOf = ({ cost, input, output, total }: Usage.Usage): TokenUsage => ({
  input,
  output,
  total,
  ...(cost === undefined ? {} : { cost })
})

const errorOf = (error: OfTag<"RunError">["error"]): Error =>
  error instanceof Error ? error : new Error(error.message)
