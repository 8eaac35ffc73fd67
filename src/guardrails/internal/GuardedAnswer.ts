/**
 * Passes an answer through guards before it is published.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as ModelEvent from "../../ModelEvent.ts"
import type { Guarded } from "../../Provider.ts"
import { GuardrailTripped } from "../../internal/failureReason.ts"
import * as GuardrailCheck from "./GuardrailCheck.ts"
import type { Output, Streamed } from "./GuardrailCheck.ts"

/** A guard put other words in the place of the answer. */
class Replaced {
  readonly _tag = "Replaced"
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** Returns the events of an answer that the guards have passed. Reads on when they have. */
export const guarded = <E>(
  guards: GuardrailCheck.Guards,
  answer: Stream.Stream<ModelEvent.ModelEvent, E>,
  asked: Guarded
): Stream.Stream<ModelEvent.ModelEvent, E | GuardrailTripped> =>
  Stream.suspend(() => {
    const held = new HoldBack({ holdBack: guards.holdBack, isWhole: guards.output.length > 0 })
    return answer.pipe(
      Stream.mapAccumArrayEffect(
        () => held,
        (held, events) =>
          Effect.map(release(guards, held, events, asked), (released) => [held, released] as const)
      ),
      Stream.catch((error): Stream.Stream<ModelEvent.ModelEvent, E | GuardrailTripped> => {
        if (error instanceof Replaced) return Stream.fromIterable(held.replacedBy(error.text))
        // The answer is paid for, although the run does not have it.
        return error instanceof GuardrailTripped
          ? Stream.concat(Stream.fromIterable(held.bill), Stream.fail(error))
          : Stream.fail(error)
      })
    )
  })

const release = Effect.fnUntraced(function* (
  guards: GuardrailCheck.Guards,
  held: HoldBack,
  events: ReadonlyArray<ModelEvent.ModelEvent>,
  { runId, turn }: Guarded
): Effect.fn.Return<ReadonlyArray<ModelEvent.ModelEvent>, GuardrailTripped | Replaced> {
  held.add(events)
  const due = held.due
  const texts = due.map(({ kind, passed, text }) => ({ runId, turn, kind, text, passed }))
  const answer = held.isFinished ? { runId, turn, ...held.answer } : undefined
  if (texts.length > 0 || answer !== undefined) {
    const words = yield* GuardrailCheck.output(guards, texts, answer)
    if (words !== undefined) return yield* Effect.fail(new Replaced(words))
    for (const part of due) part.passed = part.text.length
  }
  return held.release()
})

// ───────────────────────── Events that are held back

type Event = ModelEvent.ModelEvent
type OfTag<T extends Event["_tag"]> = Extract<Event, { readonly _tag: T }>

/** A text of the answer, as far as it has come. */
interface Part {
  readonly kind: Streamed["kind"]
  text: string
  /** Characters that the guards have passed. */
  passed: number
  /** Another part has begun, or the answer is complete: all that has passed may be released. */
  isClosed: boolean
}

/** An event that waits, and the part and the characters of it that it holds. */
interface Held {
  readonly event: Event
  readonly part?: Part
  readonly from: number
  readonly to: number
}

interface Options {
  /** The characters of a part that are withheld at most, beside those that have just arrived. */
  readonly holdBack: number
  /** Whether all is withheld until the answer is complete. */
  readonly isWhole: boolean
}

class HoldBack {
  private readonly overlap: number
  private readonly step: number
  private readonly isWhole: boolean
  private readonly held: Array<Held> = []
  private readonly parts = new Map<string, Part>()
  private current: Part | undefined
  private draft = ModelEvent.draft()
  /** Whether the start, and anything beside it, was released. */
  private released: "nothing" | "start" | "content" = "nothing"

  constructor({ holdBack, isWhole }: Options) {
    this.overlap = Math.floor(holdBack / 2)
    this.step = Math.max(1, holdBack - this.overlap)
    this.isWhole = isWhole
  }

  get isFinished(): boolean {
    return this.draft.finish !== undefined
  }

  /** The whole answer. */
  get answer(): Pick<Output, "content" | "text"> {
    const content = this.draft.content.filter((block) => block !== undefined)
    return { content, text: content.map((block) => (block.type === "text" ? block.text : "")).join("") }
  }

  /** The parts that the guards must check now. */
  get due(): ReadonlyArray<Part> {
    return [...this.parts.values()].filter(({ isClosed, passed, text }) =>
      isClosed ? passed < text.length : text.length - passed >= this.step
    )
  }

  add(events: ReadonlyArray<Event>): void {
    for (const event of events) {
      ModelEvent.add(this.draft, event)
      if (event._tag === "Retracted") {
        this.held.splice(0, this.held.length, ...this.held.filter(({ event }) => event._tag === "Attempt"))
        this.parts.clear()
        this.current = undefined
      }
      this.held.push(this.placed(event))
    }
  }

