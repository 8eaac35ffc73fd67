/**
 * A provider from one function of yours: it returns a whole answer, or yields an answer piece by piece.
 *
 * @since 0.2.0
 */
import * as Array from "effect/Array"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import * as HttpConnection from "../http/HttpConnection.ts"
import * as FailureText from "../internal/failureText.ts"
import * as VendorFailure from "../http/VendorFailure.ts"
import * as VendorText from "../http/VendorText.ts"
import { type HostedTool, makeId, type Media, type Source, type StopReason } from "../Message.ts"
import { type ModelRequest, Provider } from "../Provider.ts"
import { ProviderError, type Reason, Transport } from "../ProviderError.ts"
import { make as usageOf, type Usage } from "../Usage.ts"
import { ReplyWriter } from "../reply/ReplyWriter.ts"

/**
 * A tool call of an answer.
 *
 * @since 0.2.0
 * @category models
 */
export interface Call {
  /** The kind of the piece. */
  readonly type: "toolCall"
  /** The id of the call (default: a new one). */
  readonly id?: string
  /** The name of the tool. */
  readonly name: string
  /** The arguments (default `{}`). */
  readonly params?: Schema.Json
  /** The JSON text of the arguments, which may be wrong (default: that of `params`). */
  readonly rawArguments?: string
}

/**
 * A piece of an answer: text, thinking, a tool call, or another block.
 *
 * **Details**
 *
 * Pieces of text that follow each other are one block, as are those of thinking.
 *
 * @since 0.2.0
 * @category models
 */
export type Piece =
  | string
  | { readonly type: "text" | "thinking"; readonly text: string }
  | Call
  | HostedTool
  | Source
  | Media

/**
 * The end of an answer.
 *
 * @since 0.2.0
 * @category models
 */
export interface End {
  /** Why the answer ends (default `"toolUse"` for an answer with tool calls, else `"stop"`). */
  readonly stopReason?: StopReason
  /** The tokens of the request and the answer; members that are left out count as 0 (default: not known). */
  readonly usage?: Partial<Usage>
}

/**
 * A whole answer: its text, or its pieces and its end, such as an assistant message.
 *
 * @since 0.2.0
 * @category models
 */
export type Answer = string | ({ readonly content: ReadonlyArray<Piece> } & End)

/**
 * The function of a provider, and the other members of `Provider`.
 *
 * **Details**
 *
 * `complete` returns the whole answer. `stream` yields the pieces, and returns the end. A run that is cancelled
 * interrupts an effect, and aborts `signal`.
 *
 * @since 0.2.0
 * @category models
 */
export type Options = Omit<Provider["Service"], "stream"> &
  ({ readonly complete: Complete } | { readonly stream: Yield })

type Complete = (
  request: ModelRequest,
  signal: AbortSignal
) => Effect.Effect<Answer, ProviderError> | PromiseLike<Answer>

type Yield = (request: ModelRequest, signal: AbortSignal) => AsyncIterable<Piece, End | void>

/**
 * Makes a provider from a function.
 *
 * **Details**
 *
 * The other members are those of `Provider`. An error that the function throws becomes a `ProviderError`: its `status`, `headers` and `error` or
 * `body` are read as those of a vendor's response, so `Retry` repeats what may be repeated.
 *
 * **Example** (An answer piece by piece)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Message, Provider } from "effect-agent"
 * import { FunctionProvider } from "effect-agent/providers"
 *
 * const echo = FunctionProvider.make({
 *   id: "echo",
 *   stream: async function* ({ messages }) {
 *     yield "You wrote: "
 *     for (const message of messages.slice(-1)) yield Message.textOf(message)
 *   }
 * })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any" })
 *   console.log((yield* agent.prompt("Hello")).text) // => You wrote: Hello
 * }).pipe(Effect.scoped, Effect.provideService(Provider.Provider, echo))
 *
 * await Effect.runPromise(program)
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const make = (options: Options): Provider["Service"] => {
  const { id } = options
  const speak =
    "complete" in options
      ? (...question: Parameters<Complete>) => whole(id, options.complete, ...question)
      : (...question: Parameters<Yield>) => pieces(id, options.stream, ...question)
  return Provider.of({
    ...options,
    stream: (request) =>
      Stream.unwrap(
        Effect.map(signalOfScope, (signal) => {
          const writer = new ReplyWriter(
            { provider: id, name: "function" },
            { model: request.model, seed: makeId() }
          )
          return Stream.mapAccumArray(
            speak(request, signal),
            () => writer,
            (_, parts) => {
              for (const part of parts) write(writer, part)
              return [writer, writer.take()] as const
            }
          )
        })
      )
  })
}

/** A signal that the end of the scope aborts. */
const signalOfScope = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => new AbortController()),
    (controller) => Effect.sync(() => controller.abort())
  ),
  ({ signal }) => signal
)

