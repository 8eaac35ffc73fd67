/**
 * The place where a server keeps the logs of its runs, so that their positions stay valid after a restart.
 *
 * @since 0.2.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Range } from "../sessions/SessionStorage.ts"
import * as LogLine from "./internal/LogLine.ts"
import { newestPage, nextStarts, noStarts, restingStarts } from "./internal/RunState.ts"
import { TaggedError } from "../internal/errors.ts"

/**
 * A log could not be written or read.
 *
 * @category errors
 * @since 0.2.0
 */
export class RunLogError extends TaggedError<RunLogError>()("RunLogError", {
  /** The failure in words. */
  detail: Schema.String,
  /**
   * The kind of the failure. Default `"storage"`.
   *
   * - `"storage"`: the files or the database could not be used.
   * - `"taken"`: another writer has opened the log or its session since. The writer that gets this error must stop.
   * - `"ended"`: the log was to be opened, and it is complete.
   * - `"missing"`: there is no such log.
   */
  reason: Schema.Literals(["storage", "taken", "ended", "missing"]).pipe(
    Schema.withConstructorDefault(Effect.succeed("storage" as const))
  )
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
 * A run as a store has it.
 *
 * @category models
 * @since 0.2.0
 */
export interface StoredRun extends RunKey {
  /** The time at which the log was made, in milliseconds since the epoch. */
  readonly created: number
  /** The time at which the log was complete, in milliseconds since the epoch; `undefined` for one that is not. */
  readonly ended: number | undefined
  /** The number of starts of the run since its last progress: see `begun`. */
  readonly attempts: number
  /** The reason for which no process starts the run, in words; `undefined` for a run that may be started. */
  readonly parked: string | undefined
  /** Whether the run waits for a person, and its process has let go of it: see `rest`. */
  readonly isResting: boolean
  /** The part of its session that has the lines of its log. Default: the store has all lines. */
  readonly range?: Range
}

/**
 * The options of a page of runs.
 *
 * @category options
 * @since 0.2.0
 */
export interface NewestOptions {
  /** The most runs of the page. */
  readonly limit: number
  /** The last run of the page before. Default: none, the first page. */
  readonly before?: Pick<StoredRun, "created" | "runId">
  /** Whether only logs that are not complete count. Default `false`. */
  readonly isUnended?: boolean
}

/**
 * Appends lines to a log, in order, all or none of them.
 *
 * **Details**
 *
 * It has succeeded when another process that reads the log finds them. It fails with the reason `"taken"` once another writer has opened
 * the log.
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
  /**
   * Whether the lines of logs stand in the sessions of their runs, written together with the entries there, except for the first one. Then
   * an `Append` of the store gets no line. Default `false`: the store keeps all lines.
   */
  readonly inSessions?: boolean
  /** Changes the data of lines before a session has them: see `redacted`. Default: no change. */
  readonly redact?: (data: Schema.Json) => Schema.Json
  /**
   * Opens the log of a run until the scope closes, and makes it if there is none. The appends of earlier openers fail from then on. Fails
   * with the reason `"ended"` for a log that is complete.
   *
   * `first` is the first line of a log that is made, for a store whose lines stand in sessions; another one gets it by the `Append`.
   */
  readonly open: (run: RunKey, first?: string) => Effect.Effect<Append, RunLogError, Scope.Scope>
  /** Marks a log as complete: `unended` then leaves it out. */
  readonly end: (run: RunKey) => Effect.Effect<void, RunLogError>
  /** Reads the lines of a log that the store has; none if there is no log. */
  readonly read: (run: RunKey) => Effect.Effect<ReadonlyArray<string>, RunLogError>
  /** Finds a run by its id; `undefined` if there is no log. */
  readonly find: (runId: string) => Effect.Effect<StoredRun | undefined, RunLogError>
  /** Lists the runs of a session. */
  readonly list: (sessionId: string) => Effect.Effect<ReadonlyArray<StoredRun>, RunLogError>
  /** Lists the runs of a session whose log is not complete, the oldest first. */
  readonly active: (sessionId: string) => Effect.Effect<ReadonlyArray<StoredRun>, RunLogError>
  /** Lists the runs of all sessions whose log is not complete, also those that are parked. */
  readonly unended: Effect.Effect<ReadonlyArray<StoredRun>, RunLogError>
  /** A page of the runs of all sessions, the newest first; those of one moment by their ids, the last one first. */
  readonly newest: (options: NewestOptions) => Effect.Effect<ReadonlyArray<StoredRun>, RunLogError>
  /**
   * Counts a start of a run by a process that is about to drive it. A run that 5 starts brought no further is parked in place of that:
   * the process must not start a run whose answer has `parked`. Fails with the reason `"missing"` if there is no log.
   */
  readonly begun: (run: RunKey) => Effect.Effect<StoredRun, RunLogError>
  /** Sets the count of starts to 0: the run has completed a turn. Costs nothing if the count is 0. */
  readonly progressed: (run: RunKey) => Effect.Effect<void, RunLogError>
  /** Notes that a run waits for a person, that its process lets go of it, and that it has made progress. The next `begun` ends that. */
  readonly rest: (run: RunKey) => Effect.Effect<void, RunLogError>
  /** Keeps a run from being started. `cause` says why, in words. */
  readonly park: (run: RunKey, cause: string) => Effect.Effect<void, RunLogError>
  /** Lets a parked run be started again, and sets the count of its starts to 0. */
  readonly unpark: (runId: string) => Effect.Effect<void, RunLogError>
  /** Appends a line to the idempotency keys of a session. */
  readonly addKey: (sessionId: string, line: string) => Effect.Effect<void, RunLogError>
  /** Reads the idempotency keys of a session. */
  readonly keys: (sessionId: string) => Effect.Effect<ReadonlyArray<string>, RunLogError>
  /** Removes the logs and the keys of a session. */
  readonly remove: (sessionId: string) => Effect.Effect<void, RunLogError>
  /** Removes the log of a run. */
  readonly delete: (run: RunKey) => Effect.Effect<void, RunLogError>
  /** Removes the logs that have been complete for a duration or longer, and returns their runs. */
  readonly retain: (maxAge: Duration.Input) => Effect.Effect<ReadonlyArray<RunKey>, RunLogError>
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

interface Kept {
  readonly lines: Array<string>
  run: StoredRun
  /** Counts those who opened the log. */
  writer: number
}

class Memory {
  private readonly logs = new Map<string, Kept>()
  private readonly keysOf = new Map<string, Array<string>>()

  private wanted(isWanted: (run: StoredRun) => boolean): ReadonlyArray<StoredRun> {
    return [...this.logs.values()].flatMap(({ run }) => (isWanted(run) ? [run] : []))
  }

  private change(runId: string, changed: (run: StoredRun) => Partial<StoredRun>): Effect.Effect<void> {
    return Effect.sync(() => {
      const log = this.logs.get(runId)
      if (log !== undefined) log.run = { ...log.run, ...changed(log.run) }
    })
  }

  private made({ runId, sessionId }: RunKey, created: number): Kept {
    const run = { runId, sessionId, created, ended: undefined, ...noStarts }
    const log: Kept = this.logs.get(runId) ?? { lines: [], run, writer: 0 }
    this.logs.set(runId, log)
    return log
  }

  private open(key: RunKey): Effect.Effect<Append, RunLogError> {
    return Effect.clockWith((clock) => {
      const log = this.made(key, clock.currentTimeMillisUnsafe())
      if (log.run.ended !== undefined) return Effect.fail(ended(key))
      const writer = ++log.writer
      return Effect.succeed((lines) =>
        log.writer === writer ? Effect.sync(() => void log.lines.push(...lines)) : Effect.fail(taken(key))
      )
    })
  }

  private begun(key: RunKey): Effect.Effect<StoredRun, RunLogError> {
    return Effect.suspend(() => {
      const log = this.logs.get(key.runId)
      if (log === undefined) return Effect.fail(missing(key))
      log.run = { ...log.run, ...nextStarts(log.run) }
      return Effect.succeed(log.run)
    })
  }

  private remove(isMeant: (run: StoredRun) => boolean): ReadonlyArray<RunKey> {
    const meant = this.wanted(isMeant)
    for (const { runId } of meant) this.logs.delete(runId)
    return meant
  }

  private retain(maxAge: Duration.Input) {
    return Effect.map(Clock.currentTimeMillis, (now) => {
      const before = now - Duration.toMillis(maxAge)
      return this.remove(({ ended }) => ended !== undefined && ended <= before)
    })
  }

  get service(): Service {
    const { keysOf, logs } = this
    const isActive = ({ ended }: StoredRun) => ended === undefined
    return {
      open: (run) => this.open(run),
      end: ({ runId }) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) =>
          this.change(runId, ({ ended = now }) => ({ ended, ...noStarts }))
        ),
      read: ({ runId }) => Effect.sync(() => logs.get(runId)?.lines.slice() ?? []),
      find: (runId) => Effect.sync(() => logs.get(runId)?.run),
      list: (sessionId) => Effect.sync(() => this.wanted((run) => run.sessionId === sessionId)),
      active: (sessionId) =>
        Effect.sync(() => this.wanted((run) => run.sessionId === sessionId && isActive(run))),
      unended: Effect.sync(() => this.wanted(isActive)),
      newest: (options) =>
        Effect.sync(() =>
          newestPage(
            this.wanted(() => true),
            options
          )
        ),
      begun: (run) => this.begun(run),
      progressed: ({ runId }) => this.change(runId, () => ({ attempts: 0 })),
      rest: ({ runId }) => this.change(runId, restingStarts),
      park: ({ runId }, parked) => this.change(runId, () => ({ parked })),
      unpark: (runId) => this.change(runId, () => noStarts),
      addKey: (sessionId, line) =>
        Effect.sync(() => void keysOf.set(sessionId, [...(keysOf.get(sessionId) ?? []), line])),
      keys: (sessionId) => Effect.sync(() => keysOf.get(sessionId) ?? []),
      remove: (sessionId) =>
        Effect.sync(() => {
          this.remove((run) => run.sessionId === sessionId)
          keysOf.delete(sessionId)
        }),
      delete: ({ runId }) => Effect.sync(() => void logs.delete(runId)),
      retain: (maxAge) => this.retain(maxAge)
    }
  }
}

