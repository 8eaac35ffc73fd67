/**
 * Something the model may call: a name, what its params look like, and an Effect.
 *
 * Trouble in a tool is told to the model, which can do something about it: an expected failure as its text, a defect as
 * a short notice (the cause goes to the log). Neither ends a run.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as FailureText from "./internal/failureText.ts"
import * as InvalidTool from "./internal/invalidTool.ts"
import type { PromiseContext, PromiseRejected } from "./internal/promiseTool.ts"
import * as PromiseCall from "./internal/promiseTool.ts"
import type { ToolContext } from "./internal/toolContext.ts"
import * as Output from "./internal/toolOutput.ts"
import type { ToolOutput } from "./internal/toolOutput.ts"
import type { InvalidParams, ParamsReader, ParamsSchema } from "./internal/params.ts"
import * as ToolParams from "./internal/params.ts"

export { InvalidTool } from "./internal/invalidTool.ts"
export { type PromiseContext, PromiseRejected } from "./internal/promiseTool.ts"
export { ToolContext } from "./internal/toolContext.ts"
export { failure, isOutput, output, render, type ToolOutput } from "./internal/toolOutput.ts"
export { InvalidParams, type ParamsSchema } from "./internal/params.ts"

/**
 * A tool by any schema. `execute` may fail with anything; what it fails with is told to the model.
 *
 * `execute` is what runs, each time in a scope of its own. To wrap a tool, copy it:
 * `{ ...tool, execute: (params) => Effect.tap(tool.execute(params), log) }`.
 */
export interface Tool<out Name extends string, in out Params, out Success, out Failure, out R> {
  /** At most 64 letters, digits, _ and -. */
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
  /** A success as JSON, also kept as `details`. Default, and where it is undefined: as `Tool.render` writes it. */
  readonly encodeSuccess?: (value: unknown) => Schema.Json | undefined
  /** A failure as a result. Default: its message. */
  readonly renderFailure?: (failure: unknown) => Effect.Effect<ToolOutput>
}

/** A tool whose types are not known here. A list of these does not say what its tools need: see `Runnable`. */
export type Any = Tool<string, any, any, any, any>

/**
 * A tool that needs nothing of the application: the type for a list that is made at run time,
 * `const tools: ReadonlyArray<Tool.Runnable> = await load()`.
 */
export type Runnable = Tool<string, any, unknown, unknown, Scope.Scope | ToolContext>

/**
 * The requirement of a tool whose type hides what it needs, as `Tool.Any` does. Nothing provides it: declare the tool or the
 * list as `Tool.Runnable`, or with the services it needs.
 */
export interface HiddenRequirements {
  readonly "This tool is typed Tool.Any, which hides what it needs. Type it Tool.Runnable": never
}

/** What the application must provide: all that a tool uses, but what each call brings along. */
export type Requirements<T> =
  T extends Tool<any, any, any, any, infer R>
    ? 0 extends 1 & R
      ? HiddenRequirements
      : Exclude<R, Scope.Scope | ToolContext>
    : never

/** The options that `make`, `fromJsonSchema` and `fromPromise` share. */
export interface Common<Name extends string> {
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
 * A tool from a schema and an Effect. Throws `InvalidTool` for options that cannot work: a name that providers refuse, a
 * `timeout` that is no duration, `params` that are no schema of an object.
 *
 * - `params`: default none. Any Effect Schema, or any Standard Schema, of an object; one that cannot say its JSON Schema needs
 *   `parameters` beside it, or the model is told of any object. So does a union at the root: the model is told of an
 *   object without fields, as every provider insists on an object.
 *   Params that do not decode as they are get a second try by that JSON Schema: scalars of the wrong kind are coerced
 *   (`"41"` to 41), and `null` is left out where a field is optional and not nullable.
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
  InvalidTool.refuse(options)
  InvalidTool.refuseParams(options)
  const encodeFailure = Output.encoderOf(failure)
  return build(common, ToolParams.reader(params, options.parameters), {
    execute,
    ...(success === undefined ? {} : { encodeSuccess: Output.encoderOf(success) }),
    renderFailure: (value) => Effect.sync(() => Output.failure(FailureText.of(value), encodeFailure(value)))
  })
}

/**
 * A tool whose schema is plain JSON Schema, from a file or another process. Scalars of the wrong kind are coerced where
 * nothing is invented, and `null` is left out where a property is optional and not nullable. The params reach `execute` as
 * JSON. Throws `InvalidTool` as `make` does.
 */
export const fromJsonSchema = <const Name extends string, Success = unknown, Failure = never, R = never>(
  options: Common<Name> & {
    readonly parameters: Schema.Json
    readonly execute: (params: Schema.Json) => Effect.Effect<Success | ToolOutput, Failure, R>
  }
): Tool<Name, Schema.Json, Success, Failure, R> => {
  const { execute, ...common } = options
  InvalidTool.refuse(options)
  InvalidTool.refuseJsonSchema(options, options.parameters)
  return build(common, ToolParams.fromJsonSchema(options.parameters), { execute })
}

/**
 * A tool from a plain async function. What it throws is told to the model by its message. Throws `InvalidTool` as `make`
 * does.
 */
export const fromPromise = <const Name extends string, Params = { readonly [key: string]: Schema.Json }>(
  options: Common<Name> & {
    readonly params?: ParamsSchema<Params>
    readonly execute: (params: Params, context: PromiseContext) => PromiseLike<unknown> | unknown
  }
): Tool<Name, Params, unknown, PromiseRejected, ToolContext> => {
  const { execute, params, ...common } = options
  InvalidTool.refuse(options)
  InvalidTool.refuseParams(options)
  const reader: ParamsReader<Params> =
    params === undefined && options.parameters !== undefined
      ? ToolParams.trusted<Params>(options.parameters)
      : ToolParams.reader(params, options.parameters)
  return build(common, reader, { execute: PromiseCall.execution(common.name, execute) })
}

type Behaviour<Name extends string, Params, Success, Failure, R> = Pick<
  Tool<Name, Params, Success, Failure, R>,
  "execute" | "encodeSuccess" | "renderFailure"
>

const build = <Name extends string, Params, Success, Failure, R>(
  common: Common<Name>,
  { decode, known, parameters }: ParamsReader<Params>,
  behaviour: Behaviour<Name, Params, Success, Failure, R>
): Tool<Name, Params, Success, Failure, R> => {
  if (known !== undefined) return { ...common, parameters: known, decode, ...behaviour }
  let described: Schema.Json | undefined
  return {
    ...common,
    // Asked for with the first request, not when the module loads: an Effect Schema is costly to describe.
    get parameters() {
      return (described ??= parameters())
    },
    decode,
    ...behaviour
  }
}
