/**
 * Something the model may call: a name, what its params look like, and an Effect.
 *
 * Trouble in a tool is told to the model, which can do something about it: an expected failure as its text, a defect as
 * a short notice (the cause goes to the log). Neither ends a run.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as FailureText from "./FailureText.ts"
import { Called, type PromiseContext, ToolContext } from "./ToolContext.ts"
import { type Encoder, encoderOf, failed, isOutput, output, rendered, ToolOutput } from "./ToolOutput.ts"
import type { InvalidParams, ParamsReader, ParamsSchema } from "./ToolParams.ts"
import * as ToolParams from "./ToolParams.ts"

export { type PromiseContext, ToolContext } from "./ToolContext.ts"
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

/** A plain function threw, or its promise was rejected. */
export class PromiseRejected extends Schema.TaggedError<PromiseRejected>()("PromiseRejected", {
  detail: Schema.String,
  thrown: Schema.Defect()
}) {
  override get message(): string {
    return this.detail
  }
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
  const asValue = { onSuccess: (value: unknown) => Effect.succeed(value), onFailure: reject }
  // Without the scope, for which a plain function has no use.
  return build(
    common,
    reader,
    promised(common.name, execute, asValue),
    promised(common.name, execute, asOutput(common.name, encoderOf(undefined), encoderOf(undefined)))
  )
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

const asOutput = <Success, Failure>(
  name: string,
  encodeSuccess: Encoder<Success>,
  encodeFailure: Encoder<Failure>
) => ({
  onSuccess: (value: Success | ToolOutput) =>
    Effect.succeed(isOutput(value) ? value : rendered(value, encodeSuccess)),
  onFailure: (failure: Failure) =>
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

/** A promise cannot be stopped, only left: says so of one that goes on although its signal was aborted. */
const reportDeaf = (name: string, isSettled: () => boolean): Effect.Effect<void> =>
  Effect.delay(
    Effect.suspend(() =>
      isSettled() ? Effect.void : Effect.logWarning(`Tool ${name} ignored its interruption`)
    ),
    "100 millis"
  )

const reject = (failure: PromiseRejected): Effect.Effect<never, PromiseRejected> => Effect.fail(failure)

const promised =
  <Params, A, E>(
    name: string,
    execute: (params: Params, context: PromiseContext) => PromiseLike<unknown> | unknown,
    told: {
      readonly onSuccess: (value: unknown) => Effect.Effect<A, E>
      readonly onFailure: (failure: PromiseRejected) => Effect.Effect<A, E>
    }
  ) =>
  (params: Params): Effect.Effect<A, E, ToolContext> =>
    Effect.contextWith((services: Context.Context<ToolContext>) => {
      const context = Context.get(services, ToolContext)
      const shown: Array<Fiber.Fiber<void>> = []
      const progress = (partial: string | ToolOutput) => {
        const partly = context.progress(typeof partial === "string" ? output(partial) : partial)
        shown.push(Effect.runForkWith(services)(partly))
      }
      return Effect.callback<A, E>((resume) => {
        const called = new Called(context, progress)
        let settled = false
        const resolved = (value: unknown) => {
          settled = true
          const heard = Effect.suspend(() => told.onSuccess(value))
          resume(shown.length === 0 ? heard : Effect.andThen(Fiber.awaitAll(shown), heard))
        }
        const rejected = (thrown: unknown) => {
          settled = true
          resume(
            Effect.suspend(() =>
              told.onFailure(new PromiseRejected({ detail: FailureText.of(thrown), thrown }))
            )
          )
        }
        try {
          Promise.resolve(execute(params, called.context)).then(resolved, rejected)
        } catch (thrown) {
          rejected(thrown)
        }
        return Effect.suspend(() => {
          called.abort()
          return Effect.forkDetach(reportDeaf(name, () => settled))
        })
      })
    })
