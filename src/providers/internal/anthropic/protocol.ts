/**
 * Anthropic Messages, as Anthropic and compatible servers really send it.
 * https://docs.anthropic.com/en/docs/build-with-claude/streaming
 *
 * Blocks without a counterpart in `Message` (summaries of a long conversation, and blocks that are not known yet)
 * become an empty text block that stores the original and returns it to the vendor.
 */
import type { Assistant, StopReason } from "../../../Message.ts"
import { parseArguments } from "../../../ModelEvent.ts"
import {
  Protocol as ProtocolFault,
  type Reason,
  ServerError,
  StreamTruncated
} from "../../../ProviderError.ts"
import * as Usage from "../../../Usage.ts"
import type { ReplyWriter } from "../../../reply/ReplyWriter.ts"
import { wholeArguments } from "../../../reply/WholeArguments.ts"
import { type Protocol, isReason, type Question } from "../../Protocol.ts"
import { byMembers } from "../writing.ts"
import { isFailure, noted, refusalIn, detailIn } from "../reading.ts"
import * as Json from "../json.ts"
import { api, headers } from "./api.ts"
import { toMedia } from "./content.ts"
import { type Dialect, encoder, inContainer } from "./request.ts"
import * as Blocks from "./wire.ts"
import { type Block, countUsage, type Event, type Index, readEvent, type Says, usageIn } from "./wire.ts"

/** The protocol for one provider, whose id marks data that only this provider can read. */
export const anthropicMessages = (provider: string, dialect: Dialect = {}): Protocol => ({
  name,
  provider,
  ...api,
  encode: encoder(provider, dialect),
  refuses: (media) => detailIn(toMedia(media)),
  headers: headers(provider),
  counting: byMembers(encoder(provider, { keepsUnsigned: dialect.keepsUnsigned }), counted),
  decoder: ({ model }, reply) => {
    const state = initial(reply, dialect.keepsUnsigned === true)
    return {
      step: ({ data }) => {
        const event = readEvent(data, model)
        return isReason(event) ? event : (strange(state, event) ?? step(state, event))
      },
      end: (sawEnd, isLenient) => end(state, sawEnd, isLenient),
      resume: (question) => resume(state, provider, question)
    }
  }
})

const name = "anthropic-messages"

/** https://docs.anthropic.com/en/api/messages-count-tokens */
const counted = ["messages", "model", "output_config", "system", "thinking", "tool_choice", "tools"]

/** A gateway that retries sends a second answer after the start of the first. */
const strange = ({ messageId }: State, event: Event): Reason | undefined => {
  const id = event.type === "message_start" ? event.message.id : undefined
  return messageId !== undefined && id !== undefined && id !== messageId
    ? new StreamTruncated({ detail: "Another answer began in the middle of this one" })
    : undefined
}

// ───────────────────────── Wire to domain

interface State {
  readonly reply: ReplyWriter
  /** Whether thinking without a signature goes back. */
  readonly keepsUnsigned: boolean
  /** Whether the current message has started. */
  isBegun: boolean
  /** The id of the current message. An answer with pauses consists of several messages. */
  messageId: string | undefined
  /** The blocks of the current message. */
  blocks: Array<Block>
  /** The open blocks, by the index of the server. */
  readonly open: Map<Index, Block>
  /** The names of the vendor's tools that the answer has called. */
  readonly names: Blocks.Names
  /** Whether arguments came for a block that is not a call, so that a call lacks them. */
  astray: boolean
  pauses: number
  stop: string | undefined
  /** Why the model stopped, where it refuses. */
  stopDetails: Json.Json | undefined
  /** The model that took over from the one that began the answer. */
  fallback: string | undefined
  /** The container at the vendor that runs code for this answer. */
  container: string | undefined
  /** The counts as sent. A later value replaces an earlier one. */
  usage: Json.JsonObject | undefined
  /** The usage of the messages before the current one. */
  earlier: Usage.Usage | undefined
}

