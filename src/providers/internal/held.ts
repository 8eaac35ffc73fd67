/**
 * What a request holds until its scope closes: who watches it, and its connection.
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { Connection } from "./connection.ts"

export class Held {
  private readonly watch: Fiber.Fiber<void>
  private connection: Connection | undefined = undefined

  constructor(watch: Fiber.Fiber<void>) {
    this.watch = watch
  }

  /** The connection in place of one before, if there was one. */
  take(connection: Connection): Connection {
    this.connection?.cancel()
    this.connection = connection
    return connection
  }

  readonly release: Effect.Effect<void> = Effect.suspend(() => {
    this.watch.interruptUnsafe()
    return this.connection === undefined ? Effect.void : this.connection.release
  })
}
