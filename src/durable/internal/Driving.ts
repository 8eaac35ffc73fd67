/**
 * The runs of a session on the worker that has it: each is brought to its end, one after another.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Semaphore from "effect/Semaphore"
import * as Problem from "../../api/Problem.ts"
import type { Service as Logs, StoredRun } from "../../runs/RunLogStore.ts"
import * as SessionProblem from "../../runs/SessionProblem.ts"
import type { Gate } from "./Gate.ts"
import type { Service as LocalRuns } from "./LocalRuns.ts"
import type { Looks } from "./Looks.ts"

/** The parts of a worker that the runs of its sessions need. */
export interface Worker {
  readonly local: LocalRuns
  readonly logs: Logs
  readonly gate: Gate
  readonly looks: Looks
}

/** The time between two looks at a run of this process. */
const glance = Schedule.spaced("50 millis")

/**
 * The time before a worker takes a run again that it has lost. A worker that was frozen learns meanwhile that others have its sessions: if
 * it did not wait, it would take them back.
 */
const settling = "5 seconds"

export class Driving {
  private readonly sessionId: string
  private readonly worker: Worker
  /** Whether the cluster has given the session to this worker. */
  private readonly isMine: () => boolean
  /** Held by the run that is driven. */
  private readonly turn = Semaphore.makeUnsafe(1)

  constructor(sessionId: string, worker: Worker, isMine: () => boolean) {
    this.sessionId = sessionId
    this.worker = worker
    this.isMine = isMine
  }

  /** Brings a run to its end. It never ends while another worker has the session. */
  drive(runId: string): Effect.Effect<void> {
    const turn = this.turn.withPermit(Effect.suspend(() => this.driveOldest(runId)))
    return Effect.asVoid(
      turn.pipe(
        Effect.tapError((error) => Effect.logWarning(`Run ${runId} waits`, error)),
        Effect.retry(Schedule.spaced(settling)),
        Effect.orDie,
        Effect.repeat({ until: (isOver) => isOver, schedule: Schedule.spaced("100 millis") }),
        Effect.annotateLogs({ runId, sessionId: this.sessionId })
      )
    )
  }

  /** Whether the run is over, after the oldest run of the session was driven. */
  private driveOldest(runId: string) {
    return Effect.gen({ self: this }, function* () {
      // The cluster has given the session to another worker, and is about to interrupt this request.
      if (!this.isMine()) return yield* Effect.never
      const runs = startable(yield* this.unended)
      const [oldest] = runs
      if (oldest === undefined || !runs.some((run) => run.runId === runId)) return true
      // The oldest run has a request of its own, which waits for the turn.
      if (oldest.runId !== runId) return false
      return yield* this.driveNow(oldest)
    })
  }

  private driveNow(run: StoredRun) {
    const { gate, local } = this.worker
    return gate.pass(run.runId, local.adopt(run)).pipe(
      Effect.flatMap((how) =>
        how === "over" ? Effect.succeed(true) : Effect.as(Effect.sleep(settling), false)
      ),
      // The run is parked, until a person resumes it. A run that waits for a parked one waits on.
      Effect.catchTag("RunNotReady", (error) =>
        error.runId === run.runId ? Effect.succeed(true) : Effect.fail(error)
      )
    )
  }

  /** The runs of the session that are not over, the oldest first. */
  private readonly unended = Effect.suspend(() =>
    SessionProblem.logging(this.worker.logs.active(this.sessionId))
  )

  private readonly isLive = Effect.sync(() => this.worker.local.active(this.sessionId) !== undefined)

  /** Waits until the run that the session has is one of this process, or there is none. It does not wait at the gate. */
  readonly caughtUp: Effect.Effect<void, Problem.StorageUnavailable> = Effect.flatMap(this.isLive, (is) =>
    is ? Effect.void : Effect.flatMap(this.unended, (runs) => this.caughtUpWith(runs))
  )

  /** As `caughtUp`, with the runs of the session that are not over. */
  caughtUpWith(unended: ReadonlyArray<StoredRun>): Effect.Effect<void, Problem.StorageUnavailable> {
    return Effect.suspend(() => {
      const { local } = this.worker
      const [oldest] = startable(unended)
      if (oldest === undefined || local.active(this.sessionId) !== undefined) return Effect.void
      return Effect.raceFirst(
        Effect.asVoid(Effect.mapError(local.adopt(oldest), unavailable)),
        Effect.asVoid(Effect.repeat(this.isLive, { until: (is) => is, schedule: glance }))
      )
    })
  }
}

const startable = (runs: ReadonlyArray<StoredRun>) => runs.filter(({ parked }) => parked === undefined)

const unavailable = ({ message }: { readonly message: string }) =>
  new Problem.StorageUnavailable({ detail: message })
