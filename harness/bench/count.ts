/**
 * Counts what a program costs in Effect's own terms, which are the same on every machine.
 */
import { Effect, Scheduler } from "effect"

export interface Count {
  /** Primitives that fibers took, but for those they go through without coming back to their loop. */
  readonly steps: number
  /** Fibers that took any. */
  readonly fibers: number
  /** Tasks that were put off until the event loop comes round. */
  readonly hops: number
}

/** Runs a program, and counts. */
export const count = <A, E, R>(program: Effect.Effect<A, E, R>): Effect.Effect<Count, E, R> =>
  Effect.suspend(() => {
    const counter = makeCounter()
    return Effect.provideService(program, Scheduler.Scheduler, counter.scheduler).pipe(
      Effect.map(counter.read)
    )
  })

/** What each of `more` adds, beyond what `few` costs: so whatever happens once does not count. */
export const each = <E, R>(
  program: (times: number) => Effect.Effect<unknown, E, R>,
  few: number,
  more: number
): Effect.Effect<Count, E, R> =>
  Effect.gen(function* () {
    // What is made when it is first needed is there by then.
    yield* program(few)
    const base = yield* count(program(few))
    const all = yield* count(program(few + more))
    const part = (figure: keyof Count) => (all[figure] - base[figure]) / more
    return { steps: part("steps"), fibers: part("fibers"), hops: part("hops") }
  })

const makeCounter = () => {
  const usual = new Scheduler.MixedScheduler()
  const fibers = new Set<number>()
  let steps = 0
  let hops = 0
  const scheduler: Scheduler.Scheduler = {
    executionMode: "async",
    shouldYield: (fiber) => {
      steps++
      fibers.add(fiber.id)
      return usual.shouldYield(fiber)
    },
    makeDispatcher: () => {
      const dispatcher = usual.makeDispatcher()
      return {
        scheduleTask: (task, priority) => {
          hops++
          dispatcher.scheduleTask(task, priority)
        },
        flush: () => dispatcher.flush()
      }
    }
  }
  return { scheduler, read: (): Count => ({ steps, fibers: fibers.size, hops }) }
}
