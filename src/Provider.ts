/**
 * The service that answers model calls: the API of a vendor, a local server or a script.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import {
  type Assistant,
  type File,
  type Image,
  makeId,
  type MessageId,
  type ModelMessage,
  type VendorMembers
} from "./Message.ts"
import { add, draft, type ModelEvent, toAssistant } from "./ModelEvent.ts"
import { ModelNotSupported, ProviderError } from "./ProviderError.ts"
import type { ModelOptions } from "./RunOptions.ts"
import { failedBy, truncated } from "./internal/attempts.ts"
import { TaggedError } from "./internal/errors.ts"
import type { GuardrailTripped } from "./internal/failureReason.ts"

/**
 * A tool as the model gets it.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolDefinition {
  /** The name of the tool. */
  readonly name: string
  /** The purpose of the tool, which the model reads. */
  readonly description: string
  /** A JSON Schema of an object. */
  readonly parameters: Schema.Json
  /** Whether the vendor makes the arguments match `parameters`, where it can. Default: the provider's. */
  readonly strict?: boolean
  /**
   * Whether the model gets the tool only when it searches for it at the vendor. Default `false`. A provider without `toolSearch`
   * for the model gives it the tool at once.
   */
  readonly deferred?: boolean
  /** Arguments of calls as examples for the model. A provider without a member for them appends them to the description. Default none. */
  readonly inputExamples?: ReadonlyArray<Schema.JsonObject>
  /** The callers that may call the tool: the model itself, or programs that it writes and the vendor runs. Default: the model itself. */
  readonly allowedCallers?: ReadonlyArray<ToolCaller>
  /** Members of the definition in a request by provider id: see `Message.VendorMembers`. Default none. */
  readonly vendor?: VendorMembers
}

/**
 * A caller of a tool: the model itself (`"direct"`), or a program that it writes and the vendor runs (`"programmatic"`).
 *
 * @category models
 * @since 0.2.0
 */
export type ToolCaller = "direct" | "programmatic"

/**
 * One model call.
 *
 * @category models
 * @since 0.1.0
 */
export interface ModelRequest {
  /** The id of the model, without a prefix of a router. */
  readonly model: string
  /** The system prompt. Default none. */
  readonly system?: string
  /**
   * The conversation, with the same objects from turn to turn, so that a provider can cache an encoding by identity.
   */
  readonly messages: ReadonlyArray<ModelMessage>
  /** The tools that the model may call. */
  readonly tools: ReadonlyArray<ToolDefinition>
  /** The options of the call. */
  readonly options: ModelOptions
  /** The notes of providers on answers of the conversation, by the ids of their messages: see `Start` of `ModelEvent`. Default none. */
  readonly notes?: ReadonlyMap<MessageId, Schema.Json>
}

/**
 * The address of a server.
 *
 * @category models
 * @since 0.2.0
 */
export interface Server {
  /** The name of the host, or its IP address. */
  readonly address: string
  /** The port, such as 443. */
  readonly port: number
}

/**
 * The size of a request.
 *
 * @category models
 * @since 0.2.0
 */
export interface TokenCount {
  /** The tokens of the system prompt, the tools and the conversation, as the vendor counts them. */
  readonly inputTokens: number
}

/**
 * The provider cannot count the tokens of a request: its vendor, or the server behind it, has no route for that.
 *
 * @category errors
 * @since 0.2.0
 */
export class CountingUnsupported extends TaggedError<CountingUnsupported>()("CountingUnsupported", {
  /** The id of the provider. */
  provider: Schema.String
}) {
  override get message(): string {
    return `The provider ${this.provider} cannot count tokens. Estimate four characters for one token.`
  }
}

