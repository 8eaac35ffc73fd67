/**
 * The runs of all sessions of a store, in pages, the newest first.
 */
import * as Effect from "effect/Effect"
import * as Payload from "../../api/Payload.ts"
import * as Problem from "../../api/Problem.ts"
import { defect } from "../../internal/failureReason.ts"
import type { NewestOptions, Service as Logs, StoredRun } from "../RunLogStore.ts"
import type { RunPage } from "../Runs.ts"
import * as SessionProblem from "../SessionProblem.ts"

type Before = NonNullable<NewestOptions["before"]>

/** The most logs that one request reads. */
const most = 500

/** A run as the API shows it. One that is parked is paused, with the cause as its error. */
export const shown = (parked: string | undefined, info: Payload.Run): Payload.Run =>
  parked === undefined ? info : { ...info, status: "paused", error: defect(parked) }

/** A page of the runs, which `read` reads. One that reads too many logs before it is full has fewer runs. */
export const page = (
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
    for (let looked = 0; looked < most; looked += size) {
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
