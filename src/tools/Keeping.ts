/** Keeps what calls of tools change, so that a person can take the changes back. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"

/** A change of a file that a call is about to make. */
export interface Change {
  /** The real path of the file. */
  readonly path: string
  /** The path through which the file can be read now. */
  readonly through: string
  /** The content that the call writes. */
  readonly content: Uint8Array
}

/** The earlier content could not be kept: the call changes nothing. */
export interface Failure {
  readonly detail: string
}

export interface Keeper {
  /** Keeps what a file is before a call changes it. */
  readonly file: (change: Change) => Effect.Effect<void, Failure>
  /** Keeps what a command changes below a folder. `run` runs the command. */
  readonly command: <A, E, R>(root: string, run: Effect.Effect<A, E, R>) => Effect.Effect<A, E | Failure, R>
}

/** The keeper of the tools. Default: none, and the tools keep nothing. */
export const Keeping = Context.Reference<Keeper | undefined>("effect-agent/tools/Keeping", {
  defaultValue: () => undefined
})
