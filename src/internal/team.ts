/**
 * The agents that a conversation may be with, and the one that it is with.
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
  /** By their names. */
  readonly members = new Map<string, Member>()
  /** The agent that the conversation is with. */
  active: Member
  /** The last message before its hand-off; `undefined` for the agent that the conversation began with. */
  private since: MessageId | undefined
  /** The hand-off of this turn, by the id of its call. */
  pending: { readonly to: Member; readonly toolCallId: string } | undefined

  constructor(first: Member) {
    this.members.set(first.name, first)
    this.active = first
  }

  /** A team of the agent that a conversation begins with. */
  static of(options: RunOptions, registry: Member["registry"], hooks: HookManager): Team {
    return new Team({ name: options.agent?.name ?? unnamed, options, registry, hooks })
  }

  /** Has the conversation continue with another agent after this turn. Returns the reason if it cannot. */
  request(name: string, toolCallId: string): string | undefined {
    const to = this.members.get(name)
    if (to === undefined) return `There is no agent ${name}. Agents: ${[...this.members.keys()].join(", ")}.`
    if (to === this.active) return `The conversation is with ${name} already.`
    if (this.pending !== undefined) return `The conversation continues with ${this.pending.to.name} already.`
    this.pending = { to, toolCallId }
    return undefined
  }

  /** Has the conversation continue as a call requested in a turn that was left open. */
  requestAgain({ id, name }: ToolCall, { details }: ToolOutput): void {
    const to = Array.from(this.members.keys()).find((member) => name.trim() === toolNameOf(member))
    if (to !== undefined && isObject(details) && details["to"] === to) this.request(to, id)
  }

  /** Forgets the hand-off of this turn, which stays open. */
  forget(): void {
    this.pending = undefined
  }

  /** Hands the conversation over, if a call of this turn requested it. `messages` are those before. */
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

  /** Continues with the agent that the conversation was with. Returns false if there is none of its name. */
  restore({ messageId, to }: HandedOff): boolean {
    const member = this.members.get(to)
    if (member === undefined) return false
    this.active = member
    this.since = messageId
    return true
  }

  /** Keeps the options that an agent has when the conversation leaves it, for its return. */
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
