/**
 * The newest runs of a store that keeps them in memory.
 */

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
