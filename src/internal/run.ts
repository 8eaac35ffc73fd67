/**
 * One run, from its start to its end.
 *
 * Only the methods of this class assign its fields. They run in the run's own fiber and those of its tools, and each is one
 * synchronous step. Values that a run returns are copies, or are replaced and never changed.
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
import { attempt, Control } from "./interruption.ts"
import type { Journal } from "./journal.ts"
import * as Limits from "./limits.ts"
import { makeId, type Message, type MessageId, type ToolCall } from "../Message.ts"
import type { Output } from "./output.ts"
import type { Patience } from "./attempts.ts"
import * as Prices from "../Prices.ts"
import { Guard, Provider } from "../Provider.ts"
import type { QueueName, Queues } from "./queues.ts"
import * as Options from "../RunOptions.ts"
import * as Recovery from "./recovery.ts"
import type { Task } from "./task.ts"
import { Team } from "./team.ts"
import * as Tool from "../Tool.ts"
import { findTool } from "./toolRun.ts"
import { ResultLimit, ToolRegistry } from "../ToolRegistry.ts"
import type { Usage } from "../Usage.ts"
import { Waiting } from "./waiting.ts"

/** The services of a run. */
export type Services = Provider | ToolRegistry

/** Unique, like the ids of messages. */
export const makeRunId = (): string => `run_${makeId().slice("msg_".length)}`

/** Those who receive the events of a run, and the run whose tool call it belongs to. */
export interface Surroundings extends Audience {
  /** Publishes the events between its own, in place of the reader, and counts the usage. Default: none. */
  readonly parent?: Run | undefined
}

const soloOf = ({ options }: Task, context: Context.Context<Services>): Team =>
  Team.of(options, Context.get(context, ToolRegistry), Context.get(context, HookManager))

export class Run {
  readonly id: string
  readonly control = new Control()
  readonly clock: Clock.Clock
  readonly provider: Provider["Service"]
  /** The registry of the context that the run has. Code inside of the run finds it there too. */
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
  /** Publishes events. Subscribers may receive them later: await `delivered` of the mailbox where that matters. */
  readonly emit: Mailbox["emit"]
  /** The run whose tool call this one belongs to, so that its usage counts there too; absent for any other run. */
  readonly parent: Run | undefined
  /** Its requests to a person. */
  readonly waiting: Waiting
  /** Writes the conversation to the session of the agent; absent for an agent without one. */
  readonly journal: Journal | undefined
  /** The spending of this run and those inside, for events and for the limits. */
  readonly spent: Limits.Spending
  /** The output that the model must give; absent for a run that ends with any answer. */
  readonly output: Output<unknown> | undefined
  /** The retries of turns that fail; absent for a run that fails with the first of them. */
  readonly retry: Patience | undefined
  /** Shared by the hooks of this run. */
  readonly metadata = new Map<string, unknown>()
  /** Changed by hooks, and by the application from the next turn on. */
  options: Options.RunOptions
  /** Requests are made from these: the transcript, unless `prepareNextTurn` replaced it. */
  messages: ReadonlyArray<Message>
  /** Messages that this run put into the transcript. */
  newMessages: ReadonlyArray<Message> = []
  /** Messages that wait for their turn, and the queue they were taken from. */
  pending: { readonly messages: ReadonlyArray<Message>; readonly from: QueueName | undefined }
  /** The tools that the model may call in this turn. */
  offered: ReadonlyMap<string, Tool.Any> = new Map()
  /** The model, system prompt and tools of the request of this turn. */
  asked: Hook.RequestParts
  /** The calls that continue beside the turns; absent in a run that has none. */
  background: Background | undefined
  /** The answer that streams at the moment. */
  open: OpenAnswer | undefined
  /** A hook requires the next turn, whether or not there is a message to answer. */
  isContinued = false
  /** Turns begun. */
  turn = 0
  /** Calls of the provider. */
  modelCalls = 0
  /** Calls looked at, however they ended. */
  toolCalls = 0
  /** The latest tool calls, for the limit on identical ones. */
  readonly repetition = new Limits.Repetition()
  private isCancelAnnounced = false

