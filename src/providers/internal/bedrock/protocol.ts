/**
 * Converse, the API of Amazon Bedrock for the models of all vendors:
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
 *
 * The name of a frame is that of its event. An exception is a frame named `error`, which `Answer` reads.
 */
import type { StopReason } from "../../../Message.ts"
import { type Reason, ServerError, StreamTruncated } from "../../../ProviderError.ts"
import * as Usage from "../../../Usage.ts"
import type { CallBlock, HostedBlock, Prose, ReplyWriter } from "../../../reply/ReplyWriter.ts"
import type { Frame } from "../../Framing.ts"
import { type Decoder, type Protocol, isReason } from "../../Protocol.ts"
import { first, refusalIn, tokens, badShape, detailIn, objectIn } from "../reading.ts"
import * as StopReasons from "../reading.ts"
import * as Json from "../json.ts"
import { api } from "./api.ts"
import { mediaOf, typeOf } from "./content.ts"
import { encoder } from "./request.ts"

/** The protocol for one provider, whose id marks data that only this provider can read. */
export const bedrockConverse = (provider: string): Protocol => {
  const { converse, countTokens } = encoder(provider)
  return {
    name: "bedrock-converse",
    provider,
    ...api,
    encode: converse,
    refuses: (media) => detailIn(mediaOf(media)),
    decoder: (_call, reply) => new ConverseDecoder(reply),
    counting: {
      encode: countTokens,
      read: (response) => tokens(Json.object(response)?.["inputTokens"])
    }
  }
}

class ConverseDecoder implements Decoder {
  private readonly reply: ReplyWriter
  private readonly blocks: Blocks
  private isStarted = false
  private stop: string | undefined = undefined
  private usage: Json.JsonObject | undefined = undefined
  private serviceTier: string | undefined = undefined
  /** Members of the answer of the model itself. */
  private additional: Json.JsonObject = {}

  constructor(reply: ReplyWriter) {
    this.reply = reply
    this.blocks = new Blocks(reply)
  }

  readonly step = ({ data, event }: Frame): boolean | Reason => {
    if (!known.has(event)) return false
    const json = objectIn(data, "an event")
    if (isReason(json)) return json
    // Only the counts follow the end of the message.
    if (this.stop !== undefined && event !== "metadata")
      return badShape(`${event} after the end of the message`, data)
    return this.read(event, json) ?? badShape(`Not a ${event}`, data)
  }

  /** Returns whether the event is the last one, `undefined` if it does not have its shape. */
  private read(event: string, json: Json.JsonObject): boolean | Reason | undefined {
    if (event === "messageStart") return this.start()
    if (event === "messageStop") {
      this.stop = Json.text(json["stopReason"])
      this.additional = Json.object(json["additionalModelResponseFields"]) ?? {}
      return this.stop === undefined ? undefined : false
    }
    if (event === "metadata") {
      this.usage = Json.object(json["usage"]) ?? this.usage
      this.serviceTier = Json.text(Json.object(json["serviceTier"])?.["type"]) ?? this.serviceTier
      return this.stop !== undefined
    }
    const { contentBlockIndex = 0 } = json
    if (typeof contentBlockIndex !== "number") return undefined
    return this.blocks.step(event, contentBlockIndex, json) ? false : undefined
  }

  private start(): false | Reason {
    if (this.isStarted)
      return new StreamTruncated({ detail: "Another answer began in the middle of this one" })
    this.isStarted = true
    this.reply.start()
    return false
  }

  /** The counts follow the end of the message. Some models send none. */
  readonly isComplete = (): boolean => this.stop !== undefined && !isReason(this.stopReason(this.stop))

  readonly end = (_sawEnd: boolean, isLenient = false): Reason | undefined => {
    const stop = this.stop ?? (isLenient && !this.blocks.hasOpenCall ? "end_turn" : undefined)
    if (stop === undefined) return new StreamTruncated({ detail: "The answer stopped before its end" })
    const stopReason = this.stopReason(stop)
    if (isReason(stopReason)) return stopReason
    this.blocks.end(isBlocked(stopReason))
    const { additional, reply, serviceTier } = this
    const details = Json.object(additional["delta"]) ?? additional
    reply.finish({
      stopReason: StopReasons.noted(stop, reply),
      usage: usageOf(this.usage),
      ...(stopReason === "refusal" ? refusalIn(details["stop_details"]) : {}),
      ...(serviceTier === undefined ? {} : { serviceTier })
    })
    return undefined
  }

