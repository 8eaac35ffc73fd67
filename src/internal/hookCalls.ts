/**
 * Calls the hooks of one run: one after another, each with a time limit, and each disabled after three failures in a row.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import type * as AgentEvent from "../AgentEvent.ts"
import { HookFailed, TransformFailed } from "./failureReason.ts"
import * as FailureText from "./failureText.ts"
import * as Hook from "../Hook.ts"
import * as HookInput from "./hookInput.ts"
import type { HookManager, Registered } from "../HookManager.ts"
import * as HookOutput from "./hookOutput.ts"
import type { RunOptions } from "../RunOptions.ts"
import { attempt } from "./interruption.ts"

/** A hook that failed: the failure in words, and the name of the hook if it has one. */
export interface HookFailure {
  readonly detail: string
  readonly hookName?: string
}

/** How the hooks of a point change a state, one after another. */
export interface Asking<P extends Hook.Point, S, E> {
  readonly input: (state: S) => Effect.Effect<Hook.Input<P>>
  /** The state after a hook that returned something. One that returned nothing changes nothing. */
  readonly output: (state: S, output: Hook.Output<P>) => Effect.Effect<S, E>
  /** The state after a hook that failed. Default: an observer changes nothing, any other hook fails the run. */
  readonly failure?: (state: S, failure: HookFailure) => Effect.Effect<S, E>
  /** Whether no further hook is called. */
  readonly isDone?: (state: S) => boolean
}

/** The run whose hooks are called. */
export interface Run {
  readonly options: () => Pick<
    RunOptions,
    "approvalTimeout" | "history" | "hookExecution" | "hookFailureMode" | "hookTimeout"
  >
  readonly emit: (event: AgentEvent.Body) => void
}

/** Failures in a row. After them, the run does not call the hook again. */
const maxErrors = 3

const tooManyErrors = `it is disabled after ${maxErrors} failures in a row`

const defaultTimeouts = { hookTimeout: Duration.seconds(5), approvalTimeout: Duration.infinity }

/** The hooks of one run, with its own counts of failures. */
export class RunHooks {
  /** Of the agent that the conversation is with. */
  private readonly manager: () => HookManager
  private readonly run: Run
  /** By the id of the hook. */
  private readonly errorsInRow = new Map<string, number>()
  /** Time of all calls, in milliseconds. Those of hooks that ran side by side add up. */
  millis = 0

  constructor(manager: () => HookManager, run: Run) {
    this.manager = manager
    this.run = run
  }

  /** Whether the point has a hook. */
  has(point: Hook.Point): boolean {
    return this.manager()
      .list()
      .some((hook) => isAt(point, hook))
  }

  /** Calls the hooks of a point. `use` takes what each returned, and may keep those after it from being called. */
  each<P extends Hook.Point>(
    point: P,
    input: () => Hook.Input<P>,
    use: (output: Hook.Output<P>) => "next" | "stop" | void = () => {}
  ): Effect.Effect<void, HookFailed | TransformFailed> {
    return Effect.asVoid(
      this.ask<P, "next" | "stop" | void>(point, "next", {
        input: () => Effect.sync(input),
        output: (_, output) => Effect.sync(() => use(output)),
        isDone: (step) => step === "stop"
      })
    )
  }

  /**
   * Calls the hooks of a point, in order. Hooks that are registered meanwhile run from the next point on. Fails with
   * `HookFailed` for an observer that failed, with `hookFailureMode: "fail"`, and with `TransformFailed` for a shaper.
   */
  ask<P extends Hook.Point, S, E = never>(
    point: P,
    initial: S,
    { failure, input, isDone, output }: Asking<P, S, E>
  ): Effect.Effect<S, HookFailed | TransformFailed | E> {
    return Effect.gen({ self: this }, function* () {
      let state = initial
      const hooks = this.manager()
        .list()
        .flatMap((hook) => (isAt(point, hook) ? [hook] : []))
      const isParallel = isObserver(point) && this.run.options().hookExecution === "parallel"
      const early = isParallel ? yield* this.callAll(point, hooks, yield* input(state)) : []
      for (const [index, hook] of hooks.entries()) {
        if (isDone?.(state) === true) break
        const result = yield* early[index] ?? this.call(point, hook, yield* input(state))
        if (Result.isSuccess(result)) {
          if (result.success !== undefined) state = yield* output(state, result.success)
        } else if (failure !== undefined) state = yield* failure(state, result.failure)
        else if (!isObserver(point)) return yield* new TransformFailed({ hook: point, ...result.failure })
      }
      return state
    })
  }

