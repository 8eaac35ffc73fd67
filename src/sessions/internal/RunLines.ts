/**
 * The lines of the logs of runs, which stand between the entries of a session.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { SessionError } from "../../Session.ts"
import type { Logged } from "./Contract.ts"
import { entryOf } from "./Listing.ts"
import type { SessionEntry } from "../SessionEntry.ts"
import type { Line, Range, SessionStorage, StoredLine } from "../SessionStorage.ts"

/** The start of the lines: readers of entries leave them out before they parse them. */
const head = '{"type":"log",'

/** Whether a line is one of a log. */
export const isOne = (line: StoredLine): boolean => typeof line === "string" && line.startsWith(head)

const typeOf = (runId: string): string => `log:${runId}`

const ofRun = (runId: string): string => `${head}"run":${JSON.stringify(runId)},"line":`

export const encode = ({ runId, text }: Logged): Line => ({
  type: typeOf(runId),
  text: `${ofRun(runId)}${text}}`
})

/** The lines of the log of a run, with the messages and the calls around them. */
export const read = (
  storage: SessionStorage,
  sessionId: string,
  runId: string,
  range?: Range
): Effect.Effect<ReadonlyArray<Logged | SessionEntry>, SessionError> => {
  const start = ofRun(runId)
  const itemOf = (line: StoredLine): Logged | SessionEntry | undefined => {
    if (typeof line !== "string") return undefined
    if (line.startsWith(start)) return { _tag: "Logged", runId, text: line.slice(start.length, -1) }
    return isOne(line) ? undefined : entryOf(line)
  }
  const items: Array<Logged | SessionEntry> = []
  const lines = storage.lines(sessionId, ["message", "custom", typeOf(runId)], range)
  const added = Stream.runForEach(lines, (some) =>
    Effect.sync(() => {
      for (const line of some) {
        const item = itemOf(line)
        if (item !== undefined) items.push(item)
      }
    })
  )
  return Effect.as(added, items)
}
