/**
 * The approvals and questions of an agent and of the runs inside it, with their answers.
 *
 * The first answer counts. It is given in one synchronous step, so that two callers cannot both be first.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as JsonSchema from "./jsonSchema.ts"
import { type Assistant, toolCalls } from "../Message.ts"
import {
  type Answer,
  type OpenRequests,
  type OpenTurn,
  type Question,
  type QuestionAnswer,
  QuestionReply,
  Reply,
  type Request
} from "./openTurn.ts"
import { AnswerConflict, type CannotAnswer, InvalidAnswer, RequestNotFound } from "./errors.ts"
import type { ToolRegistry } from "../ToolRegistry.ts"

/** A request, until its call has ended, and its answer. */
export interface Open<R, A> {
  request: R
  /** Fails with the faults of params that are to replace those of the request. */
  check: Check
  /** Succeeds with the answer. */
  readonly answered: Deferred.Deferred<A>
  answer: A | undefined
}

export type Check = (params: Schema.Json) => Effect.Effect<unknown, { readonly message: string }>

export type OpenApproval = Open<Request, Answer>
export type OpenQuestion = Open<Question, QuestionAnswer>

/** How many answers are kept for a caller that answers once more. */
const kept = 1000

const decodeReply = Schema.decodeUnknownEffect(Reply, { errors: "all" })
const decodeAnswer = Schema.decodeUnknownEffect(QuestionReply, { errors: "all" })

export class Requests {
  private readonly approvalsById = new Map<string, OpenApproval>()
  private readonly questionsById = new Map<string, OpenQuestion>()

  /** Those without an answer. */
  get open(): OpenRequests {
    return { approvals: unanswered(this.approvalsById), questions: unanswered(this.questionsById) }
  }

  openApproval(request: Request, check: Check): OpenApproval {
    return opened(this.approvalsById, request.approvalId, request, check)
  }

  openQuestion(request: Question): OpenQuestion {
    return opened(this.questionsById, request.questionId, request, () => Effect.void)
  }

  /** The approval of a call of an open turn, with its answer. */
  restoreApproval({ answer, request }: OpenTurn["approvals"][number], check: Check): OpenApproval {
    return this.approvalsById.get(request.approvalId) ?? answeredBy(this.openApproval(request, check), answer)
  }

  /** The question of an open turn, with its answer. */
  restoreQuestion({ answer, request }: OpenTurn["questions"][number]): OpenQuestion {
    return this.questionsById.get(request.questionId) ?? answeredBy(this.openQuestion(request), answer)
  }

  /** Closes a request whose call has ended. One that has its answer stays, for a caller that answers once more. */
  withdraw(id: string): void {
    if (this.approvalsById.get(id)?.answer === undefined) this.approvalsById.delete(id)
    if (this.questionsById.get(id)?.answer === undefined) this.questionsById.delete(id)
  }

  /** Opens the requests of a turn that waits for the run that resumes it. */
  restore({ approvals, message, questions }: OpenTurn, registry: ToolRegistry["Service"]): void {
    for (const open of approvals) {
      const { request } = open
      // Of a run inside of a call only that run knows the tools: it checks the params when it continues.
      const check = request.path === undefined ? checkOf(registry, message, request) : () => Effect.void
      this.restoreApproval(open, check)
    }
    for (const open of questions) this.restoreQuestion(open)
  }

  withdrawAll({ approvals, questions }: OpenTurn): void {
    for (const { request } of approvals) this.withdraw(request.approvalId)
    for (const { request } of questions) this.withdraw(request.questionId)
  }

  /** The turn with the answers that have come by now. */
  answersOf(turn: OpenTurn): OpenTurn {
    return {
      ...turn,
      approvals: turn.approvals.map((open) =>
        withAnswer(this.approvalsById.get(open.request.approvalId) ?? open)
      ),
      questions: turn.questions.map((open) =>
        withAnswer(this.questionsById.get(open.request.questionId) ?? open)
      )
    }
  }

  /** Gives an answer. Plain JavaScript may give any value. */
  answer(id: string, reply: unknown): Effect.Effect<Answer | QuestionAnswer, CannotAnswer> {
    return this.questionsById.has(id) ? this.answerQuestion(id, reply) : this.answerApproval(id, reply)
  }

