/**
 * Runs the hooks of an application: in order, with a time limit, each failure where it belongs.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type * as AgentEvent from "./AgentEvent.ts"
import { HookFailed } from "./FailureReason.ts"
import * as FailureText from "./internal/failureText.ts"
import type * as Hook from "./Hook.ts"
import * as HookInput from "./internal/hookInput.ts"
import * as InvalidHook from "./internal/invalidHook.ts"
import * as HookOutput from "./internal/hookOutput.ts"
import type { RunOptions } from "./RunOptions.ts"
import { attempt, StopSignal } from "./internal/work.ts"

/** How a hook ended: with an opinion, without one, or badly. */
export type Verdict<P extends Hook.Point> =
  | { readonly _tag: "Said"; readonly output: Hook.Output<P> }
  | { readonly _tag: "Silent" }
  | { readonly _tag: "Failed"; readonly message: string }

/** Whether the hooks after this one are asked. */
export type Step = "next" | "stop"

/** The hooks as one run sees them: failure counters and metadata are its own. */
export interface RunHooks {
  readonly has: (point: Hook.Point) => boolean
  /** Asks the hooks of a point, in order, until `step` stops it. Isolated failures go to `onError`, by the mode. */
  readonly ask: <P extends Hook.Point, E = never>(
    point: P,
    input: () => Hook.Input<P>,
    step: (verdict: Verdict<P>) => Step | Effect.Effect<Step, E>
  ) => Effect.Effect<void, HookFailed | E>
}

export interface RunHooksOptions {
  readonly options: () => Pick<RunOptions, "hookFailureMode" | "hookTimeout" | "approvalTimeout">
  readonly onError: (event: Omit<AgentEvent.Body & { _tag: "HookError" }, "_tag">) => Effect.Effect<void>
}

export interface Service {
  /** Registrations are shared and persist; counters and disabling belong to a run. */
  readonly forRun: (options: RunHooksOptions) => RunHooks
  /** Adds a hook, from its next point on. Returns the id `unregister` takes. Dies when no point of a run has its name. */
  readonly register: <E, R>(hook: Hook.Hook<E, R>) => Effect.Effect<string, never, R>
  readonly unregister: (id: string) => Effect.Effect<boolean>
}

interface Registration {
  readonly id: string
  readonly point: Hook.Point
  readonly run: (input: any) => Effect.Effect<any, unknown>
}

/** In a row; then the hook is not asked again in this run. */
const maxConsecutiveErrors = 3
const defaultTimeout = Duration.seconds(5)

const guards: ReadonlySet<Hook.Point> = new Set<Hook.Point>(["beforeTool", "approveTool"])
const shapers: ReadonlySet<Hook.Point> = new Set<Hook.Point>([
  "prepareNextTurn",
  "shouldStopAfterTurn",
  "transformMessages",
  "toModelMessages",
  "steering",
  "followUp"
])
/** `hookFailureMode` is for these. A failing `afterTool` makes an error of the result, whatever the mode. */
const isIsolated = (point: Hook.Point): boolean =>
  !guards.has(point) && !shapers.has(point) && point !== "afterTool"

/**
 * A manager with these hooks, which a run asks after those of the manager around it: that one may be any implementation of
 * `Service`. What the hooks require becomes a requirement.
 */
export const make = <const Hooks extends ReadonlyArray<Hook.Hook>>(
  ...hooks: Hooks
): Effect.Effect<Service, never, Hook.Services<Hooks[number]>> =>
  Effect.contextWith((services: Context.Context<Hook.Services<Hooks[number]>>) => {
    const outer = Context.get(services, HookManager)
    const own: Array<Registration> = []
    const add = <E, R>(hook: Hook.Hook<E, R>, services: Context.Context<R>): Effect.Effect<string> =>
      Effect.map(InvalidHook.refuse(hook), () => {
        const id = `${hook.point}-${++idCount}`
        own.push({ id, point: hook.point, run: withServices(hook, services) })
        return id
      })
    const service: Service = {
      forRun: (options) => new Asking(outer.forRun(options), own, options),
      register: <E, R>(hook: Hook.Hook<E, R>) =>
        Effect.contextWith((services: Context.Context<R>) => add(hook, services)),
      unregister: (id) =>
        Effect.sync(() => {
          const index = own.findIndex((registration) => registration.id === id)
          return index !== -1 && own.splice(index, 1).length === 1
        })
    }
    const added = Effect.forEach(hooks, (hook) => add(hook, services), { discard: true })
    return Effect.as(added, service)
  })

// Unique across managers: a `HookError` names its hook by it.
let idCount = 0

const none: Service = {
  forRun: () => ({ has: () => false, ask: () => Effect.void }),
  register: () => Effect.die(new Error("No HookManager here: provide HookManager.layer()")),
  unregister: () => Effect.succeed(false)
}

/** No hooks by default. */
export const HookManager = Context.Reference<Service>("effect-agent/HookManager", {
  defaultValue: () => none
})

/**
 * Registers hooks for every run that sees the layer: those of `Loop`, and of agents made within it. Layers that are nested
 * add up; of several merged side by side, as in `Effect.provide([a, b])`, the last one counts, as with any service.
 */
