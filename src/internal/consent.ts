/**
 * Asks the approval policy about a tool call that its guards allow, and a person where the policy wants one to decide. Puts the
 * question of a tool such as `ask_user` to a person, too.
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Body } from "../AgentEvent.ts"
import * as Approval from "../Approval.ts"
import * as Json from "./json.ts"
import type { Batch } from "./batch.ts"
import { firstLine } from "./failureText.ts"
import * as Guards from "./guards.ts"
import { attempt } from "./interruption.ts"
import { makeId, type ToolCall } from "../Message.ts"
import type { Answer, Question, QuestionAnswer, Request } from "./openTurn.ts"
import type { Open } from "./requests.ts"
import type * as Tool from "../Tool.ts"
import * as ToolOutcome from "./toolOutcome.ts"

type Allowed = Guards.Allowed
type Outcome = ToolOutcome.Outcome

/** The call waits for its answer beyond the end of the run, or another reason keeps it from running. */
export interface NotNow {
  readonly _tag: "Deferred" | "Withdrawn"
}

/** Whether calls of a batch may have to wait for a person. */
export const isNeeded = ({ calls, earlier, run }: Batch): boolean =>
  run.waiting.policy !== Approval.everything ||
  earlier !== undefined ||
  calls.some((call) => call.hosted === true || run.toolOf(call)?.question !== undefined)

/** Succeeds with a call that may run, or with the outcome of one that may not. */
export const ask = Effect.fnUntraced(function* (
  batch: Batch,
  allowed: Allowed
): Effect.fn.Return<Allowed | Outcome | NotNow> {
  const { call, tool } = allowed.prepared
  if (batch.run.output?.isCall(call) === true) return allowed
  const approval = batch.approvals.get(call)
  if (approval?.answer !== undefined)
    return yield* approved(batch, allowed, approval.request, approval.answer)
  const question = batch.questions.get(call)
  // Not one that the tool asked in the middle of its call, which runs again.
  if (question?.answer !== undefined && tool.question !== undefined)
    return yield* answered(batch, allowed, question.request, question.answer)
  // The vendor asks because someone is to decide: an application without a policy has not.
  if (call.hosted === true && batch.run.waiting.policy === Approval.everything) return noPolicy
  const decision = yield* decided(batch, allowed)
  if (decision._tag !== "Decided") return decision
  const { given } = decision
  if (given.decision === "deny") return ToolOutcome.rejected(given.reason)
  if (tool.question !== undefined) return yield* askQuestion(batch, allowed, tool.question)
  return given.decision === "ask" ? yield* askApproval(batch, allowed, given.reason) : allowed
})

const reason = Schema.optional(Schema.String)
const isDecision = Schema.is(
  Schema.Union([
    Schema.Struct({ decision: Schema.Literals(["allow", "ask"]), reason }),
    Schema.Struct({ decision: Schema.Literal("deny"), reason: Schema.String })
  ])
)

/** Asks the policy, which gets params of its own. Types do not reach JavaScript: a value that is no decision must not count as one that allows. */
const decided = Effect.fnUntraced(function* ({ message, run }: Batch, { prepared }: Allowed) {
  const { call, input, tool } = prepared
  const { path } = run.mailbox
  const deciding = Effect.flatMap(Guards.toolInput(run, message, prepared), ({ params }) =>
    run.waiting.policy.decide({
      runId: run.id,
      ...(path === undefined ? {} : { path }),
      toolCallId: call.id,
      toolName: tool.name,
      params,
      input: structuredClone(input),
      tool
    })
  )
  const exit = yield* Effect.exit(run.attempt(deciding))
  if (Exit.isSuccess(exit) && isDecision(exit.value)) return { _tag: "Decided", given: exit.value } as const
  if (run.control.isHalting) return withdrawn
  const fault = Exit.isSuccess(exit) ? noDecision : firstLine(Cause.squash(exit.cause))
  yield* Effect.logError("The approval policy failed", Exit.isSuccess(exit) ? fault : exit.cause)
  return ToolOutcome.rejected(`the approval policy failed: ${fault}`)
})

const noDecision = 'it gave no decision; expected "allow", "ask", or "deny" with a reason'

const askApproval = Effect.fnUntraced(function* (batch: Batch, allowed: Allowed, reason: string | undefined) {
  const { call, input, tool } = allowed.prepared
  const earlier = batch.approvals.get(call)?.request
  const params = earlier?.params ?? structuredClone(input)
  const request: Request = {
    ...requestBase(batch, call.id, earlier),
    approvalId: earlier?.approvalId ?? makeRequestId("apr"),
    toolName: tool.name,
    params,
    argumentsHash: earlier?.argumentsHash ?? (yield* batch.inOrder(Json.hash(params))),
    ...(reason === undefined ? {} : { reason })
  }
  const { approvalId, argumentsHash, path: _path, runId: _runId, ...fields } = request
  const asked = yield* askPerson<Request, Answer>(batch, {
    call,
    id: approvalId,
    request,
    event: { _tag: "ApprovalRequested", approvalId, argumentsHash, ...fields },
    open: () => batch.openApproval(call, request),
    person: (person) =>
      Effect.flatMap(person.approve(request), (answer) =>
        batch.requests.answerApproval(approvalId, { ...answer, argumentsHash })
      ),
    expired: ToolOutcome.approvalExpired
  })
  return asked._tag === "Answered" ? yield* approved(batch, allowed, request, asked.answer) : asked
})

