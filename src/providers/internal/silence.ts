/**
 * How long a provider may say nothing.
 *
 * One alarm per answer, not one timer per delta: it rings at the earliest moment at which the silence could be too long,
 * and then one looks. Only the time for which somebody waited counts, so a slow reader is no silence, and only
 * content ends it: keep-alives do not.
 */
import type * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Alarm from "../../internal/alarm.ts"
import { StreamStalled } from "../../ProviderError.ts"

/** The one knob for silence. `"Infinity"` is none. */
export interface Timeouts {
  /** From the request to the head of the response. Default 60 seconds. */
  readonly firstByte?: Duration.Input
  /** Between two pieces of content. Default 120 seconds. */
  readonly idle?: Duration.Input
  /** The whole answer. Default none. */
  readonly total?: Duration.Input
}

/** The same in milliseconds. */
export interface Limits {
  readonly firstByte: number
  readonly idle: number
  readonly total: number
}

export const limits = (timeouts: Timeouts = {}): Limits => ({
  firstByte: Duration.toMillis(timeouts.firstByte ?? "60 seconds"),
  idle: Duration.toMillis(timeouts.idle ?? "120 seconds"),
  total: Duration.toMillis(timeouts.total ?? Duration.infinity)
})

/** Asks for something, and tells once what came of it. */
export type Ask<A, E> = (tell: (exit: Exit.Exit<A, E>) => void) => Asking

interface Asking {
  /** Asks no longer. */
  readonly stop: () => void
  /** The same, and waits for it. */
  readonly leave: Effect.Effect<void>
}

/** Asks by an effect, in a fiber of its own. */
export const byEffect =
  <A, E, R>(effect: Effect.Effect<A, E, R>, context: Context.Context<R>): Ask<A, E> =>
  (tell) => {
    const fiber = Effect.runForkWith(context)(effect)
    fiber.addObserver(tell)
    return { stop: () => fiber.interruptUnsafe(), leave: Fiber.interrupt(fiber) }
  }

export class Silence {
  private readonly limits: Limits
  private readonly clock: Clock.Clock
  private readonly alarm: Alarm.Alarm
  private readonly started: number
  private since: number | undefined = undefined
  private patience: number
  /** When the head of a response was asked for; `undefined` while none is waited for. */
  private asked: number | undefined = undefined
  private unset: () => void = ignore
  private broken: StreamStalled | undefined = undefined
  private listener: (stalled: StreamStalled) => void = ignore

  constructor(limits: Limits, clock: Clock.Clock) {
    this.limits = limits
    this.clock = clock
    this.alarm = Alarm.of(clock)
    this.started = Alarm.now(this.clock)
    this.patience = limits.idle
  }

  /** Somebody waits from now on. */
  listen(): void {
    this.since ??= Alarm.now(this.clock)
  }

  /** Content came. */
  hear(): void {
    this.since = undefined
  }

  /** The answer may be over: a server that neither says so nor hangs up is not waited for as long. */
  expectEnd(): void {
    this.patience = Math.min(this.limits.idle, afterEnd)
  }

  /** Tells the last one who asks, when the silence is too long. */
  onBroken(listener: (stalled: StreamStalled) => void): void {
    this.listener = listener
    if (this.broken !== undefined) listener(this.broken)
  }

  /** Waits for the head of a response. What is given after all, when nobody waits any more, goes to `late`. */
  head<A, E>(ask: Ask<A, E>, late: (given: A) => void): Effect.Effect<A, E | StreamStalled> {
    return Effect.callback<A, E | StreamStalled>((resume) => {
      let isLeft = false
      const leave = () => {
        isLeft = true
        this.stopAsking()
      }
      this.asked = Alarm.now(this.clock)
      this.stop()
      const asking = ask((exit) => {
        if (isLeft) return Exit.isSuccess(exit) && late(exit.value)
        leave()
        resume(exit)
      })
      // The request is on its way by now.
      this.look()
      if (!isLeft) {
        this.onBroken((stalled) => {
          leave()
          asking.stop()
          resume(Effect.fail(stalled))
        })
      }
      return Effect.suspend(() => {
        leave()
        return asking.leave
      })
    })
  }

  private stopAsking(): void {
    this.asked = undefined
    this.listener = ignore
  }

  /** Watches no longer. */
  stop(): void {
    this.unset()
  }

  private readonly look = (): void => {
    const now = Alarm.now(this.clock)
    const untilTotal = this.started + this.limits.total - now
    const until =
      this.asked === undefined
        ? (this.since ?? now) + this.patience - now
        : this.asked + this.limits.firstByte - now
    if (untilTotal > 0 && until > 0) {
      // The head may come before it rings, and the patience is another one from then on.
      const soon = Math.max(10, Math.min(this.limits.idle, afterEnd))
      this.unset = this.alarm.set(Math.min(untilTotal, until, soon), this.look)
      return
    }
    this.broken = this.stalled(untilTotal <= 0 ? "total" : this.asked === undefined ? "idle" : "firstByte")
    this.listener(this.broken)
  }

  private stalled(kind: StreamStalled["kind"]): StreamStalled {
    const after = Duration.millis(this.limits[kind])
    return new StreamStalled({ kind, after, detail: `${words[kind]} ${Duration.format(after)}` })
  }
}

const ignore = (): void => {}

/** Milliseconds. Also how often is looked at least, as patience may get shorter meanwhile. */
const afterEnd = 10_000

const words: Readonly<Record<StreamStalled["kind"], string>> = {
  firstByte: "No response within",
  idle: "No content for",
  total: "The answer took more than"
}
