/**
 * Converts the events of a run to the stream events of oneringai:
 * `agent.stream("…").pipe(OneRingStream.project())`.
 *
 * oneringai's documentation and its code spell three event names differently, so `Names` selects the spelling.
 * oneringai declares `response.in_progress` and `response.output_text.done` and never sends them; neither does
 * this module. `response.created` comes once for each model call, `response.complete` once for each run.
 *
 * Source: Integrail/oneringai, src/domain/entities/StreamEvent.ts, and its documentation of the loop.
 *
 * @since 0.1.0
 */
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { type AgentEvent, isInside, type OfTag } from "../AgentEvent.ts"
import type * as Message from "../Message.ts"
import * as Iteration from "./internal/Iteration.ts"
import * as OneRing from "./internal/OneRing.ts"

export type { Status, TokenUsage } from "./internal/OneRing.ts"

/**
 * The spelling of event names: `code` as oneringai sends them, `documentation` as it documents them.
 *
 * @since 0.1.0
 * @category options
 */
export type Names = "code" | "documentation"

/**
 * The id of a tool call and the name of its tool.
 *
 * @since 0.1.0
 * @category models
 */
export interface Call {
  /** The id of the call. */
  readonly tool_call_id: string
  /** The name of the tool. */
  readonly tool_name: string
}

/** A delta of the message `item_id`. `sequence_number` strictly increases within a run. */
interface Piece {
  readonly item_id: string
  readonly delta: string
  readonly sequence_number: number
}

/** The complete arguments as JSON text. */
interface Arguments {
  readonly arguments: string
}

/** `recoverable`: another attempt of the same run may succeed. */
interface Failure {
  readonly error: { readonly type: string; readonly message: string; readonly code?: string }
  readonly recoverable: boolean
}

type Body =
  /** `created_at` is in milliseconds since the epoch. */
  | { readonly type: "response.created"; readonly model: string; readonly created_at: number }
  | (Piece & {
      readonly type: "response.output_text.delta"
      readonly output_index: number
      readonly content_index: number
    })
  | (Piece & { readonly type: "response.reasoning.delta" })
  /** Once for each model call, with all of its thinking. */
  | { readonly type: "response.reasoning.done"; readonly item_id: string; readonly thinking: string }
  | (Call & { readonly type: "response.tool_call.start"; readonly item_id: string })
  | (Call & Piece & { readonly type: "response.tool_call_arguments.delta" })
  | (Call & Piece & { readonly type: "response.tool_call.arguments.delta" })
  | (Call & Arguments & { readonly type: "response.tool_call_arguments.done" })
  | (Call & Arguments & { readonly type: "response.tool_call.arguments.done" })
  | (Call & { readonly type: "response.tool_execution.start"; readonly arguments: Schema.Json })
  /** `result` is the text that the model reads, `null` for an error. */
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
      readonly status: OneRing.Status
      readonly usage: OneRing.TokenUsage
      readonly iterations: number
      readonly duration_ms: number
    }
  | (Failure & { readonly type: "response.error" })
  | (Failure & { readonly type: "error" })

/**
 * A stream event of oneringai.
 *
 * `response_id` is the id of the run.
 *
 * @since 0.1.0
 * @category models
 */
export type Event = Body & { readonly response_id: string }

/**
 * The state between two events.
 *
 * @since 0.1.0
 * @category models
 */
export interface State {
  /** The id of the run, `undefined` before its start. */
  readonly runId: string | undefined
  /** The spelling of event names. */
  readonly names: Names
  /** The calls of the current answer, by `contentIndex`. */
  readonly calls: ReadonlyMap<number, Call>
}

