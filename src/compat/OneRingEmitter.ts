/**
 * Converts the events of a run to the events of oneringai's agent:
 * `agent.stream("…").pipe(OneRingEmitter.project)`.
 *
 * Pass each of them to an emitter: `emitter.emit(event.type, event)`. A tool call has events if it ran,
 * if its tool is unknown, or if its arguments are invalid. A call that was blocked, rejected, skipped or
 * truncated has none. A turn that failed or was cancelled is not complete. Iterations count from 1.
 *
 * Source: Integrail/oneringai, src/capabilities/agents/types/EventTypes.ts.
 *
 * @since 0.1.0
 */
import * as Stream from "effect/Stream"
import { type AgentEvent, isInside, type OfTag } from "../AgentEvent.ts"
import type * as Message from "../Message.ts"
import * as OneRing from "./internal/OneRing.ts"

export type { OutputContent, Response, Status, TokenUsage } from "./internal/OneRing.ts"
export type {
  Config,
  Context,
  FunctionTool,
  GenerateOptions,
  InputContent,
  InputItem
} from "./internal/OneRing.ts"

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
  /** The start of the call. Absent before it. */
  readonly startTime?: Date
  /** The end of the call. Absent before it. */
  readonly endTime?: Date
  /** The failure in words. Absent for a call that did not fail. */
  readonly error?: string
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
  readonly response?: OneRing.Response
  readonly duration: number
}

type Body =
  | { readonly type: "execution:start"; readonly config: OneRing.Config }
  | (Answered & { readonly type: "execution:complete" })
  | { readonly type: "execution:error"; readonly error: Error }
  | { readonly type: "execution:paused"; readonly reason?: string }
  | { readonly type: "execution:cancelled"; readonly reason?: string }
  | { readonly type: "execution:resumed" }
  | (Iteration & { readonly type: "iteration:start" })
  | (Iteration & Answered & { readonly type: "iteration:complete" })
  | (Iteration & { readonly type: "llm:request"; readonly options: OneRing.GenerateOptions })
  | (Iteration & Answered & { readonly type: "llm:response" })
  | (Iteration & { readonly type: "llm:error"; readonly error: Error })
  | (Iteration & { readonly type: "tool:detected"; readonly toolCalls: ReadonlyArray<ToolCall> })
  | (Iteration & { readonly type: "tool:start"; readonly toolCall: ToolCall })
  | (Iteration & { readonly type: "tool:complete"; readonly toolCall: ToolCall; readonly result: ToolResult })
  | (Iteration & { readonly type: "tool:error"; readonly toolCall: ToolCall; readonly error: Error })
  /** `timeout` is the time limit in milliseconds. */
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
  /** The parts of the agent that no event has. */
  readonly context: OneRing.Context
  /** The messages before the run, and those of the run so far. */
  readonly messages: ReadonlyArray<Message.Message>
  /** The calls of the turn and those in the background, by id. */
  readonly calls: ReadonlyMap<string, Message.ToolCall>
  /** The starts of the calls that began, by id, in milliseconds since the epoch. */
  readonly begun: ReadonlyMap<string, number>
  /** The ids of the calls in the background. */
  readonly background: ReadonlySet<string>
  /** The start of the turn, in milliseconds since the epoch. */
  readonly turnStartedAt: number
  /** The last complete answer, `undefined` before the first. */
  readonly lastAnswer: Message.Assistant | undefined
  /** Whether the turn failed, or the run is cancelled. */
  readonly isBroken: boolean
}

/**
 * Returns the state before the first event of an agent, for events with its instructions, tools and messages.
 *
 * **Example** (Reading the tools of a request)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent, Tool } from "effect-agent"
 * import { OneRingEmitter } from "effect-agent/compat"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const ping = Tool.make({ name: "ping", description: "Answers.", execute: () => Effect.succeed("pong") })
 * let state = OneRingEmitter.from({ system: "Be brief.", tools: [ping] })
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", system: "Be brief.", tools: [ping] })
 *   yield* Stream.runForEach(agent.stream("Hello?"), (event) =>
 *     Effect.sync(() => {
 *       const [next, events] = OneRingEmitter.step(state, event)
 *       state = next
 *       for (const each of events) if (each.type === "llm:request") console.log(each.options.tools?.length)
 *     })
 *   )
 * }).pipe(Effect.scoped)
 *
 * const provider = ScriptedProvider.layer([ScriptedProvider.text("Hi!")])
 * await Effect.runPromise(program.pipe(Effect.provide(provider)))
 * // => 1
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const from = (context: OneRing.Context): State => ({
  runId: undefined,
  context,
  messages: context.messages ?? [],
  calls: new Map(),
  begun: new Map(),
  background: new Set(),
  turnStartedAt: 0,
  lastAnswer: undefined,
  isBroken: false
})

/**
 * The state before the first event of an agent of which only the events are known.
 *
 * @since 0.1.0
 * @category constants
 */
export const initial: State = from({})

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
  const bodies = body === undefined ? toolBodies(next, event) : [body]
  const stamp = { executionId: event.runId, timestamp: new Date(event.timestamp) }
  return [next, bodies.map((each) => ({ ...each, ...stamp }))]
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
      return { ...from(state.context), messages: state.messages, runId: event.runId }
    case "TurnStart":
      return { ...state, ...besideOf(state), turnStartedAt: event.timestamp, isBroken: false }
    case "MessageEnd":
      return answered({ ...state, messages: [...state.messages, event.message] }, event.message)
    case "ToolsDetected":
      return {
        ...state,
        calls: new Map([...state.calls, ...event.toolCalls.map((call) => [call.id, call] as const)])
      }
    case "ToolInvoked":
      return { ...state, begun: new Map(state.begun).set(event.toolCallId, event.timestamp) }
    case "ToolBackgrounded":
      return { ...state, background: new Set(state.background).add(event.toolCallId) }
    case "RunCancelled":
      return { ...state, isBroken: true }
    default:
      return state
  }
}

