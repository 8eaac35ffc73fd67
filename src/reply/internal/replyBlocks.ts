/** The blocks of an answer while they come in. */
import type * as Schema from "effect/Schema"
import type { AnswerSize } from "../../internal/answerSize.ts"
import type { HostedTool } from "../../Message.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import { wholeArguments } from "../WholeArguments.ts"

/** Data that a vendor wants back. */
export type Data = Readonly<Record<string, Schema.Json>>
type Run = Pick<HostedTool, "params" | "result" | "isError">

/** The struct field `opaque` of a block: data that goes back to the provider that sent it alone. */
export const opaqueOf = (provider: string, kept: Data | undefined): { readonly opaque?: Data } =>
  kept === undefined ? {} : { opaque: { provider, ...kept } }

/** The parts of an answer that all its blocks use. */
export interface Shared {
  readonly provider: string
  readonly events: Array<ModelEvent>
  readonly size: AnswerSize
  /** Gives arguments the names of the tool's own schema. */
  readonly restore: ((name: string, rawArguments: string) => string) | undefined
  /** Ends a call that stands for several. Returns whether it does. `undefined` for a name that calls one tool. */
  readonly several: ((call: CallBlock, json: string) => boolean) | undefined
}

const restOf = (whole: string, text: string): string =>
  whole.length > text.length && whole.startsWith(text) ? whole.slice(text.length) : ""

/**
 * A block of text or of thinking.
 *
 * @since 0.2.0
 * @category models
 */
export class Prose {
  /** The kind of the block. */
  readonly kind: "text" | "thinking"
  /** The index of the block in the answer. */
  readonly contentIndex: number
  /** The text so far. */
  text = ""
  /** The data that the vendor wants back with the block. */
  kept: Data | undefined = undefined

  private keptAtEnd: (() => Data) | undefined = undefined
  private readonly shared: Pick<Shared, "provider" | "events" | "size">
  private isOpen = true

  /** @internal */
  constructor(
    kind: Prose["kind"],
    contentIndex: number,
    shared: Pick<Shared, "provider" | "events" | "size">
  ) {
    this.kind = kind
    this.contentIndex = contentIndex
    this.shared = shared
    shared.events.push({ _tag: kind === "text" ? "TextStart" : "ThinkingStart", contentIndex })
  }

  /** The characters so far. */
  get length(): number {
    return this.text.length
  }

  /** Appends a piece. */
  write(delta: string): void {
    if (delta === "") return
    this.text += delta
    const { contentIndex, kind, shared } = this
    shared.size.addText(delta.length)
    shared.events.push({ _tag: kind === "text" ? "TextDelta" : "ThinkingDelta", contentIndex, delta })
  }

  /** Appends what the whole text has after the pieces, if it begins with them. */
  complete(whole: string): void {
    this.write(restOf(whole, this.text))
  }

  /** Adds data that the vendor wants back with the block. */
  keep(data: Data): void {
    this.kept = { ...this.kept, ...data }
  }

  /** Adds data that is known when the block ends. */
  keepAtEnd(data: () => Data): void {
    this.keptAtEnd = data
  }

  /** Ends the block, once. Thinking without a text, of which the vendor wants data back, is hidden. */
  end(): void {
    if (!this.isOpen) return
    this.isOpen = false
    if (this.keptAtEnd !== undefined) this.keep(this.keptAtEnd())
    const { contentIndex, kept, kind, shared } = this
    const opaque = opaqueOf(shared.provider, kept)
    const redacted = kind === "thinking" && kept !== undefined && this.length === 0 ? { redacted: true } : {}
    shared.events.push(
      kind === "text"
        ? { _tag: "TextEnd", contentIndex, ...opaque }
        : { _tag: "ThinkingEnd", contentIndex, ...opaque, ...redacted }
    )
  }
}

/**
 * A call of a tool that the vendor runs, or the result of one.
 *
 * @since 0.2.0
 * @category models
 */
export class HostedBlock {
  /** The index of the block in the answer. */
  readonly contentIndex: number

  private readonly ended: (run: Run, kept: Data | undefined) => void
  private isOpen = true

  /** @internal */
  constructor(contentIndex: number, ended: (run: Run, kept: Data | undefined) => void) {
    this.contentIndex = contentIndex
    this.ended = ended
  }

  /** Ends the block, once, with the params of the call, its result, or both. `kept` is the data that the vendor wants back. */
  end(run: Run, kept?: Data): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.ended(run, kept)
  }
}

