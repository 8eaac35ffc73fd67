/**
 * A tool is a function that a model may call: a name, a description, the params it takes, and an Effect that runs.
 *
 * **Details**
 *
 * A call never ends a run, unless `toolFailureMode` is "fail". The model reads a failure of `execute` as text, and a defect as one
 * line; the log has the cause of a defect.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import type * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { AgentEvent, ToolOutput } from "./AgentEvent.ts"
import { TaggedError } from "./internal/errors.ts"
import * as FailureText from "./internal/failureText.ts"
import { detach } from "./internal/interruption.ts"
import * as InvalidTool from "./internal/invalidTool.ts"
import * as Params from "./internal/params.ts"
import * as Output from "./internal/toolOutput.ts"
import type { File, Image, Trust, VendorMembers } from "./Message.ts"
import type { ToolCaller } from "./Provider.ts"

export { InvalidTool } from "./internal/invalidTool.ts"
export { InvalidParams, type ParamsSchema } from "./internal/params.ts"
export { failure, isOutput, output, render, type ToolOutput } from "./internal/toolOutput.ts"

/**
 * The options that `make`, `fromJsonSchema` and `fromPromise` share.
 *
 * @since 0.1.0
 * @category options
 */
export interface Options<Name extends string> {
  /** Name by which the model calls the tool. At most 64 letters, digits, `_` and `-`. */
  readonly name: Name
  /** Name for people, in `ToolExecutionStart` events. Default: none. */
  readonly label?: string
  /** Purpose of the tool, for the model. */
  readonly description: string
  /** `"sequential"` makes all calls of an answer run one after another. Default: the option `toolExecution` of the run. */
  readonly executionMode?: "sequential" | "parallel"
  /**
   * Whether the turn waits for a call. With `false` the model reads at once that the call runs in the background, and its result in a later
   * message; with `"optional"` the tool decides while it runs, by `background` of `ToolContext`. Default `true`.
   */
  readonly blocking?: boolean | "optional"
  /** Longest time that one execution may take; `"Infinity"` for no limit. Default: `toolTimeout` of the run, 30 seconds. */
  readonly timeout?: Duration.Input
  /** Whether the vendor makes the arguments match `parameters`, where it can. Default: the provider's. */
  readonly strict?: boolean
  /** Whether the application may trust the results, unless `Tool.output` of a result decides. Default `"trusted"`. */
  readonly trust?: Trust
  /**
   * The effect of running a call again: `"pure"` changes nothing, `"idempotent"` may run twice, `"once"` may not. Default `"once"`.
   */
  readonly effect?: "pure" | "idempotent" | "once"
  /** Whether arguments that do not decode as they are may be coerced, such as `"41"` for a number. Default `true`. */
  readonly coercion?: boolean
  /** Renames or repairs arguments before they are decoded. The model reads the message of what it throws. Default: none. */
  readonly prepareArguments?: (raw: Schema.Json) => Schema.Json
  /** JSON Schema of the params, for the model. Default: the description that `params` gives of itself. */
  readonly parameters?: Schema.Json
  /**
   * Arguments of calls, as examples for the model. Default none.
   *
   * Anthropic has a member for them; other providers append them to the description.
   */
  readonly inputExamples?: ReadonlyArray<Schema.JsonObject>
  /**
   * The callers that may call the tool: the model itself (`"direct"`), or programs that it writes and the vendor runs (`"programmatic"`). Default:
   * the model itself.
   *
   * Programs need the tool of the vendor that runs them: `codeExecution` of `hostedTools` at Anthropic, and
   * `{ type: "programmatic_tool_calling" }` among the `vendor` tools of OpenAI. Other providers report it in `ModelCallEnd.adjusted`.
   */
  readonly allowedCallers?: ReadonlyArray<ToolCaller>
  /**
   * Members of the definition in a request by provider id, such as `{ anthropic: { eager_input_streaming: true } }`. Default none.
   */
  readonly vendor?: VendorMembers
}