const initial = (reply: ReplyWriter, keepsUnsigned: boolean): State => ({
  reply,
  keepsUnsigned,
  isBegun: false,
  messageId: undefined,
  blocks: [],
  open: new Map(),
  names: new Map(),
  astray: false,
  pauses: 0,
  stop: undefined,
  stopDetails: undefined,
  fallback: undefined,
  container: undefined,
  usage: undefined,
  earlier: undefined
})

const step = (state: State, event: Event): boolean => {
  switch (event.type) {
    case "content_block_delta":
      stepDelta(state, event.index, event.delta)
      return false
    case "content_block_start":
      begin(state, event.index, event.block)
      return false
    case "content_block_stop": {
      const block = at(state, event.index)
      if (block !== undefined) close(state, block)
      return false
    }
    case "message_start":
      stepStart(state, event.message)
      return false
    case "message_delta":
      stepMessage(state, event.message)
      return false
    case "message_stop":
      return true
    case "message":
      stepStart(state, event.message)
      return true
    case "other":
      return false
  }
}

const stepStart = (state: State, message: Says): void => {
  const { content, id: responseId, model: responseModel } = message
  state.messageId ??= responseId
  stepMessage(state, message)
  state.reply.name({ responseId, responseModel })
  state.reply.start()
  if (state.isBegun) return
  state.isBegun = true
  // After results of code in its container, the vendor sends an answer whole, with its start.
  for (const block of content) {
    if (Json.isObject(block)) close(state, begin(state, undefined, block))
  }
}

/** Reads the members of the message as a whole. */
const stepMessage = (
  state: State,
  { container, stop_details: details, stop_reason: stop, usage }: Says
): void => {
  state.stop = stop ?? state.stop
  state.stopDetails = details ?? state.stopDetails
  state.container = container.id ?? state.container
  if (usage !== undefined) state.usage = countUsage(state.usage, usage)
}

/** The block of an index. Without an index, the last block. */
const at = ({ blocks, open }: State, index: Index): Block | undefined =>
  open.get(index === undefined ? blocks.at(-1)?.index : index)

const begin = (state: State, index: Index, wire: Json.JsonObject): Block => {
  const unended = state.open.get(index)
  if (unended !== undefined) close(state, unended)
  const block = Blocks.open(state.reply, state.names, index, wire)
  if (block.head.type === "fallback") state.fallback = block.head.to.model
  state.blocks.push(block)
  state.open.set(index, block)
  Blocks.say(block, wire[block.kind])
  return block
}

const stepDelta = (state: State, index: Index, delta: Json.JsonObject): void => {
  const block = at(state, index)
  switch (delta["type"]) {
    case "input_json_delta":
      return stepInput(state, block, delta["partial_json"])
    case "text_delta":
      if (block !== undefined && isStored(block)) break
      return Blocks.say(begun(state, "text", block, index), delta["text"])
    case "thinking_delta":
      if (block !== undefined && isStored(block)) break
      return Blocks.say(begun(state, "thinking", block, index), delta["thinking"])
  }
  if (block !== undefined) Blocks.grow(block, delta)
}

/** Whether the block goes back to the vendor as it came, with all that its deltas add. */
const isStored = ({ kind }: Block): boolean => kind === "other" || kind === "use" || kind === "result"

/** The open block of this kind, or a new one if the server did not announce it. */
const begun = (state: State, kind: "text" | "thinking", block: Block | undefined, index: Index): Block =>
  // A new block must not replace an open call, whose further arguments would be lost.
  block?.kind === kind ? block : begin(state, block?.kind === "call" ? undefined : index, { type: kind })

const stepInput = (state: State, block: Block | undefined, json: Json.Json | undefined): void => {
  if (block === undefined || typeof json !== "string" || json === "") return
  if (block.kind !== "call") state.reply.weigh(json.length)
  if (!Blocks.input(block, json)) state.astray = true
}

const close = ({ keepsUnsigned, open, reply }: State, block: Block): void => {
  if (keepsUnsigned && block.kind === "thinking" && block.text !== "") block.to.keep({ signature: "" })
  if (open.get(block.index) === block) open.delete(block.index)
  Blocks.close(reply, block)
}

