/**
 * One run, from its start to its end.
 *
 * Only the methods of this class assign its fields. Each method is one synchronous step, so that the fibers of the run and of its tools
 * need no locks. Values that a run returns are immutable or copies.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Body, OpenAnswer } from "../AgentEvent.ts"
import { Background } from "./background.ts"
import type { Compactions } from "./compactions.ts"
import * as ContextManager from "../ContextManager.ts"
import { type Audience, callersOf, Mailbox } from "./mailbox.ts"
import type { FailureReason } from "./failureReason.ts"
import type * as Hook from "../Hook.ts"
import { RunHooks } from "./hookCalls.ts"
import { HookManager } from "../HookManager.ts"
import * as ToolOutcome from "./toolOutcome.ts"
import type { Interrupted } from "./openTurn.ts"
import { attempt, Control, type Halting } from "./interruption.ts"
import type { Journal } from "./journal.ts"
import * as Limits from "./limits.ts"
import { makeId, type Message, type MessageId, type ToolCall } from "../Message.ts"
import type { Output } from "./output.ts"
import type { Retries } from "./attempts.ts"
import * as Prices from "../Prices.ts"
import { Guard, Provider } from "../Provider.ts"
import type { QueueName, Queues } from "./queues.ts"
import * as Options from "../RunOptions.ts"
import * as Recovery from "./recovery.ts"
import type { RunSpec } from "./runSpec.ts"
import { Team } from "./team.ts"
import * as Tool from "../Tool.ts"
import { findTool } from "./toolRun.ts"
import { ResultLimit, ToolRegistry } from "../ToolRegistry.ts"
import type { Usage } from "../Usage.ts"
import { Waiting } from "./waiting.ts"

/** The services that a run requires. */
export type Services = Provider | ToolRegistry

/** Makes an id that is unique in and across processes, like the ids of messages. */
export const makeRunId = (): string => `run_${makeId().slice("msg_".length)}`

/** The receivers of the events of a run, and its parent run. */
export interface Surroundings extends Audience {
  /** The run whose tool call this run belongs to. It publishes the events of this run, and counts the usage. Default: none. */
  readonly parent?: Run | undefined
}

const soloOf = ({ options }: RunSpec, context: Context.Context<Services>): Team =>
  Team.of(options, Context.get(context, ToolRegistry), Context.get(context, HookManager))

export class Run {
  readonly id: string
  readonly control = new Control()
  readonly clock: Clock.Clock
  readonly provider: Provider["Service"]
  /** The registry of the run's context. A sub-agent finds the same one around it, and must not take its tools. */
  readonly toolsAround: ToolRegistry["Service"]
  /** The agents that this run may continue with. */
  readonly team: Team
  readonly contextManager: ContextManager.Service
  readonly prices: Prices.Service
  readonly resultLimit: typeof ResultLimit.Service
  readonly guard: Guard
  readonly hooks: RunHooks
  readonly queues: Queues
  /** The compactions of the conversation, those of earlier runs included. */
  readonly compactions: Compactions
  readonly mailbox: Mailbox
  /** Publishes events without waiting for subscribers: `delivered` of the mailbox does. */
  readonly emit: Mailbox["emit"]
  /** The run whose tool call this run belongs to; absent for a run that is no sub-agent's. */
  readonly parent: Run | undefined
  /** The requests of the run to a person. */
  readonly waiting: Waiting
  /** Writes the conversation to the session of the agent; absent for an agent without one. */
  readonly journal: Journal | undefined
  /** The tokens and cost of this run and of its sub-agents. */
  readonly spent: Limits.Spending
  /** The output that the model must give; absent for a run that ends with any answer. */
  readonly output: Output<unknown> | undefined
  /** The retries of turns that fail; absent for a run that fails with the first of them. */
  readonly retry: Retries | undefined
  /** The map that the hooks of this run share. */
  readonly metadata = new Map<string, unknown>()
  /** The options, which hooks may change, and the application from the next turn on. */
  options: Options.RunOptions
  /** The messages that requests are made from: the transcript, unless a `prepareNextTurn` hook replaced them. */
  messages: ReadonlyArray<Message>
  /** The messages that this run added to the transcript. */
  newMessages: ReadonlyArray<Message> = []
  /** The messages that the next turn adds to the transcript, and the queue that they came from. */
  pending: { readonly messages: ReadonlyArray<Message>; readonly from: QueueName | undefined }
  /** The tools that the model may call in this turn. */
  offered: ReadonlyMap<string, Tool.Any> = new Map()
  /** The model, system prompt and tools of the request of this turn. */
  asked: Hook.RequestParts
  /** The tool calls that may continue in the background; absent in a run that has had none. */
  background: Background | undefined
  open: OpenAnswer | undefined
  /** Whether a hook requires another turn, also without a message to answer. */
  isContinued = false
  /** The number of turns that began. */
  turn = 0
  /** The number of requests to the provider. */
  modelCalls = 0
  /** The number of tool calls, refused ones included. */
  toolCalls = 0
  /** The latest tool calls, for the limit on identical ones. */
  readonly repetition = new Limits.Repetition()
  private isCancelAnnounced = false

