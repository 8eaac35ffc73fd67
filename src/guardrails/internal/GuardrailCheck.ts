/**
 * Runs the checks of guards, and fails closed.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"
import type { Assistant, ModelMessage } from "../../Message.ts"
import * as Provider from "../../Provider.ts"
import { GuardrailTripped } from "../../internal/failureReason.ts"
import * as ModelEvent from "../../ModelEvent.ts"

type Bound<I> = Options<I, unknown, never>

/** The guards of a layer, with the services that they require. */
export interface Guards {
  readonly input: ReadonlyArray<Bound<Input>>
  readonly output: ReadonlyArray<Bound<Output>>
  readonly stream: ReadonlyArray<Bound<Streamed>>
  /** The characters of a text that are withheld at most. */
  readonly holdBack: number
}

/**
 * Binds guards to the services of their layer, which go over those of the run, but for its span. Runs within a check are not
 * guarded: a guard that asks an agent would check itself.
 */
export const bound = <R>(guards: ReadonlyArray<Guardrail>, services: Context.Context<R>): Guards => {
  const own = Context.add(services, Provider.Guard, {})
  const bind = <I>(guard: Options<I, unknown, R>): Bound<I> => ({
    ...guard,
    check: (input) => {
      const checking = guard.check(input)
      return Effect.isEffect(checking)
        ? Effect.updateContext(checking, (caller: Context.Context<never>) => within(caller, own))
        : checking
    }
  })
  const holdBacks = guards.flatMap((guard) => (guard.stage === "stream" ? [guard.holdBack ?? 256] : []))
  const holdBack = Math.max(0, ...holdBacks)
  return {
    input: guards.flatMap((guard) => (guard.stage === "input" ? [bind(guard)] : [])),
    output: guards.flatMap((guard) => (guard.stage === "output" ? [bind(guard)] : [])),
    stream: guards.flatMap((guard) => (guard.stage === "stream" ? [bind(guard)] : [])),
    // A value that is not a number withholds all: it must not release text that no guard has passed.
    holdBack: Number.isNaN(holdBack) ? Infinity : holdBack
  }
}

const within = <R>(caller: Context.Context<never>, own: Context.Context<R>): Context.Context<R> => {
  const span = Context.getOption(caller, Tracer.ParentSpan)
  const merged = Context.merge(caller, own)
  return span._tag === "None" ? merged : Context.add(merged, Tracer.ParentSpan, span.value)
}

/** Checks a request. Succeeds with words to answer with in place of the model. */
export const input = (
  guards: Guards,
  { request, runId, turn }: Provider.Guarded
): Effect.Effect<string | undefined, GuardrailTripped> => {
  const { messages, model, system } = request
  const last = messages.findLastIndex(({ role }) => role === "assistant")
  const checked: Input = {
    runId,
    turn,
    model,
    ...(system === undefined ? {} : { system }),
    messages,
    news: messages.slice(last + 1)
  }
  return all(guards.input.map((guard) => decide("input", guard, checked)))
}

/** Checks a whole answer and texts of it, as far as they have come. Succeeds with words to put in its place. */
const output = (
  guards: Guards,
  texts: ReadonlyArray<Streamed>,
  answer: Output | undefined
): Effect.Effect<string | undefined, GuardrailTripped> =>
  all([
    ...texts.flatMap((text) => guards.stream.map((guard) => decide("output", guard, text))),
    ...(answer === undefined ? [] : guards.output.map((guard) => decide("output", guard, answer)))
  ])

type Decision = Effect.Effect<string | undefined, GuardrailTripped>

/** Runs checks side by side. The first that trips interrupts the others. */
const all = (decisions: ReadonlyArray<Decision>): Decision =>
  Effect.map(
    Effect.forEach(decisions, (decision) => decision, { concurrency: "unbounded" }),
    (words) => words.find((text) => text !== undefined)
  )

/** Runs one check. Every end of it but a verdict that passes or replaces is an error. */
const decide = <I>(stage: GuardrailTripped["stage"], guard: Bound<I>, checked: I): Decision => {
  const timeout = Duration.fromInputUnsafe(guard.timeout ?? "10 seconds")
  const tripped = (detail: string) => Effect.fail(new GuardrailTripped({ guard: guard.name, stage, detail }))
  return Effect.suspend(() => {
    const checking: unknown = guard.check(checked)
    return isEffect(checking) ? checking : Effect.fail(noEffect)
  }).pipe(
    Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.succeed(late) }),
    Effect.matchCauseEffect({
      onFailure: (cause) =>
        Cause.hasInterruptsOnly(cause) ? Effect.interrupt : tripped(failureOf(Cause.squash(cause))),
      onSuccess: (verdict) => {
        if (verdict === late) return tripped(`it took longer than ${Duration.format(timeout)}`)
        if (!isVerdict(verdict)) return tripped("it returned no verdict")
        if (verdict._tag === "Trip") return tripped(verdict.detail)
        return Effect.succeed(verdict._tag === "Replace" ? verdict.text : undefined)
      }
    })
  )
}

const late = Symbol("late")
const noEffect = { _tag: "NoEffect" }

const isEffect = (value: unknown): value is Effect.Effect<unknown, unknown> => Effect.isEffect(value)

const isVerdict = (value: unknown): value is Verdict =>
  Predicate.isObject(value) &&
  (value["_tag"] === "Pass" ||
    (value["_tag"] === "Trip" && Predicate.isString(value["detail"])) ||
    (value["_tag"] === "Replace" && Predicate.isString(value["text"])))