/**
 * A tool: its definition for the model, how its params are decoded, and what runs.
 *
 * **When to use**
 *
 * Make tools with `make`, `fromJsonSchema` or `fromPromise`. Write the members by hand when params are neither read by a schema nor
 * by JSON Schema.
 *
 * @since 0.1.0
 * @category models
 */
export interface Tool<out Name extends string, in out Params, out Success, out Failure, out R>
  extends Options<Name> {
  /** JSON Schema of the params, for the model. */
  readonly parameters: Schema.Json
  /** Decodes the arguments of a call. */
  readonly decode: (input: Schema.Json) => Effect.Effect<Params, Params.InvalidParams>
  /** Runs a call, each time in a scope of its own. The model reads what it fails with. */
  readonly execute: (params: Params) => Effect.Effect<Success | Output.ToolOutput, Failure, R>
  /** Encodes a success as JSON for the model and for `details`. Default, also for `undefined`: as `Tool.render` does. */
  readonly encodeSuccess?: (value: unknown) => Schema.Json | undefined
  /**
   * Makes a question to a person from the params of a call. The call runs once the person has answered, and reads `answer` of its
   * `ToolContext`. Default: the tool asks nothing.
   */
  readonly question?: (params: Params) => Question
  /** Makes the result of a failure. Default: its message, as an error. */
  readonly renderFailure?: (failure: unknown) => Effect.Effect<Output.ToolOutput>
}

/**
 * A question to a person.
 *
 * @since 0.2.0
 * @category models
 */
export interface Question {
  /** The question in words. */
  readonly question: string
  /** The JSON Schema of the answer. */
  readonly schema: Schema.Json
}

/**
 * A tool of any type.
 *
 * **Gotchas**
 *
 * A list of these hides what its tools require, and `Agent.make` refuses it. Use `Runnable` for a list that is made at run time.
 *
 * @since 0.1.0
 * @category models
 */
export type Any = Tool<string, any, any, any, any>

/**
 * A tool that requires no service of the application: the type for a list that is made at run time.
 *
 * **Example** (Loading tools at run time)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Tool } from "effect-agent"
 *
 * const load = (names: ReadonlyArray<string>): ReadonlyArray<Tool.Runnable> =>
 *   names.map((name) => Tool.make({ name, description: `Returns ${name}.`, execute: () => Effect.succeed(name) }))
 *
 * export const agent = Agent.make({ model: "any", tools: load(["one", "two"]) })
 * ```
 *
 * @since 0.2.0
 * @category models
 */
export type Runnable = Tool<string, any, unknown, unknown, Scope.Scope | ToolContext>

/**
 * The requirement of a tool whose type hides the services that it requires, as `Tool.Any` does.
 *
 * **Details**
 *
 * Nothing provides it. Type the tool or the list as `Tool.Runnable`, or with the services it requires.
 *
 * @since 0.2.0
 * @category utility types
 */
export interface HiddenRequirements {
  /** Says in compiler errors which type to write. */
  readonly "This tool is typed Tool.Any, which hides what it needs. Type it Tool.Runnable": never
}

/**
 * The services that the application provides for a tool: all that `execute` requires, without `Scope` and `ToolContext`, which
 * each call has.
 *
 * @since 0.1.0
 * @category utility types
 */
export type Requirements<T> =
  T extends Tool<any, any, any, any, infer R>
    ? 0 extends 1 & R
      ? HiddenRequirements
      : Exclude<R, Scope.Scope | ToolContext>
    : never

