/**
 * The place where a server keeps the logs of its runs, so that their positions stay valid after a restart.
 *
 * @since 0.2.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"

/**
 * A log could not be written or read.
 *
 * @category errors
 * @since 0.2.0
 */
export class RunLogError extends Schema.TaggedError<RunLogError>()("RunLogError", {
  /** The failure in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return `The log of a run could not be used: ${this.detail}`
  }
}

/**
 * A run and its session.
 *
 * @category models
 * @since 0.2.0
 */
export interface RunKey {
  /** The id of the run. */
  readonly runId: string
  /** The id of its session. */
  readonly sessionId: string
}

/**
 * Appends lines to a log, in order.
 *
 * **Details**
 *
 * It has succeeded when another process that reads the log finds them.
 *
 * @category models
 * @since 0.2.0
 */
export type Append = (lines: ReadonlyArray<string>) => Effect.Effect<void, RunLogError>

/**
 * The functions of a store.
 *
 * **Details**
 *
 * Lines are JSON without a line feed.
 *
 * @category models
 * @since 0.2.0
 */
export interface Service {
  /** Opens the log of a run until the scope closes, and makes it if there is none. */
  readonly open: (run: RunKey) => Effect.Effect<Append, RunLogError, Scope.Scope>
  /** Marks a log as complete: `unended` then leaves it out. */
  readonly end: (run: RunKey) => Effect.Effect<void, RunLogError>
  /** Reads the lines of a log; none if there is no log. */
  readonly read: (run: RunKey) => Effect.Effect<ReadonlyArray<string>, RunLogError>
  /** Finds the session of a run; `undefined` if there is no log. */
  readonly find: (runId: string) => Effect.Effect<RunKey | undefined, RunLogError>
  /** Lists the runs of a session. */
  readonly list: (sessionId: string) => Effect.Effect<ReadonlyArray<RunKey>, RunLogError>
  /** Lists the runs whose log is not complete. */
  readonly unended: Effect.Effect<ReadonlyArray<RunKey>, RunLogError>
  /** Appends a line to the idempotency keys of a session. */
  readonly addKey: (sessionId: string, line: string) => Effect.Effect<void, RunLogError>
  /** Reads the idempotency keys of a session. */
  readonly keys: (sessionId: string) => Effect.Effect<ReadonlyArray<string>, RunLogError>
  /** Removes the logs and the keys of a session. */
  readonly remove: (sessionId: string) => Effect.Effect<void, RunLogError>
}

/**
 * The store of the logs of runs.
 *
 * **Example** (Keeping logs in memory)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { RunLogStore } from "effect-agent/server"
 *
 * const program = Effect.gen(function* () {
 *   const store = yield* RunLogStore.RunLogStore
 *   return yield* store.find("run_1")
 * }).pipe(Effect.provide(RunLogStore.layerMemory))
 *
 * console.log(await Effect.runPromise(program)) // => undefined
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export class RunLogStore extends Context.Service<RunLogStore, Service>()("effect-agent/server/RunLogStore") {}

interface Kept extends RunKey {
  readonly lines: Array<string>
  isEnded: boolean
}

const memory = (): Service => {
  const logs = new Map<string, Kept>()
  const keysOf = new Map<string, Array<string>>()
  const sessionOf = (sessionId: string) => [...logs.values()].filter((log) => log.sessionId === sessionId)
  return {
    open: ({ runId, sessionId }) =>
      Effect.sync(() => {
        const log = logs.get(runId) ?? { runId, sessionId, lines: [], isEnded: false }
        logs.set(runId, log)
        return (lines) => Effect.sync(() => void log.lines.push(...lines))
      }),
    end: ({ runId }) =>
      Effect.sync(() => {
        const log = logs.get(runId)
        if (log !== undefined) log.isEnded = true
      }),
    read: ({ runId }) => Effect.sync(() => logs.get(runId)?.lines.slice() ?? []),
    find: (runId) => Effect.sync(() => logs.get(runId)),
    list: (sessionId) => Effect.sync(() => sessionOf(sessionId)),
    unended: Effect.sync(() => [...logs.values()].filter(({ isEnded }) => !isEnded)),
    addKey: (sessionId, line) =>
      Effect.sync(() => void keysOf.set(sessionId, [...(keysOf.get(sessionId) ?? []), line])),
    keys: (sessionId) => Effect.sync(() => keysOf.get(sessionId) ?? []),
    remove: (sessionId) =>
      Effect.sync(() => {
        for (const { runId } of sessionOf(sessionId)) logs.delete(runId)
        keysOf.delete(sessionId)
      })
  }
}

/**
 * Provides a store in the memory of this process.
 *
 * **Example** (Providing it)
 *
 * ```ts
 * import { Layer } from "effect"
 * import { LiveRuns, RunLogStore } from "effect-agent/server"
 *
 * export const runs = LiveRuns.layer().pipe(Layer.provide(RunLogStore.layerMemory))
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layerMemory: Layer.Layer<RunLogStore> = Layer.sync(RunLogStore, memory)