export const layer = <const Hooks extends ReadonlyArray<Hook.Hook>>(
  ...hooks: Hooks
): Layer.Layer<never, never, Hook.Services<Hooks[number]>> => Layer.effect(HookManager, make(...hooks))

/** The hooks of one manager as one run asks them, after those around them, and how often each has failed in a row. */
class Asking implements RunHooks {
  private readonly outer: RunHooks
  private readonly own: ReadonlyArray<Registration>
  private readonly run: RunHooksOptions
  private readonly errorsInRow = new Map<string, number>()

  constructor(outer: RunHooks, own: ReadonlyArray<Registration>, run: RunHooksOptions) {
    this.outer = outer
    this.own = own
    this.run = run
  }

  has(point: Hook.Point): boolean {
    for (const registration of this.own) if (registration.point === point) return true
    return this.outer.has(point)
  }

  ask<P extends Hook.Point, E = never>(
    point: P,
    input: () => Hook.Input<P>,
    step: (verdict: Verdict<P>) => Step | Effect.Effect<Step, E>
  ): Effect.Effect<void, HookFailed | E> {
    return Effect.gen({ self: this }, function* () {
      // Before any hook is asked: those that come meanwhile are asked from the next point on.
      const own = this.own.filter((registration) => registration.point === point)
      let isStopped = false
      const note = (next: Step): Step => {
        isStopped = next === "stop"
        return next
      }
      const heard = (verdict: Verdict<P>) => {
        const stepped = step(verdict)
        return typeof stepped === "string" ? note(stepped) : Effect.map(stepped, note)
      }
      if (this.outer.has(point)) yield* this.outer.ask(point, input, heard)
      for (const registration of own) {
        if (isStopped) return
        const stepped = heard(yield* this.invoke(registration, point, input()))
        if (typeof stepped !== "string") yield* stepped
      }
    })
  }

  private invoke<P extends Hook.Point>({ id, run: hook }: Registration, point: P, input: Hook.Input<P>) {
    return Effect.gen({ self: this }, function* (): Effect.fn.Return<Verdict<P>, HookFailed> {
      if (this.errors(id) >= maxConsecutiveErrors) {
        return isIsolated(point) ? { _tag: "Silent" } : { _tag: "Failed", message: `hook ${id} is disabled` }
      }
      const returned = yield* limited(
        Effect.suspend(() => hook(HookInput.frozen(input))),
        timeoutOf(point, this.run.options())
      )
      const isSilent = Exit.isSuccess(returned) && returned.value === undefined
      const exit = Exit.isSuccess(returned) && !isSilent ? HookOutput.read(point, returned.value) : returned
      if (Exit.isSuccess(exit)) {
        this.errorsInRow.delete(id)
        return isSilent ? { _tag: "Silent" } : { _tag: "Said", output: exit.value }
      }
      const message = messageOf(exit.cause)
      yield* this.failed(point, id, message)
      return { _tag: "Failed", message }
    })
  }

  private failed(point: Hook.Point, id: string, message: string): Effect.Effect<void, HookFailed> {
    const consecutiveErrors = this.errors(id) + 1
    this.errorsInRow.set(id, consecutiveErrors)
    const mode = this.run.options().hookFailureMode ?? "warn"
    if (mode === "fail" && isIsolated(point))
      return Effect.fail(new HookFailed({ hook: point, detail: message }))
    if (mode === "ignore" && isIsolated(point)) return Effect.void
    return this.run.onError({
      hook: point,
      hookId: id,
      error: message,
      consecutiveErrors,
      disabled: consecutiveErrors >= maxConsecutiveErrors
    })
  }

  private errors(id: string): number {
    return this.errorsInRow.get(id) ?? 0
  }
}

/** Services of registration under the caller's: the caller's span and request-scoped services win. */
const withServices =
  <E, R>(hook: Hook.Hook<E, R>, services: Context.Context<R>) =>
  (input: any): Effect.Effect<unknown, E | string> => {
    const work: Effect.Effect<unknown, E, R> = hook.run(input)
    return Effect.isEffect(work)
      ? Effect.updateContext(work, (caller: Context.Context<never>) => Context.merge(services, caller))
      : Effect.fail(noEffect)
  }

const noEffect =
  "The hook returned no Effect. Return Effect.succeed(value), Effect.void, or Effect.promise(() => promise)."

const timeoutOf = (
  point: Hook.Point,
  options: Pick<RunOptions, "hookTimeout" | "approvalTimeout">
): Duration.Duration => {
  const input = point === "approveTool" ? (options.approvalTimeout ?? "Infinity") : options.hookTimeout
  return input === undefined ? defaultTimeout : Duration.fromInputUnsafe(input)
}

/**
 * Runs a hook in a fiber of its own: what no fiber can run would end the run's. A hook that ignores its time limit is left
 * behind, so that it cannot hold the run up.
 */
const limited = (
  effect: Effect.Effect<any, unknown>,
  timeout: Duration.Duration
): Effect.Effect<Exit.Exit<any, unknown>> =>
  Effect.map(attempt(new StopSignal(), effect, Duration.toMillis(timeout)), (ended) =>
    ended._tag === "Done" ? ended.exit : Exit.fail(`timed out after ${Duration.format(timeout)}`)
  )

const messageOf = (cause: Cause.Cause<unknown>): string => FailureText.of(Cause.squash(cause))