/**
 * Makes a tool from a schema of its params and an Effect.
 *
 * **Details**
 *
 * - `params`: an Effect Schema or a Standard Schema of an object, or of a union of objects. Default: no params. Each provider writes
 *   its JSON Schema in the form that the vendor takes, and the tool checks the arguments by the schema itself. Arguments that do not
 *   decode are coerced by the JSON Schema and decoded again: `"41"` is accepted for a number, and `null` for an optional field is
 *   left out. A date, a bigint, a set or a map of zod is read from the JSON that stands for it.
 * - `success`: the schema that encodes a value for the model and for `details`. Default: text as it is, other values as JSON.
 * - `failure`: the schema that encodes a failure for `details`. The model reads the `message` of a failure.
 * - `execute`: returns a value, or a `ToolOutput` that sets content, details and `terminate` itself.
 *
 * **Gotchas**
 *
 * Throws `InvalidTool` for a name that providers refuse, a `timeout` that is no duration, `params` that are no schema of an object, or
 * a Standard Schema that does not say its JSON Schema: give `parameters` beside it.
 *
 * **Example** (Looking up the weather)
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Agent, Message, Tool } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const weather = Tool.make({
 *   name: "get_weather",
 *   description: "Returns the weather of a city.",
 *   params: Schema.Struct({ city: Schema.String }),
 *   execute: ({ city }) => (city === "Oslo" ? Effect.succeed("Rain") : Effect.fail(`No station in ${city}`))
 * })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", tools: [weather] })
 *   const { newMessages } = yield* agent.prompt("How is the weather?")
 *   for (const message of newMessages) {
 *     if (message.role === "toolResult") console.log(message.isError, Message.textOf(message))
 *   }
 * }).pipe(Effect.scoped)
 *
 * const script = [
 *   ScriptedProvider.toolCalls(
 *     { name: "get_weather", params: { city: "Oslo" } },
 *     { name: "get_weather", params: { city: "Atlantis" } }
 *   ),
 *   ScriptedProvider.text("It rains in Oslo.")
 * ]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => false Rain
 * // => true No station in Atlantis
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <const Name extends string, Params = {}, Success = unknown, Failure = never, R = never>(
  options: Options<Name> & {
    readonly params?: Params.ParamsSchema<Params>
    readonly success?: Schema.Codec<Success, any, never, never>
    readonly failure?: Schema.Codec<Failure, any, never, never>
    readonly execute: (params: Params) => Effect.Effect<Success | Output.ToolOutput, Failure, R>
  }
): Tool<Name, Params, Success, Failure, R> => {
  InvalidTool.refuse(options)
  const { execute, failure, params, success, ...common } = options
  const encodeFailure = Output.encoderOf(failure)
  return build(common, Params.reader(params, options.parameters, options.coercion), {
    execute,
    ...(success === undefined ? {} : { encodeSuccess: Output.encoderOf(success) }),
    renderFailure: (value) => Effect.sync(() => Output.failure(FailureText.of(value), encodeFailure(value)))
  })
}

/**
 * Makes a tool from plain JSON Schema, which may come from a file or another process.
 *
 * **Details**
 *
 * `execute` gets the arguments as JSON. Scalars of the wrong kind are coerced, such as `"41"` for a number, and `null` is left out
 * for a property that is neither required nor nullable.
 *
 * **Gotchas**
 *
 * Throws `InvalidTool` as `make` does.
 *
 * **Example** (Using a JSON Schema)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Tool } from "effect-agent"
 *
 * const add = Tool.fromJsonSchema({
 *   name: "add",
 *   description: "Adds two numbers.",
 *   parameters: {
 *     type: "object",
 *     properties: { a: { type: "number" }, b: { type: "number" } },
 *     required: ["a", "b"]
 *   },
 *   execute: (params) => Effect.succeed(params)
 * })
 *
 * console.log(await Effect.runPromise(add.decode({ a: 1, b: "41" })))
 * // => { a: 1, b: 41 }
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromJsonSchema = <const Name extends string, Success = unknown, Failure = never, R = never>(
  options: Options<Name> & {
    readonly parameters: Schema.Json
    readonly execute: (params: Schema.Json) => Effect.Effect<Success | Output.ToolOutput, Failure, R>
  }
): Tool<Name, Schema.Json, Success, Failure, R> => {
  InvalidTool.refuse(options, true)
  const { execute, ...common } = options
  return build(common, Params.fromJsonSchema(options.parameters, options.coercion), { execute })
}

/**
 * Makes a tool from a plain function, which may be async.
 *
 * **Details**
 *
 * The model reads the message of what the function throws. `params` and `parameters` are those of `make`; with `parameters` alone the
 * function gets JSON of the type that it declares. The signal of the context aborts when the call is cancelled or times out; the
 * run does not wait for the promise then.
 *
 * **Gotchas**
 *
 * Throws `InvalidTool` as `make` does. A function that returns an Effect fails: use `make`.
 *
 * **Example** (Calling an async function)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Message, Tool } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 * import * as z from "zod"
 *
 * const double = Tool.fromPromise({
 *   name: "double",
 *   description: "Doubles a number.",
 *   params: z.object({ value: z.number() }),
 *   execute: async ({ value }, { progress }) => {
 *     progress("Doubling…")
 *     return value * 2
 *   }
 * })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", tools: [double] })
 *   const { newMessages } = yield* agent.prompt("Double 21")
 *   for (const message of newMessages) {
 *     if (message.role === "toolResult") console.log(Message.textOf(message))
 *   }
 * }).pipe(Effect.scoped)
 *
 * const script = [ScriptedProvider.toolCall("double", { value: 21 }), ScriptedProvider.text("It is 42.")]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => 42
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromPromise = <
  const Name extends string,
  Params = { readonly [key: string]: Schema.Json },
  Success = unknown
>(
  options: Options<Name> & {
    readonly params?: Params.ParamsSchema<Params>
    readonly execute: (params: Params, context: PromiseContext) => PromiseLike<Success> | Success
  }
): Tool<Name, Params, Success, PromiseRejected, ToolContext> => {
  InvalidTool.refuse(options)
  const { execute, params, ...common } = options
  const { name, parameters } = common
  // With `parameters` alone the compiler cannot compare them with the type that the function declares.
  const reader: Params.ParamsReader<any> =
    params === undefined && parameters !== undefined
      ? Params.fromJsonSchema(parameters, common.coercion)
      : Params.reader(params, parameters, common.coercion)
  return build(common, reader, { execute: execution(name, execute) })
}

/**
 * Copies a tool with another `execute`, which wraps the one of the tool.
 *
 * **When to use**
 *
 * Use to log, retry, cache or limit the calls of a tool, or to translate its failures. The copy has the success, failure and
 * requirements of the new `execute`.
 *
 * **Example** (Retrying a tool)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Message, Tool } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * let calls = 0
 * const flaky = Tool.make({
 *   name: "flaky",
 *   description: "Fails the first time.",
 *   execute: () => Effect.suspend(() => (++calls === 1 ? Effect.fail("busy") : Effect.succeed("done")))
 * })
 * const steady = Tool.wrap(flaky, (execute) => (params) => Effect.retry(execute(params), { times: 2 }))
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", tools: [steady] })
 *   const { newMessages } = yield* agent.prompt("Try it")
 *   for (const message of newMessages) {
 *     if (message.role === "toolResult") console.log(Message.textOf(message), calls)
 *   }
 * }).pipe(Effect.scoped)
 *
 * const script = [ScriptedProvider.toolCall("flaky", {}), ScriptedProvider.text("It works.")]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => done 2
 * ```
 *
 * @since 0.2.0
 * @category combinators
 */
