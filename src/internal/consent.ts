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
import type { Stopwatch } from "./limits.ts"
import type { Answer, Question, QuestionAnswer, Request } from "./openTurn.ts"
import { type Answered, type Open, OpenApproval, OpenQuestion } from "./requests.ts"
import type { Run } from "./run.ts"
import type * as Tool from "../Tool.ts"
import * as ToolOutcome from "./toolOutcome.ts"
import * as Waiting from "./waiting.ts"

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
  const { approval, question } = batch.askedAbout(call)
  // Not a question that the tool asked in the middle of its call, which runs again.
  const known = approval?.answered ?? (tool.question && question?.answered)
  if (known !== undefined) return yield* answered(batch, allowed, known)
  // The vendor asks because someone is to decide: an application without a policy has not.
  if (call.hosted === true && batch.run.waiting.policy === Approval.everything) return noPolicy
  const decision = yield* decided(batch, allowed)
  if (decision._tag !== "Decided") return decision
  const { given } = decision
  if (given.decision === "deny") return ToolOutcome.rejected(given.reason)
  if (given.decision === "allow" && tool.question === undefined) return allowed
  const end =
    tool.question === undefined
      ? yield* askApproval(batch, allowed, given.reason)
      : yield* askQuestion(batch, allowed, tool.question)
  return end._tag === "Answered" ? yield* answered(batch, allowed, end) : end
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
  const asked = batch.askedAbout(call)
  const earlier = asked.approval?.request
  const params = earlier?.params ?? structuredClone(input)
  const request: Request = {
    ...requestBase(batch, call, earlier),
    approvalId: earlier?.approvalId ?? makeRequestId("apr"),
    toolName: tool.name,
    params,
    argumentsHash: earlier?.argumentsHash ?? (yield* batch.inOrder(Json.hash(params))),
    ...(reason === undefined ? {} : { reason })
  }
  const open = () => (asked.approval = batch.requests.add(OpenApproval, { request }, batch.checkOf(call)))
  return yield* askPerson(batch, call, request, open, ToolOutcome.approvalExpired)
})

const askQuestion = Effect.fnUntraced(function* (
  batch: Batch,
  allowed: Allowed,
  questionOf: (input: any) => Pick<Question, "question" | "schema">
) {
  const { call, params } = allowed.prepared
  const made = yield* Effect.exit(
    Effect.sync(() => batch.askedAbout(call).question?.request ?? questionOf(params))
  )
  if (Exit.isFailure(made)) return ToolOutcome.rejected(firstLine(Cause.squash(made.cause)))
  const { question, schema } = made.value
  return yield* putQuestion(batch, call, { question, schema }, ToolOutcome.questionExpired)
})

/** Puts a question about a call to a person, under the id that it may have from before. */
const putQuestion = (batch: Batch, call: ToolCall, words: Words, expired: Outcome) => {
  const asked = batch.askedAbout(call)
  const { about = "question" } = words
  const request = questionAbout(batch, call, words, asked[about]?.request)
  const open = () => (asked[about] = batch.requests.add(OpenQuestion, { request }))
  return askPerson(batch, call, request, open, expired)
}

/** The call, as it may run by the answer of a person: an approval, or the answer that the call is to give. */
const answered = Effect.fnUntraced(function* (
  { earlier, run }: Batch,
  allowed: Allowed,
  { answer, event, request }: Answered<Request, Answer> | Answered<Question, QuestionAnswer>
): Effect.fn.Return<Allowed | Outcome> {
  yield* publish(run, event)
  const refused = ToolOutcome.refused(answer)
  if (refused !== undefined) return refused
  if ("answer" in answer) return { ...allowed, answer: answer.answer }
  // An approval that comes from a store may have been changed there.
  const isBound =
    earlier === undefined ||
    ("params" in request && (yield* Json.hash(request.params)) === request.argumentsHash)
  if (!isBound) return ToolOutcome.rejected("the approval is for other params")
  const approved = { ...allowed, approved: true }
  return answer.params === undefined ? approved : yield* Guards.changed(run, approved, answer.params)
})

// ───────────────────────── Calls whose end is not known

/** A call that began in a process that ended, and about which the run asks a person: it must not run again by itself. */
export interface Lost {
  readonly _tag: "Lost"
  readonly call: ToolCall
}

/** The call, if a person has answered or is to answer, else its outcome. */
export const lookAtLost = (batch: Batch, call: ToolCall): Lost | Outcome => {
  const { run } = batch
  const { hasPerson, policy } = run.waiting
  const isHarmless = run.mayRunAgain(call) || run.output?.isCall(call) === true
  const isAsked = policy.unknown === "ask" && hasPerson && !isHarmless
  return isAsked || batch.askedAbout(call).unknownEnd?.answer !== undefined
    ? { _tag: "Lost", call }
    : ToolOutcome.unknown(call)
}

/** Asks a person about the call, unless one has answered. Succeeds with `undefined` if it is to run again. */
export const askAboutLost = Effect.fnUntraced(function* (
  batch: Batch,
  call: ToolCall
): Effect.fn.Return<Outcome | NotNow | undefined> {
  const { approval, unknownEnd } = batch.askedAbout(call)
  const words = Waiting.questionOf(call, approval?.request.params ?? call.params ?? {})
  const unknown = ToolOutcome.unknown(call)
  const end = unknownEnd?.answered ?? (yield* putQuestion(batch, call, words, unknown))
  if (end._tag !== "Answered") return end._tag === "Outcome" ? unknown : end
  yield* publish(batch.run, end.event)
  return Waiting.endBy(call, end.answer)
})