  private placed(event: Event): Held {
    const key = keyOf(event)
    if (key !== undefined || event._tag === "HostedToolStart") this.close(key)
    if (event._tag === "Finish") for (const part of this.parts.values()) part.isClosed = true
    if (key === undefined) return { event, from: 0, to: 0 }
    const part = this.partOf(key)
    const from = part.text.length
    if (event._tag === "ToolCallEnd") {
      if (event.rawArguments !== part.text) this.replace(part, event.rawArguments)
      part.isClosed = true
    } else if (isDelta(event)) {
      part.text += event.delta
      part.isClosed = false
    }
    return { event, part, from, to: part.text.length }
  }

  /** Puts the whole text of a part in the place of that of its deltas. Those that wait are void, and no guard has passed them. */
  private replace(part: Part, text: string): void {
    Object.assign(part, { text, passed: 0 })
    const kept = this.held.filter((held) => held.part !== part || !isDelta(held.event))
    this.held.splice(0, this.held.length, ...kept)
  }

  /** Closes the part before, if another one begins. */
  private close(key: string | undefined): void {
    const next = key === undefined ? undefined : this.partOf(key)
    if (this.current !== undefined && this.current !== next) this.current.isClosed = true
    this.current = next
  }

  private partOf(key: string): Part {
    const known = this.parts.get(key)
    if (known !== undefined) return known
    const kind = key === "text" || key === "thinking" ? key : "arguments"
    const part: Part = { kind, text: "", passed: 0, isClosed: false }
    this.parts.set(key, part)
    return part
  }

  /** Removes and returns the events at the start whose text has passed. Cuts a delta within its text. */
  release(): ReadonlyArray<Event> {
    const ready: Array<Event> = []
    let count = 0
    for (const held of this.held) {
      const limit = this.limitOf(held)
      if (held.to > limit) {
        this.held[count] = split(held, limit, ready)
        break
      }
      ready.push(held.event)
      count++
    }
    if (count > 0) this.held.splice(0, count)
    for (const event of ready) this.note(event)
    return ready
  }

  /** The number of characters of its part up to which an event may be released; -1 for none. */
  private limitOf({ event, part }: Held): number {
    if (this.isWhole && !this.isFinished && !framing.has(event._tag)) return -1
    if (part === undefined) return 0
    return part.isClosed ? part.passed : Math.max(0, part.passed - this.overlap)
  }

  private note({ _tag }: Event): void {
    if (_tag === "Retracted") this.released = "nothing"
    else if (_tag === "Start") this.released = "start"
    else if (_tag !== "Attempt") this.released = "content"
  }

  /** The usage of the answer, if it is complete. */
  get bill(): ReadonlyArray<Event> {
    const { usage } = this.draft.finish ?? {}
    return usage === undefined ? [] : [{ _tag: "Finish", stopReason: "error", usage }]
  }

  /** The events of other words in the place of the answer. */
  replacedBy(text: string): ReadonlyArray<Event> {
    const { finish, start } = this.draft
    const isPublic = this.released === "content"
    return [
      ...(isPublic ? [{ _tag: "Retracted" } as const] : []),
      ...(start !== undefined && (isPublic || this.released === "nothing") ? [start] : []),
      { _tag: "TextStart", contentIndex: 0 },
      { _tag: "TextDelta", contentIndex: 0, delta: text },
      { _tag: "TextEnd", contentIndex: 0 },
      // Without the log probabilities, which have the tokens.
      { _tag: "Finish", stopReason: "stop", ...(finish?.usage === undefined ? {} : { usage: finish.usage }) }
    ]
  }
}

/** Events that have no text of the answer. */
const framing: ReadonlySet<Event["_tag"]> = new Set(["Start", "Attempt", "Retracted"])

const isDelta = (event: Event): event is OfTag<"TextDelta" | "ThinkingDelta" | "ToolCallDelta"> =>
  event._tag === "TextDelta" || event._tag === "ThinkingDelta" || event._tag === "ToolCallDelta"

const keyOf = (event: Event): string | undefined => {
  switch (event._tag) {
    case "TextStart":
    case "TextDelta":
    case "TextEnd":
      return "text"
    case "ThinkingStart":
    case "ThinkingDelta":
    case "ThinkingEnd":
      return "thinking"
    case "ToolCallStart":
    case "ToolCallDelta":
    case "ToolCallEnd":
      return `arguments ${event.contentIndex}`
    default:
      return undefined
  }
}

/** Releases the part of a delta up to a limit, and returns the rest. Never cuts a pair of surrogates. */
const split = (held: Held, limit: number, ready: Array<Event>): Held => {
  const { event, from, part } = held
  if (part === undefined || !isDelta(event) || limit <= from) return held
  // Of the delta, not of the whole text, which would be copied for each delta.
  const { delta } = event
  const isPair = /^[\ud800-\udbff][\udc00-\udfff]$/.test(
    delta.slice(Math.max(0, limit - from - 1), limit - from + 1)
  )
  const at = isPair ? limit - 1 : limit
  if (at <= from) return held
  ready.push({ ...event, delta: event.delta.slice(0, at - from) })
  return { ...held, event: { ...event, delta: event.delta.slice(at - from) }, from: at }
}
