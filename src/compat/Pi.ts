/**
 * Converts the events of a run to the ten events of pi-agent-core: `agent.stream("…").pipe(Pi.project)`.
 *
 * The events have pi's order. A `message_start` of pi contains the complete message, so those of prompts and
 * tool results come together with their `message_end`. Each update of an answer contains the answer so far. Its
 * blocks share their text with the previous update, so the cost of an update depends on the number of blocks,
 * not on their length.
 *
 * Source: @earendil-works/pi-agent-core 1.5, its event types and loop.
 *
 * @since 0.1.0
 */
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { type AgentEvent, foldValue, isInside, type OfTag } from "../AgentEvent.ts"
import type * as Message from "../Message.ts"
import * as ModelEvent from "../ModelEvent.ts"
import * as Iteration from "./internal/Iteration.ts"
import * as Pi from "./internal/PiMessage.ts"
import type {
  AssistantMessage,
  PiMessage,
  ToolResult,
  ToolResultMessage,
  AssistantMessageEvent
} from "./internal/PiMessage.ts"

export type { AssistantMessageEvent } from "./internal/PiMessage.ts"

export type {
  AssistantMessage,
  CustomMessage,
  ImageContent,
  PiMessage as Message,
  PiUsage as Usage,
  TextContent,
  ThinkingContent,
  ToolCall,
  ToolResult,
  ToolResultMessage,
  UserMessage
} from "./internal/PiMessage.ts"

interface Execution {
  readonly toolCallId: string
  readonly toolName: string
}

/**
 * An event of pi's agent loop.
 *
 * @since 0.1.0
 * @category models
 */
export type Event =
  | { readonly type: "agent_start" }
  | { readonly type: "agent_end"; readonly messages: ReadonlyArray<PiMessage> }
  | { readonly type: "turn_start" }
  | {
      readonly type: "turn_end"
      readonly message: AssistantMessage
      readonly toolResults: ReadonlyArray<ToolResultMessage>
    }
  | { readonly type: "message_start"; readonly message: PiMessage }
  | {
      readonly type: "message_update"
      readonly message: AssistantMessage
      readonly assistantMessageEvent: AssistantMessageEvent
    }
  | { readonly type: "message_end"; readonly message: PiMessage }
  /** `args` as the model sent them. */
  | (Execution & { readonly type: "tool_execution_start"; readonly args: Schema.Json })
  | (Execution & {
      readonly type: "tool_execution_update"
      readonly args: Schema.Json
      readonly partialResult: ToolResult
    })
  | (Execution & {
      readonly type: "tool_execution_end"
      readonly result: ToolResult
      readonly isError: boolean
    })

/**
 * The state between two events.
 *
 * @since 0.1.0
 * @category models
 */
export interface State {
  /** The id of the run, `undefined` before its start. */
  readonly runId: string | undefined
  /** The messages of the run. */
  readonly messages: ReadonlyArray<PiMessage>
  /** The tool results of the turn, by message id. */
  readonly toolResults: ReadonlyMap<string, ToolResultMessage>
  /** The last answer, or the current one. */
  readonly lastAnswer: AssistantMessage
  /** The current answer, `undefined` between answers. */
  readonly open: ModelEvent.Reply | undefined
  /** The params of calls that have started, by call id. */
  readonly params: ReadonlyMap<string, Schema.Json>
}

const emptyAnswer: AssistantMessage = Pi.fromAssistant({
  role: "assistant",
  id: "",
  content: [],
  stopReason: "stop",
  provider: "",
  model: "",
  protocol: "",
  timestamp: 0
})

/**
 * The state before the first event.
 *
 * @since 0.1.0
 * @category constants
 */
export const initial: State = {
  runId: undefined,
  messages: [],
  toolResults: new Map(),
  lastAnswer: emptyAnswer,
  open: undefined,
  params: new Map()
}

type Step = readonly [State, ReadonlyArray<Event>]

/**
 * Returns the next state, and the pi events for one event of this library.
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
 * import { Pi } from "effect-agent/compat"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * let state = Pi.initial
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const agent = yield* Agent.make({ model: "any" })
 *     yield* Stream.runForEach(agent.stream("Hello?"), (event) =>
 *       Effect.sync(() => {
 *         const [next, events] = Pi.step(state, event)
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
export const step = (state: State, event: AgentEvent): Step => {
  if (isInside(event, state.runId)) return [state, []]
  switch (event._tag) {
    case "RunStart":
      return [{ ...initial, runId: event.runId }, [{ type: "agent_start" }]]
    case "RunEnd":
      return [state, [{ type: "agent_end", messages: state.messages }]]
    case "TurnStart":
      return [{ ...state, toolResults: new Map() }, [{ type: "turn_start" }]]
    case "TurnEnd": {
      const toolResults = event.toolResultIds.flatMap((id) => state.toolResults.get(id) ?? [])
      return [state, [{ type: "turn_end", message: state.lastAnswer, toolResults }]]
    }
    case "ModelCallStart":
      return [{ ...state, lastAnswer: { ...emptyAnswer, model: event.model } }, []]
    case "MessageStart":
      return event.role === "assistant" ? begun(state, event) : [state, []]
    case "MessageDelta":
      return updated(state, event.delta)
    case "PartialValue":
      return valued(state, event)
    case "MessageRetracted":
      // pi cannot retract an answer. The next answer continues after this start, and its updates replace the
      // content.
      return [{ ...state, open: ModelEvent.emptyReply }, []]
    case "MessageEnd":
      return ended(state, event.message)
    case "ToolExecutionStart":
    case "ToolExecutionProgress":
    case "ToolExecutionEnd":
      return execution(state, event)
    default:
      return [state, []]
  }
}

/**
 * Converts a stream of this library's events to a stream of pi events.
 *
 * **Example** (Converting the events of a run)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent } from "effect-agent"
 * import { Pi } from "effect-agent/compat"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const agent = yield* Agent.make({ model: "any" })
 *     const events = yield* agent.stream("Hello?").pipe(Pi.project, Stream.runCollect)
 *     for (const { type } of events) console.log(type)
 *     // => agent_start
 *     // => turn_start
 *     // => message_start
 *     // => message_end
 *     // => message_start
 *     // => message_update
 *     // => message_update
 *     // => message_update
 *     // => message_end
 *     // => turn_end
 *     // => agent_end
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
 * Converts events that `for await` reads to pi's events.
 *
 * **Details**
 *
 * The generator returns the last state, which has the messages of the run.
 *
 * **Example** (Converting the events of a promise agent)
 *
 * ```ts
 * import { Pi } from "effect-agent/compat"
 * import { createAgent } from "effect-agent/promise"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const agent = createAgent({ provider: ScriptedProvider.layer([ScriptedProvider.text("Hi!")]), model: "any" })
 * for await (const { type } of Pi.iterate(agent.stream("Hello?"))) {
 *   if (type === "turn_end") console.log(type) // => turn_end
 * }
 * await agent.close()
 * ```
 *
 * @since 0.2.0
 * @category converting
 */
