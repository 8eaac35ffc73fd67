/**
 * The conversion of the parts of a response stream to model events.
 */
import type * as Response from "effect/ai/Response"
import type * as Tool from "effect/ai/Tool"
import * as Base64 from "effect/encoding/Base64"
import * as Struct from "effect/Struct"
import type { StopReason } from "../../Message.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import { parseArguments } from "../../ModelEvent.ts"
import type { Reason } from "../../ProviderError.ts"
import { ServerError } from "../../ProviderError.ts"
import * as PartMetadata from "../../reply/PartMetadata.ts"
import { PartReply } from "../../reply/PartReply.ts"
import * as Usage from "../../Usage.ts"
import * as AiReason from "./AiReason.ts"
import * as Metadata from "./Metadata.ts"

/** A part of a stream whose tool calls are not checked yet. */
export type Part = Response.StreamPart<Record<string, Tool.Any>, "deferred">

type Of<Type extends Part["type"]> = Extract<Part, { readonly type: Type }>

/** The provider and the model, as far as they are known before the answer. */
export interface Speaker {
  readonly provider: string
  readonly model: string
}

/** One answer as it comes. */
export class Answer {
  /** The end of the answer: a `Finish`, or a failure in a part of the stream. */
  outcome: "complete" | Reason | undefined = undefined
  private readonly speaker: Speaker
  private begun: PartReply | undefined = undefined

  constructor(speaker: Speaker) {
    this.speaker = speaker
  }

  /** Converts an array of parts. It ignores parts after the end. */
  add(parts: ReadonlyArray<Part>): ReadonlyArray<ModelEvent> {
    for (const part of parts) {
      if (this.outcome !== undefined) break
      if (part.type === "error") this.outcome = AiReason.fromUnknown(part.error)
      else this.part(part, (this.begun ??= this.begin(part)))
    }
    return this.begun?.take() ?? []
  }

  private begin(part: Part): PartReply {
    const { provider, model } = this.speaker
    const { id, modelId } = part.type === "response-metadata" ? part : {}
    const reply = new PartReply({ provider, name: "effect-ai" }, { model: modelId ?? model, seed: "" })
    reply.name({ responseId: id })
    reply.start()
    return reply
  }

  private part(part: Part, reply: PartReply): void {
    switch (part.type) {
      case "text-start":
      case "text-delta":
      case "text-end":
        return reply.addProse("text", part, part.metadata)
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end":
        return reply.addProse("thinking", part, part.metadata)
      case "tool-params-start":
        if (!part.providerExecuted) reply.beginCall(part.id, part.name)
        return
      case "tool-params-delta":
        return reply.growCall(part.id, part.delta)
      case "tool-call":
        return this.call(part, reply)
      case "tool-result": {
        const { encodedResult, id, isFailure, metadata, name, preliminary, providerExecuted } = part
        const run = { result: Metadata.toJson(encodedResult), ...(isFailure ? { isError: true } : {}) }
        if (providerExecuted && !preliminary) reply.addHosted(id, name, run, metadata)
        return
      }
      case "source":
        return source(part, reply)
      case "file": {
        const { data, mediaType, metadata } = part
        return reply.media({ source: { data: Base64.encode(data), mediaType } }, { metadata })
      }
      case "finish":
        return this.finish(part, reply)
    }
  }

  private call({ id, metadata, name, params, providerExecuted }: Of<"tool-call">, reply: PartReply): void {
    if (providerExecuted) return reply.addHosted(id, name, { params: Metadata.toJson(params) }, metadata)
    const whole = JSON.stringify(params) ?? "{}"
    // The text of the model stays where it has these params: a vendor may have repaired it, or made params of another text.
    reply.endCall(id, name, metadata, (text) =>
      JSON.stringify(parseArguments(text)) === whole ? text : whole
    )
  }

  private finish({ reason, usage }: Response.FinishPart, reply: PartReply): void {
    if (reason === "error") {
      this.outcome = new ServerError({ detail: "The answer ended with an error" })
      return
    }
    this.outcome = "complete"
    reply.finish({ stopReason: stopReasonOf(reason, reply.calls.length > 0), usage: usageOf(usage) })
  }
}

const source = (part: Of<"source">, reply: PartReply): void => {
  const { id, metadata, sourceType, title } = part
  const place =
    part.sourceType === "url" ? { url: part.url.href } : Struct.pick(part, ["mediaType", "fileName"])
  const kept = PartMetadata.isNone(metadata) ? undefined : { metadata }
  reply.source({ sourceType, id, title, ...place }, kept)
}

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
