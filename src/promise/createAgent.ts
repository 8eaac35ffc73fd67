/**
 * Makes agents for code without Effect.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type { Scope } from "effect/Scope"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import type * as HttpClient from "effect/http/HttpClient"
import * as Agent from "../Agent.ts"
import { textOnly, type AgentEvent } from "../AgentEvent.ts"
import type * as Approval from "../Approval.ts"
import type * as Hook from "../Hook.ts"
import type { Registered } from "../HookManager.ts"
import * as Prices from "../Prices.ts"
import { Provider } from "../Provider.ts"
import { ProviderError, Unauthenticated } from "../ProviderError.ts"
import type * as Tool from "../Tool.ts"
import * as ToolRegistry from "../ToolRegistry.ts"
import * as Credentials from "../http/Credentials.ts"
import * as State from "../internal/agentState.ts"
import * as FailureText from "../internal/failureText.ts"
import { InvalidInput } from "../internal/invalidInput.ts"
import * as AgentOptions from "../internal/options.ts"
import * as HookFunction from "./HookFunctions.ts"
import type { HookFunctions, HookName } from "./HookFunctions.ts"
import * as PromiseAgent from "./PromiseAgent.ts"
import type { ListedHook, StartedPromiseRun, ContinueOptions } from "./PromiseAgent.ts"
import { Caller, Held, calledFrom, stackOfCaller } from "./internal/Caller.ts"
import type * as Message from "../Message.ts"
import type { RunResult } from "../Run.ts"

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
 * `provider` is a layer such as `OpenAi.layer({ apiKey: "sk-…" })`, or a provider. `layer` has the services that the provider, the
 * tools and the hooks require. The type requires `layer` where they require any. With `output` each result has an output of type `A`.
 *
 * @category options
 * @since 0.1.0
 */
export type Options<RP, T extends Tools, H extends Hooks, A = never> = Omit<
  Agent.AgentOptions<readonly [], readonly []>,
  "tools" | "hooks"
> &
  Agent.OutputOptions<A> & {
    /** The tools of the agent. Default none. */
    readonly tools?: T
    /** The hooks of the agent, as a list or as functions by the name of their point. Default none. */
    readonly hooks?: readonly [...H] | HookFunctions
    /** The provider, as a layer or as a value. */
    readonly provider: Layer.Layer<Provider, unknown, RP> | Provider["Service"]
    /**
     * Returns the key for a vendor by the id of the provider, at each request. `undefined` takes the key that the provider was made with.
     * Default: that key.
     */
    readonly apiKey?: ApiKey
  } & Supplies<Needs<RP, T, H>>

/**
 * The source of the API keys of a promise agent.
 *
 * @category options
 * @since 0.2.0
 */
export type ApiKey = (provider: string) => string | undefined | Promise<string | undefined>

