/**
 * A `Provider` that plays a script and remembers its requests, without a network and a clock of its own.
 *
 * @since 0.1.0
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { StopReason } from "../Message.ts"
import type { ModelEvent } from "../ModelEvent.ts"
import { type ModelRequest, Provider } from "../Provider.ts"
import { ProviderError, type Reason } from "../ProviderError.ts"
import type { Usage } from "../Usage.ts"
import * as Step from "./Step.ts"

/**
 * The answer to one call.
 *
 * @category models
 * @since 0.1.0
 */
export interface Turn {
  /** The steps of the answer, in order. */
  readonly steps: ReadonlyArray<Step.Step>
  /**
   * Whether the steps continue after the reader leaves the stream, as those of a server do that never learns of it.
   */
  readonly ignoresAbort: boolean
}

/**
 * The answers of a provider: one entry for each call, in order.
 *
 * **Details**
 *
 * A function makes the answer from its request.
 *
 * @category models
 * @since 0.1.0
 */
export type Script = ReadonlyArray<Turn | ((request: ModelRequest) => Turn)>

/**
 * The options of a scripted provider.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** The id of the provider. Default `"scripted"`. */
  readonly id?: string
  /** Answers call number `call`, from 1, when the script has no entry for it. Default: the call dies. */
  readonly exhausted?: (request: ModelRequest, call: number) => Turn
}

/**
 * A scripted provider and its requests.
 *
 * @category models
 * @since 0.1.0
 */
export interface ScriptedProvider {
  /** The provider as a value. */
  readonly provider: Provider["Service"]
  /** The provider as a layer. */
  readonly layer: Layer.Layer<Provider>
  /** The requests so far, oldest first, those of failed calls included. */
  readonly requests: Effect.Effect<ReadonlyArray<ModelRequest>>
}

