/**
 * The turn that an earlier run left open: which calls wait, and how they end when no run resumes them. A call whose process ended while
 * its tool ran has an end that is not known: a question to a person says what it was.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Message from "../Message.ts"
import type { OpenTurn, Question, QuestionAnswer } from "./openTurn.ts"
import * as Tool from "../Tool.ts"
import * as ToolOutcome from "./toolOutcome.ts"

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
  if (lost !== undefined) return (lost.answer && outcomeOf(call, lost.answer)) ?? ToolOutcome.unknown(call)
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

// ───────────────────────── Calls whose end is not known

/** The most characters of the params that the question shows. */
const maxParams = 300

/** The question about a call with these params. */
export const questionOf = (
  { name }: Message.ToolCall,
  params: Schema.Json
): Pick<Question, "about" | "question" | "schema"> => {
  const text = JSON.stringify(params)
  const shown = text.length > maxParams ? `${text.slice(0, maxParams)}…` : text
  const question = `The process ended while tool ${name} ran with ${shown}, and its end is not known. Did the call happen?`
  return { about: "unknownEnd", question, schema: unknownEndSchema }
}

const unknownEndSchema: Schema.Json = {
  type: "object",
  properties: {
    decision: {
      type: "string",
      enum: ["again", "done", "unknown"],
      description:
        "again: run the call again, with its idempotency key. done: it happened. unknown: tell the model that its end is not known"
    },
    result: { type: "string", description: "For done: the result that the model reads" }
  },
  required: ["decision"],
  additionalProperties: false
}

const decodeDecision = Schema.decodeUnknownOption(
  Schema.Struct({ decision: Schema.String, result: Schema.optionalKey(Schema.String) })
)

const noDecision: { readonly decision: string; readonly result?: string } = { decision: "unknown" }

/** The outcome of a call by the answer; `undefined` if it is to run again. */
export const outcomeOf = (
  call: Message.ToolCall,
  { answer, declined }: QuestionAnswer
): ToolOutcome.Outcome | undefined => {
  const { decision, result = "Done: a person says that the call happened." } = Option.getOrElse(
    decodeDecision(declined === true ? undefined : answer),
    () => noDecision
  )
  if (decision === "again") return undefined
  return decision === "done" ? ToolOutcome.make("success", Tool.render(result)) : ToolOutcome.unknown(call)
}
