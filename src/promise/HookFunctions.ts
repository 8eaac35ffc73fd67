/**
 * Hooks as plain functions, by the name of their point.
 */
import type * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Hook from "../Hook.ts"
import * as NearestName from "../internal/nearestName.ts"
import type { PromiseRejected } from "../Tool.ts"
import * as Awaited from "./internal/Awaited.ts"
import * as Returns from "./HookReturns.ts"

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
 * throws, or whose promise rejects, has failed: `Hook` lists the consequences at each point. `Other` is the type of the returns of another
 * system, which the function may have beside those of the point.
 *
 * @category models
 * @since 0.2.0
 */
export type HookFunction<P extends Hook.Point, Other = never> = (
  input: Hook.Input<P>,
  context: HookContext
) => Hook.Output<P> | Other | void | PromiseLike<Hook.Output<P> | Other | void>

/**
 * The names of hooks in other systems, and the points of this library that they mean.
 *
 * **Gotchas**
 *
 * Inputs are those of the point. So are outputs, and under the names of oneringai and pi a hook may return `HookReturns` too.
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
  /** Of pi. */
  readonly session_before_compact: "beforeCompaction"
  /** Of pi. */
  readonly session_compact: "afterCompaction"
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
  readonly [N in HookName]?: NamedHook<N> | ReadonlyArray<NamedHook<N>>
}

/**
 * A hook under one name.
 *
 * **Details**
 *
 * Under a name of oneringai or pi it may return as there: see `HookReturns`.
 *
 * @category models
 * @since 0.2.0
 */
export type NamedHook<N extends HookName> = HookFunction<
  PointOf<N>,
  N extends keyof Returns.HookReturns ? Returns.HookReturns[N] : never
>

const isName = (name: string): name is HookName => Object.hasOwn(making, name)

type Named = { readonly name?: string }

type Making = { readonly [N in HookName]: (run: NamedHook<N>, options: Named) => Hook.Runnable }

const points = {
  beforeExecution: (run: HookFunction<"beforeExecution">, named: Named) =>
    Hook.beforeExecution(effectful(run), named),
  afterExecution: (run: HookFunction<"afterExecution">, named: Named) =>
    Hook.afterExecution(effectful(run), named),
  onError: (run: HookFunction<"onError">, named: Named) => Hook.onError(effectful(run), named),
  pauseCheck: (run: HookFunction<"pauseCheck">, named: Named) => Hook.pauseCheck(effectful(run), named),
  beforeModel: (run: HookFunction<"beforeModel">, named: Named) => Hook.beforeModel(effectful(run), named),
  afterModel: (run: HookFunction<"afterModel">, named: Named) => Hook.afterModel(effectful(run), named),
  beforeCompaction: (run: HookFunction<"beforeCompaction">, named: Named) =>
    Hook.beforeCompaction(effectful(run), named),
  afterCompaction: (run: HookFunction<"afterCompaction">, named: Named) =>
    Hook.afterCompaction(effectful(run), named),
  beforeTool: (run: HookFunction<"beforeTool">, named: Named) => Hook.beforeTool(effectful(run), named),
  approveTool: (run: HookFunction<"approveTool">, named: Named) => Hook.approveTool(effectful(run), named),
  afterTool: (run: HookFunction<"afterTool">, named: Named) => Hook.afterTool(effectful(run), named),
  prepareNextTurn: (run: HookFunction<"prepareNextTurn">, named: Named) =>
    Hook.prepareNextTurn(effectful(run), named),
  shouldStopAfterTurn: (run: HookFunction<"shouldStopAfterTurn">, named: Named) =>
    Hook.shouldStopAfterTurn(effectful(run), named),
  transformMessages: (run: HookFunction<"transformMessages">, named: Named) =>
    Hook.transformMessages(effectful(run), named),
  toModelMessages: (run: HookFunction<"toModelMessages">, named: Named) =>
    Hook.toModelMessages(effectful(run), named),
  steering: (run: HookFunction<"steering">, named: Named) => Hook.steering(effectful(run), named),
  followUp: (run: HookFunction<"followUp">, named: Named) => Hook.followUp(effectful(run), named)
}

const making: Making = {
  ...points,
  "before:execution": points.beforeExecution,
  "after:execution": points.afterExecution,
  "before:llm": (run, named) => Hook.beforeModel(converted(run, Returns.ofModel), named),
  "after:llm": (run, named) => Hook.afterModel(converted(run, Returns.ofAnswer), named),
  "before:tool": (run, named) => Hook.beforeTool(converted(run, Returns.ofTool), named),
  "approve:tool": (run, named) => Hook.approveTool(converted(run, Returns.ofApproval), named),
  "after:tool": (run, named) => Hook.afterTool(converted(run, Returns.ofResult), named),
  "pause:check": points.pauseCheck,
  session_before_compact: (run, named) => Hook.beforeCompaction(converted(run, Returns.ofCompaction), named),
  session_compact: points.afterCompaction,
  "pre-task": points.beforeExecution,
  "post-task": points.afterExecution,
  "pre-tool": points.beforeTool,
  "post-tool": points.afterTool,
  "on-error": points.onError
}

const effectful =
  <I, O>(run: (input: I, context: HookContext) => O | PromiseLike<O>) =>
  (input: I): Effect.Effect<O, PromiseRejected> =>
    Awaited.call((signal) => run(input, { signal }))

/** A hook whose returns are converted. */
const converted =
  <I, O, A>(run: (input: I, context: HookContext) => O | PromiseLike<O>, convert: (returned: O) => A) =>
  (input: I): Effect.Effect<A, PromiseRejected> =>
    Awaited.call(async (signal) => convert(await run(input, { signal })))

/** Makes the hook of a function. It has the name of the function, if that differs from the name of the point. */
export const make = <N extends HookName>(name: N, run: NamedHook<N>): Hook.Runnable =>
  making[name](run, run.name === "" || run.name === name ? {} : { name: run.name })

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
  const nearest = NearestName.of(name, Object.keys(making))
  const advice =
    nearest === undefined ? `Points: ${Object.keys(Hook.points).join(", ")}` : `Did you mean ${nearest}?`
  return `there is no point ${JSON.stringify(name.slice(0, 100))}. ${advice}`
}