  /** The end of the answer, or the reason why it is none. */
  private stopReason(stop: string): StopReason | Reason {
    if (StopReasons.isFailure(stop))
      return new ServerError({ detail: `The model made an answer that Bedrock cannot read: ${stop}` })
    const stopReason = StopReasons.of(stop)
    return this.blocks.hasOpenCall && (stopReason === "stop" || stopReason === "toolUse")
      ? new StreamTruncated({ detail: "The arguments of a call have no end" })
      : stopReason
  }
}

const known: ReadonlySet<string> = new Set([
  "messageStart",
  "contentBlockStart",
  "contentBlockDelta",
  "contentBlockStop",
  "messageStop",
  "metadata"
])

const isBlocked = (stopReason: StopReason): boolean =>
  stopReason === "contentFilter" || stopReason === "refusal"

/** The vendor counts tokens that are read from and written to a cache separately. */
const usageOf = (usage: Json.JsonObject | undefined): Usage.Usage | undefined => {
  const count = (name: string) => tokens(usage?.[name])
  const [input, output] = [count("inputTokens"), count("outputTokens")]
  if (input === undefined && output === undefined) return undefined
  const cacheRead = count("cacheReadInputTokens") ?? 0
  const cacheWrite = count("cacheWriteInputTokens") ?? 0
  const writes = Json.array(usage?.["cacheDetails"]).map((detail) => Json.object(detail) ?? {})
  const long = writes.find(({ ttl }) => ttl === "1h")
  return Usage.make({
    input: (input ?? 0) + cacheRead + cacheWrite,
    output: output ?? 0,
    cacheRead,
    cacheWrite,
    ...(writes.length === 0 ? {} : { cacheWriteLong: first(long, "inputTokens") ?? 0 })
  })
}

// ───────────────────────── Blocks

// The blocks of an answer by Converse while they grow. The server announces calls and images, and begins a text or a thought
// with its first piece.

type Block =
  | { readonly kind: "prose"; readonly prose: Prose }
  | { readonly kind: "call"; readonly call: CallBlock }
  /** A tool that the vendor runs: its call, or its result. */
  | { readonly kind: "hosted"; readonly hosted: HostedBlock; readonly start: Json.JsonObject; json: string }
  | {
      readonly kind: "result"
      readonly hosted: HostedBlock
      readonly start: Json.JsonObject
      readonly results: Array<Json.Json>
    }
  | { readonly kind: "image"; readonly mediaType: string; data: string; error?: Json.JsonObject | undefined }

class Blocks {
  private readonly reply: ReplyWriter
  private readonly open = new Map<number, Block>()
  private readonly ended = new Set<number>()
  /** The names of the vendor's tools by the ids of their calls. */
  private readonly hosted = new Map<string, string>()

  constructor(reply: ReplyWriter) {
    this.reply = reply
  }

  /** Whether the arguments of a call have not ended. */
  get hasOpenCall(): boolean {
    return [...this.open.values()].some(({ kind }) => kind === "call")
  }

  /** Reads an event of a block. Returns whether it has the shape of one. */
  step(event: string, index: number, json: Json.JsonObject): boolean {
    if (this.ended.has(index)) return false
    if (event === "contentBlockStop") {
      this.close(index)
      return true
    }
    if (event === "contentBlockDelta") {
      const delta = Json.object(json["delta"])
      return delta !== undefined && this.grow(index, delta)
    }
    const start = Json.object(json["start"])
    return start !== undefined && this.begin(index, start)
  }

  /** Ends the open blocks. `isBlocked`: the vendor stopped the model, in the middle of an open call. */
  end(isBlocked: boolean): void {
    for (const [index, block] of this.open) {
      if (block.kind === "call" && isBlocked) block.call.drop()
      else this.close(index)
    }
  }

  private begin(index: number, start: Json.JsonObject): boolean {
    if (this.open.has(index)) return false
    const toolUse = Json.object(start["toolUse"])
    const toolResult = Json.object(start["toolResult"])
    const image = Json.object(start["image"])
    if (toolUse !== undefined) this.open.set(index, this.callOf(toolUse))
    else if (toolResult !== undefined) this.open.set(index, this.resultOf(toolResult))
    else if (image !== undefined) {
      const mediaType = typeOf("image", Json.text(image["format"]) ?? "png")
      this.open.set(index, { kind: "image", mediaType, data: "" })
    }
    // The first piece decides which block any other start begins.
    return true
  }