/**
 * The service that answers model calls.
 *
 * **Details**
 *
 * `id` is the name of the provider in messages and errors. `stream` makes one model call, and closes its connection when its
 * reader leaves. It fails with `ProviderError`.
 *
 * **Example** (Writing a provider)
 *
 * ```ts
 * import { Effect, Layer, Stream } from "effect"
 * import { Agent, Message, ProviderError, Provider } from "effect-agent"
 *
 * const echo = Layer.succeed(Provider.Provider, {
 *   id: "echo",
 *   stream: ({ messages, model }) => {
 *     const last = messages.at(-1)
 *     if (last === undefined) {
 *       const reason = new ProviderError.InvalidRequest({ detail: "there is no message" })
 *       return Stream.fail(new ProviderError.ProviderError({ provider: "echo", reason }))
 *     }
 *     return Stream.make(
 *       { _tag: "Start", provider: "echo", model, protocol: "none" },
 *       { _tag: "TextDelta", contentIndex: 0, delta: Message.textOf(last) },
 *       { _tag: "Finish", stopReason: "stop" }
 *     )
 *   }
 * })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "echo-1" })
 *   const { text } = yield* agent.prompt("Hello")
 *   return text
 * }).pipe(Effect.provide(echo), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => Hello
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class Provider extends Context.Service<
  Provider,
  {
    readonly id: string
    /** The server that it asks, for telemetry. Absent if it is not known, or if there are several. */
    readonly server?: Server
    /** Asks once. Leaving the stream closes the connection. */
    readonly stream: (request: ModelRequest) => Stream.Stream<ModelEvent, ProviderError>
    /**
     * Whether the vendor makes the model answer by the JSON Schema of `options.output`, with these tools. Default `false`: a run
     * with an `output` schema offers the model a tool to call with its output.
     */
    readonly structuredOutput?: (request: Pick<ModelRequest, "model" | "tools">) => boolean
    /** Whether the vendor lets the model search for the tools that a request defers. Default `false`. */
    readonly toolSearch?: (request: Pick<ModelRequest, "model">) => boolean
    /**
     * Returns why the model cannot take an image or a file, in words that end a sentence; `undefined` if it can. Default: it takes all.
     * A request that has one nevertheless gets a note in its place.
     */
    readonly refuses?: (request: Pick<ModelRequest, "model">, media: Image | File) => string | undefined
    /** Counts the tokens of a request at the vendor. Absent if the provider cannot. */
    readonly countTokens?: (
      request: ModelRequest
    ) => Effect.Effect<TokenCount, ProviderError | CountingUnsupported>
  }
>()("effect-agent/Provider") {}

const count = (provider: Provider["Service"], request: ModelRequest) =>
  provider.countTokens?.(request) ?? Effect.fail(new CountingUnsupported({ provider: provider.id }))

/**
 * Counts the tokens of a request at the vendor, which does not answer it.
 *
 * **Details**
 *
 * The count has the system prompt, the tools and the conversation as the vendor reads them. It fails with `CountingUnsupported`
 * where the vendor has no route for it, and with `ProviderError` where the request for it fails.
 *
 * **Example** (Counting before a call)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Message, Provider } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Provider.countTokens({ model: "m", messages: [Message.user("Hi")], tools: [], options: {} }).pipe(
 *   Effect.map(({ inputTokens }) => inputTokens),
 *   Effect.catchTag("CountingUnsupported", ({ provider }) => Effect.succeed(`${provider} does not count`)),
 *   Effect.provide(ScriptedProvider.layer([]))
 * )
 *
 * console.log(await Effect.runPromise(program)) // => scripted does not count
 * ```
 *
 * @category accessors
 * @since 0.2.0
 */
export const countTokens = (
  request: ModelRequest
): Effect.Effect<TokenCount, ProviderError | CountingUnsupported, Provider> =>
  Effect.flatMap(Provider, (provider) => count(provider, request))

