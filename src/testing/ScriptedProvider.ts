/**
 * A `Provider` that says what a test wrote, and remembers what it was asked. No network, no clock of its own.
 *
 * **Example**
 *
 * ```ts
 * const script = yield* ScriptedProvider.make([
 *   ScriptedProvider.toolCall("add", { a: 2, b: 3 }),
 *   ScriptedProvider.text("5")
 * ])
 * yield* program.pipe(Effect.provide(script.layer))
 * assert.strictEqual((yield* script.requests).length, 2)
 * ```
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

/** What the provider does with one call. */
export interface Turn {
  readonly steps: ReadonlyArray<Step.Step>
  /** The steps go on after the stream was left, as a server does that never learns of it. */
  readonly ignoresAbort: boolean
}

/** One entry for each call, in order. A function answers by what it is asked. */
export type Script = ReadonlyArray<Turn | ((request: ModelRequest) => Turn)>

/** How a script is played. */
export interface Options {
  /** Default `"scripted"`. */
  readonly id?: string
  /** Answers call number `call`, from 1, when the script has no turn for it. Default: dies. */
  readonly exhausted?: (request: ModelRequest, call: number) => Turn
}

/** A script being played. */
export interface ScriptedProvider {
  readonly provider: Provider["Service"]
  readonly layer: Layer.Layer<Provider>
  /** What was asked so far, oldest first, calls that failed included. */
  readonly requests: Effect.Effect<ReadonlyArray<ModelRequest>>
}

/**
 * Plays `script`, one turn for each call, over all who use the provider.
 *
 * A call the script has no turn for dies, unless `exhausted` answers it: a test that asks more often than it says is
 * wrong.
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

/** A script as a layer, for tests that do not look at the requests. Each build plays it from the start. */
export const layer = (script: Script, options?: Options): Layer.Layer<Provider> =>
  Layer.effect(
    Provider,
    Effect.map(make(script, options), ({ provider }) => provider)
  )

/** A turn of exactly these steps: no start and no finish, unless they are among them. */
export const turn = (...steps: ReadonlyArray<Step.Step>): Turn => ({ steps, ignoresAbort: false })

/** A whole answer of one text, in one piece or several. */
export const text = (
  deltas: string | ReadonlyArray<string>,
  options?: { readonly stopReason?: StopReason; readonly usage?: Partial<Usage> }
): Turn => turn(Step.start, Step.text(deltas), Step.finish(options?.stopReason, options?.usage))

/** A whole answer of one tool call. */
export const toolCall = (
  name: string,
  params: Schema.Json,
  options?: { readonly id?: string; readonly usage?: Partial<Usage> }
): Turn => {
  const { usage, ...rest } = options ?? {}
  return turn(Step.start, Step.toolCall(name, params, rest), Step.finish("toolUse", usage))
}

/** A whole answer of several tool calls. */
export const toolCalls = (
  ...calls: ReadonlyArray<{ readonly name: string; readonly params: Schema.Json; readonly id?: string }>
): Turn =>
  turn(
    Step.start,
    ...calls.map(({ name, params, ...rest }) => Step.toolCall(name, params, rest)),
    Step.finish("toolUse")
  )

/** The call fails before anything is said. A bare reason becomes a `ProviderError` of the scripted provider. */
export const fail = (error: ProviderError | Reason): Turn => turn(Step.fail(error))

/** The call dies before anything is said. */
export const die = (defect: unknown): Turn => turn(Step.die(defect))

/** The call waits until the stream is left, and says nothing. */
export const never: Turn = turn(Step.never)

/** The same turn, but leaving the stream does not stop it: its steps go on, unheard. */
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

interface Speaker {
  readonly id: string
  readonly model: string
  readonly nextToolCallId: () => string
}

/** An event, or nothing said but time passed or something done. */
type Moment = Effect.Effect<ModelEvent | undefined, ProviderError>

// One iterator over the whole stream: each pull goes on where the one before it stopped.
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
      const said = yield* Queue.unbounded<ModelEvent, ProviderError | Cause.Done>()
      yield* Effect.forkDetach(Stream.runIntoQueue(played, said))
      return Stream.fromQueue(said)
    })
  )

const momentsOf = ({ steps }: Turn, speaker: Speaker): ReadonlyArray<Moment> => {
  const moments: Array<Moment> = []
  let blocks = 0
  for (const step of steps) {
    switch (step._tag) {
      case "Start":
        moments.push(
          said({ _tag: "Start", provider: speaker.id, model: speaker.model, protocol: "scripted" })
        )
        break
      case "Text":
      case "Thinking":
      case "ToolCall":
        moments.push(...blockOf(step, blocks++, speaker).map(said))
        break
      case "Event":
        moments.push(said(step.event))
        break
      case "Finish":
        moments.push(said(step))
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

// Others run before each event, as they do between two packets.
const said = (event: ModelEvent): Moment => Effect.as(Effect.yieldNow, event)

const blockOf = (
  step: Extract<Step.Step, { readonly _tag: "Text" | "Thinking" | "ToolCall" }>,
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
