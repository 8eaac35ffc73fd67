/**
 * Conversions for code without Effect: of the events that `for await` reads, and of those that a listener gets.
 */
import type { AgentEvent } from "../../AgentEvent.ts"

type Step<S, E> = (state: S, event: AgentEvent) => readonly [S, ReadonlyArray<E>]

/** Yields the events that `step` makes of others, and returns the last state. */
export async function* iterate<S, E>(
  initial: S,
  step: Step<S, E>,
  events: AsyncIterable<AgentEvent>
): AsyncGenerator<E, S, undefined> {
  let state = initial
  for await (const event of events) {
    const [next, converted] = step(state, event)
    state = next
    yield* converted
  }
  return state
}

/** Returns a listener that awaits `listen` for each of the events that `step` makes of others. */
export const listener = <S, E, C extends ReadonlyArray<unknown>>(
  initial: S,
  step: Step<S, E>,
  listen: (event: E, ...context: C) => unknown
): ((event: AgentEvent, ...context: C) => Promise<void>) => {
  let state = initial
  return async (event, ...context) => {
    const [next, converted] = step(state, event)
    state = next
    for (const each of converted) await listen(each, ...context)
  }
}
