/**
 * The errors of an answer to an approval or a question.
 */
import * as Schema from "effect/Schema"
import { TaggedError } from "./taggedError.ts"

/**
 * No approval and no question with the id waits for an answer, or has one.
 *
 * @category errors
 * @since 0.2.0
 */
export class RequestNotFound extends TaggedError<RequestNotFound>()("RequestNotFound", {
  /** The id that was given. */
  id: Schema.String
}) {
  override get message(): string {
    return `No approval or question ${JSON.stringify(this.id)} waits for an answer. Read agent.approvals and agent.questions.`
  }
}

/**
 * The answer contradicts the request or the first answer.
 *
 * **Details**
 *
 * The agent has recorded nothing.
 *
 * @category errors
 * @since 0.2.0
 */
export class AnswerConflict extends TaggedError<AnswerConflict>()("AnswerConflict", {
  /** The id of the approval or the question. */
  id: Schema.String,
  /** The contradiction in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

/**
 * The answer is not valid: the tool does not take its params, or it does not match the schema of the question.
 *
 * **Details**
 *
 * The request stays open.
 *
 * @category errors
 * @since 0.2.0
 */
export class InvalidAnswer extends TaggedError<InvalidAnswer>()("InvalidAnswer", {
  /** The id of the approval or the question. */
  id: Schema.String,
  /** The faults in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return `The answer is not valid: ${this.detail}`
  }
}

/**
 * The errors of an answer to an approval or a question.
 *
 * @category errors
 * @since 0.2.0
 */
export type CannotAnswer = RequestNotFound | AnswerConflict | InvalidAnswer
