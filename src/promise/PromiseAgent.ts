/**
 * An agent for code without Effect: promises, `for await`, an `AbortSignal`.
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

/** Options of one run: they go over those of the agent. */
export type PromptOptions = Partial<RunOptions> & {
  /** Cancels the run. The promise, or the iteration, then fails with the signal's reason, once the run has ended. */
  readonly signal?: AbortSignal
}

/** An agent by promises: one conversation, one run at a time. */
export interface PromiseAgent {
  /**
   * Runs until the answer is there. Rejects with `RunFailed` (its `reason` says why, its `result` what was done), with
   * `AgentBusy` while another run goes on, an `Error` after `close`, and whatever `layer` or `provider` fails with.
   */
  readonly prompt: (input: Message.Input, options?: PromptOptions) => Promise<RunResult>
  /** The same run as its events: each iteration is one run. `break` cancels it, and waits for its end. */
  readonly stream: (input: Message.Input, options?: PromptOptions) => AsyncIterable<AgentEvent>
  /**
   * `stream` for a server: a failure is an event, not an exception. `RunError` and `RunEnd` end a failed run, and stand for
   * one that could not begin. Only `signal` makes the iteration fail, with its reason.
   */
  readonly streamEvents: (input: Message.Input, options?: PromptOptions) => AsyncIterable<AgentEvent>
  /** Put in after the current turn; kept for the next run when idle. */
  readonly steer: (message: Message.Input) => Promise<void>
  /** Put in when the run would end; kept for the next run when idle. */
  readonly followUp: (message: Message.Input) => Promise<void>
  /** Ends the run that goes on, balanced: its promise resolves with status "cancelled". Nothing when idle. */
  readonly cancel: (reason?: string) => Promise<void>
  /** Cancels what goes on and releases all that was built. The agent is of no use then. */
  readonly close: () => Promise<void>
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

type Tools = ReadonlyArray<Tool.Any>
type Hooks = ReadonlyArray<Hook.Hook>

/** What the caller's layer has to have. HTTP is there: `fetch`, unless the layer brings another client. */
type Needs<RP, T extends Tools, H extends Hooks> = Exclude<
  RP | Tool.Requirements<T[number]> | Hook.Requirements<H[number]>,
  HttpClient.HttpClient | Provider | Scope
>

type Supplies<R> = [R] extends [never]
  ? { readonly layer?: Layer.Layer<never, unknown> }
  : { readonly layer: Layer.Layer<R, unknown> }

/** Options of an agent, with who answers. `layer` is there to be given, or must be, by what provider, tools and hooks need. */
export type Options<RP, T extends Tools, H extends Hooks> = Agent.AgentOptions<T, H> & {
  /** Who answers, such as `OpenAi.layer({ apiKey })`; or a provider as it is. */
  readonly provider: Layer.Layer<Provider, unknown, RP> | Provider["Service"]
} & Supplies<Needs<RP, T, H>>

/**
 * Makes an agent. Nothing is built before its first use. `layer` has what provider, tools and hooks need, if they need
 * anything. Throws `InvalidInput` for options that mean nothing.
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
 * await using agent = createAgent({
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
 * ```
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

/** What the types do not guard in plain JavaScript. */
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

/** Only the type: a text may be a key. */
const shown = (value: unknown): string => {
  if (value === null) return "null"
  return Predicate.isObjectOrArray(value) ? "an object" : `a ${typeof value}`
}

/** Stands for whatever the caller's layer has: the signature above says that it is enough. */
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
        (deliver) =>
          isClosed
            ? Effect.runFork(Effect.die(closedError()))
            : runtime.runFork(
                Held.use((agent) => Stream.runForEachArray(agent.stream(input, options), deliver))
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
        (deliver) => Effect.runFork(Stream.runForEachArray(eventsOnly(Stream.unwrap(events)), deliver)),
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

/** Frames of the stack above a call of the agent. */
type Called = ReadonlyArray<string>

/** Nothing is begun for a signal that has been given already. */
const aborted = (signal: AbortSignal | undefined): Promise<never> | undefined =>
  signal?.aborted === true ? Promise.reject(signal.reason) : undefined

/** Nothing but `close` and a signal interrupts a call. */
const closedError = (): Error =>
  new Error(
    "The agent is closed. Await each run before you call close(), and make a new agent with createAgent to go on."
  )

/** Failures with the call in their stack; a run that was aborted with the reason it was aborted for. */
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
