/**
 * The entries of a run, for a watcher in another process: those that are stored, and those that come while this worker has the run.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { Entry } from "../../runs/LogEntry.ts"
import type { Worker } from "./Driving.ts"

type Page = ReadonlyArray<Entry>

/** The pages behind a position until the run is over. A run that waits for its start has none until it begins. */
export const pages = (
  worker: Worker,
  sessionId: string,
  {
    after,
    partials = false,
    runId
  }: { readonly runId: string; readonly after: number; readonly partials?: boolean }
): Stream.Stream<Page> => {
  let last = after
  const some = Stream.unwrap(
    Effect.map(
      Effect.orElseSucceed(worker.local.runs.watch(runId, last, { partials }), () => undefined),
      (found) => found ?? Stream.empty
    )
  ).pipe(
    Stream.map((page) => page.filter(({ position }) => position > last)),
    Stream.tap((page) => Effect.sync(() => void (last = page.at(-1)?.position ?? last)))
  )
  /** What the store has is read before the wait, and again behind it. */
  return Stream.paginate(true, (isFirst: boolean) =>
    Effect.map(isFirst ? Effect.succeed("here") : worker.looks.settled(sessionId, runId), (state) => [
      [Stream.suspend(() => some)],
      // A run whose end the store refuses is here for long.
      state === "over" || worker.local.owed(runId) !== undefined ? Option.none<boolean>() : Option.some(false)
    ])
  ).pipe(Stream.flatMap((pages) => pages))
}
