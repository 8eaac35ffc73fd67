/**
 * The hold of this process on a session: its writes reach the session while the hold lasts.
 *
 * The process gives it up at once: when the session moves, or when a write fails. The run of the session then ends here without a trace,
 * and continues elsewhere or later.
 */
import * as Effect from "effect/Effect"
import { type Session, SessionError, StorageFailed } from "../Session.ts"
import type * as SessionStore from "../sessions/SessionStore.ts"

export class Hold {
  isOver = false
  private readonly onLost: Effect.Effect<void>

  /** `onLost` runs when a write fails. */
  constructor(onLost: Effect.Effect<void>) {
    this.onLost = onLost
  }

  /** The session, whose writes succeed while the hold lasts. */
  of(session: SessionStore.OpenSession): SessionStore.OpenSession {
    return {
      ...session,
      get restored() {
        return session.restored
      },
      record: (records) => this.guarded(session, session.record(records)),
      verify: this.guarded(session, session.verify ?? Effect.void),
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
      record: (records) => this.guarded(part, part.record(records)),
      verify: this.guarded(part, part.verify ?? Effect.void),
      child: (toolCallId) => Effect.map(part.child(toolCallId), (inner) => this.ofPart(inner))
    }
  }

  private guarded<A>({ id }: Session, write: Effect.Effect<A, SessionError>): Effect.Effect<A, SessionError> {
    return Effect.suspend(() => {
      if (!this.isOver) return Effect.tapError(write, () => this.onLost)
      const reason = new StorageFailed({
        operation: "write",
        detail: "this process has let go of the session"
      })
      return new SessionError({ sessionId: id, reason })
    })
  }
}
