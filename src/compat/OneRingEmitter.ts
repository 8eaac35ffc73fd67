/**
 * A run in the events oneringai's agent emits: `agent.stream("…").pipe(OneRingEmitter.project)`, each to be given to an
 * emitter as `emitter.emit(event.type, event)`.
 *
 * What came of running a tool is an event there, and so is a call that nobody could run: of an unknown tool, or with
 * arguments that do not fit. One that was blocked, rejected, skipped, aborted or truncated ends in silence. Iterations
 * count from 1.
 *
 * Source: Integrail/oneringai, src/capabilities/agents/types/EventTypes.ts.
 */
import * as Stream from "effect/Stream"
import type { AgentEvent, OfTag } from "../AgentEvent.ts"
import type * as Message from "../Message.ts"
import type { ModelOptions } from "../RunOptions.ts"
import type { Response } from "./OneRing.ts"
import * as OneRing from "./OneRing.ts"

export type { Response, Status, TokenUsage } from "./OneRing.ts"

export type ToolCallState = "pending" | "executing" | "completed" | "failed" | "timeout"

export interface ToolCall {
  readonly id: string
  readonly type: "function"
  /** `arguments` is JSON text, as the model wrote it. */
  readonly function: { readonly name: string; readonly arguments: string }
  readonly blocking: true
  readonly state: ToolCallState
}

/** `executionTime` is milliseconds. */
export interface ToolResult {
  readonly tool_use_id: string
  readonly content: string
  readonly executionTime: number
  readonly state: ToolCallState
}

interface Iteration {
  readonly iteration: number
}

/** `duration` is milliseconds; `response` is the last answer, if there was one. */
interface Answered {
  readonly response?: Response
  readonly duration: number
}

type Body =
  | { readonly type: "execution:start"; readonly config: { readonly model: string } }
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
  /** `timeout`: milliseconds until the tool was given up. */
  | (Iteration & { readonly type: "tool:timeout"; readonly toolCall: ToolCall; readonly timeout: number })
  | {
      readonly type: "hook:error"
      readonly hookName: string
      readonly error: Error
      readonly consecutiveErrors: number
    }

/** `executionId` is the run's. */
export type Event = Body & { readonly executionId: string; readonly timestamp: Date }

/** What has to be remembered between two events. */
export interface State {
  /** The calls of the turn. */
  readonly calls: ReadonlyMap<string, Message.ToolCall>
  readonly turnStartedAt: number
  readonly lastAnswer: Message.Assistant | undefined
}

/** Before any event. */
export const initial: State = { calls: new Map(), turnStartedAt: 0, lastAnswer: undefined }

/** What oneringai would emit after one more event. Pure. */
export const step = (state: State, event: AgentEvent): readonly [State, ReadonlyArray<Event>] => {
  const next = remember(state, event)
  const body = runBody(next, event) ?? turnBody(next, event)
  if (body === undefined) return [next, []]
  return [next, [{ ...body, executionId: event.runId, timestamp: new Date(event.timestamp) }]]
}

/** The same for a whole stream. */
export const project = <E, R>(self: Stream.Stream<AgentEvent, E, R>): Stream.Stream<Event, E, R> =>
  Stream.mapAccum(self, () => initial, step)

const remember = (state: State, event: AgentEvent): State => {
  switch (event._tag) {
    case "RunStart":
      return initial
    case "TurnStart":
      return { ...state, calls: new Map(), turnStartedAt: event.timestamp }
    case "MessageEnd":
      return event.message.role === "assistant" ? { ...state, lastAnswer: event.message } : state
    case "ToolsDetected":
      return { ...state, calls: new Map(event.toolCalls.map((call) => [call.id, call])) }
    default:
      return state
  }
}

const runBody = (state: State, event: AgentEvent): Body | undefined => {
  switch (event._tag) {
    case "RunStart":
      return { type: "execution:start", config: { model: event.model } }
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
        toolCalls: event.toolCalls.map((call) => callOf(call, "pending"))
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
      const told = { tool_use_id: toolCallId, content, executionTime: durationMs, state: toolCall.state }
      return { type: "tool:complete", iteration, toolCall, result: told }
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
  { calls }: State,
  { toolCallId: id, toolName: name }: OfTag<"ToolInvoked" | "ToolExecutionEnd">,
  state: ToolCallState
): ToolCall => callOf(calls.get(id) ?? { id, name, rawArguments: "" }, state)

const callOf = (
  { id, name, rawArguments }: Pick<Message.ToolCall, "id" | "name" | "rawArguments">,
  state: ToolCallState
): ToolCall => ({ id, type: "function", function: { name, arguments: rawArguments }, blocking: true, state })

const reasonOf = ({ reason }: { readonly reason?: string }) => (reason === undefined ? {} : { reason })

const errorOf = (error: OfTag<"RunError" | "ModelCallError">["error"]): Error =>
  error instanceof Error ? error : new Error(error.message)

const responseOf = ({ lastAnswer }: State): { readonly response?: Response } =>
  lastAnswer === undefined ? {} : { response: OneRing.responseOf(lastAnswer) }
