/**
 * The hold of this process on a session: its writes reach the session while the hold lasts.
 *
 * The process gives it up at once when the session moves: the run of the session then ends here without a trace, and continues
 * elsewhere or later. Where the store refuses a write, or the log of the run, the run fails, and the session takes no more of it.
 */
import * as Effect from "effect/Effect"
import { type Session, SessionError, StorageFailed } from "../../Session.ts"
import type * as SessionStore from "../../sessions/SessionStore.ts"

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
  of(session: SessionStore.OpenSession): SessionStore.OpenSession {
    return {
      ...session,
      get restored() {
        return session.restored
      },
      record: (records) => this.recorded(session, session.record(records)),
      verify: this.verified(session),
      append: (entries) => this.guarded(session, session.append(entries)),
      child: (toolCallId) => Effect.map(session.child(toolCallId), (part) => this.ofPart(part))
    }
  }

  private ofPart(part: Session): Session {
    return {
      id: part.id,
      get restored() {
        return part.restored
      },
      record: (records) => this.recorded(part, part.record(records)),
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
const isTaken = ({ reason }: SessionError): boolean => reason._tag === "Locked" || reason._tag === "Missing"
