/**
 * Converts the events of a run to the events of oneringai's agent:
 * `agent.stream("…").pipe(OneRingEmitter.project)`.
 *
 * Pass each of them to an emitter: `emitter.emit(event.type, event)`. A tool call has a final event if it ran,
 * if its tool is unknown, or if its arguments are invalid. A call that was blocked, rejected, skipped, aborted
 * or truncated has none. Iterations count from 1.
 *
 * Source: Integrail/oneringai, src/capabilities/agents/types/EventTypes.ts.
 *
 * @since 0.1.0
 */
import * as Stream from "effect/Stream"
import { type AgentEvent, isInside, type OfTag } from "../AgentEvent.ts"
import type * as Message from "../Message.ts"
import type { ModelOptions, RunOptions } from "../RunOptions.ts"
import type { Response } from "./OneRing.ts"
import * as OneRing from "./OneRing.ts"

export type { Response, Status, TokenUsage } from "./OneRing.ts"

/**
 * The state of a tool call.
 *
 * @since 0.1.0
 * @category models
 */
export type ToolCallState = "pending" | "executing" | "completed" | "failed" | "timeout"

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
  /** Whether the turn waits for the result. `false` once the call runs in the background. */
  readonly blocking: boolean
  /** The state of the call at the time of the event. */
  readonly state: ToolCallState
}

/**
 * The result of a tool call that succeeded.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToolResult {
  /** The id of the call. */
  readonly tool_use_id: string
  /** The text of the result. */
  readonly content: string
  /** Milliseconds from the start of the call to its result. */
  readonly executionTime: number
  /** Always `completed`. */
  readonly state: ToolCallState
}

interface Iteration {
  readonly iteration: number
}

/** `duration` is in milliseconds. `response` is the last answer, if there is one. */
interface Answered {
  readonly response?: Response
  readonly duration: number
}

type Body =
  | { readonly type: "execution:start"; readonly config: RunOptions }
  | (Answered & { readonly type: "execution:complete" })
  | { readonly type: "execution:error"; readonly error: Error }
  | { readonly type: "execution:paused"; readonly reason?: string }
  | { readonly type: "execution:cancelled"; readonly reason?: string }
  | { readonly type: "execution:resumed" }
  | (Iteration & { readonly type: "iteration:start" })
  | (Iteration & Answered & { readonly type: "iteration:complete" })
  | (Iteration & {
      readonly type: "llm:request"
      readonly options: ModelOptions & { readonly model: string }
    })
  | (Iteration & Answered & { readonly type: "llm:response" })
  | (Iteration & { readonly type: "llm:error"; readonly error: Error })
  | (Iteration & { readonly type: "tool:detected"; readonly toolCalls: ReadonlyArray<ToolCall> })
  | (Iteration & { readonly type: "tool:start"; readonly toolCall: ToolCall })
  | (Iteration & { readonly type: "tool:complete"; readonly toolCall: ToolCall; readonly result: ToolResult })
  | (Iteration & { readonly type: "tool:error"; readonly toolCall: ToolCall; readonly error: Error })
  /** `timeout` is the time until the tool timed out, in milliseconds. */
  | (Iteration & { readonly type: "tool:timeout"; readonly toolCall: ToolCall; readonly timeout: number })
  | {
      readonly type: "hook:error"
      readonly hookName: string
      readonly error: Error
      readonly consecutiveErrors: number
    }

/**
 * An event of oneringai's agent.
 *
 * `executionId` is the id of the run.
 *
 * @since 0.1.0
 * @category models
 */
export type Event = Body & { readonly executionId: string; readonly timestamp: Date }

/**
 * The state between two events.
 *
 * @since 0.1.0
 * @category models
 */
