/**
 * Opens an agent from its definition in the current scope: its tools, its hooks, its runtime, and the agents that it hands off to.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as References from "effect/References"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"
import { AgentRuntime } from "./agentRuntime.ts"
import * as State from "./agentState.ts"
import type * as Hook from "../Hook.ts"
import * as HookManager from "../HookManager.ts"
import { InvalidTool } from "./invalidTool.ts"
import { Journal } from "./journal.ts"
import type * as Message from "../Message.ts"
import { type AgentOptions, type Definition, type Hooks, readAgent, type Tools } from "./options.ts"
import { Provider, type ToolDefinition } from "../Provider.ts"
import { Outer, type Run } from "./run.ts"
import * as RunOptions from "../RunOptions.ts"
import type { HandedOff, Restored } from "../Session.ts"
import { type Member, Team, toolNameOf } from "./team.ts"
import * as Tool from "../Tool.ts"
import { ToolContext } from "../Tool.ts"
import * as ToolRegistry from "../ToolRegistry.ts"

/** The services that an agent with these tools and hooks needs. */
export type Requirements<T extends Tools, H extends Hooks> =
  | Provider
  | Tool.Requirements<T[number]>
  | Hook.Requirements<H[number]>

interface Opened {
  readonly runtime: AgentRuntime
  readonly registry: ToolRegistry.ToolRegistry["Service"]
  readonly manager: HookManager.HookManager
}

/** Opens an agent. `parent` is the run whose tool call the agent works for. */
export const open = Effect.fnUntraced(function* <T extends Tools, H extends Hooks>(
  { compaction, hooks, messages, modes, preserveHistory, runOptions, session, tools }: Definition<T, H>,
  parent?: Run
): Effect.fn.Return<Opened, never, Scope.Scope | Requirements<T, H>> {
  const registry = yield* registryOf(...tools)
  const manager = yield* HookManager.make(...hooks)
  const made = yield* Effect.context<Provider | Scope.Scope>()
  const own = Context.make(Provider, Context.get(made, Provider)).pipe(
    Context.add(ToolRegistry.ToolRegistry, registry),
    Context.add(HookManager.HookManager, manager),
    // An agent that a tool makes is no agent of a server: its caller is the tool.
    Context.add(Served, false)
  )
  const scope = Context.get(made, Scope.Scope)
  const isServed = Context.get(made, Served)
  const team = Team.of(runOptions, registry, manager)
  yield* joinAll(team.members, tools)
  const options = yield* restored(team, runOptions, session?.restored)
  const runtime = new AgentRuntime(
    State.initial(messages, options, compaction),
    modes,
    { journal: session && new Journal(session), parent, preserveHistory, scope, team },
    // The services of the caller win over those of the agent, so that runs are in the caller's span; in a server only those of `asking` do.
    // The provider, the tools and the hooks are always the agent's.
    (caller) => Context.mergeAll(made, isServed ? asking(caller) : caller, own)
  )
  yield* runtime.restore
  yield* Scope.addFinalizer(scope, runtime.close)
  return { runtime, registry, manager }
})

/** Hands the conversation to the agent that the session was with, and returns the options of that agent. */
const restored = (
  team: Team,
  options: RunOptions.RunOptions,
  { handedOff, options: changed, unset = [] }: Partial<Restored> = {}
): Effect.Effect<RunOptions.RunOptions> => {
  if (handedOff === undefined) return Effect.succeed(options)
  if (team.restore(handedOff))
    return Effect.succeed(RunOptions.patch(RunOptions.without(team.optionsAfter(options), unset), changed))
  return Effect.as(Effect.logWarning(noMember(handedOff, team)), options)
}

const noMember = ({ to }: HandedOff, { active }: Team): string =>
  `The session was handed off to the agent ${to}, which does not exist: ${active.name} continues`

// ───────────────────────── The services of an agent that a server keeps

/**
 * Whether the runs of an agent ignore the services of their callers, as the agents of a server do. `open` reads it. A request to a server
 * has services of its own, such as a file system without files, which must not hide those of the application.
 */
export const Served = Context.Reference<boolean>("effect-agent/Served", { defaultValue: () => false })

