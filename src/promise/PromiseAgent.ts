/**
 * An agent for code without Effect: promises, `for await` and `AbortSignal`.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { Scope } from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Agent from "../Agent.ts"
import type { AgentEvent } from "../AgentEvent.ts"
import * as AgentOptions from "../internal/agentOptions.ts"
import { eventsOnly } from "../internal/eventsOnly.ts"
import type * as Hook from "../Hook.ts"
import * as Inspection from "../internal/inspection.ts"
import type * as Message from "../Message.ts"
import { Provider } from "../Provider.ts"
import type { RunOptions } from "../RunOptions.ts"
import type { RunResult } from "../RunResult.ts"
import type * as Tool from "../Tool.ts"
import * as Events from "./Events.ts"

/**
 * The options of one run.
 *
 * **Details**
 *
 * They replace the options of the agent for this run. `signal` cancels the run: the promise or the iteration then fails with the
 * reason of the signal, after the run has ended.
 *
 * @category options
 * @since 0.1.0
 */
export type PromptOptions = Partial<RunOptions> & {
  /** Cancels the run. Default none. */
  readonly signal?: AbortSignal
}

/**
 * An agent with promises: one conversation, and one run at a time.
 *
 * @category models
 * @since 0.1.0
 */
export interface PromiseAgent {
  /**
   * Starts a run and resolves with its result.
   *
   * Rejects with `RunFailed` if the run fails, with `AgentBusy` during another run, with an `Error` after `close`, and with the
   * failures of `layer` and `provider`.
   */
  readonly prompt: (input: Message.Input, options?: PromptOptions) => Promise<RunResult>
  /** Returns the events of a run. Each iteration starts a run; `break` cancels it and waits for its end. */
  readonly stream: (input: Message.Input, options?: PromptOptions) => AsyncIterable<AgentEvent>
  /**
   * Returns the events of a run for a server: a failure is an event, not an exception.
   *
   * A failed run ends with `RunError` and `RunEnd`, and so does one that could not begin. Only `signal` makes the iteration fail, with
   * its reason.
   */
  readonly streamEvents: (input: Message.Input, options?: PromptOptions) => AsyncIterable<AgentEvent>
  /** Queues a message for the end of the current turn, or for the next run if there is none. */
  readonly steer: (message: Message.Input) => Promise<void>
  /** Queues a message for the end of the run, or for the next run if there is none. */
  readonly followUp: (message: Message.Input) => Promise<void>
  /** Ends the current run: its promise resolves with status `"cancelled"`. It does nothing if there is no run. */
  readonly cancel: (reason?: string) => Promise<void>
  /** Cancels the current run and releases the agent, which is of no use after that. */
  readonly close: () => Promise<void>
  /** Closes the agent, for `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

type Tools = ReadonlyArray<Tool.Any>
type Hooks = ReadonlyArray<Hook.Hook>

/**
 * The services that the caller's layer must have. An HTTP client is there: `fetch`, unless the layer has another client.
 */
type Needs<RP, T extends Tools, H extends Hooks> = Exclude<
  RP | Tool.Requirements<T[number]> | Hook.Requirements<H[number]>,
  HttpClient.HttpClient | Provider | Scope
>

type Supplies<R> = [R] extends [never]
  ? { readonly layer?: Layer.Layer<never, unknown> }
  : { readonly layer: Layer.Layer<R, unknown> }

/**
 * The options of an agent, with its provider.
 *
 * **Details**
 *
 * `provider` is a layer such as `OpenAi.layer({ apiKey })`, or a provider. `layer` has the services that the provider, the tools and
 * the hooks require. The type requires `layer` where they require any.
 *
 * @category options
 * @since 0.1.0
 */
export type Options<RP, T extends Tools, H extends Hooks> = Agent.AgentOptions<T, H> & {
  /** The provider, as a layer or as a value. */
  readonly provider: Layer.Layer<Provider, unknown, RP> | Provider["Service"]
} & Supplies<Needs<RP, T, H>>

/**
 * Makes an agent with promises.
 *
 * **Details**
 *
 * The agent builds its provider and layers at its first use. `createAgent` throws `InvalidInput` for invalid options.
 *
 * **Example** (Printing an answer as it comes)
 *
 * ```ts
 * import { AgentEvent, Tool } from "effect-agent"
 * import { createAgent } from "effect-agent/promise"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const now = Tool.fromPromise({
 *   name: "now",
 *   description: "The time in Oslo",
 *   execute: async () => "12:00"
 * })
 *
 * const agent = createAgent({
 *   provider: ScriptedProvider.layer([
 *     ScriptedProvider.toolCall("now", {}),
 *     ScriptedProvider.text("It is noon.")
 *   ]),
 *   model: "any",
 *   tools: [now]
 * })
 *
 * for await (const event of agent.stream("What time is it?")) {
 *   if (AgentEvent.isTextDelta(event)) console.log(event.delta.delta) // => It is noon.
 * }
 * await agent.close()
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export function createAgent<
  RP = never,
  const T extends Tools = readonly [],
  const H extends Hooks = readonly []
>(options: Options<RP, T, H>): PromiseAgent
export function createAgent(given: Opaque): PromiseAgent {
  const fault = faultOf(given)
  if (fault !== undefined) {
    Inspection.calledFrom(fault, Inspection.caller())
    throw fault
  }
  const { layer, provider, ...options } = given
  const supplied = Layer.merge(FetchHttpClient.layer, layer ?? Layer.succeed(Supplied, {}))
  const providing = "stream" in provider ? Layer.succeed(Provider, provider) : provider
  const runtime = ManagedRuntime.make(
    Layer.effect(Held, Agent.make(options)).pipe(Layer.provide(providing), Layer.provide(supplied))
  )
  return facade(runtime)
}

/** Checks options that plain JavaScript may get wrong. */
const faultOf = (given: Opaque): Agent.InvalidInput | undefined => {
  const { layer, provider, ...options } = given ?? {}
  const faults = [...faultOfProvider(provider), ...faultOfLayer(layer)]
  if (faults.length > 0) return new Agent.InvalidInput({ subject: "options", faults })
  return Option.getOrUndefined(Result.getFailure(AgentOptions.read(options, ["provider", "layer"])))
}

const advice = "such as OpenAi.layerConfig() of effect-agent/providers"

const faultOfProvider = (provider: unknown): ReadonlyArray<string> => {
  if (provider === undefined) return [`provider is missing. Give one, ${advice}`]
  return Layer.isLayer(provider) || isProvider(provider)
    ? []
    : [`provider: expected a layer or a provider, ${advice}, got ${shown(provider)}`]
}

const isProvider = (provider: unknown): boolean =>
  Predicate.hasProperty(provider, "stream") && typeof provider.stream === "function"

const faultOfLayer = (layer: unknown): ReadonlyArray<string> =>
  layer === undefined || Layer.isLayer(layer) ? [] : [`layer: expected a layer, got ${shown(layer)}`]

/** Names the type of a value, never the value: a text may be an API key. */
const shown = (value: unknown): string => {
  if (value === null) return "null"
  return Predicate.isObjectOrArray(value) ? "an object" : `a ${typeof value}`
}

/** The services of the caller's layer: the signature of `createAgent` checks that they suffice. */
class Supplied extends Context.Service<Supplied, {}>()("effect-agent/promise/Supplied") {}

type Opaque = Agent.AgentOptions<
  ReadonlyArray<Tool.Tool<string, any, any, any, Supplied>>,
  ReadonlyArray<Hook.Hook<unknown, Supplied>>
> & {
  readonly provider: Layer.Layer<Provider, unknown, HttpClient.HttpClient | Supplied> | Provider["Service"]
  readonly layer?: Layer.Layer<Supplied, unknown>
}

class Held extends Context.Service<Held, Agent.Agent>()("effect-agent/promise/Agent") {}

type Runtime = ManagedRuntime.ManagedRuntime<Held, unknown>

const facade = (runtime: Runtime): PromiseAgent => {
  let isClosed = false
  const close = (): Promise<void> => {
    isClosed = true
    return runtime.dispose()
  }
  const ask = <A, E>(effect: Effect.Effect<A, E, Held>, called: Called, signal?: AbortSignal): Promise<A> => {
    const exit = isClosed
      ? Promise.resolve(Exit.interrupt())
      : runtime.runPromiseExit(effect, signal === undefined ? undefined : { signal })
    return settled(exit, called, signal)
  }
  return {
    prompt: (input, { signal, ...options } = {}) =>
      aborted(signal) ??
      ask(
        Held.use((agent) => agent.prompt(input, options)),
        Inspection.caller(),
        signal
      ),
    stream: (input, { signal, ...options } = {}) => {
      const called = Inspection.caller()
      return Events.iterable<AgentEvent>(
        (deliver, stop) =>
          isClosed
            ? Promise.resolve(Exit.die(closedError()))
            : runtime.runPromiseExit(
                Held.use((agent) => Stream.runForEachArray(agent.stream(input, options), deliver)),
                { signal: stop }
              ),
        signal,
        (error) => Inspection.calledFrom(error, called)
      )
    },
    streamEvents: (input, { signal, ...options } = {}) => {
      const events = Effect.map(runtime.contextEffect, (built) =>
        Context.get(built, Held).stream(input, options)
      )
      return Events.iterable<AgentEvent>(
        (deliver, stop) =>
          Effect.runPromiseExit(Stream.runForEachArray(eventsOnly(Stream.unwrap(events)), deliver), {
            signal: stop
          }),
        signal,
        (error) => error
      )
    },
    steer: (message) =>
      ask(
        Held.use((agent) => agent.steer(message)),
        Inspection.caller()
      ),
    followUp: (message) =>
      ask(
        Held.use((agent) => agent.followUp(message)),
        Inspection.caller()
      ),
    cancel: (reason) =>
      ask(
        Held.use((agent) => agent.cancel(reason)),
        Inspection.caller()
      ),
    close,
    [Symbol.asyncDispose]: close
  }
}

/** The frames of the stack above a call of the agent. */
type Called = ReadonlyArray<string>

/** Rejects for a signal that is aborted already, before a run starts. */
const aborted = (signal: AbortSignal | undefined): Promise<never> | undefined =>
  signal?.aborted === true ? Promise.reject(signal.reason) : undefined

/** The failure of an interrupted call: only `close` and a signal interrupt one. */
const closedError = (): Error =>
  new Error(
    "The agent is closed. Await each run before you call close(), and make a new agent with createAgent."
  )

/** Adds the call to the stack of a failure. A run that the signal cancelled rejects with the reason of the signal. */
const settled = async <A>(
  running: Promise<Exit.Exit<A, unknown>>,
  called: Called,
  signal: AbortSignal | undefined
): Promise<A> => {
  const exit = await running
  if (Exit.isSuccess(exit)) return exit.value
  const isLeft = Cause.hasInterruptsOnly(exit.cause)
  const wasAborted = isLeft ? aborted(signal) : undefined
  const error = isLeft ? closedError() : Cause.squash(exit.cause)
  Inspection.calledFrom(error, called)
  return wasAborted ?? Promise.reject(error)
}
