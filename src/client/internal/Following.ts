/**
 * The runs of a session that a client follows, one after another: their events make the state, and their results.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { RunResult } from "../../Run.ts"
import type { RunError } from "../ClientError.ts"
import type { Link } from "./Link.ts"
import * as RunEvents from "./RunEvents.ts"
import { RunRecord } from "./RunRecord.ts"
import type { SessionView } from "./SessionView.ts"

/** A session that a client has open. */
export interface Opened {
  readonly link: Link
  readonly sessionId: string
  readonly following: Following
  readonly scope: Scope.Scope
}

type Outcome = Deferred.Deferred<RunResult, RunError>

/** A run that is to be followed, and the message that its prompt replaces. */
export interface Next {
  readonly runId: string
  readonly replaces: string | undefined
}

export class Following {
  readonly view: SessionView
  private readonly link: Link
  private readonly runs: Queue.Queue<Next>
  private readonly outcomes = new Map<string, Outcome>()
  /** The run of each request to a person. */
  readonly requests = new Map<string, string>()
  /** The run whose events come in. */
  current: string | undefined

  constructor(link: Link, view: SessionView, runs: Queue.Queue<Next>) {
    this.link = link
    this.view = view
    this.runs = runs
  }

  /** The outcome of a run, which is followed from now on. */
  outcome(runId: string): Effect.Effect<RunResult, RunError> {
    return Effect.suspend(() => Deferred.await(this.follow(runId)))
  }

  /** Follows a run. `replaces` is the message that its prompt replaces. */
  follow(runId: string, replaces?: string): Outcome {
    const known = this.outcomes.get(runId)
    if (known !== undefined) return known
    const outcome: Outcome = Deferred.makeUnsafe()
    this.outcomes.set(runId, outcome)
    Queue.offerUnsafe(this.runs, { runId, replaces })
    return outcome
  }

  /** Interrupts those who wait for a run. */
  close(): void {
    for (const outcome of this.outcomes.values()) Deferred.doneUnsafe(outcome, Exit.interrupt())
    this.view.close()
  }

  isFollowed(runId: string): boolean {
    return this.outcomes.has(runId)
  }

  /** Follows the runs, one after another, until it is interrupted. */
  readonly all: Effect.Effect<never> = Effect.suspend(() =>
    Effect.forever(Effect.flatMap(Queue.take(this.runs), (next) => this.one(next)))
  )

  private one({ replaces, runId }: Next): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (replaces !== undefined) this.view.before(replaces)
      const record = new RunRecord(runId)
      this.current = runId
      const read = Stream.runForEach(RunEvents.watch(this.link, runId), ({ event }) =>
        Effect.sync(() => {
          if (event._tag === "ApprovalRequested") this.requests.set(event.approvalId, runId)
          if (event._tag === "QuestionAsked") this.requests.set(event.questionId, runId)
          record.add(event)
          this.view.add(event)
        })
      )
      return Effect.andThen(read, record.outcome).pipe(
        Effect.onExit((exit) =>
          Effect.sync(() => {
            this.current = undefined
            Deferred.doneUnsafe(this.follow(runId), exit)
          })
        ),
        Effect.ignore
      )
    })
  }
}
