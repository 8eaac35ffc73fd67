/**
 * Answers to the requests of runs. The run that continues is the live one, or a new one for a run that is suspended.
 */
import * as Effect from "effect/Effect"
import * as Struct from "effect/Struct"
import type * as Agent from "../../Agent.ts"
import type * as Payload from "../../api/Payload.ts"
import * as Problem from "../../api/Problem.ts"
import * as Approval from "../../Approval.ts"
import * as JsonSchema from "../../internal/jsonSchema.ts"
import type { Conversation } from "./Conversation.ts"
import * as History from "../History.ts"
import type { Host } from "./Host.ts"
import * as Requesting from "./Requesting.ts"
import * as Resuming from "./Resuming.ts"
import type { RunState } from "./RunState.ts"
import type { RunKey } from "../RunLogStore.ts"
import type { Service } from "../Runs.ts"
import * as SessionProblem from "../SessionProblem.ts"

type Answers = Pick<Service, "approve" | "answer">

/** The functions of the service that answer requests. */
export const make = (host: Host): Answers => ({
  approve: (runId, approvalId, answer) => {
    const first = ({ decision }: Pick<Payload.Decided, "decision">) =>
      decision === answer.decision
        ? Effect.succeed({ decision })
        : conflict(approvalId, runId, `The call has another decision: ${decision}`)
    return answered(host, runId, {
      requestId: approvalId,
      give: (agent) =>
        Effect.flatMap(Effect.mapError(agent.answer(approvalId, answer), problem(runId)), first),
      find: ({ decisions }) => {
        const known = decisions.get(approvalId)
        if (known === undefined) return new Approval.RequestNotFound({ id: approvalId, runId })
        return known.argumentsHash === answer.argumentsHash
          ? first(known)
          : conflict(
              approvalId,
              runId,
              "The answer is about other params: its argumentsHash is not that of the request."
            )
      }
    })
  },
  answer: (runId, questionId, answer) =>
    answered(host, runId, {
      requestId: questionId,
      give: (agent) =>
        Effect.mapBoth(agent.answer(questionId, answer), {
          onFailure: problem(runId),
          onSuccess: shown
        }),
      find: ({ answers }) => {
        const first = answers.get(questionId)
        if (first === undefined) return new Approval.RequestNotFound({ id: questionId, runId })
        const isSame =
          "answer" in answer
            ? first.declined !== true && JsonSchema.same(first.answer, answer.answer)
            : first.declined === true
        if (isSame) return Effect.succeed(shown(first))
        return conflict(questionId, runId, `The question has another answer: ${JSON.stringify(shown(first))}`)
      }
    })
})

const conflict = (id: string, runId: string, detail: string) =>
  new Approval.AnswerConflict({ id, runId, detail })

const shown = (answer: Approval.QuestionAnswer) => Struct.pick(answer, ["answer", "declined", "reason"])

interface Answer<A> {
  /** The approval or the question. */
  readonly requestId: string
  readonly give: (agent: Agent.Agent) => Effect.Effect<A, Approval.CannotAnswer>
  /** Finds the first answer in a run that knows it. */
  readonly find: (state: RunState) => Effect.Effect<A, Approval.RequestNotFound | Approval.AnswerConflict>
}

const answered = <A extends Pick<Payload.Decided, "decision"> | Pick<Payload.Answered, "answer">>(
  host: Host,
  runId: string,
  answer: Answer<A>
) =>
  Effect.gen(function* () {
    const live = yield* liveRun(host, runId)
    const run = live ?? (yield* host.stored(runId))
    const conversation = host.conversation(run.sessionId)
    const { agent } = conversation
    if (live !== undefined && agent !== undefined) {
      if (!live.log.state.hasAsked(answer.requestId))
        return yield* new Approval.RequestNotFound({ id: answer.requestId, runId })
      const found = yield* Effect.catch(answer.give(agent), first(answer, live.log.state))
      // The process may have let go of a run that waits while the answer was under way.
      if (!live.isLeft) return yield* Effect.as(Requesting.held(live), { ...found, runId })
    }
    return yield* host.locked(run.sessionId, (conversation) => answerLate(host, conversation, run, answer))
  })

/** The first answer to a request that the agent no longer has. */
const first =
  <A>({ find }: Answer<A>, state: RunState) =>
  (failure: Approval.CannotAnswer): Effect.Effect<A, Approval.CannotAnswer> =>
    failure._tag === "RequestNotFound" ? find(state) : Effect.fail(failure)

/** A run that takes answers: one that has shown its end takes none. */
const liveRun = (host: Host, runId: string) => Effect.map(host.settled(runId), () => host.runs.get(runId))

/** Answers a request of a run that has ended, or that this process did not have. */
const answerLate = <A>(host: Host, conversation: Conversation, run: RunKey, answer: Answer<A>) =>
  Effect.gen(function* () {
    const { runId } = run
    yield* host.ready
    const agent = yield* opened(conversation, runId)
    const live = host.runs.get(runId)
    const state =
      live?.log.state ??
      (yield* SessionProblem.logging(History.logOf(host.parts, yield* host.stored(runId)))).log.state
    if (!state.hasAsked(answer.requestId)) return yield* elsewhere(host, run, answer.requestId)
    const wasOpen = yield* Resuming.isAsking(agent)
    const given = yield* Effect.result(answer.give(agent))
    if (given._tag === "Failure") {
      const found = yield* first(answer, state)(given.failure)
      return { ...found, runId: (yield* host.history.continuing(run))?.runId ?? runId }
    }
    const { current } = conversation
    if (current !== undefined) return { ...given.success, runId: current.runId }
    const last = yield* host.history.continuing(run)
    // A restart may have come before the run that the answer was to begin.
    const isLeft = last?.status === "suspended"
    const next = wasOpen || isLeft ? yield* Resuming.resume(host, conversation, agent) : undefined
    return { ...given.success, runId: next ?? last?.runId ?? runId }
  })

/** The problem of a request that a run did not make: the run that continues it may have. */
const elsewhere = (host: Host, run: RunKey, requestId: string) =>
  Effect.flatMap(host.history.continuing(run), (last) => {
    const { runId } = run
    const { approvals = [], questions = [] } = last?.pending ?? {}
    const isOfLast =
      last !== undefined &&
      last.runId !== runId &&
      (approvals.some(({ approvalId }) => approvalId === requestId) ||
        questions.some(({ questionId }) => questionId === requestId))
    const detail = isOfLast
      ? { detail: `Run ${last.runId} continues this one, and asks: answer that one.` }
      : {}
    return new Approval.RequestNotFound({ id: requestId, runId, ...detail })
  })

const opened = (conversation: Conversation, runId: string) =>
  Effect.catchTags(conversation.open, {
    SessionNotFound: () => new Problem.RunNotFound({ runId }),
    MalformedRequest: ({ detail = "" }) => new Problem.StorageUnavailable({ detail })
  })

const problem =
  (runId: string) =>
  (error: Approval.CannotAnswer): Approval.CannotAnswer => {
    const { id } = error
    if (error._tag === "RequestNotFound") return new Approval.RequestNotFound({ id, runId })
    const { detail } = error
    return error._tag === "AnswerConflict"
      ? new Approval.AnswerConflict({ id, runId, detail })
      : new Approval.InvalidAnswer({ id, runId, detail })
  }
