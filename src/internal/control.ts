/**
 * Stops and pauses one run.
 */
import * as Effect from "effect/Effect"
import { StopSignal } from "./work.ts"

/** What an application may do to a run from outside. */
export class Control {
  readonly signal = new StopSignal()
  private pausedFor: { readonly reason?: string } | undefined
  private resumedFor: { readonly reason?: string } = {}
  private readonly waiting = new Set<() => void>()

  get paused(): { readonly reason?: string } | undefined {
    return this.pausedFor
  }

  /** Takes effect at the next gate. The model and running tools are not suspended. */
  pause(reason?: string): void {
    this.pausedFor ??= reason === undefined ? {} : { reason }
  }

  /** Why the run was last resumed. */
  get resumed(): { readonly reason?: string } {
    return this.resumedFor
  }

  resume(reason?: string): void {
    this.pausedFor = undefined
    this.resumedFor = reason === undefined ? {} : { reason }
    const waiting = [...this.waiting]
    this.waiting.clear()
    for (const wake of waiting) wake()
  }

  /** Stops what is in flight and ends the run. */
  cancel(reason?: string): void {
    this.signal.stop({ cause: "cancel", ...(reason === undefined ? {} : { reason }) })
  }

  /** Until resumed or stopped. */
  get whileRunnable(): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      let forget = () => {}
      const leave = () => {
        this.waiting.delete(wake)
        forget()
      }
      const wake = () => {
        leave()
        resume(Effect.void)
      }
      this.waiting.add(wake)
      forget = this.signal.onStop(wake)
      return Effect.sync(leave)
    })
  }
}
