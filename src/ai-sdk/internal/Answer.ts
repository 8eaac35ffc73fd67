/**
 * The conversion of the parts of a stream to model events.
 */
import type { LanguageModelV3StreamPart, LanguageModelV4StreamPart } from "@ai-sdk/provider"
import type * as Schema from "effect/Schema"
import type { Adjustment, ModelEvent } from "../../ModelEvent.ts"
import { parseArguments } from "../../ModelEvent.ts"
import type { Reason } from "../../ProviderError.ts"
import type { ModelOptions } from "../../RunOptions.ts"
import * as Adjusted from "./Adjusted.ts"
import * as Ending from "./Ending.ts"
import * as Metadata from "./Metadata.ts"
import * as VendorParts from "./VendorParts.ts"

/** A part of the stream of a model of version 3 or 4. */
export type Part = LanguageModelV3StreamPart | LanguageModelV4StreamPart

type Of<Type extends Part["type"]> = Extract<Part, { type: Type }>
type ProsePart = Of<`${"text" | "reasoning"}-${"start" | "delta" | "end"}`>
type ContentPart = Exclude<
  Part,
  Of<"stream-start" | "raw" | "ping" | "error" | "response-metadata" | "finish">
>

/** The start of a call. Version 3 has no encoding. */
interface CallStart {
  readonly id: string
  readonly toolName: string
  readonly inputEncoding?: "json" | "text"
  readonly providerMetadata?: Metadata.Metadata
}

/** The provider, the model and the options of the request, and the headers of the response. */
export interface Speaker {
  readonly provider: string
  readonly model: string
  readonly options: ModelOptions
  /** The headers of the response. */
  readonly headers: Readonly<Record<string, string>>
}

interface Block {
  readonly kind: "text" | "thinking" | "call" | "hosted"
  readonly contentIndex: number
  metadata: Metadata.Metadata
  /** The arguments of a call as the model writes them. Of prose, only whether it is empty counts. */
  text: string
  /** Whether the deltas of a call are JSON. */
  readonly isJson: boolean
}

/** One answer as it comes. */
export class Answer {
  /** The end of the answer: a `Finish`, a failure, or an error as the model reported it. */
  outcome: "complete" | { readonly reason: Reason } | { readonly error: unknown } | undefined = undefined
  private readonly speaker: Speaker
  private readonly open = new Map<string, Block>()
  private adjusted: ReadonlyArray<Adjustment>
  private next = 0
  private calls = 0
  private begun = false
  private readonly unrepresented = new Set<string>()

  constructor(speaker: Speaker, adjusted: ReadonlyArray<Adjustment>) {
    this.speaker = speaker
    this.adjusted = adjusted
  }

  /** Converts a part. */
  add(part: Part): ReadonlyArray<ModelEvent> {
    const out: Array<ModelEvent> = []
    this.part(part, out)
    return out
  }

  private part(part: Part, out: Array<ModelEvent>): void {
    switch (part.type) {
      case "stream-start":
        this.adjusted = [
          ...this.adjusted,
          ...part.warnings.map((warning) => Adjusted.ofWarning(warning, this.speaker.options))
        ]
        return
      case "raw":
      case "ping":
        return
      case "error":
        this.outcome = { error: part.error }
        return
      case "response-metadata":
        return this.begin(part, out)
      case "finish":
        return this.finish(part, out)
      default:
        this.begin({}, out)
        return this.content(part, out)
    }
  }

  private begin(
    { id, modelId }: { readonly id?: string; readonly modelId?: string },
    out: Array<ModelEvent>
  ): void {
    if (this.begun) return
    this.begun = true
    const { headers, model, provider } = this.speaker
    out.push({
      _tag: "Start",
      provider,
      model,
      protocol: "ai-sdk",
      ...(id === undefined ? {} : { responseId: id }),
      ...(modelId === undefined || modelId === model ? {} : { responseModel: modelId }),
      ...(this.adjusted.length === 0 ? {} : { adjusted: this.adjusted }),
      ...(Object.keys(headers).length === 0 ? {} : { headers })
    })
  }

  private content(part: ContentPart, out: Array<ModelEvent>): void {
    switch (part.type) {
      case "text-start":
      case "text-delta":
      case "text-end":
        return this.prose("text", part, out)
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end":
        return this.prose("thinking", part, out)
      case "tool-input-start":
        return part.providerExecuted === true ? this.startHosted(part, out) : void this.startCall(part, out)
      case "tool-input-delta":
        return this.growCall(part.id, part.delta, out)
      case "tool-input-end":
        return
      case "tool-call":
        return part.providerExecuted === true ? this.hosted(part, out) : this.call(part, out)
      case "tool-approval-request":
        this.unrepresented.add("toolApprovals")
        return
      default:
        return this.whole(part, out)
    }
  }

  /** Adds a part that is a block, or two events of one. */
  private whole(part: VendorParts.Whole, out: Array<ModelEvent>): void {
    const events = VendorParts.eventsOf(part, this.next, this.speaker.provider)
    if (events.length > 0) this.next++
    out.push(...events)
  }

