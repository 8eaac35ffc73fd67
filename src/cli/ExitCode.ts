/** The exit codes of the program, which scripts rely on, and the failures and signals that have one. */
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import { TaggedError } from "../internal/errors.ts"

/** 0: the model answered. */
export const answered = 0
/** 1: the run failed, or its answer was cut short. */
export const failed = 1
/** 2: wrong usage or missing setup. Nothing ran. */
export const usage = 2
/** 3: the run reached a limit of turns, time or calls. */
export const limit = 3
/** 4: the run waits for a person, and another run can continue it. */
export const suspended = 4
/** 5: a refusal, without an answer or with `--fail-on-refusal`. */
export const refused = 5

/** 128 plus the number of the signal, as shells do. */
const ofSignal = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const

/** Wrong usage or missing setup. The message is one line and says what to do. */
export class UsageError extends TaggedError<UsageError>()("UsageError", { detail: Schema.String }) {
  override get message(): string {
    return this.detail
  }
}

/** A failure of the place where a prompt runs. The message is one line. */
export class Failed extends TaggedError<Failed>()("Failed", { detail: Schema.String }) {
  override get message(): string {
    return this.detail
  }
}

// ───────────────────────── Signals and closed pipes
//
// The first one starts an orderly end within a second. A second one, or the end of that second, exits the process.

/** A signal, or `closed` if the reader of stdout is gone. */
export type Ending = keyof typeof ofSignal | "closed"

export class Signals extends Context.Service<
  Signals,
  {
    readonly ending: Effect.Effect<Ending>
    /** Sets the milliseconds for an orderly end. Default: a second. */
    readonly patience: (millis: number) => Effect.Effect<void>
    /** Makes SIGHUP an item of a queue, in place of an end. At a terminal it still ends the program, which would outlive its terminal. */
    readonly hangUps: Effect.Effect<Queue.Dequeue<void>>
    /** Makes SIGINT an item of a queue, in place of an end. */
    readonly interrupts: Effect.Effect<Queue.Dequeue<void>>
  }
>()("effect-agent/cli/Signals") {}

/** The program was ended before its run began. */
class Ended extends Data.TaggedError("Ended")<{ readonly ending: Ending }> {}

/** Runs an effect and interrupts it if the program is to end. */
export const orEnd = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | Ended, R | Signals> =>
  Effect.raceFirst(
    effect,
    Signals.use(({ ending }) => Effect.flatMap(ending, (ending) => new Ended({ ending })))
  )

/** Milliseconds for an orderly end. */
const second = 950

/** A reader that closes the pipe needs no more output, so the exit code is 0. */
export const exitCode = (ending: Ending): number => (ending === "closed" ? 0 : ofSignal[ending])

/** Listens for the lifetime of the process, so that a signal during the exit does not end it in another way. */
export const layer: Layer.Layer<Signals> = Layer.sync(Signals, () => listen())

const listen = (): Signals["Service"] => {
  const ending = Deferred.makeUnsafe<Ending>()
  let patience = second
  const on = (kind: Ending) => () => {
    const isFirst = Deferred.doneUnsafe(ending, Effect.succeed(kind))
    if (!isFirst && kind !== "closed") process.exit(exitCode(kind))
    if (isFirst) setTimeout(() => process.exit(exitCode(kind)), patience).unref()
  }
  let interrupt: () => void = on("SIGINT")
  process.on("SIGINT", () => interrupt())
  process.on("SIGTERM", on("SIGTERM"))
  let hangUp: () => void = on("SIGHUP")
  process.on("SIGHUP", () => hangUp())
  process.stdout.on("error", on("closed"))
  process.stderr.on("error", ignore)
  const wait = (millis: number) => Effect.sync(() => void (patience = millis))
  const hangUps = Effect.tap(Queue.sliding<void>(1), (queue) =>
    Effect.sync(() => {
      if (!process.stdin.isTTY) hangUp = () => void Queue.offerUnsafe(queue, undefined)
    })
  )
  const interrupts = Effect.tap(Queue.sliding<void>(1), (queue) =>
    Effect.sync(() => {
      interrupt = () => void Queue.offerUnsafe(queue, undefined)
    })
  )
  return { ending: Deferred.await(ending), patience: wait, hangUps, interrupts }
}

// Without stderr no complaint is possible, but the answer may still be read.
const ignore = () => {}
