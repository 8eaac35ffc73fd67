/**
 * A `LanguageModel` of `effect/ai` as a provider.
 *
 * **Details**
 *
 * Each call is one round of the model. The loop runs the tool calls, not the model.
 *
 * @since 0.1.0
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import type * as Pull from "effect/Pull"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import type * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Model from "effect/ai/Model"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as AiTool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import * as Base64 from "effect/encoding/Base64"
import type { StopReason } from "../Message.ts"
import { type ModelEvent, parseArguments } from "../ModelEvent.ts"
import { type ModelRequest, type ToolDefinition, Provider } from "../Provider.ts"
import { type Reason, InvalidRequest, ProviderError, StreamTruncated, ServerError } from "../ProviderError.ts"
import type { ModelOptions } from "../RunOptions.ts"
import * as Usage from "../Usage.ts"
import * as PartMetadata from "../reply/PartMetadata.ts"
import { PartReply } from "../reply/PartReply.ts"
import * as ModelCall from "./internal/ModelCall.ts"
import * as AiParts from "./internal/AiParts.ts"

/**
 * The options of such a provider.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /**
   * The tools of `effect/ai` that the vendor runs, such as those of a vendor's module for a search of the web. Default: none.
   *
   * The answer has their calls and results as blocks `hostedTool`.
   */
  readonly hostedTools?: ReadonlyArray<HostedTool>
  /**
   * The id of the provider, in messages and errors. Default: the name that `Model.make` gives the provider, else `"effect-ai"`.
   *
   * Thinking goes back to the provider of this id only.
   */
  readonly id?: string
  /**
   * Makes services for one call, besides those of the model's layer, such as the configuration of a vendor's module. Default: none.
   *
   * It carries the model and the options of a request, for which `effect/ai` has no place, to the vendor. Without it they are left
   * out, with one warning in the log, and a request for structured output fails with the reason `InvalidRequest`.
   */
  readonly configure?: (request: ModelRequest) => Context.Context<never>
}

/**
 * A tool of `effect/ai` that the vendor runs, without a handler.
 *
 * @category models
 * @since 0.2.0
 */
export type HostedTool = AiTool.ProviderDefined<
  `${string}.${string}`,
  string,
  {
    readonly args: Schema.Codec<unknown, unknown>
    readonly parameters: Schema.Codec<unknown, unknown>
    readonly success: Schema.Codec<unknown, unknown>
    readonly failure: Schema.Codec<unknown, unknown>
    readonly failureMode: AiTool.FailureMode
  },
  false
>

/**
 * Makes a provider of the `LanguageModel` in context.
 *
 * **Example** (Running an agent on a model of effect/ai)
 *
 * ```ts
 * import { Effect, Layer, Stream } from "effect"
 * import { LanguageModel, type Response } from "effect/ai"
 * import { Agent } from "effect-agent"
 * import { LanguageModelProvider } from "effect-agent/ai"
 *
 * const parts: ReadonlyArray<Response.StreamPartEncoded> = [
 *   { type: "text-start", id: "1" },
 *   { type: "text-delta", id: "1", delta: "Hello" },
 *   { type: "text-end", id: "1" },
 *   { type: "finish", reason: "stop", usage: { inputTokens: {}, outputTokens: {} } }
 * ]
 * const model = Layer.effect(
 *   LanguageModel.LanguageModel,
 *   LanguageModel.make({
 *     generateText: () => Effect.succeed([]),
 *     streamText: () => Stream.fromIterable(parts)
 *   })
 * )
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any" })
 *   const { text } = yield* agent.prompt("Hi")
 *   return text
 * }).pipe(Effect.provide(Layer.provide(LanguageModelProvider.layer(), model)), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => Hello
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<Provider, never, LanguageModel.LanguageModel> =>
  Layer.effect(Provider, make(options))

/**
 * Makes a provider of the `LanguageModel` in context, as a value.
 *
 * **Example** (Naming the provider)
 *
 * ```ts
 * import { Effect, Layer, Stream } from "effect"
 * import { LanguageModel } from "effect/ai"
 * import { LanguageModelProvider } from "effect-agent/ai"
 *
 * const model = Layer.effect(
 *   LanguageModel.LanguageModel,
 *   LanguageModel.make({ generateText: () => Effect.succeed([]), streamText: () => Stream.empty })
 * )
 *
 * const program = Effect.map(LanguageModelProvider.make({ id: "acme" }), ({ id }) => id)
 *
 * console.log(await Effect.runPromise(Effect.provide(program, model))) // => acme
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  options?: Options
): Effect.Effect<Provider["Service"], never, LanguageModel.LanguageModel> =>
  Effect.gen(function* () {
    const model = yield* LanguageModel.LanguageModel
    const providerName = Option.getOrElse(yield* Effect.serviceOption(Model.ProviderName), () => "effect-ai")
    const modelName = Option.getOrUndefined(yield* Effect.serviceOption(Model.ModelName))
    const id = options?.id ?? providerName
    const promptOf = ModelCall.maker(id)
    const configure = options?.configure
    const fail = (reason: Reason) => Stream.fail(new ProviderError({ provider: id, reason }))
    const warn = yield* warnOnce
    const toolkitOf = toolkits(options?.hostedTools ?? [])

    return Provider.of({
      id,
      stream: (request) => {
        const prompt = promptOf(request)
        if (Result.isFailure(prompt)) return fail(prompt.failure)
        const parts = ask(model, request, prompt.success, toolkitOf(request.tools))
        if (configure !== undefined) {
          return toEvents(Stream.provideContext(parts, configure(request)), {
            provider: id,
            model: request.model
          })
        }
        if (request.options.output !== undefined) return fail(unstructured)
        const speaker = { provider: id, model: modelName ?? request.model }
        return Stream.onStart(toEvents(parts, speaker), warn(request.options))
      }
    })
  })

const unstructured = new InvalidRequest({
  detail: "effect/ai streams no structured output: pass a `configure` that sets it up for the vendor"
})

/** Makes a function that warns once of options that have no effect, which is hard to find otherwise. */
const warnOnce = Effect.sync(() => {
  let hasWarned = false
  return (options: ModelOptions): Effect.Effect<void> =>
    Effect.suspend(() => {
      const lost = Object.keys(options).filter((name) => !understood.has(name))
      if (hasWarned || lost.length === 0) return Effect.void
      hasWarned = true
      return Effect.logWarning(
        `effect/ai has no place for ${lost.join(", ")}: pass a configure to have them set`
      )
    })
})