/** The call, as it may run by the decision of a person. */
const approved = Effect.fnUntraced(function* (
  batch: Batch,
  allowed: Allowed,
  { approvalId, argumentsHash, params: requested, toolCallId }: Request,
  answer: Answer
): Effect.fn.Return<Allowed | Outcome> {
  const { run } = batch
  run.emit({ _tag: "ApprovalAnswered", approvalId, toolCallId, ...answer })
  yield* run.mailbox.delivered
  if (answer.decision === "reject") return ToolOutcome.rejected(answer.reason ?? "not approved")
  // An approval that comes from a store may have been changed there.
  const isBound = batch.earlier === undefined || (yield* Json.hash(requested)) === argumentsHash
  if (!isBound) return ToolOutcome.rejected("the approval is for other params")
  return answer.params === undefined
    ? { ...allowed, approved: true }
    : yield* Guards.changed(run, { ...allowed, approved: true }, answer.params)
})

const askQuestion = Effect.fnUntraced(function* (
  batch: Batch,
  allowed: Allowed,
  questionOf: (input: any) => Pick<Question, "question" | "schema">
) {
  const { call, params } = allowed.prepared
  const made = yield* Effect.exit(Effect.sync(() => batch.questions.get(call)?.request ?? questionOf(params)))
  if (Exit.isFailure(made)) return ToolOutcome.rejected(firstLine(Cause.squash(made.cause)))
  const { question, schema } = made.value
  const asked = yield* putQuestion(batch, call, { question, schema }, ToolOutcome.questionExpired)
  return asked._tag === "Answered" ? yield* answered(batch, allowed, asked.request, asked.answer) : asked
})

/** Puts a question about a call to a person, under the id that it may have from before. */
export const putQuestion = (
  batch: Batch,
  call: ToolCall,
  words: Pick<Question, "about" | "question" | "schema">,
  expired: Outcome
) => {
  const earlier = batch.questionsAs(words).get(call)?.request
  const questionId = earlier?.questionId ?? makeRequestId("qst")
  const request: Question = { ...requestBase(batch, call.id, earlier), questionId, ...words }
  const { path: _path, runId: _runId, ...fields } = request
  const asking = askPerson<Question, QuestionAnswer>(batch, {
    call,
    id: questionId,
    request,
    event: { _tag: "QuestionAsked", ...fields },
    open: () => batch.openQuestion(call, request),
    person: (person) =>
      Effect.flatMap(person.answer(request), (answer) => batch.requests.answerQuestion(questionId, answer)),
    expired
  })
  return Effect.map(asking, (asked) => (asked._tag === "Answered" ? { ...asked, request } : asked))
}

/** Shows the answer to a question. */
export const showAnswer = (
  { run }: Batch,
  { questionId, toolCallId }: Question,
  answer: QuestionAnswer
): Effect.Effect<void> =>
  Effect.suspend(() => {
    run.emit({ _tag: "QuestionAnswered", questionId, toolCallId, ...answer })
    return run.mailbox.delivered
  })

/** The call of a question, which runs with its answer, unless the person declined. */
const answered = Effect.fnUntraced(function* (
  batch: Batch,
  allowed: Allowed,
  question: Question,
  answer: QuestionAnswer
): Effect.fn.Return<Allowed | Outcome> {
  yield* showAnswer(batch, question, answer)
  return answer.declined === true ? ToolOutcome.declined(answer) : { ...allowed, answer: answer.answer }
})

/** The members that approvals and questions share. */
const requestBase = (
  { run }: Batch,
  toolCallId: string,
  earlier: Pick<Request, "expiresAt"> | undefined
): Pick<Request, "runId" | "path" | "toolCallId" | "expiresAt"> => {
  const { path } = run.mailbox
  const { expiresAfter } = run.waiting.policy
  const limit =
    expiresAfter === undefined
      ? undefined
      : run.clock.currentTimeMillisUnsafe() + Duration.toMillis(expiresAfter)
  const expiresAt = earlier === undefined ? limit : earlier.expiresAt
  return {
    runId: run.id,
    ...(path === undefined ? {} : { path }),
    toolCallId,
    ...(expiresAt === undefined || expiresAt === Infinity ? {} : { expiresAt })
  }
}

