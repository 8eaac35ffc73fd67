/**
 * The looks of a worker at the runs that its watchers wait for: one for all of them, so that their number costs the database nothing.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { Service as Logs } from "../../runs/RunLogStore.ts"
import type { Service as LocalRuns } from "./LocalRuns.ts"

/** A run is in this process, or over. */
export type Settled = "here" | "over"

interface Wait {
  readonly sessionId: string
  readonly done: Deferred.Deferred<Settled>
  watchers: number
}

/** The most runs that one look finds in the store. */
const most = 20

export class Looks {
  private readonly local: Pick<LocalRuns, "active">
  private readonly logs: Pick<Logs, "find">
  private readonly waits = new Map<string, Wait>()
  /** The runs that the store is read for next. */
  private turn: MapIterator<[string, Wait]> | undefined

  constructor(local: Pick<LocalRuns, "active">, logs: Pick<Logs, "find">) {
    this.local = local
    this.logs = logs
  }

  /** Looks five times a second until the scope closes. */
  readonly run: Effect.Effect<void, never, Scope.Scope> = Effect.suspend(() =>
    this.waits.size === 0 ? Effect.void : this.look
  ).pipe(Effect.repeat(Schedule.spaced("200 millis")), Effect.forkScoped, Effect.asVoid)

  /** Waits until a run is in this process, or over. */
  settled(sessionId: string, runId: string): Effect.Effect<Settled> {
    return Effect.acquireUseRelease(
      Effect.sync(() => this.enter(sessionId, runId)),
      (wait) => Effect.andThen(this.find(runId, wait), Deferred.await(wait.done)),
      (wait) => Effect.sync(() => this.leave(runId, wait))
    )
  }

  private enter(sessionId: string, runId: string): Wait {
    const wait = this.waits.get(runId) ?? { sessionId, done: Deferred.makeUnsafe<Settled>(), watchers: 0 }
    this.waits.set(runId, wait)
    wait.watchers++
    return wait
  }

  private leave(runId: string, wait: Wait): void {
    wait.watchers--
    if (wait.watchers === 0) this.forget(runId, wait)
  }

  /** Looks at a run whose state has changed. */
  wake(runId: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      const wait = this.waits.get(runId)
      return wait === undefined ? Effect.void : this.find(runId, wait)
    })
  }

  /** Runs that begin in this process are noticed at once, others in their turn: their end wakes their watchers. */
  private readonly look = Effect.suspend(() => {
    for (const [runId, wait] of this.waits) if (this.isHere(runId, wait)) this.settle(runId, wait, "here")
    return Effect.forEach(this.next(), ([runId, wait]) => this.find(runId, wait), {
      concurrency: 4,
      discard: true
    })
  })

  private next(): ReadonlyArray<readonly [string, Wait]> {
    const next: Array<readonly [string, Wait]> = []
    while (next.length < Math.min(most, this.waits.size)) {
      this.turn ??= this.waits.entries()
      const { done, value } = this.turn.next()
      if (done === true) this.turn = undefined
      else next.push(value)
    }
    return next
  }

  private isHere(runId: string, { sessionId }: Wait): boolean {
    return this.local.active(sessionId) === runId
  }

  private find(runId: string, wait: Wait): Effect.Effect<void> {
    if (this.isHere(runId, wait)) return Effect.sync(() => this.settle(runId, wait, "here"))
    return Effect.match(this.logs.find(runId), {
      onFailure: () => {},
      onSuccess: (run) => {
        if (run === undefined || run.ended !== undefined) this.settle(runId, wait, "over")
      }
    })
  }

  private settle(runId: string, wait: Wait, how: Settled): void {
    this.forget(runId, wait)
    Deferred.doneUnsafe(wait.done, Effect.succeed(how))
  }

  private forget(runId: string, wait: Wait): void {
    if (this.waits.get(runId) === wait) this.waits.delete(runId)
  }
}