export interface State {
  /** The id of the run, `undefined` before its start. */
  readonly runId: string | undefined
  /** The calls of the turn and those in the background, by id. */
  readonly calls: ReadonlyMap<string, Message.ToolCall>
  /** The ids of the calls in the background. */
  readonly background: ReadonlySet<string>
  /** The start of the turn, in milliseconds since the epoch. */
  readonly turnStartedAt: number
  /** The last complete answer, `undefined` before the first. */
  readonly lastAnswer: Message.Assistant | undefined
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
  background: new Set(),
  turnStartedAt: 0,
  lastAnswer: undefined
}

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
 * import { OneRingEmitter } from "effect-agent/compat"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * let state = OneRingEmitter.initial
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const agent = yield* Agent.make({ model: "any" })
 *     yield* Stream.runForEach(agent.stream("Hello?"), (event) =>
 *       Effect.sync(() => {
 *         const [next, events] = OneRingEmitter.step(state, event)
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
  const next = remember(state, event)
  const body = runBody(next, event) ?? turnBody(next, event)
  if (body === undefined) return [next, []]
  return [next, [{ ...body, executionId: event.runId, timestamp: new Date(event.timestamp) }]]
}

/**
 * Converts a stream of this library's events to a stream of oneringai events.
 *
 * **Example** (Converting the events of a run)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent } from "effect-agent"
 * import { OneRingEmitter } from "effect-agent/compat"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const agent = yield* Agent.make({ model: "any" })
 *     const events = yield* agent.stream("Hello?").pipe(OneRingEmitter.project, Stream.runCollect)
 *     for (const { type } of events) console.log(type)
 *     // => execution:start
 *     // => iteration:start
 *     // => llm:request
 *     // => llm:response
 *     // => iteration:complete
 *     // => execution:complete
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

const remember = (state: State, event: AgentEvent): State => {
  switch (event._tag) {
    case "RunStart":
      return { ...initial, runId: event.runId }
    case "TurnStart":
      return { ...state, calls: besideOf(state), turnStartedAt: event.timestamp }
    case "MessageEnd":
      return event.message.role === "assistant" ? { ...state, lastAnswer: event.message } : state
    case "ToolsDetected":
      return {
        ...state,
        calls: new Map([...besideOf(state), ...event.toolCalls.map((call) => [call.id, call] as const)])
      }
    case "ToolBackgrounded":
      return { ...state, background: new Set(state.background).add(event.toolCallId) }
    default:
      return state
  }
}

const besideOf = ({ background, calls }: State) => new Map([...calls].filter(([id]) => background.has(id)))

const runBody = (state: State, event: AgentEvent): Body | undefined => {
  switch (event._tag) {
    case "RunStart":
      return { type: "execution:start", config: { ...event.options, model: event.model } }
    case "RunPaused":
      return { type: "execution:paused", ...reasonOf(event) }
    case "RunResumed":
      return { type: "execution:resumed" }
    case "RunCancelled":
      return { type: "execution:cancelled", ...reasonOf(event) }
    case "RunError":
      return { type: "execution:error", error: errorOf(event.error) }
    case "RunEnd":
      return event.status === "failed" || event.status === "cancelled" || event.status === "suspended"
        ? undefined
        : { type: "execution:complete", ...responseOf(state), duration: event.durationMs }
    case "HookError":
      return {
        type: "hook:error",
        hookName: event.hook,
        error: new Error(event.error),
        consecutiveErrors: event.consecutiveErrors
      }
    default:
      return undefined
  }
}

const turnBody = (state: State, event: AgentEvent): Body | undefined => {
  const iteration = event.turn ?? 0
  switch (event._tag) {
    case "TurnStart":
      return { type: "iteration:start", iteration }
    case "TurnEnd": {
      const duration = event.timestamp - state.turnStartedAt
      return { type: "iteration:complete", iteration, ...responseOf(state), duration }
    }
    case "ModelCallStart":
      return { type: "llm:request", iteration, options: { ...event.options, model: event.model } }
    case "ModelCallEnd":
      return { type: "llm:response", iteration, ...responseOf(state), duration: event.durationMs }
    case "ModelCallError":
      return { type: "llm:error", iteration, error: errorOf(event.error) }
    case "ToolsDetected":
      return {
        type: "tool:detected",
        iteration,
        toolCalls: event.toolCalls.map((call) => callOf(call, "pending", true))
      }
    case "ToolInvoked":
      return { type: "tool:start", iteration, toolCall: callNamed(state, event, "executing") }
    case "ToolExecutionEnd":
      return toolEnded(state, iteration, event)
    default:
      return undefined
  }
}

const toolEnded = (state: State, iteration: number, event: OfTag<"ToolExecutionEnd">): Body | undefined => {
  const { durationMs, outcome, result, toolCallId } = event
  switch (outcome) {
    case "success": {
      const toolCall = callNamed(state, event, "completed")
      const content = OneRing.textOf(result)
      const toolResult = {
        tool_use_id: toolCallId,
        content,
        executionTime: durationMs,
        state: toolCall.state
      }
      return { type: "tool:complete", iteration, toolCall, result: toolResult }
    }
    case "error":
    case "unknownTool":
    case "invalidArguments": {
      const error = new Error(OneRing.textOf(result))
      return { type: "tool:error", iteration, toolCall: callNamed(state, event, "failed"), error }
    }
    case "timeout": {
      const toolCall = callNamed(state, event, "timeout")
      return { type: "tool:timeout", iteration, toolCall, timeout: durationMs }
    }
    default:
      return undefined
  }
}

const callNamed = (
  { background, calls }: State,
  { toolCallId: id, toolName: name }: OfTag<"ToolInvoked" | "ToolExecutionEnd">,
  state: ToolCallState
): ToolCall => callOf(calls.get(id) ?? { id, name, rawArguments: "" }, state, !background.has(id))

const callOf = (
  { id, name, rawArguments }: Pick<Message.ToolCall, "id" | "name" | "rawArguments">,
  state: ToolCallState,
  blocking: boolean
): ToolCall => ({ id, type: "function", function: { name, arguments: rawArguments }, blocking, state })

const reasonOf = ({ reason }: { readonly reason?: string }) => (reason === undefined ? {} : { reason })

const errorOf = (error: OfTag<"RunError" | "ModelCallError">["error"]): Error =>
  error instanceof Error ? error : new Error(error.message)

const responseOf = ({ lastAnswer }: State): { readonly response?: Response } =>
  lastAnswer === undefined ? {} : { response: OneRing.responseOf(lastAnswer) }
