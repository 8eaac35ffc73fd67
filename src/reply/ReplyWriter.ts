/**
 * Writes the model events of one answer, for all protocols.
 *
 * It keeps the books that each protocol needs: the index of each block, the block that is open, the ids of tool calls, and the
 * reason why the answer ended.
 *
 * @since 0.2.0
 */
import type * as Schema from "effect/Schema"
import type { Media, Source, StopReason } from "../Message.ts"
import type { Adjustment, ModelEvent } from "../ModelEvent.ts"
import type { ToolDefinition } from "../Provider.ts"
import type { Reason } from "../ProviderError.ts"
import type { Usage } from "../Usage.ts"
import { AnswerSize } from "../internal/answerSize.ts"
import * as Json from "../internal/json.ts"
import {
  CallBlock,
  CallIds,
  type Data,
  HostedBlock,
  opaqueOf,
  Prose,
  type Shared
} from "./internal/replyBlocks.ts"

export type { CallBlock, HostedBlock, Prose } from "./internal/replyBlocks.ts"

type Head = Pick<Extract<ModelEvent, { readonly _tag: "Start" }>, "headers" | "rateLimits">
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
  /** The tools of the request, and the note on the answer for later requests (default: unknown). */
  readonly question?: {
    readonly tools: ReadonlyArray<ToolDefinition>
    readonly note?: Schema.JsonObject
  }
  /** Gives the members of a call's arguments the names of the tool's own schema (default: the names that came). */
  readonly restore?: ((name: string, rawArguments: string) => string) | undefined
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

  /** Whether the answer has started. */
  isStarted = false

  private readonly protocol: Speaker
  private readonly call: Call
  private readonly ids: CallIds
  private readonly events: Array<ModelEvent> = []
  private readonly size = new AnswerSize()
  private readonly shared: Shared
  private readonly unrepresented: Array<string> = []
  private declared: ReadonlySet<string> | undefined = undefined
  private names: Names = {}
  private head: Head = {}
  private open: Prose | undefined = undefined
  private count = 0

  constructor(protocol: Speaker, call: Call) {
    this.protocol = protocol
    this.call = call
    this.ids = new CallIds(call.seed)
    const { events, size } = this
    this.shared = {
      provider: protocol.provider,
      events,
      size,
      several: undefined,
      restore: call.restore
    }
  }

  /** Why the answer is refused: it is larger than any honest answer. `undefined` while it is not. */
  get problem(): Reason | undefined {
    return this.size.problem
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

  /** Notes the headers of the response, and the rate limits that they report. */
  respond(head: Head): void {
    this.head = head
  }

  /** Starts the answer, unless it has started. */
  start(): void {
    if (this.isStarted) return
    this.isStarted = true
    const { adjusted = [], model, question } = this.call
    const { responseId, responseModel } = this.names
    this.events.push({
      _tag: "Start",
      provider: this.protocol.provider,
      model,
      protocol: this.protocol.name,
      ...(responseId === undefined ? {} : { responseId }),
      ...(responseModel === undefined || responseModel === model ? {} : { responseModel }),
      ...(adjusted.length === 0 ? {} : { adjusted }),
      ...(question?.note === undefined ? {} : { note: question.note }),
      ...this.head
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
    return new Prose(kind, this.next(), this.shared)
  }

  /**
   * Opens a tool call. `name` may come later, by `CallBlock.named`. The call gets an id of its own if the server sends none, or
   * one that an earlier call has.
   */
  openCall(id: string | undefined, name: string | undefined): CallBlock {
    this.start()
    this.endProse()
    const call = new CallBlock(this.ids.next(id), this.next(), this.sharedBy(name))
    this.calls.push(call)
    if (name !== undefined) call.named(name)
    return call
  }

  private sharedBy(name: string | undefined): Shared {
    const { question } = this.call
    if (question === undefined) return this.shared
    this.declared ??= new Set(question.tools.map((tool) => tool.name))
    if (!isParallel(name, this.declared)) return this.shared
    return { ...this.shared, several: (call, json) => this.endSeveral(call, json) }
  }

  /** Ends one call as the several calls that it stands for, if all of them are of tools of the request. */
  private endSeveral(call: CallBlock, json: string): boolean {
    const uses = usesIn(json)
    if (uses === undefined || !uses.every(({ name }) => this.declared?.has(name))) return false
    for (const [at, { name, params }] of uses.entries()) {
      const one = at === 0 ? call : this.openCall(undefined, name)
      // The vendor knows them as one call.
      one.kept = undefined
      one.endAs(name, JSON.stringify(params))
    }
    return true
  }

  /** Notes a part of the answer that nothing stands for, such as `"a chunk that is not JSON"`, for `unrepresented` of `Finish`. */
  note(part: string): void {
    if (this.unrepresented.length < maxNotes) this.unrepresented.push(part)
  }

  /** Counts characters of arguments that come outside of calls, such as those of the vendor's tools. */
  weigh(length: number): void {
    this.size.addArguments(length)
  }

  /** Adds a source. `kept` is the data that the vendor wants back with it. */
  source(source: Omit<Source, "type" | "opaque">, kept?: Data): void {
    const contentIndex = this.whole()
    this.events.push({
      _tag: "Source",
      contentIndex,
      source: { type: "source", ...source, ...opaqueOf(this.protocol.provider, kept) }
    })
  }

  /** Adds a file that the model made. `kept` is the data that the vendor wants back with it. */
  media(media: Omit<Media, "type" | "opaque">, kept?: Data): void {
    const contentIndex = this.whole()
    this.events.push({
      _tag: "Media",
      contentIndex,
      media: { type: "media", ...media, ...opaqueOf(this.protocol.provider, kept) }
    })
  }

  /** Begins a call, or the result of a call, of a tool that the vendor runs. */
  hostedTool(id: string, name: string): HostedBlock {
    const contentIndex = this.whole()
    this.events.push({ _tag: "HostedToolStart", contentIndex, id, name })
    return new HostedBlock(contentIndex, (run, kept) =>
      this.events.push({
        _tag: "HostedToolEnd",
        contentIndex,
        ...run,
        ...opaqueOf(this.protocol.provider, kept)
      })
    )
  }

  /** The index of a block that no open block goes around. */
  private whole(): number {
    this.start()
    this.endProse()
    return this.next()
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
    const unrepresented = [...(finish.unrepresented ?? []), ...this.unrepresented]
    this.start()
    this.endProse()
    for (const call of this.calls.slice()) call.end()
    const stopReason = this.stopReason(finish.stopReason)
    this.events.push({
      _tag: "Finish",
      ...rest,
      stopReason,
      ...(stopReason === "toolUse" && this.calls.length === 0 ? { lacksCalls: true } : {}),
      ...(usage === undefined ? {} : { usage }),
      ...(unrepresented.length === 0 ? {} : { unrepresented })
    })
  }

  private stopReason(stopReason: StopReason): StopReason {
    if (stopReason !== "stop" && stopReason !== "toolUse") return stopReason
    if (this.calls.some(({ isHosted }) => !isHosted)) return "toolUse"
    return this.isRefusal ? "refusal" : this.calls.length > 0 ? "stop" : stopReason
  }

  /** Takes back all blocks: the answer begins anew, with what they should have been. */
  restart(): void {
    this.events.push({ _tag: "Retracted" })
    this.isStarted = false
    this.open = undefined
    this.count = 0
    this.calls.length = 0
    this.start()
  }

  /** Takes the events since the last call. */
  take(): ReadonlyArray<ModelEvent> {
    return this.events.length === 0 ? none : this.events.splice(0)
  }

  private next(): number {
    return this.count++
  }
}

/** Most notes of one answer. */
const maxNotes = 20

const none: ReadonlyArray<ModelEvent> = []

// ───────────────────────── Several calls in one

// Calls of several tools at once that a GPT sometimes writes as one call of a tool `parallel`, which no request declares:
// `{"tool_uses": [{"recipient_name": "functions.read", "parameters": {…}}]}`.

interface Use {
  readonly name: string
  readonly params: Json.JsonObject
}

/** Whether a name is that of the tool, unless a tool of the request has it. */
const isParallel = (name: string | undefined, declared: ReadonlySet<string>): boolean =>
  name !== undefined && names.has(name) && !declared.has(name)

const names: ReadonlySet<string> = new Set(["parallel", "multi_tool_use.parallel", "multi_tool_use_parallel"])

/** The calls in the arguments, `undefined` if they have another form. */
const usesIn = (json: string): ReadonlyArray<Use> | undefined => {
  const uses = Json.array(Json.object(Json.parse(json))?.["tool_uses"]).map(useOf)
  return uses.length > 0 && uses.every((use) => use !== undefined) ? uses : undefined
}

const useOf = (json: Json.Json): Use | undefined => {
  const { parameters, recipient_name: recipient } = Json.object(json) ?? {}
  const name = Json.text(recipient)?.replace(/^functions\./, "")
  const params = parameters === undefined ? {} : Json.object(parameters)
  return name === undefined || params === undefined ? undefined : { name, params }
}
