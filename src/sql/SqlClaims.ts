/**
 * The sessions of an SQL database that this process has open.
 */
import * as Context from "effect/Context"

/**
 * The right of a writer to write to a session, until the fence of the session is another one.
 *
 * @category models
 * @since 0.2.0
 */
export interface Claim {
  /** The id of the session. */
  readonly sessionId: string
  /** The row of the session. */
  readonly id: number
  /** The fence of the session when the writer opened it. */
  readonly fence: number
}

/**
 * The sessions that a store of this process has open.
 *
 * **Details**
 *
 * `SqlSessionStore.layer` provides it, so that other stores of the same database write for the owner of a session alone.
 *
 * **Example** (Finding the sessions that a process has open)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { SessionStore, SqlSessionStore } from "effect-agent/sessions"
 * import * as NodeSqlite from "effect-agent/node/NodeSqlite"
 *
 * const program = Effect.gen(function* () {
 *   const { create } = yield* SessionStore.SessionStore
 *   const claims = yield* SqlSessionStore.Claims
 *   yield* Effect.scoped(Effect.andThen(create({ sessionId: "trip" }), Effect.sync(() => console.log(claims.of("trip")?.fence))))
 *   return claims.of("trip")
 * }).pipe(Effect.provide(Layer.provide(SqlSessionStore.layer(), NodeSqlite.layer({ filename: ":memory:" }))))
 *
 * console.log(await Effect.runPromise(program))
 * // => 1
 * // => undefined
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export class Claims extends Context.Service<
  Claims,
  {
    /** The claim to a session, `undefined` if no store of this process has the session open. */
    readonly of: (sessionId: string) => Claim | undefined
  }
>()("effect-agent/sessions/SqlClaims") {}
