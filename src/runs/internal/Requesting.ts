/**
 * Requests to a run that this process has. One that is acknowledged is kept: the next process follows it if this one ends first.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type * as Agent from "../../Agent.ts"
import * as Problem from "../../api/Problem.ts"
import type { LiveRun } from "./LiveRun.ts"
import type { Requested } from "./LogLine.ts"

/** Keeps a request that the agent has followed or is about to follow. */
const kept = (
  run: LiveRun,
  what: Requested["what"],
  reason: string | undefined
): Effect.Effect<void, Problem.StorageUnavailable> =>
  Effect.mapError(
    run.request({ what, ...(reason === undefined ? {} : { reason }) }),
    ({ message }) => new Problem.StorageUnavailable({ detail: message })
  )

/** Fails if the session has refused what the agent wrote: another process has the run, or it fails. */
export const held = (run: LiveRun): Effect.Effect<void, Problem.StorageUnavailable> =>
  Effect.suspend(() => {
    if (run.isLeft) return new Problem.StorageUnavailable({ detail: "This process has let go of the run." })
    return run.isRefused
      ? new Problem.StorageUnavailable({ detail: "The store has refused a write of the run, which fails." })
      : Effect.void
  })

/** Waits until the agent has begun the run, or this process has no more to do of it. Fails where the request would not be kept. */
const begun = (agent: Agent.Agent, run: LiveRun): Effect.Effect<void, Problem.StorageUnavailable> => {
  const isBusy = () => agent.state.getUnsafe().phase !== "idle"
  if (isBusy()) return Effect.void
  const busy = Stream.runHead(Stream.filter(agent.state.changes, ({ phase }) => phase !== "idle"))
  return Effect.andThen(Effect.raceFirst(busy, run.gone), held(run))
}

export const pause = (agent: Agent.Agent, run: LiveRun, reason?: string) =>
  Effect.andThen(begun(agent, run), Effect.andThen(agent.pause(reason), kept(run, "pause", reason)))

export const resume = (agent: Agent.Agent, run: LiveRun, reason?: string) => {
  const resumed = Effect.mapError(
    agent.resume(reason),
    ({ message }) => new Problem.RunNotReady({ runId: run.runId, detail: message })
  )
  return Effect.andThen(begun(agent, run), Effect.andThen(resumed, kept(run, "resume", reason)))
}

export const cancel = (agent: Agent.Agent, run: LiveRun, reason?: string) =>
  Effect.andThen(
    begun(agent, run),
    Effect.andThen(run.cancelledBy(agent.cancel(reason)), kept(run, "cancel", reason))
  )
