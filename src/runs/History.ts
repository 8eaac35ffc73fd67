/**
 * The runs of a store as their logs show them, and those that this process has.
 */
import * as Effect from "effect/Effect"
import * as Payload from "../api/Payload.ts"
import * as Problem from "../api/Problem.ts"
import * as LogLine from "./internal/LogLine.ts"
import { RunLog } from "./internal/RunLog.ts"
import {
  type RunKey,
  RunLogError,
  type Service,
  type StoredRun,
  type Service as Logs,
  type NewestOptions
} from "./RunLogStore.ts"
import type { RunPage } from "./Runs.ts"
import * as SessionProblem from "./SessionProblem.ts"
import type * as SessionStore from "../sessions/SessionStore.ts"
import * as Deferred from "effect/Deferred"
import { defect } from "../internal/failureReason.ts"

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
  const stored = LogLine.read(lines, LogLine.unpacked(inSession))
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
        const info = withParked(parked, state.of(runId, sessionId, created))
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
    return pageOf(this.stores.logs, read, page)
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

// ───────────────────────── Health

/** The time that the store has to answer. */
const writeLimit = "2 seconds"

/**
 * Makes the probe of a store, which writes a line and removes it. All that ask at one time share one write, also where a database that does
 * not answer holds it for long.
 */
export const probe = (logs: Logs): Effect.Effect<void, Problem.StorageUnavailable> => {
  // No session has this id, whatever ids clients choose: its removal would take the runs of a session.
  const sessionId = `_health-${crypto.randomUUID()}`
  const write = Effect.andThen(logs.addKey(sessionId, "{}"), logs.remove(sessionId))
  let running: Deferred.Deferred<void, RunLogError> | undefined
  const shared = Effect.suspend(() => {
    if (running !== undefined) return Deferred.await(running)
    const made = Deferred.makeUnsafe<void, RunLogError>()
    running = made
    const done = Effect.onExit(write, (exit) => {
      running = undefined
      return Deferred.done(made, exit)
    })
    return Effect.andThen(
      Effect.forkDetach(Effect.ignore(done), { startImmediately: true }),
      Deferred.await(made)
    )
  })
  return Effect.timeoutOrElse(SessionProblem.logging(shared), {
    duration: writeLimit,
    orElse: () =>
      new Problem.StorageUnavailable({ detail: `The store has not answered within ${writeLimit}.` })
  })
}

// ───────────────────────── Removal

/** Removes the log of a run that has ended, and succeeds with the run. */
export const remove = (
  logs: Logs,
  runId: string
): Effect.Effect<RunKey, Problem.RunNotFound | Problem.RunGoesOn | Problem.StorageUnavailable> =>
  Effect.gen(function* () {
    const run = yield* SessionProblem.logging(logs.find(runId))
    if (run === undefined) return yield* new Problem.RunNotFound({ runId })
    if (run.ended === undefined) return yield* new Problem.RunGoesOn({ runId })
    yield* SessionProblem.logging(logs.delete(run))
    return run
  })

// ───────────────────────── Lists

type Before = NonNullable<NewestOptions["before"]>

/** The most logs that one request reads. */
const mostRead = 500

/** A run as the API shows it. One that is parked is paused, with the cause as its error. */
const withParked = (parked: string | undefined, info: Payload.Run): Payload.Run =>
  parked === undefined ? info : { ...info, status: "paused", error: defect(parked) }

/** A page of the runs, which `read` reads. One that reads too many logs before it is full has fewer runs. */
const pageOf = (
  logs: Logs,
  read: (run: StoredRun) => Effect.Effect<Payload.Run | undefined, Problem.StorageUnavailable>,
  { cursor, limit = 50, status }: RunPage
): Effect.Effect<Payload.Runs, Problem.MalformedRequest | Problem.StorageUnavailable> =>
  Effect.gen(function* () {
    const size = Math.max(1, limit)
    const items: Array<Payload.Run> = []
    // The log of a run that has just ended may not be complete yet.
    const state = { isUnended: status !== undefined && Payload.isGoing({ status }) }
    let before = cursor === undefined ? undefined : yield* readCursor(cursor)
    for (let looked = 0; looked < mostRead; looked += size) {
      const place = before === undefined ? {} : { before }
      // One more, to know whether there is another page.
      const found = yield* SessionProblem.logging(logs.newest({ ...state, ...place, limit: size + 1 }))
      const runs = yield* Effect.forEach(found.slice(0, size), read, {
        concurrency: 4
      })
      const wanted = runs.flatMap((run, index) =>
        run !== undefined && isOf(run, status) ? [{ run, index }] : []
      )
      const taken = wanted.slice(0, size - items.length)
      items.push(...taken.map(({ run }) => run))
      const isFull = items.length === size
      const end = isFull ? (taken.at(-1)?.index ?? 0) + 1 : Math.min(size, found.length)
      if (end >= found.length) return { items }
      before = found[end - 1] ?? before
      if (isFull) break
    }
    return before === undefined ? { items } : { items, nextCursor: cursorOf(before) }
  })

const isOf = ({ pending, status }: Payload.Run, wanted: Payload.ListedStatus | undefined): boolean =>
  wanted === "waiting"
    ? pending.approvals.length + pending.questions.length > 0
    : wanted === undefined || status === wanted

const cursorOf = ({ created, runId }: Before): string => `${created}:${runId}`

const readCursor = (cursor: string): Effect.Effect<Before, Problem.MalformedRequest> => {
  const [, created, runId] = /^(\d{1,15}):(.+)$/.exec(cursor) ?? []
  return created === undefined || runId === undefined
    ? new Problem.MalformedRequest({ detail: "the cursor of the list is none of nextCursor" })
    : Effect.succeed({ created: Number(created), runId })
}
