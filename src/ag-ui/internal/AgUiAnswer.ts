/** The deltas of an answer as events of AG-UI. Each bracket has one end: the client fails at any other. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import type { AgentEvent, OfTag } from "../../AgentEvent.ts"
import type * as ModelEvent from "../../ModelEvent.ts"
import type { Usage } from "../../Usage.ts"
import { from } from "../../internal/callSet.ts"
import * as Asking from "../../ui/Asking.ts"
import * as Streamed from "../../ui/Streamed.ts"
import {
  callIdOf,
  type Producer,
  producerOf,
  type State,
  type Step,
  withProducer,
  json,
  reasoningId,
  type Event,
  type Interrupt,
  type JsonObject
} from "./AgUiState.ts"

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

// ───────────────────────── The end of a run

export const ofStep = (state: State, runId: string): Step => {
  const closings = [...ends(state, runId), ...stepFinished(state, runId)]
  return [withProducer(state, runId, { step: undefined, streamed: Streamed.nothing }), closings]
}

const stepFinished = (state: State, runId: string): ReadonlyArray<Event> => {
  const { step, tag } = producerOf(state, runId)
  return step === undefined ? [] : [{ type: "STEP_FINISHED", stepName: step, ...tag }]
}

const resultOf = (event: OfTag<"RunEnd">): JsonObject => ({
  ...Struct.pick(event, ["runId", "status", "turns", "durationMs"]),
  ...(event.resume === undefined ? {} : { resume: { ...event.resume } }),
  ...(event.childUsage === undefined ? {} : { childUsage: { ...event.childUsage } })
})

const without = (state: State, runId: string): State => {
  const producers = new Map(state.producers)
  producers.delete(runId)
  return { ...state, producers }
}

export const ofChild = (before: State, event: OfTag<"RunEnd">): Step => {
  const { error, runId: subagentRunId, status } = event
  if (!before.producers.has(subagentRunId)) return [before, []]
  const [state, closings] = ofStep(before, subagentRunId)
  const end: Event =
    status === "failed"
      ? {
          type: "SUBAGENT_ERROR",
          subagentRunId,
          message: error?.message ?? "The run failed",
          code: error?._tag ?? "Failed"
        }
      : {
          type: "SUBAGENT_FINISHED",
          subagentRunId,
          result: { ...resultOf(event), usage: { ...event.usage } },
          outcome:
            status === "suspended"
              ? { type: "suspended", interruptIds: interrupts(state, subagentRunId).map(({ id }) => id) }
              : { type: "success" }
        }
  return [without(state, subagentRunId), [...closings, end]]
}

export const ofRun = (before: State, event: OfTag<"RunEnd">): Step => {
  const { error, status } = event
  const { input, output } = before
  const usage = [usageOf(event.usage)]
  const open = interrupts(before)
  const closings = closed(before)
  const state = { ...before, producers: new Map(), hasEnded: true }
  const result = {
    ...resultOf(event),
    ...(output === undefined ? {} : { output })
  }
  if (status === "failed") {
    const message = error?.message ?? "The run failed"
    const code = error?._tag ?? "Failed"
    return [
      state,
      [...closings, { type: "RUN_ERROR", message, code, usage, metadata: { effectAgent: result } }]
    ]
  }
  const { runId, threadId } = input
  const finished = { type: "RUN_FINISHED", threadId, runId, usage } as const
  if (status === "suspended" && open.length > 0) {
    return [state, [...closings, { ...finished, result, outcome: { type: "interrupt", interrupts: open } }]]
  }
  const type = status === "cancelled" ? "cancelled" : "success"
  return [state, [...closings, { ...finished, result, outcome: { type } }]]
}

/** The ends of all that is open, the innermost first. */
const closed = (state: State): ReadonlyArray<Event> =>
  [...state.producers.keys()].reverse().flatMap((runId) => {
    const [, closings] = ofStep(state, runId)
    if (runId === state.runId) return closings
    const interruptIds = interrupts(state, runId).map(({ id }) => id)
    const outcome = { type: "suspended", interruptIds } as const
    return [...closings, { type: "SUBAGENT_FINISHED", subagentRunId: runId, outcome }]
  })

export const pause = (state: State): ReadonlyArray<Event> => {
  const { runId, threadId } = state.input
  const outcome = { type: "interrupt", interrupts: interrupts(state) } as const
  return [...closed(state), { type: "RUN_FINISHED", threadId, runId, outcome }]
}

/** Begins again what `pause` has closed. */
export const begin = (state: State): ReadonlyArray<Event> => {
  const { runId, threadId } = state.input
  const metadata = state.runId === undefined ? {} : { metadata: { effectAgent: { runId: state.runId } } }
  return [
    { type: "RUN_STARTED", threadId, runId, protocolVersion: "1.0", ...metadata },
    ...[...state.producers.values()].flatMap(
      ({ begin, step, tag }): ReadonlyArray<Event> => [
        ...begin,
        ...(step === undefined ? [] : [{ type: "STEP_STARTED", stepName: step, ...tag } as const])
      ]
    )
  ]
}

/** The open requests to a person, of one run or of all. */
const interrupts = (state: State, runId?: string): Array<Interrupt> =>
  Asking.requests(state.asking)
    .filter((request) => runId === undefined || isWithin(request, runId))
    .map((request) => ({
      ...interruptOf(request),
      toolCallId: callIdOf(state, request),
      ...(request.expiresAt === undefined ? {} : { expiresAt: new Date(request.expiresAt).toISOString() }),
      metadata: { effectAgent: json(request) },
      ...(request.runId === state.runId ? {} : { subagentRunId: request.runId })
    }))

const isWithin = (request: AgentEvent, runId: string): boolean =>
  request.runId === runId || request.path?.some((caller) => caller.runId === runId) === true

const interruptOf = (request: OfTag<"ApprovalRequested" | "QuestionAsked">) => {
  if (request._tag === "QuestionAsked") {
    const { question: message, questionId: id, schema } = request
    const responseSchema = Option.getOrUndefined(decodeObject(schema))
    const known = responseSchema === undefined ? {} : { responseSchema }
    return { id, reason: "input_required", message, ...known }
  }
  const { approvalId: id, reason, toolName } = request
  const message = reason ?? `Allow ${toolName}?`
  return { id, reason: "tool_call", message, responseSchema: decisionSchema }
}

const decodeObject = Schema.decodeUnknownOption(Schema.Record(Schema.String, Schema.Json))

const decisionSchema: JsonObject = {
  type: "object",
  properties: { approved: { type: "boolean" }, reason: { type: "string" } },
  required: ["approved"]
}

const usageOf = ({ cacheRead, cacheWrite, input, output, reasoning, total }: Usage): JsonObject => ({
  inputTokens: input,
  outputTokens: output,
  totalTokens: total,
  cachedInputTokens: cacheRead,
  cacheWriteInputTokens: cacheWrite,
  ...(reasoning === undefined ? {} : { reasoningTokens: reasoning })
})
