/**
 * Keeps the events of one run, for readers that each want all of them, from the first one on.
 */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import type * as Pull from "effect/Pull"
import type * as Stream from "effect/Stream"
import type { AgentEvent } from "../AgentEvent.ts"
import type { Reader } from "./delivery.ts"
import { finished, opened } from "./handoff.ts"
import type { RunFailed } from "../RunFailed.ts"

type Batches = Pull.Pull<Arr.NonEmptyReadonlyArray<AgentEvent>, RunFailed>

export class Recording implements Reader {
  private readonly kept: Array<AgentEvent> = []
  private ended: Exit.Exit<void, RunFailed> | undefined
  /** Opens with the next events; made by a reader that waits for them. */
  private more: Latch.Latch | undefined
  readonly room = Effect.void

  add(events: ReadonlyArray<AgentEvent>): void {
    for (const event of events) this.kept.push(event)
    this.wake()
  }

  end(exit: Exit.Exit<void, RunFailed>): void {
    this.ended = exit
    this.wake()
  }

  private wake(): void {
    const { more } = this
    this.more = undefined
    more?.openUnsafe()
  }

  /** All events: those that are kept, and then each that comes. */
  get events(): Stream.Stream<AgentEvent, RunFailed> {
    return opened(() =>
      Effect.sync(() => {
        let read = 0
        const pull: Batches = Effect.suspend(() => {
          const next = this.kept.slice(read)
          read = this.kept.length
          if (Arr.isReadonlyArrayNonEmpty(next)) return Effect.succeed(next)
          if (this.ended !== undefined) return finished(this.ended)
          this.more ??= Latch.makeUnsafe(false)
          return Effect.andThen(this.more.await, pull)
        })
        return pull
      })
    )
  }
}
