/**
 * The runs of a session that have ended, read from their logs once.
 */
import * as Effect from "effect/Effect"
import type * as Payload from "../api/Payload.ts"
import * as LogLine from "./LogLine.ts"
import { RunLog } from "./RunLog.ts"
import type { RunKey, RunLogError, Service } from "./RunLogStore.ts"

interface Ended extends RunKey {
  readonly created: number
  readonly log: RunLog
}

const nowhere = () => Effect.void

/** The log of a run that has ended. */
export const logOf = (store: Service, run: RunKey): Effect.Effect<Ended, RunLogError> =>
  Effect.map(store.read(run), (lines) => {
    const stored = LogLine.read(lines)
    const log = new RunLog(nowhere, stored)
    log.close()
    return { ...run, created: stored.created, log }
  })

/** A run that another one may have resumed, and with it its requests. */
export const resumedBy = (run: Payload.Run, next: string | undefined): Payload.Run =>
  next === undefined ? run : { ...run, pending: { approvals: [], questions: [] }, resumedBy: next }

/** The most sessions whose runs are remembered. */
const remembered = 100

/** The logs of a session while they are read. */
class Reading {
  readonly sessionId: string
  /** The runs that have ended meanwhile. */
  readonly added: Array<Payload.Run> = []
  /** Whether runs were removed meanwhile. */
  isVoid = false

  constructor(sessionId: string) {
    this.sessionId = sessionId
  }
}

export class History {
  private readonly store: Service
  private readonly bySession = new Map<string, Map<string, Payload.Run>>()
  private readonly readings = new Set<Reading>()
  /** The runs that resumed others, by their sessions. */
  private readonly resumed = new Map<string, Map<string, string>>()

  constructor(store: Service) {
    this.store = store
  }

  /** The ended runs of a session, by their ids. */
  of(sessionId: string): Effect.Effect<ReadonlyMap<string, Payload.Run>, RunLogError> {
    return Effect.suspend(() => {
      const known = this.bySession.get(sessionId)
      if (known !== undefined) return Effect.succeed(known)
      const reading = new Reading(sessionId)
      this.readings.add(reading)
      return Effect.ensuring(
        this.read(reading),
        Effect.sync(() => void this.readings.delete(reading))
      )
    })
  }

  private read(reading: Reading): Effect.Effect<ReadonlyMap<string, Payload.Run>, RunLogError> {
    return Effect.gen({ self: this }, function* () {
      const { sessionId } = reading
      const logs = yield* Effect.forEach(yield* this.store.list(sessionId), (run) => logOf(this.store, run), {
        concurrency: 4
      })
      if (reading.isVoid) return yield* this.of(sessionId)
      const runs = new Map<string, Payload.Run>()
      for (const { created, log, runId } of logs) {
        if (log.state.isOver) runs.set(runId, log.state.of(runId, sessionId, created))
      }
      for (const run of reading.added) runs.set(run.runId, run)
      if (this.bySession.size >= remembered) {
        this.bySession.clear()
        this.resumed.clear()
      }
      for (const { log, runId } of logs)
        if (log.state.resumes !== undefined) this.resume(sessionId, log.state.resumes, runId)
      this.bySession.set(sessionId, runs)
      return runs
    })
  }

  /** The logs of a session that are read now. */
  private readingsOf(sessionId: string): ReadonlyArray<Reading> {
    return [...this.readings].filter((reading) => reading.sessionId === sessionId)
  }

  /** Adds a run that has ended. */
  add(run: Payload.Run): void {
    this.bySession.get(run.sessionId)?.set(run.runId, run)
    for (const { added } of this.readingsOf(run.sessionId)) added.push(run)
  }

  /** Keeps the run that resumes another one. */
  resume(sessionId: string, suspended: string, runId: string): void {
    const resumed = this.resumed.get(sessionId) ?? new Map<string, string>()
    this.resumed.set(sessionId, resumed.set(suspended, runId))
  }

  /** The run that continues a run: the run itself, unless another one resumed it. */
  continuing({ runId, sessionId }: RunKey): string {
    const next = this.resumed.get(sessionId)?.get(runId)
    return next === undefined ? runId : this.continuing({ runId: next, sessionId })
  }

  /** A run as the API shows it. */
  current(run: Payload.Run): Payload.Run {
    return resumedBy(run, this.resumed.get(run.sessionId)?.get(run.runId))
  }

  forget(sessionId: string): void {
    this.bySession.delete(sessionId)
    this.resumed.delete(sessionId)
    for (const reading of this.readingsOf(sessionId)) reading.isVoid = true
  }
}
