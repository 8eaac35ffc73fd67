/**
 * The agents that can hand a conversation off to one another, and the one that has it now.
 */
import type { ToolOutput } from "../AgentEvent.ts"
import type { HookManager } from "../HookManager.ts"
import { isObject } from "./json.ts"
import type { Message, MessageId, ToolCall } from "../Message.ts"
import type { RunOptions } from "../RunOptions.ts"
import type { HandedOff } from "../Session.ts"
import type { ToolRegistry } from "../ToolRegistry.ts"

/**
 * An agent that a conversation may be with.
 *
 * @category models
 * @since 0.2.0
 */
export interface Member {
  /** The name, by which other agents hand off to it. */
  readonly name: string
  /** The options of its turns. */
  readonly options: RunOptions
  /** Its tools. */
  readonly registry: ToolRegistry["Service"]
  /** Its hooks. */
  readonly hooks: HookManager
  /** Chooses what the agent sees of the messages before its hand-off. Default: all. */
  readonly history?: ((before: ReadonlyArray<Message>) => ReadonlyArray<Message>) | undefined
}

/** The name of the tool that hands off to an agent. */
export const toolNameOf = <Name extends string>(agent: Name): `transfer_to_${Name}` => `transfer_to_${agent}`

/** The name of an agent without one. */
const unnamed = "main"

export class Team {
  /** The agents by their names. */
  readonly members = new Map<string, Member>()
  /** The agent that has the conversation now. */
  active: Member
  /** The last message before the hand-off to the active agent; `undefined` if there was none. */
  private since: MessageId | undefined
  /** The hand-off that a call of this turn requested, and the id of the call. */
  pending: { readonly to: Member; readonly toolCallId: string } | undefined

  constructor(first: Member) {
    this.members.set(first.name, first)
    this.active = first
  }

  /** Makes a team whose first member is the agent that the conversation begins with. */
  static of(options: RunOptions, registry: Member["registry"], hooks: HookManager): Team {
    return new Team({ name: options.agent?.name ?? unnamed, options, registry, hooks })
  }

  /** Requests a hand-off after this turn. Returns the reason in words if that is not possible. */
  request(name: string, toolCallId: string): string | undefined {
    const to = this.members.get(name)
    if (to === undefined) return `There is no agent ${name}. Agents: ${[...this.members.keys()].join(", ")}.`
    if (to === this.active) return `The conversation is with ${name} already.`
    if (this.pending !== undefined) return `The conversation continues with ${this.pending.to.name} already.`
    this.pending = { to, toolCallId }
    return undefined
  }

  /** Requests the hand-off of a call that ended before its turn was suspended. */
  requestAgain({ id, name }: ToolCall, { details }: ToolOutput): void {
    const to = Array.from(this.members.keys()).find((member) => name.trim() === toolNameOf(member))
    if (to !== undefined && isObject(details) && details["to"] === to) this.request(to, id)
  }

  /** Forgets the hand-off of this turn, because the turn is suspended. */
  forget(): void {
    this.pending = undefined
  }

  /** Carries out the hand-off that a call of this turn requested, if any. `messages` is the transcript before it. */
  take(messages: ReadonlyArray<Message>): (HandedOff & { readonly toolCallId: string }) | undefined {
    const { pending } = this
    const messageId = messages.at(-1)?.id
    if (pending === undefined || messageId === undefined) return undefined
    const { to, toolCallId } = pending
    const from = this.active.name
    this.pending = undefined
    this.active = to
    this.since = messageId
    return { from, to: to.name, toolCallId, messageId }
  }

  /** Makes the agent of an earlier hand-off the active one. Returns `false` if no member has its name. */
  restore({ messageId, to }: HandedOff): boolean {
    const member = this.members.get(to)
    if (member === undefined) return false
    this.active = member
    this.since = messageId
    return true
  }

  /** Keeps the options of an agent that hands off, for the time when the conversation comes back to it. */
  keep(name: string, options: RunOptions): void {
    const member = this.members.get(name)
    if (member !== undefined) this.members.set(name, { ...member, options })
  }

  /** The messages that the active agent sees. */
  view(messages: ReadonlyArray<Message>): ReadonlyArray<Message> {
    const { history } = this.active
    if (history === undefined) return messages
    const begin = messages.findLastIndex(({ id }) => id === this.since) + 1
    return [...history(messages.slice(0, begin)), ...messages.slice(begin)]
  }

  /** The options of a run that continues with the active agent: its own, with the limits of the run. */
  optionsAfter({ limits }: RunOptions): RunOptions {
    const { limits: _, ...own } = this.active.options
    return limits === undefined ? own : { ...own, limits }
  }
}
