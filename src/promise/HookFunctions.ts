/**
 * Hooks as plain functions, by the name of their point, with what those of oneringai and pi return.
 */
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Hook from "../Hook.ts"
import * as NearestName from "../internal/nearestName.ts"
import * as Tool from "../Tool.ts"
import * as Message from "../Message.ts"
import * as FailureText from "../internal/failureText.ts"

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
  N extends keyof HookReturns ? HookReturns[N] : never
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
  "before:llm": (run, named) => Hook.beforeModel(converted(run, ofModel), named),
  "after:llm": (run, named) => Hook.afterModel(converted(run, ofAnswer), named),
  "before:tool": (run, named) => Hook.beforeTool(converted(run, ofTool), named),
  "approve:tool": (run, named) => Hook.approveTool(converted(run, ofApproval), named),
  "after:tool": (run, named) => Hook.afterTool(converted(run, ofResult), named),
  "pause:check": points.pauseCheck,
  session_before_compact: (run, named) => Hook.beforeCompaction(converted(run, ofCompaction), named),
  session_compact: points.afterCompaction,
  "pre-task": points.beforeExecution,
  "post-task": points.afterExecution,
  "pre-tool": points.beforeTool,
  "post-tool": points.afterTool,
  "on-error": points.onError
}

const effectful =
  <I, O>(run: (input: I, context: HookContext) => O | PromiseLike<O>) =>
  (input: I): Effect.Effect<O, Tool.PromiseRejected> =>
    awaited((signal) => run(input, { signal }))

/** A hook whose returns are converted. */
const converted =
  <I, O, A>(run: (input: I, context: HookContext) => O | PromiseLike<O>, convert: (returned: O) => A) =>
  (input: I): Effect.Effect<A, Tool.PromiseRejected> =>
    awaited(async (signal) => convert(await run(input, { signal })))

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

// ───────────────────────── The values that hooks of other libraries return

/**
 * The return of a `before:llm` hook of oneringai that changes the request.
 *
 * @category models
 * @since 0.2.0
 */
export interface LlmModification {
  /** Whether the run fails without the model call. Default: `false`. */
  readonly skip?: boolean
  /** The detail of the error of a call that is skipped. Default: a text that says that a hook skipped the call. */
  readonly reason?: string
  /** The options that the hook changes. */
  readonly modified: {
    /** The id of the model. Default: as it is. */
    readonly model?: string
    /** The system prompt. Default: as it is. */
    readonly instructions?: string
    /** The randomness of the answer. Default: as it is. */
    readonly temperature?: number
    /** The most tokens of the answer. Default: as it is. */
    readonly max_output_tokens?: number
  }
}

/**
 * The return of a `before:tool` hook of oneringai.
 *
 * @category models
 * @since 0.2.0
 */
export interface ToolModification {
  /** The arguments of the call as JSON text. Default: as they are. The run ignores `name`: a hook cannot choose another tool. */
  readonly modified?: { readonly function?: { readonly name?: string; readonly arguments: string } }
  /** Whether the hook stands in for the tool. Default: `false`. */
  readonly skip?: boolean
  /** The result of a call that is skipped. Default: an empty text. */
  readonly mockResult?: unknown
  /** A note for readers of the code. The run does not use it. */
  readonly reason?: string
}

/**
 * The return of an `approve:tool` hook of oneringai.
 *
 * @category models
 * @since 0.2.0
 */
export interface ApprovalResult {
  /** Whether the call may run. */
  readonly approved: boolean
  /** The reason of a rejection, in the text of the result. Default: "not approved". */
  readonly reason?: string
  /** The arguments of a call that may run. Default: as they are. */
  readonly modifiedArgs?: Schema.Json
}

/**
 * The return of an `after:tool` hook of oneringai.
 *
 * @category models
 * @since 0.2.0
 */
export interface ToolResultModification {
  /** The result in place of the tool's: its content, or the text of an error. Default: as it is. */
  readonly modified?: { readonly content?: unknown; readonly error?: string }
  /** Whether the tool runs again. Default: `false`. */
  readonly retry?: boolean
  /** A note for readers of the code. The run does not use it. */
  readonly reason?: string
}

/**
 * The return of a `session_before_compact` hook of pi.
 *
 * @category models
 * @since 0.2.0
 */
export interface CompactionVerdict {
  /** Whether the run skips the compaction. Default: `false`. */
  readonly cancel?: boolean
}

