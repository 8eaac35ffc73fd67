/**
 * Hooks as plain functions, by the name of their point.
 */
import type * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Hook from "../Hook.ts"
import * as NearestName from "../internal/nearestName.ts"
import type { PromiseRejected } from "../internal/promiseTool.ts"
import * as Awaited from "./Awaited.ts"

/**
 * The second argument of a hook function.
 *
 * @category models
 * @since 0.2.0
 */
export interface HookContext {
  /** Aborts when the run is cancelled, and when the hook takes longer than its time limit. */
  readonly signal: AbortSignal
}

/**
 * A hook of one point as a function, which may be async.
 *
 * **Details**
 *
 * `Hook.Input` and `Hook.Output` have the types of each point. A function that returns nothing does not affect the outcome. One that
 * throws, or whose promise rejects, has failed: `Hook` lists the consequences at each point.
 *
 * @category models
 * @since 0.2.0
 */
export type HookFunction<P extends Hook.Point> = (
  input: Hook.Input<P>,
  context: HookContext
) => Hook.Output<P> | void | PromiseLike<Hook.Output<P> | void>

/**
 * The names of hooks in other systems, and the points of this library that they mean.
 *
 * **Gotchas**
 *
 * Only the names are those of oneringai and Karl. Inputs and outputs are those of the point.
 *
 * @category models
 * @since 0.2.0
 */
export interface HookAliases {
  /** Of oneringai. */
  readonly "before:execution": "beforeExecution"
  /** Of oneringai. */
  readonly "after:execution": "afterExecution"
  /** Of oneringai. */
  readonly "before:llm": "beforeModel"
  /** Of oneringai. */
  readonly "after:llm": "afterModel"
  /** Of oneringai. */
  readonly "before:tool": "beforeTool"
  /** Of oneringai. */
  readonly "approve:tool": "approveTool"
  /** Of oneringai. */
  readonly "after:tool": "afterTool"
  /** Of oneringai. */
  readonly "pause:check": "pauseCheck"
  /** Of Karl. */
  readonly "pre-task": "beforeExecution"
  /** Of Karl. */
  readonly "post-task": "afterExecution"
  /** Of Karl. */
  readonly "pre-tool": "beforeTool"
  /** Of Karl. */
  readonly "post-tool": "afterTool"
  /** Of Karl. */
  readonly "on-error": "onError"
}

type Names = { readonly [P in Hook.Point]: P } & HookAliases

/**
 * The name of a point, in this library or in another system.
 *
 * @category models
 * @since 0.2.0
 */
export type HookName = keyof Names

/**
 * The point that a name means.
 *
 * @category models
 * @since 0.2.0
 */
export type PointOf<N extends HookName> = Names[N]

/**
 * Hooks as functions, by the name of their point: one function, or several that run in order.
 *
 * @category options
 * @since 0.2.0
 */
export type HookFunctions = {
  readonly [N in HookName]?: HookFunction<Names[N]> | ReadonlyArray<HookFunction<Names[N]>>
}

const pointOf: Names = {
  beforeExecution: "beforeExecution",
  afterExecution: "afterExecution",
  onError: "onError",
  pauseCheck: "pauseCheck",
  beforeModel: "beforeModel",
  afterModel: "afterModel",
  beforeTool: "beforeTool",
  approveTool: "approveTool",
  afterTool: "afterTool",
  prepareNextTurn: "prepareNextTurn",
  shouldStopAfterTurn: "shouldStopAfterTurn",
  transformMessages: "transformMessages",
  toModelMessages: "toModelMessages",
  steering: "steering",
  followUp: "followUp",
  "before:execution": "beforeExecution",
  "after:execution": "afterExecution",
  "before:llm": "beforeModel",
  "after:llm": "afterModel",
  "before:tool": "beforeTool",
  "approve:tool": "approveTool",
  "after:tool": "afterTool",
  "pause:check": "pauseCheck",
  "pre-task": "beforeExecution",
  "post-task": "afterExecution",
  "pre-tool": "beforeTool",
  "post-tool": "afterTool",
  "on-error": "onError"
}

const isName = (name: string): name is HookName => Object.hasOwn(pointOf, name)

type Making = {
  readonly [P in Hook.Point]: (run: HookFunction<P>, options: { readonly name?: string }) => Hook.Runnable
}

const making: Making = {
  beforeExecution: (run, options) => Hook.beforeExecution(effectful(run), options),
  afterExecution: (run, options) => Hook.afterExecution(effectful(run), options),
  onError: (run, options) => Hook.onError(effectful(run), options),
  pauseCheck: (run, options) => Hook.pauseCheck(effectful(run), options),
  beforeModel: (run, options) => Hook.beforeModel(effectful(run), options),
  afterModel: (run, options) => Hook.afterModel(effectful(run), options),
  beforeTool: (run, options) => Hook.beforeTool(effectful(run), options),
  approveTool: (run, options) => Hook.approveTool(effectful(run), options),
  afterTool: (run, options) => Hook.afterTool(effectful(run), options),
  prepareNextTurn: (run, options) => Hook.prepareNextTurn(effectful(run), options),
  shouldStopAfterTurn: (run, options) => Hook.shouldStopAfterTurn(effectful(run), options),
  transformMessages: (run, options) => Hook.transformMessages(effectful(run), options),
  toModelMessages: (run, options) => Hook.toModelMessages(effectful(run), options),
  steering: (run, options) => Hook.steering(effectful(run), options),
  followUp: (run, options) => Hook.followUp(effectful(run), options)
}

const effectful =
  <I, O>(run: (input: I, context: HookContext) => O | PromiseLike<O>) =>
  (input: I): Effect.Effect<O, PromiseRejected> =>
    Awaited.call((signal) => run(input, { signal }))

/** Makes the hook of a function. It has the name of the function, if that differs from the name of the point. */
export const make = <N extends HookName>(name: N, run: HookFunction<Names[N]>): Hook.Runnable =>
  making[pointOf[name]](run, run.name === "" || run.name === name ? {} : { name: run.name })

/** Makes the hooks of functions, in the order of their names. */
export const makeAll = (functions: HookFunctions): ReadonlyArray<Hook.Runnable> =>
  Object.keys(functions).flatMap((name) => (isName(name) ? makeEach(name, functions[name]) : []))

const makeEach = <N extends HookName>(name: N, given: HookFunctions[N]): ReadonlyArray<Hook.Runnable> => {
  if (given === undefined) return []
  return typeof given === "function" ? [make(name, given)] : given.map((run) => make(name, run))
}

/** Checks hook functions that plain JavaScript may get wrong. */
export const faultsOf = (functions: object): ReadonlyArray<string> =>
  Object.entries(functions).flatMap(([name, given]) => {
    if (!isName(name)) return [`hooks: ${noName(name)}`]
    const all: ReadonlyArray<unknown> = Array.isArray(given) ? given : [given]
    const isGood = given === undefined || all.every(Predicate.isFunction)
    return isGood ? [] : [`hooks[${JSON.stringify(name)}]: expected a function, or a list of functions`]
  })

/** Says that no point has the name, and suggests another. */
export const noName = (name: string): string => {
  const nearest = NearestName.of(name, Object.keys(pointOf))
  const advice =
    nearest === undefined ? `Points: ${Object.keys(Hook.points).join(", ")}` : `Did you mean ${nearest}?`
  return `there is no point ${JSON.stringify(name.slice(0, 100))}. ${advice}`
}