  /** Calls hooks side by side, and waits for all of them. */
  private callAll<P extends Hook.Point>(point: P, hooks: ReadonlyArray<Registered<P>>, input: Hook.Input<P>) {
    return Effect.forEach(hooks, (hook) => Effect.exit(this.call(point, hook, input)), {
      concurrency: "unbounded"
    })
  }

  /**
   * Calls one hook for as long as its time limit allows. Returns its output, `undefined` if it returned nothing, or its failure
   * in words.
   */
  private call<P extends Hook.Point>(point: P, hook: Registered<P>, input: Hook.Input<P>) {
    return Effect.gen({ self: this }, function* () {
      const failed = (detail: string): HookFailure =>
        hook.name === undefined ? { detail } : { detail, hookName: hook.name }
      const errors = () => this.errorsInRow.get(hook.id) ?? 0
      if (errors() >= maxErrors)
        return isObserver(point) ? Result.succeed(undefined) : Result.fail(failed(tooManyErrors))
      const limit = timeLimit(point, this.run.options())
      const work = attempt(returned(hook, input), { timeout: Duration.toMillis(limit) })
      const [took, ended] = yield* Effect.timed(work)
      this.millis += Duration.toMillis(took)
      const output =
        ended._tag === "Done"
          ? outputOf(point, ended.exit)
          : Result.fail(`timed out after ${Duration.format(limit)}`)
      this.errorsInRow.set(hook.id, Result.isSuccess(output) ? 0 : errors() + 1)
      if (Result.isSuccess(output)) {
        if (this.run.options().history?.mode === "full") this.run.emit(executed(hook, input, took))
        return output
      }
      const failure = failed(FailureText.of(output.failure))
      yield* this.report(point, hook.id, failure, errors())
      return Result.fail(failure)
    })
  }

  /** Reports a failure, unless the point and `hookFailureMode` say otherwise. */
  private report(
    point: Hook.Point,
    hookId: string,
    failure: HookFailure,
    consecutiveErrors: number
  ): Effect.Effect<void, HookFailed> {
    const mode = isObserver(point) ? this.run.options().hookFailureMode : "warn"
    if (mode === "fail") return Effect.fail(new HookFailed({ hook: point, ...failure }))
    if (mode === "ignore") return Effect.void
    const { detail: error, ...named } = failure
    const disabled = consecutiveErrors >= maxErrors
    this.run.emit({ _tag: "HookError", hook: point, hookId, ...named, error, consecutiveErrors, disabled })
    return Effect.void
  }
}

const executed = (
  { id: hookId, name: hookName, point: hook }: Pick<Registered<Hook.Point>, "id" | "name" | "point">,
  input: Hook.Input<Hook.Point>,
  took: Duration.Duration
): AgentEvent.Body => ({
  _tag: "HookExecuted",
  hook,
  hookId,
  ...(hookName === undefined ? {} : { hookName }),
  ...("call" in input ? { toolCallId: input.call.id, toolName: input.call.name } : {}),
  durationMs: Duration.toMillis(took)
})

const isAt = <P extends Hook.Point>(
  point: P,
  hook: { readonly point: Hook.Point; readonly isEnabled: boolean }
): hook is Registered<P> => hook.isEnabled && hook.point === point

const isObserver = (point: Hook.Point): boolean => Hook.points[point].kind === "observer"

/** Calls a hook with a copy of its input. Fails if it returns no Effect. */
const returned = <P extends Hook.Point>(
  hook: Registered<P>,
  input: Hook.Input<P>
): Effect.Effect<unknown, unknown> =>
  Effect.suspend(() => {
    const work = hook.run(HookInput.frozen(input))
    return Effect.isEffect(work) ? work : Effect.fail(noEffect)
  })

const noEffect =
  "The hook returned no Effect. Return Effect.succeed(value), Effect.void, or Effect.promise(() => promise)."

const outputOf = <P extends Hook.Point>(
  point: P,
  exit: Exit.Exit<unknown, unknown>
): Result.Result<Hook.Output<P> | undefined, unknown> => {
  if (Exit.isFailure(exit)) return Result.fail(Cause.squash(exit.cause))
  return exit.value === undefined
    ? Result.succeed(undefined)
    : HookOutput.read(Hook.points[point].output, exit.value)
}

const timeLimit = (point: Hook.Point, options: ReturnType<Run["options"]>): Duration.Duration => {
  const option = Hook.points[point].timeLimit
  return Duration.fromInputUnsafe(options[option] ?? defaultTimeouts[option])
}
