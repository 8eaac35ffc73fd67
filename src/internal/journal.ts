/**
 * Writes the changes of a conversation to the session of its agent, in order.
 *
 * A write that fails keeps its records: the next one writes them first. The run that waits for the write fails; a change between
 * runs fails the next one, which writes its start.
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

/** Requests to a person are addressed to the outermost agent, so that its session has those of the runs inside too. */
const isRequest = ({ _tag }: AgentEvent): boolean =>
  _tag === "ApprovalRequested" ||
  _tag === "ApprovalAnswered" ||
  _tag === "QuestionAsked" ||
  _tag === "QuestionAnswered"

const isRecorded =
  (runId: string) =>
  (event: AgentEvent): event is RecordedEvent =>
    Object.hasOwn(recorded, event._tag) && (event.runId === runId || isRequest(event))

export class Journal {
  readonly session: Session
  /** The failure of the last write; `undefined` if it succeeded. */
  failure: SessionError | undefined
  private unwritten: ReadonlyArray<Record> = []
  private readonly writer = Semaphore.makeUnsafe(1)

  constructor(session: Session) {
    this.session = session
  }

  /** Whether one of the events of a run must be written before others see it. */
  wants(runId: string, events: ReadonlyArray<AgentEvent>): boolean {
    return events.some(isRecorded(runId))
  }

  /** Writes the events of a run that a session keeps. Those of the runs inside of it stand in sessions of their own. */
  writeEvents(runId: string, events: ReadonlyArray<AgentEvent>): Effect.Effect<void> {
    return this.write(events.filter(isRecorded(runId)).map((event) => ({ _tag: "Event", event })))
  }

  /** Writes that a run was lost with its process, if there is one. */
  lose(runId: string | undefined): Effect.Effect<void> {
    return runId === undefined ? Effect.void : this.write([{ _tag: "RunLost", runId }])
  }

  /** Writes records, those before them first. `failure` says whether that failed. */
  write(records: ReadonlyArray<Record>): Effect.Effect<void> {
    if (records.length === 0) return Effect.void
    this.unwritten = [...this.unwritten, ...records]
    return Effect.uninterruptible(this.writer.withPermit(this.writeAll))
  }

  /** Whether the session is still that of its agent. `failure` says why it is not. */
  readonly verify: Effect.Effect<boolean> = Effect.suspend(() =>
    Effect.match(this.session.verify ?? Effect.void, {
      onSuccess: () => true,
      onFailure: (error) => {
        this.failure = error
        return false
      }
    })
  )

  private readonly writeAll = Effect.suspend(() => {
    const records = this.unwritten
    if (!Arr.isReadonlyArrayNonEmpty(records)) return Effect.void
    return Effect.match(this.session.record(records), {
      onSuccess: () => {
        this.unwritten = this.unwritten.slice(records.length)
        this.failure = undefined
      },
      onFailure: (error) => {
        this.failure = error
      }
    })
  })
}