/**
 * Asks the provider once, without an agent, and returns the whole answer.
 *
 * **Details**
 *
 * It fails with `ProviderError` as a run would: also for an answer that was cut, with the reason `StreamTruncated`, and for one that the
 * vendor ended with an error. It runs no tools: the answer has the calls.
 *
 * **Example** (Asking for one word)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Message, Provider } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const request = { model: "m", messages: [Message.user("Is it polite? Yes or no.")], tools: [], options: {} }
 * const program = Provider.complete(request).pipe(
 *   Effect.map(Message.textOf),
 *   Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("Yes")]))
 * )
 *
 * console.log(await Effect.runPromise(program)) // => Yes
 * ```
 *
 * @category accessors
 * @since 0.2.0
 */
export const complete = (request: ModelRequest): Effect.Effect<Assistant, ProviderError, Provider> =>
  Effect.gen(function* () {
    const { id, stream } = yield* Provider
    const reply = draft()
    yield* Stream.runForEach(stream(request), (event) => Effect.sync(() => add(reply, event)))
    if (reply.finish === undefined) return yield* truncated(reply.start?.provider ?? id)
    const timestamp = yield* Clock.currentTimeMillis
    const names = { provider: id, model: request.model, protocol: "" }
    const answer = toAssistant(reply, { ...names, id: makeId(), timestamp })
    return yield* answer.stopReason === "error" ? Effect.fail(failedBy(answer)) : Effect.succeed(answer)
  })

/**
 * Makes a provider that sends each call to the provider that the prefix of the model names.
 *
 * **Details**
 *
 * It sends `"openai/gpt-5.4-mini"` to the provider `openai`, as `"gpt-5.4-mini"`. It fails with the reason `ModelNotSupported` for a
 * model without a known prefix.
 *
 * **Example** (Routing between two providers)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Provider } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const one = yield* ScriptedProvider.make([ScriptedProvider.text("I am one.")])
 *   const two = yield* ScriptedProvider.make([ScriptedProvider.text("I am two.")])
 *   const router = Provider.router({ one: one.provider, two: two.provider })
 *   const agent = yield* Effect.provideService(Agent.make({ model: "two/large" }), Provider.Provider, router)
 *   const { text } = yield* agent.prompt("Which one are you?")
 *   return text
 * }).pipe(Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => I am two.
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const router = (providers: Readonly<Record<string, Provider["Service"]>>): Provider["Service"] => {
  const known = new Map(Object.entries(providers))
  const find = (id: string) => {
    const slash = id.indexOf("/")
    return { provider: known.get(id.slice(0, Math.max(0, slash))), model: id.slice(slash + 1) }
  }
  return Provider.of({
    id: "router",
    stream: (request) => {
      const { model, provider } = find(request.model)
      return provider === undefined
        ? Stream.fail(unsupported(request.model, [...known.keys()]))
        : provider.stream({ ...request, model })
    },
    structuredOutput: (request) => {
      const { model, provider } = find(request.model)
      return provider?.structuredOutput?.({ ...request, model }) ?? false
    },
    toolSearch: (request) => {
      const { model, provider } = find(request.model)
      return provider?.toolSearch?.({ model }) ?? false
    },
    refuses: (request, media) => {
      const { model, provider } = find(request.model)
      return provider?.refuses?.({ model }, media)
    },
    countTokens: (request) => {
      const { model, provider } = find(request.model)
      return provider === undefined
        ? Effect.fail(unsupported(request.model, [...known.keys()]))
        : count(provider, { ...request, model })
    }
  })
}

const unsupported = (model: string, known: ReadonlyArray<string>) =>
  new ProviderError({
    provider: "router",
    reason: new ModelNotSupported({
      model,
      detail: `No provider for ${JSON.stringify(model)}. Models are named provider/id; providers: ${known.join(", ")}`
    })
  })

/**
 * Makes a decorator: a function from a `Provider` layer to a `Provider` layer.
 *
 * **Details**
 *
 * The result has the `structuredOutput`, the `toolSearch`, the `refuses` and the `countTokens` of the provider inside, unless `wrap`
 * returns others.
 *
 * **Gotchas**
 *
 * Effect builds a layer once for each reference. A constant decorator layer around two providers of an application would give both
 * the first one, so a decorator is a function.
 *
 * **Example** (Logging each call)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent, Provider } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const logged = Provider.decorate((inner) =>
 *   Effect.succeed(
 *     Provider.Provider.of({
 *       id: inner.id,
 *       stream: (request) =>
 *         Stream.onStart(
 *           inner.stream(request),
 *           Effect.sync(() => console.log(`${inner.id} gets ${request.messages.length} message`))
 *         )
 *     })
 *   )
 * )
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any" })
 *   yield* agent.prompt("Hello")
 * }).pipe(Effect.provide(logged(ScriptedProvider.layer([ScriptedProvider.text("Hi")]))), Effect.scoped)
 *
 * await Effect.runPromise(program) // => scripted gets 1 message
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const decorate =
  <E, R>(wrap: (inner: Provider["Service"]) => Effect.Effect<Provider["Service"], E, R>) =>
  <E1, R1>(inner: Layer.Layer<Provider, E1, R1>): Layer.Layer<Provider, E | E1, R | R1> =>
    Layer.effect(
      Provider,
      Effect.flatMap(Provider, (inner) =>
        Effect.map(wrap(inner), (outer) => ({ ...abilities(inner), ...outer }))
      )
    ).pipe(Layer.provide(inner))

const abilities = ({
  countTokens,
  refuses,
  structuredOutput,
  toolSearch
}: Provider["Service"]): Partial<Provider["Service"]> => ({
  ...(countTokens === undefined ? {} : { countTokens }),
  ...(refuses === undefined ? {} : { refuses }),
  ...(structuredOutput === undefined ? {} : { structuredOutput }),
  ...(toolSearch === undefined ? {} : { toolSearch })
})

/**
 * A request that the run is about to send.
 *
 * @category models
 * @since 0.2.0
 */
