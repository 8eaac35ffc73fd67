/** Events and records of conversations. */
import { AgentEvent, Message, Session, Usage } from "effect-agent"

let seq = 0

const base = (runId: string) => ({ runId, seq: ++seq, timestamp: 1_000 + seq, turn: 1 })

export const call = (id: string, name = "clock"): Message.ToolCall => ({
  type: "toolCall",
  id,
  name,
  rawArguments: "{}",
  params: {}
})

const event = (event: Session.RecordedEvent): Session.Record => ({ _tag: "Event", event })

export const runStart = (runId: string, model = "m", resumes?: string): Session.Record =>
  event({
    ...base(runId),
    ...(resumes === undefined ? {} : { resumes }),
    _tag: "RunStart",
    v: AgentEvent.version,
    prompts: [],
    model,
    options: { model },
    continued: false
  })

export const runEnd = (runId: string, status: "completed" | "cancelled" = "completed"): Session.Record =>
  event({
    ...base(runId),
    _tag: "RunEnd",
    status,
    newMessageIds: [],
    usage: Usage.zero,
    turns: 1,
    durationMs: 1
  })

export const said = (message: Message.Message, runId = "r1"): Session.Record =>
  event({ ...base(runId), _tag: "MessageEnd", message })

export const invoked = (toolCallId: string, runId = "r1"): Session.Record =>
  event({
    ...base(runId),
    _tag: "ToolInvoked",
    toolCallId,
    toolName: "clock",
    params: {},
    modified: false,
    approved: false
  })

export const ended = (toolCallId: string, text: string, runId = "r1"): Session.Record =>
  event({
    ...base(runId),
    _tag: "ToolExecutionEnd",
    toolCallId,
    toolName: "clock",
    result: { content: [Message.text(text)] },
    isError: false,
    outcome: "success",
    durationMs: 1
  })

/** A run of one exchange, with a tool call. */
export const exchange = (
  runId: string,
  prompt: string
): readonly [Session.Record, ...Array<Session.Record>] => {
  const id = `call-${runId}`
  return [
    runStart(runId),
    said(Message.user(prompt), runId),
    said(Message.assistant([Message.text("Let me look."), call(id)], { stopReason: "toolUse" }), runId),
    invoked(id, runId),
    ended(id, "12:00", runId),
    said(Message.toolResult(call(id), "12:00"), runId),
    said(Message.assistant(`It is 12:00. (${prompt})`), runId),
    runEnd(runId)
  ]
}

const request = (toolCallId: string) => ({
  approvalId: `approval-${toolCallId}`,
  toolCallId,
  toolName: "clock",
  params: { of: toolCallId },
  argumentsHash: `hash-${toolCallId}`
})

export const requested = (toolCallId: string, runId = "r1"): Session.Record =>
  event({ ...base(runId), _tag: "ApprovalRequested", ...request(toolCallId), reason: "it writes" })

export const decided = (toolCallId: string, decision: "approve" | "reject", runId = "r1"): Session.Record =>
  event({
    ...base(runId),
    _tag: "ApprovalAnswered",
    approvalId: `approval-${toolCallId}`,
    toolCallId,
    decision,
    params: { edited: true },
    by: "ada"
  })

export const questioned = (toolCallId: string, runId = "r1"): Session.Record =>
  event({
    ...base(runId),
    _tag: "QuestionAsked",
    questionId: "q1",
    toolCallId,
    question: "Which?",
    schema: {}
  })

export const replied = (toolCallId: string, runId = "r1"): Session.Record =>
  event({ ...base(runId), _tag: "QuestionAnswered", questionId: "q1", toolCallId, answer: "This." })

/** The end of a run that waits for a person. */
export const suspended = (runId: string): Session.Record =>
  event({
    ...base(runId),
    _tag: "RunEnd",
    status: "suspended",
    newMessageIds: [],
    usage: Usage.zero,
    turns: 1,
    durationMs: 1,
    resume: { runId }
  })
