/**
 * Approvals of tool calls and questions to a person, and the turn that waits for their answers.
 *
 * @since 0.2.0
 */
export { Answer, OpenTurn, Question, QuestionAnswer, Request } from "./internal/openTurn.ts"