/** Options without a warning: `effect/ai` has a place for `toolChoice`, and a vendor may ignore the others. */
const understood: ReadonlySet<string> = new Set(["toolChoice", "sessionId", "cacheRetention"])

const ask = (
  model: LanguageModel.LanguageModel,
  { options }: ModelRequest,
  prompt: Prompt.Prompt,
  toolkit: Declarations
): Stream.Stream<Part, AiError.AiError> =>
  model.streamText({
    prompt,
    toolkit,
    toolChoice: toolChoiceOf(options),
    // The loop checks the calls, and reports mistakes to the model.
    disableToolCallResolution: true,
    toolCallValidation: "deferred"
  })

const toolChoiceOf = ({ toolChoice = "auto" }: ModelOptions): LanguageModel.ToolChoice<string> =>
  typeof toolChoice === "string" ? toolChoice : { tool: toolChoice.name }

/** A tool that the model may call, and that the loop or the vendor runs. */
type Declared = ReturnType<typeof toolOf> | HostedTool
type Declarations = Toolkit.WithHandler<Record<string, Declared>>

// By the array, which stays the same object from turn to turn: a model caches the decoders of its last toolkit.
const toolkits = (hostedTools: ReadonlyArray<HostedTool>) =>
  memoize((definitions: ReadonlyArray<ToolDefinition>): Declarations => {
    const tools: ReadonlyArray<Declared> = [...definitions.map(toolOf), ...hostedTools]
    return {
      tools: Object.fromEntries(tools.map((tool) => [tool.name, tool])),
      handle: (name) => Effect.die(new Error(`Tool ${name} is run by the loop`))
    }
  })

const toolOf = ({ description, name, parameters, strict }: ToolDefinition) =>
  AiTool.dynamic(name, {
    description,
    parameters: Predicate.isObject(parameters) ? parameters : { type: "object" }
  }).annotate(AiTool.Strict, strict)

/** Converts parts to events, and ends with `Finish` even if the stream of the model does not end. */
const toEvents = (
  parts: Stream.Stream<Part, AiError.AiError>,
  speaker: Speaker
): Stream.Stream<ModelEvent, ProviderError> => {
  const failed = (reason: Reason) => Effect.fail(new ProviderError({ provider: speaker.provider, reason }))
  return Stream.transformPull(parts, (pull) =>
    Effect.sync(() => {
      const answer = new Answer(speaker)
      const next: Pull.Pull<Arr.NonEmptyReadonlyArray<ModelEvent>, ProviderError> = Effect.suspend(() => {
        if (answer.outcome === "complete") return Cause.done()
        if (answer.outcome !== undefined) return failed(answer.outcome)
        return pull.pipe(
          Effect.catch((end) =>
            Effect.flatMap(Clock.currentTimeMillis, (now) =>
              failed(Cause.isDone(end) ? truncated : ModelCall.fromAiError(end, now))
            )
          ),
          Effect.flatMap((parts) => {
            const events = answer.add(parts)
            return Arr.isReadonlyArrayNonEmpty(events) ? Effect.succeed(events) : next
          })
        )
      })
      return next
    })
  )
}

const truncated = new StreamTruncated({ detail: "The answer stopped before its end" })

// ───────────────────────── Answers

/** A part of a stream whose tool calls are not checked yet. */
type Part = Response.StreamPart<Record<string, AiTool.Any>, "deferred">

type Of<Type extends Part["type"]> = Extract<Part, { readonly type: Type }>

/** The provider and the model, as far as they are known before the answer. */
interface Speaker {
  readonly provider: string
  readonly model: string
}

/** One answer as it comes. */
class Answer {
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
      if (part.type === "error") this.outcome = ModelCall.fromUnknown(part.error)
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
        const run = { result: AiParts.toJson(encodedResult), ...(isFailure ? { isError: true } : {}) }
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
    if (providerExecuted) return reply.addHosted(id, name, { params: AiParts.toJson(params) }, metadata)
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
