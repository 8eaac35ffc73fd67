/**
 * A provider that asks a server for clients of pi's `streamProxy`: `POST /api/stream`.
 *
 * **When to use**
 *
 * Use where a server for `@earendil-works/pi-agent-core` exists. For a server of this package, `ProxyProvider` loses nothing.
 *
 * **Gotchas**
 *
 * pi's protocol has no place for tools of vendors, output schemas, sources, files and other options: they are left out. Its failures
 * are texts, of which the reason is a guess.
 *
 * @since 0.2.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as HttpClient from "effect/http/HttpClient"
import type * as Message from "../Message.ts"
import type { ModelEvent } from "../ModelEvent.ts"
import { type ModelRequest, Provider } from "../Provider.ts"
import * as Reasons from "../ProviderError.ts"
import * as VendorFailure from "../http/VendorFailure.ts"
import * as Json from "../internal/json.ts"
import type * as ProxyProvider from "./ProxyProvider.ts"
import * as ProxyConnection from "./internal/ProxyConnection.ts"
import type { Frame } from "./internal/EventFrame.ts"
import * as PiBody from "./internal/PiBody.ts"

/**
 * The options of the provider.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options
  extends Pick<ProxyProvider.Options, "url" | "token" | "headers" | "timeouts" | "reconnect"> {
  /** The id of the provider, for models without a prefix and in errors. Default `"pi"`. */
  readonly id?: string | undefined
  /**
   * Returns pi's description of a model, which servers give to their providers. Default: `provider` and `id` of an id such as
   * `"anthropic/claude-sonnet-5"`, and members that many servers take.
   */
  readonly model?: ((id: string) => Schema.JsonObject) | undefined
}

/**
 * Makes a provider that asks a server of pi's proxy.
 *
 * **Details**
 *
 * An answer that ends without `done` fails with `StreamTruncated`. Refusals, reconnects and interruption are those of `ProxyProvider`.
 *
 * **Example** (Asking through a server in the process)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Agent, Provider } from "effect-agent"
 * import { PiProxy, PiStream } from "effect-agent/proxy"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const { provider } = yield* ScriptedProvider.make([ScriptedProvider.text("Hello from the server")])
 *   const server = PiStream.toWebHandler(provider, { models: ["acme/small"] })
 *
 *   const proxy = yield* PiProxy.make({ url: "http://127.0.0.1:4111" }).pipe(Effect.provide(FetchHttpClient.layer))
 *   const agent = yield* Agent.make({ model: "acme/small" }).pipe(Effect.provideService(Provider.Provider, proxy))
 *   const { text } = yield* agent
 *     .prompt("Hello?")
 *     .pipe(Effect.provideService(FetchHttpClient.Fetch, (input, init) => server(new Request(input, init))))
 *   return text
 * }).pipe(Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => Hello from the server
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Provider["Service"], never, HttpClient.HttpClient> {
  const client = yield* HttpClient.HttpClient
  const { id = "pi" } = options
  const url = ProxyConnection.addressOf(options.url, "/api/stream")
  return Provider.of({
    id,
    ...ProxyConnection.serverOf(url),
    stream: (request) => asking({ ...options, client, id, url }, request)
  })
})

/**
 * Makes the `Provider` layer that asks a server of pi's proxy.
 *
 * See {@link make} for its behaviour.
 *
 * **Example** (Giving an agent a server)
 *
 * ```ts
 * import { Effect, Layer, Redacted } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Agent } from "effect-agent"
 * import { PiProxy } from "effect-agent/proxy"
 *
 * const provider = PiProxy.layer({
 *   url: "https://genai.example.com",
 *   token: Redacted.make("the token of the server")
 * }).pipe(Layer.provide(FetchHttpClient.layer))
 *
 * const program = Effect.scoped(Agent.make({ model: "anthropic/claude-sonnet-5" }))
 *
 * await Effect.runPromise(program.pipe(Effect.provide(provider)))
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (options: Options): Layer.Layer<Provider, never, HttpClient.HttpClient> =>
  Layer.effect(Provider, make(options))

interface Opened extends Options {
  readonly client: HttpClient.HttpClient
  readonly id: string
}

const asking = (opened: Opened, request: ModelRequest): Stream.Stream<ModelEvent, Reasons.ProviderError> => {
  const {
    client,
    headers = {},
    id: provider,
    reconnect = ProxyConnection.schedule,
    timeouts,
    token,
    url
  } = opened
  const model = opened.model?.(request.model) ?? describe(provider, request.model)
  const body = Result.try(() => JSON.stringify(bodyOf(request, model)))
  if (Result.isFailure(body)) {
    const reason = new Reasons.InvalidRequest({ detail: "The request cannot be written as JSON" })
    return Stream.fail(new Reasons.ProviderError({ provider, reason }))
  }
  const attempt = (): ProxyConnection.Attempt => {
    const decoder = new PiReader(provider, request.model)
    const outgoing = { client, provider, url, headers, token, body: body.success, timeouts, decoder }
    return { answer: ProxyConnection.answer(outgoing), hasBegun: () => decoder.hasBegun }
  }
  return ProxyConnection.reconnecting(attempt, reconnect)
}

const describe = (provider: string, model: string): Schema.JsonObject => {
  const slash = model.indexOf("/")
  return {
    id: model.slice(slash + 1),
    name: model.slice(slash + 1),
    api: "",
    provider: slash === -1 ? provider : model.slice(0, slash),
    baseUrl: "",
    reasoning: true,
    input: ["text", "image"],
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow: 200_000,
    maxTokens: 32_000
  }
}

// ───────────────────────── Answers

const optional = Schema.optionalKey
const index = { contentIndex: Schema.Int }
const delta = { ...index, delta: Schema.String }
const end = { ...index, contentSignature: optional(Schema.String) }
const usage = { usage: optional(PiBody.PiUsage) }
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
class PiReader implements ProxyConnection.Decoder {
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
        const usage = event.usage === undefined ? undefined : PiBody.readUsage(event.usage)
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
      return { _tag: "TextEnd", contentIndex, ...PiBody.opaque(event.contentSignature) }
    case "thinking_start":
      return { _tag: "ThinkingStart", contentIndex }
    case "thinking_delta":
      return { _tag: "ThinkingDelta", contentIndex, delta: event.delta }
    case "thinking_end":
      return { _tag: "ThinkingEnd", contentIndex, ...PiBody.opaque(event.contentSignature) }
    case "toolcall_start":
      return { _tag: "ToolCallStart", contentIndex, id: event.id, name: event.toolName }
    case "toolcall_delta":
      return { _tag: "ToolCallDelta", contentIndex, delta: event.delta }
    case "toolcall_end": {
      const { arguments: params, thoughtSignature } = event.toolCall
      const rawArguments = JSON.stringify(params)
      return { _tag: "ToolCallEnd", contentIndex, rawArguments, ...PiBody.opaque(thoughtSignature) }
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

// ───────────────────────── Requests

// A request as the body of pi's `streamProxy`: `{ model, context, options }`. The system prompt and the tools are a message of the role
// `system`, as in version 0.87.1.

const bodyOf = (request: ModelRequest, model: Schema.JsonObject): object => ({
  model,
  context: { messages: [...systemOf(request), ...request.messages.map(toPi)] },
  options: optionsOf(request.options)
})

const systemOf = ({ system = "", tools }: ModelRequest): ReadonlyArray<object> => {
  if (system === "" && tools.length === 0) return []
  const toolsAdded = tools.map(({ description, name, parameters }) => ({ name, description, parameters }))
  return [{ role: "system", content: system, ...(tools.length === 0 ? {} : { toolsAdded }), timestamp: 0 }]
}

/** pi has no level "off": it leaves the member out. */
const optionsOf = (options: ModelRequest["options"]): object => {
  const { cacheRetention, maxTokens, sessionId, temperature, thinkingBudgets, thinkingLevel } = options
  const reasoning = thinkingLevel === "off" ? undefined : thinkingLevel
  return { temperature, maxTokens, reasoning, cacheRetention, sessionId, thinkingBudgets }
}