export const wrap = <Name extends string, Params, Success, Failure, R, Success2, Failure2, R2>(
  tool: Tool<Name, Params, Success, Failure, R>,
  f: (
    execute: (params: Params) => Effect.Effect<Success | Output.ToolOutput, Failure, R>
  ) => (params: Params) => Effect.Effect<Success2 | Output.ToolOutput, Failure2, R2>
): Tool<Name, Params, Success2, Failure2, R2> => ({ ...tool, execute: f(tool.execute) })

type Behaviour<Name extends string, Params, Success, Failure, R> = Pick<
  Tool<Name, Params, Success, Failure, R>,
  "execute" | "encodeSuccess" | "renderFailure"
>

const build = <Name extends string, Params, Success, Failure, R>(
  common: Options<Name>,
  { decode, parameters }: Params.ParamsReader<Params>,
  behaviour: Behaviour<Name, Params, Success, Failure, R>
): Tool<Name, Params, Success, Failure, R> => ({
  ...common,
  // The JSON Schema is made for the first request and not when the module loads, because that takes time for an Effect Schema.
  get parameters() {
    return parameters()
  },
  decode,
  ...behaviour
})

/**
 * The call that a tool runs for.
 *
 * **Details**
 *
 * Each call has one, so that it is never a requirement of the application.
 *
 * **Example** (Showing progress)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Tool } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const copy = Tool.make({
 *   name: "copy",
 *   description: "Copies files.",
 *   execute: Effect.fnUntraced(function* () {
 *     const { progress, turn } = yield* Tool.ToolContext
 *     yield* progress(`half of turn ${turn}`)
 *     return "copied"
 *   })
 * })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", tools: [copy] })
 *   yield* agent.subscribe((event) => {
 *     if (event._tag === "ToolExecutionProgress") console.log(event.partial.content)
 *     return Effect.void
 *   })
 *   yield* agent.prompt("Copy the files")
 * }).pipe(Effect.scoped)
 *
 * const script = [ScriptedProvider.toolCall("copy", {}), ScriptedProvider.text("Done.")]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => [ { type: 'text', text: 'half of turn 1' } ]
 * ```
 *
 * **Example** (Sending a key with a payment)
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Tool } from "effect-agent"
 * import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
 *
 * export const pay = Tool.make({
 *   name: "pay",
 *   description: "Pays an invoice.",
 *   effect: "idempotent",
 *   params: Schema.Struct({ invoice: Schema.String }),
 *   execute: Effect.fnUntraced(
 *     function* ({ invoice }) {
 *       const { idempotencyKey } = yield* Tool.ToolContext
 *       const client = yield* HttpClient.HttpClient
 *       yield* client.execute(
 *         HttpClientRequest.post(`https://bank.example/payments/${invoice}`).pipe(
 *           HttpClientRequest.setHeader("Idempotency-Key", idempotencyKey)
 *         )
 *       )
 *       return "paid"
 *     },
 *     Effect.provide(FetchHttpClient.layer)
 *   )
 * })
 * ```
 *
 * @since 0.1.0
 * @category services
 */