const answered = (state: State, message: Message.Message): State => {
  if (message.role !== "assistant") return state
  return OneRing.hasFailed(message) ? { ...state, isBroken: true } : { ...state, lastAnswer: message }
}

/** Forgets the calls of the turn before, but for those in the background. */
const besideOf = ({ background, begun, calls }: State) => ({
  calls: new Map([...calls].filter(([id]) => background.has(id))),
  begun: new Map([...begun].filter(([id]) => background.has(id)))
})

const runBody = (state: State, event: AgentEvent): Body | undefined => {
  switch (event._tag) {
    case "RunStart": {
      const { model, options = {}, prompts } = event
      return { type: "execution:start", config: OneRing.configOf(state.context, prompts, model, options) }
    }
    case "RunPaused":
      return { type: "execution:paused", reason: event.reason ?? "Manual pause" }
    case "RunResumed":
      return { type: "execution:resumed" }
    case "RunCancelled":
      return { type: "execution:cancelled", reason: event.reason ?? "Manual cancellation" }
    case "RunError":
      return { type: "execution:error", error: errorOf(event.error) }
    case "RunEnd":
      return event.status === "failed" || event.status === "cancelled" || event.status === "suspended"
        ? undefined
        : { type: "execution:complete", ...responseOf(state), duration: event.durationMs }
    case "HookError":
      return {
        type: "hook:error",
        hookName: event.hookName ?? hookNames[event.hook] ?? event.hook,
        error: new Error(event.error),
        consecutiveErrors: event.consecutiveErrors
      }
    default:
      return undefined
  }
}

/** The names of the points in oneringai. */
const hookNames: Readonly<Record<string, string>> = {
  beforeExecution: "before:execution",
  afterExecution: "after:execution",
  beforeModel: "before:llm",
  afterModel: "after:llm",
  beforeTool: "before:tool",
  approveTool: "approve:tool",
  afterTool: "after:tool",
  pauseCheck: "pause:check"
}

const turnBody = (state: State, event: AgentEvent): Body | undefined => {
  const iteration = event.turn ?? 0
  switch (event._tag) {
    case "TurnStart":
      return { type: "iteration:start", iteration }
    case "TurnEnd": {
      const duration = event.timestamp - state.turnStartedAt
      return state.isBroken
        ? undefined
        : { type: "iteration:complete", iteration, ...responseOf(state), duration }
    }
    case "ModelCallStart": {
      const options = OneRing.optionsOf(state.context, state.messages, event.model, event.options)
      return { type: "llm:request", iteration, options }
    }
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
    default:
      return undefined
  }
}

const toolBodies = (state: State, event: AgentEvent): ReadonlyArray<Body> => {
  if (event._tag !== "ToolExecutionEnd") return []
  const { durationMs, outcome, result, timeoutMs = durationMs, toolCallId } = event
  const iteration = event.turn ?? 0
  const text = OneRing.textOf(result)
  const ended = { endTime: new Date(event.timestamp) }
  const broken = { ...ended, error: text }
  switch (outcome) {
    case "success": {
      const toolCall = { ...callNamed(state, event, "completed"), ...ended }
      const given = { tool_use_id: toolCallId, content: text, executionTime: durationMs }
      return [{ type: "tool:complete", iteration, toolCall, result: { ...given, state: toolCall.state } }]
    }
    case "error":
    case "unknownTool":
    case "invalidArguments": {
      const toolCall = { ...callNamed(state, event, "failed"), ...broken }
      const failed: Body = { type: "tool:error", iteration, toolCall, error: new Error(text) }
      // oneringai begins a call before it looks for the tool.
      const begun = callNamed(state, event, "executing")
      return outcome === "error" ? [failed] : [{ type: "tool:start", iteration, toolCall: begun }, failed]
    }
    case "timeout": {
      const toolCall = { ...callNamed(state, event, "timeout"), ...broken }
      return [{ type: "tool:timeout", iteration, toolCall, timeout: timeoutMs }]
    }
    default:
      return []
  }
}

type CallEvent = OfTag<"ToolInvoked" | "ToolExecutionEnd">

const callNamed = (state: State, event: CallEvent, of: ToolCallState): ToolCall => {
  const { timestamp, toolCallId: id, toolName: name } = event
  const call = state.calls.get(id) ?? { id, name, rawArguments: "" }
  const startTime = new Date(state.begun.get(id) ?? timestamp)
  return { ...callOf(call, of, !state.background.has(id)), startTime }
}

const callOf = (
  { id, name, rawArguments }: Pick<Message.ToolCall, "id" | "name" | "rawArguments">,
  state: ToolCallState,
  blocking: boolean
): ToolCall => ({ id, type: "function", function: { name, arguments: rawArguments }, blocking, state })

const errorOf = (error: OfTag<"RunError" | "ModelCallError">["error"]): Error =>
  error instanceof Error ? error : new Error(error.message)

const responseOf = ({ lastAnswer }: State): { readonly response?: OneRing.Response } =>
  lastAnswer === undefined ? {} : { response: OneRing.responseOf(lastAnswer) }