  private callOf(start: Json.JsonObject): Block {
    const [id, tool] = [Json.text(start["toolUseId"]), Json.text(start["name"])]
    if (start["type"] !== "server_tool_use")
      return { kind: "call", call: this.reply.openCall(id, tool ?? "") }
    this.hosted.set(id ?? "", tool ?? "")
    return { kind: "hosted", hosted: this.reply.hostedTool(id ?? "", tool ?? ""), start, json: "" }
  }

  private resultOf(start: Json.JsonObject): Block {
    const id = Json.text(start["toolUseId"]) ?? ""
    return {
      kind: "result",
      hosted: this.reply.hostedTool(id, this.hosted.get(id) ?? ""),
      start,
      results: []
    }
  }

  private grow(index: number, delta: Json.JsonObject): boolean {
    const { citation, image, reasoningContent, text, toolResult, toolUse } = delta
    if (text !== undefined) return typeof text === "string" && this.write(index, "text", text)
    if (toolUse !== undefined) return this.writeInput(index, Json.object(toolUse)?.["input"])
    if (reasoningContent !== undefined) return this.think(index, Json.object(reasoningContent) ?? {})
    if (citation !== undefined) return this.cite(Json.object(citation))
    const block = this.open.get(index)
    if (toolResult !== undefined) {
      if (block?.kind !== "result") return false
      block.results.push(...(Json.isArray(toolResult) ? toolResult : [toolResult]))
    } else if (image !== undefined) {
      if (block?.kind !== "image") return false
      const { error, source } = Json.object(image) ?? {}
      block.data += Json.text(Json.object(source)?.["bytes"]) ?? ""
      block.error = Json.object(error) ?? block.error
    }
    return true
  }

  private write(index: number, kind: Prose["kind"], text: string): boolean {
    if (text === "") return true
    const prose = this.prose(index, kind)
    prose?.write(text)
    return prose !== undefined
  }

  /** The open block of this kind, `undefined` if a block of another kind has the index. */
  private prose(index: number, kind: Prose["kind"]): Prose | undefined {
    const block = this.open.get(index)
    if (block !== undefined)
      return block.kind === "prose" && block.prose.kind === kind ? block.prose : undefined
    const prose = kind === "text" ? this.reply.openText() : this.reply.openThinking()
    this.open.set(index, { kind: "prose", prose })
    return prose
  }

  private writeInput(index: number, input: Json.Json | undefined): boolean {
    const block = this.open.get(index)
    if (typeof input !== "string") return false
    if (block?.kind === "call") block.call.write(input)
    else if (block?.kind === "hosted") {
      this.reply.weigh(input.length)
      block.json += input
    } else return false
    return true
  }

  private think(index: number, { redactedContent, signature, text }: Json.JsonObject): boolean {
    if (typeof text === "string") return this.write(index, "thinking", text)
    const kept = Json.defined({ redactedContent, signature })
    if (Object.keys(kept).length === 0) return true
    const prose = this.prose(index, "thinking")
    prose?.keep(kept)
    return prose !== undefined
  }

  private cite(citation: Json.JsonObject | undefined): boolean {
    if (citation === undefined) return false
    const { location, source, sourceContent, title } = citation
    const web = Json.object(Json.object(location)?.["web"])
    const at = Json.text(source) ?? ""
    const url = Json.text(web?.["url"]) ?? (/^https?:/.test(at) ? at : undefined)
    const citedText = Json.array(sourceContent)
      .map((part) => Json.text(Json.object(part)?.["text"]) ?? "")
      .join("")
    this.reply.source(
      {
        sourceType: url === undefined ? "document" : "url",
        ...(url === undefined ? (at === "" ? {} : { id: at }) : { url }),
        ...(typeof title === "string" ? { title } : {}),
        ...(citedText === "" ? {} : { citedText })
      },
      { citation }
    )
    return true
  }

  private close(index: number): void {
    const block = this.open.get(index)
    this.open.delete(index)
    this.ended.add(index)
    switch (block?.kind) {
      case "prose":
        return block.prose.end()
      case "hosted":
        return block.hosted.end(
          { params: Json.parseShallow(block.json) ?? block.json },
          { toolUse: block.start }
        )
      case "result":
        return block.hosted.end(
          { result: block.results, ...(block.start["status"] === "error" ? { isError: true } : {}) },
          { toolResult: block.start }
        )
      case "image":
        if (block.error !== undefined)
          this.reply.hostedTool(`image_${index}`, "image").end({ result: block.error, isError: true })
        return block.data === ""
          ? undefined
          : this.reply.media({ source: { data: block.data, mediaType: block.mediaType } })
    }
  }
}
