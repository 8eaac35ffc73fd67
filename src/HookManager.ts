/**
 * The hooks that runs call.
 *
 * **When to use**
 *
 * Use `agent.hooks` to add, remove and switch hooks of one agent while it lives. Use `layer` for hooks of many agents, and of
 * runs without an agent.
 *
 * **Details**
 *
 * Registrations persist. State of one run, such as the count of failures of a hook, is not kept here: `agent.disabledHooks` lists the
 * hooks that failed too often in the run of an agent.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Hook from "./Hook.ts"
import * as InvalidHook from "./internal/invalidHook.ts"
import { TaggedError } from "./internal/errors.ts"

/**
 * A hook that is registered, with the services that it requires.
 *
 * @since 0.2.0
 * @category models
 */
export type Registered<P extends Hook.Point = Hook.Point> = {
  [K in P]: {
    /** Names the hook in `HookError`. Unique among the hooks that one run calls. */
    readonly id: string
    /** The point at which runs call the hook. */
    readonly point: K
    /** The name of the hook, if it has one. */
    readonly name?: string
    /** Whether runs call the hook. They skip one that is not enabled, from its next point on. */
    readonly isEnabled: boolean
    /**
     * How often `enable` was called for the hook. With another number than before a run counts the failures of the hook from 0, and
     * calls it again. Default: 0.
     */
    readonly revision?: number
    /** Handles one call of the hook. */
    readonly run: (input: Hook.Input<K>) => Effect.Effect<Hook.Output<K> | void, unknown>
  }
}[P]

/**
 * The functions that keep hooks.
 *
 * **When to use**
 *
 * Implement it to decide yourself which hooks runs call. Agents within your implementation add their hooks to those of its `list`.
 *
 * @since 0.2.0
 * @category models
 */
export interface HookManager {
  /** Returns all hooks, in the order in which a run calls those of one point. Each run reads it at each point. */
  readonly list: () => ReadonlyArray<Registered>
  /**
   * Adds a hook, which runs call from its next point on, and returns its id. Dies for a value that is no hook, and with
   * `TooManyHooks` if the point is full.
   */
  readonly register: <E, R>(hook: Hook.Hook<E, R>) => Effect.Effect<string, never, R>
  /** Removes a hook. Returns `false` when this manager registered none with that id. */
  readonly unregister: (id: string) => Effect.Effect<boolean>
  /**
   * Lets runs call a hook from its next point on, also one that failed too often in a run. Returns `false` when this manager registered
   * none with that id.
   */
  readonly enable: (id: string) => Effect.Effect<boolean>
  /** Keeps runs from calling a hook. Returns `false` when this manager registered none with that id. */
  readonly disable: (id: string) => Effect.Effect<boolean>
}

const none: HookManager = {
  list: () => [],
  register: () => Effect.die(new Error("No HookManager here: provide HookManager.layer()")),
  unregister: () => Effect.succeed(false),
  enable: () => Effect.succeed(false),
  disable: () => Effect.succeed(false)
}

/**
 * The largest number of hooks of one point.
 *
 * **Details**
 *
 * Default: `Infinity`. Provide it where the agent or the layer is made. The hooks of managers around it count, too.
 *
 * **Example** (Allowing one hook of each point)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Hook, HookManager } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const hook = Hook.afterModel(({ turn }) => Effect.log(`turn ${turn}`))
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", hooks: [hook] })
 *   const exit = yield* Effect.exit(agent.hooks.register(hook))
 *   console.log(exit._tag)
 * }).pipe(Effect.scoped, Effect.provideService(HookManager.MaxHooksPerPoint, 1))
 *
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer([]))))
 * // => Failure
 * ```
 *
 * @since 0.2.0
 * @category services
 */
export const MaxHooksPerPoint: Context.Reference<number> = Context.Reference(
  "effect-agent/HookManager/MaxHooksPerPoint",
  { defaultValue: () => Infinity }
)

/**
 * The defect of a registration at a point that has as many hooks as `MaxHooksPerPoint` allows.
 *
 * @since 0.2.0
 * @category errors
 */
export class TooManyHooks extends TaggedError<TooManyHooks>()("TooManyHooks", {
  /** The point. */
  point: Schema.String,
  /** The largest number of its hooks. */
  max: Schema.Number
}) {
  override get message(): string {
    return `Too many hooks for ${this.point} (max: ${this.max}). Unregister one, or raise MaxHooksPerPoint`
  }
}

/**
 * The service that keeps hooks.
 *
 * **Details**
 *
 * Default: a manager without hooks, which takes none. `Agent.make` makes a manager of its `hooks`, which is `agent.hooks`.
 *
 * **Example** (Switching a hook off)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Hook } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const log = Hook.afterModel(({ model }) => Effect.sync(() => console.log(model)), { name: "log" })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any" })
 *   const id = yield* agent.hooks.register(log)
 *   yield* agent.prompt("One")
 *   yield* agent.hooks.disable(id)
 *   yield* agent.prompt("Two")
 *   console.log(agent.hooks.list().map(({ isEnabled, name }) => `${name} ${isEnabled}`))
 * }).pipe(Effect.scoped)
 *
 * const script = [ScriptedProvider.text("1"), ScriptedProvider.text("2")]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => any
 * // => [ 'log false' ]
 * ```
 *
 * @since 0.1.0
 * @category services
 */
