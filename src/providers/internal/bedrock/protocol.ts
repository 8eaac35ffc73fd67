/**
 * Converse, the API of Amazon Bedrock for the models of all vendors:
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
 *
 * The name of a frame is that of its event. An exception is a frame named `error`, which `Answer` reads.
 */
import type { StopReason } from "../../../Message.ts"
import type { Reason } from "../../../ProviderError.ts"
import { ServerError, StreamTruncated } from "../../../ProviderError.ts"
import * as Usage from "../../../Usage.ts"
import * as Counting from "../counting.ts"
import { detailIn } from "../detailIn.ts"
import * as Failure from "../failure.ts"
import * as Json from "../json.ts"
import { refusalIn } from "../stopDetails.ts"
import * as StopReasons from "../stopReasons.ts"
import type { Frame } from "../../Framing.ts"
import type { Decoder, Protocol } from "../../Protocol.ts"
import { isReason } from "../../Protocol.ts"
import type { ReplyWriter } from "../../../reply/ReplyWriter.ts"
import { api } from "./api.ts"
import * as Blocks from "./blocks.ts"
import * as Media from "./media.ts"
import { encoder } from "./request.ts"

/** The protocol for one provider, whose id marks data that only this provider can read. */
export const bedrockConverse = (provider: string): Protocol => {
  const { converse, countTokens } = encoder(provider)
  return {
    name: "bedrock-converse",
    provider,
    ...api,
    encode: converse,
    refuses: (media) => detailIn(Media.of(media)),
    decoder: (_call, reply) => new ConverseDecoder(reply),
    counting: {
      encode: countTokens,
      read: (response) => Counting.tokens(Json.object(response)?.["inputTokens"])
    }
  }
}

class ConverseDecoder implements Decoder {
  private readonly reply: ReplyWriter
  private readonly blocks: Blocks.Blocks
  private isStarted = false
  private stop: string | undefined = undefined
  private usage: Json.JsonObject | undefined = undefined
  private serviceTier: string | undefined = undefined
  /** Members of the answer of the model itself. */
  private additional: Json.JsonObject = {}

  constructor(reply: ReplyWriter) {
    this.reply = reply
    this.blocks = new Blocks.Blocks(reply)
  }

  readonly step = ({ data, event }: Frame): boolean | Reason => {
    if (!known.has(event)) return false
    const json = Failure.objectIn(data, "an event")
    if (isReason(json)) return json
    // Only the counts follow the end of the message.
    if (this.stop !== undefined && event !== "metadata")
      return Failure.badShape(`${event} after the end of the message`, data)
    return this.read(event, json) ?? Failure.badShape(`Not a ${event}`, data)
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
  const count = (name: string) => Counting.tokens(usage?.[name])
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
    ...(writes.length === 0 ? {} : { cacheWriteLong: Counting.first(long, "inputTokens") ?? 0 })
  })
}