/**
 * The returns that hooks of oneringai and pi have beside those of their point, by the names of the hooks.
 *
 * @category models
 * @since 0.2.0
 */
export interface HookReturns {
  /** Changes the request. */
  readonly "before:llm": LlmModification
  /** Takes no changes. */
  readonly "after:llm": Record<string, never>
  /** Changes or skips the call. */
  readonly "before:tool": ToolModification
  /** Approves or rejects the call, with other arguments. */
  readonly "approve:tool": ApprovalResult
  /** Changes the result, or has the tool run again. */
  readonly "after:tool": ToolResultModification
  /** Skips the compaction. */
  readonly session_before_compact: CompactionVerdict
}

const has =
  <A>(...members: ReadonlyArray<string>) =>
  (returned: unknown): returned is A =>
    Predicate.isObject(returned) && members.some((name) => Object.hasOwn(returned, name))

const isLlm = has<LlmModification>("modified")
const isTool = has<ToolModification>("modified", "mockResult")
const isPlainApproval = (returned: unknown): returned is Hook.Output<"approveTool"> | void =>
  !Predicate.hasProperty(returned, "modifiedArgs")
const isVerdict = (returned: unknown): returned is CompactionVerdict =>
  Predicate.isObject(returned) && !Object.hasOwn(returned, "skip")
const isResult = has<ToolResultModification>("modified", "reason")

export const ofModel = (
  returned: Hook.Output<"beforeModel"> | LlmModification | void
): Hook.Output<"beforeModel"> | void => {
  if (!isLlm(returned)) return returned
  const { modified, reason, skip, ...unknown } = returned
  if (skip === true) return { ...unknown, skip, ...(reason === undefined ? {} : { reason }) }
  const { instructions, max_output_tokens: maxTokens, ...others } = modified
  return {
    ...unknown,
    modified: {
      ...others,
      ...(instructions === undefined ? {} : { system: instructions }),
      ...(maxTokens === undefined ? {} : { maxTokens })
    }
  }
}

/** The point takes nothing, and refuses members. */
export const ofAnswer: (returned: Record<string, never> | void) => void = identity

export const ofTool = (
  returned: Hook.Output<"beforeTool"> | ToolModification | void
): Hook.Output<"beforeTool"> | void => {
  if (!isTool(returned)) return returned
  const theirs: ToolModification = returned
  const { mockResult, modified, reason: _, skip, ...others } = theirs
  if (skip === true) return { ...others, skip, result: Tool.render(mockResult ?? "") }
  const text = modified?.function?.arguments
  return text === undefined ? others : { ...others, params: paramsOf(text) }
}

/** A text that is not JSON is no params, which the tool refuses. */
const paramsOf = (text: string): Schema.Json => Option.getOrElse(decodeJson(text), () => text)

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))

export const ofApproval = (
  returned: Hook.Output<"approveTool"> | ApprovalResult | void
): Hook.Output<"approveTool"> | void => {
  if (isPlainApproval(returned)) return returned
  const { approved, modifiedArgs: params, ...others } = returned
  if (!approved) return { ...others, approved }
  return { ...others, approved, ...(params === undefined ? {} : { params }) }
}

export const ofResult = (
  returned: Hook.Output<"afterTool"> | ToolResultModification | void
): Hook.Output<"afterTool"> | void => {
  if (!isResult(returned)) return returned
  const { modified = {}, reason: _, ...others } = returned
  const { content, error } = modified
  if (error !== undefined) return { ...others, content: [Message.text(error)], isError: true }
  if (content === undefined) return others
  const rendered = Tool.render(content)
  const failed = rendered.isError === undefined ? {} : { isError: rendered.isError }
  return { ...others, content: rendered.content, ...failed }
}

export const ofCompaction = (
  returned: Hook.Output<"beforeCompaction"> | CompactionVerdict | void
): Hook.Output<"beforeCompaction"> | void => {
  if (!isVerdict(returned)) return returned
  const { cancel = false, ...others } = returned
  return { ...others, skip: cancel }
}

/** Calls a function and waits for its promise. Interruption aborts the signal of the function. */
export const awaited = <A>(
  run: (signal: AbortSignal) => A | PromiseLike<A>
): Effect.Effect<A, Tool.PromiseRejected> =>
  Effect.tryPromise({
    try: async (signal) => run(signal),
    catch: (thrown) => new Tool.PromiseRejected({ detail: FailureText.of(thrown), thrown })
  })
