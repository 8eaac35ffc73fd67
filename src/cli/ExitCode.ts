/**
 * How the program ends, for scripts. These numbers are a promise.
 */
import * as Schema from "effect/Schema"

/** 0: there is an answer. */
export const answered = 0
/** 1: the run failed, or its answer was cut short. */
export const failed = 1
/** 2: the program was not called right, or has not what it needs; nothing was run. */
export const usage = 2
/** 3: a limit was reached: turns, time, calls. */
export const limit = 3
/** 4: reserved. No run ends with the status "suspended" yet. */
export const suspended = 4
/** 5: what was asked for was refused, and there is no answer. */
export const refused = 5

/** By custom, 128 and the number of the signal. */
export const ofSignal = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const

/** What the caller did wrong, or must set up first. The message is one line and says what to do. */
export class UsageError extends Schema.TaggedError<UsageError>()("UsageError", { detail: Schema.String }) {
  override get message(): string {
    return this.detail
  }
}