const makeRequestId = (kind: string): string => `${kind}_${makeId().slice("msg_".length)}`

/** A request to a person, and its words for both ends. */
interface Asking<R, A> {
  readonly call: ToolCall
  readonly id: string
  readonly request: R
  readonly event: Body
  readonly open: () => Open<R, A>
  readonly person: (person: Approval.Person) => Effect.Effect<A, unknown>
  readonly expired: Outcome
}

/** Opens a request, and waits for its answer unless the policy defers it. */
const askPerson = Effect.fnUntraced(function* <R extends Pick<Request, "expiresAt">, A>(
  batch: Batch,
  { call, event, expired, id, open, person, request }: Asking<R, A>
): Effect.fn.Return<{ readonly _tag: "Answered"; readonly answer: A } | Outcome | NotNow> {
  const { run } = batch
  const { hasPerson, policy, requests } = run.waiting
  const { asked } = policy
  if (!hasPerson || asked === "deny") return noPerson
  const left = (request.expiresAt ?? Infinity) - run.clock.currentTimeMillisUnsafe()
  if (left <= 0) return expired
  const opened = open()
  run.emit(event)
  yield* run.mailbox.delivered
  if (opened.answer !== undefined) return { _tag: "Answered", answer: opened.answer }
  if (asked === "defer" || (asked === "wait" && requests === undefined)) {
    batch.defer(call)
    return { _tag: "Deferred" }
  }
  const answering = asked === "wait" ? [] : [Effect.suspend(() => person(asked))]
  const waiting = Effect.raceAllFirst([Deferred.await(opened.answered), ...answering, ...steered(batch)])
  const waited = yield* run.waiting.stopwatch.held(
    attempt(waiting, { control: run.control, until: left === Infinity ? undefined : Effect.sleep(left) })
  )
  if (opened.answer !== undefined) return { _tag: "Answered", answer: opened.answer }
  batch.requests.withdraw(id)
  if (waited._tag !== "Done") return waited._tag === "TimedOut" ? expired : withdrawn
  if (Exit.isSuccess(waited.exit) || Cause.hasInterruptsOnly(waited.exit.cause)) return withdrawn
  return ToolOutcome.rejected(`the approval failed: ${firstLine(Cause.squash(waited.exit.cause))}`)
})

/** With `skipRemaining`, ends when a message of the user makes the call moot. */
const steered = (batch: Batch): ReadonlyArray<Effect.Effect<undefined>> => {
  const { options, queues } = batch.run
  if (options.steeringPolicy !== "skipRemaining") return []
  return [
    Effect.gen(function* () {
      while (true) {
        const { arrival } = queues
        // Messages that it has taken must not be lost by an interruption.
        yield* Effect.uninterruptible(batch.pollSteering)
        if (batch.isMoot) return undefined
        yield* arrival.await
      }
    })
  ]
}

const withdrawn: NotNow = { _tag: "Withdrawn" }

const noPolicy = ToolOutcome.rejected(
  "the vendor asks for an approval, and the application has no Approval policy that gives one"
)
const noPerson = ToolOutcome.rejected("it needs a person to answer, and this run has none")

// ───────────────────────── Questions in the middle of a call

/** Asks a person in the middle of a call. The call cannot wait beyond the end of the run: where the policy defers, the answer is none. */
export const askMidCall = Effect.fnUntraced(function* (
  batch: Batch,
  call: ToolCall,
  { question, schema }: Tool.Question
): Effect.fn.Return<Option.Option<Schema.Json>> {
  const { requests, run } = batch
  const { policy, requests: ofAgent } = run.waiting
  const { asked } = policy
  if (asked === "deny" || asked === "defer" || (asked === "wait" && ofAgent === undefined))
    return Option.none()
  const questionId = makeRequestId("qst")
  const request: Question = { ...requestBase(batch, call.id, undefined), questionId, question, schema }
  const { path: _path, runId: _runId, ...fields } = request
  const open = requests.openQuestion(request)
  run.emit({ _tag: "QuestionAsked", ...fields })
  yield* run.mailbox.delivered
  const person =
    asked === "wait"
      ? Effect.never
      : Effect.flatMap(asked.answer(request), (given) => requests.answerQuestion(questionId, given))
  const answered = yield* Effect.raceFirst(Deferred.await(open.answered), person).pipe(
    Effect.option,
    Effect.timeoutOption(policy.expiresAfter ?? Infinity),
    run.waiting.stopwatchOf(call.id).held,
    Effect.ensuring(Effect.sync(() => requests.withdraw(questionId)))
  )
  const answer = Option.flatten(answered)
  if (Option.isSome(answer)) {
    run.emit({ _tag: "QuestionAnswered", questionId, toolCallId: call.id, ...answer.value })
    yield* run.mailbox.delivered
  }
  return Option.map(
    Option.filter(answer, ({ declined }) => declined !== true),
    ({ answer }) => answer
  )
})
