/**
 * Opens an agent from its definition: its tools, its hooks and its runtime, for as long as its scope.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import type { Definition, Hooks, Tools } from "./options.ts"
import { AgentRuntime } from "./agentRuntime.ts"
import * as AgentTools from "./agentTools.ts"
import * as State from "./agentState.ts"
import type * as Hook from "../Hook.ts"
import * as HookManager from "../HookManager.ts"
import { Journal } from "./journal.ts"
import { Provider } from "../Provider.ts"
import { joinAll } from "./handingOver.ts"
import type { Run } from "./run.ts"
import { asking, Served } from "./served.ts"
import * as RunOptions from "../RunOptions.ts"
import type { HandedOff, Restored } from "../Session.ts"
import { Team } from "./team.ts"
import type * as Tool from "../Tool.ts"
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
  const registry = yield* AgentTools.make(...tools)
  const manager = yield* HookManager.make(...hooks)
  const made = yield* Effect.context<Provider | Scope.Scope>()
  const own = Context.make(Provider, Context.get(made, Provider)).pipe(
    Context.add(ToolRegistry.ToolRegistry, registry),
    Context.add(HookManager.HookManager, manager),
    // Agents that a tool makes have the tool for a caller.
    Context.add(Served, false)
  )
  const scope = Context.get(made, Scope.Scope)
  const isServed = Context.get(made, Served)
  const team = Team.of(runOptions, registry, manager)
  yield* joinAll(team.members, tools)
  const options = yield* restored(team, runOptions, session?.restored)
  const runtime = new AgentRuntime(
    State.initial(messages, options, compaction),
    yield* State.states,
    modes,
    { journal: session && new Journal(session), parent, preserveHistory, scope, team },
    // Services of the agent under the caller's, so that the caller's span and services win, but in a server. The provider, the tools
    // and the hooks are always the agent's.
    (caller) => Context.mergeAll(made, isServed ? asking(caller) : caller, own)
  )
  yield* runtime.restore
  yield* Scope.addFinalizer(scope, runtime.close)
  return { runtime, registry, manager }
})

/** The options of the agent that the conversation of a session is with. */
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
