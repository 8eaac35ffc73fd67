/**
 * Calls the hooks of one run, sequentially or concurrently. Each has a time limit, and is disabled after some failures in a row.
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
import type { HookManager, Registered } from "../HookManager.ts"
import * as HookOutput from "./hookOutput.ts"
import type { RunOptions } from "../RunOptions.ts"
import { attempt } from "./interruption.ts"

/** A hook that failed: the failure in words, and the name of the hook if it has one. */
export interface HookFailure {
  readonly detail: string
  readonly hookName?: string
}

/** How the hooks of a point fold into a state: the input, and what an output or a failure does. */
export interface Folding<P extends Hook.Point, S, E> {
  readonly input: (state: S) => Effect.Effect<Hook.Input<P>>
  /** The state after the output of a hook. A hook that returned nothing changes nothing. */
  readonly output: (state: S, output: Hook.Output<P>) => Effect.Effect<S, E>
  /** The state after a hook that failed. Default: an observer changes nothing, any other hook fails the run. */
  readonly failure?: (state: S, failure: HookFailure) => Effect.Effect<S, E>
  /** Whether no further hook is called. */
  readonly isDone?: (state: S) => boolean
  /** Whether an output denies the call, whatever other guards return. Default: none does. */
  readonly denies?: (output: Hook.Output<P>) => boolean
}

/** The result of one hook: its output, `undefined` if it returned nothing, or its failure, which is a `HookFailed` if it fails the run. */
type Called<P extends Hook.Point> = Result.Result<Hook.Output<P> | undefined, HookFailure | HookFailed>

/** The parts of a run that calls of hooks need. The hooks are those of the agent that the conversation is with. */
export interface Run {
  readonly team: { readonly active: { readonly hooks: HookManager } }
  readonly options: RunOptions
  readonly emit: (event: AgentEvent.Body) => void
}

/** The failures in a row after which a run does not call a hook again. */
const defaultMaxErrors = 3

const defaultTimeouts = { hookTimeout: Duration.seconds(5), approvalTimeout: Duration.infinity }

/** The hooks of one run, with its own counts of failures. */
export class RunHooks {
  private readonly run: Run
  /** The failures of each hook in a row, by its id. `HookManager.enable` raises its revision, so that they count from 0. */
  private readonly errorsInRow = new Map<string, { readonly revision: number; readonly count: number }>()
  /** The time of all calls of hooks in milliseconds. The times of hooks that ran concurrently add up. */
  millis = 0

  constructor(run: Run) {
    this.run = run
  }

  /** The hooks that the run does not call again, since they failed too often in a row. */
  get disabled(): ReadonlyArray<Registered> {
    return this.run.team.active.hooks.list().filter((hook) => this.errorsOf(hook) >= this.maxErrors)
  }

  private get maxErrors(): number {
    return this.run.options.maxConsecutiveHookErrors ?? defaultMaxErrors
  }

  private errorsOf({ id, revision = 0 }: Pick<Registered, "id" | "revision">): number {
    const known = this.errorsInRow.get(id)
    return known?.revision === revision ? known.count : 0
  }

  has(point: Hook.Point): boolean {
    const listed = this.run.team.active.hooks.list()
    return listed.some((hook) => isAt(point, hook))
  }

  private at<P extends Hook.Point>(point: P): ReadonlyArray<Registered<P>> {
    return this.run.team.active.hooks.list().flatMap((hook) => (isAt(point, hook) ? [hook] : []))
  }

