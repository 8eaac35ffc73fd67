/**
 * What ends the program from outside. The first time it is asked to end, and has a second for it; the second time, or
 * when the second is over, it is gone.
 */
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ExitCode from "./ExitCode.ts"

/** A signal, or that nobody reads the answer any more. */
export type Ending = keyof typeof ExitCode.ofSignal | "closed"

export class Signals extends Context.Service<Signals, { readonly ending: Effect.Effect<Ending> }>()(
  "effect-agent/cli/Signals"
) {}

/** The program was ended before it had begun its run. */
export class Ended extends Data.TaggedError("Ended")<{ readonly ending: Ending }> {}

/** Does something that may be given up when the program is to end. */
export const orEnd = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | Ended, R | Signals> =>
  Effect.raceFirst(
    effect,
    Signals.use(({ ending }) => Effect.flatMap(ending, (ending) => new Ended({ ending })))
  )

/** Milliseconds for an orderly end. */
const patience = 950

/** Who left before the end asked for no more: that is no failure. */
export const exitCode = (ending: Ending): number => (ending === "closed" ? 0 : ExitCode.ofSignal[ending])

/** Listens as long as the process lives: a signal that comes while it leaves must not end it in another way. */
export const layer: Layer.Layer<Signals> = Layer.sync(Signals, () => ({ ending: Deferred.await(listen()) }))

const listen = (): Deferred.Deferred<Ending> => {
  const ending = Deferred.makeUnsafe<Ending>()
  const on = (kind: Ending) => () => {
    const isFirst = Deferred.doneUnsafe(ending, Effect.succeed(kind))
    if (!isFirst && kind !== "closed") process.exit(exitCode(kind))
    if (isFirst) setTimeout(() => process.exit(exitCode(kind)), patience).unref()
  }
  process.on("SIGINT", on("SIGINT"))
  process.on("SIGTERM", on("SIGTERM"))
  process.on("SIGHUP", on("SIGHUP"))
  process.stdout.on("error", on("closed"))
  process.stderr.on("error", ignore)
  return ending
}

// Without stderr there is nobody to complain to; the answer may still be read.
const ignore = () => {}
