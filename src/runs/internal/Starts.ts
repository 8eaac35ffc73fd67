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
