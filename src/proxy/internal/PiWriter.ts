/**
 * The events of an answer as those of pi's proxy, which have no `partial`.
 *
 * pi numbers texts, thinking and tool calls without gaps, and has no sources, tools of vendors and retractions. After a retraction the
 * blocks begin at 0 again and replace those before, of which the others become empty texts.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as VendorKeys from "../../http/VendorKeys.ts"
import * as ModelEvent from "../../ModelEvent.ts"
import type { ProviderError } from "../../ProviderError.ts"
import type * as Usage from "../../Usage.ts"
import type { Writer } from "./Handling.ts"
import * as PiSignature from "./PiSignature.ts"
import * as PiUsage from "./PiUsage.ts"

type Event = ModelEvent.ModelEvent
type OfTag<Tag extends Event["_tag"]> = Extract<Event, { readonly _tag: Tag }>
type Kind = "text" | "thinking" | "toolcall"

interface Block {
  readonly contentIndex: number
  readonly kind: Kind
  id: string
  name: string
}

const frame = (event: object): string => `data: ${JSON.stringify(event)}\n\n`

export class PiWriter implements Writer {
  private hasStarted = false
  private isOver = false
  private readonly blocks = new Map<number, Block>()
  /** The most blocks that the client has seen. */
  private seen = 0

  readonly write = (event: Event): Result.Result<string, ProviderError> =>
    Result.succeed(this.isOver ? "" : this.begin() + this.written(event))

  readonly fail = (error: ProviderError): string => this.failed("error", error.message)

  readonly end = (): string => this.failed("error", "The answer ended before it was finished")

  private begin(): string {
    if (this.hasStarted) return ""
    this.hasStarted = true
    return frame({ type: "start" })
  }

  private written(event: Event): string {
    switch (event._tag) {
      case "TextStart":
      case "TextDelta":
      case "TextEnd":
        return this.textual("text", event)
      case "ThinkingStart":
      case "ThinkingDelta":
      case "ThinkingEnd":
        return this.textual("thinking", event)
      case "ToolCallStart":
      case "ToolCallDelta":
      case "ToolCallEnd":
        return this.toolCall(event)
      case "Media": {
        const { contentIndex, media } = event
        const delta = `(media: ${media.source.mediaType})`
        return this.textual("text", { _tag: "TextDelta", contentIndex, delta })
      }
      case "Retracted":
        this.blocks.clear()
        return ""
      case "Finish":
        return this.finished(event)
      default:
        return ""
    }
  }

  private textual(
    kind: "text" | "thinking",
    event: OfTag<`${"Text" | "Thinking"}${"Start" | "Delta" | "End"}`>
  ): string {
    const { begun, block } = this.blockOf(kind, event.contentIndex)
    const { contentIndex } = block
    if ("delta" in event) return begun + frame({ type: `${kind}_delta`, contentIndex, delta: event.delta })
    if (event._tag === "TextStart" || event._tag === "ThinkingStart") return begun
    const contentSignature = event.opaque === undefined ? undefined : PiSignature.write(event.opaque)
    return begun + frame({ type: `${kind}_end`, contentIndex, contentSignature })
  }

  private toolCall(event: OfTag<"ToolCallStart" | "ToolCallDelta" | "ToolCallEnd">): string {
    const named = event._tag === "ToolCallStart" ? event : { id: "", name: "" }
    const { begun, block } = this.blockOf("toolcall", event.contentIndex, named)
    const { contentIndex, id, name } = block
    if (event._tag === "ToolCallStart") return begun
    if (event._tag === "ToolCallDelta")
      return begun + frame({ type: "toolcall_delta", contentIndex, delta: event.delta })
    const thoughtSignature = event.opaque === undefined ? undefined : PiSignature.write(event.opaque)
    const params = objectOf(ModelEvent.parseArguments(event.rawArguments))
    const toolCall = { type: "toolCall", id, name, arguments: params, thoughtSignature }
    return begun + frame({ type: "toolcall_end", contentIndex, toolCall })
  }

  /** The block of an event, and the frame of its start if it begins with this event. */
  private blockOf(
    kind: Kind,
    index: number,
    { id, name }: Pick<Block, "id" | "name"> = { id: "", name: "" }
  ): { readonly block: Block; readonly begun: string } {
    const known = this.blocks.get(index)
    if (known?.kind === kind) return { block: known, begun: "" }
    const contentIndex = known?.contentIndex ?? this.blocks.size
    const block = { contentIndex, kind, id, name }
    this.blocks.set(index, block)
    this.seen = Math.max(this.seen, this.blocks.size)
    const call = kind === "toolcall" ? { id, toolName: name } : {}
    return { block, begun: frame({ type: `${kind}_start`, contentIndex, ...call }) }
  }

  private finished({ stopReason, usage }: OfTag<"Finish">): string {
    const emptied = this.emptied()
    switch (stopReason) {
      case "stop":
      case "length":
      case "toolUse":
        this.isOver = true
        return emptied + frame({ type: "done", reason: stopReason, usage: PiUsage.write(usage) })
      case "aborted":
        return emptied + this.failed("aborted", "The answer was aborted", usage)
      case "contentFilter":
      case "refusal":
        return emptied + this.failed("error", `The vendor ended the answer: ${stopReason}`, usage)
      case "error":
        return emptied + this.failed("error", "The answer failed", usage)
    }
  }

  /** Empties the blocks of a retracted answer that have no successor. */
  private emptied(): string {
    let text = ""
    for (let contentIndex = this.blocks.size; contentIndex < this.seen; contentIndex++) {
      text += frame({ type: "text_start", contentIndex }) + frame({ type: "text_end", contentIndex })
    }
    return text
  }

  private failed(reason: "error" | "aborted", message: string, usage?: Usage.Usage): string {
    if (this.isOver) return ""
    this.isOver = true
    return frame({
      type: "error",
      reason,
      errorMessage: VendorKeys.cutOut(message),
      usage: PiUsage.write(usage)
    })
  }
}

const objectOf = (params: Schema.Json | undefined): Schema.Json => (Predicate.isObject(params) ? params : {})
