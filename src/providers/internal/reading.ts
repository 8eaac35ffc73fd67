/**
 * An answer as a pull of model events: bytes are read when the reader asks, and not before. All that waits on the way is
 * one network array, so a slow reader slows the server. No fiber and no queue stand between the socket and the reader.
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Pull from "effect/Pull"
import type { ModelEvent } from "../../ModelEvent.ts"
import type { Reason } from "../../ProviderError.ts"
import { ProviderError } from "../../ProviderError.ts"
import type { Answer } from "./answer.ts"
import type { Connection } from "./connection.ts"
import type { Silence } from "./silence.ts"

type Events = Arr.NonEmptyReadonlyArray<ModelEvent>
/** The next events of an answer. */
export type Next = Pull.Pull<Events, ProviderError>

/** What a reading is made of. */
export interface Parts<Wire, State> {
  readonly provider: string
  readonly connection: Connection
  readonly answer: Answer<Wire, State>
  readonly silence: Silence
  /** What an error of the connection means. */
  readonly broken: (cause: unknown) => Reason
}

/** Ends as soon as the answer is over, whatever the server does with the connection then. */
export const pull = <Wire, State>(parts: Parts<Wire, State>): Next => {
  const reading = new Reading(parts)
  parts.silence.onBroken((stalled) => reading.stop(stalled))
  return reading.pull
}

class Reading<Wire, State> {
  readonly pull: Next
  private readonly parts: Parts<Wire, State>
  /** Goes on with whoever waits. */
  private wake: ((next: Next) => void) | undefined = undefined
  private isReading = false
  private defect: unknown = undefined

  constructor(parts: Parts<Wire, State>) {
    this.parts = parts
    const forget = Effect.sync(() => {
      this.wake = undefined
    })
    this.pull = Effect.callback<Events, ProviderError | Cause.Done>((resume) => {
      this.wake = resume
      parts.silence.listen()
      this.go()
      return forget
    })
  }

  /** Nothing more is read: what has been said stays, and the answer fails unless that was all. */
  stop(reason: Reason): void {
    const { answer, connection } = this.parts
    if (answer.over) return
    this.take(() => answer.cut(reason))
    connection.cancel()
    this.go()
  }

  /** Changes the answer. A protocol that throws, which none should, must not leave somebody waiting. */
  private take(step: () => void): void {
    try {
      step()
    } catch (defect) {
      this.defect = defect
      this.parts.connection.cancel()
    }
  }

  /** Answers who waits with what is there, or reads on. */
  private go(): void {
    const { answer, silence } = this.parts
    const { wake } = this
    if (wake === undefined) return
    const events = answer.take()
    if (Arr.isReadonlyArrayNonEmpty(events)) {
      this.wake = undefined
      silence.hear()
      wake(Effect.succeed(events))
    } else if (answer.over || this.defect !== undefined) {
      this.wake = undefined
      wake(this.last())
    } else if (!this.isReading) this.read()
  }

  private last(): Next {
    const { answer, provider } = this.parts
    const { outcome } = answer
    if (this.defect !== undefined) return Effect.die(this.defect)
    return typeof outcome === "string"
      ? Cause.done()
      : Effect.fail(new ProviderError({ provider, reason: outcome }))
  }

  private read(): void {
    this.isReading = true
    this.parts.connection.read(this.onRead, this.onError)
  }

  private readonly onRead = (bytes: Uint8Array | undefined): void => {
    this.isReading = false
    const { answer, connection } = this.parts
    if (bytes === undefined) this.take(() => answer.end())
    else this.onBytes(bytes)
    if (answer.outcome === "complete") connection.finish()
    else if (answer.over) connection.cancel()
    else if (answer.mayBeOver) this.parts.silence.expectEnd()
    this.go()
  }

  private onBytes(bytes: Uint8Array): void {
    const { answer } = this.parts
    if (!answer.over) this.take(() => answer.push(bytes))
  }

  private readonly onError = (cause: unknown): void => {
    this.isReading = false
    this.take(() => this.parts.answer.cut(this.parts.broken(cause)))
    this.go()
  }
}
