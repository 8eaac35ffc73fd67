/**
 * What a request holds until its scope closes: who watches it, and its connection.
 */
import * as Effect from "effect/Effect"
import type { Connection } from "./connection.ts"
import type { Silence } from "./silence.ts"

export class Held {
  private readonly silence: Silence
  private connection: Connection | undefined = undefined
  /** Closes a request that has no connection yet. */
  private giveUp: (() => void) | undefined = undefined

  constructor(silence: Silence) {
    this.silence = silence
  }

  /** A request is under way: how to give it up, until its connection is there. */
  await(giveUp: () => void): void {
    this.giveUp = giveUp
  }

  /** The connection in place of one before, if there was one. */
  take(connection: Connection): Connection {
    this.connection?.cancel()
    this.connection = connection
    this.giveUp = undefined
    return connection
  }

  readonly release: Effect.Effect<void> = Effect.suspend(() => {
    this.silence.stop()
    this.giveUp?.()
    return this.connection === undefined ? Effect.void : this.connection.release
  })
}
