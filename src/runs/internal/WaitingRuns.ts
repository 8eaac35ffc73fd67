/**
 * The runs of a conversation that wait for the one before them.
 */
import type { LiveRun } from "./LiveRun.ts"
import type { Task } from "./Request.ts"

/** A run that has not begun, and its beginning. */
export type Waiting = readonly [run: LiveRun, task: Task]

export class WaitingRuns {
  private queue: ReadonlyArray<Waiting> = []

  /** The oldest run. */
  get first(): LiveRun | undefined {
    return this.queue[0]?.[0]
  }

  add(...runs: ReadonlyArray<Waiting>): void {
    this.queue = [...this.queue, ...runs]
  }

  /** Takes the oldest run out. */
  takeFirst(): Waiting | undefined {
    const [first, ...others] = this.queue
    this.queue = others
    return first
  }

  /** Takes the runs out that are meant. */
  take(isMeant: (run: LiveRun) => boolean): ReadonlyArray<LiveRun> {
    const runs = this.queue.map(([run]) => run)
    this.queue = this.queue.filter(([run]) => !isMeant(run))
    return runs.filter(isMeant)
  }

  /** Lets go of the runs, which continue elsewhere or later. */
  leave(): void {
    for (const [run] of this.queue) run.leave()
  }
}
