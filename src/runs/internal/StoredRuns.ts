/**
 * The starts of a run by processes that drive it, and the run that they bring no further.
 */

/** The starts of a run since its last progress. */
export interface Starts {
  readonly attempts: number
  /** The reason for which no process starts the run, in words. */
  readonly parked: string | undefined
  /** Whether the run waits for a person, and its process has let go of it. */
  readonly isResting: boolean
}

/** A run that was not started, or that has made progress. */
export const none: Starts = { attempts: 0, parked: undefined, isResting: false }

/** The starts that bring a run no further, after which it is parked. */
export const most = 5

export const cause = `The run was started ${most} times without completing a turn: each time its process ended or lost the run.`

/** The starts with one more. A run that has had the most of them is parked. */
export const next = ({ attempts, parked }: Starts): Starts => {
  const isResting = false
  if (parked !== undefined) return { attempts, parked, isResting }
  return attempts < most
    ? { attempts: attempts + 1, parked, isResting }
    : { attempts, parked: cause, isResting }
}

/** The starts of a run that has come to a rest. */
export const resting = (starts: Starts): Starts => ({ ...starts, attempts: 0, isResting: true })

// ───────────────────────── The order of a list of runs
//
// The newest runs of a store that keeps them in memory.

/** The place of a run in the list. */
interface Place {
  readonly runId: string
  readonly created: number
}

/** A page of runs, the newest first. */
export const page = <Run extends Place & { readonly ended: number | undefined }>(
  runs: ReadonlyArray<Run>,
  {
    before,
    isUnended = false,
    limit
  }: { readonly before?: Place; readonly isUnended?: boolean; readonly limit: number }
): ReadonlyArray<Run> =>
  runs
    .filter(
      (run) => !(isUnended && run.ended !== undefined) && (before === undefined || byAge(before, run) < 0)
    )
    .toSorted(byAge)
    .slice(0, limit)

const byAge = (one: Place, other: Place): number =>
  other.created - one.created || (one.runId < other.runId ? 1 : one.runId > other.runId ? -1 : 0)