  /** Calls the hooks of a point. `use` gets the output of each, and returns `"stop"` to skip the later ones. */
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
    { denies, failure, input, isDone, output }: Folding<P, S, E>
  ): Effect.Effect<S, HookFailed | TransformFailed | E> {
    return Effect.gen({ self: this }, function* () {
      let state = initial
      const hooks = this.at(point)
      const isTogether =
        hooks.length > 1 && kindOf(point) !== "shaper" && this.run.options.hookExecution === "parallel"
      const calls = hooks.map((hook) =>
        Effect.flatMap(
          Effect.suspend(() => input(state)),
          (given) => this.call(point, hook, given)
        )
      )
      const early = isTogether ? yield* together(point, calls, denies) : undefined
      for (const next of early ?? calls) {
        if (isDone?.(state) === true) break
        const result = Effect.isEffect(next) ? yield* next : next
        if (Result.isSuccess(result)) {
          if (result.success !== undefined) state = yield* output(state, result.success)
        } else if (result.failure instanceof HookFailed) return yield* result.failure
        else if (failure !== undefined) state = yield* failure(state, result.failure)
        else if (!isObserver(point)) return yield* new TransformFailed({ hook: point, ...result.failure })
      }
      return state
    })
  }

  /** Calls one hook within its time limit. A hook that a stop of the run interrupted counts as one that returned nothing. */
  private call<P extends Hook.Point>(
    point: P,
    hook: Registered<P>,
    input: Hook.Input<P>
  ): Effect.Effect<Called<P>> {
    return Effect.gen({ self: this }, function* () {
      const failed = (detail: string): HookFailure =>
        hook.name === undefined ? { detail } : { detail, hookName: hook.name }
      const max = this.maxErrors
      if (this.errorsOf(hook) >= max)
        return isObserver(point)
          ? Result.succeed(undefined)
          : Result.fail(failed(`it is disabled after ${max} failures in a row`))
      const limit = timeLimit(point, this.run.options)
      const until = Duration.isFinite(limit) ? Effect.sleep(limit) : undefined
      const work = attempt(returned(hook, input), { until })
      const [took, ended] = yield* Effect.timed(work)
      this.millis += Duration.toMillis(took)
      if (ended._tag === "Halted") return Result.succeed(undefined)
      const output =
        ended._tag === "Done"
          ? outputOf(point, ended.exit)
          : Result.fail(`timed out after ${Duration.format(limit)}`)
      const count = Result.isSuccess(output) ? 0 : this.errorsOf(hook) + 1
      this.errorsInRow.set(hook.id, { revision: hook.revision ?? 0, count })
      if (Result.isSuccess(output)) {
        if (this.run.options.history?.mode === "full") this.run.emit(executed(hook, input, took))
        return Result.succeed(output.success)
      }
      return Result.fail(this.reported(point, hook.id, failed(FailureText.of(output.failure)), count))
    })
  }

  /** Emits `HookError` for a failure. For an observer, `hookFailureMode` may ignore it, or make it the `HookFailed` that fails the run. */
  private reported(
    point: Hook.Point,
    hookId: string,
    failure: HookFailure,
    consecutiveErrors: number
  ): HookFailure | HookFailed {
    const mode = isObserver(point) ? this.run.options.hookFailureMode : "warn"
    if (mode === "fail") return new HookFailed({ hook: point, ...failure })
    if (mode === "ignore") return failure
    const { detail: error, ...named } = failure
    const disabled = consecutiveErrors >= this.maxErrors
    this.run.emit({ _tag: "HookError", hook: point, hookId, ...named, error, consecutiveErrors, disabled })
    return failure
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

const kindOf = (point: Hook.Point): Hook.Kind => Hook.points[point].kind

const isObserver = (point: Hook.Point): boolean => kindOf(point) === "observer"

/**
 * Calls hooks concurrently. The first guard that denies interrupts the others, and only its result counts. Otherwise all results count, in
 * the order of the hooks, with failures last: the output of another hook must not hide a failure.
 */
const together = <P extends Hook.Point>(
  point: P,
  calls: ReadonlyArray<Effect.Effect<Called<P>>>,
  denies: (output: Hook.Output<P>) => boolean = () => false
): Effect.Effect<ReadonlyArray<Called<P>>> => {
  const allowed = (result: Called<P>): Effect.Effect<Called<P>, Called<P>> => {
    const hasDenied = Result.isFailure(result) || (result.success !== undefined && denies(result.success))
    return kindOf(point) === "guard" && hasDenied ? Effect.fail(result) : Effect.succeed(result)
  }
  return Effect.forEach(calls, Effect.flatMap(allowed), { concurrency: "unbounded" }).pipe(
    Effect.map((results) => [...results.filter(Result.isSuccess), ...results.filter(Result.isFailure)]),
    Effect.catch((denial) => Effect.succeed([denial]))
  )
}

/** Calls a hook with a copy of its input. Fails if it returns no Effect. */
const returned = <P extends Hook.Point>(
  hook: Registered<P>,
  input: Hook.Input<P>
): Effect.Effect<unknown, unknown> =>
  Effect.suspend(() => {
    const work = hook.run(HookOutput.frozen(input))
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

const timeLimit = (point: Hook.Point, options: RunOptions): Duration.Duration => {
  const option = Hook.points[point].timeLimit
  return Duration.fromInputUnsafe(options[option] ?? defaultTimeouts[option])
}
