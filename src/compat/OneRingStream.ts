/**
 * A run in the stream events of oneringai: `agent.stream("…").pipe(OneRingStream.project())`.
 *
 * Three of their names are written one way in the documentation and another way in the code, so the names are a choice.
 * `response.in_progress` and `response.output_text.done` are declared there and never sent, and are not sent here.
 * `response.created` comes once per model call, `response.complete` once per run.
 *
 * Source: Integrail/oneringai, src/domain/entities/StreamEvent.ts, and its documentation of the loop.
 */
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { AgentEvent, OfTag } from "../AgentEvent.ts"
import type * as Message from "../Message.ts"
import type { Status, TokenUsage } from "./OneRing.ts"
import * as OneRing from "./OneRing.ts"

export type { Status, TokenUsage } from "./OneRing.ts"

/** `code`: the strings oneringai sends. `documentation`: the strings its documentation gives. */
export type Names = "code" | "documentation"

/** The id and the tool's name of a call. */
export interface Call {
  readonly tool_call_id: string
  readonly tool_name: string
}

/** A piece of the message `item_id`. `sequence_number` is strictly increasing in a run. */
interface Piece {
  readonly item_id: string
  readonly delta: string
  readonly sequence_number: number
}

/** JSON text, whole. */
interface Arguments {
  readonly arguments: string
}

/** `recoverable`: the same run may succeed another time. */
interface Failure {
  readonly error: { readonly type: string; readonly message: string; readonly code?: string }
  readonly recoverable: boolean
}

type Body =
  /** `created_at`: milliseconds since the epoch. */
  | { readonly type: "response.created"; readonly model: string; readonly created_at: number }
  | (Piece & {
      readonly type: "response.output_text.delta"
      readonly output_index: number
      readonly content_index: number
    })
  | (Piece & { readonly type: "response.reasoning.delta" })
  /** Once per call, with all of its thinking. */
  | { readonly type: "response.reasoning.done"; readonly item_id: string; readonly thinking: string }
  | (Call & { readonly type: "response.tool_call.start"; readonly item_id: string })
  | (Call & Piece & { readonly type: "response.tool_call_arguments.delta" })
  | (Call & Piece & { readonly type: "response.tool_call.arguments.delta" })
  | (Call & Arguments & { readonly type: "response.tool_call_arguments.done" })
  | (Call & Arguments & { readonly type: "response.tool_call.arguments.done" })
  | (Call & { readonly type: "response.tool_execution.start"; readonly arguments: Schema.Json })
  /** `result` is what the model reads, `null` when it is an error. */
  | (Call & {
      readonly type: "response.tool_execution.done"
      readonly result: string | null
      readonly execution_time_ms: number
      readonly error?: string
    })
  | {
      readonly type: "response.iteration.complete"
      readonly iteration: number
      readonly tool_calls_count: number
      readonly has_more_iterations: boolean
    }
  | {
      readonly type: "response.retry"
      readonly attempt: number
      readonly delay_ms: number
      readonly reason: string
    }
  | {
      readonly type: "response.complete"
      readonly status: Status
      readonly usage: TokenUsage
      readonly iterations: number
      readonly duration_ms: number
    }
  | (Failure & { readonly type: "response.error" })
  | (Failure & { readonly type: "error" })

/** `response_id` is the run's. */
export type Event = Body & { readonly response_id: string }

/** What has to be remembered between two events. */
export interface State {
  readonly names: Names
  /** The calls of the answer being said, by `contentIndex`. */
  readonly calls: ReadonlyMap<number, Call>
}

/** Before any event. */
export const initial = (names: Names = "code"): State => ({ names, calls: new Map() })

/** What oneringai would send after one more event. Pure. */
export const step = (state: State, event: AgentEvent): readonly [State, ReadonlyArray<Event>] => {
  const send = (...bodies: ReadonlyArray<Body>) =>
    bodies.map((body) => ({ ...body, response_id: event.runId }))
  if (event._tag === "MessageDelta") {
    const [next, bodies] = delta(state, event)
    return [next, send(...bodies)]
  }
  return [
    event._tag === "ModelCallStart" || event._tag === "MessageRetracted" ? initial(state.names) : state,
    send(...bodiesOf(state.names, event))
  ]
}

/** The same for a whole stream. */
export const project =
  (names: Names = "code") =>
  <E, R>(self: Stream.Stream<AgentEvent, E, R>): Stream.Stream<Event, E, R> =>
    Stream.mapAccum(self, () => initial(names), step)

