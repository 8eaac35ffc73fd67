/**
 * The runs that continue suspended ones.
 */
import * as Effect from "effect/Effect"
import type * as Agent from "../../Agent.ts"
import type * as Problem from "../../api/Problem.ts"
import type { Conversation } from "./Conversation.ts"
import type { LiveRun } from "./LiveRun.ts"

/** The part of the host of runs that begins one. */
interface Host {
  readonly ready: Effect.Effect<void, Problem.Draining>
  readonly newRun: (sessionId: string) => Effect.Effect<LiveRun>
}

/** Continues what is suspended in a run of its own, and succeeds with its id once it has begun. Needs the lock, and that there is no run. */
export const resume = (host: Host, conversation: Conversation, agent: Agent.Agent) =>
  Effect.gen(function* () {
    yield* host.ready
    const run = yield* host.newRun(conversation.sessionId)
    yield* conversation.resume(run, agent)
    return run.runId
  })

/** Whether a request to a person waits. */
export const isAsking = (agent: Agent.Agent) => Effect.map(waiting(agent), ({ size }) => size > 0)

const waiting = (agent: Agent.Agent) =>
  Effect.map(
    agent.requests,
    ({ approvals, questions }) =>
      new Set([
        ...approvals.map(({ approvalId }) => approvalId),
        ...questions.map(({ questionId }) => questionId)
      ])
  )

/** Continues a suspended run if an answer came that it no longer took. Needs the lock, and that there is no run. */
export const resumeAnswered = (host: Host, conversation: Conversation, agent: Agent.Agent, run: LiveRun) =>
  Effect.gen(function* () {
    const { approvals, questions } = run.info.pending
    const asked = [
      ...approvals.map(({ approvalId }) => approvalId),
      ...questions.map(({ questionId }) => questionId)
    ]
    const open = yield* waiting(agent)
    if (asked.every((id) => open.has(id))) return
    yield* Effect.ignore(resume(host, conversation, agent), { log: "Warn" })
  })
