/**
 * Something the model may call: a name, what its params look like, and an Effect.
 *
 * Trouble in a tool is told to the model, which can do something about it: an expected failure as its text, a defect as
 * a short notice (the cause goes to the log). Neither ends a run.
 */
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Begin from "./Begin.ts"
import * as FailureText from "./FailureText.ts"
import type { PromiseContext, PromiseRejected } from "./PromiseCall.ts"
import * as PromiseCall from "./PromiseCall.ts"
import type { ToolContext } from "./ToolContext.ts"
import { type Encoder, encoderOf, failed, isOutput, rendered, ToolOutput } from "./ToolOutput.ts"
import type { InvalidParams, ParamsReader, ParamsSchema } from "./ToolParams.ts"
import * as ToolParams from "./ToolParams.ts"

export { type PromiseContext, PromiseRejected } from "./PromiseCall.ts"
export { ToolContext } from "./ToolContext.ts"
export { failed, output, render, ToolOutput } from "./ToolOutput.ts"

/** A tool by any schema. `execute` may fail with anything; what it fails with is told to the model. */
export interface Tool<out Name extends string, in out Params, out Success, out Failure, out R> {
  readonly name: Name
  /** For people; the model sees `name`. */
  readonly label?: string
  readonly description: string
  /** The JSON Schema the model is told. */
  readonly parameters: Schema.Json
  /** Default: what the run says. `sequential` makes the whole batch sequential. */
  readonly executionMode?: "sequential" | "parallel"
  /** Default: what the run says. `"Infinity"` for none. */
  readonly timeout?: Duration.Input
  /** Renames or repairs raw arguments before they are decoded. What it throws is told to the model. */
  readonly prepareArguments?: (raw: Schema.Json) => Schema.Json
  readonly decode: (input: Schema.Json) => Effect.Effect<Params, InvalidParams>
  readonly execute: (params: Params) => Effect.Effect<Success | ToolOutput, Failure, R>
  /** `execute` in a scope of its own, with its success and its failure rendered for the model. */
  readonly run: (params: Params) => Effect.Effect<ToolOutput, never, Exclude<R, Scope.Scope>>
}

/** A tool whose types are not known here. */
export type Any = Tool<string, any, any, any, any>

/** What the application must provide: all that a tool uses, but what each call brings along. */
export type Services<T> =
  T extends Tool<any, any, any, any, infer R> ? Exclude<R, Scope.Scope | ToolContext> : never

interface Common<Name extends string> {
  readonly name: Name
  readonly label?: string
  readonly description: string
  readonly executionMode?: "sequential" | "parallel"
  readonly timeout?: Duration.Input
  readonly prepareArguments?: (raw: Schema.Json) => Schema.Json
  /** The JSON Schema to tell the model, if `params` cannot say it itself or says it badly. */
  readonly parameters?: Schema.Json
}

/**
 * A tool from a schema and an Effect.
 *
 * - `params`: default none. Any Effect Schema, or any Standard Schema; one that cannot say its JSON Schema needs
 *   `parameters` beside it, or the model is told of any object. So does a union at the root: the model is told of an
 *   object without fields, as every provider insists on an object.
 * - `success`: how a value is encoded for the model; without it a string goes as it is, anything else as JSON.
 * - `failure`: how a failure is encoded, into `details`; its text is the failure's `message`.
 * - `execute`: may return a value, or a `ToolOutput` to say content, details and `terminate` itself.
 */
export const make = <const Name extends string, Params = {}, Success = unknown, Failure = never, R = never>(
  options: Common<Name> & {
    readonly params?: ParamsSchema<Params>
    readonly success?: Schema.Codec<Success, any, never, never>
    readonly failure?: Schema.Codec<Failure, any, never, never>
    readonly execute: (params: Params) => Effect.Effect<Success | ToolOutput, Failure, R>
  }
): Tool<Name, Params, Success, Failure, R> => {
  const { execute, failure, params, success, ...common } = options
  const run = running(common.name, execute, encoderOf(success), encoderOf(failure))
  return build(common, ToolParams.reader(params, options.parameters), execute, scoped(run))
}

/**
 * A tool whose schema is plain JSON Schema, from a file or another process. Scalars of the wrong kind are coerced where
 * nothing is invented. The params reach `execute` as JSON.
 */