// ───────────────────────── The end

const end = (state: State, sawEnd: boolean, isLenient = false): Reason | undefined => {
  const incomplete = missing(state, sawEnd, isLenient)
  if (incomplete !== undefined) return incomplete
  const { reply } = state
  reply.start()
  const cut = new Set(state.open.values())
  for (const block of cut) close(state, block)
  if (isPaused(state)) return undefined
  const stopReason = stopReasonOf(state)
  for (const block of callsOf(state)) {
    // The vendor stopped the model during the arguments, which may be valid JSON so far.
    if (cut.has(block) && (stopReason === "refusal" || stopReason === "contentFilter")) block.to.drop()
    else Blocks.endCall(block, state.container)
  }
  const serviceTier = Json.text(state.usage?.["service_tier"])
  reply.finish({
    stopReason,
    usage: usageOf(state),
    ...(state.fallback === undefined ? {} : { responseModel: state.fallback }),
    ...(stopReason === "refusal" ? refusalIn(state.stopDetails) : {}),
    ...(serviceTier === undefined ? {} : { serviceTier })
  })
  return undefined
}

const callsOf = ({ blocks }: State) => blocks.filter((block) => block.kind === "call")

/**
 * The failure of an incomplete answer, `undefined` for a complete one. A stop reason proves completeness. Some
 * servers never send one: then the last event counts, if the answer has content and the arguments of all calls
 * are valid JSON.
 */
const missing = (state: State, sawEnd: boolean, isLenient: boolean): Reason | undefined => {
  const { astray, reply, stop } = state
  const calls = callsOf(state)
  if (astray && calls.length > 0)
    return new ProtocolFault({ kind: "badShape", detail: "The arguments of a call came for another block" })
  if (stop === undefined) {
    if (sawEnd && reply.length === 0)
      return new ProtocolFault({ kind: "empty", detail: "The answer was empty" })
    const isWhole = (call: Block) =>
      (sawEnd || !state.open.has(call.index)) &&
      parseArguments(wholeArguments(Blocks.argumentsOf(call))) !== undefined
    return (sawEnd || isLenient) && calls.every(isWhole)
      ? undefined
      : new StreamTruncated({ detail: "The answer stopped before its end" })
  }
  return isFailure(stop) ? new ServerError({ detail: `The answer ended with ${stop}` }) : undefined
}

const stopReasonOf = (state: State): StopReason => {
  const { stop = "end_turn" } = state
  if (pauses.has(stop)) return callsOf(state).length > 0 ? "toolUse" : "length"
  return noted(stop, state.reply)
}

/** The usage of all messages of the answer. */
const usageOf = ({ earlier, usage }: State): Usage.Usage | undefined => {
  const own = usageIn(usage)
  return own === undefined || earlier === undefined ? (own ?? earlier) : Usage.add(earlier, own)
}

// ───────────────────────── Pauses

/**
 * The vendor pauses after some rounds of its own tools and after a summary. A further request continues the
 * answer.
 */
const pauses: ReadonlySet<string> = new Set(["pause_turn", "compaction"])

/** Bounds the cost of a server that always pauses. */
const maxPauses = 20

const isPaused = (state: State): boolean =>
  pauses.has(state.stop ?? "") && state.pauses < maxPauses && callsOf(state).length === 0

/** The request that continues a paused answer, with all its content so far. */
const resume = (state: State, provider: string, question: Question): Question | undefined => {
  if (!isPaused(state)) return undefined
  const partial: Assistant = {
    role: "assistant",
    id: "",
    content: state.blocks.map((block) => Blocks.contentOf(provider, block)),
    stopReason: "stop",
    provider,
    model: question.model,
    protocol: name,
    timestamp: 0
  }
  state.pauses++
  state.blocks = []
  state.isBegun = false
  state.messageId = undefined
  state.stop = undefined
  state.earlier = usageOf(state)
  state.usage = undefined
  const vendor = inContainer(question.vendor, state.container)
  return { ...question, messages: [...question.messages, partial], vendor }
}
