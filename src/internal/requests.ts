/**
 * The requests of an agent and of the runs inside it to a person, with their answers: approvals of tool calls, and questions.
 *
 * The first answer counts. It is given in one synchronous step, so that two callers cannot both be first.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Body } from "../AgentEvent.ts"
import type * as Approval from "../Approval.ts"
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

/** Fails with the faults of params that are to replace those of a call. */
export type Check = (params: Schema.Json) => Effect.Effect<unknown, { readonly message: string }>

/** The event that publishes an answer. */
type AnswerEvent = Extract<Body, { readonly _tag: "ApprovalAnswered" | "QuestionAnswered" }>

/** A request, and the answer that it may have, as an open turn holds them. */
interface Stored<R, A> {
  readonly request: R
  readonly answer?: A
}

/** A request with its answer, and the event that publishes it. */
export interface Answered<R, A> {
  readonly _tag: "Answered"
  readonly request: R
  readonly answer: A
  readonly event: AnswerEvent
}

/** A request, until its call has ended, and its answer. Each kind has its own events and replies. */
export abstract class Open<R extends Request | Question, A> {
  readonly id: string
  request: R
  check: Check
  answer: A | undefined
  /** Succeeds with the answer. */
  readonly answering = Deferred.makeUnsafe<A>()

  constructor({ answer, request }: Stored<R, A>, check: Check = unchecked) {
    this.id = idOf(request)
    this.request = request
    this.check = check
    if (answer !== undefined) this.give(answer)
  }

  /** The event that publishes the request. */
  abstract get asked(): Body
  protected abstract shown(answer: A): AnswerEvent
  /** Asks a person, who gives a reply. */
  abstract put(person: Approval.Person): Effect.Effect<unknown, unknown>
  /** Reads a reply. */
  protected abstract decode(reply: unknown): Effect.Effect<A, CannotAnswer>

  /** Takes a reply, if `isOpen` still succeeds once it is read. Writes the first answer by `record`. */
  take(
    reply: unknown,
    isOpen: Effect.Effect<unknown, CannotAnswer>,
    record: (event: AnswerEvent) => Effect.Effect<void>
  ): Effect.Effect<A, CannotAnswer> {
    return Effect.gen({ self: this }, function* () {
      const answer = yield* this.decode(reply)
      yield* isOpen
      if (this.answer !== undefined) return yield* this.again(this.answer, answer)
      this.give(answer)
      yield* record(this.shown(answer))
      return answer
    })
  }

  get answered(): Answered<R, A> | undefined {
    const { answer, request } = this
    return answer === undefined ? undefined : { _tag: "Answered", request, answer, event: this.shown(answer) }
  }

  get stored(): Stored<R, A> {
    const { answer, request } = this
    return answer === undefined ? { request } : { request, answer }
  }

  /** The answer for a caller that is not the first. */
  protected again(first: A, _answer: A): Effect.Effect<A, CannotAnswer> {
    return Effect.succeed(first)
  }

  private give(answer: A): void {
    this.answer = answer
    Deferred.doneUnsafe(this.answering, Effect.succeed(answer))
  }
}

const otherParams = "The answer is about other params: its argumentsHash is not that of the request."

const decodeReply = Schema.decodeUnknownEffect(Reply, { errors: "all" })
const decodeAnswer = Schema.decodeUnknownEffect(QuestionReply, { errors: "all" })

export class OpenApproval extends Open<Request, Answer> {
  get asked(): Body {
    const { path: _path, runId: _runId, ...fields } = this.request
    return { _tag: "ApprovalRequested", ...fields }
  }

  protected shown(answer: Answer): AnswerEvent {
    const { approvalId, toolCallId } = this.request
    return { _tag: "ApprovalAnswered", approvalId, toolCallId, ...answer }
  }

  put(person: Approval.Person): Effect.Effect<unknown, unknown> {
    const { argumentsHash } = this.request
    return Effect.map(person.approve(this.request), (answer) => ({ ...answer, argumentsHash }))
  }

  protected decode(reply: unknown): Effect.Effect<Answer, CannotAnswer> {
    return Effect.gen({ self: this }, function* () {
      const { id, request } = this
      const { argumentsHash, ...answer } = yield* Effect.mapError(decodeReply(reply), invalid(id))
      if (argumentsHash !== request.argumentsHash)
        return yield* new AnswerConflict({ id, detail: otherParams })
      const { decision, params } = answer
      if (this.answer === undefined && decision === "approve" && params !== undefined)
        yield* Effect.mapError(this.check(params), invalid(id))
      return answer
    })
  }
}

export class OpenQuestion extends Open<Question, QuestionAnswer> {
  get asked(): Body {
    const { path: _path, runId: _runId, ...fields } = this.request
    return { _tag: "QuestionAsked", ...fields }
  }

  protected shown(answer: QuestionAnswer): AnswerEvent {
    const { questionId, toolCallId } = this.request
    return { _tag: "QuestionAnswered", questionId, toolCallId, ...answer }
  }

  put(person: Approval.Person): Effect.Effect<unknown, unknown> {
    return person.answer(this.request)
  }

