/** Holds events back while a question is on the screen, so that no line comes between the question and its answer. */
import * as Effect from "effect/Effect"
import type { AgentEvent } from "../../AgentEvent.ts"

type Show = (events: ReadonlyArray<AgentEvent>) => Effect.Effect<void>

export interface Pause {
  /** Shows events, or keeps them until no question is open. */
  readonly show: Show
  /** Puts a question. */
  readonly during: <A, E, R>(question: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

export const make = (show: Show): Pause => {
  let open = 0
  let held: Array<AgentEvent> = []
  const begin = Effect.sync(() => {
    open++
  })
  const end = Effect.suspend(() => {
    open--
    const events = held
    if (open > 0 || events.length === 0) return Effect.void
    held = []
    return show(events)
  })
  return {
    show: (events) =>
      Effect.suspend(() => {
        if (open === 0) return show(events)
        held.push(...events)
        return Effect.void
      }),
    during: (question) =>
      Effect.acquireUseRelease(
        begin,
        () => question,
        () => end
      )
  }
}
