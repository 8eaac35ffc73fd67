/**
 * Converts the events of a run to the events of Karl's agent loop: `agent.stream("…").pipe(Karl.project)`.
 *
 * Karl sends some events at other times than their names suggest. `turn_end` comes once, at the end of the run.
 * `text_end` and `thinking_end` come once for each model call, with the complete text. `tool_call_start` comes
 * when the call is complete, right before `tool_call_end`. Only calls that ran have execution events. Only
 * answers have a `message_end`, and the `content` of one with tool calls is empty. A model call that fails ends
 * with `error`, and so does a run that is cancelled.
 *
 * Source: the events of bwl/karl, packages/karl/src/agent-loop.ts.
 *
 * @since 0.1.0
 */
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { type AgentEvent, isInside, type OfTag, type RunStatus, type ToolOutput } from "../AgentEvent.ts"
import * as Message from "../Message.ts"
import type { ModelEvent } from "../ModelEvent.ts"
import type * as Usage from "../Usage.ts"
import * as Iteration from "./internal/Iteration.ts"

/**
 * A tool call of an answer.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToolCall {
  /** The id of the call. */
  readonly id: string
  /** Always `function`. */
  readonly type: "function"
  /** The name of the tool, and its arguments as JSON text of the model. */
  readonly function: { readonly name: string; readonly arguments: string }
}

/**
 * An answer of the model.
 *
 * @since 0.1.0
 * @category models
 */
export interface AssistantMessage {
  /** Always `assistant`. */
  readonly role: "assistant"
  /** The text of the answer. Empty beside tool calls. */
  readonly content: string
  /** The tool calls of the answer (default: none). */
  readonly tool_calls?: ReadonlyArray<ToolCall>
}

/**
 * A result of a tool.
 *
 * An image with a URL has no counterpart in Karl, which only has base64.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToolResult {
  /** The text and images of the result. */
  readonly content: ReadonlyArray<
    | { readonly type: "text"; readonly text: string }
    | { readonly type: "image"; readonly source: Base64 | { readonly type: "url"; readonly url: string } }
  >
  /** Whether the tool failed (default: `false`). */
  readonly isError?: boolean
}

/**
 * The source of an inline image.
 *
 * @since 0.1.0
 * @category models
 */
export interface Base64 {
  /** Always `base64`. */
  readonly type: "base64"
  /** The media type, such as `image/png`. */
  readonly mediaType: string
  /** The image as base64. */
  readonly data: string
}

/**
 * Token counts.
 *
 * @since 0.1.0
 * @category models
 */
export interface TokenUsage {
  /** Input tokens, including cached ones. */
  readonly input: number
  /** Output tokens. */
  readonly output: number
  /** All tokens. */
  readonly total: number
  /** The price, if the provider reports it. */
  readonly cost?: number
}

/**
 * An event of Karl's agent loop.
 *
 * @since 0.1.0
 * @category models
 */
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
  /** `usage` counts the tokens of the model call. */
  | { readonly type: "message_end"; readonly message: AssistantMessage; readonly usage?: TokenUsage }
  /** `usage` counts the tokens of the run. */
  | { readonly type: "turn_end"; readonly message: AssistantMessage; readonly usage: TokenUsage }
  | { readonly type: "error"; readonly error: Error }

/**
 * The state between two events.
 *
 * @since 0.1.0
 * @category models
 */
export interface State {
  /** The id of the run, `undefined` before its start. */
  readonly runId: string | undefined
  /** The calls of the current answer, by `contentIndex`. */
  readonly calls: ReadonlyMap<number, { readonly id: string; readonly name: string }>
  /** Ids of the calls that are running. */
  readonly invoked: ReadonlySet<string>
  /** The last complete answer. */
  readonly lastAnswer: AssistantMessage
}

/**
 * The state before the first event.
 *
 * @since 0.1.0
 * @category constants
 */
export const initial: State = {
  runId: undefined,
  calls: new Map(),
  invoked: new Set(),
  lastAnswer: { role: "assistant", content: "" }
}

/**
 * Returns the next state, and the Karl events for one event of this library.
 *
 * **Details**
 *
 * The function is pure, so it also works outside of Effect.
 *
 * **Example** (Converting events one by one)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent } from "effect-agent"
 * import { Karl } from "effect-agent/compat"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * let state = Karl.initial
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const agent = yield* Agent.make({ model: "any" })
 *     yield* Stream.runForEach(agent.stream("Hello?"), (event) =>
 *       Effect.sync(() => {
 *         const [next, events] = Karl.step(state, event)
 *         state = next
 *         for (const { type } of events) console.log(type)
 *       })
 *     )
 *   })
 * )
 *
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("Hi!")]))))
 * ```
 *
 * @since 0.1.0
 * @category converting
 */
