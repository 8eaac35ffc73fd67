/**
 * Writes the model events of one answer, for all protocols.
 *
 * It keeps the books that each protocol needs: the index of each block, the block that is open, the ids of tool calls, and the
 * reason why the answer ended.
 *
 * @since 0.2.0
 */
import type * as Schema from "effect/Schema"
import type { StopReason } from "../Message.ts"
import type { Adjustment, ModelEvent } from "../ModelEvent.ts"
import type { Usage } from "../Usage.ts"
import { CallIds } from "./internal/callId.ts"
import * as Opaque from "./internal/opaque.ts"

type Data = Readonly<Record<string, Schema.Json>>
type Finish = Extract<ModelEvent, { readonly _tag: "Finish" }>

/**
 * The call to which an answer belongs.
 *
 * @since 0.2.0
 * @category models
 */
export interface Call {
  /** The model id of the request. */
  readonly model: string
  /** A text that no other call has: the base of ids that the server leaves out. */
  readonly seed: string
  /** The options that the provider changed for the model (default: none). */
  readonly adjusted?: ReadonlyArray<Adjustment>
}

/**
 * The provider and the protocol of an answer.
 *
 * @since 0.2.0
 * @category models
 */
export interface Speaker {
  /** The id of the provider. */
  readonly provider: string
  /** The name of the protocol. */
  readonly name: string
}

/**
 * The names that a server gives an answer.
 *
 * @since 0.2.0
 * @category models
 */
export interface Names {
  /** The id of the answer (default: the server sends none). */
  readonly responseId?: string | undefined
  /** The id of the model that answered (default: the server sends none). */
  readonly responseModel?: string | undefined
}

/**
 * Writes the model events of one answer.
 *
 * **Details**
 *
 * A protocol whose blocks follow each other writes with `text` and `thinking`, which open a block where none of that kind is
 * open. A protocol whose server announces blocks, or sends several at once, writes to the blocks of `openText`,
 * `openThinking` and `openCall`.
 *
 * **Example** (Writing an answer)
 *
 * ```ts
 * import { ReplyWriter } from "effect-agent/providers"
 *
 * const reply = new ReplyWriter.ReplyWriter({ name: "lines", provider: "acme" }, { model: "small", seed: "1" })
 * reply.text("Hello")
 * reply.finish({ stopReason: "stop" })
 *
 * console.log(reply.take().map(({ _tag }) => _tag).join()) // => Start,TextStart,TextDelta,TextEnd,Finish
 * ```
 *
 * @since 0.2.0
 * @category models
 */
export class ReplyWriter {
  /** The tool calls of the answer, in the order of their blocks. */
  readonly calls: Array<CallBlock> = []
  /** Whether the model refuses to answer: an answer that would end with `stop` then ends with `refusal`. */
  isRefusal = false

  private readonly protocol: Speaker
  private readonly call: Call
  private readonly ids: CallIds
  /** @internal */
  readonly events: Array<ModelEvent> = []
  private names: Names = {}
  private isStarted = false
  private open: Prose | undefined = undefined
  private count = 0

  constructor(protocol: Speaker, call: Call) {
    this.protocol = protocol
    this.call = call
    this.ids = new CallIds(call.seed)
  }

  /** How many blocks the answer has. */
  get length(): number {
    return this.count
  }

  /** The open block of `text` or `thinking`, `undefined` if there is none. */
  get prose(): Prose | undefined {
    return this.open
  }

  /** Notes the names of the answer. The first ones count. */
  name({ responseId, responseModel }: Names): void {
    this.names = {
      responseId: this.names.responseId ?? responseId,
      responseModel: this.names.responseModel ?? responseModel
    }
  }

  /** Starts the answer, unless it has started. */
  start(): void {
    if (this.isStarted) return
    this.isStarted = true
    const { adjusted = [], model } = this.call
    const { responseId, responseModel } = this.names
    this.events.push({
      _tag: "Start",
      provider: this.protocol.provider,
      model,
      protocol: this.protocol.name,
      ...(responseId === undefined ? {} : { responseId }),
      ...(responseModel === undefined || responseModel === model ? {} : { responseModel }),
      ...(adjusted.length === 0 ? {} : { adjusted })
    })
  }

  /** Appends a piece of text. */
  text(delta: string): void {
    if (delta !== "") this.block("text").write(delta)
  }

  /** Appends a piece of thinking. */
  thinking(delta: string): void {
    if (delta !== "") this.block("thinking").write(delta)
  }

  /** The open block of this kind. Ends an open block of the other kind. */
  block(kind: Prose["kind"]): Prose {
    if (this.open?.kind === kind) return this.open
    this.endProse()
    this.open = this.openProse(kind)
    return this.open
  }

  /** Ends the open block of `text` or `thinking`, if there is one. */
  endProse(): void {
    this.open?.end()
    this.open = undefined
  }

  /** Opens a block of text that only its own `end` ends. */
  openText(): Prose {
    return this.openProse("text")
  }

  /** Opens a block of thinking that only its own `end` ends. */
  openThinking(): Prose {
    return this.openProse("thinking")
  }