/**
 * Makes an agent with promises.
 *
 * **Details**
 *
 * The agent builds its provider and layers at its first use. `createAgent` throws `InvalidInput` for invalid options.
 *
 * Where the package `@pydantic/genai-prices` is installed, the run computes the cost of answers from its list prices, unless `layer` has
 * the service `Prices`. In a bundle, give `GenAiPrices.layer()` of `effect-agent/prices`.
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
 * **Example** (Guarding a tool with an async function)
 *
 * ```ts
 * import { Message, Tool } from "effect-agent"
 * import { createAgent } from "effect-agent/promise"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const remove = Tool.fromPromise({
 *   name: "remove",
 *   description: "Removes a file",
 *   execute: async () => "gone"
 * })
 *
 * const agent = createAgent({
 *   provider: ScriptedProvider.layer([
 *     ScriptedProvider.toolCall("remove", {}),
 *     ScriptedProvider.text("I may not.")
 *   ]),
 *   model: "any",
 *   tools: [remove],
 *   hooks: {
 *     approveTool: async ({ call }) => ({ approved: call.name !== "remove", reason: "not today" })
 *   }
 * })
 *
 * agent.on("ToolExecutionEnd", ({ outcome, toolName }) => console.log(toolName, outcome))
 * const { message } = await agent.prompt("Remove it.")
 * console.log(message && Message.textOf(message))
 * await agent.close()
 * // => remove rejected
 * // => I may not.
 * ```
 *
 * **Example** (Decoding the output with zod)
 *
 * ```ts
 * import { createAgent } from "effect-agent/promise"
 * import { ScriptedProvider } from "effect-agent/testing"
 * import * as z from "zod"
 *
 * const agent = createAgent({
 *   provider: ScriptedProvider.layer([ScriptedProvider.toolCall("final_answer", { grade: 2 })]),
 *   model: "any",
 *   output: z.object({ grade: z.int() })
 * })
 *
 * const { output } = await agent.prompt("Review my essay.")
 * console.log(output.grade) // => 2
 * await agent.close()
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export function createAgent<
  RP = never,
  const T extends Tools = readonly [],
  const H extends Hooks = readonly [],
  A = never
>(options: Options<RP, T, H, A>): PromiseAgent.PromiseAgent<Agent.OutputOf<A>>
export function createAgent(given: Opaque): PromiseAgent.PromiseAgent {
  const read = checked(given)
  if (Result.isFailure(read)) {
    calledFrom(read.failure, stackOfCaller())
    throw read.failure
  }
  const { compaction, messages, runOptions } = read.success
  const { apiKey, hooks, layer, provider, ...options } = given
  const supplied = Layer.mergeAll(
    FetchHttpClient.layer,
    listPrices,
    layer ?? Layer.succeed(Supplied, {}),
    apiKey === undefined ? Layer.empty : Credentials.layer(keyOf(apiKey))
  )
  const providing = "stream" in provider ? Layer.succeed(Provider, provider) : provider
  const listeners = new PromiseAgent.Listeners()
  const made = Effect.tap(Agent.make({ ...options, hooks: listOf(hooks) }), listeners.attach)
  const caller = new Caller(Layer.effect(Held, made).pipe(Layer.provide(providing), Layer.provide(supplied)))
  return make(caller, listeners, State.initial(messages, runOptions, compaction))
}

/** A function for keys as the source of keys. One that fails fails the request. */
const keyOf =
  (apiKey: ApiKey): Credentials.Service["apiKey"] =>
  (provider) =>
    Effect.tryPromise({
      try: async () => apiKey(provider),
      catch: (thrown) =>
        new ProviderError({
          provider,
          reason: new Unauthenticated({ detail: `apiKey failed: ${FailureText.of(thrown)}` })
        })
    }).pipe(Effect.map((key) => Option.map(Option.fromUndefinedOr(key), (key) => Redacted.make(key))))

/** The hooks as a list. */
const listOf = (hooks: Opaque["hooks"] = []): OpaqueHooks =>
  isList(hooks) ? hooks : HookFunction.makeAll(hooks)

const isList = (hooks: OpaqueHooks | HookFunctions): hooks is OpaqueHooks => Array.isArray(hooks)

/** Checks options that plain JavaScript may get wrong. */
const checked = (given: Opaque) => {
  const { apiKey, hooks, layer, provider, ...options } = given ?? {}
  const faults = [
    ...faultOfProvider(provider),
    ...faultOfLayer(layer),
    ...faultOfKey(apiKey),
    ...faultsOfHooks(hooks)
  ]
  if (faults.length > 0) return Result.fail(new Agent.InvalidInput({ subject: "options", faults }))
  return AgentOptions.readAgent({ ...options, hooks: listOf(hooks) }, ["provider", "layer", "apiKey"])
}

/** For one key, which does not change. */
const takesKey = "The provider takes a key: OpenAi.layer({ apiKey })"

const faultOfKey = (apiKey: unknown): ReadonlyArray<string> =>
  apiKey === undefined || typeof apiKey === "function"
    ? []
    : [`apiKey: expected a function from the id of a provider to its key, got ${shown(apiKey)}. ${takesKey}`]