export class ToolContext extends Context.Service<
  ToolContext,
  {
    /** Id of the call, as the provider made it. */
    readonly toolCallId: string
    /**
     * Key of the call for a service that does one key once, such as one that takes an `Idempotency-Key`. A call that runs again has the
     * same key: by a hook, or when its run continues after a restart. It is unique, and made of the characters of a part of a URL.
     */
    readonly idempotencyKey: string
    /** Id of the run. */
    readonly runId: string
    /** The tool calls of the parent runs that lead to the run, outermost first. Default: none, since no tool started the run. */
    readonly path?: AgentEvent["path"]
    /** Number of the turn, from 1. */
    readonly turn: number
    /** The answer of a person, for a tool with a `question`. Default: none. */
    readonly answer?: Schema.Json
    /**
     * Asks a person in the middle of the call, and succeeds with the answer, which matches the schema. No time limit runs meanwhile.
     * Succeeds with `Option.none()` where the policy denies or defers questions, and where the person does not answer. Default: the
     * call has no person to ask.
     */
    readonly ask?: (question: {
      readonly question: string
      readonly schema: Schema.Json
    }) => Effect.Effect<Option.Option<Schema.Json>>
    /**
     * Returns why the model cannot take an image or a file, in words that end a sentence; `undefined` if it can. Default: it
     * is not known, and a note stands in its place where the model cannot.
     */
    readonly refuses?: (media: Image | File) => string | undefined
    /**
     * Has the call continue in the background: the model reads a handle and the note as its result, and the end in a later message. Does
     * nothing once the call is there. Default: `blocking` of the tool is `true`, and the turn waits for the call.
     */
    readonly background?: (note?: string) => Effect.Effect<void>
    /**
     * Emits a `ToolExecutionProgress` event with a text or a `Tool.output`. The model reads only the final result. Does nothing once the
     * call has ended.
     */
    readonly progress: (partial: string | ToolOutput) => Effect.Effect<void>
  }