/** @internal Whether a process is to start a run by itself: no person has to act first. */
export const isStartable = ({ isResting, parked }: StoredRun): boolean => parked === undefined && !isResting
/** @internal */
export const taken = ({ runId }: RunKey): RunLogError =>
  new RunLogError({ detail: `another writer has the run ${runId} now`, reason: "taken" })
/** @internal */
export const ended = ({ runId }: RunKey): RunLogError =>
  new RunLogError({ detail: `the log of the run ${runId} is complete`, reason: "ended" })
/** @internal */
export const missing = ({ runId }: RunKey): RunLogError =>
  new RunLogError({ detail: `there is no log of the run ${runId}`, reason: "missing" })

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
export const layerMemory: Layer.Layer<RunLogStore> = Layer.sync(RunLogStore, () => new Memory().service)

/**
 * Makes a store whose logs have the data that a function leaves, such as data without secrets.
 *
 * **When to use**
 *
 * Use it together with `redact` of a store of sessions: the events in the log of a run have the texts of the messages, too.
 *
 * **Details**
 *
 * - The function gets the JSON of each event before the store does, and that of the prompt and the options of a run that waits.
 * - Watchers of a run that has not ended read all of it. Those that come after a restart read what the log has, and a run that waited
 *   then begins with what the log has.
 * - Where the function throws, nothing is stored, and the run ends with `RunLogError`.
 *
 * **Example** (Removing a secret)
 *
 * ```ts
 * import { Layer } from "effect"
 * import { LiveRuns, RunLogStore } from "effect-agent/server"
 *
 * const logs = RunLogStore.redacted((data) => JSON.parse(JSON.stringify(data).replaceAll("hunter2", "[removed]")))
 *
 * export const runs = LiveRuns.layer().pipe(Layer.provide(logs), Layer.provide(RunLogStore.layerMemory))
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const redacted = (
  redact: (data: Schema.Json) => Schema.Json
): Layer.Layer<RunLogStore, never, RunLogStore> =>
  Layer.effect(
    RunLogStore,
    Effect.map(RunLogStore, (store) => ({
      ...store,
      redact,
      open: (run, first) =>
        Effect.flatMap(withoutSecrets(first === undefined ? [] : [first], redact), ([redacted]) =>
          Effect.map(
            store.open(run, redacted),
            (append): Append =>
              (lines) =>
                Effect.flatMap(withoutSecrets(lines, redact), append)
          )
        )
    }))
  )

const withoutSecrets = (lines: ReadonlyArray<string>, redact: (data: Schema.Json) => Schema.Json) =>
  Effect.try({
    try: () => lines.map((line) => LogLine.withData(line, redact)),
    catch: () => notRedacted
  })

/** @internal */
export const notRedacted = new RunLogError({ detail: "the function that redacts it failed" })
