/**
 * The entries of records: the way from the changes of a conversation to the entries of its session.
 */
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { AgentEvent, type OfTag } from "../../AgentEvent.ts"
import { EventError } from "../../internal/failureReason.ts"
import { isObject } from "../../internal/json.ts"
import type { Message } from "../../Message.ts"
import { Patch, RunOptions } from "../../RunOptions.ts"
import type { Record } from "../../Session.ts"
import type * as SessionEntry from "../SessionEntry.ts"
import type { SessionState } from "./SessionState.ts"
import { callIn } from "./Turn.ts"
import type { Usage } from "../../Usage.ts"

type Draft = SessionEntry.Draft

/**
 * The drafts of the entries of a record, in the order in which they belong behind the state. Throws if the record holds data that is
 * no JSON.
 */
export const drafts = (state: SessionState, record: Record): ReadonlyArray<Draft> => {
  switch (record._tag) {
    case "Event":
      return ofEvent(state, record.event)
    case "RunLost":
      return [lost(state, record.runId)]
    case "Queued":
      return [custom("queue", { queue: record.queue, messages: record.messages })]
    case "QueueCleared":
      return [custom("queue", { cleared: record.queue })]
    case "OptionsChanged":
      return ofOptions(record.options, record.unset)
    case "MessagesReplaced":
      return replaced(state, record.messages)
    case "Noted":
      return [custom("note", { messageId: record.messageId, note: record.note })]
    case "Compacted": {
      const { entryId, firstKept } = record
      const made = Struct.pick(record, [
        "reason",
        "summarizesFirst",
        "summary",
        "tokensAfter",
        "tokensBefore"
      ])
      const kept = state.messages().findLast(({ message }) => message.id === firstKept)
      const firstKeptId = kept?.id ?? firstKept
      return [{ type: "compaction", id: entryId, firstKeptId, ...made, ...spentOf(record) }]
    }
  }
}

const ofEvent = (state: SessionState, event: AgentEvent): ReadonlyArray<Draft> => {
  switch (event._tag) {
    case "MessageEnd":
      return [messageOf(event.message)]
    case "RunStart": {
      const { model, options, resumes, runId } = event
      const published = options === undefined ? {} : { options: encodeOptions(options) }
      const resumed = resumes === undefined ? {} : { resumes }
      return [{ type: "run", phase: "start", runId, model, ...resumed, ...published }]
    }
    case "RunEnd": {
      const { error, runId, status, usage } = event
      const failure = error === undefined ? {} : { error: failureOf(error) }
      return [{ type: "run", phase: "end", runId, model: modelOf(state, runId), status, usage, ...failure }]
    }
    case "ToolInvoked": {
      const { params, runId, toolCallId, toolName } = event
      const changed = isCalledWith(state, toolCallId, params) ? {} : { params }
      return [custom("tool", { phase: "start", runId, toolCallId, toolName, ...changed })]
    }
    case "ToolExecutionEnd": {
      const { durationMs, isError, outcome, result: output, runId, toolCallId, toolName } = event
      const call = { runId, toolCallId, toolName }
      return [custom("tool", { phase: "end", ...call, outcome, isError, durationMs, output })]
    }
    case "HandedOff": {
      const { from, messageId, runId, to, toolCallId } = event
      return [custom("handOff", { runId, toolCallId, from, to, messageId })]
    }
    default:
      return ofRequest(state, event)
  }
}

const isAnswer = (entry: SessionEntry.SessionEntry): entry is SessionEntry.MessageEntry =>
  entry.type === "message" && entry.message.role === "assistant"

/** Whether the last answer has a call with these params. */
const isCalledWith = (state: SessionState, toolCallId: string, params: Schema.Json): boolean => {
  const message = state.tree.last(isAnswer)?.message
  const call = message?.role === "assistant" ? callIn(message, toolCallId) : undefined
  return call !== undefined && JSON.stringify(call.params) === JSON.stringify(params)
}

