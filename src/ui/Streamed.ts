/**
 * A run as a page or an editor shows it: the part of an answer that a reader of events has, and the rest that it lacks once it gets the whole
 * message, since deltas may be missing, and a hook may replace an answer after its deltas; and the events as frames.
 */
import * as Cause from "effect/Cause"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { Assistant } from "../Message.ts"
import * as ModelEvent from "../ModelEvent.ts"
import type { AgentEvent } from "../AgentEvent.ts"
import * as FailureText from "../internal/failureText.ts"

/**
 * The part of an answer that a reader of events has.
 *
 * @category models
 * @since 0.2.0
 */
export interface Streamed {
  /** The blocks by now. */
  readonly reply: ModelEvent.Reply
  /** The indices of the blocks that have ended. */
  readonly ended: ReadonlySet<number>
}

export const nothing: Streamed = { reply: ModelEvent.emptyReply, ended: new Set() }

type Block = Assistant["content"][number]
type BlockEvent = Extract<ModelEvent.ModelEvent, { readonly contentIndex: number }>

const endsBlock: ReadonlySet<string> = new Set([
  "TextEnd",
  "ThinkingEnd",
  "ToolCallEnd",
  "HostedToolEnd",
  "Source",
  "Media"
])

/** The answer with one more delta. */
export const append = ({ ended, reply }: Streamed, event: ModelEvent.ModelEvent): Streamed => ({
  reply: ModelEvent.append(reply, event),
  ended: endsBlock.has(event._tag) && "contentIndex" in event ? new Set(ended).add(event.contentIndex) : ended
})

/** The blocks that have begun and not ended, by their index. */
export const open = ({
  ended,
  reply
}: Streamed): ReadonlyArray<readonly [contentIndex: number, block: Block]> =>
  begun(reply).filter(([contentIndex]) => !ended.has(contentIndex))

const begun = ({ content }: ModelEvent.Reply): ReadonlyArray<readonly [number, Block]> =>
  content.flatMap((block, contentIndex) => (block === undefined ? [] : [[contentIndex, block] as const]))

/** The deltas that complete the answer to the message, `undefined` if the message contradicts the deltas before. */
export const rest = (
  { ended, reply }: Streamed,
  message: Assistant
): ReadonlyArray<BlockEvent> | undefined => {
  const given = begun(reply)
  if (given.length > message.content.length) return undefined
  const events: Array<BlockEvent> = []
  for (const [at, block] of message.content.entries()) {
    const [contentIndex, before] = given[at] ?? []
    const missing =
      before === undefined || contentIndex === undefined
        ? whole(block, reply.content.length + at - given.length)
        : restOf(before, block, contentIndex, ended.has(contentIndex))
    if (missing === undefined) return undefined
    events.push(...missing)
  }
  return events
}

const restOf = (
  before: Block,
  block: Block,
  contentIndex: number,
  hasEnded: boolean
): ReadonlyArray<BlockEvent> | undefined => {
  if (before.type !== block.type) return undefined
  if ("text" in block && "text" in before) {
    if (hasEnded) return before.text === block.text ? [] : undefined
    return block.text.startsWith(before.text)
      ? whole(block, contentIndex, before.text.length).slice(1)
      : undefined
  }
  if ("name" in block && "name" in before) {
    if (before.id !== block.id || before.name !== block.name) return undefined
    if (!hasEnded) return whole(block, contentIndex).slice(1)
    const isEqual =
      !("rawArguments" in block && "rawArguments" in before) || argumentsOf(block) === argumentsOf(before)
    return isEqual ? [] : undefined
  }
  return []
}

const argumentsOf = ({ rawArguments }: { readonly rawArguments: string }) => rawArguments

/** All events of a block, the text `from` an index. */
const whole = (block: Block, contentIndex: number, from = 0): ReadonlyArray<BlockEvent> => {
  const end = { contentIndex, ...("opaque" in block ? { opaque: block.opaque } : {}) }
  switch (block.type) {
    case "text":
      return [
        { _tag: "TextStart", contentIndex },
        ...deltaOf("TextDelta", contentIndex, block.text.slice(from)),
        { _tag: "TextEnd", ...end }
      ]
    case "thinking":
      return [
        { _tag: "ThinkingStart", contentIndex },
        ...deltaOf("ThinkingDelta", contentIndex, block.text.slice(from)),
        { _tag: "ThinkingEnd", ...end }
      ]
    case "toolCall": {
      const { id, name, rawArguments } = block
      return [
        { _tag: "ToolCallStart", contentIndex, id, name },
        { _tag: "ToolCallEnd", ...end, rawArguments }
      ]
    }
    case "hostedTool": {
      const { id, name, type: _, ...result } = block
      return [
        { _tag: "HostedToolStart", contentIndex, id, name },
        { _tag: "HostedToolEnd", contentIndex, ...result }
      ]
    }
    case "source":
      return [{ _tag: "Source", contentIndex, source: block }]
    case "media":
      return [{ _tag: "Media", contentIndex, media: block }]
  }
}

const deltaOf = (
  _tag: "TextDelta" | "ThinkingDelta",
  contentIndex: number,
  delta: string
): ReadonlyArray<BlockEvent> => (delta === "" ? [] : [{ _tag, contentIndex, delta }])

// ───────────────────────── The events of a run in the protocol of a page: a step at a time, and as server-sent events

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
