/**
 * Work that is begun, and tells how it ended: what a fiber does for an effect, and a plain function for itself. Where a
 * hundred calls are under way, a fiber for each that does nothing but wait is most of what they cost.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Tracer from "effect/Tracer"

/** Begins work, which tells once how it ended. Gives how to stop it, of which it tells in the same way. */
export type Begin<A, E> = (tell: (exit: Exit.Exit<A, E>) => void) => () => void

const key = "~effect-agent/Begin"

/** An effect that can also be begun without a fiber. */
interface Direct<A, E, R> extends Effect.Effect<A, E, R> {
  readonly [key]: (services: Context.Context<R>) => Begin<A, E>
}

/** Makes it so. What is made of the effect, by whoever wraps it, is an effect like any other. */
export const direct = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  begin: (services: Context.Context<R>) => Begin<A, E>
): Effect.Effect<A, E, R> => Object.assign(effect, { [key]: begin })

/** How to begin an effect without a fiber, if there is a way. */
export const wayOf = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): ((services: Context.Context<R>) => Begin<A, E>) | undefined => (isDirect(effect) ? effect[key] : undefined)

const isDirect = <A, E, R>(effect: Effect.Effect<A, E, R>): effect is Direct<A, E, R> => key in effect

/** Whether somebody would see a span. */
export const isTraced = (services: Context.Context<never>): boolean =>
  Context.getOrUndefined(services, Tracer.Tracer) !== undefined ||
  Context.getOrUndefined(services, Tracer.ParentSpan) !== undefined

/** Begins an effect in a fiber of its own. */
export const inFiber =
  <A, E, R>(services: Context.Context<R>, effect: Effect.Effect<A, E, R>): Begin<A, E> =>
  (tell) => {
    const fiber = Effect.runForkWith(services)(effect)
    fiber.addObserver(tell)
    return () => fiber.interruptUnsafe()
  }

/** How to begin work: in a fiber, if it has no other way. What throws while it is made is a defect. */
export type Starter = <A, E>(make: () => Effect.Effect<A, E>) => Begin<A, E>

/** Begins work with these services. */
export const starter = (services: Context.Context<never>): Starter => {
  // Whoever traces sees what is usual.
  const isTracing = isTraced(services)
  return (make) => (tell) => {
    const work = attempted(make)
    const begin = (isTracing ? undefined : wayOf(work)?.(services)) ?? inFiber(services, work)
    return begin(tell)
  }
}

/** Goes on to what `make` gives, and tells how it ended: at once where that is known, else from a fiber. */
export const goOn = <A, E, R>(
  services: Context.Context<R>,
  make: () => Effect.Effect<A, E, R>,
  tell: (exit: Exit.Exit<A, E>) => void
): void => {
  const next = attempted(make)
  if (isKnown(next)) tell(next)
  else Effect.runForkWith(services)(next).addObserver(tell)
}

/** The same as an effect, and whatever came of the first one. */
export const after = <A, E, R, B, E2, R2>(
  effect: Effect.Effect<A, E, R>,
  next: (exit: Exit.Exit<A, E>) => Effect.Effect<B, E2, R2>
): Effect.Effect<B, E2, R | R2> =>
  isKnown(effect) ? next(effect) : Effect.flatMap(Effect.exit(effect), next)

/** Whether it is known how an effect ends: it did. What `Exit.isExit` asks of any value, for a fifth of the calls. */
export const isKnown = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): effect is Exit.Exit<A, E> & Effect.Effect<A, E, R> => exitKey in effect

const exitKey = "~effect/Exit" satisfies keyof Exit.Exit.Proto<unknown>

const attempted = <A, E, R>(make: () => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  try {
    return make()
  } catch (defect) {
    return Effect.die(defect)
  }
}
