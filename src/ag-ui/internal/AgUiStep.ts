/** One event of a run as events of AG-UI. */
import { type AgentEvent, isInside, type OfTag } from "../../AgentEvent.ts"
import * as Asking from "../../ui/Asking.ts"
import { from } from "../../internal/callSet.ts"
import * as Streamed from "../../ui/Streamed.ts"
import * as Message from "../../Message.ts"
import * as AgUiAnswer from "./AgUiAnswer.ts"
import {
  callIdOf,
  callsIn,
  json,
  producerOf,
  type State,
  type Step,
  withProducer,
  wholeOf,
  contentOf,
  reasoningId,
  snapshotOf,
  toolResult,
  added,
  activity,
  user,
  answer,
  type Event
} from "./AgUiState.ts"

export const step = (before: State, event: AgentEvent): Step => {
  const asking = Asking.step(before.asking, event)
  const state = asking === before.asking ? before : { ...before, asking }
  const { runId } = event
  switch (event._tag) {
    case "RunStart":
      return isInside(event, state.runId) ? childStarted(state, event) : started(state, event)
    case "ModelCallStart":
      return stepStarted(state, event)
    case "MessageStart":
      if (event.role !== "assistant") return [state, []]
      return [withProducer(state, runId, { answerId: event.messageId, streamed: Streamed.nothing }), []]
    case "MessageDelta":
      return AgUiAnswer.delta(state, runId, event.delta)
    case "MessageRetracted":
      return retracted(state, runId)
    case "MessageEnd":
      return ended(state, event)
    case "TurnEnd":
      return AgUiAnswer.ofStep(state, runId)
    case "RunEnd":
      return runId === state.runId ? AgUiAnswer.ofRun(state, event) : AgUiAnswer.ofChild(state, event)
    default:
      return other(state, event)
  }
}

const other = (state: State, event: AgentEvent): Step => {
  const { runId } = event
  switch (event._tag) {
    case "ToolExecutionStart": {
      const toolNames = new Map(state.toolNames).set(`${runId} ${event.toolCallId}`, event.toolName)
      return [{ ...state, toolNames }, event.label === undefined ? [] : [custom(state, event)]]
    }
    case "ToolExecutionProgress":
      return [state, [progress(state, event)]]
    case "ToolExecutionEnd": {
      const toolNames = new Map(state.toolNames)
      toolNames.delete(`${runId} ${event.toolCallId}`)
      return [{ ...state, toolNames }, [custom(state, event)]]
    }
    case "ToolInvoked":
      return [state, event.modified ? [custom(state, event)] : []]
    case "Output":
      return [runId === state.runId ? { ...state, output: event.value } : state, [custom(state, event)]]
    case "TurnStart":
    case "ToolsDetected":
    case "ModelCallError":
    case "RunError":
    case "PartialValue":
      return [state, []]
    default:
      return [state, [custom(state, event)]]
  }
}

const custom = (state: State, event: AgentEvent): Event => ({
  type: "CUSTOM",
  name: `effect-agent.${event._tag}`,
  value: json(event),
  ...producerOf(state, event.runId).tag
})

const progress = (state: State, event: OfTag<"ToolExecutionProgress">): Event => {
  const { content, details } = event.partial
  const toolCallId = callIdOf(state, event)
  return {
    type: "ACTIVITY_SNAPSHOT",
    messageId: `progress:${toolCallId}`,
    activityType: "TOOL_PROGRESS",
    content: {
      toolCallId,
      toolName: event.toolName,
      content: contentOf(content),
      ...(details === undefined ? {} : { details })
    },
    replace: true,
    ...producerOf(state, event.runId).tag
  }
}

const started = (before: State, event: OfTag<"RunStart">): Step => {
  const { model, runId } = event
  const { runId: id, threadId } = before.input
  const state: State = {
    ...before,
    ...beforeRun(before, event),
    runId,
    producers: new Map(),
    hasEnded: false,
    output: undefined
  }
  return [
    withProducer(state, runId, {}),
    [
      {
        type: "RUN_STARTED",
        threadId,
        runId: id,
        protocolVersion: "1.0",
        metadata: { effectAgent: { runId, model } }
      }
    ]
  ]
}

/** The conversation up to the prompt of the run: a client that has followed a part of the run has messages of it behind the prompt. */
const beforeRun = ({ messages }: State, { prompts }: OfTag<"RunStart">) => {
  const ids = new Set(prompts.map(({ id }) => id))
  const last = messages.findLastIndex(({ id }) => ids.has(id))
  if (last === -1) return {}
  const kept = messages.slice(0, last + 1)
  return { messages: kept, calls: callsIn(kept) }
}

const childStarted = (state: State, event: OfTag<"RunStart">): Step => {
  const { path, runId } = event
  const caller = path?.at(-1)
  const name = caller && state.toolNames.get(`${caller.runId} ${caller.toolCallId}`)
  const begin: Event = {
    type: "SUBAGENT_STARTED",
    subagentRunId: runId,
    name: name ?? event.model,
    ...(caller === undefined || caller.runId === state.runId ? {} : { parentSubagentRunId: caller.runId }),
    ...(caller === undefined ? {} : { parentToolCallId: callIdOf(state, caller) })
  }
  const next = withProducer(state, runId, { begin: [begin] })
  return [next, [begin, custom(next, event)]]
}