/**
 * Makes a provider that answers each call with the next entry of its script.
 *
 * **Details**
 *
 * A call beyond the script dies, unless `exhausted` answers it: a test that makes more calls than it expects has a fault.
 *
 * **Example** (Testing an agent with a tool)
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Agent, Message, Tool } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const add = Tool.make({
 *   name: "add",
 *   description: "Adds two numbers.",
 *   params: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
 *   execute: ({ a, b }) => Effect.succeed(a + b)
 * })
 *
 * const program = Effect.gen(function* () {
 *   const script = yield* ScriptedProvider.make([
 *     ScriptedProvider.toolCall("add", { a: 2, b: 3 }),
 *     ScriptedProvider.text("5")
 *   ])
 *   const agent = yield* Agent.make({ model: "any", tools: [add] }).pipe(Effect.provide(script.layer))
 *   const { newMessages } = yield* agent.prompt("What is 2 + 3?")
 *   console.log(newMessages.map(Message.textOf)) // => [ 'What is 2 + 3?', '', '5', '5' ]
 *   console.log((yield* script.requests).length) // => 2
 * }).pipe(Effect.scoped)
 *
 * await Effect.runPromise(program)
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (script: Script, options?: Options): Effect.Effect<ScriptedProvider> =>
  Effect.sync(() => {
    const id = options?.id ?? "scripted"
    const requests: Array<ModelRequest> = []
    let toolCalls = 0
    const nextToolCallId = () => `call-${++toolCalls}`

    const provider = Provider.of({
      id,
      stream: (request) =>
        Stream.suspend(() => {
          const call = requests.push(request)
          const entry = script[call - 1] ?? options?.exhausted ?? exhausted(script.length)
          const turn = typeof entry === "function" ? entry(request, call) : entry
          const played = play(turn, { id, model: request.model, nextToolCallId })
          return turn.ignoresAbort ? detached(played) : played
        })
    })
    return {
      provider,
      layer: Layer.succeed(Provider, provider),
      requests: Effect.sync(() => requests.slice())
    }
  })

/**
 * Provides a scripted provider, for tests that do not look at its requests.
 *
 * **Details**
 *
 * Each build of the layer plays the script from its start.
 *
 * **Example** (Answering twice)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const provider = ScriptedProvider.layer([
 *   ScriptedProvider.text("Hello"),
 *   ({ messages }) => ScriptedProvider.text(`You have sent ${messages.length} messages.`)
 * ])
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any" })
 *   yield* agent.prompt("Hi")
 *   const { text } = yield* agent.prompt("How many messages are there?")
 *   return text
 * }).pipe(Effect.provide(provider), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => You have sent 3 messages.
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (script: Script, options?: Options): Layer.Layer<Provider> =>
  Layer.effect(
    Provider,
    Effect.map(make(script, options), ({ provider }) => provider)
  )

/**
 * Makes an answer of exactly these steps.
 *
 * **Details**
 *
 * It adds neither a start nor a finish.
 *
 * **Example** (Cutting an answer)
 *
 * ```ts
 * import { ScriptedProvider, Step } from "effect-agent/testing"
 *
 * const cut = ScriptedProvider.turn(Step.start, Step.text("It is"), Step.eof)
 *
 * console.log(cut.steps.length) // => 3
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const turn = (...steps: ReadonlyArray<Step.Step>): Turn => ({ steps, ignoresAbort: false })

/**
 * Makes a complete answer of one text, which arrives in one piece or several.
 *
 * **Details**
 *
 * `stopReason` is `"stop"` by default. Without `usage` the provider reports no tokens.
 *
 * **Example** (Answering in two pieces)
 *
 * ```ts
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const answer = ScriptedProvider.text(["Hel", "lo"], { usage: { input: 10, output: 2 } })
 *
 * console.log(answer.steps.map(({ _tag }) => _tag)) // => [ 'Start', 'Text', 'Finish' ]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const text = (
  deltas: string | ReadonlyArray<string>,
  options?: { readonly stopReason?: StopReason; readonly usage?: Partial<Usage> }
): Turn => turn(Step.start, Step.text(deltas), Step.finish(options?.stopReason, options?.usage))

/**
 * Makes a complete answer of one tool call.
 *
 * **Example** (Calling a tool)
 *
 * ```ts
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const answer = ScriptedProvider.toolCall("weather", { city: "Oslo" })
 *
 * console.log(answer.steps.map(({ _tag }) => _tag)) // => [ 'Start', 'ToolCall', 'Finish' ]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const toolCall = (
  name: string,
  params: Schema.Json,
  options?: { readonly id?: string; readonly usage?: Partial<Usage> }
): Turn => {
  const { usage, ...rest } = options ?? {}
  return turn(Step.start, Step.toolCall(name, params, rest), Step.finish("toolUse", usage))
}

/**
 * Makes a complete answer of several tool calls.
 *
 * **Example** (Calling two tools)
 *
 * ```ts
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const answer = ScriptedProvider.toolCalls(
 *   { name: "weather", params: { city: "Oslo" } },
 *   { name: "weather", params: { city: "Bergen" } }
 * )
 *
 * console.log(answer.steps.map(({ _tag }) => _tag)) // => [ 'Start', 'ToolCall', 'ToolCall', 'Finish' ]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const toolCalls = (
  ...calls: ReadonlyArray<{ readonly name: string; readonly params: Schema.Json; readonly id?: string }>
): Turn =>
  turn(
    Step.start,
    ...calls.map(({ name, params, ...rest }) => Step.toolCall(name, params, rest)),
    Step.finish("toolUse")
  )

/**
 * Makes a call that fails before the first event.
 *
 * **Details**
 *
 * A reason becomes a `ProviderError` of the scripted provider.
 *
 * **Example** (Failing once)
 *
 * ```ts
 * import { ProviderError } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const script = [
 *   ScriptedProvider.fail(new ProviderError.Overloaded({ detail: "at capacity" })),
 *   ScriptedProvider.text("Yes.")
 * ]
 *
 * console.log(script.length) // => 2
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const fail = (error: ProviderError | Reason): Turn => turn(Step.fail(error))

/**
 * Makes a call that dies before the first event.
 *
 * **Example** (Dying once)
 *
 * ```ts
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const script = [ScriptedProvider.die(new Error("a bug"))]
 *
 * console.log(script.length) // => 1
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const die = (defect: unknown): Turn => turn(Step.die(defect))

/**
 * A call that sends no event until its reader leaves.
 *
 * @category constants
 * @since 0.1.0
 */
export const never: Turn = turn(Step.never)

/**
 * Makes a turn whose steps continue when its reader leaves the stream.
 *
 * **Example** (Ignoring a cancel)
 *
 * ```ts
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const deaf = ScriptedProvider.ignoringAbort(ScriptedProvider.never)
 *
 * console.log(deaf.ignoresAbort) // => true
 * ```
 *
 * @category transforming
 * @since 0.1.0
 */
export const ignoringAbort = (turn: Turn): Turn => ({ ...turn, ignoresAbort: true })

const exhausted =
  (turns: number) =>
  (request: ModelRequest, call: number): Turn =>
    die(
      new Error(
        `The script has ${turns} ${turns === 1 ? "turn" : "turns"}, but the provider was called ${call === 1 ? "once" : `${call} times`}. ` +
          `Add a turn for each call, or give \`exhausted\`; ` +
          `the last request has ${request.messages.length} messages, the newest: ` +
          JSON.stringify(request.messages.at(-1))
      )
    )

