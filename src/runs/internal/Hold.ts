/**
 * The hold of this process on a session: its writes reach the session while the hold lasts.
 *
 * The process gives it up at once when the session moves: the run of the session then ends here without a trace, and continues
 * elsewhere or later. Where the store refuses a write, or the log of the run, the run fails, and the session takes no more of it.
 */
import type * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import { type Record, type Session, SessionError, StorageFailed } from "../../Session.ts"
import type * as SessionStore from "../../sessions/SessionStore.ts"

/** The run at work, which gets the events of its session first. */
export interface Keeper {
  /** Whether each event of a sub-agent is written with its records, before the sub-agent continues. */
  readonly isInSession: () => boolean
  readonly keep: NonNullable<Session["keep"]>
  readonly show: NonNullable<Session["show"]>
  /** Writes the events that are held. */
  readonly flush: Effect.Effect<void, SessionError>
  /** Notes that the next write has records of sub-agents. */
  readonly note: (records: ReadonlyArray<Record>) => void
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
  private readonly onLost: Effect.Effect<void>
  private readonly onRefused: (error: SessionError) => void

  /** `onLost` runs when another writer has the session, `onRefused` when a write fails otherwise. */
  constructor(onLost: Effect.Effect<void>, onRefused: (error: SessionError) => void) {
    this.onLost = onLost
    this.onRefused = onRefused
  }

  /** The session, whose writes succeed while the hold lasts. */
  of(session: SessionStore.OpenSession, keeper: Keeper): SessionStore.OpenSession {
    const { isInSession, keep, show } = keeper
    return {
      ...session,
      get restored() {
        return session.restored
      },
      record: (records) => Effect.andThen(keeper.flush, this.recorded(session, session.record(records))),
      keep,
      show,
      verify: this.verified(session),
      append: (entries) => this.guarded(session, session.append(entries)),
      child: (toolCallId) => {
        const part = isInSession() ? session.childOf(toolCallId) : session.child(toolCallId)
        return Effect.map(part, (part) => this.ofPart(part, keeper))
      }
    }
  }

  private ofPart(part: Session, keeper: Keeper): Session {
    const record: Session["record"] = (records) =>
      Effect.tap(this.recorded(part, part.record(records)), () => Effect.sync(() => keeper.note(records)))
    return {
      id: part.id,
      get restored() {
        return part.restored
      },
      record,
      verify: this.verified(part),
      child: (toolCallId) => Effect.map(part.child(toolCallId), (inner) => this.ofPart(inner, keeper))
    }
  }

  /** The session, for the run at work. */
  placeOf(session: SessionStore.OpenSession): Place {
    return {
      record: (records) => this.recorded(session, session.record(records)),
      keep: (lines) => this.recorded(session, session.log(lines)),
      write: (lines) => this.guarded(session, session.log(lines))
    }
  }

  /** A write of the run. */
  private recorded(session: Session, write: Effect.Effect<void, SessionError>) {
    const refused = (error: SessionError) =>
      Effect.sync(() => {
        if (this.isOver || isTaken(error)) return
        this.refusal ??= error
        this.onRefused(error)
      })
    return Effect.suspend(() => this.refusal ?? Effect.tapError(this.guarded(session, write), refused))
  }

  /** Whether the session is still that of this process. */
  private verified(session: Session) {
    const verify = Effect.tapError(session.verify ?? Effect.void, () => this.onLost)
    return Effect.suspend(() => this.refusal ?? this.guarded(session, verify))
  }

  private guarded<A>({ id }: Session, write: Effect.Effect<A, SessionError>): Effect.Effect<A, SessionError> {
    return Effect.suspend(() => {
      if (!this.isOver) return Effect.tapError(write, (error) => (isTaken(error) ? this.onLost : Effect.void))
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
