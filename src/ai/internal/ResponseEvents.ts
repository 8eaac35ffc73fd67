/**
 * The conversion of the parts of a response stream to model events.
 */
import type * as Response from "effect/ai/Response"
import type * as Tool from "effect/ai/Tool"
import * as Base64 from "effect/encoding/Base64"
import type * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import type { Media, Source, StopReason } from "../../Message.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import { parseArguments } from "../../ModelEvent.ts"
import type { Reason } from "../../ProviderError.ts"
import { ServerError } from "../../ProviderError.ts"
import * as Usage from "../../Usage.ts"
import * as AiReason from "./AiReason.ts"
import * as Metadata from "./Metadata.ts"

/** A part of a stream whose tool calls are not checked yet. */
export type Part = Response.StreamPart<Record<string, Tool.Any>, "deferred">

/** The provider and the model, as far as they are known before the answer. */
export interface Speaker {
  readonly provider: string
  readonly model: string
}

type Kind = "text" | "thinking" | "call"

interface Block {
  readonly kind: Kind
  readonly contentIndex: number
  metadata: Metadata.Metadata
  /** The arguments of a call as the model writes them. Of prose, only whether it is empty counts. */
  text: string
}

/** One answer as it comes. */
export class Answer {
  /** The end of the answer: a `Finish`, or a failure in a part of the stream. */
  outcome: "complete" | Reason | undefined = undefined
  private readonly speaker: Speaker
  private readonly open = new Map<string, Block>()
  private next = 0
  private calls = 0
  private begun = false

  constructor(speaker: Speaker) {
    this.speaker = speaker
  }

  /** Converts an array of parts. It ignores parts after the end. */
  add(parts: ReadonlyArray<Part>): ReadonlyArray<ModelEvent> {
    const out: Array<ModelEvent> = []
    for (const part of parts) {
      if (this.outcome === undefined) this.part(part, out)
    }
    return out
  }

  private part(part: Part, out: Array<ModelEvent>): void {
    if (part.type !== "error") this.begin(part, out)
    switch (part.type) {
      case "text-start":
      case "text-delta":
      case "text-end":
        return this.prose("text", part, out)
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end":
        return this.prose("thinking", part, out)
      case "tool-params-start":
        if (!part.providerExecuted) this.startCall(part, out)
        return
      case "tool-params-delta":
        return this.growCall(part.id, part.delta, out)
      case "tool-call":
        return part.providerExecuted ? this.hostedTool(part, out) : this.call(part, out)
      case "tool-result":
        if (part.providerExecuted && !part.preliminary) this.hostedTool(part, out)
        return
      case "source":
        return this.source(part, out)
      case "file":
        return this.media(part, out)
      case "finish":
        return this.finish(part, out)
      case "error":
        this.outcome = AiReason.fromUnknown(part.error)
        return
    }
  }

  private begin(part: Part, out: Array<ModelEvent>): void {
    if (this.begun) return
    this.begun = true
    const { provider, model } = this.speaker
    const { id, modelId } = part.type === "response-metadata" ? part : {}
    out.push({
      _tag: "Start",
      provider,
      model: modelId ?? model,
      protocol: "effect-ai",
      ...(id === undefined ? {} : { responseId: id })
    })
  }

  private prose(
    kind: "text" | "thinking",
    part: {
      readonly id: string
      readonly type: string
      readonly metadata: Metadata.Metadata
      readonly delta?: string
    },
    out: Array<ModelEvent>
  ): void {
    const key = `${kind} ${part.id}`
    const block = this.open.get(key) ?? this.start(kind, key, out)
    const { contentIndex } = block
    block.metadata = Metadata.merge(block.metadata, part.metadata)
    const { delta = "" } = part
    if (delta !== "") {
      block.text ||= delta
      out.push({ _tag: kind === "text" ? "TextDelta" : "ThinkingDelta", contentIndex, delta })
    }
    if (part.type.endsWith("-end")) this.end(key, block, out)
  }

  private start(kind: "text" | "thinking", key: string, out: Array<ModelEvent>): Block {
    const block = this.newBlock(kind, key)
    out.push({ _tag: kind === "text" ? "TextStart" : "ThinkingStart", contentIndex: block.contentIndex })
    return block
  }

  private newBlock(kind: Kind, key: string): Block {
    const block: Block = { kind, contentIndex: this.next++, metadata: Metadata.none, text: "" }
    this.open.set(key, block)
    return block
  }

  private startCall(
    { id, name }: { readonly id: string; readonly name: string },
    out: Array<ModelEvent>
  ): Block {
    const block = this.newBlock("call", callKey(id))
    this.calls++
    out.push({ _tag: "ToolCallStart", contentIndex: block.contentIndex, id, name })
    return block
  }

