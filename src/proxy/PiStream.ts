/**
 * A server for clients of pi's `streamProxy`: `POST /api/stream`, with the provider of the application.
 *
 * **When to use**
 *
 * Use where agents of `@earendil-works/pi-agent-core` ask models through a server of this package.
 *
 * **Details**
 *
 * The body is `{ model, context, options }` of pi, the answer its proxy events, which have no `partial`. Of the model only `provider` and
 * `id` count; `samplingParams`, `headers`, `metadata` and `transport` do not.
 *
 * **Gotchas**
 *
 * pi has no blocks for sources, media and tools of vendors: they are left out, and media become a text.
 *
 * @since 0.2.0
 */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import * as HttpEffect from "effect/http/HttpEffect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as ModelEvent from "../ModelEvent.ts"
import { type ModelRequest, Provider } from "../Provider.ts"
import type { ProviderError } from "../ProviderError.ts"
import type * as Usage from "../Usage.ts"
import * as VendorText from "../http/VendorText.ts"
import type { Options } from "./ModelStream.ts"
import * as ProxyHandling from "./internal/ProxyHandling.ts"
import * as PiBody from "./internal/PiBody.ts"

export type { Options } from "./ModelStream.ts"

/**
 * Decodes the body of pi's request, and checks its model.
 *
 * **Details**
 *
 * `body` is the JSON value of the body. The model of the request is `provider/id`, or `id`, of the models of the server.
 *
 * **Example** (Reading a request of pi)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { PiStream } from "effect-agent/proxy"
 *
 * const body = { model: { provider: "openai", id: "gpt-5.4-mini" }, context: { systemPrompt: "Be brief.", messages: [] } }
 * const request = await Effect.runPromise(PiStream.decode(body, { models: ["openai/gpt-5.4-mini"] }))
 *
 * console.log(request.model, request.system) // => openai/gpt-5.4-mini Be brief.
 * ```
 *
 * @category decoding
 * @since 0.2.0
 */
export const decode = (
  body: unknown,
  { models }: Pick<Options, "models">
): Effect.Effect<ModelRequest, ProxyHandling.InvalidBody | ProxyHandling.ModelForbidden> =>
  Effect.flatMap(ProxyHandling.decoded(decodeBody(body)), (read) => {
    const { id, provider } = read.model
    const whole = ProxyHandling.admit(PiBody.toRequest(read, `${provider}/${id}`), models)
    return Effect.fromResult(
      Result.orElse(whole, () => ProxyHandling.admit(PiBody.toRequest(read, id), models))
    )
  })

const decodeBody = Schema.decodeUnknownResult(PiBody.Body)

/**
 * Encodes the events of an answer as those of pi's proxy.
 *
 * **Details**
 *
 * The stream does not fail: a failure becomes the event `error`, and so does an answer that the vendor refused or that ended without
 * `Finish`. Texts of errors lose everything that looks like a key.
 *
 * **Example** (Encoding an answer)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { type ModelEvent } from "effect-agent"
 * import { PiStream } from "effect-agent/proxy"
 *
 * const events: ReadonlyArray<ModelEvent.ModelEvent> = [{ _tag: "TextStart", contentIndex: 0 }]
 * const program = PiStream.encode(Stream.fromIterable(events)).pipe(Stream.decodeText, Stream.mkString)
 *
 * const [start] = (await Effect.runPromise(program)).split("\n")
 * console.log(start) // => data: {"type":"start"}
 * ```
 *
 * @category encoding
 * @since 0.2.0
 */
export const encode = <R>(
  events: Stream.Stream<ModelEvent.ModelEvent, ProviderError, R>
): Stream.Stream<Uint8Array, never, R> => ProxyHandling.frames(events, () => new PiWriter())

/**
 * Handles a request of pi's `streamProxy` with the provider of the application.
 *
 * **Gotchas**
 *
 * It checks no token. Mount it behind the guards of the application, since each request costs money.
 *
 * **Example** (Mounting the route)
 *
 * ```ts
 * import { HttpRouter } from "effect/http"
 * import { PiStream } from "effect-agent/proxy"
 *
 * const route = HttpRouter.add("POST", "/api/stream", PiStream.handler({ models: ["openai/gpt-5.4-mini"] }))
 *
 * console.log(typeof route) // => object
 * ```
 *
 * @category running
 * @since 0.2.0
 */
export const handler = (
  options: Options
): Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  never,
  Provider | HttpServerRequest.HttpServerRequest
> => ProxyHandling.ask(options, decode, encode)

/**
 * Makes a handler of web requests.
 *
 * **Details**
 *
 * It does what {@link handler} does.
 *
 * **Example** (Handling a web request)
 *
 * ```ts
 * import { PiStream } from "effect-agent/proxy"
 * import { LocalRules } from "effect-agent/providers"
 *
 * const handle = PiStream.toWebHandler(LocalRules.provider, { models: ["local/rules"] })
 *
 * const request = new Request("http://127.0.0.1/api/stream", { method: "POST", body: "{}" })
 * console.log((await handle(request)).status) // => 415
 * ```
 *
 * @category converting
 * @since 0.2.0
 */
export const toWebHandler = (
  provider: Provider["Service"],
  options: Options
): ((request: Request) => Promise<Response>) =>
  HttpEffect.toWebHandler(Effect.provideService(handler(options), Provider, provider))

// ───────────────────────── Frames

// The events of an answer as those of pi's proxy, which have no `partial`.
//
// pi numbers texts, thinking and tool calls without gaps, and has no sources, tools of vendors and retractions. After a retraction the
// blocks begin at 0 again and replace those before, of which the others become empty texts.

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

class PiWriter implements ProxyHandling.Writer {
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
    const contentSignature = event.opaque === undefined ? undefined : PiBody.write(event.opaque)
    return begun + frame({ type: `${kind}_end`, contentIndex, contentSignature })
  }

  private toolCall(event: OfTag<"ToolCallStart" | "ToolCallDelta" | "ToolCallEnd">): string {
    const named = event._tag === "ToolCallStart" ? event : { id: "", name: "" }
    const { begun, block } = this.blockOf("toolcall", event.contentIndex, named)
    const { contentIndex, id, name } = block
    if (event._tag === "ToolCallStart") return begun
    if (event._tag === "ToolCallDelta")
      return begun + frame({ type: "toolcall_delta", contentIndex, delta: event.delta })
    const thoughtSignature = event.opaque === undefined ? undefined : PiBody.write(event.opaque)
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
        return emptied + frame({ type: "done", reason: stopReason, usage: PiBody.writeUsage(usage) })
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
      errorMessage: VendorText.cutOut(message),
      usage: PiBody.writeUsage(usage)
    })
  }
}

const objectOf = (params: Schema.Json | undefined): Schema.Json => (Predicate.isObject(params) ? params : {})