  private prose(kind: "text" | "thinking", part: ProsePart, out: Array<ModelEvent>): void {
    const key = `${kind} ${part.id}`
    const block = this.open.get(key) ?? this.start(kind, key, out)
    const { contentIndex } = block
    block.metadata = Metadata.merge(block.metadata, part.providerMetadata)
    const delta = "delta" in part ? part.delta : ""
    if (delta !== "") {
      block.text ||= delta
      out.push({ _tag: kind === "text" ? "TextDelta" : "ThinkingDelta", contentIndex, delta })
    }
    if (!part.type.endsWith("-end")) return
    this.end(key, block, out)
    if ("citations" in part) for (const citation of part.citations ?? []) this.whole(citation, out)
  }

  private start(kind: "text" | "thinking", key: string, out: Array<ModelEvent>): Block {
    const block = this.newBlock(kind, key)
    out.push({ _tag: kind === "text" ? "TextStart" : "ThinkingStart", contentIndex: block.contentIndex })
    return block
  }

  private newBlock(kind: Block["kind"], key: string, isJson = true): Block {
    const block: Block = { kind, contentIndex: this.next++, metadata: Metadata.none, text: "", isJson }
    this.open.set(key, block)
    return block
  }

  private startCall(
    { id, inputEncoding, providerMetadata, toolName }: CallStart,
    out: Array<ModelEvent>
  ): Block {
    const block = this.newBlock("call", callKey(id), inputEncoding !== "text")
    block.metadata = Metadata.merge(block.metadata, providerMetadata)
    this.calls++
    out.push({ _tag: "ToolCallStart", contentIndex: block.contentIndex, id, name: toolName })
    return block
  }

  private growCall(id: string, delta: string, out: Array<ModelEvent>): void {
    const block = this.open.get(callKey(id))
    if (block === undefined || delta === "" || !block.isJson) return
    block.text += delta
    out.push({ _tag: "ToolCallDelta", contentIndex: block.contentIndex, delta })
  }

  private call(part: Of<"tool-call">, out: Array<ModelEvent>): void {
    const { input, providerMetadata, toolCallId: id } = part
    const block = this.open.get(callKey(id)) ?? this.startCall({ ...part, id }, out)
    if (block.text === "") this.growCall(id, input, out)
    block.text = input
    block.metadata = Metadata.merge(block.metadata, providerMetadata)
    this.end(callKey(id), block, out)
  }

  private startHosted({ id, toolName }: CallStart, out: Array<ModelEvent>): void {
    const { contentIndex } = this.newBlock("hosted", hostedKey(id))
    out.push({ _tag: "HostedToolStart", contentIndex, id, name: toolName })
  }

  private hosted(part: Of<"tool-call">, out: Array<ModelEvent>): void {
    const { input, providerMetadata = Metadata.none, toolCallId: id } = part
    const key = hostedKey(id)
    if (!this.open.has(key)) this.startHosted({ ...part, id }, out)
    const contentIndex = this.open.get(key)?.contentIndex ?? this.next
    this.open.delete(key)
    const params = parseArguments(input)
    out.push({
      _tag: "HostedToolEnd",
      contentIndex,
      ...(params === undefined ? {} : { params }),
      opaque: this.opaque(providerMetadata)
    })
  }

  private end(key: string, block: Block, out: Array<ModelEvent>): void {
    this.open.delete(key)
    const { contentIndex, kind, metadata, text } = block
    const opaque = Metadata.isNone(metadata) ? {} : { opaque: this.opaque(metadata) }
    switch (kind) {
      case "text":
        out.push({ _tag: "TextEnd", contentIndex, ...opaque })
        return
      case "thinking":
        // Marked as this provider's even without metadata, so that the thinking goes back to it.
        out.push({
          _tag: "ThinkingEnd",
          contentIndex,
          opaque: this.opaque(metadata),
          ...(text === "" && !Metadata.isNone(metadata) ? { redacted: true } : {})
        })
        return
      case "call":
        out.push({ _tag: "ToolCallEnd", contentIndex, rawArguments: text, ...opaque })
        return
      case "hosted":
        out.push({ _tag: "HostedToolEnd", contentIndex })
        return
    }
  }

  private opaque(metadata: Metadata.Metadata): Schema.Json {
    return Metadata.toOpaque(this.speaker.provider, metadata)
  }

  private finish({ finishReason, usage }: Of<"finish">, out: Array<ModelEvent>): void {
    const failure = Ending.failureOf(finishReason)
    if (failure !== undefined) {
      this.outcome = { reason: failure }
      return
    }
    this.begin({}, out)
    for (const [key, block] of this.open) this.end(key, block, out)
    this.outcome = "complete"
    const counted = Ending.usageOf(usage)
    out.push({
      _tag: "Finish",
      stopReason: Ending.stopReasonOf(finishReason, this.calls > 0),
      ...(counted === undefined ? {} : { usage: counted }),
      ...(this.unrepresented.size === 0 ? {} : { unrepresented: [...this.unrepresented] })
    })
  }
}

const callKey = (id: string): string => `call ${id}`
const hostedKey = (id: string): string => `hosted ${id}`
