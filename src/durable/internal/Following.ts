/**
 * The entries of a run, for a watcher: over all workers that have the run one after another, each entry once and in order.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as History from "../../runs/History.ts"
import { type Entry, eventOfFrame } from "../../runs/LogEntry.ts"
import { Pace } from "../../runs/Watchers.ts"
import type { RunKey, RunLogError, StoredRun } from "../../runs/RunLogStore.ts"
import type { AgentEvent } from "../../AgentEvent.ts"

export type Page = ReadonlyArray<Entry>

/** The times before a watcher looks for the next worker, from the last new entry on. */
const pace = Schedule.toStepWithSleep(
  Schedule.min([Schedule.exponential("50 millis", 2), Schedule.spaced("500 millis")])
)

/** A log that is complete has no other time. */
const atOnce = () => new Pace({ flush: 0, heartbeat: "15 seconds" })

/** The pages behind a position, from the store. */
const stored = (
  stores: History.Stores,
  run: StoredRun,
  after: number
): Effect.Effect<Stream.Stream<Page>, RunLogError> =>
  Effect.map(History.logOf(stores, run), ({ log }) => log.watch(after, atOnce()))

/** The stored pages of a run that has ended; `undefined` if there is none behind the position. */
export const ended = (
  stores: History.Stores,
  run: StoredRun,
  after: number
): Effect.Effect<Stream.Stream<Page> | undefined, RunLogError> =>
  Effect.map(History.logOf(stores, run), ({ log }) =>
    log.hasAfter(after) ? log.watch(after, atOnce()) : undefined
  )

/** The end of the stream of a worker: another one has the session now, or will have it. */
const lost = ({ runId, sessionId }: RunKey, cause: Cause.Cause<unknown>): Stream.Stream<never> => {
  if (!Cause.hasDies(cause)) return Stream.empty
  const logged = Effect.logWarning("The worker of the run has failed", cause)
  return Stream.drain(Stream.fromEffect(Effect.annotateLogs(logged, { runId, sessionId })))
}

const nothing = Effect.succeed(Stream.empty)

/** Whether an entry is the end of a run that stands in no other one. */
const isEnd = (entry: Entry): boolean => entry.tag === "RunEnd" && entry.event?.path === undefined

/** The pages of a run that has not ended. */
export const live = <E>(
  stores: History.Stores,
  watch: (after: number) => Stream.Stream<ReadonlyArray<Sent>, E>,
  run: RunKey,
  after: number
): Stream.Stream<Page> =>
  Stream.suspend(() => {
    let last = after
    let pause: Effect.Success<typeof pace> | undefined
    let isOver = false
    /** A worker that took the run over sends again what this one has. */
    const behind = (page: Page) => {
      const fresh = page.filter(({ position }) => position > last)
      last = fresh.at(-1)?.position ?? last
      isOver ||= fresh.some(isEnd)
      if (fresh.length > 0) pause = undefined
      return fresh
    }
    const fromWorker = Stream.suspend(() => watch(last)).pipe(
      Stream.map((page) => behind(page.map((entry) => new WireEntry(entry)))),
      Stream.catchCause((cause) => lost(run, cause))
    )
    const paused = Effect.gen(function* () {
      pause ??= yield* pace
      yield* Effect.ignore(pause(undefined))
      return undefined
    })
    /** The stored pages of a run that is over; `undefined` for one that goes on, and while the store is away. */
    const rest = stores.logs.find(run.runId).pipe(
      Effect.flatMap((found) => {
        if (found === undefined) return nothing
        return found.ended === undefined ? Effect.undefined : stored(stores, found, last)
      }),
      Effect.orElseSucceed(() => undefined)
    )
    const found = Effect.flatMap(rest, (over) => (over === undefined ? paused : Effect.succeed(over)))
    // The stream of a worker ends when the run is over or has shown its end, and when the worker ends or leaves the session.
    return Stream.paginate(true, (isFirst: boolean) =>
      Effect.map(isFirst ? Effect.undefined : isOver ? nothing : found, (over) => [
        [over ?? fromWorker],
        over === undefined ? Option.some(false) : Option.none<boolean>()
      ])
    ).pipe(Stream.flatMap((pages) => pages))
  })

/** The part of an entry that processes send. */
export interface Sent {
  readonly position: number
  readonly tag: string
  readonly frame: string
}

export class WireEntry implements Entry {
  readonly position: number
  readonly tag: string
  readonly frame: string

  constructor({ frame, position, tag }: Sent) {
    this.position = position
    this.tag = tag
    this.frame = frame
  }

  get event(): AgentEvent | undefined {
    return eventOfFrame(this.frame)
  }
}
