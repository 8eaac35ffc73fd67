/**
 * Keeps the hooks of an application, for the runs that call them.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Hook from "./Hook.ts"
import * as InvalidHook from "./internal/invalidHook.ts"

/** A hook that is registered, with the services that it requires. */
export type Registered<P extends Hook.Point = Hook.Point> = {
  [K in P]: {
    /** Names the hook in `HookError`. Unique among the hooks that one run calls. */
    readonly id: string
    readonly point: K
    /** The name that its constructor was given. */
    readonly name?: string
    /** Runs skip a hook that is not enabled, from its next point on. */
    readonly isEnabled: boolean
    readonly run: (input: Hook.Input<K>) => Effect.Effect<Hook.Output<K> | void, unknown>
  }
}[P]

/** The hooks that runs call. They persist; each run has its own counts of their failures. */
export interface HookManager {
  /** All hooks, in the order in which a run calls those of one point. */
  readonly list: () => ReadonlyArray<Registered>
  /** Adds a hook, which runs call from its next point on. Returns its id. Dies for a value that is no hook. */
  readonly register: <E, R>(hook: Hook.Hook<E, R>) => Effect.Effect<string, never, R>
  /** Removes a hook. Returns `false` when this manager registered none with that id. */
  readonly unregister: (id: string) => Effect.Effect<boolean>
  /** Lets runs call a hook again. Returns `false` when this manager registered none with that id. */
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

/** How many hooks of one point a manager takes. Default: `Infinity`. Provide it where the agent or the layer is made. */
export const MaxHooksPerPoint: Context.Reference<number> = Context.Reference(
  "effect-agent/HookManager/MaxHooksPerPoint",
  { defaultValue: () => Infinity }
)

/** A hook was registered at a point that has as many hooks as `MaxHooksPerPoint` allows. */
export class TooManyHooks extends Schema.TaggedError<TooManyHooks>()("TooManyHooks", {
  point: Schema.String,
  max: Schema.Number
}) {
  override get message(): string {
    return `Too many hooks for ${this.point} (max: ${this.max}). Unregister one, or raise MaxHooksPerPoint`
  }
}

/** Default: no hooks. */
export const HookManager: Context.Reference<HookManager> = Context.Reference("effect-agent/HookManager", {
  defaultValue: () => none
})

/**
 * A manager with these hooks, which a run calls after those of the manager around it: that one may be any implementation of
 * `HookManager`. What the hooks require becomes a requirement.
 */
export const make = <const Hooks extends ReadonlyArray<Hook.Hook>>(
  ...hooks: Hooks
): Effect.Effect<HookManager, never, Hook.Requirements<Hooks[number]>> =>
  Effect.contextWith((services: Context.Context<Hook.Requirements<Hooks[number]>>) => {
    const outer = Context.get(services, HookManager)
    const max = Context.get(services, MaxHooksPerPoint)
    const own = new Map<string, Registered>()
    const list = () => [...outer.list(), ...own.values()]
    const add = <E, R>(hook: Hook.Hook<E, R>, services: Context.Context<R>): Effect.Effect<string> =>
      Effect.flatMap(InvalidHook.refuse(hook), () => {
        const { point } = hook
        if (list().filter((one) => one.point === point).length >= max)
          return Effect.die(new TooManyHooks({ point, max }))
        const id = `${hook.point}-${++idCount}`
        own.set(id, registered(id, hook, services))
        return Effect.succeed(id)
      })
    const change = (isEnabled: boolean) => (id: string) =>
      Effect.sync(() => {
        const hook = own.get(id)
        // In its place: a key that is set again keeps its position.
        return hook !== undefined && own.set(id, { ...hook, isEnabled }).has(id)
      })
    const manager: HookManager = {
      list,
      register: <E, R>(hook: Hook.Hook<E, R>) =>
        Effect.contextWith((services: Context.Context<R>) => add(hook, services)),
      unregister: (id) => Effect.sync(() => own.delete(id)),
      enable: change(true),
      disable: change(false)
    }
    const added = Effect.forEach(hooks, (hook) => add(hook, services), { discard: true })
    return Effect.as(added, manager)
  })

// Unique across managers: a `HookError` names its hook by it.
let idCount = 0

/** The services of the registration under the caller's: the caller's span and request-scoped services win. */
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
 * Registers hooks for every run that sees the layer: those of `Loop`, and of agents made within it. Layers that are nested
 * add up; of several merged side by side, as in `Effect.provide([a, b])`, the last one counts, as with any service.
 */
export const layer = <const Hooks extends ReadonlyArray<Hook.Hook>>(
  ...hooks: Hooks
): Layer.Layer<never, never, Hook.Requirements<Hooks[number]>> => Layer.effect(HookManager, make(...hooks))
