/**
 * Decides whether a run without a prompt can start: the transcript must have something that the model has not answered.
 */
import * as Schema from "effect/Schema"
import * as Message from "../Message.ts"
import * as Transcript from "../Transcript.ts"
import { TaggedError } from "./errors.ts"

/**
 * `continue` found nothing that the model could answer: no message, or a complete answer.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidContinuation extends TaggedError<InvalidContinuation>()("InvalidContinuation", {
  /** The reason in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

/** The error for a transcript whose last answer is complete. */
export const answered = (): InvalidContinuation =>
  new InvalidContinuation({ detail: "Cannot continue from message role: assistant" })

export const isBrokenOff = (messages: ReadonlyArray<Message.Message>): boolean => {
  const last = messages.at(-1)
  return last !== undefined && Transcript.isFailed(last)
}

/**
 * Whether the model can answer the transcript as it stands. Failed and cancelled answers at its end stay where they are and
 * do not count: the model answers again in their place.
 */
export const isUnanswered = (messages: ReadonlyArray<Message.Message>): boolean => {
  const last = messages.findLast((message) => !Transcript.isFailed(message))
  if (last === undefined) return false
  return last.role !== "assistant" || Transcript.openCalls(messages).length > 0
}

/** Makes error results for the calls at the end of the transcript that have none, since the run does not run them again. */
export const missingResults = (
  messages: ReadonlyArray<Message.Message>,
  timestamp: number
): ReadonlyArray<Message.ToolResult> =>
  Transcript.openCalls(messages).map((call) =>
    Message.toolResult(call, `Tool ${call.name} was not run: the run had ended.`, {
      isError: true,
      outcome: "aborted",
      timestamp
    })
  )