/** Names a failure without its text, which may quote what the guard has read. */
const failureOf = (failure: unknown): string => {
  if (failure === noEffect) return "it returned no Effect"
  const name =
    Predicate.hasProperty(failure, "_tag") && Predicate.isString(failure._tag)
      ? failure._tag
      : failure instanceof Error
        ? failure.name
        : typeof failure
  return /^[\w.:/-]{1,60}$/.test(name) ? `it failed with ${name}` : "it failed"
}

// ───────────────────────── Guards

// Guards and their verdicts.
//
// @since 0.2.0

/**
 * The messages that an input guard checks.
 *
 * @category models
 * @since 0.2.0
 */
export interface Input {
  /** The id of the run. */
  readonly runId: string
  /** The number of the turn, from 1. */
  readonly turn: number
  /** The id of the model. */
  readonly model: string
  /** The system prompt, if there is one. */
  readonly system?: string
  /** All messages of the request, oldest first. */
  readonly messages: ReadonlyArray<ModelMessage>
  /** The messages after the last answer of the model: prompts, and results of tools. */
  readonly news: ReadonlyArray<ModelMessage>
}

/**
 * The whole answer that an output guard checks.
 *
 * @category models
 * @since 0.2.0
 */
export interface Output {
  /** The id of the run. */
  readonly runId: string
  /** The number of the turn, from 1. */
  readonly turn: number
  /** The text of the answer, without thinking and tool calls. */
  readonly text: string
  /** The blocks of the answer. */
  readonly content: Assistant["content"]
}

/**
 * A text that a stream guard checks, as far as it has come.
 *
 * @category models
 * @since 0.2.0
 */
export interface Streamed {
  /** The id of the run. */
  readonly runId: string
  /** The number of the turn, from 1. */
  readonly turn: number
  /** The part of the answer: its text, its thinking, or the JSON text of the arguments of one tool call. */
  readonly kind: "text" | "thinking" | "arguments"
  /** The part from its start, with the text of all blocks of text, or of all blocks of thinking. */
  readonly text: string
  /** The number of characters at the start of `text` that the guard has passed before. */
  readonly passed: number
}

/**
 * The decision of a guard, which `pass`, `trip` and `replace` make.
 *
 * @category models
 * @since 0.2.0
 */
export type Verdict =
  | { readonly _tag: "Pass" }
  | { readonly _tag: "Trip"; readonly detail: string }
  | { readonly _tag: "Replace"; readonly text: string }

/**
 * The verdict that lets the messages or the answer through.
 *
 * @category constants
 * @since 0.2.0
 */
export const pass: Verdict = { _tag: "Pass" }

/**
 * Makes the verdict that fails the run with `GuardrailTripped`.
 *
 * **Gotchas**
 *
 * `detail` is in events and in the transcript: do not quote the text that the guard withholds.
 *
 * **Example** (Stopping a run)
 *
 * ```ts
 * import { Guardrail } from "effect-agent/guardrails"
 *
 * console.log(Guardrail.trip("it has a password")) // => { _tag: 'Trip', detail: 'it has a password' }
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const trip = (detail: string): Verdict => ({ _tag: "Trip", detail })

/**
 * Makes the verdict that puts other words in the place of the answer.
 *
 * **Details**
 *
 * The run ends with these words, unless something is queued. Tool calls of the answer do not run. If others have seen a part of the
 * answer, the run retracts it (`MessageRetracted`).
 *
 * **Example** (Answering in other words)
 *
 * ```ts
 * import { Guardrail } from "effect-agent/guardrails"
 *
 * console.log(Guardrail.replace("I cannot help with that.")._tag) // => Replace
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const replace = (text: string): Verdict => ({ _tag: "Replace", text })

/**
 * Options of every guard.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options<in I, out E, out R> {
  /** The name of the guard in `GuardrailTripped`. */
  readonly name: string
  /** Decides. */
  readonly check: (checked: I) => Effect.Effect<Verdict, E, R>
  /** The time for one check. A guard that takes longer stops the run. Default 10 seconds. */
  readonly timeout?: Duration.Input
}

/**
 * A guard, which `input`, `output` and `stream` make.
 *
 * @category models
 * @since 0.2.0
 */
export type Guardrail<R = any> =
  | ({ readonly stage: "input" } & Options<Input, unknown, R>)
  | ({ readonly stage: "output" } & Options<Output, unknown, R>)
  | ({ readonly stage: "stream"; readonly holdBack?: number } & Options<Streamed, unknown, R>)

// ───────────────────────── An answer that passes guards before it is published

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
  guards: Guards,
  answer: Stream.Stream<ModelEvent.ModelEvent, E>,
  asked: Provider.Guarded
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
  guards: Guards,
  held: HoldBack,
  events: ReadonlyArray<ModelEvent.ModelEvent>,
  { runId, turn }: Provider.Guarded
): Effect.fn.Return<ReadonlyArray<ModelEvent.ModelEvent>, GuardrailTripped | Replaced> {
  held.add(events)
  const due = held.due
  const texts = due.map(({ kind, passed, text }) => ({ runId, turn, kind, text, passed }))
  const answer = held.isFinished ? { runId, turn, ...held.answer } : undefined
  if (texts.length > 0 || answer !== undefined) {
    const words = yield* output(guards, texts, answer)
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

interface Holding {
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

  constructor({ holdBack, isWhole }: Holding) {
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