>()("effect-agent/ToolContext") {}

// ───────────────────────── Plain functions

/**
 * The call that a plain function runs for.
 *
 * @since 0.1.0
 * @category models
 */
export interface PromiseContext {
  /** Id of the call, as the provider made it. */
  readonly toolCallId: string
  /** Id of the run. */
  readonly runId: string
  /** Number of the turn, from 1. */
  readonly turn: number
  /** Aborts when the call is cancelled or times out. */
  readonly signal: AbortSignal
  /**
   * Has the call continue in the background: the model reads a handle and the note as its result, and the end in a later message. Does
   * nothing if `blocking` of the tool is `true`, as by default.
   */
  readonly background: (note?: string) => void
  /** Emits a `ToolExecutionProgress` event. The model reads only the final result. Does nothing once the call has ended. */
  readonly progress: (partial: string | ToolOutput) => void
}

/**
 * The function of a tool threw, or its promise was rejected.
 *
 * @since 0.1.0
 * @category errors
 */
export class PromiseRejected extends TaggedError<PromiseRejected>()("PromiseRejected", {
  /** Text of what was thrown, for the model. */
  detail: Schema.String,
  /** The thrown value. */
  thrown: Schema.Defect()
}) {
  override get message(): string {
    return this.detail
  }
}

/**
 * Makes an `execute` that calls a plain function and waits for its promise. Partial results are shown in their order, and
 * all of them before the call ends. Interruption aborts the signal and does not wait for the promise. `name` is the name of
 * the tool.
 */
const execution = <Params, Success>(
  name: string,
  execute: (params: Params, context: PromiseContext) => PromiseLike<Success> | Success
) =>
  Effect.fnUntraced(function* (params: Params): Effect.fn.Return<Success, PromiseRejected, ToolContext> {
    const context = yield* ToolContext
    const controller = new AbortController()
    const steps: Array<Effect.Effect<void>> = []
    let ended: Exit.Exit<Success, PromiseRejected> | undefined
    const news = Latch.makeUnsafe(false)
    const step = (taken: Effect.Effect<void>): void => {
      if (ended !== undefined || controller.signal.aborted) return
      steps.push(taken)
      news.openUnsafe()
    }
    const given: PromiseContext = {
      ...context,
      signal: controller.signal,
      progress: (partial) => step(context.progress(partial)),
      background: (note) => step(context.background?.(note) ?? Effect.void)
    }
    const call = async () => execute(params, given)
    void call()
      .then(Exit.succeed, (thrown) =>
        Exit.fail(new PromiseRejected({ detail: FailureText.of(thrown), thrown }))
      )
      .then((exit) => {
        ended = exit
        news.openUnsafe()
      })
    const next: Effect.Effect<Success, PromiseRejected> = Effect.suspend(() => {
      news.closeUnsafe()
      if (steps.length === 0) return ended ?? Effect.andThen(news.await, next)
      return Effect.andThen(Effect.all(steps.splice(0), { discard: true }), next)
    })
    return yield* Effect.onInterrupt(next, () => {
      controller.abort()
      return detach(reportDeaf(name, () => ended !== undefined))
    })
  })

/** Logs a warning if a promise ignores its signal: it is still pending 100 ms after the abort. */
const reportDeaf = (name: string, isSettled: () => boolean): Effect.Effect<void> =>
  Effect.delay(
    Effect.suspend(() =>
      isSettled() ? Effect.void : Effect.logWarning(`Tool ${name} ignored its interruption`)
    ),
    "100 millis"
  )
