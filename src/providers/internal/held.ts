/**
 * What a request holds until its scope closes: who watches it, and its connection.
 */
import * as Effect from "effect/Effect"
import type { Own } from "../../ByteSource.ts"
import type { Connection } from "./connection.ts"
import type { Silence } from "./silence.ts"

export class Held {
  private readonly silence: Silence
  private connection: Connection | undefined = undefined
  private readonly opened: Array<() => void> = []

  constructor(silence: Silence) {
    this.silence = silence
  }

  /** Takes what closes a request's socket, until its connection is there and does. */
  readonly own: Own = (close) => {
    this.opened.push(close)
  }

  /** The connection in place of one before, if there was one. */
  take(connection: Connection): Connection {
    this.connection?.cancel()
    this.connection = connection
    connection.claim()
    return connection
  }

  readonly release: Effect.Effect<void> = Effect.suspend(() => {
    this.silence.stop()
    for (const close of this.opened) close()
    return this.connection === undefined ? Effect.void : this.connection.release
  })
}