const delta = (state: State, event: OfTag<"MessageDelta">): readonly [State, ReadonlyArray<Body>] => {
  const { delta: said, messageId: item_id, seq: sequence_number } = event
  switch (said._tag) {
    case "TextDelta": {
      const at = { output_index: 0, content_index: said.contentIndex }
      return [
        state,
        [{ type: "response.output_text.delta", item_id, ...at, delta: said.delta, sequence_number }]
      ]
    }
    case "ThinkingDelta":
      return [state, [{ type: "response.reasoning.delta", item_id, delta: said.delta, sequence_number }]]
    case "ToolCallStart": {
      const call = { tool_call_id: said.id, tool_name: said.name }
      const calls = new Map(state.calls).set(said.contentIndex, call)
      return [{ ...state, calls }, [{ type: "response.tool_call.start", item_id, ...call }]]
    }
    case "ToolCallDelta": {
      const type = argumentsDelta[state.names]
      const call = state.calls.get(said.contentIndex) ?? unknownCall
      return [state, [{ type, item_id, ...call, delta: said.delta, sequence_number }]]
    }
    case "ToolCallEnd": {
      const type = argumentsDone[state.names]
      const call = state.calls.get(said.contentIndex) ?? unknownCall
      return [state, [{ type, ...call, arguments: said.rawArguments }]]
    }
    default:
      return [state, []]
  }
}

const argumentsDelta = {
  code: "response.tool_call_arguments.delta",
  documentation: "response.tool_call.arguments.delta"
} as const

const argumentsDone = {
  code: "response.tool_call_arguments.done",
  documentation: "response.tool_call.arguments.done"
} as const

const unknownCall: Call = { tool_call_id: "", tool_name: "" }

const bodiesOf = (names: Names, event: AgentEvent): ReadonlyArray<Body> => {
  switch (event._tag) {
    case "ModelCallStart":
      return [{ type: "response.created", model: event.model, created_at: event.timestamp }]
    case "MessageEnd":
      return thought(event.message)
    case "ToolExecutionStart":
      return [{ type: "response.tool_execution.start", ...callOf(event), arguments: event.params }]
    case "ToolExecutionEnd":
      return [executed(event)]
    case "TurnEnd":
      return [
        {
          type: "response.iteration.complete",
          iteration: event.turn ?? 0,
          tool_calls_count: event.toolCallCount,
          has_more_iterations: event.toolsContinue
        }
      ]
    case "ModelCallRetry":
      return [retried(event)]
    case "RunError":
      return [failed(names, event)]
    case "RunEnd":
      return [completed(event)]
    default:
      return []
  }
}

const thought = (message: Message.Message): ReadonlyArray<Body> => {
  if (message.role !== "assistant") return []
  const thinking = message.content.map((block) => (block.type === "thinking" ? block.text : "")).join("")
  return thinking === "" ? [] : [{ type: "response.reasoning.done", item_id: message.id, thinking }]
}

const callOf = ({ toolCallId, toolName }: OfTag<"ToolExecutionStart" | "ToolExecutionEnd">): Call => ({
  tool_call_id: toolCallId,
  tool_name: toolName
})

const executed = (event: OfTag<"ToolExecutionEnd">): Body => {
  const text = OneRing.textOf(event.result)
  return {
    type: "response.tool_execution.done",
    ...callOf(event),
    result: event.isError ? null : text,
    execution_time_ms: event.durationMs,
    ...(event.isError ? { error: text } : {})
  }
}

const retried = ({ attempt, delayMs, error }: OfTag<"ModelCallRetry">): Body => ({
  type: "response.retry",
  attempt,
  delay_ms: delayMs,
  reason: error.message
})

const failed = (names: Names, { error, retryable }: OfTag<"RunError">): Body => ({
  type: names === "code" ? "response.error" : "error",
  error: {
    type: error._tag,
    message: error.message,
    ...(error._tag === "ProviderError" ? { code: error.reason._tag } : {})
  },
  recoverable: retryable
})

const completed = ({ durationMs, status, turns, usage }: OfTag<"RunEnd">): Body => ({
  type: "response.complete",
  status: OneRing.statusOf(status),
  usage: OneRing.usageOf(usage),
  iterations: turns,
  duration_ms: durationMs
})