/** The entries of requests to a person and of their answers. An event of another kind stays as it is. */
const ofRequest = (state: SessionState, event: AgentEvent): ReadonlyArray<Draft> => {
  switch (event._tag) {
    case "ApprovalRequested": {
      const { _tag, parent: _, seq: __, timestamp: ___, turn: ____, ...request } = event
      return [{ type: "approval", ...request }]
    }
    case "ApprovalAnswered":
      return answered(state, event)
    case "QuestionAsked": {
      const { _tag, parent: _, seq: __, timestamp: ___, turn: ____, ...request } = event
      return [custom("question", { phase: "asked", ...request })]
    }
    case "QuestionAnswered": {
      const { questionId, runId, toolCallId } = event
      const answer = Struct.pick(event, ["answer", "declined", "reason", "by"])
      return [custom("question", { phase: "answered", runId, questionId, toolCallId, ...answer })]
    }
    default:
      return [custom("event", encodeEvent(event))]
  }
}

/** The answer with the call that it is for: the first one, which the run that takes it emits again. */
const answered = (state: SessionState, event: OfTag<"ApprovalAnswered">): ReadonlyArray<Draft> => {
  const request = state.approvals.get(event.approvalId)
  if (request === undefined) return []
  const { argumentsHash, params, runId, toolCallId, toolName } = request
  const { approvalId, by, decision, params: edited, reason } = event
  return [
    {
      type: "approval",
      approvalId,
      runId,
      toolCallId,
      toolName,
      params,
      argumentsHash,
      decision,
      ...(edited === undefined ? {} : { edited }),
      ...(reason === undefined ? {} : { reason }),
      ...(by === undefined ? {} : { by })
    }
  ]
}

const spentOf = ({ usage }: { readonly usage?: Usage }) => (usage === undefined ? {} : { usage })

const messageOf = (message: Message): Draft => ({ type: "message", id: message.id, message })

const lost = (state: SessionState, runId: string): Draft => ({
  type: "run",
  phase: "end",
  runId,
  model: modelOf(state, runId),
  status: "failed",
  error: { _tag: "Defect", message: "The process of the run ended before the run." }
})

const modelOf = (state: SessionState, runId: string): string => state.runs.get(runId) ?? ""

/** The draft of an entry of the agent inside a call. */
export const ofChild = (toolCallId: string, entry: SessionEntry.Known): Draft =>
  custom("child", { toolCallId, entry })

const custom = (kind: string, data: Schema.Json): Draft => ({ type: "custom", kind, data })

const ofOptions = (
  { model, ...others }: Partial<RunOptions>,
  unset: ReadonlyArray<string> = []
): ReadonlyArray<Draft> => [
  ...(model === undefined ? [] : [{ type: "model", model } as const]),
  ...(Object.keys(others).length + unset.length === 0
    ? []
    : [custom("options", { ...toObject(encodePatch(others)), ...(unset.length === 0 ? {} : { unset }) })])
]

/**
 * The conversation continues behind the last message that both transcripts have, with those that follow it in the new one, and without
 * a compaction.
 */
const replaced = (state: SessionState, messages: ReadonlyArray<Message>): ReadonlyArray<Draft> => {
  const before = state.messages()
  const shared = before.findIndex(({ message }, index) => message !== messages[index])
  const kept = shared === -1 ? before.length : shared
  const targetId = kept === 0 ? state.start?.id : before[kept - 1]?.id
  return [
    ...(kept === before.length || targetId === undefined ? [] : [{ type: "leaf", targetId } as const]),
    ...(state.isCompacted() ? [custom("uncompacted", null)] : []),
    ...messages.slice(kept).map(messageOf)
  ]
}

/** The failure as JSON, with its message, which is no field of it. */
const failureOf = (error: EventError) => ({
  ...toObject(encodeError(error)),
  _tag: error._tag,
  message: error.message
})

const toObject = (json: Schema.Json) => (isObject(json) ? json : {})

const encodeOptions = Schema.encodeSync(Schema.toCodecJson(RunOptions))
const encodePatch = Schema.encodeSync(Schema.toCodecJson(Patch))
const encodeError = Schema.encodeSync(Schema.toCodecJson(EventError))
const encodeEvent = Schema.encodeSync(Schema.toCodecJson(AgentEvent))