/**
 * Returns the state before the first event, for a spelling of event names (default: `"code"`).
 *
 * **Example** (Starting a conversion)
 *
 * ```ts
 * import { OneRingStream } from "effect-agent/compat"
 *
 * console.log(OneRingStream.initial("documentation").names) // => documentation
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const initial = (names: Names = "code"): State => ({ runId: undefined, names, calls: new Map() })

/**
 * Returns the next state, and the oneringai events for one event of this library.
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
 * import { OneRingStream } from "effect-agent/compat"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * let state = OneRingStream.initial()
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const agent = yield* Agent.make({ model: "any" })
 *     yield* Stream.runForEach(agent.stream("Hello?"), (event) =>
 *       Effect.sync(() => {
 *         const [next, events] = OneRingStream.step(state, event)
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
  const send = (...bodies: ReadonlyArray<Body>) =>
    bodies.map((body) => ({ ...body, response_id: event.runId }))
  if (event._tag === "MessageDelta") {
    const [next, bodies] = delta(state, event)
    return [next, send(...bodies)]
  }
  const runId = event._tag === "RunStart" ? event.runId : state.runId
  const isFresh = event._tag === "ModelCallStart" || event._tag === "MessageRetracted"
  return [
    isFresh ? { ...initial(state.names), runId } : { ...state, runId },
    send(...bodiesOf(state.names, event))
  ]
}

/**
 * Converts a stream of this library's events to a stream of oneringai events.
 *
 * **Example** (Converting the events of a run)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent } from "effect-agent"
 * import { OneRingStream } from "effect-agent/compat"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const agent = yield* Agent.make({ model: "any" })
 *     const events = yield* agent.stream("Hello?").pipe(OneRingStream.project(), Stream.runCollect)
 *     for (const { type } of events) console.log(type)
 *     // => response.created
 *     // => response.output_text.delta
 *     // => response.iteration.complete
 *     // => response.complete
 *   })
 * )
 *
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("Hi!")]))))
 * ```
 *
 * @since 0.1.0
 * @category converting
 */
export const project =
  (names: Names = "code") =>
  <E, R>(self: Stream.Stream<AgentEvent, E, R>): Stream.Stream<Event, E, R> =>
    Stream.mapAccum(self, () => initial(names), step)

/**
 * Converts events that `for await` reads to oneringai's stream events.
 *
 * **Details**
 *
 * `names` are the event names to use. Default `"code"`.
 *
 * **Example** (Converting the events of a promise agent)
 *
 * ```ts
 * import { OneRingStream } from "effect-agent/compat"
 * import { createAgent } from "effect-agent/promise"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const agent = createAgent({ provider: ScriptedProvider.layer([ScriptedProvider.text("Hi!")]), model: "any" })
 * for await (const event of OneRingStream.iterate(agent.stream("Hello?"))) {
 *   if (event.type === "response.output_text.delta") console.log(event.delta) // => Hi!
 * }
 * await agent.close()
 * ```
 *
 * @since 0.2.0
 * @category converting
 */
export const iterate = (
  events: AsyncIterable<AgentEvent>,
  names: Names = "code"
): AsyncGenerator<Event, State, undefined> => Iteration.iterate(initial(names), step, events)

const delta = (state: State, event: OfTag<"MessageDelta">): readonly [State, ReadonlyArray<Body>] => {
  const { delta: part, messageId: item_id, seq: sequence_number } = event
  switch (part._tag) {
    case "TextDelta": {
      const at = { output_index: 0, content_index: part.contentIndex }
      return [
        state,
        [{ type: "response.output_text.delta", item_id, ...at, delta: part.delta, sequence_number }]
      ]
    }
    case "ThinkingDelta":
      return [state, [{ type: "response.reasoning.delta", item_id, delta: part.delta, sequence_number }]]
    case "ToolCallStart": {
      const call = { tool_call_id: part.id, tool_name: part.name }
      const calls = new Map(state.calls).set(part.contentIndex, call)
      return [{ ...state, calls }, [{ type: "response.tool_call.start", item_id, ...call }]]
    }
    case "ToolCallDelta": {
      const type = argumentsDelta[state.names]
      const call = state.calls.get(part.contentIndex) ?? unknownCall
      return [state, [{ type, item_id, ...call, delta: part.delta, sequence_number }]]
    }
    case "ToolCallEnd": {
      const type = argumentsDone[state.names]
      const call = state.calls.get(part.contentIndex) ?? unknownCall
      return [state, [{ type, ...call, arguments: part.rawArguments }]]
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
    case "RunRetry":
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

const retried = ({ attempt, delayMs, error }: OfTag<"ModelCallRetry" | "RunRetry">): Body => ({
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