export const iterate = (events: AsyncIterable<AgentEvent>): AsyncGenerator<Event, State, undefined> =>
  Iteration.iterate(initial, step, events)

/**
 * Makes a listener for the events of this library from one for pi's events, which it awaits.
 *
 * **Details**
 *
 * The listener keeps the state between two events, so give it to one agent.
 *
 * **Example** (Subscribing to a promise agent)
 *
 * ```ts
 * import { Pi } from "effect-agent/compat"
 * import { createAgent } from "effect-agent/promise"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const agent = createAgent({ provider: ScriptedProvider.layer([ScriptedProvider.text("Hi!")]), model: "any" })
 * agent.subscribe(Pi.listener(({ type }) => type === "turn_end" && console.log(type)))
 * await agent.prompt("Hello?") // => turn_end
 * await agent.close()
 * ```
 *
 * @since 0.2.0
 * @category converting
 */
export const listener = <C extends ReadonlyArray<unknown>>(
  listen: (event: Event, ...context: C) => unknown
): ((event: AgentEvent, ...context: C) => Promise<void>) => Iteration.listener(initial, step, listen)

const begun = (state: State, { timestamp }: OfTag<"MessageStart">): Step => {
  const lastAnswer: AssistantMessage = {
    ...emptyAnswer,
    model: state.lastAnswer.model,
    stopReason: "pending",
    timestamp
  }
  if (state.open !== undefined) return [{ ...state, lastAnswer }, []]
  return [
    { ...state, lastAnswer, open: ModelEvent.emptyReply },
    [{ type: "message_start", message: lastAnswer }]
  ]
}

const updated = (state: State, delta: ModelEvent.ModelEvent): Step => {
  const open = ModelEvent.append(state.open ?? ModelEvent.emptyReply, delta)
  const partial: AssistantMessage = {
    ...state.lastAnswer,
    content: open.content.filter((block) => block !== undefined).map(Pi.block)
  }
  const assistantMessageEvent = Pi.updates(delta, open, partial)
  return [
    { ...state, open },
    assistantMessageEvent === undefined
      ? []
      : [{ type: "message_update", message: partial, assistantMessageEvent }]
  ]
}

/** Shows the arguments so far with an update that adds no text. */
const valued = (state: State, { changes, for: of, index }: OfTag<"PartialValue">): Step => {
  const block = state.open?.content[index]
  if (of !== "arguments" || state.open === undefined || block?.type !== "toolCall") return [state, []]
  const params = foldValue(block.params, changes)
  if (params === undefined) return [state, []]
  const content = state.open.content.with(index, { ...block, params })
  const delta = { _tag: "ToolCallDelta", contentIndex: index, delta: "" } as const
  return updated({ ...state, open: { ...state.open, content } }, delta)
}

const ended = (state: State, message: Message.Message): Step => {
  if (message.role === "assistant") {
    const answer = Pi.fromAssistant(message)
    const next = { ...state, open: undefined, lastAnswer: answer, messages: [...state.messages, answer] }
    return [next, [{ type: "message_end", message: answer }]]
  }
  const whole = Pi.from(message)
  return [
    {
      ...state,
      messages: [...state.messages, whole],
      toolResults:
        whole.role === "toolResult" ? new Map(state.toolResults).set(message.id, whole) : state.toolResults
    },
    [
      { type: "message_start", message: whole },
      { type: "message_end", message: whole }
    ]
  ]
}

type ExecutionEvent = OfTag<"ToolExecutionStart" | "ToolExecutionProgress" | "ToolExecutionEnd">

const execution = (state: State, event: ExecutionEvent): Step => {
  const { toolCallId, toolName } = event
  const params = new Map(state.params)
  switch (event._tag) {
    case "ToolExecutionStart": {
      const args = event.params
      return [
        { ...state, params: params.set(toolCallId, args) },
        [{ type: "tool_execution_start", toolCallId, toolName, args }]
      ]
    }
    case "ToolExecutionProgress": {
      const args = params.get(toolCallId) ?? {}
      const partialResult = Pi.fromOutput(event.partial)
      return [state, [{ type: "tool_execution_update", toolCallId, toolName, args, partialResult }]]
    }
    case "ToolExecutionEnd": {
      params.delete(toolCallId)
      const { isError } = event
      const result = Pi.fromOutput(event.result)
      return [{ ...state, params }, [{ type: "tool_execution_end", toolCallId, toolName, result, isError }]]
    }
  }
}