const stepStarted = (state: State, { runId, turn = 0 }: OfTag<"ModelCallStart">): Step => {
  const { step, tag } = producerOf(state, runId)
  if (step !== undefined) return [state, []]
  const stepName = `turn ${turn}`
  return [
    withProducer(state, runId, { step: stepName, callIds: new Map() }),
    [{ type: "STEP_STARTED", stepName, ...tag }]
  ]
}

/** AG-UI cannot take words back: the client gets the conversation without them. */
const retracted = (state: State, runId: string): Step => {
  const { answerId, streamed } = producerOf(state, runId)
  const ends = AgUiAnswer.ends(state, runId)
  const calls = streamed.reply.content.reduce(
    (all, block) =>
      block?.type === "toolCall" ? all.without(callIdOf(state, { runId, toolCallId: block.id })) : all,
    from(state.calls)
  )
  const next = withProducer({ ...state, calls }, runId, { streamed: Streamed.nothing, callIds: new Map() })
  if (streamed.reply.content.length === 0) return [next, ends]
  const reasoning = streamed.reply.content.flatMap((block, at) =>
    block?.type === "thinking" ? [reasoningId(answerId, at)] : []
  )
  return [next, [...ends, { type: "MESSAGES_SNAPSHOT", messages: snapshotOf(next, reasoning) }]]
}

const ended = (state: State, event: OfTag<"MessageEnd">): Step => {
  const { message, runId } = event
  const producer = producerOf(state, runId)
  const { tag } = producer
  const whole = wholeOf(message)
  switch (message.role) {
    case "assistant":
      return answered(state, runId, message)
    case "toolResult": {
      const { id: messageId, toolCallId } = toolResult(state, runId, producer, message)
      const messages = added(state.messages, [toolResult(state, runId, producer, message)])
      const content = contentOf(message.content)
      return [
        { ...state, messages },
        [{ type: "TOOL_CALL_RESULT", messageId, toolCallId, role: "tool", content, ...tag, ...whole }]
      ]
    }
    case "custom":
      if (runId !== state.runId) return [state, [custom(state, event)]]
      return [
        state,
        [
          {
            type: "ACTIVITY_SNAPSHOT",
            messageId: message.id,
            activityType: "effect-agent.custom",
            content: activity(message),
            replace: true,
            ...whole
          }
        ]
      ]
    case "user":
      // A sub-agent's prompt is no message of the person.
      return runId === state.runId ? userMessage(state, message) : [state, [custom(state, event)]]
  }
}

const userMessage = (state: State, message: Message.User): Step => {
  const isKnown = state.messages.some(({ id }) => id === message.id)
  const whole = user(message)
  const messages = added(state.messages, [
    isKnown ? { id: message.id, role: "user", ...wholeOf(message) } : whole
  ])
  const next = { ...state, messages }
  if (!isKnown && typeof whole["content"] !== "string") {
    return [next, [{ type: "MESSAGES_SNAPSHOT", messages: snapshotOf(next, []) }]]
  }
  const { id: messageId } = message
  const content: ReadonlyArray<Event> = isKnown
    ? []
    : [{ type: "TEXT_MESSAGE_CONTENT", messageId, delta: Message.textOf(message) }]
  return [
    next,
    [
      { type: "TEXT_MESSAGE_START", messageId, role: "user" },
      ...content,
      { type: "TEXT_MESSAGE_END", messageId, ...wholeOf(message) }
    ]
  ]
}

/** The rest of an answer, and the whole of it as metadata. */
const answered = (before: State, runId: string, message: Message.Assistant): Step => {
  const { answerId } = producerOf(before, runId)
  const known =
    answerId === message.id
      ? before
      : withProducer(before, runId, { answerId: message.id, streamed: Streamed.nothing })
  const rest = Streamed.rest(producerOf(known, runId).streamed, message)
  const [open, reset] = rest === undefined ? retracted(known, runId) : ([known, []] as const)
  const events = rest ?? Streamed.rest(Streamed.nothing, message) ?? []
  const [state, missing] = events.reduce<Step>(
    ([state, all], event) => {
      const [next, more] = AgUiAnswer.delta(state, runId, event)
      return [next, [...all, ...more]]
    },
    [open, reset]
  )
  const producer = producerOf(state, runId)
  const whole = wholeOf(message)
  const messages = added(state.messages, answer(state, runId, producer, message, whole))
  const id = { messageId: message.id, ...producer.tag }
  return [
    withProducer({ ...state, messages }, runId, { streamed: Streamed.nothing }),
    [
      ...missing,
      // The message may have no words yet.
      { type: "TEXT_MESSAGE_START", role: "assistant", ...id },
      { type: "TEXT_MESSAGE_END", ...id, ...whole }
    ]
  ]
}