export interface Guarded {
  /** The id of the run. */
  readonly runId: string
  /** The number of the turn, from 1. */
  readonly turn: number
  /** The request, with the changes of the hooks. */
  readonly request: ModelRequest
}

/**
 * Checks requests before the model gets them, and answers before others see them.
 *
 * **When to use**
 *
 * `Guardrail.layer` of `effect-agent/guardrails` provides it, with guards that run side by side, time limits and a bounded
 * hold-back. Provide an implementation of your own to check in another way.
 *
 * **Details**
 *
 * The run passes each answer through the guard before it publishes a piece of it, so that no event, message or span has text that
 * the guard withholds. Tools start after the end of the answer: none starts while the guard works.
 *
 * A run whose guard fails with `GuardrailTripped` fails with that reason.
 *
 * @category models
 * @since 0.2.0
 */
export interface Guard {
  /** Checks a request. Succeeds with words to answer with in place of the model, or with `undefined` to ask it. Default: asks it. */
  readonly input?: (asked: Guarded) => Effect.Effect<string | undefined, GuardrailTripped>
  /** Returns the events of an answer that the run may publish. The run calls it for each try. Default: all events. */
  readonly output?: <E>(
    answer: Stream.Stream<ModelEvent, E>,
    asked: Guarded
  ) => Stream.Stream<ModelEvent, E | GuardrailTripped>
}

/**
 * The service that guards a model.
 *
 * **Details**
 *
 * By default it lets everything pass. An answer that a `beforeModel` hook gives in place of the model does not go through it.
 *
 * **Example** (Answering in place of the model)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent, Provider } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const closed = Layer.succeed(Provider.Guard, { input: () => Effect.succeed("We are closed.") })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any" })
 *   const { text } = yield* agent.prompt("Hello?")
 *   return text
 * }).pipe(Effect.scoped, Effect.provide([closed, ScriptedProvider.layer([])]))
 *
 * console.log(await Effect.runPromise(program)) // => We are closed.
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export const Guard: Context.Reference<Guard> = Context.Reference<Guard>("effect-agent/Provider/Guard", {
  defaultValue: () => ({})
})
