/**
 * The sessions that the cluster gives to this process, on agents of this process.
 */
import type { Sharding } from "effect/cluster/Sharding"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Agents } from "../../runs/Agents.ts"
import * as LiveRuns from "../../runs/LiveRuns.ts"
import type { RunLogError, RunLogStore } from "../../runs/RunLogStore.ts"
import * as MessageIds from "../../runs/MessageIds.ts"
import * as SessionProblem from "../../runs/SessionProblem.ts"
import { SessionStore, type Service as Sessions } from "../../sessions/SessionStore.ts"
import { Gate } from "./Gate.ts"
import { LocalRuns } from "./LocalRuns.ts"
import * as SessionHandlers from "./SessionHandlers.ts"

export interface Options extends LiveRuns.Options {
  readonly concurrency: number
}

const local = (options: LiveRuns.HostOptions, gate: Gate) =>
  Layer.effect(
    LocalRuns,
    Effect.gen(function* () {
      const sessions = yield* SessionStore
      const { host, runs } = yield* LiveRuns.make({
        ...options,
        adopts: true,
        places: gate
      })
      return LocalRuns.of({
        runs,
        adopt: (run) => host.adopt(run),
        leave: (sessionId) => host.leave(sessionId),
        active: (sessionId) => host.active(sessionId)?.runId,
        owed: (runId) => {
          const run = host.runs.get(runId)
          return run?.isOwed === true ? run.info : undefined
        },
        isCalling: (sessionId) => {
          const agent = host.active(sessionId) && host.conversation(sessionId).agent
          return agent !== undefined && agent.state.getUnsafe().pendingToolCalls.size > 0
        },
        messageIds: (sessionId) => messageIds(sessions, sessionId)
      })
    })
  )

const messageIds = (sessions: Sessions, sessionId: string) =>
  Effect.mapBoth(sessions.read(sessionId), {
    onFailure: SessionProblem.unavailable,
    onSuccess: ({ entries }) => MessageIds.of(entries)
  })

export const layer = ({
  concurrency,
  ...options
}: Options): Layer.Layer<LocalRuns, RunLogError, Agents | SessionStore | RunLogStore | Sharding> =>
  Layer.suspend(() => {
    const gate = new Gate(concurrency)
    return Layer.provideMerge(SessionHandlers.layer(gate), local(options, gate))
  })