  constructor(spec: RunSpec, audience: Surroundings, context: Context.Context<Services>) {
    this.id = spec.runId ?? makeRunId()
    this.clock = Context.get(context, Clock.Clock)
    this.provider = Context.get(context, Provider)
    this.toolsAround = Context.get(context, ToolRegistry)
    this.team = spec.team ?? soloOf(spec, context)
    this.contextManager = Context.get(context, ContextManager.ContextManager)
    this.prices = Context.get(context, Prices.Prices)
    this.resultLimit = Context.get(context, ResultLimit)
    this.guard = Context.get(context, Guard)
    this.hooks = new RunHooks(this)
    this.parent = audience.parent
    this.waiting = new Waiting(spec, Context.get(context, Outer), context, this.parent)
    this.queues = spec.queues
    const callers = callersOf(Context.getOption(context, Tool.ToolContext))
    this.mailbox = new Mailbox(this, callers, audience, this.parent?.mailbox)
    this.emit = this.mailbox.emit
    this.journal = audience.journal
    this.parent?.control.enter(this.control, this.mailbox.path?.at(-1)?.toolCallId)
    this.compactions = spec.compactions
    this.output = spec.output
    this.retry = spec.retry
    this.options = spec.options
    const outer = Context.get(context, Outer)
    this.spent = new Limits.Spending(spec.options.limits, outer?.spent, this.parent?.spent)
    this.asked = { ...this.requestParts, tools: [] }
    this.messages = spec.messages
    this.pending = { messages: spec.prompts, from: spec.promptsFrom }
    if (spec.interrupted !== undefined) this.restore(spec.interrupted)
  }

  /** Continues from where an interrupted run stopped. */
  private restore({ newMessages, open, paused, report, spent, toolCalls, turns }: Interrupted): void {
    this.turn = turns
    this.newMessages = newMessages
    this.toolCalls = toolCalls
    this.mailbox.report = report
    this.spent.restore(spent, open?.spent)
    if (paused === undefined) return
    this.control.pause(paused.reason)
    this.control.isShownPaused = true
  }

  /** Whole milliseconds since the run began. */
  get elapsed(): number {
    return Math.floor(this.waiting.stopwatch.total)
  }

  beginTurn(): void {
    this.turn++
    this.spent.beginTurn()
    this.mailbox.turn = this.turn
    this.emit({ _tag: "TurnStart" })
  }

  /** Adds finished messages to the transcript. */
  append(messages: ReadonlyArray<Message>): void {
    this.grow(messages)
    const bodies = messages.flatMap(
      (message): ReadonlyArray<Body> => [
        { _tag: "MessageStart", messageId: message.id, role: message.role },
        { _tag: "MessageEnd", message }
      ]
    )
    if (bodies.length > 0) this.emit(...bodies)
  }

  /** Adds the finished answer to the transcript. */
  end(message: Message): void {
    this.open = undefined
    this.grow([message])
    this.emit({ _tag: "MessageEnd", message })
  }

  /** Adds messages to the lists. This comes before their events, so that code that receives an event finds its message. */
  private grow(messages: ReadonlyArray<Message>): void {
    this.messages = [...this.messages, ...messages]
    this.newMessages = [...this.newMessages, ...messages]
  }

  openAnswer(answer: OpenAnswer): void {
    this.open = answer
    this.emit({ _tag: "MessageStart", messageId: answer.id, role: "assistant" })
  }

  /** Retracts the answer that streams. */
  retractAnswer(messageId: MessageId): void {
    this.open = undefined
    this.emit({ _tag: "MessageRetracted", messageId })
  }

  /** The tools of the agent that the conversation is with. */
  get registry(): ToolRegistry["Service"] {
    return this.team.active.registry
  }

  /** Hands the conversation over to another agent, if a call of this turn requested that. */
  handOver(): void {
    const handedOff = this.team.pending && this.team.take(this.messages)
    if (handedOff === undefined) return
    this.options = this.team.optionsAfter(this.options)
    this.emit({ _tag: "HandedOff", ...handedOff })
  }

  /** Offers tools to the model for this turn. */
  offer(tools: ReadonlyMap<string, Tool.Any>, asked: Hook.RequestParts): void {
    this.offered = tools
    this.asked = asked
  }

  countModelCall(): void {
    this.modelCalls++
  }

  /** Returns the tool of a call, if the model may call it in this turn. */
  toolOf(call: ToolCall): Tool.Any | undefined {
    const { name } = call
    return call.hosted === true
      ? ToolOutcome.hostedTool(call)
      : findTool(this.offered, name, this.options.caseInsensitiveTools)
  }