const toPi = (message: Message.ModelMessage): object => {
  const { timestamp } = message
  switch (message.role) {
    case "user":
      return { role: "user", content: message.content.map(shown), timestamp }
    case "toolResult": {
      const { content, isError, toolCallId, toolName } = message
      return { role: "toolResult", toolCallId, toolName, content: content.map(shown), isError, timestamp }
    }
    case "assistant": {
      const { errorMessage, model, protocol, provider, responseId, stopReason, usage } = message
      return {
        role: "assistant",
        content: message.content.flatMap(toBlock),
        api: protocol,
        provider,
        model,
        responseId,
        usage: PiBody.writeUsage(usage),
        stopReason: stopReason === "contentFilter" || stopReason === "refusal" ? "error" : stopReason,
        errorMessage,
        timestamp
      }
    }
  }
}

/** pi has images as base64 alone, and no files. */
const shown = (part: Message.Text | Message.Image | Message.File): object => {
  if (part.type === "text") return { type: "text", text: part.text }
  const { source } = part
  if ("url" in source) return { type: "text", text: `(${part.type}: ${source.url})` }
  if ("fileId" in source) return { type: "text", text: `(file: ${source.fileId})` }
  return part.type === "image"
    ? { type: "image", data: source.data, mimeType: source.mediaType }
    : { type: "text", text: `(file: ${source.mediaType})` }
}

/** pi has no blocks for sources and tools of vendors. */
const toBlock = (block: Message.Assistant["content"][number]): ReadonlyArray<object> => {
  const signature = block.opaque === undefined ? undefined : PiBody.write(block.opaque)
  switch (block.type) {
    case "text":
      return [{ type: "text", text: block.text, textSignature: signature }]
    case "thinking": {
      const { redacted, text } = block
      return [{ type: "thinking", thinking: text, thinkingSignature: signature, redacted }]
    }
    case "toolCall": {
      const params = Predicate.isObject(block.params) ? block.params : {}
      const { id, name } = block
      return [{ type: "toolCall", id, name, arguments: params, thoughtSignature: signature }]
    }
    case "media":
      return [{ type: "text", text: `(media: ${block.source.mediaType})` }]
    case "source":
    case "hostedTool":
      return []
  }
}
