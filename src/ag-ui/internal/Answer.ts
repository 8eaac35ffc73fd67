/** The deltas of an answer as events of AG-UI. Each bracket has one end: the client fails at any other. */
import type * as ModelEvent from "../../ModelEvent.ts"
import { from } from "../../internal/callSet.ts"
import * as Streamed from "../../ui/Streamed.ts"
import { reasoningId } from "./Conversation.ts"
import type { Event } from "./Event.ts"
import { callIdOf, type Producer, producerOf, type State, type Step, withProducer } from "./State.ts"

/** One more delta of the answer of a run. */
export const delta = (before: State, runId: string, event: ModelEvent.ModelEvent): Step => {
  const state = event._tag === "ToolCallStart" ? withCall(before, runId, event.id) : before
  const producer = producerOf(state, runId)
  const streamed = Streamed.append(producer.streamed, event)
  const next = withProducer(state, runId, { streamed })
  if (!("contentIndex" in event)) return [next, []]
  const block = streamed.reply.content[event.contentIndex]
  if (block?.type === "text") return [next, text(producer, streamed, event)]
  if (block?.type === "thinking") return [next, thinking(producer, event)]
  if (block?.type === "toolCall") return [next, toolCall(next, runId, producer.streamed, block, event)]
  return [next, []]
}

type BlockEvent = Extract<ModelEvent.ModelEvent, { readonly contentIndex: number }>

/** The blocks of one message share a bracket. */
const text = (before: Producer, streamed: Streamed.Streamed, event: BlockEvent): ReadonlyArray<Event> => {
  const id = { messageId: before.answerId, ...before.tag }
  switch (event._tag) {
    case "TextStart":
      return openTexts(before.streamed) > 0 ? [] : [{ type: "TEXT_MESSAGE_START", role: "assistant", ...id }]
    case "TextDelta":
      return [{ type: "TEXT_MESSAGE_CONTENT", delta: event.delta, ...id }]
    default:
      return openTexts(streamed) > 0 ? [] : [{ type: "TEXT_MESSAGE_END", ...id }]
  }
}

const thinking = ({ answerId, tag }: Producer, event: BlockEvent): ReadonlyArray<Event> => {
  const id = { messageId: reasoningId(answerId, event.contentIndex), ...tag }
  switch (event._tag) {
    case "ThinkingStart":
      return [
        { type: "REASONING_START", ...id },
        { type: "REASONING_MESSAGE_START", role: "reasoning", ...id }
      ]
    case "ThinkingDelta":
      return [{ type: "REASONING_MESSAGE_CONTENT", delta: event.delta, ...id }]
    default:
      return [
        { type: "REASONING_MESSAGE_END", ...id },
        { type: "REASONING_END", ...id }
      ]
  }
}

const toolCall = (
  state: State,
  runId: string,
  before: Streamed.Streamed,
  { id, name, rawArguments }: { readonly id: string; readonly name: string; readonly rawArguments: string },
  event: BlockEvent
): ReadonlyArray<Event> => {
  const { answerId, tag } = producerOf(state, runId)
  const call = { toolCallId: callIdOf(state, { runId, toolCallId: id }), ...tag }
  switch (event._tag) {
    case "ToolCallStart":
      return [{ type: "TOOL_CALL_START", toolCallName: name, parentMessageId: answerId, ...call }]
    case "ToolCallDelta":
      return [{ type: "TOOL_CALL_ARGS", delta: event.delta, ...call }]
    case "ToolCallEnd": {
      const given = before.reply.content[event.contentIndex]
      const length = given?.type === "toolCall" ? given.rawArguments.length : 0
      const missing = rawArguments.slice(length)
      return [
        ...(missing === "" ? [] : [{ type: "TOOL_CALL_ARGS", delta: missing, ...call } as const]),
        { type: "TOOL_CALL_END", ...call }
      ]
    }
    default:
      return []
  }
}

/** Gives the call an id that no other call of the conversation has. */
const withCall = (state: State, runId: string, toolCallId: string): State => {
  const usual = runId === state.runId ? toolCallId : `${runId}:${toolCallId}`
  const { answerId, callIds } = producerOf(state, runId)
  const id = state.calls.has(usual) ? `${answerId}:${toolCallId}` : usual
  const calls = from(state.calls).with(id)
  return id === usual
    ? { ...state, calls }
    : withProducer({ ...state, calls }, runId, { callIds: new Map(callIds).set(toolCallId, id) })
}

const openTexts = (streamed: Streamed.Streamed): number =>
  Streamed.open(streamed).filter(([, { type }]) => type === "text").length

/** The ends of what the answer leaves open. */
export const ends = (state: State, runId: string): ReadonlyArray<Event> => {
  const { answerId: messageId, streamed, tag } = producerOf(state, runId)
  const open = Streamed.open(streamed).flatMap(([contentIndex, block]): ReadonlyArray<Event> => {
    const id = { messageId: reasoningId(messageId, contentIndex), ...tag }
    switch (block.type) {
      case "thinking":
        return [
          { type: "REASONING_MESSAGE_END", ...id },
          { type: "REASONING_END", ...id }
        ]
      case "toolCall":
        return [
          { type: "TOOL_CALL_END", toolCallId: callIdOf(state, { runId, toolCallId: block.id }), ...tag }
        ]
      default:
        return []
    }
  })
  const text: ReadonlyArray<Event> =
    openTexts(streamed) > 0 ? [{ type: "TEXT_MESSAGE_END", messageId, ...tag }] : []
  return [...open, ...text]
}