  private growCall(id: string, delta: string, out: Array<ModelEvent>): void {
    const block = this.open.get(callKey(id))
    if (block === undefined || delta === "") return
    block.text += delta
    out.push({ _tag: "ToolCallDelta", contentIndex: block.contentIndex, delta })
  }

  private call(
    part: {
      readonly id: string
      readonly name: string
      readonly params: unknown
      readonly metadata: Metadata.Metadata
    },
    out: Array<ModelEvent>
  ): void {
    const block = this.open.get(callKey(part.id)) ?? this.startCall(part, out)
    const whole = JSON.stringify(part.params) ?? "{}"
    if (block.text === "") this.growCall(part.id, whole, out)
    block.metadata = part.metadata
    // The text of the model stays where it has these params: a vendor may have repaired it, or made params of another text.
    if (JSON.stringify(parseArguments(block.text)) !== whole) block.text = whole
    this.end(callKey(part.id), block, out)
  }

  /** A call or its result. Marked as this provider's even without metadata, so that it goes back to it alone. */
  private hostedTool(
    part: Extract<Part, { readonly type: "tool-call" | "tool-result" }>,
    out: Array<ModelEvent>
  ): void {
    const contentIndex = this.next++
    out.push(
      { _tag: "HostedToolStart", contentIndex, id: part.id, name: part.name },
      {
        _tag: "HostedToolEnd",
        contentIndex,
        ...(part.type === "tool-call"
          ? { params: Metadata.toJson(part.params) }
          : { result: Metadata.toJson(part.encodedResult), ...(part.isFailure ? { isError: true } : {}) }),
        opaque: this.opaque(part.metadata)
      }
    )
  }

  private source(part: Extract<Part, { readonly type: "source" }>, out: Array<ModelEvent>): void {
    const { id, metadata, sourceType, title } = part
    const place =
      part.sourceType === "url" ? { url: part.url.href } : Struct.pick(part, ["mediaType", "fileName"])
    const opaque = Metadata.isNone(metadata) ? {} : { opaque: this.opaque(metadata) }
    const source: Source = { type: "source", sourceType, id, title, ...place, ...opaque }
    out.push({ _tag: "Source", contentIndex: this.next++, source })
  }

  private media(
    { data, mediaType, metadata }: Extract<Part, { readonly type: "file" }>,
    out: Array<ModelEvent>
  ): void {
    const source = { data: Base64.encode(data), mediaType }
    const media: Media = { type: "media", source, opaque: this.opaque(metadata) }
    out.push({ _tag: "Media", contentIndex: this.next++, media })
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
    }
  }

  private opaque(metadata: Metadata.Metadata): Schema.Json {
    return Metadata.toOpaque(this.speaker.provider, metadata)
  }

  private finish({ reason, usage }: Response.FinishPart, out: Array<ModelEvent>): void {
    for (const [key, block] of this.open) this.end(key, block, out)
    if (reason === "error") {
      this.outcome = new ServerError({ detail: "The answer ended with an error" })
      return
    }
    this.outcome = "complete"
    const counted = usageOf(usage)
    out.push({
      _tag: "Finish",
      stopReason: stopReasonOf(reason, this.calls > 0),
      ...(counted === undefined ? {} : { usage: counted })
    })
  }
}

const callKey = (id: string): string => `call ${id}`

/** Tool calls, also those that the model forgot, make it `toolUse`, unless the answer was cut. A pause is an answer that the run does not continue. */
const stopReasonOf = (reason: Exclude<Response.FinishReason, "error">, hasCalls: boolean): StopReason => {
  if (reason === "length") return "length"
  if (reason === "content-filter") return "contentFilter"
  if (hasCalls || reason === "tool-calls") return "toolUse"
  return reason === "pause" ? "length" : "stop"
}

/** Converts the usage, or returns `undefined` if the vendor reports none. */
const usageOf = ({ inputTokens, outputTokens }: Response.Usage): Usage.Usage | undefined => {
  const counts = [...Object.values(inputTokens), ...Object.values(outputTokens)]
  if (counts.every((count) => count === undefined)) return undefined
  const { cacheRead = 0, cacheWrite = 0, uncached = 0 } = inputTokens
  const { reasoning, text = 0 } = outputTokens
  return Usage.make({
    input: inputTokens.total ?? uncached + cacheRead + cacheWrite,
    output: outputTokens.total ?? text + (reasoning ?? 0),
    cacheRead,
    cacheWrite,
    ...(reasoning === undefined ? {} : { reasoning })
  })
}