/**
 * A tool call while its arguments come in.
 *
 * @since 0.2.0
 * @category models
 */
export class CallBlock {
  /** The id of the call, which no other call of the answer has. */
  readonly id: string
  /** The index of the block in the answer. */
  readonly contentIndex: number
  /** The name of the tool, `undefined` until the server sends it. */
  name: string | undefined = undefined
  /** The JSON text of the arguments so far. */
  json = ""
  /** Whether the arguments are a text of any form, and not JSON. */
  isText = false
  /** The data that the vendor wants back with the call. */
  kept: Data | undefined = undefined
  /** Whether the vendor runs the call once it is approved. */
  isHosted = false

  private readonly shared: Shared
  private isOpen = true
  private isAnnounced = false
  /** The last piece, while each begins with the one before it: a server may send all the arguments so far in each. */
  private last: string | undefined = ""

  /** @internal */
  constructor(id: string, contentIndex: number, shared: Shared) {
    this.id = id
    this.contentIndex = contentIndex
    this.shared = shared
  }

  /** The arguments so far: one JSON object, however often or deeply encoded the server sent it. */
  get arguments(): string {
    return this.wholeOf(this.json)
  }

  private wholeOf(json: string): string {
    return this.isText ? json : wholeArguments(json, this.last)
  }

  /** Whether a piece has all the pieces so far, and more. */
  isGrown(piece: string): boolean {
    const { last = "" } = this
    return last !== "" && piece.length > last.length && piece.startsWith(last)
  }

  /** Announces the call with its name, and with the arguments so far. The first name counts. */
  named(name: string): void {
    if (this.name !== undefined) return
    this.name = name
    if (this.shared.several === undefined) this.announce(name)
  }

  private announce(name: string): void {
    this.isAnnounced = true
    const { contentIndex, id, json, shared } = this
    shared.events.push({ _tag: "ToolCallStart", contentIndex, id, name })
    if (json !== "") shared.events.push({ _tag: "ToolCallDelta", contentIndex, delta: json })
  }

  /** Appends a piece of the JSON text of the arguments. */
  write(delta: string): void {
    if (delta === "") return
    this.json += delta
    if (this.last !== undefined) this.last = delta.startsWith(this.last) ? delta : undefined
    const { contentIndex, shared } = this
    shared.size.addArguments(delta.length)
    if (this.isAnnounced) shared.events.push({ _tag: "ToolCallDelta", contentIndex, delta })
  }

  /** Appends what the whole JSON text has after the pieces, if it begins with them. */
  complete(whole: string): void {
    const rest = restOf(whole, this.json)
    if (rest === "") this.shared.size.addArguments(Math.max(0, whole.length - this.json.length))
    this.write(rest)
  }

  /** Adds data that the vendor wants back with the call. */
  keep(data: Data): void {
    this.kept = { ...this.kept, ...data }
  }

  /** Ends the call, once. `json` is the whole JSON text, if it differs from the pieces. */
  end(json = this.json): void {
    if (!this.isOpen) return
    const rawArguments = this.wholeOf(json)
    if (this.shared.several?.(this, rawArguments) === true) return
    this.endAs(this.name ?? "", rawArguments)
  }

  /** @internal Ends the call under a name. */
  endAs(name: string, json: string): void {
    this.isOpen = false
    if (!this.isAnnounced) this.announce(name)
    const { contentIndex, isText, kept, shared } = this
    const rawArguments = (isText ? undefined : shared.restore?.(name, json)) ?? json
    const opaque = opaqueOf(shared.provider, kept)
    const hosted = this.isHosted ? { hosted: true } : {}
    shared.events.push({ _tag: "ToolCallEnd", contentIndex, rawArguments, ...opaque, ...hosted })
  }

  /** Leaves the call out: the vendor stopped the model in the middle of its arguments. */
  drop(): void {
    this.isOpen = false
    if (!this.isAnnounced) this.announce(this.name ?? "")
  }
}

/** Assigns ids to the calls of one answer. A server may leave out an id or send it twice. */
export class CallIds {
  private readonly given = new Set<string>()
  private readonly seed: string
  private count = 0

  /** `seed` must be unique for each answer. */
  constructor(seed: string) {
    this.seed = seed
  }

  /** The id of the next call: the one of the server, unless it has none or an earlier call has it. */
  next(wireId: string | undefined): string {
    const number = this.count++
    const own = wireId ?? `call_${this.seed}_${number}`
    const id = this.given.has(own) ? `${own}_${number}` : own
    this.given.add(id)
    return id
  }
}