export const HookManager: Context.Reference<HookManager> = Context.Reference("effect-agent/HookManager", {
  defaultValue: () => none
})

/**
 * Makes a manager of hooks.
 *
 * **Details**
 *
 * Runs call its hooks after those of the manager around it, which may be any implementation of `HookManager`. The services that
 * the hooks require become requirements. Dies for a value that is no hook, and with `TooManyHooks` if a point is full.
 *
 * **Example** (Listing hooks)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Hook, HookManager } from "effect-agent"
 *
 * const program = Effect.gen(function* () {
 *   const manager = yield* HookManager.make(Hook.onError(({ scope }) => Effect.log(scope)))
 *   console.log(manager.list().map(({ point }) => point))
 * })
 *
 * await Effect.runPromise(program)
 * // => [ 'onError' ]
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <const Hooks extends ReadonlyArray<Hook.Hook>>(
  ...hooks: Hooks
): Effect.Effect<HookManager, never, Hook.Requirements<Hooks[number]>> =>
  Effect.contextWith((services: Context.Context<Hook.Requirements<Hooks[number]>>) => {
    const outer = Context.get(services, HookManager)
    const max = Context.get(services, MaxHooksPerPoint)
    let own: ReadonlyArray<Registered> = []
    const list = () => (outer === none ? own : [...outer.list(), ...own])
    const add = <E, R>(hook: Hook.Hook<E, R>, services: Context.Context<R>): Effect.Effect<string> =>
      Effect.flatMap(InvalidHook.refuse(hook), () => {
        const { point } = hook
        if (list().filter((one) => one.point === point).length >= max)
          return Effect.die(new TooManyHooks({ point, max }))
        const id = `${hook.point}-${++idCount}`
        own = [...own, registered(id, hook, services)]
        return Effect.succeed(id)
      })
    /** Replaces the hook of an id. Returns whether there is one. */
    const change = (id: string, to: (hook: Registered) => ReadonlyArray<Registered>) =>
      Effect.sync(() => {
        const isOwn = own.some((hook) => hook.id === id)
        if (isOwn) own = own.flatMap((hook) => (hook.id === id ? to(hook) : [hook]))
        return isOwn
      })
    const enabled = (hook: Registered): Registered => ({
      ...hook,
      isEnabled: true,
      revision: (hook.revision ?? 0) + 1
    })
    const manager: HookManager = {
      list,
      register: <E, R>(hook: Hook.Hook<E, R>) =>
        Effect.contextWith((services: Context.Context<R>) => add(hook, services)),
      unregister: (id) => change(id, () => []),
      enable: (id) => change(id, (hook) => [enabled(hook)]),
      disable: (id) => change(id, (hook) => [{ ...hook, isEnabled: false }])
    }
    const added = Effect.forEach(hooks, (hook) => add(hook, services), { discard: true })
    return Effect.as(added, manager)
  })

// The ids are unique across managers, since a run may call hooks of several, and `HookError` names a hook by its id.
let idCount = 0

/** Runs a hook with the services of its registration. Services of the caller, such as its span, win. */
const registered = <E, R, P extends Hook.Point>(
  id: string,
  { name, point, run }: Hook.Hook<E, R, P>,
  services: Context.Context<R>
): Registered<P> => ({
  id,
  point,
  isEnabled: true,
  ...(name === undefined ? {} : { name }),
  run: (input) => {
    const work = run(input)
    return Effect.isEffect(work)
      ? Effect.updateContext(work, (caller: Context.Context<never>) => Context.merge(services, caller))
      : work
  }
})

/**
 * Registers hooks for the runs of `Loop` and of agents that are made within the layer.
 *
 * **Details**
 *
 * The services that the hooks require become requirements of the layer. Nested layers add up: runs call the hooks of the outer
 * one first.
 *
 * **Gotchas**
 *
 * Of layers that are merged side by side, as in `Effect.provide([a, b])`, only the last one counts, as for any service.
 *
 * **Example** (Observing all runs)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Hook, HookManager, Loop, ToolRegistry } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const observed = HookManager.layer(Hook.afterExecution(({ status }) => Effect.sync(() => console.log(status))))
 * const program = Loop.run("Hi", { messages: [] }, { model: "any" })
 *
 * const provider = ScriptedProvider.layer([ScriptedProvider.text("Hello.")])
 * await Effect.runPromise(program.pipe(Effect.provide([observed, provider, ToolRegistry.layer()])))
 * // => completed
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = <const Hooks extends ReadonlyArray<Hook.Hook>>(
  ...hooks: Hooks
): Layer.Layer<never, never, Hook.Requirements<Hooks[number]>> => Layer.effect(HookManager, make(...hooks))