/** The services of a caller that runs take also in a server: the parent run, the tool call, the span, and the log settings. */
const asking = Context.pick(
  // The service is named by its key, since an import of its module would be circular.
  Context.Service<unknown>("effect-agent/Run"),
  ToolContext,
  Tracer.ParentSpan,
  References.CurrentLogAnnotations,
  References.CurrentLogSpans,
  References.MinimumLogLevel
)

// ───────────────────────── Its tools

type Registry = ToolRegistry.ToolRegistry["Service"]
type Definitions = ReadonlyArray<ToolDefinition>

/**
 * Makes the registry of an agent. It joins the registry around `Agent.make`, but a sub-agent does not get the tools of its parent run:
 * permission to call a sub-agent does not include permission for it to use those tools.
 */
const registryOf = <const Owned extends ReadonlyArray<Tool.Any>>(
  ...tools: Owned
): Effect.Effect<Registry, never, Tool.Requirements<Owned[number]>> =>
  Effect.contextWith((context: Context.Context<Tool.Requirements<Owned[number]>>) => {
    const around = Context.getOrUndefined(context, ToolRegistry.ToolRegistry)
    return around === undefined || around === Context.get(context, Outer)?.toolsAround
      ? ToolRegistry.make(...tools)
      : Effect.flatMap(ToolRegistry.make(), (own) => {
          const registry = joined(around, own)
          return Effect.as(Effect.forEach(tools, registry.register, { discard: true }), registry)
        })
  })