/** A piece of an answer, or its end. */
type Part = Piece | ({ readonly type: "end" } & End)

const whole = (id: string, complete: Complete, ...[request, signal]: Parameters<Complete>) =>
  Effect.try({ try: () => complete(request, signal), catch: failure(id, request) }).pipe(
    Effect.flatMap((answer) =>
      Effect.isEffect(answer) ? answer : Effect.tryPromise({ try: () => answer, catch: failure(id, request) })
    ),
    Effect.map((answer): ReadonlyArray<Part> => {
      const { content, ...end } = typeof answer === "string" ? { content: [answer] } : answer
      return [...content, { ...end, type: "end" }]
    }),
    Stream.fromArrayEffect
  )

const pieces = (id: string, stream: Yield, ...[request, signal]: Parameters<Yield>) =>
  Effect.try({ try: () => stream(request, signal), catch: failure(id, request) }).pipe(
    Effect.map((answer) =>
      Channel.fromAsyncIterableArray<Part, End | void, ProviderError>(answer, failure(id, request)).pipe(
        Channel.concatWith((end) => Channel.succeed(Array.of<Part>({ ...end, type: "end" }))),
        Stream.fromChannel
      )
    ),
    Stream.unwrap
  )

const write = (writer: ReplyWriter, part: Part): void => {
  if (typeof part === "string") return writer.text(part)
  switch (part.type) {
    case "text":
    case "thinking":
      return writer[part.type](part.text)
    case "toolCall": {
      const { id, name, params = {}, rawArguments = JSON.stringify(params) } = part
      return writer.openCall(id, name).end(rawArguments)
    }
    case "hostedTool":
      return writer.hostedTool(part.id, part.name).end(Struct.pick(part, ["params", "result", "isError"]))
    case "source":
      return writer.source(part)
    case "media":
      return writer.media(part)
    case "end": {
      const { stopReason = "stop", usage } = part
      return writer.finish({ stopReason, usage: usage && usageOf(usage) })
    }
  }
}

const failure =
  (provider: string, { model }: ModelRequest) =>
  (thrown: unknown): ProviderError =>
    thrown instanceof ProviderError
      ? thrown
      : new ProviderError({ provider, reason: reasonOf(thrown, model) })

/** Reads the members that errors of clients of vendors have. */
const reasonOf = (thrown: unknown, model: string): Reason => {
  const detail = VendorText.cutOut(FailureText.of(thrown))
  const connection = HttpConnection.kindIn(thrown)
  if (connection !== undefined) return new Transport({ detail, ...connection })
  const { body, error = body, headers, status } = Predicate.isObject(thrown) ? { ...thrown } : {}
  if (typeof status !== "number") return VendorFailure.ofWords(detail)
  const text = typeof error === "string" ? error : (JSON.stringify(error) ?? "")
  const pairs = headers instanceof Headers ? headers : Object.entries(headers ?? {})
  return VendorFailure.ofResponse({
    status,
    headers: Object.fromEntries(pairs),
    body: VendorText.cutOut(text),
    model,
    words: detail
  })
}

/**
 * Makes the layer of a provider from a function.
 *
 * **Example** (A whole answer)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-agent"
 * import { FunctionProvider } from "effect-agent/providers"
 *
 * const fixed = FunctionProvider.layer({ id: "fixed", complete: async ({ model }) => `I am ${model}.` })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any" })
 *   console.log((yield* agent.prompt("Hello")).text) // => I am any.
 * }).pipe(Effect.scoped, Effect.provide(fixed))
 *
 * await Effect.runPromise(program)
 * ```
 *
 * @since 0.2.0
 * @category layers
 */
export const layer = (options: Options): Layer.Layer<Provider> => Layer.succeed(Provider, make(options))
