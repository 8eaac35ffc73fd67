/**
 * The runs of a session that a client follows, one after another: their events make the state, and their results.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as PubSub from "effect/PubSub"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as Take from "effect/Take"
import type { Subscribable } from "../../Agent.ts"
import * as AgentEvent from "../../AgentEvent.ts"
import type { Message } from "../../Message.ts"
import type { RunResult } from "../../Run.ts"
import type { RunError } from "../ClientError.ts"
import type { Link } from "./Link.ts"
import * as RunEvents from "./RunEvents.ts"
import { RunRecord } from "./RunEvents.ts"

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
      const read = Stream.runForEach(RunEvents.events(this.link, runId), ({ event }) =>
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

// ───────────────────────── The state of a session

type States = PubSub.PubSub<Take.Take<AgentEvent.View>>

/** The latest state: a slow reader skips those before. */
export const states = PubSub.sliding<Take.Take<AgentEvent.View>>({ capacity: 16, replay: 1 })

export class SessionView {
  private current = AgentEvent.initial()
  /** The ids of the messages, of which a run may show some again. */
  private ids: ReadonlySet<string> = new Set()
  private readonly states: States

  constructor(states: States) {
    this.states = states
  }

  get subscribable(): Subscribable<AgentEvent.View> {
    return {
      get: Effect.sync(() => this.current),
      getUnsafe: () => this.current,
      changes: Stream.fromPubSubTake(this.states)
    }
  }

  get view(): AgentEvent.View {
    return this.current
  }

  /** Puts in the messages that the server has. */
  restore(messages: ReadonlyArray<Message>): void {
    this.ids = new Set(messages.map(({ id }) => id))
    this.set({ ...this.current, messages })
  }

  /** Leaves out a message and those behind it. */
  before(messageId: string): void {
    const { messages } = this.current
    const at = messages.findLastIndex(({ id }) => id === messageId)
    if (at !== -1) this.restore(messages.slice(0, at))
  }

  readonly add = (event: AgentEvent.AgentEvent): void => {
    const { messages } = this.current
    const next = AgentEvent.fold(this.current, event)
    const isAgain = event._tag === "MessageEnd" && this.ids.has(event.message.id)
    if (isAgain) this.set({ ...next, messages })
    else if (next !== this.current) this.set(next)
    if (next.messages !== messages && event._tag === "MessageEnd")
      this.ids = new Set([...this.ids, event.message.id])
  }

  close(): void {
    PubSub.endUnsafe(this.states, Exit.void)
  }

  private set(view: AgentEvent.View): void {
    this.current = view
    PubSub.publishUnsafe(this.states, [view])
  }
}
