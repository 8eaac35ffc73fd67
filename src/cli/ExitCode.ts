/** The exit codes of the program, which scripts rely on. */
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
export const ofSignal = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const

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