const faultsOfHooks = (hooks: unknown): ReadonlyArray<string> => {
  if (hooks === undefined || Array.isArray(hooks)) return []
  return Predicate.isObject(hooks)
    ? HookFunction.faultsOf(hooks)
    : [`hooks: expected a list of hooks, or functions by the name of their point, got ${shown(hooks)}`]
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

type OpaqueHooks = ReadonlyArray<Hook.Hook<unknown, Supplied>>

type Opaque = Omit<
  Agent.AgentOptions<ReadonlyArray<Tool.Tool<string, any, any, any, Supplied>>, OpaqueHooks>,
  "hooks"
> &
  Agent.OutputOptions<unknown> & {
    readonly hooks?: OpaqueHooks | HookFunctions
    readonly apiKey?: ApiKey
    readonly provider: Layer.Layer<Provider, unknown, HttpClient.HttpClient | Supplied> | Provider["Service"]
    readonly layer?: Layer.Layer<Supplied, unknown>
  }

// ───────────────────────── Prices

interface Entry {
  readonly GenAiPrices: { readonly make: () => Prices.Service }
}

/** The entry point is a parameter, so that bundlers leave the optional package out. */
const load = async (entry: string): Promise<Prices.Service | undefined> => {
  try {
    const loaded: Entry = await import(/* webpackIgnore: true */ /* @vite-ignore */ entry)
    return loaded.GenAiPrices.make()
  } catch {
    return undefined
  }
}

let loading: Promise<Prices.Service | undefined> | undefined

const service: Prices.Service = {
  find: (model) =>
    Effect.flatMap(
      Effect.promise(() => (loading ??= load("effect-agent/prices"))),
      (prices) => prices?.find(model) ?? Effect.undefined
    )
}

const listPrices: Layer.Layer<never> = Layer.succeed(Prices.Prices, service)

// ───────────────────────── The methods

/** The functions do not use `this`, so that an application may take an agent apart. */
const make = (
  caller: Caller,
  listeners: PromiseAgent.Listeners,
  initial: Agent.AgentState
): PromiseAgent.PromiseAgent => {
  const close = () => caller.close()
  return {
    ...runs(caller),
    ...control(caller),
    ...queues(caller),
    ...requests(caller),
    ...watching(caller, listeners),
    state: state(caller, listeners, initial),
    tools: tools(caller),
    hooks: hooks(caller),
    disabledHooks: () => caller.ask((agent) => Effect.map(agent.disabledHooks, (all) => all.map(listed))),
    close,
    [Symbol.asyncDispose]: close
  }
}

const runs = (
  caller: Caller
): Pick<
  PromiseAgent.PromiseAgent,
  | "prompt"
  | "stream"
  | "streamText"
  | "streamEvents"
  | "continue"
  | "continueStream"
  | "start"
  | "startContinue"
> => ({
  prompt: (input, { signal, ...options } = {}) => caller.ask((agent) => agent.prompt(input, options), signal),
  stream: (input, { signal, ...options } = {}) =>
    caller.read((agent) => agent.stream(input, options), signal),
  streamText: (input, { signal, ...options } = {}) =>
    caller.read((agent) => textOnly(agent.stream(input, options)), signal),
  streamEvents: (input, { signal, ...options } = {}) =>
    caller.readEvents((agent) => agent.stream(input, options), signal),
  continue: ({ signal } = {}) => caller.ask((agent) => agent.continue, signal),
  continueStream: ({ signal } = {}) => caller.read((agent) => agent.continueStream, signal),
  start: async (input, options) => started(caller, await caller.ask((agent) => agent.start(input, options))),
  startContinue: async () => started(caller, await caller.ask((agent) => agent.startContinue))
})

const started = <O>(
  caller: Caller,
  { cancel, events, result, runId }: Agent.StartedRun<O>
): StartedPromiseRun<O> => ({
  runId,
  events: caller.follow(events),
  result: () => caller.settle(result),
  cancel: (reason) => caller.settle(cancel(reason))
})

const control = (
  caller: Caller
): Pick<
  PromiseAgent.PromiseAgent,
  "pause" | "resume" | "cancel" | "compact" | "reset" | "waitForIdle" | "update" | "setMessages"
> => ({
  pause: (reason) => caller.ask((agent) => agent.pause(reason)),
  resume: (reason) => caller.ask((agent) => agent.resume(reason)),
  cancel: (reason) => caller.ask((agent) => agent.cancel(reason)),
  compact: (instructions, { signal } = {}) => caller.ask((agent) => agent.compact(instructions), signal),
  reset: () => caller.ask((agent) => agent.reset),
  waitForIdle: () => caller.ask((agent) => agent.waitForIdle),
  update: (patch) => caller.ask((agent) => agent.update(patch)),
  setMessages: (messages) => caller.ask((agent) => agent.setMessages(messages))
})

const queues = (caller: Caller): Pick<PromiseAgent.PromiseAgent, "steer" | "followUp" | "queues"> => ({
  steer: (message, options) => caller.ask((agent) => agent.steer(message, options)),
  followUp: (message) => caller.ask((agent) => agent.followUp(message)),
  queues: {
    sizes: () => caller.ask((agent) => agent.queues.sizes),
    messages: () => caller.ask((agent) => agent.queues.messages),
    modes: () => caller.ask((agent) => agent.queues.modes),
    clear: (which) => caller.ask((agent) => agent.queues.clear(which)),
    setMode: (which, mode) => caller.ask((agent) => agent.queues.setMode(which, mode))
  }
})

const requests = (caller: Caller): Pick<PromiseAgent.PromiseAgent, "requests" | "answer"> => {
  function answer(id: string, reply: Approval.Reply): Promise<Approval.Answer>
  function answer(id: string, reply: Approval.QuestionReply): Promise<Approval.QuestionAnswer>
  function answer(id: string, reply: Approval.Reply | Approval.QuestionReply) {
    return caller.ask((agent) => agent.answer(id, reply))
  }
  return { requests: () => caller.ask((agent) => agent.requests), answer }
}

const watching = (
  caller: Caller,
  listeners: PromiseAgent.Listeners
): Pick<
  PromiseAgent.PromiseAgent,
  "messages" | "partial" | "events" | "droppedEvents" | "subscribe" | "on" | "report"
> => ({
  messages: () => caller.ask((agent) => Effect.map(agent.state.get, ({ messages }) => messages)),
  partial: () => caller.ask((agent) => Effect.map(agent.partial, Option.getOrUndefined)),
  events: caller.read((agent) => agent.events),
  droppedEvents: () => caller.ask((agent) => agent.droppedEvents),
  report: () => caller.ask((agent) => Effect.map(agent.report, Option.getOrUndefined)),
  subscribe: (listener, options) => listeners.all(listener, options),
  on: (name, listener, options) => {
    const fault = PromiseAgent.faultOf(name)
    if (fault !== undefined) throw invalidName(fault)
    return listeners.named(name, listener, options)
  }
})

const state = (
  caller: Caller,
  listeners: PromiseAgent.Listeners,
  initial: Agent.AgentState
): PromiseAgent.PromiseAgent["state"] => ({
  get current() {
    return listeners.agent?.state.getUnsafe() ?? initial
  },
  get partial() {
    const { agent } = listeners
    return agent && Option.getOrUndefined(Effect.runSync(agent.partial))
  },
  get: () => caller.ask((agent) => agent.state.get),
  changes: caller.read((agent) => agent.state.changes)
})

const invalidName = (fault: string): InvalidInput => {
  const error = new InvalidInput({ subject: "options", faults: [`on: ${fault}`] })
  calledFrom(error, stackOfCaller().slice(1))
  return error
}

const tools = (caller: Caller): PromiseAgent.PromiseAgent["tools"] => ({
  register: (tool) => caller.ask((agent) => agent.tools.register(tool)),
  unregister: (name) => caller.ask((agent) => agent.tools.unregister(name)),
  clear: () => caller.ask((agent) => agent.tools.clear),
  has: (name) => caller.ask((agent) => agent.tools.has(name)),
  get: (name) => caller.ask((agent) => agent.tools.get(name)),
  definitions: () => caller.ask((agent) => agent.tools.definitions),
  call: (name, params) =>
    caller.ask((agent) =>
      Effect.provideService(ToolRegistry.call(name, params), ToolRegistry.ToolRegistry, agent.tools)
    )
})

const hooks = (caller: Caller): PromiseAgent.PromiseAgent["hooks"] => ({
  list: () => caller.ask((agent) => Effect.sync(() => agent.hooks.list().map(listed))),
  register: (first: HookName | Hook.Runnable, run?: HookFunction.HookFunction<Hook.Point>) =>
    caller.ask((agent) => Effect.flatMap(hookOf(first, run), agent.hooks.register)),
  unregister: (id) => caller.ask((agent) => agent.hooks.unregister(id)),
  enable: (id) => caller.ask((agent) => agent.hooks.enable(id)),
  disable: (id) => caller.ask((agent) => agent.hooks.disable(id))
})

const listed = ({ id, isEnabled, name, point }: Registered): ListedHook => ({
  id,
  point,
  isEnabled,
  ...(name === undefined ? {} : { name })
})

const hookOf = (
  first: HookName | Hook.Runnable,
  run: HookFunction.HookFunction<Hook.Point> | undefined
): Effect.Effect<Hook.Runnable, InvalidInput> => {
  if (typeof first !== "string") return Effect.succeed(first)
  const faults = HookFunction.faultsOf({ [first]: run ?? null })
  return run === undefined || faults.length > 0
    ? Effect.fail(new InvalidInput({ subject: "options", faults }))
    : Effect.succeed(HookFunction.make(first, run))
}

// ───────────────────────── A loop, which is an agent for one run

/**
 * A run that `agentLoop` or `agentLoopContinue` began.
 *
 * **Details**
 *
 * `O` are the members that an `output` schema adds to the result.
 *
 * @category models
 * @since 0.2.0
 */
export interface LoopRun<out O = {}> {
  /** The events of the run from its first one, for each iteration all of them. `break` does not cancel the run. */
  readonly events: AsyncIterable<AgentEvent>
  /** Resolves with the result of the run. Rejects with `RunFailed` if the run fails. */
  readonly result: () => Promise<RunResult & O>
  /** Ends the run. Does not wait for the end. */
  readonly cancel: (reason?: string) => Promise<void>
}

/**
 * The messages that a loop begins from, and the summary of the older ones, if there is one.
 *
 * @category models
 * @since 0.2.0
 */
export type LoopHistory = Pick<Agent.AgentOptions<readonly [], readonly []>, "messages" | "compaction">

/**
 * Runs the loop once, from the messages so far, and keeps nothing after it.
 *
 * **Details**
 *
 * The result has the new messages. The provider and the layers live as long as the run. A `signal` that aborts cancels the run: its
 * events end with `RunEnd`, and the result rejects with the reason of the signal.
 *
 * **Example** (Running the loop)
 *
 * ```ts
 * import { agentLoop } from "effect-agent/promise"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const run = agentLoop("Hi", { messages: [] }, {
 *   provider: ScriptedProvider.layer([ScriptedProvider.text("Hello.")]),
 *   model: "any"
 * })
 *
 * for await (const event of run.events) {
 *   if (event._tag === "MessageEnd") console.log(event.message.role)
 * }
 * const { newMessages, text } = await run.result()
 * console.log(newMessages.length, text)
 * // => user
 * // => assistant
 * // => 2 Hello.
 * ```
 *
 * @category running
 * @since 0.2.0
 */
export const agentLoop = <
  RP = never,
  const T extends ReadonlyArray<Tool.Any> = readonly [],
  const H extends ReadonlyArray<Hook.Hook> = readonly [],
  A = never
>(
  prompt: Message.Input,
  history: LoopHistory,
  options: Options<RP, T, H, A>,
  { signal }: ContinueOptions = {}
): LoopRun<Agent.OutputOf<A>> => {
  const agent = createAgent<RP, T, H, A>({ ...options, ...history })
  return only(agent, () => agent.start(prompt), signal)
}

/**
 * Runs the loop once without a new message, from messages that the model has not answered.
 *
 * **Details**
 *
 * The messages may end with one of the user, or with the result of a tool. The result and the events fail with `InvalidContinuation` if
 * there are no messages, or the last one is a complete answer. All else is as in `agentLoop`.
 *
 * **Example** (Answering a transcript)
 *
 * ```ts
 * import { Message } from "effect-agent"
 * import { agentLoopContinue } from "effect-agent/promise"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const run = agentLoopContinue({ messages: [Message.user("Hi")] }, {
 *   provider: ScriptedProvider.layer([ScriptedProvider.text("Hello.")]),
 *   model: "any"
 * })
 *
 * const { newMessages, text } = await run.result()
 * console.log(newMessages.length, text) // => 1 Hello.
 * ```
 *
 * @category running
 * @since 0.2.0
 */
export const agentLoopContinue = <
  RP = never,
  const T extends ReadonlyArray<Tool.Any> = readonly [],
  const H extends ReadonlyArray<Hook.Hook> = readonly [],
  A = never
>(
  history: LoopHistory,
  options: Options<RP, T, H, A>,
  { signal }: ContinueOptions = {}
): LoopRun<Agent.OutputOf<A>> => {
  const agent = createAgent<RP, T, H, A>({ ...options, ...history })
  return only(agent, agent.startContinue, signal)
}

/** The only run of an agent, which closes after it. */
const only = <O>(
  { close }: PromiseAgent.PromiseAgent<O>,
  start: () => Promise<StartedPromiseRun<O>>,
  signal: AbortSignal | undefined
): LoopRun<O> => {
  const started = signal?.aborted === true ? Promise.reject(signal.reason) : start()
  const cancel = async (reason?: string) => (await started).cancel(reason)
  // A run that did not start is no run to cancel.
  const onAbort = () => void cancel("its signal aborted").catch(() => {})
  signal?.addEventListener("abort", onAbort, { once: true })
  const end = () => {
    signal?.removeEventListener("abort", onAbort)
    return close()
  }
  const result = started
    .then((run) => run.result())
    .then((ended) =>
      signal?.aborted === true && ended.status === "cancelled" ? Promise.reject(signal.reason) : ended
    )
    .finally(end)
  // The caller may read the failure later, or from the events.
  result.catch(() => {})
  return {
    events: {
      async *[Symbol.asyncIterator]() {
        yield* (await started).events
      }
    },
    result: () => result,
    cancel
  }
}
