/**
 * The events of pi's proxy as those of an answer.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Decoder } from "./Connection.ts"
import type { Frame } from "./EventFrame.ts"
import * as Json from "../../internal/json.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import * as PiBody from "./PiBody.ts"
import * as PiSignature from "./PiSignature.ts"
import * as PiUsage from "./PiUsage.ts"
import * as Reasons from "../../ProviderError.ts"
import * as VendorFailure from "../../http/VendorFailure.ts"

const optional = Schema.optionalKey
const index = { contentIndex: Schema.Int }
const delta = { ...index, delta: Schema.String }
const end = { ...index, contentSignature: optional(Schema.String) }
const usage = { usage: optional(PiUsage.PiUsage) }
const of = <const Type extends string, Fields extends Schema.Struct.Fields>(type: Type, fields: Fields) =>
  Schema.Struct({ type: Schema.Literal(type), ...fields })

const PiEvent = Schema.Union([
  of("start", {}),
  of("text_start", index),
  of("text_delta", delta),
  of("text_end", end),
  of("thinking_start", index),
  of("thinking_delta", delta),
  of("thinking_end", end),
  of("toolcall_start", { ...index, id: Schema.String, toolName: Schema.String }),
  of("toolcall_delta", delta),
  of("toolcall_end", { ...index, toolCall: PiBody.ToolCall }),
  of("done", { reason: Schema.Literals(["stop", "length", "toolUse"]), ...usage }),
  of("error", {
    reason: Schema.Literals(["aborted", "error"]),
    errorMessage: optional(Schema.String),
    ...usage
  })
])
type PiEvent = typeof PiEvent.Type
const types: ReadonlySet<unknown> = new Set(PiEvent.members.map(({ fields }) => fields.type.literal))
const decode = Schema.decodeUnknownResult(PiEvent)

type Events = ReadonlyArray<ModelEvent>

/** Reads one answer. */
export class PiReader implements Decoder {
  hasBegun = false
  private isDone = false
  private readonly start: Extract<ModelEvent, { readonly _tag: "Start" }>
  private readonly provider: string

  constructor(provider: string, model: string) {
    this.provider = provider
    this.start = { _tag: "Start", provider, model, protocol: "pi-proxy" }
  }

  readonly isComplete = (): boolean => this.isDone

  readonly step = ({ data }: Frame): Result.Result<Events, Reasons.ProviderError> => {
    const json = Json.parse(data)
    if (Predicate.isObject(json) && !types.has(json["type"])) return Result.succeed([])
    const event = decode(json)
    if (Result.isFailure(event)) {
      const detail = `No event of pi's proxy: ${data.slice(0, 200)}`
      return this.failed(new Reasons.Protocol({ kind: "badShape", detail }))
    }
    const first = this.hasBegun ? [] : [this.start]
    this.hasBegun = true
    return Result.map(this.read(event.success), (events) => [...first, ...events])
  }

  private read(event: PiEvent): Result.Result<Events, Reasons.ProviderError> {
    switch (event.type) {
      case "start":
        return Result.succeed([])
      case "done": {
        this.isDone = true
        const usage = event.usage === undefined ? undefined : PiUsage.read(event.usage)
        const counted = usage === undefined ? {} : { usage }
        return Result.succeed([{ _tag: "Finish", stopReason: event.reason, ...counted }])
      }
      case "error":
        return this.failed(reasonOf(event.errorMessage ?? "The server's answer failed", event.reason))
      default:
        return Result.succeed([blockEvent(event)])
    }
  }

  private failed(reason: Reasons.Reason): Result.Result<Events, Reasons.ProviderError> {
    return Result.fail(new Reasons.ProviderError({ provider: this.provider, reason }))
  }
}

const blockEvent = (event: Exclude<PiEvent, { readonly type: "start" | "done" | "error" }>): ModelEvent => {
  const { contentIndex } = event
  switch (event.type) {
    case "text_start":
      return { _tag: "TextStart", contentIndex }
    case "text_delta":
      return { _tag: "TextDelta", contentIndex, delta: event.delta }
    case "text_end":
      return { _tag: "TextEnd", contentIndex, ...PiSignature.opaque(event.contentSignature) }
    case "thinking_start":
      return { _tag: "ThinkingStart", contentIndex }
    case "thinking_delta":
      return { _tag: "ThinkingDelta", contentIndex, delta: event.delta }
    case "thinking_end":
      return { _tag: "ThinkingEnd", contentIndex, ...PiSignature.opaque(event.contentSignature) }
    case "toolcall_start":
      return { _tag: "ToolCallStart", contentIndex, id: event.id, name: event.toolName }
    case "toolcall_delta":
      return { _tag: "ToolCallDelta", contentIndex, delta: event.delta }
    case "toolcall_end": {
      const { arguments: params, thoughtSignature } = event.toolCall
      const rawArguments = JSON.stringify(params)
      return { _tag: "ToolCallEnd", contentIndex, rawArguments, ...PiSignature.opaque(thoughtSignature) }
    }
  }
}

/** pi's servers report failures as text alone, and ours the end of an answer that has none. */
const reasonOf = (detail: string, reason: "aborted" | "error"): Reasons.Reason => {
  if (reason === "aborted") return new Reasons.StreamTruncated({ detail })
  return /: (?:refusal|contentFilter)$/.test(detail)
    ? new Reasons.ContentPolicy({ detail })
    : VendorFailure.ofWords(detail)
}