  private openProse(kind: Prose["kind"]): Prose {
    this.start()
    return new Prose(kind, this.next(), this.protocol.provider, this.events)
  }

  /**
   * Opens a tool call. `name` may come later, by `CallBlock.named`. The call gets an id of its own if the server sends none, or
   * one that an earlier call has.
   */
  openCall(id: string | undefined, name: string | undefined): CallBlock {
    this.start()
    this.endProse()
    const call = new CallBlock(this.ids.next(id), this.next(), this.protocol.provider, this.events)
    this.calls.push(call)
    if (name !== undefined) call.named(name)
    return call
  }

  /**
   * Ends the answer: ends the open block, all calls, and the answer itself. An answer with calls that would end with `stop`
   * ends with `toolUse`, because many servers send `stop` for it.
   */
  finish(
    finish: Omit<Finish, "_tag" | "stopReason" | "usage"> & {
      readonly stopReason: StopReason
      readonly usage?: Usage | undefined
    }
  ): void {
    const { usage, ...rest } = finish
    this.start()
    this.endProse()
    for (const call of this.calls) call.end()
    this.events.push({
      _tag: "Finish",
      ...rest,
      stopReason: this.stopReason(finish.stopReason),
      ...(usage === undefined ? {} : { usage })
    })
  }

  private stopReason(stopReason: StopReason): StopReason {
    if (stopReason !== "stop") return stopReason
    return this.calls.length > 0 ? "toolUse" : this.isRefusal ? "refusal" : "stop"
  }

  /** Takes the events since the last call. */
  take(): ReadonlyArray<ModelEvent> {
    return this.events.length === 0 ? none : this.events.splice(0)
  }

  private next(): number {
    return this.count++
  }
}

const none: ReadonlyArray<ModelEvent> = []

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
  /** The characters so far. */
  length = 0
  /** The data that the vendor wants back with the block. */
  kept: Data | undefined = undefined

  private readonly provider: string
  private readonly events: Array<ModelEvent>
  private isOpen = true

  /** @internal */
  constructor(kind: Prose["kind"], contentIndex: number, provider: string, events: Array<ModelEvent>) {
    this.kind = kind
    this.contentIndex = contentIndex
    this.provider = provider
    this.events = events
    events.push({ _tag: kind === "text" ? "TextStart" : "ThinkingStart", contentIndex })
  }

  /** Appends a piece. */
  write(delta: string): void {
    if (delta === "") return
    this.length += delta.length
    const { contentIndex, kind } = this
    this.events.push({ _tag: kind === "text" ? "TextDelta" : "ThinkingDelta", contentIndex, delta })
  }

  /** Adds data that the vendor wants back with the block. */
  keep(data: Data): void {
    this.kept = { ...this.kept, ...data }
  }

  /** Ends the block, once. Thinking without a text, of which the vendor wants data back, is hidden. */
  end(): void {
    if (!this.isOpen) return
    this.isOpen = false
    const { contentIndex, kept, kind } = this
    const opaque = kept === undefined ? {} : { opaque: Opaque.make(this.provider, kept) }
    const redacted = kind === "thinking" && kept !== undefined && this.length === 0 ? { redacted: true } : {}
    this.events.push(
      kind === "text"
        ? { _tag: "TextEnd", contentIndex, ...opaque }
        : { _tag: "ThinkingEnd", contentIndex, ...opaque, ...redacted }
    )
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
  /** The data that the vendor wants back with the call. */
  kept: Data | undefined = undefined

  private readonly provider: string
  private readonly events: Array<ModelEvent>
  private isOpen = true

  /** @internal */
  constructor(id: string, contentIndex: number, provider: string, events: Array<ModelEvent>) {
    this.id = id
    this.contentIndex = contentIndex
    this.provider = provider
    this.events = events
  }

  /** Announces the call with its name, and with the arguments so far. The first name counts. */
  named(name: string): void {
    if (this.name !== undefined) return
    this.name = name
    const { contentIndex, id, json } = this
    this.events.push({ _tag: "ToolCallStart", contentIndex, id, name })
    if (json !== "") this.events.push({ _tag: "ToolCallDelta", contentIndex, delta: json })
  }

  /** Appends a piece of the JSON text of the arguments. */
  write(delta: string): void {
    if (delta === "") return
    this.json += delta
    const { contentIndex } = this
    if (this.name !== undefined) this.events.push({ _tag: "ToolCallDelta", contentIndex, delta })
  }

  /** Adds data that the vendor wants back with the call. */
  keep(data: Data): void {
    this.kept = { ...this.kept, ...data }
  }

  /** Ends the call, once. `rawArguments` is the whole JSON text, if it differs from the pieces. */
  end(rawArguments = this.json): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.named("")
    const { contentIndex, kept } = this
    const opaque = kept === undefined ? {} : { opaque: Opaque.make(this.provider, kept) }
    this.events.push({ _tag: "ToolCallEnd", contentIndex, rawArguments, ...opaque })
  }

  /** Leaves the call out: the vendor stopped the model in the middle of its arguments. */
  drop(): void {
    this.isOpen = false
  }
}