  constructor(task: Task, audience: Surroundings, context: Context.Context<Services>) {
    this.id = task.runId ?? makeRunId()
    this.clock = Context.get(context, Clock.Clock)
    this.provider = Context.get(context, Provider)
    this.toolsAround = Context.get(context, ToolRegistry)
    this.team = task.team ?? soloOf(task, context)
    this.contextManager = Context.get(context, ContextManager.ContextManager)
    this.prices = Context.get(context, Prices.Prices)
    this.resultLimit = Context.get(context, ResultLimit)
    this.guard = Context.get(context, Guard)
    this.hooks = new RunHooks(this)
    this.parent = audience.parent
    this.waiting = new Waiting(task, Context.get(context, Outer), context, this.parent)
    this.queues = task.queues
    const callers = callersOf(Context.getOption(context, Tool.ToolContext))
    this.mailbox = new Mailbox(this, callers, audience, this.parent?.mailbox)
    this.emit = this.mailbox.emit
    this.journal = audience.journal
    this.parent?.control.enter(this.control, this.mailbox.path?.at(-1)?.toolCallId)
    this.compactions = task.compactions
    this.output = task.output
    this.retry = task.retry
    this.options = task.options
    const outer = Context.get(context, Outer)
    this.spent = new Limits.Spending(task.options.limits, outer?.spent, this.parent?.spent)
    this.asked = { ...this.requestParts, tools: [] }
    this.messages = task.messages
    this.pending = { messages: task.prompts, from: task.promptsFrom }
    if (task.interrupted !== undefined) this.restore(task.interrupted)
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

  /** Adds the message that an answer has become to the transcript. */
  end(message: Message): void {
    this.open = undefined
    this.grow([message])
    this.emit({ _tag: "MessageEnd", message })
  }

  /** Before the events, so that code that receives them finds the messages. */
  private grow(messages: ReadonlyArray<Message>): void {
    this.messages = [...this.messages, ...messages]
    this.newMessages = [...this.newMessages, ...messages]
  }

  /** Publishes the start of an answer, which streams from now on. */
  openAnswer(answer: OpenAnswer): void {
    this.open = answer
    this.emit({ _tag: "MessageStart", messageId: answer.id, role: "assistant" })
  }

  /** Voids the answer that streams. */
  retractAnswer(messageId: MessageId): void {
    this.open = undefined
    this.emit({ _tag: "MessageRetracted", messageId })
  }

  /** The tools of the agent that the conversation is with. */
  get registry(): ToolRegistry["Service"] {
    return this.team.active.registry
  }

  /** Continues with another agent, if a call of this turn handed off to it. */
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

  /** Begins to keep calls that may continue beside the turns. */
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

  /** Puts messages before the pending ones, but behind results, which follow their calls. */
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

  /** Ends here if the run is stopped by now. */
  get interruptible(): Effect.Effect<void> {
    return this.control.stop === undefined ? Effect.void : Effect.interrupt
  }

  /** Runs foreign work, which a stop of the run interrupts. A failure after the stop is an interruption. */
  attempt<A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    const { control } = this
    if (control.isHalting) return Effect.interrupt
    // A value that is there needs no fiber.
    if (Exit.isExit(work) && Exit.isSuccess(work)) return work
    return Effect.flatMap(attempt(work, { control }), (ended) => {
      if (ended._tag !== "Done") return Effect.interrupt
      const { exit } = ended
      if (Exit.isSuccess(exit)) return exit
      return control.isHalting ? Effect.interrupt : uninterrupted(exit.cause)
    })
  }

  /** Asks the hooks of a point. `use` takes what each returned, and may keep those after it from being asked. */
  ask<P extends Hook.Point>(
    point: P,
    input: () => Hook.Input<P>,
    use?: (output: Hook.Output<P>) => "next" | "stop" | void
  ): Effect.Effect<void, FailureReason> {
    return this.hooks.has(point) ? this.attempt(this.hooks.each(point, input, use)) : Effect.void
  }

  /** The model and system prompt of a request, by the options. */
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

/** Foreign work that interrupted itself must not pass for a run that was stopped. */
const uninterrupted = <E>(cause: Cause.Cause<E>): Effect.Effect<never, E> =>
  Cause.hasInterruptsOnly(cause) ? Effect.die(Cause.squash(cause)) : Effect.failCause(cause)

/** The run that code runs inside of: in a tool, or in a hook. */
export const Outer = Context.Reference<Run | undefined>("effect-agent/Run", {
  defaultValue: () => undefined
})
