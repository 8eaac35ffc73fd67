/**
 * Answers to the requests of runs. The run that continues is the live one, or a new one for a run that is suspended.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Struct from "effect/Struct"
import type * as Agent from "../Agent.ts"
import type * as Payload from "../api/Payload.ts"
import * as Problem from "../api/Problem.ts"
import type * as Approval from "../Approval.ts"
import type { Conversation } from "./Conversation.ts"
import * as History from "./History.ts"
import type { Host } from "./Host.ts"
import * as Requesting from "./Requesting.ts"
import * as Resuming from "./Resuming.ts"
import type { RunState } from "./RunState.ts"
import type { RunKey } from "./RunLogStore.ts"
import type { Service } from "./Runs.ts"
import * as SessionProblem from "./SessionProblem.ts"

type Answers = Pick<Service, "approve" | "answer">

/** The functions of the service that answer requests. */
export const make = (host: Host): Answers => ({
  approve: (runId, approvalId, answer) =>
    answered(host, runId, {
      give: (agent) => Effect.map(agent.answer(approvalId, answer), ({ decision }) => ({ decision })),
      find: ({ decisions }) => {
        const first = decisions.get(approvalId)
        if (first === undefined) return new Problem.RequestNotFound({ runId })
        const { argumentsHash, decision } = first
        const detail = "The answer is about other params: its argumentsHash is not that of the request."
        if (argumentsHash !== answer.argumentsHash) return new Problem.AnswerConflict({ runId, detail })
        return Effect.succeed({ decision })
      }
    }),
  answer: (runId, questionId, answer) =>
    answered(host, runId, {
      give: (agent) => Effect.map(agent.answerQuestion(questionId, answer), shown),
      find: ({ answers }) => {
        const first = answers.get(questionId)
        if (first === undefined) return new Problem.RequestNotFound({ runId })
        const isSame =
          "answer" in answer
            ? first.declined !== true && JSON.stringify(first.answer) === JSON.stringify(answer.answer)
            : first.declined === true
        if (isSame) return Effect.succeed(shown(first))
        const detail = "The question has another answer already."
        return new Problem.AnswerConflict({ runId, detail })
      }
    })
})

const shown = (answer: Approval.QuestionAnswer) => Struct.pick(answer, ["answer", "declined", "reason"])

interface Answer<A> {
  readonly give: (agent: Agent.Agent) => Effect.Effect<A, Approval.CannotAnswer>
  /** Finds the first answer in a run that knows it. */
  readonly find: (state: RunState) => Effect.Effect<A, Problem.RequestNotFound | Problem.AnswerConflict>
}

const answered = <A extends Pick<Payload.Decided, "decision"> | Pick<Payload.Answered, "answer">>(
  host: Host,
  runId: string,
  answer: Answer<A>
) =>
  Effect.gen(function* () {
    const live = yield* liveRun(host, runId)
    const run = live ?? (yield* host.stored(runId))
    const agent = live === undefined ? undefined : host.conversation(run.sessionId).agent
    if (live !== undefined && agent !== undefined) {
      const given = Effect.mapError(answer.give(agent), problem(runId))
      const again = Effect.catchTag(given, "RequestNotFound", () => answer.find(live.log.state))
      const found = yield* again
      yield* Requesting.held(live)
      return { ...found, runId }
    }
    return yield* host.locked(run.sessionId, (conversation) => answerLate(host, conversation, run, answer))
  })

/** A run that takes answers: one that has shown its end takes none. */
const liveRun = (host: Host, runId: string) =>
  Effect.gen(function* () {
    const live = host.runs.get(runId)
    if (live?.log.state.isOver !== true) return live
    yield* Deferred.await(live.done)
    return undefined
  })

/** Answers a request of a run that has ended. */
const answerLate = <A>(host: Host, conversation: Conversation, run: RunKey, answer: Answer<A>) =>
  Effect.gen(function* () {
    const { runId } = run
    yield* host.ready
    const agent = yield* opened(conversation, runId)
    const wasOpen = yield* Resuming.isAsking(agent)
    const given = yield* Effect.result(Effect.mapError(answer.give(agent), problem(runId)))
    if (given._tag === "Failure") {
      if (given.failure._tag !== "RequestNotFound") return yield* given.failure
      const { log } = yield* SessionProblem.logging(History.logOf(host.parts.logs, run))
      const found = yield* answer.find(log.state)
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

const opened = (conversation: Conversation, runId: string) =>
  Effect.catchTags(conversation.open, {
    SessionNotFound: () => new Problem.RunNotFound({ runId }),
    InvalidRequest: ({ detail = "" }) => new Problem.StorageUnavailable({ detail })
  })

const problem =
  (runId: string) =>
  (
    error: Approval.CannotAnswer
  ): Problem.RequestNotFound | Problem.AnswerConflict | Problem.AnswerInvalid => {
    if (error._tag === "RequestNotFound") return new Problem.RequestNotFound({ runId })
    const { detail } = error
    return error._tag === "AnswerConflict"
      ? new Problem.AnswerConflict({ runId, detail })
      : new Problem.AnswerInvalid({ runId, detail })
  }