/** The provider of an answer. */
interface Speaker {
  readonly id: string
  readonly model: string
  readonly nextToolCallId: () => string
}

/** The next event, or `undefined` where a step has none. */
type Moment = Effect.Effect<ModelEvent | undefined, ProviderError>

// One iterator over the whole stream: each pull continues where the one before it stopped.
const play = (turn: Turn, speaker: Speaker): Stream.Stream<ModelEvent, ProviderError> =>
  Stream.unfold(momentsOf(turn, speaker).values(), (left) =>
    Effect.gen(function* () {
      for (const moment of left) {
        const event = yield* moment
        if (event !== undefined) return [event, left] as const
      }
    })
  )

const detached = (
  played: Stream.Stream<ModelEvent, ProviderError>
): Stream.Stream<ModelEvent, ProviderError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const events = yield* Queue.unbounded<ModelEvent, ProviderError | Cause.Done>()
      yield* Effect.forkDetach(Stream.runIntoQueue(played, events))
      return Stream.fromQueue(events)
    })
  )

const momentsOf = ({ steps }: Turn, speaker: Speaker): ReadonlyArray<Moment> => {
  const moments: Array<Moment> = []
  let blocks = 0
  for (const step of steps) {
    switch (step._tag) {
      case "Start":
        moments.push(
          emitted({ _tag: "Start", provider: speaker.id, model: speaker.model, protocol: "scripted" })
        )
        break
      case "Text":
      case "Thinking":
      case "ToolCall":
        moments.push(...blockOf(step, blocks++, speaker).map(emitted))
        break
      case "Source":
      case "Media":
      case "HostedTool":
        moments.push(...wholeOf(step, blocks++).map(emitted))
        break
      case "Event":
        moments.push(emitted(step.event))
        break
      case "Finish":
        moments.push(emitted(step))
        break
      case "Fail":
        moments.push(Effect.fail(errorOf(step.error, speaker)))
        break
      case "Run":
        moments.push(Effect.as(step.effect, undefined))
        break
      case "Eof":
        return moments
    }
  }
  return moments
}

// Other fibers run before each event, as they do between two packets.
const emitted = (event: ModelEvent): Moment => Effect.as(Effect.yieldNow, event)

type Block<Tag extends Step.Step["_tag"]> = Extract<Step.Step, { readonly _tag: Tag }>

const wholeOf = (
  step: Block<"Source" | "Media" | "HostedTool">,
  contentIndex: number
): ReadonlyArray<ModelEvent> => {
  switch (step._tag) {
    case "Source":
      return [{ _tag: "Source", contentIndex, source: step.source }]
    case "Media":
      return [{ _tag: "Media", contentIndex, media: step.media }]
    case "HostedTool": {
      const { type: _, id, name, ...rest } = step.hostedTool
      return [
        { _tag: "HostedToolStart", contentIndex, id, name },
        { _tag: "HostedToolEnd", contentIndex, ...rest }
      ]
    }
  }
}

const blockOf = (
  step: Block<"Text" | "Thinking" | "ToolCall">,
  contentIndex: number,
  { nextToolCallId }: Speaker
): ReadonlyArray<ModelEvent> => {
  const opaque = step.opaque === undefined ? {} : { opaque: step.opaque }
  switch (step._tag) {
    case "Text":
      return [
        { _tag: "TextStart", contentIndex },
        ...step.deltas.map((delta) => ({ _tag: "TextDelta", contentIndex, delta }) as const),
        { _tag: "TextEnd", contentIndex, ...opaque }
      ]
    case "Thinking":
      return [
        { _tag: "ThinkingStart", contentIndex },
        ...step.deltas.map((delta) => ({ _tag: "ThinkingDelta", contentIndex, delta }) as const),
        {
          _tag: "ThinkingEnd",
          contentIndex,
          ...opaque,
          ...(step.redacted === undefined ? {} : { redacted: step.redacted })
        }
      ]
    case "ToolCall":
      return [
        { _tag: "ToolCallStart", contentIndex, id: step.id ?? nextToolCallId(), name: step.name },
        ...step.deltas.map((delta) => ({ _tag: "ToolCallDelta", contentIndex, delta }) as const),
        { _tag: "ToolCallEnd", contentIndex, rawArguments: step.deltas.join(""), ...opaque }
      ]
  }
}

const errorOf = (error: ProviderError | Reason, { id }: Speaker): ProviderError =>
  error._tag === "ProviderError" ? error : new ProviderError({ provider: id, reason: error })