  protected decode(reply: unknown): Effect.Effect<QuestionAnswer, CannotAnswer> {
    return Effect.gen({ self: this }, function* () {
      const { id, request } = this
      const given = yield* Effect.mapError(decodeAnswer(reply), invalid(id))
      if (given.declined === true) return { ...given, answer: null }
      const decoded = JsonSchema.decode(request.schema, given.answer)
      return Result.isFailure(decoded)
        ? yield* new InvalidAnswer({ id, detail: decoded.failure.join("\n") })
        : { ...given, answer: decoded.success }
    })
  }

  protected override again(
    first: QuestionAnswer,
    { answer, declined }: QuestionAnswer
  ): Effect.Effect<QuestionAnswer, CannotAnswer> {
    const isSame = first.declined === declined && JsonSchema.same(first.answer, answer)
    const detail = `The question has another answer: ${JSON.stringify(first)}`
    return isSame ? Effect.succeed(first) : new AnswerConflict({ id: this.id, detail })
  }
}

type AnyOpen = OpenApproval | OpenQuestion

/** A kind of request. */
type Kind<O extends AnyOpen> = new (open: O["stored"], check?: Check) => O

/** How many answers are kept for a caller that answers once more. */
const kept = 1000

export class Requests {
  private readonly byId = new Map<string, AnyOpen>()

  /** Those without an answer. */
  get open(): OpenRequests {
    const open = Array.from(this.byId.values()).filter(({ answer }) => answer === undefined)
    return {
      approvals: open.flatMap((open) => (open instanceof OpenApproval ? [open.request] : [])),
      questions: open.flatMap((open) => (open instanceof OpenQuestion ? [open.request] : []))
    }
  }

  /** Opens a request, or a known one for another run. */
  add<O extends AnyOpen>(kind: Kind<O>, given: O["stored"], check?: Check): O {
    const known = this.byId.get(idOf(given.request))
    if (known instanceof kind) {
      known.request = given.request
      if (check !== undefined) known.check = check
      return known
    }
    const answered = [...this.byId].filter(([, { answer }]) => answer !== undefined)
    for (const [id] of answered.slice(0, Math.max(0, answered.length - kept))) this.byId.delete(id)
    const open = new kind(given, check)
    this.byId.set(open.id, open)
    return open
  }

  /** Closes a request whose call has ended. One that has its answer stays, for a caller that answers once more. */
  withdraw(request: Request | Question): void {
    const id = idOf(request)
    if (this.byId.get(id)?.answer === undefined) this.byId.delete(id)
  }

  /** Opens the requests of a turn that waits for the run that resumes it. Returns the turn with the answers that have come by now. */
  restore(turn: OpenTurn, registry: ToolRegistry["Service"]): OpenTurn {
    // Of a run inside of a call only that run knows the tools: it checks the params when it continues.
    const check = ({ path, toolCallId }: Request) =>
      path === undefined ? checkOf(registry, turn.message, toolCallId) : undefined
    return {
      ...turn,
      approvals: turn.approvals.map((open) => this.add(OpenApproval, open, check(open.request)).stored),
      questions: turn.questions.map((open) => this.add(OpenQuestion, open).stored)
    }
  }

  /** Gives an answer. Plain JavaScript may give any value. `record` writes the first answer. */
  answer(
    id: string,
    reply: unknown,
    record: (event: AnswerEvent, of: Request | Question) => Effect.Effect<void> = () => Effect.void
  ): Effect.Effect<Answer | QuestionAnswer, CannotAnswer> {
    const find = this.find(id)
    return Effect.flatMap(
      find,
      (open): Effect.Effect<Answer | QuestionAnswer, CannotAnswer> =>
        open.take(reply, find, (event) => record(event, open.request))
    )
  }

  /** A request that has its answer, or that has not expired. */
  private find(id: string): Effect.Effect<AnyOpen, RequestNotFound> {
    return Effect.clockWith((clock) => {
      const open = this.byId.get(id)
      if (open === undefined) return new RequestNotFound({ id })
      const { answer, request } = open
      const { expiresAt = Infinity } = request
      const isExpired = clock.currentTimeMillisUnsafe() >= expiresAt
      return answer === undefined && isExpired ? new RequestNotFound({ id }) : Effect.succeed(open)
    })
  }
}

const unchecked: Check = () => Effect.void

const idOf = (request: Request | Question): string =>
  "approvalId" in request ? request.approvalId : request.questionId

/** Decodes params that are to replace those of a call, by its tool. */
export const checkOf =
  (registry: ToolRegistry["Service"], message: Assistant, toolCallId: string): Check =>
  (input) => {
    const call = toolCalls(message).find(({ id }) => id === toolCallId)
    return call === undefined
      ? Effect.fail({ message: "the call of the request does not exist" })
      : registry.prepare(call, { input: structuredClone(input), caseInsensitiveTools: true })
  }

const invalid =
  (id: string) =>
  ({ message }: { readonly message: string }): InvalidAnswer =>
    new InvalidAnswer({ id, detail: message })
