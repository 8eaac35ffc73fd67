/**
 * The registry of an agent: its own tools, and those of the registry around `Agent.make`.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Stream from "effect/Stream"
import type { ToolDefinition } from "../Provider.ts"
import { Outer } from "./run.ts"
import type * as Tool from "../Tool.ts"
import * as ToolRegistry from "../ToolRegistry.ts"

type Registry = ToolRegistry.ToolRegistry["Service"]
type Definitions = ReadonlyArray<ToolDefinition>

/**
 * Makes the registry of an agent. An agent inside of a run does not get the tools of that run: a model that may call an agent has not
 * thereby given it its own tools.
 */
export const make = <const Tools extends ReadonlyArray<Tool.Any>>(
  ...tools: Tools
): Effect.Effect<Registry, never, Tool.Requirements<Tools[number]>> =>
  Effect.contextWith((context: Context.Context<Tool.Requirements<Tools[number]>>) => {
    const around = Context.getOrUndefined(context, ToolRegistry.ToolRegistry)
    return around === undefined || around === Context.get(context, Outer)?.toolsAround
      ? ToolRegistry.make(...tools)
      : Effect.flatMap(ToolRegistry.make(), (own) => {
          const registry = beside(around, own)
          return Effect.as(Effect.forEach(tools, registry.register, { discard: true }), registry)
        })
  })

/** The tools of both. A tool of the agent hides one around it that has its name, and so does the removal of one. */
const together = (around: Registry, own: Registry) => {
  const removed = new Set<string>()
  // Memoized, since providers keep what they encode by the array.
  const joining = () =>
    memoize((own: Definitions) =>
      memoize((outer: Definitions): Definitions => {
        const hidden = new Set([...own.map(({ name }) => name), ...removed])
        return [...outer.filter(({ name }) => !hidden.has(name)), ...own]
      })
    )
  let joined = joining()
  const join = (outer: Definitions, own: Definitions) => joined(own)(outer)
  return {
    join,
    definitions: Effect.zipWith(around.definitions, own.definitions, join),
    get: Effect.fnUntraced(function* (name: string) {
      const found = yield* own.get(name)
      if (found !== undefined) return found
      const outer = yield* around.get(name)
      return outer === undefined || removed.has(outer.name) ? undefined : outer
    }),
    remove: (names: ReadonlyArray<string>) => {
      for (const name of names) removed.add(name)
      joined = joining()
    }
  }
}

/** Calls go through the registry around: a wrapper of it sees those of the agent's own tools too. */
const beside = (around: Registry, own: Registry): Registry => {
  const { definitions, get, join, remove } = together(around, own)
  const servicesOf = new WeakMap<Tool.Any, Context.Context<never>>()
  const namesAround = Effect.map(around.definitions, (outer) => outer.map(({ name }) => name))
  const all = Effect.gen(function* () {
    const found = new Map<string, Tool.Any>()
    for (const { name } of yield* definitions) {
      const tool = yield* get(name)
      if (tool !== undefined) found.set(name, tool)
    }
    return found
  })
  return ToolRegistry.ToolRegistry.of({
    register: <T extends Tool.Any>(tool: T) =>
      Effect.contextWith((services: Context.Context<Tool.Requirements<T>>) =>
        Effect.map(own.register(tool), () => void servicesOf.set(tool, services))
      ),
    replace: Effect.fnUntraced(function* (owner, tools) {
      const taken = new Set(yield* namesAround)
      const free = tools.filter(({ name }) => !taken.has(name))
      const refused = yield* own.replace(owner, free)
      return tools.map(({ name }) => name).filter((name) => taken.has(name) || refused.includes(name))
    }),
    unregister: Effect.fnUntraced(function* (name) {
      const isThere = (yield* get(name))?.name === name
      yield* own.unregister(name)
      remove([name])
      return isThere
    }),
    clear: Effect.andThen(Effect.map(namesAround, remove), own.clear),
    has: (name) => Effect.map(get(name), (tool) => tool?.name === name),
    get,
    definitions,
    changes: Stream.zipLatestWith(around.changes, own.changes, join),
    prepare: (call, options) =>
      Effect.flatMap(options?.among === undefined ? all : Effect.succeed(options.among), (among) =>
        around.prepare(call, { ...options, among })
      ),
    execute: (prepared, context) => {
      const executed = around.execute(prepared, context)
      const services = servicesOf.get(prepared.tool)
      return services === undefined
        ? executed
        : Effect.updateContext(executed, (caller: Context.Context<never>) => Context.merge(services, caller))
    }
  })
}