  /** Whether a call may run again if it may have run before. */
  mayRunAgain(call: ToolCall): boolean {
    return (this.toolOf(call)?.effect ?? "once") !== "once"
  }

  /** Returns the background calls of the run. */
  keepBackground(): Background {
    return (this.background ??= new Background(this))
  }

  /** Counts the usage of model calls that a tool made itself. */
  spendInside(usage: Usage): void {
    this.spent.addInside(usage)
    this.spent.replace(Limits.nothing, { usage })
  }

  countToolCall(): void {
    this.toolCalls++
  }

  change(
    options: Partial<Options.RunOptions> | undefined,
    messages: ReadonlyArray<Message> | undefined,
    unset: ReadonlyArray<string> = []
  ): void {
    if (options !== undefined || unset.length > 0)
      this.options = Options.patch(Options.without(this.options, unset), options)
    if (messages === undefined) return
    this.messages = messages
    this.compactions.remeasure(messages)
  }

  /** Keeps messages for the next time that pending ones are delivered. `from`: the queue that they came from, if any. */
  addPending(from: QueueName | undefined, messages: ReadonlyArray<Message>): void {
    if (messages.length > 0) this.pending = { messages: [...this.pending.messages, ...messages], from }
  }

  /** Puts messages before the pending ones, but behind results, which must directly follow their calls. */
  addBefore(messages: ReadonlyArray<Message>): void {
    const { from, messages: pending } = this.pending
    const prompts = pending.filter(({ role }) => role !== "toolResult")
    const results = pending.filter(({ role }) => role === "toolResult")
    this.pending = { messages: [...results, ...messages, ...prompts], from }
  }

  /** Appends the pending messages to the transcript. */
  deliverPending(): void {
    const { messages } = this.pending
    this.pending = { messages: [], from: undefined }
    this.append(messages)
  }

  /** Publishes `RunCancelled`, once, if the run was cancelled. */
  announceCancel(): void {
    const { stop } = this.control
    if (stop?.cause !== "cancel" || this.isCancelAnnounced) return
    this.isCancelAnnounced = true
    this.emit({ _tag: "RunCancelled", ...(stop.reason === undefined ? {} : { reason: stop.reason }) })
  }

  /** Interrupts the run at this point if it was stopped. */
  get interruptible(): Effect.Effect<void> {
    return this.control.stop === undefined ? Effect.void : Effect.interrupt
  }

  /** Runs foreign work, which a stop of the run interrupts. A failure of the work after the stop counts as that interruption. */
  attempt<A, E, R>(work: Effect.Effect<A, E, R>, of: Halting = this.control): Effect.Effect<A, E, R> {
    if (of.isHalting) return Effect.interrupt
    // A constant effect needs no fiber.
    if (Exit.isExit(work) && Exit.isSuccess(work)) return work
    return Effect.flatMap(attempt(work, this), (ended) => {
      if (ended._tag !== "Done") return Effect.interrupt
      const { exit } = ended
      if (Exit.isSuccess(exit)) return exit
      return of.isHalting ? Effect.interrupt : uninterrupted(exit.cause)
    })
  }

  /** Calls the hooks of a point. `use` gets the output of each, and returns `"stop"` to skip the later ones. */
  ask<P extends Hook.Point>(
    point: P,
    input: () => Hook.Input<P>,
    use?: (output: Hook.Output<P>) => "next" | "stop" | void
  ): Effect.Effect<void, FailureReason> {
    return this.hooks.has(point) ? this.attempt(this.hooks.each(point, input, use)) : Effect.void
  }

  get requestParts(): Omit<Hook.RequestParts, "tools"> {
    const { model, system } = this.options
    return system === undefined ? { model } : { model, system }
  }

  get baseInput(): Hook.Base {
    return { runId: this.id, metadata: this.metadata }
  }

  /** The messages that requests may have, and the compaction that they start from. */
  get conversation(): ReturnType<typeof Recovery.withoutRefused> {
    return Recovery.withoutRefused({ messages: this.messages, compaction: this.compactions.current })
  }

  get turnInput(): Hook.TurnInput {
    return { ...this.baseInput, ...this.asked, turn: this.turn, messages: this.messages }
  }
}

/** Makes a defect of foreign work that interrupted itself, so that it does not count as a stop of the run. */
const uninterrupted = <E>(cause: Cause.Cause<E>): Effect.Effect<never, E> =>
  Cause.hasInterruptsOnly(cause) ? Effect.die(Cause.squash(cause)) : Effect.failCause(cause)

/** The run in whose tool or hook the current code runs; `undefined` outside of runs. */
export const Outer = Context.Reference<Run | undefined>("effect-agent/Run", {
  defaultValue: () => undefined
})
