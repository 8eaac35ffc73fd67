/**
 * The entries of a run, for a watcher: over all workers that have the run one after another, each entry once and in order.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as History from "../server/History.ts"
import type { Entry } from "../server/LogEntry.ts"
import { Pace } from "../server/Pace.ts"
import type { RunKey, RunLogError, Service as Logs } from "../server/RunLogStore.ts"
import { WireEntry, type Sent } from "./WireEntry.ts"

export type Page = ReadonlyArray<Entry>

/** The time before a watcher asks for the next worker. */
const pause = "50 millis"

/** A log that is complete has no other time. */
const atOnce = () => new Pace({ flush: 0, heartbeat: "15 seconds" })

/** The pages behind a position, from the store. */
const stored = (logs: Logs, run: RunKey, after: number): Effect.Effect<Stream.Stream<Page>, RunLogError> =>
  Effect.map(History.logOf(logs, run), ({ log }) => log.watch(after, atOnce()))

/** The stored pages of a run that has ended; `undefined` if there is none behind the position. */
export const ended = (
  logs: Logs,
  run: RunKey,
  after: number
): Effect.Effect<Stream.Stream<Page> | undefined, RunLogError> =>
  Effect.map(History.logOf(logs, run), ({ log }) =>
    log.hasAfter(after) ? log.watch(after, atOnce()) : undefined
  )

/** The pages of a run that has not ended. */
export const live = <E>(
  logs: Logs,
  watch: (after: number) => Stream.Stream<ReadonlyArray<Sent>, E>,
  run: RunKey,
  after: number
): Stream.Stream<Page> =>
  Stream.suspend(() => {
    let last = after
    /** A worker that took the run over sends again what this one has. */
    const behind = (page: Page) => {
      const fresh = page.filter(({ position }) => position > last)
      last = fresh.at(-1)?.position ?? last
      return fresh
    }
    const fromWorker = Stream.suspend(() => watch(last)).pipe(
      Stream.map((page) => behind(page.map((entry) => new WireEntry(entry)))),
      // Another worker has the session now, or will have it.
      Stream.catchCause(() => Stream.empty)
    )
    /** The stored pages of a run that is over; `undefined` for one that goes on, and while the store is away. */
    const rest = logs.find(run.runId).pipe(
      Effect.flatMap((found) =>
        found === undefined || found.ended !== undefined ? stored(logs, run, last) : Effect.undefined
      ),
      Effect.orElseSucceed(() => undefined)
    )
    // The stream of a worker ends when the run is over, and when the worker ends or leaves the session.
    return Stream.paginate(true, (isFirst: boolean) =>
      Effect.map(isFirst ? Effect.undefined : Effect.delay(rest, pause), (over) => [
        [over ?? fromWorker],
        over === undefined ? Option.some(false) : Option.none<boolean>()
      ])
    ).pipe(Stream.flatMap((pages) => pages))
  })
