/**
 * The turn that an earlier run left open: which calls wait, and how they end when no run resumes them.
 */
import * as Message from "../Message.ts"
import type { OpenTurn } from "./openTurn.ts"
import * as ToolOutcome from "./toolOutcome.ts"
import * as UnknownEnd from "./unknownEnd.ts"

/** The results of an answer that are in the transcript. */
export const answered = (
  { id }: Message.Assistant,
  messages: ReadonlyArray<Message.Message>
): ReadonlyArray<Message.ToolResult> =>
  messages
    .slice(messages.findLastIndex((message) => message.id === id) + 1)
    .filter((message) => message.role === "toolResult")

/** The calls of an open turn that have no result in the transcript. */
export const unanswered = (
  { message }: OpenTurn,
  messages: ReadonlyArray<Message.Message>
): ReadonlyArray<Message.ToolCall> => {
  const ids = new Set(answered(message, messages).map(({ toolCallId }) => toolCallId))
  return Message.toolCalls(message).filter(({ id }) => !ids.has(id))
}

/** Results for the calls of a turn that no run resumes, in their order. Those that had ended keep their own. */
export const closing = (
  open: OpenTurn,
  messages: ReadonlyArray<Message.Message>,
  timestamp: number
): ReadonlyArray<Message.ToolResult> =>
  unanswered(open, messages).map((call) => ToolOutcome.result(call, endOf(open, call), timestamp))

const endOf = (open: OpenTurn, call: Message.ToolCall) => {
  const isOfCall = ({ request }: { readonly request: { readonly toolCallId: string } }) =>
    request.toolCallId === call.id
  const ended = open.ended.find(({ toolCallId }) => toolCallId === call.id)
  if (ended !== undefined) return ended
  const lost = open.questions.find((open) => isOfCall(open) && open.request.about !== undefined)
  if (lost !== undefined)
    return (lost.answer && UnknownEnd.outcomeOf(call, lost.answer)) ?? ToolOutcome.unknown(call)
  if (open.begun.includes(call.id)) return open.isSuspended ? stopped(call) : ToolOutcome.unknown(call)
  const approval = open.approvals.find(isOfCall)
  if (approval?.answer?.decision === "reject")
    return ToolOutcome.rejected(approval.answer.reason ?? "not approved")
  if (approval !== undefined && approval.answer === undefined) return ToolOutcome.rejected(noApproval)
  const question = open.questions.find(isOfCall)
  if (question !== undefined && question.answer === undefined) return ToolOutcome.rejected(noAnswer)
  if (question?.answer?.declined === true) return ToolOutcome.declined(question.answer)
  return open.isSuspended
    ? ToolOutcome.error("aborted", "Not run: the user wrote a message first.")
    : ToolOutcome.notBegun
}

/** The outcome of a call whose agent inside waited for a person. */
const stopped = ({ name }: Message.ToolCall) =>
  ToolOutcome.error(
    "aborted",
    `Tool ${name} waited for a person, and the user wrote a message first. It may have had effects: check before you call it again.`
  )

/** The reasons for the model where a person wrote a message in place of an answer. */
export const noApproval = "the user wrote a message and did not approve this call"
export const noAnswer = "the user wrote a message and did not answer this question"
