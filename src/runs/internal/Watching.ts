/**
 * The entries of a run for a watcher: of this process while it has the run, else of the store.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Controls from "./Controls.ts"
import * as History from "../History.ts"
import * as Holders from "../Holders.ts"
import type { Host } from "./Host.ts"
import type { Entry } from "../LogEntry.ts"
import type { StoredRun } from "../RunLogStore.ts"
import type * as Runs from "../Runs.ts"
import * as SessionProblem from "../SessionProblem.ts"

type Page = ReadonlyArray<Entry>

/** The time between two looks at the log of a run that another process may have. */
const glance = "1 second"

/** The pages behind a position until the run is over; `undefined` for one that is over and has no entry there. */
export const pages = Effect.fnUntraced(function* (
  host: Host,
  runId: string,
  after: number,
  { cancelOnLeave = false, partials = false }: Runs.WatchOptions = {}
) {
  const { pace } = host.parts
  const live = host.runs.get(runId)
  if (live !== undefined) {
    const pages = live.watch(after, pace, partials)
    if (cancelOnLeave === false) return pages
    const cancel = Controls.cancel(host, live, Holders.reason)
    return host.holders.held(runId, pages, { cancelOnLeave, cancel, isOver: () => live.log.isClosed })
  }
  const run = yield* host.stored(runId)
  if (run.ended === undefined) return elsewhere(host, run, after, partials)
  const { log } = yield* SessionProblem.logging(History.logOf(host.parts, run))
  return log.hasAfter(after) ? log.watch(after, pace) : undefined
})

/** The pages of a run that this process does not have, and may get. */
const elsewhere = (host: Host, run: StoredRun, after: number, isPartial: boolean): Stream.Stream<Page> => {
  const { adopts, logs, pace } = host.parts
  const arrived = Effect.raceFirst(host.arrival(run.runId), Effect.sleep(adopts ? pace.heartbeat : glance))
  let last = after
  /** The log is read after the look, which shows whether it was complete. */
  const next = Effect.gen(function* () {
    const found = yield* logs.find(run.runId)
    const live = host.runs.get(run.runId)
    const isOver =
      found === undefined || found.ended !== undefined || host.isDraining || live?.isOwed === true
    if (live !== undefined) return { isOver, isLive: true, page: live.watch(last, pace, isPartial) }
    const { log } = yield* History.logOf(host.parts, run)
    return { isOver, isLive: false, page: log.watch(last, pace) }
  })
  // The log of this process ends with the run, or where the run leaves it.
  return Stream.paginate(true, (wasLive: boolean) =>
    (wasLive ? next : Effect.andThen(arrived, next)).pipe(
      Effect.map(
        ({ isLive, isOver, page }) => [[page], isOver ? Option.none<boolean>() : Option.some(isLive)] as const
      ),
      Effect.orElseSucceed(() => [[Stream.empty], Option.some(false)] as const)
    )
  ).pipe(
    Stream.flatMap((page) => page),
    Stream.tap((page) => Effect.sync(() => void (last = page.at(-1)?.position ?? last)))
  )
}
