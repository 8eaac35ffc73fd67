/**
 * Hand-offs: tools after whose call another agent continues the conversation.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { type AgentOptions, type Definition, type Hooks, readAgent, type Tools } from "./options.ts"
import * as AgentTools from "./agentTools.ts"
import type * as Hook from "../Hook.ts"
import * as HookManager from "../HookManager.ts"
import { InvalidTool } from "./invalidTool.ts"
import type * as Message from "../Message.ts"
import { Outer } from "./run.ts"
import { type Member, type Team, toolNameOf } from "./team.ts"
import * as Tool from "../Tool.ts"

/** Marks the tools that hand off, also those that are wrapped. */
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

/** Puts the agents that these tools hand off to among the members of a team. */
export const joinAll = <T extends Tools>(
  members: Members,
  tools: T
): Effect.Effect<void, never, Tool.Requirements<T[number]>> =>
  Effect.forEach(tools, (tool: T[number]) => (isHandOff(tool) ? tool[HandOffId](members) : Effect.void), {
    discard: true
  })

/** Puts an agent among the members of a team, unless one has its name. */
const join = Effect.fnUntraced(function* <T extends Tools, H extends Hooks>(
  members: Members,
  { name, ...member }: Pick<Member, "name" | "history">,
  { hooks, runOptions, tools }: Definition<T, H>
): Effect.fn.Return<void, never, Services<T, H>> {
  if (members.has(name)) return
  const registry = yield* AgentTools.make(...tools)
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
    // Nothing outside of the run changes: a hand-off that a crash cut is made again.
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
