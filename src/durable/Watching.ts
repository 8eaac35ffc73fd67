/**
 * The entries of a run, for a watcher in another process: those that are stored, and those that come while this worker has the run.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { Entry } from "../server/LogEntry.ts"
import type { Worker } from "./Driving.ts"

type Page = ReadonlyArray<Entry>

/** How a run that has not ended stands in this process. */
type State = "here" | "over" | "elsewhere"

const stateOf = ({ local, logs }: Worker, sessionId: string, runId: string): Effect.Effect<State> =>
  Effect.suspend(() => {
    if (local.active(sessionId) === runId) return Effect.succeed<State>("here")
    return Effect.match(logs.find(runId), {
      onFailure: (): State => "elsewhere",
      onSuccess: (run): State => (run === undefined || run.ended !== undefined ? "over" : "elsewhere")
    })
  })

const looks = Schedule.spaced("200 millis")

/** The pages behind a position until the run is over. A run that waits for its start has none until it begins. */
export const pages = (
  worker: Worker,
  sessionId: string,
  runId: string,
  after: number
): Stream.Stream<Page> => {
  let last = after
  const some = Stream.unwrap(
    Effect.map(
      Effect.orElseSucceed(worker.local.runs.watch(runId, last), () => undefined),
      (found) => found ?? Stream.empty
    )
  ).pipe(
    Stream.map((page) => page.filter(({ position }) => position > last)),
    Stream.tap((page) => Effect.sync(() => void (last = page.at(-1)?.position ?? last)))
  )
  const settled = stateOf(worker, sessionId, runId).pipe(
    Effect.repeat({ until: (state) => state !== "elsewhere", schedule: looks })
  )
  /** What the store has is read before the wait, and again behind it. */
  return Stream.paginate(true, (isFirst: boolean) =>
    Effect.map(isFirst ? Effect.succeed<State>("elsewhere") : settled, (state) => [
      [Stream.suspend(() => some)],
      state === "over" ? Option.none<boolean>() : Option.some(false)
    ])
  ).pipe(Stream.flatMap((pages) => pages))
}