/** The tools of two registries. A tool of `own` hides one of `around` that has its name, and so does its removal. */
const together = (around: Registry, own: Registry) => {
  const removed = new Set<string>()
  // Returns one array for the same tools, since providers cache the encoding of an array.
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

/** Joins two registries. Calls of all tools go through `around`, so that a wrapper of it sees those of the agent's own tools too. */
const joined = (around: Registry, own: Registry): Registry => {
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

// ───────────────────────── The agents that it hands off to

/** The key of the mark of a tool that hands off. `Tool.wrap` keeps it. */
const HandOffId = "~effect-agent/HandOff"

/** The services of the tools and hooks of an agent. */
type Services<T extends Tools, H extends Hooks> = Tool.Requirements<T[number]> | Hook.Requirements<H[number]>

/**
 * The mark of a tool that hands the conversation off to another agent, which requires `R`.
 *
 * @category models
 * @since 0.2.0
 */
export interface HandOff<R> {
  /** Puts the agent, and those that it hands off to, among the members of a team. */
  readonly [HandOffId]: (members: Members) => Effect.Effect<void, never, R>
}

type Members = Team["members"]

const isHandOff = <T extends Tool.Any>(tool: T): tool is T & HandOff<Tool.Requirements<T>> =>
  HandOffId in tool

/** Adds the agents that these tools hand off to to the members of a team. */
const joinAll = <T extends Tools>(
  members: Members,
  tools: T
): Effect.Effect<void, never, Tool.Requirements<T[number]>> =>
  Effect.forEach(tools, (tool: T[number]) => (isHandOff(tool) ? tool[HandOffId](members) : Effect.void), {
    discard: true
  })

/** Adds an agent to the members of a team, unless a member has its name. */
const join = Effect.fnUntraced(function* <T extends Tools, H extends Hooks>(
  members: Members,
  { name, ...member }: Pick<Member, "name" | "history">,
  { hooks, runOptions, tools }: Definition<T, H>
): Effect.fn.Return<void, never, Services<T, H>> {
  if (members.has(name)) return
  const registry = yield* registryOf(...tools)
  const manager = yield* HookManager.make(...hooks)
  const options = { ...runOptions, agent: { ...runOptions.agent, name } }
  members.set(name, { ...member, name, options, registry, hooks: manager })
  yield* joinAll(members, tools)
})

/**
 * The options of a hand-off.
 *
 * @category options
 * @since 0.2.0
 */
export interface HandOffOptions<Name extends string, T extends Tools, H extends Hooks> {
  /** The name of the agent that continues. The tool is named `transfer_to_` and this name. */
  readonly to: Name
  /** The tasks that the agent is for. The model decides by it. */
  readonly description: string
  /** The options of the agent. Default: those of the agent of this name that another hand-off has, or that began. */
  readonly agent?: Omit<AgentOptions<T, H>, "limits" | "messages" | "retry" | "maxRetryAfter" | "session">
  /** Chooses what the agent sees of the messages before the hand-off. Default: all of them. */
  readonly history?: (before: ReadonlyArray<Message.Message>) => ReadonlyArray<Message.Message>
}

type Handing<Name extends string, T extends Tools, H extends Hooks> = Tool.Tool<
  `transfer_to_${Name}`,
  {},
  Tool.ToolOutput,
  never,
  Services<T, H> | Tool.ToolContext
> &
  HandOff<Services<T, H>>

/**
 * Makes a tool after whose call another agent continues the conversation.
 *
 * **When to use**
 *
 * Use it where another agent is to talk with the user from then on. Use `Agent.asTool` for a task whose result the agent needs.
 *
 * **Details**
 *
 * - After the turn of the call the run continues with the system prompt, model, options, tools and hooks of the other agent, and so do
 *   later runs. `HandedOff` announces it. The limits, the retries and the output stay those of the run.
 * - The transcript stays whole, and the other agent sees all of it, unless `history` chooses.
 * - An agent is found by its name: a hand-off without `agent` leads back to one that another hand-off has, or to the first one. The
 *   first one is named by its option `agent`, by default `"main"`. `limits.maxTurns` ends agents that hand off without end.
 * - Of several hand-offs in one turn the first counts. Other calls of the turn run with the tools of the agent that made them.
 * - An agent with a session continues with the agent that the conversation was with. Where no agent has its name any more, the first one
 *   continues, with a warning in the log. `state` has the options of the agent that continues, and `update` changes them; `agent.tools`
 *   and `agent.hooks` are those of the first one.
 *
 * **Gotchas**
 *
 * Throws `InvalidTool` for options that are not valid. A `history` that leaves the agent no message to answer fails the run.
 *
 * **Example** (Handing off, and back)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const billing = Agent.handOff({
 *   to: "billing",
 *   description: "Transfers the user to the colleague for invoices.",
 *   agent: {
 *     model: "gpt-5",
 *     system: "You explain invoices.",
 *     tools: [Agent.handOff({ to: "reception", description: "Transfers the user back." })]
 *   }
 * })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({
 *     model: "gpt-5.4-mini",
 *     agent: { name: "reception" },
 *     tools: [billing]
 *   })
 *   yield* agent.subscribe((event) => {
 *     if (event._tag === "HandedOff") console.log(event.from, event.to)
 *     return Effect.void
 *   })
 *   const { text } = yield* agent.prompt("Why do I pay 20 euros?")
 *   console.log(text)
 * }).pipe(Effect.scoped)
 *
 * const script = [
 *   ScriptedProvider.toolCall("transfer_to_billing", {}),
 *   ScriptedProvider.text("That is the price of May.")
 * ]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => reception billing
 * // => That is the price of May.
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const handOff = <
  const Name extends string,
  const T extends Tools = readonly [],
  const H extends Hooks = readonly []
>(
  options: HandOffOptions<Name, T, H>
): Handing<Name, T, H> => {
  const { agent, description, history, to } = options
  const name = toolNameOf(to)
  const definition = agent === undefined ? undefined : Result.getOrThrow(defined(name, agent))
  const member = { name: to, history }
  const joining = (members: Members): Effect.Effect<void, never, Services<T, H>> =>
    definition === undefined ? Effect.void : join(members, member, definition)
  const tool = Tool.make({
    name,
    description,
    // A hand-off changes nothing outside of the run, so it may run again after a crash.
    effect: "idempotent",
    execute: Effect.fnUntraced(function* () {
      const { toolCallId } = yield* Tool.ToolContext
      const run = yield* Outer
      if (run === undefined) return Tool.failure("Only a run can hand off.")
      yield* joining(run.team.members)
      const refusal = run.team.request(to, toolCallId)
      return refusal === undefined
        ? Tool.output(`${to} continues the conversation.`, { details: { to } })
        : Tool.failure(refusal)
    })
  })
  return { ...tool, [HandOffId]: joining }
}

const defined = <T extends Tools, H extends Hooks>(tool: string, agent: AgentOptions<T, H>) =>
  Result.mapError(
    readAgent(agent),
    ({ message }) => new InvalidTool({ tool, detail: `\`agent\`: ${message}` })
  )