export const step = (state: State, event: AgentEvent): readonly [State, ReadonlyArray<Event>] => {
  if (isInside(event, state.runId)) return [state, []]
  switch (event._tag) {
    case "RunStart":
      return [{ ...initial, runId: event.runId }, []]
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
    case "RunCancelled":
      return [state, [{ type: "error", error: new DOMException(event.reason ?? cancelled, "AbortError") }]]
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

/**
 * Converts a stream of this library's events to a stream of Karl events.
 *
 * **Example** (Converting the events of a run)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent } from "effect-agent"
 * import { Karl } from "effect-agent/compat"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const agent = yield* Agent.make({ model: "any" })
 *     const events = yield* agent.stream("Hello?").pipe(Karl.project, Stream.runCollect)
 *     for (const { type } of events) console.log(type)
 *     // => stream_start
 *     // => text_delta
 *     // => text_end
 *     // => message_end
 *     // => turn_end
 *   })
 * )
 *
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("Hi!")]))))
 * ```
 *
 * @since 0.1.0
 * @category converting
 */
export const project = <E, R>(self: Stream.Stream<AgentEvent, E, R>): Stream.Stream<Event, E, R> =>
  Stream.mapAccum(self, () => initial, step)

/**
 * Converts events that `for await` reads to Karl's events.
 *
 * **Details**
 *
 * The generator returns the last state, which has the last answer.
 *
 * **Example** (Converting the events of a promise agent)
 *
 * ```ts
 * import { Karl } from "effect-agent/compat"
 * import { createAgent } from "effect-agent/promise"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const agent = createAgent({ provider: ScriptedProvider.layer([ScriptedProvider.text("Hi!")]), model: "any" })
 * for await (const event of Karl.iterate(agent.stream("Hello?"))) {
 *   if (event.type === "text_delta") console.log(event.delta) // => Hi!
 * }
 * await agent.close()
 * ```
 *
 * @since 0.2.0
 * @category converting
 */
export const iterate = (events: AsyncIterable<AgentEvent>): AsyncGenerator<Event, State, undefined> =>
  Iteration.iterate(initial, step, events)

const cancelled = "This operation was aborted"

/** Runs that ended without an error or a cancellation. */
const finished: ReadonlySet<RunStatus> = new Set<RunStatus>([
  "completed",
  "stopped",
  "terminated",
  "incomplete"
])

const delta = (state: State, part: ModelEvent): readonly [State, ReadonlyArray<Event>] => {
  switch (part._tag) {
    case "TextDelta":
      return [state, [{ type: "text_delta", delta: part.delta }]]
    case "ThinkingDelta":
      return [state, [{ type: "thinking_delta", delta: part.delta }]]
    case "ToolCallStart": {
      const { id, name } = part
      return [{ ...state, calls: new Map(state.calls).set(part.contentIndex, { id, name }) }, []]
    }
    case "ToolCallEnd": {
      const begun = state.calls.get(part.contentIndex) ?? { id: "", name: "" }
      const toolCall = callOf({ ...begun, rawArguments: part.rawArguments })
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
  // A call that failed ends with the error of the run alone.
  if (answer.stopReason === "error" || answer.stopReason === "aborted")
    return [{ ...state, calls: new Map() }, []]
  const message = messageOf(answer)
  const text = Message.textOf(answer)
  const thinking = answer.content.map((block) => (block.type === "thinking" ? block.text : "")).join("")
  return [
    { ...state, calls: new Map(), lastAnswer: message },
    [
      ...(thinking === "" ? [] : [{ type: "thinking_end", thinking } as const]),
      ...(text === "" ? [] : [{ type: "text_end", text } as const]),
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
  return calls.length === 0
    ? { role: "assistant", content: Message.textOf(answer) }
    : { role: "assistant", content: "", tool_calls: calls.map(callOf) }
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

const errorOf = (error: OfTag<"RunError">["error"]): Error => {
  if (error._tag === "LimitExceeded" && error.limit === "executionTime")
    return new Error(`Task timed out after ${error.max}ms`, { cause: error })
  return error instanceof Error ? error : new Error(error.message)
}