  answerApproval(id: string, reply: unknown): Effect.Effect<Answer, CannotAnswer> {
    return Effect.gen({ self: this }, function* () {
      const open = yield* this.find(this.approvalsById, id)
      const { argumentsHash, ...answer } = yield* Effect.mapError(decodeReply(reply), invalid(id))
      if (argumentsHash !== open.request.argumentsHash) return yield* otherParams(id)
      const { decision, params } = answer
      if (open.answer === undefined && decision === "approve" && params !== undefined) {
        yield* Effect.mapError(open.check(params), invalid(id))
        yield* this.find(this.approvalsById, id)
      }
      return give(open, answer)
    })
  }

  answerQuestion(id: string, reply: unknown): Effect.Effect<QuestionAnswer, CannotAnswer> {
    return Effect.gen({ self: this }, function* () {
      const open = yield* this.find(this.questionsById, id)
      const given = yield* Effect.mapError(decodeAnswer(reply), invalid(id))
      const decoded =
        "answer" in given && given.declined !== true
          ? JsonSchema.decode(open.request.schema, given.answer)
          : Result.succeed<Schema.Json>(null)
      if (Result.isFailure(decoded)) {
        return yield* new InvalidAnswer({ id, detail: decoded.failure.join("\n") })
      }
      const first = give(open, { ...given, answer: decoded.success })
      const isSame = first.declined === given.declined && JsonSchema.same(first.answer, decoded.success)
      return isSame ? first : yield* otherAnswer(id, first)
    })
  }

  /** A request that has its answer, or that has not expired. */
  private find<R extends Request | Question, A>(
    requests: ReadonlyMap<string, Open<R, A>>,
    id: string
  ): Effect.Effect<Open<R, A>, RequestNotFound> {
    return Effect.clockWith((clock) => {
      const open = requests.get(id)
      if (open === undefined) return new RequestNotFound({ id })
      const { answer, request } = open
      const { expiresAt = Infinity } = request
      const isExpired = clock.currentTimeMillisUnsafe() >= expiresAt
      return answer === undefined && isExpired ? new RequestNotFound({ id }) : Effect.succeed(open)
    })
  }
}

/** Decodes params that are to replace those of a request, by the tool of its call. */
export const checkOf =
  (registry: ToolRegistry["Service"], message: Assistant, { toolCallId }: Request): Check =>
  (input) => {
    const call = toolCalls(message).find(({ id }) => id === toolCallId)
    return call === undefined
      ? Effect.fail({ message: "the call of the request does not exist" })
      : registry.prepare(call, { input: structuredClone(input), caseInsensitiveTools: true })
  }

/** A request with its answer, as an open turn holds it. */
export const withAnswer = <R, A>({
  answer,
  request
}: {
  readonly request: R
  readonly answer?: A | undefined
}) => (answer === undefined ? { request } : { request, answer })

/** A request, or the same one for another run, with the answer that it may have. */
const opened = <R, A>(
  requests: Map<string, Open<R, A>>,
  id: string,
  request: R,
  check: Check
): Open<R, A> => {
  const known = requests.get(id)
  if (known !== undefined) {
    known.request = request
    known.check = check
    return known
  }
  const answered = [...requests].filter(([, { answer }]) => answer !== undefined)
  for (const [id] of answered.slice(0, Math.max(0, answered.length - kept))) requests.delete(id)
  const open: Open<R, A> = { request, check, answered: Deferred.makeUnsafe(), answer: undefined }
  requests.set(id, open)
  return open
}

/** Gives the answer, unless there is one. Returns the first one. */
const give = <R, A>(open: Open<R, A>, answer: A): A => {
  if (open.answer === undefined) {
    open.answer = answer
    Deferred.doneUnsafe(open.answered, Effect.succeed(answer))
  }
  return open.answer
}

const answeredBy = <R, A>(open: Open<R, A>, answer: A | undefined): Open<R, A> => {
  if (answer !== undefined) give(open, answer)
  return open
}

const unanswered = <R, A>(requests: ReadonlyMap<string, Open<R, A>>): ReadonlyArray<R> =>
  Array.from(requests.values()).flatMap(({ answer, request }) => (answer === undefined ? [request] : []))

const invalid =
  (id: string) =>
  ({ message }: { readonly message: string }): InvalidAnswer =>
    new InvalidAnswer({ id, detail: message })

const otherParams = (id: string) =>
  new AnswerConflict({
    id,
    detail: "The answer is about other params: its argumentsHash is not that of the request."
  })

const otherAnswer = (id: string, first: QuestionAnswer) =>
  new AnswerConflict({ id, detail: `The question has another answer: ${JSON.stringify(first)}` })
