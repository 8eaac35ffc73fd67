/**
 * The hold of this process on a session: its writes reach the session while the hold lasts.
 *
 * The process gives it up at once when the session moves: the run of the session then ends here without a trace, and continues
 * elsewhere or later. Where the store refuses a write, or the log of the run, the run fails, and the session takes no more of it.
 */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type { AgentEvent } from "../../AgentEvent.ts"
import { type Record, type Session, SessionError, StorageFailed } from "../../Session.ts"
import type * as SessionStore from "../../sessions/SessionStore.ts"

/** The run at work, which gets the events of its session first. */
interface Keeper {
  /** Whether its agent writes its events to the session. */
  readonly isRecorded: boolean
  readonly keep: (
    records: ReadonlyArray<Record>,
    events: Arr.NonEmptyReadonlyArray<AgentEvent>
  ) => Effect.Effect<void, SessionError>
  readonly show: (deltas: ReadonlyArray<AgentEvent>) => boolean
  /** Writes the events that are held. */
  readonly flush: Effect.Effect<void, SessionError>
  /** Notes that the next write has records of sub-agents. */
  readonly note: (records: ReadonlyArray<Record>) => void
  /** Ends the run: the store has refused a write of it. */
  readonly refuse: (error: SessionError) => void
}

interface Options {
  /** The run at work; `undefined` while there is none. */
  readonly run: () => Keeper | undefined
  /** Whether the session has the lines of the logs of its runs. */
  readonly hasLines: boolean
  /** Run when another writer has the session. */
  readonly onLost: Effect.Effect<void>
}

/** The session of a run. */
export interface Place {
  /** Writes records of the run. */
  readonly record: Session["record"]
  /** Writes lines and records of the run. */
  readonly keep: (
    lines: Arr.NonEmptyReadonlyArray<SessionStore.Logged | Record>
  ) => Effect.Effect<void, SessionError>
  /** Writes lines, also when the session takes no more of the run. */
  readonly write: (lines: Arr.NonEmptyReadonlyArray<SessionStore.Logged>) => Effect.Effect<void, SessionError>
}

export class Hold {
  isOver = false
  /** Why the session takes no more of the run. Default: it does. */
  refusal: SessionError | undefined
  /** The session, whose writes succeed while the hold lasts. */
  readonly session: SessionStore.OpenSession
  /** The session, for the run at work. */
  readonly place: Place
  private readonly options: Options

  constructor(session: SessionStore.OpenSession, options: Options) {
    this.options = options
    const { hasLines, run } = options
    const record: Session["record"] = (records) => this.recorded(session, session.record(records))
    const flush = Effect.suspend(() => run()?.flush ?? Effect.void)
    const recordNow: Session["record"] = (records) => Effect.andThen(flush, record(records))
    this.session = {
      ...session,
      get restored() {
        return session.restored
      },
      record: recordNow,
      // An agent may run by itself, without a run of the process.
      keep: (records, events) =>
        run()?.keep(records, events) ??
        (Arr.isReadonlyArrayNonEmpty(records) ? recordNow(records) : Effect.void),
      show: (deltas) => run()?.show(deltas) ?? true,
      verify: this.verified(session),
      append: (entries) => this.guarded(session, session.append(entries)),
      // Each event of a sub-agent is written with its records, before the sub-agent continues.
      child: (toolCallId) => {
        const isInSession = hasLines && run()?.isRecorded === true
        const part = isInSession ? session.childOf(toolCallId) : session.child(toolCallId)
        return Effect.map(part, (part) => this.ofPart(part))
      }
    }
    this.place = {
      record,
      keep: (lines) => this.recorded(session, session.log(lines)),
      write: (lines) => this.guarded(session, session.log(lines))
    }
  }

  private ofPart(part: Session): Session {
    const record: Session["record"] = (records) =>
      Effect.tap(this.recorded(part, part.record(records)), () =>
        Effect.sync(() => this.options.run()?.note(records))
      )
    return {
      id: part.id,
      get restored() {
        return part.restored
      },
      record,
      verify: this.verified(part),
      child: (toolCallId) => Effect.map(part.child(toolCallId), (inner) => this.ofPart(inner))
    }
  }

  /** A write of the run. */
  private recorded(session: Session, write: Effect.Effect<void, SessionError>) {
    const refused = (error: SessionError) =>
      Effect.sync(() => {
        if (this.isOver || isTaken(error)) return
        this.refusal ??= error
        this.options.run()?.refuse(error)
      })
    return Effect.suspend(() => this.refusal ?? Effect.tapError(this.guarded(session, write), refused))
  }

  /** Whether the session is still that of this process. */
  private verified(session: Session) {
    const verify = Effect.tapError(session.verify ?? Effect.void, () => this.options.onLost)
    return Effect.suspend(() => this.refusal ?? this.guarded(session, verify))
  }

  private guarded<A>({ id }: Session, write: Effect.Effect<A, SessionError>): Effect.Effect<A, SessionError> {
    return Effect.suspend(() => {
      if (!this.isOver)
        return Effect.tapError(write, (error) => (isTaken(error) ? this.options.onLost : Effect.void))
      const reason = new StorageFailed({
        operation: "write",
        detail: "this process has let go of the session"
      })
      return new SessionError({ sessionId: id, reason })
    })
  }
}

/** Whether another writer has the session, or has removed it. */
export const isTaken = ({ reason }: SessionError): boolean =>
  reason._tag === "Locked" || reason._tag === "Missing"