export const fromJsonSchema = <const Name extends string, Success = unknown, Failure = never, R = never>(
  options: Common<Name> & {
    readonly parameters: Schema.Json
    readonly execute: (params: Schema.Json) => Effect.Effect<Success | ToolOutput, Failure, R>
  }
): Tool<Name, Schema.Json, Success, Failure, R> => {
  const { execute, ...common } = options
  const run = running(common.name, execute, encoderOf(undefined), encoderOf(undefined))
  return build(common, ToolParams.fromJsonSchema(options.parameters), execute, scoped(run))
}

/** A tool from a plain async function. What it throws is told to the model by its message. */
export const fromPromise = <const Name extends string, Params = { readonly [key: string]: Schema.Json }>(
  options: Common<Name> & {
    readonly params?: ParamsSchema<Params>
    readonly execute: (params: Params, context: PromiseContext) => PromiseLike<unknown> | unknown
  }
): Tool<Name, Params, unknown, PromiseRejected, ToolContext> => {
  const { execute, params, ...common } = options
  const reader: ParamsReader<Params> =
    params === undefined && options.parameters !== undefined
      ? ToolParams.trusted<Params>(options.parameters)
      : ToolParams.reader(params, options.parameters)
  const begin = (params: Params, services: Context.Context<ToolContext>) =>
    PromiseCall.begin(common.name, execute, params, services)
  const called = (params: Params): Effect.Effect<unknown, PromiseRejected, ToolContext> =>
    Effect.contextWith((services: Context.Context<ToolContext>) =>
      Effect.callback((resume) => Effect.sync(begin(params, services)(resume)))
    )
  const told = asOutput(common.name, encoderOf(undefined), encoderOf(undefined))
  const run = (params: Params): Effect.Effect<ToolOutput, never, ToolContext> =>
    Begin.direct(
      Effect.suspend(() => Effect.matchEffect(called(params), told)),
      (services) => (tell) =>
        begin(params, services)((exit) => Begin.goOn(services, () => concluded(exit, told), tell))
    )
  // Without the scope, for which a plain function has no use.
  return build(common, reader, called, run)
}

const build = <Name extends string, Params, Success, Failure, R>(
  common: Common<Name>,
  { decode, known, parameters }: ParamsReader<Params>,
  execute: Tool<Name, Params, Success, Failure, R>["execute"],
  run: Tool<Name, Params, Success, Failure, R>["run"]
): Tool<Name, Params, Success, Failure, R> => {
  if (known !== undefined) return { ...common, parameters: known, decode, execute, run }
  let described: Schema.Json | undefined
  return {
    ...common,
    // Asked for with the first request, not when the module loads: a schema is costly to describe.
    get parameters() {
      return (described ??= parameters())
    },
    decode,
    execute,
    run
  }
}

/** Runs a tool for the model: whatever comes of it is something to read. */
const running =
  <Params, Success, Failure, R>(
    name: string,
    execute: (params: Params) => Effect.Effect<Success | ToolOutput, Failure, R>,
    encodeSuccess: Encoder<Success>,
    encodeFailure: Encoder<Failure>
  ) =>
  (params: Params): Effect.Effect<ToolOutput, never, R> =>
    Effect.matchEffect(
      Effect.suspend(() => execute(params)),
      asOutput(name, encodeSuccess, encodeFailure)
    )

interface Told<Success, Failure> {
  readonly onSuccess: (value: Success) => Effect.Effect<ToolOutput>
  readonly onFailure: (failure: Failure) => Effect.Effect<ToolOutput>
}

const concluded = <Success, Failure>(
  exit: Exit.Exit<Success, Failure>,
  told: Told<Success, Failure>
): Effect.Effect<ToolOutput> =>
  Exit.isSuccess(exit) ? told.onSuccess(exit.value) : Effect.matchEffect(exit, told)

const asOutput = <Success, Failure>(
  name: string,
  encodeSuccess: Encoder<Success>,
  encodeFailure: Encoder<Failure>
): Told<Success | ToolOutput, Failure> => ({
  onSuccess: (value) => Effect.succeed(isOutput(value) ? value : rendered(value, encodeSuccess)),
  onFailure: (failure) =>
    Effect.logDebug(`Tool ${name} failed`, Cause.fail(failure)).pipe(
      Effect.catchDefect(() => Effect.void),
      Effect.map(() => failed(FailureText.of(failure), encodeFailure(failure)))
    )
})

/** Each call in a scope of its own. */
const scoped =
  <Params, R>(run: (params: Params) => Effect.Effect<ToolOutput, never, R>) =>
  (params: Params): Effect.Effect<ToolOutput, never, Exclude<R, Scope.Scope>> =>
    Effect.scoped(run(params))
