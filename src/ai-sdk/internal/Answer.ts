/**
 * The conversion of the parts of a stream to model events.
 */
import type { LanguageModelV3StreamPart, LanguageModelV4StreamPart } from "@ai-sdk/provider"
import type { Adjustment, ModelEvent } from "../../ModelEvent.ts"
import { parseArguments } from "../../ModelEvent.ts"
import type { Reason } from "../../ProviderError.ts"
import { PartReply } from "../../reply/PartReply.ts"
import type { ModelOptions } from "../../RunOptions.ts"
import * as Adjusted from "./Adjusted.ts"
import * as Ending from "./Ending.ts"
import * as Metadata from "./Metadata.ts"
import * as VendorParts from "./VendorParts.ts"

/** A part of the stream of a model of version 3 or 4. */
export type Part = LanguageModelV3StreamPart | LanguageModelV4StreamPart

type Of<Type extends Part["type"]> = Extract<Part, { type: Type }>
type ContentPart = Exclude<
  Part,
  Of<"stream-start" | "raw" | "ping" | "error" | "response-metadata" | "finish">
>

/** The provider, the model and the options of the request, and the headers of the response. */
export interface Speaker {
  readonly provider: string
  readonly model: string
  readonly options: ModelOptions
  /** The headers of the response. */
  readonly headers: Readonly<Record<string, string>>
}

/** One answer as it comes. */
export class Answer {
  /** The end of the answer: a `Finish`, a failure, or an error as the model reported it. */
  outcome: "complete" | { readonly reason: Reason } | { readonly error: unknown } | undefined = undefined
  private readonly speaker: Speaker
  private adjusted: ReadonlyArray<Adjustment>
  private begun: PartReply | undefined = undefined
  private asksApproval = false

  constructor(speaker: Speaker, adjusted: ReadonlyArray<Adjustment>) {
    this.speaker = speaker
    this.adjusted = adjusted
  }

  /** Converts a part. */
  add(part: Part): ReadonlyArray<ModelEvent> {
    this.part(part)
    return this.begun?.take() ?? []
  }

  private part(part: Part): void {
    switch (part.type) {
      case "stream-start": {
        const { options } = this.speaker
        const warned = part.warnings.map((warning) => Adjusted.ofWarning(warning, options))
        this.adjusted = [...this.adjusted, ...warned]
        return
      }
      case "raw":
      case "ping":
        return
      case "error":
        this.outcome = { error: part.error }
        return
      case "response-metadata":
        this.begin(part)
        return
      case "finish":
        return this.finish(part)
      default:
        return this.content(part, this.begin({}))
    }
  }

  private begin({ id, modelId }: { readonly id?: string; readonly modelId?: string }): PartReply {
    if (this.begun !== undefined) return this.begun
    const { adjusted, speaker } = this
    const { headers, model, provider } = speaker
    const reply = new PartReply({ provider, name: "ai-sdk" }, { model, seed: "", adjusted })
    reply.name({ responseId: id, responseModel: modelId })
    if (Object.keys(headers).length > 0) reply.respond({ headers })
    reply.start()
    this.begun = reply
    return reply
  }

  private content(part: ContentPart, reply: PartReply): void {
    switch (part.type) {
      case "text-start":
      case "text-delta":
      case "text-end":
        reply.addProse("text", part, Metadata.fromPart(part))
        if ("citations" in part)
          for (const citation of part.citations ?? []) VendorParts.write(citation, reply)
        return
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end":
        return reply.addProse("thinking", part, Metadata.fromPart(part))
      case "tool-input-start": {
        const { id, providerExecuted, toolName } = part
        if (providerExecuted === true) return void reply.beginHosted(id, toolName)
        const { block } = reply.beginCall(id, toolName, Metadata.fromPart(part))
        // Version 3 has no encoding.
        block.isText = "inputEncoding" in part && part.inputEncoding === "text"
        return
      }
      case "tool-input-delta":
        return reply.growCall(part.id, part.delta)
      case "tool-input-end":
        return
      case "tool-call": {
        const { input, providerExecuted, toolCallId: id, toolName: name } = part
        const metadata = Metadata.fromPart(part)
        if (providerExecuted !== true) return reply.endCall(id, name, metadata, () => input)
        const params = parseArguments(input)
        return reply.addHosted(id, name, params === undefined ? {} : { params }, metadata)
      }
      case "tool-approval-request":
        this.asksApproval = true
        return
      default:
        return VendorParts.write(part, reply)
    }
  }

  private finish({ finishReason, usage }: Of<"finish">): void {
    const failure = Ending.failureOf(finishReason)
    if (failure !== undefined) {
      this.outcome = { reason: failure }
      return
    }
    this.outcome = "complete"
    const reply = this.begin({})
    reply.finish({
      stopReason: Ending.stopReasonOf(finishReason, reply.calls.length > 0),
      usage: Ending.usageOf(usage),
      ...(this.asksApproval ? { unrepresented: ["toolApprovals"] } : {})
    })
  }
}
