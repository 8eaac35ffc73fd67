/**
 * Constructors of hooks.
 */
import * as Effect from "effect/Effect"
import type * as Tool from "../Tool.ts"

/**
 * A hook of one point: its input, its output, its failure and the services that it requires.
 *
 * @since 0.1.0
 * @category models
 */
export interface HookOf<out P extends string, in I, out O, out E, out R> {
  /** The point at which runs call the hook. */
  readonly point: P
  /** Names the hook in `HookError`, in errors, and in the result of a call that it rejects by a failure. */
  readonly name?: string
  /** Handles one call of the hook. */
  readonly run: (input: I) => Effect.Effect<O | void, E, R>
}

/**
 * Options of the constructors of hooks.
 *
 * @since 0.2.0
 * @category options
 */
export interface Options {
  /** Names the hook in `HookError`, in errors, and in the result of a call that it rejects by a failure. Default: no name. */
  readonly name?: string
}

/** The constructor of a point with these inputs and outputs. */
export const constructor =
  <P extends string, I, O>(point: P) =>
  <E = never, R = never>(
    run: (input: I) => Effect.Effect<O | void, E, R>,
    { name }: Options = {}
  ): HookOf<P, I, O, E, R> => ({ point, run, ...(name === undefined ? {} : { name }) })

interface ToolInput {
  readonly tool: Tool.Any
  readonly params: unknown
}

/**
 * The input of a hook that is bound to a tool: `params` has the type of the tool's schema.
 *
 * @since 0.2.0
 * @category utility types
 */
export type Bound<I extends ToolInput, Params> = Omit<I, "params"> & { readonly params: Params }

/** The constructor of a point at which a tool is known. It also takes a tool that the hook is bound to. */
export const toolConstructor = <P extends string, I extends ToolInput, O>(point: P) => {
  const make = constructor<P, I, O>(point)
  function makeBound<E = never, R = never>(
    run: (input: I) => Effect.Effect<O | void, E, R>,
    options?: Options
  ): HookOf<P, I, O, E, R>
  function makeBound<Params, E = never, R = never>(
    tool: Tool.Tool<string, Params, any, any, any>,
    run: (input: Bound<I, Params>) => Effect.Effect<O | void, E, R>,
    options?: Options
  ): HookOf<P, I, O, E, R>
  function makeBound<E, R>(
    first: Tool.Any | Run<O, E, R>,
    second: Run<O, E, R> | Options = {},
    third?: Options
  ) {
    if (typeof first !== "object") return make(first, typeof second === "object" ? second : third)
    return make(boundTo(first, typeof second === "object" ? noFunction : second), third)
  }
  return makeBound
}

type Run<O, E, R> = (input: any) => Effect.Effect<O | void, E, R>

const noFunction = () => Effect.die(new TypeError("The hook has no function to run"))

/** Calls a hook for the calls of one tool. Another tool of its name may have other params: the hook fails for its calls. */
const boundTo =
  <O, E, R>(tool: Tool.Any, run: Run<O, E, R>) =>
  (input: ToolInput): Effect.Effect<O | void, E, R> => {
    if (input.tool.name !== tool.name) return Effect.void
    if (input.tool.decode === tool.decode) return run(input)
    return Effect.die(
      new Error(
        `The hook is bound to another tool named ${tool.name}. Give the hook the tool that is registered, or a copy of it`
      )
    )
  }
