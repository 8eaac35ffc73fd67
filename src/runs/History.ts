/**
 * The runs of a store as their logs show them, and those that this process has.
 */
import * as Effect from "effect/Effect"
import type * as Payload from "../api/Payload.ts"
import * as Problem from "../api/Problem.ts"
import * as LogLine from "./internal/LogLine.ts"
import { RunLog } from "./internal/RunLog.ts"
import { unpacked } from "./internal/Packing.ts"
import * as RunList from "./internal/RunList.ts"
import { type RunKey, RunLogError, type Service, type StoredRun } from "./RunLogStore.ts"
import type { RunPage } from "./Runs.ts"
import * as SessionProblem from "./SessionProblem.ts"
import type * as SessionStore from "../sessions/SessionStore.ts"

interface Stored extends RunKey {
  readonly created: number
  readonly log: RunLog
  /** Whether the store has a line of it. */
  readonly isThere: boolean
}

const nowhere = () => Effect.void

/** The stores of a run. */
export interface Stores {
  readonly logs: Service
  readonly sessions: SessionStore.Service
}

/** The log of a run, as the stores have it. */
export const linesOf = Effect.fnUntraced(function* (
  { logs, sessions }: Stores,
  run: StoredRun
): Effect.fn.Return<LogLine.StoredLog & { readonly isThere: boolean }, RunLogError> {
  const { range, runId, sessionId } = run
  const lines = yield* logs.read(run)
  const inSession =
    range === undefined
      ? []
      : yield* Effect.catch(sessions.log(sessionId, runId, range), (error) =>
          error.reason._tag === "Missing"
            ? Effect.succeed([])
            : Effect.fail(new RunLogError({ detail: error.message }))
        )
  const stored = LogLine.read(lines, unpacked(inSession))
  const isThere = lines.length + inSession.length > 0
  return { ...stored, created: stored.created === 0 ? run.created : stored.created, isThere }
})

/** The log of a run, as the stores have it. */
export const logOf = (stores: Stores, run: StoredRun): Effect.Effect<Stored, RunLogError> =>
  Effect.map(linesOf(stores, run), ({ isThere, ...stored }) => {
    const log = new RunLog(nowhere, stored)
    log.close()
    return { ...run, created: stored.created, log, isThere }
  })

/** A run, and the one whose open turn it began with. */
interface Known {
  readonly info: Payload.Run
  readonly resumes: string | undefined
}

/** The most runs that are remembered. */
const most = 1000

type Reading<A, E = never> = Effect.Effect<A, E | Problem.StorageUnavailable>

export class History {
  private readonly stores: Stores
  private readonly live: (runId: string) => Known | undefined
  /** Runs whose logs are complete: they are read once. */
  private readonly ended = new Map<string, Known>()

  /** `live`: a run that this process has. */
  constructor(stores: Stores, live: (runId: string) => Known | undefined) {
    this.stores = stores
    this.live = live
  }

  /** A run; `undefined` if it was removed meanwhile. */
  private read(run: StoredRun): Effect.Effect<Known | undefined, RunLogError> {
    return Effect.suspend(() => {
      const { ended, parked, runId, sessionId } = run
      const live = this.live(runId)
      if (live !== undefined) return Effect.succeed(live)
      const known = this.ended.get(runId)
      if (known !== undefined) return Effect.succeed(known)
      return Effect.map(logOf(this.stores, run), ({ created, isThere, log: { state } }) => {
        if (!isThere) return undefined
        const info = RunList.shown(parked, state.of(runId, sessionId, created))
        const found = { info, resumes: state.resumes }
        if (ended !== undefined) this.remember(found)
        return found
      })
    })
  }

  private remember(run: Known): void {
    const [oldest] = this.ended.keys()
    if (this.ended.size >= most && oldest !== undefined) this.ended.delete(oldest)
    this.ended.set(run.info.runId, run)
  }

  /** The runs of a session, the oldest first, without the requests that other runs have taken over. */
  list(sessionId: string): Reading<ReadonlyArray<Payload.Run>> {
    const all = Effect.flatMap(this.stores.logs.list(sessionId), (runs) =>
      Effect.forEach(runs, (run) => this.read(run), { concurrency: 4 })
    )
    return Effect.map(SessionProblem.logging(all), (read) => {
      const runs = read.flatMap((run) => run ?? [])
      const next = new Map(
        runs.flatMap(({ info, resumes }) => (resumes === undefined ? [] : [[resumes, info.runId]]))
      )
      return runs
        .map(({ info }) => resumedBy(info, next.get(info.runId)))
        .toSorted((left, right) => left.created - right.created)
    })
  }

  /** A run. */
  get(runId: string): Reading<Payload.Run, Problem.RunNotFound> {
    return Effect.gen({ self: this }, function* () {
      const live = this.live(runId)
      if (live !== undefined) return live.info
      const run = yield* SessionProblem.logging(this.stores.logs.find(runId))
      if (run === undefined) return yield* new Problem.RunNotFound({ runId })
      const found = yield* SessionProblem.logging(this.read(run))
      return found === undefined
        ? yield* new Problem.RunNotFound({ runId })
        : yield* this.withNext(found.info)
    })
  }

  /** A page of the runs of all sessions, the newest first. */
  page(page: RunPage): Reading<Payload.Runs, Problem.MalformedRequest> {
    const read = (run: StoredRun) =>
      Effect.flatMap(SessionProblem.logging(this.read(run)), (found) =>
        found === undefined ? Effect.undefined : this.withNext(found.info)
      )
    return RunList.page(this.stores.logs, read, page)
  }

  /** A run with the one that resumed it. */
  private withNext(run: Payload.Run): Reading<Payload.Run> {
    if (run.status !== "suspended") return Effect.succeed(run)
    return Effect.map(this.list(run.sessionId), (all) => all.find(({ runId }) => runId === run.runId) ?? run)
  }

  /** The run that continues a run: the run itself, unless another one resumed it. */
  continuing({ runId, sessionId }: RunKey): Reading<Payload.Run | undefined> {
    return Effect.map(this.list(sessionId), (all) => {
      const byId = new Map(all.map((run) => [run.runId, run]))
      let run = byId.get(runId)
      while (run?.resumedBy !== undefined) run = byId.get(run.resumedBy)
      return run
    })
  }
}

/** A run that another one may have resumed, and with it its requests. */
const resumedBy = (run: Payload.Run, next: string | undefined): Payload.Run =>
  next === undefined ? run : { ...run, pending: { approvals: [], questions: [] }, resumedBy: next }
