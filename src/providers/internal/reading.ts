/**
 * An answer as a pull of model events.
 *
 * It reads bytes only when its reader pulls events, so a slow reader slows the server. No queue stands between the
 * connection and the reader.
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Pull from "effect/Pull"
import type * as Scope from "effect/Scope"
import type { ModelEvent } from "../../ModelEvent.ts"
import type { Reason } from "../../ProviderError.ts"
import { ProviderError } from "../../ProviderError.ts"
import type { Answer } from "./answer.ts"
import { type Connection, isEnd } from "./connection.ts"
import type { Silence } from "./silence.ts"

type Events = Arr.NonEmptyReadonlyArray<ModelEvent>
/** The next events of an answer. */
export type Next = Pull.Pull<Events, ProviderError>

/** The parts of a reading. */
export interface Parts {
  readonly provider: string
  readonly connection: Connection
  readonly answer: Answer
  readonly silence: Silence
  /** The reason for an error of the connection. */
  readonly broken: (cause: unknown) => Reason
}

/** Makes the pull of an answer. One fiber of the scope reads the connection, and a second one watches the time limits. */
export const open = Effect.fnUntraced(function* (parts: Parts): Effect.fn.Return<Next, never, Scope.Scope> {
  const reading = new Reading(parts)
  const fiber = yield* Effect.forkScoped(reading.run, { startImmediately: true })
  const stalled = Effect.flatMap(parts.silence.passed, (reason) => reading.stop(reason, fiber))
  yield* Effect.forkScoped(stalled, { startImmediately: true })
  // Runs first: a reader that leaves closes the socket before the two fibers end.
  yield* Effect.addFinalizer(() => parts.connection.drop)
  return reading.pull
})

/**
 * A reading in two fibers, so that a time limit can interrupt a read without the fiber of the reader. They wait for each
 * other by `Deferred`, which resumes a fiber at once.
 */
class Reading {
  private readonly parts: Parts
  /** Completes when the reader waits for bytes. */
  private wanted = Deferred.makeUnsafe<void>()
  /** Completes when bytes have arrived, or the body has ended. */
  private arrived = Deferred.makeUnsafe<void>()
  /** Whether the reader waits for the end of an answer that may be over. */
  private isEnding = false
  /** The cause of a defect, such as of a protocol that throws. */
  private defect: Cause.Cause<never> | undefined = undefined

  constructor(parts: Parts) {
    this.parts = parts
  }

  /** The next events. Ends as soon as the answer is over, even if the server keeps the body open. */
  readonly pull: Next = Effect.suspend(() => this.ready() ?? this.begin())

  /** Begins to wait for an event. */
  private begin(): Next {
    const { answer, silence } = this.parts
    this.isEnding = answer.mayBeOver
    if (this.isEnding) silence.startEnd()
    else silence.startContent()
    return this.wait()
  }

  /** Waits for bytes until they complete an event. */
  private wait(): Next {
    this.arrived = Deferred.makeUnsafe()
    Deferred.doneUnsafe(this.wanted, Effect.void)
    return Effect.flatMap(Deferred.await(this.arrived), this.proceed)
  }

  private readonly proceed = (): Next => {
    const ready = this.ready()
    if (ready !== undefined) return ready
    return this.parts.answer.mayBeOver && !this.isEnding ? this.begin() : this.wait()
  }

  /** The events that are complete, or else the end of an answer that is over. */
  private ready(): Next | undefined {
    const { answer, connection, provider, silence } = this.parts
    const { outcome } = answer
    if (outcome === "complete") connection.finish()
    const events = answer.take()
    if (Arr.isReadonlyArrayNonEmpty(events)) {
      silence.stop()
      return Effect.succeed(events)
    }
    if (!answer.over) return this.defect && Effect.failCause(this.defect)
    return typeof outcome === "string"
      ? Cause.done()
      : Effect.fail(new ProviderError({ provider, reason: outcome }))
  }

  /** Reads bytes each time that the reader waits for some, until the answer is over. */
  get run(): Effect.Effect<void> {
    const { answer, broken, connection } = this.parts
    const next = (): Effect.Effect<void> => Effect.flatMap(Deferred.await(this.wanted), () => read)
    const read = Effect.matchEffect(connection.pull, {
      onFailure: (error) => {
        if (isEnd(error)) answer.end()
        else answer.cut(broken(error))
        return Effect.sync(() => this.resume())
      },
      onSuccess: (pieces) => {
        answer.push(joined(pieces))
        this.resume()
        return answer.over ? Effect.void : next()
      }
    })
    return Effect.onError(next(), (cause) =>
      Effect.sync(() => {
        this.defect = cause
        this.resume()
      })
    )
  }

  /** Stops reading. The events so far stay, and the answer fails unless it may be over. */
  stop(reason: Reason, reader: Fiber.Fiber<void>): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.parts.answer.cut(reason)
      this.resume()
      return Fiber.interrupt(reader)
    })
  }

  /** Resumes the reader. */
  private resume(): void {
    this.wanted = Deferred.makeUnsafe()
    Deferred.doneUnsafe(this.arrived, Effect.void)
  }
}

/** Joins the pieces that arrived together: the reader of events then decodes them once. */
const joined = (pieces: Arr.NonEmptyReadonlyArray<Uint8Array>): Uint8Array => {
  if (pieces.length === 1) return pieces[0]
  const bytes = new Uint8Array(pieces.reduce((size, { length }) => size + length, 0))
  let end = 0
  for (const piece of pieces) {
    bytes.set(piece, end)
    end += piece.length
  }
  return bytes
}
