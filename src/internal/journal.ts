/**
 * Writes the changes of a conversation to the session of its agent, in order.
 *
 * The records of a failed write are kept, and the next write begins with them. A failed write fails the run that waits for it. Between runs
 * it fails the next run, which writes its start.
 */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { AgentEvent } from "../AgentEvent.ts"
import type { Record, RecordedEvent, Session } from "../Session.ts"
import type { SessionError } from "./errors.ts"

const recorded: Readonly<{ [Tag in RecordedEvent["_tag"]]: true }> = {
  RunStart: true,
  MessageEnd: true,
  ApprovalRequested: true,
  ApprovalAnswered: true,
  QuestionAsked: true,
  QuestionAnswered: true,
  ToolInvoked: true,
  ToolExecutionEnd: true,
  HandedOff: true,
  RunEnd: true
}

/** Requests to a person go to the outermost agent, so its session also records those of sub-agents. */
const requests = new Set(["ApprovalRequested", "ApprovalAnswered", "QuestionAsked", "QuestionAnswered"])

const isRecorded =
  (runId: string) =>
  (event: AgentEvent): event is RecordedEvent =>
    Object.hasOwn(recorded, event._tag) && (event.runId === runId || requests.has(event._tag))

export class Journal {
  readonly session: Session
  /** The failure of the last write; `undefined` if it succeeded. */
  failure: SessionError | undefined
  private unwritten: ReadonlyArray<Record> = []
  private readonly writer = Semaphore.makeUnsafe(1)

  constructor(session: Session) {
    this.session = session
  }

  /** Whether the session keeps one of these events, so that they must be written before subscribers get them. Else it has seen them. */
  wants(runId: string, events: ReadonlyArray<AgentEvent>, areDeltas: boolean): boolean {
    const { keep, show } = this.session
    if (keep === undefined) return !areDeltas && events.some(isRecorded(runId))
    return !areDeltas || show?.(events) === false
  }

  /** Writes those events of the run that the session keeps. Sub-agents have sessions of their own for theirs. */
  writeEvents(runId: string, events: ReadonlyArray<AgentEvent>): Effect.Effect<void> {
    const records = events.filter(isRecorded(runId)).map((event) => ({ _tag: "Event", event }) as const)
    return this.write(records, events)
  }

  /** Writes that the process of a run ended before the run did; nothing for `undefined`. */
  lose(runId: string | undefined): Effect.Effect<void> {
    return runId === undefined ? Effect.void : this.write([{ _tag: "RunLost", runId }])
  }

  /** Writes the records of failed writes, then these, with the events of a run around them. Sets `failure`. */
  write(records: ReadonlyArray<Record>, events: ReadonlyArray<AgentEvent> = []): Effect.Effect<void> {
    if (records.length + events.length === 0) return Effect.void
    this.unwritten = [...this.unwritten, ...records]
    return Effect.uninterruptible(this.writer.withPermit(Effect.suspend(() => this.writeAll(events))))
  }

  /** Whether this agent is still the writer of the session. Sets `failure`. */
  readonly verify: Effect.Effect<boolean> = Effect.suspend(() => {
    const { verify = Effect.void } = this.session
    return Effect.isSuccess(
      Effect.tapError(verify, (error) => Effect.sync(() => void (this.failure = error)))
    )
  })

  private writeAll(events: ReadonlyArray<AgentEvent>): Effect.Effect<void> {
    const { session, unwritten: records } = this
    const kept = Arr.isReadonlyArrayNonEmpty(events) ? session.keep?.(records, events) : undefined
    const written = kept ?? (Arr.isReadonlyArrayNonEmpty(records) ? session.record(records) : Effect.void)
    return Effect.match(written, {
      onSuccess: () => {
        this.unwritten = this.unwritten.slice(records.length)
        this.failure = undefined
      },
      onFailure: (error) => void (this.failure = error)
    })
  }
}
