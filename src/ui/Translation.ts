/** The events of a run in the protocol of a page: a step at a time, and as server-sent events. */
import * as Cause from "effect/Cause"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../AgentEvent.ts"
import * as FailureText from "../internal/failureText.ts"

/** How a protocol says what happens. */
interface Protocol<State, Frame> {
  /** Makes the state of a response. */
  readonly initial: () => State
  readonly step: (state: State, event: AgentEvent) => readonly [State, ReadonlyArray<Frame>]
  /** The frame that says why a response broke off. */
  readonly failed: (message: string) => Frame
}

/** Translates the events of a run. A stream that fails ends with the frame of a failure, unless the run has ended. */
export const project =
  <State extends { readonly hasEnded: boolean }, Frame>({ failed, initial, step }: Protocol<State, Frame>) =>
  <E, R>(self: Stream.Stream<AgentEvent, E, R>): Stream.Stream<Frame, never, R> =>
    Stream.suspend(() => {
      let state = initial()
      return self.pipe(
        Stream.map((event) => {
          const [next, frames] = step(state, event)
          state = next
          return frames
        }),
        Stream.flattenIterable,
        Stream.catchCause((cause) =>
          state.hasEnded ? Stream.empty : Stream.succeed(failed(messageOf(cause)))
        )
      )
    })

const messageOf = <E>(cause: Cause.Cause<E>): string =>
  Option.match(Cause.findErrorOption(cause), {
    onNone: () => "The run failed",
    onSome: FailureText.of
  })

/** The text of server-sent events. */
export const encode = <Frame, E, R>(self: Stream.Stream<Frame, E, R>): Stream.Stream<string, E, R> =>
  Stream.mapArray(
    self,
    (frames) => [frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join("")] as const
  )