// ───────────────────────── Questions in the middle of a call

/** Asks a person in the middle of a call. The call cannot wait beyond the end of the run: where the policy defers, the answer is none. */
export const askMidCall = Effect.fnUntraced(function* (
  batch: Batch,
  call: ToolCall,
  { question, schema }: Tool.Question
): Effect.fn.Return<Option.Option<Schema.Json>> {
  const { requests, run } = batch
  if (!run.waiting.hasPerson || run.waiting.defers) return Option.none()
  const request = questionAbout(batch, call, { question, schema })
  const open = requests.add(OpenQuestion, { request })
  const waiting = waitFor(batch, open, run.waiting.stopwatchOf(call.id))
  const waited = yield* Effect.ensuring(
    Effect.andThen(publish(run, open.asked), waiting),
    Effect.sync(() => requests.withdraw(open.request))
  )
  const { answered } = open
  if (answered !== undefined) yield* publish(run, answered.event)
  // A person who dies fails the tool, and one who fails gives no answer.
  else if (waited._tag === "Done") yield* Effect.option(waited.exit)
  return answered === undefined || ToolOutcome.refused(answered.answer) !== undefined
    ? Option.none()
    : Option.some(answered.answer.answer)
})

// ───────────────────────── Requests

/** The members that approvals and questions share. */
const requestBase = (
  { run }: Batch,
  { id: toolCallId }: ToolCall,
  earlier: Pick<Request, "expiresAt"> | undefined
): Pick<Request, "runId" | "path" | "toolCallId" | "expiresAt"> => {
  const { path } = run.mailbox
  const { expiresAfter = Infinity } = run.waiting.policy
  const limit = run.clock.currentTimeMillisUnsafe() + Duration.toMillis(expiresAfter)
  const { expiresAt = Infinity } = earlier ?? { expiresAt: limit }
  return {
    runId: run.id,
    ...(path === undefined ? {} : { path }),
    toolCallId,
    ...(expiresAt === Infinity ? {} : { expiresAt })
  }
}

const makeRequestId = (kind: string): string => `${kind}_${makeId().slice("msg_".length)}`

type Words = Pick<Question, "about" | "question" | "schema">

/** A question about a call, the same as an earlier one for another run. */
const questionAbout = (batch: Batch, call: ToolCall, words: Words, earlier?: Question): Question => ({
  ...requestBase(batch, call, earlier),
  questionId: earlier?.questionId ?? makeRequestId("qst"),
  ...words
})

/** Publishes an event of a request, before the person who is to answer it, or the tool that needs the answer, continues. */
const publish = ({ emit, mailbox }: Run, event: Body): Effect.Effect<void> =>
  Effect.suspend(() => {
    emit(event)
    return mailbox.delivered
  })

/** Opens a request about a call, and waits for its answer unless the policy defers it. */
const askPerson = Effect.fnUntraced(function* <R extends Request | Question, A>(
  batch: Batch,
  call: ToolCall,
  { expiresAt = Infinity }: R,
  makeOpen: () => Open<R, A>,
  expired: Outcome
): Effect.fn.Return<Answered<R, A> | Outcome | NotNow> {
  const { run } = batch
  if (!run.waiting.hasPerson) return noPerson
  if (run.clock.currentTimeMillisUnsafe() >= expiresAt) return expired
  const open = makeOpen()
  yield* publish(run, open.asked)
  if (open.answered !== undefined) return open.answered
  if (run.waiting.defers) {
    batch.defer(call)
    return { _tag: "Deferred" }
  }
  const waited = yield* waitFor(batch, open, run.waiting.stopwatch, steered(batch))
  if (open.answered !== undefined) return open.answered
  batch.requests.withdraw(open.request)
  if (waited._tag !== "Done") return waited._tag === "TimedOut" ? expired : withdrawn
  if (Exit.isSuccess(waited.exit) || Cause.hasInterruptsOnly(waited.exit.cause)) return withdrawn
  return ToolOutcome.rejected(`the approval failed: ${firstLine(Cause.squash(waited.exit.cause))}`)
})

/** Waits for the answer to a request until it expires, while the time of a stopwatch stands still. `moot` ends the wait, too. */
const waitFor = <R extends Request | Question, A>(
  { requests, run }: Batch,
  open: Open<R, A>,
  stopwatch: Stopwatch,
  moot: ReadonlyArray<Effect.Effect<unknown>> = []
) =>
  Effect.suspend(() => {
    const { asked } = run.waiting.policy
    const ask = (person: Approval.Person) =>
      Effect.flatMap(open.put(person), (reply) => requests.answer(open.id, reply))
    const person = typeof asked === "string" ? [] : [Effect.suspend(() => ask(asked))]
    const left = (open.request.expiresAt ?? Infinity) - run.clock.currentTimeMillisUnsafe()
    const waiting = Effect.raceAllFirst([Deferred.await(open.answering), ...person, ...moot])
    const until = left === Infinity ? undefined : Effect.sleep(Math.max(0, left))
    return stopwatch.held(attempt(waiting, { control: run.control, until }))
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
