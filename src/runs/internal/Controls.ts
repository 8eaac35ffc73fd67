/**
 * The requests that control a run. A run that no process has is taken first.
 */
import * as Effect from "effect/Effect"
import type * as Agent from "../../Agent.ts"
import * as Problem from "../../api/Problem.ts"
import type { Host } from "./Host.ts"
import type { LiveRun } from "./LiveRun.ts"
import * as Requesting from "./Requesting.ts"
import type * as Runs from "../Runs.ts"
import * as SessionProblem from "../SessionProblem.ts"

type Controls = Pick<Runs.Service, "steer" | "followUp" | "pause" | "resume" | "cancel">

/** The functions of the service that control runs. */
export const make = (host: Host): Controls => {
  const running = (runId: string, isUnparked = false) =>
    Effect.flatMap(find(host, runId, isUnparked), (run) => {
      const conversation = host.conversation(run.sessionId)
      const { agent } = conversation
      return agent === undefined || conversation.current !== run
        ? new Problem.RunNotReady({ runId, detail: "The run waits for the one before it." })
        : Effect.succeed({ agent, run })
    })
  const sent = (runId: string, send: (agent: Agent.Agent) => Effect.Effect<void>) =>
    Effect.flatMap(running(runId), ({ agent, run }) => Effect.andThen(send(agent), Requesting.held(run)))
  return {
    steer: (runId, message, options) => sent(runId, (agent) => agent.steer(message, options)),
    followUp: (runId, message) => sent(runId, (agent) => agent.followUp(message)),
    pause: (runId, reason) =>
      Effect.flatMap(running(runId), ({ agent, run }) => Requesting.pause(agent, run, reason)),
    resume: (runId, reason) =>
      Effect.flatMap(parked(host, runId), (wasParked) =>
        wasParked
          ? Effect.asVoid(find(host, runId, true))
          : Effect.flatMap(running(runId), ({ agent, run }) => Requesting.resume(agent, run, reason))
      ),
    cancel: (runId, reason) => Effect.flatMap(find(host, runId, true), (run) => cancel(host, run, reason))
  }
}

/** Whether a run is parked. */
const parked = (host: Host, runId: string) =>
  host.runs.has(runId)
    ? Effect.succeed(false)
    : Effect.map(host.stored(runId), (run) => run.ended === undefined && run.parked !== undefined)

/** A run that has not ended. One that is parked is started again if `isUnparked`. */
const find = Effect.fnUntraced(function* (host: Host, runId: string, isUnparked: boolean) {
  const live = host.runs.get(runId)
  if (live !== undefined) return live
  const { ended, parked, sessionId } = yield* host.stored(runId)
  if (ended !== undefined) return yield* new Problem.RunOver({ runId })
  if (parked !== undefined && !isUnparked)
    return yield* new Problem.RunNotReady({ runId, detail: `The run waits for resume: ${parked}` })
  if (host.isDraining)
    return yield* new Problem.RunNotReady({ runId, detail: "No process has the run at this moment." })
  if (parked !== undefined) yield* SessionProblem.logging(host.parts.logs.unpark(runId))
  yield* Effect.catchTags(
    host.locked(sessionId, ({ open }) => open),
    {
      SessionLocked: ({ detail = "" }) =>
        new Problem.RunNotReady({ runId, detail: `Another process has the run: ${detail}` }),
      SessionNotFound: () => new Problem.RunNotFound({ runId }),
      MalformedRequest: ({ detail = "" }) => new Problem.StorageUnavailable({ detail })
    }
  )
  return host.runs.get(runId) ?? (yield* new Problem.RunOver({ runId }))
})

/** Cancels a run of this process. */
export const cancel = (host: Host, run: LiveRun, reason?: string) =>
  Effect.suspend(() => {
    const conversation = host.conversation(run.sessionId)
    const { agent } = conversation
    if (conversation.current !== run)
      return Effect.asVoid(conversation.cancelQueued((queued) => queued === run))
    return agent === undefined ? Effect.void : Requesting.cancel(agent, run, reason)
  })
