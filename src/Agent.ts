/**
 * An agent: a conversation that continues from prompt to prompt, one run at a time, with queues, control and a state to watch.
 *
 * An agent takes its tools and hooks as values, so that two agents of one application have their own.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import { type AgentEvent, partial } from "./AgentEvent.ts"
import { AgentRuntime, type MakeTask, type SteerOptions } from "./internal/agentRuntime.ts"
import type { AgentState, Subscribable } from "./internal/agentState.ts"
import type * as Approval from "./Approval.ts"
import { ByHand } from "./internal/compactions.ts"
import type { InvalidContinuation } from "./internal/continuation.ts"
import { eventsOnly } from "./internal/eventsOnly.ts"
import * as Execution from "./internal/execution.ts"
import type { StartedRun } from "./internal/execution.ts"
import type * as Hook from "./Hook.ts"
import * as HookManager from "./HookManager.ts"
import type { InvalidInput } from "./internal/invalidInput.ts"
import type * as Message from "./Message.ts"
import { open } from "./internal/openAgent.ts"
import type { OutputOf, OutputOptions } from "./internal/output.ts"
import {
  type AgentOptions,
  type Hooks,
  prompted,
  type Prompted,
  type PromptOptions,
  readAgent,
  readPrompt,
  type Tools,
  type Unread
} from "./internal/options.ts"
import { Provider } from "./Provider.ts"
import type { Queued, QueueMode, QueueModes, QueueName, Sizes } from "./internal/queues.ts"
import type { RunFailed, RunResult } from "./Run.ts"
import type { RunOptions, Update } from "./RunOptions.ts"
import type { RunReport } from "./RunReport.ts"
import type { SubscribeOptions } from "./internal/mailbox.ts"
import type { AgentBusy, AgentClosed, NotPaused } from "./internal/errors.ts"
import type * as Tool from "./Tool.ts"
import * as ToolRegistry from "./ToolRegistry.ts"
import type * as Transcript from "./Transcript.ts"
import type { Usage } from "./Usage.ts"
export { AgentBusy, AgentClosed, NotPaused } from "./internal/errors.ts"
export type { SteerOptions } from "./internal/agentRuntime.ts"
export type { AgentState, Subscribable } from "./internal/agentState.ts"
export { InvalidContinuation } from "./internal/continuation.ts"
export type { StartedRun } from "./internal/execution.ts"
export { InvalidInput } from "./internal/invalidInput.ts"
export type { OutputOf, OutputOptions } from "./internal/output.ts"
export type {
  AgentOptions,
  Hooks,
  PromptOptions,
  RetryOptions,
  RunIdOptions,
  Tools
} from "./internal/options.ts"
export { type HandOff, handOff, type HandOffOptions } from "./internal/openAgent.ts"
export type { Member } from "./internal/team.ts"
export {
  asTool,
  SubAgentFailed,
  type SubAgentInput,
  type SubAgentOptions,
  type SubAgentParams
} from "./internal/subAgent.ts"
export type { Queued, QueueMode, QueueModes, QueueName, Sizes } from "./internal/queues.ts"
export type { SubscribeOptions } from "./internal/mailbox.ts"

/**
 * The errors of a run that could not begin.
 *
 * @category errors
 * @since 0.2.0
 */
export type CannotBegin = AgentBusy | AgentClosed | InvalidInput

/**
 * An agent: one conversation, one run at a time.
 *
 * **Details**
 *
 * `O` are the members that the schema of the agent's output adds to each result, such as `{ readonly output: Review }`. Default:
 * none.
 *
 * @category models
 * @since 0.1.0
 */
export interface Agent<out O = {}> {
  /**
   * Runs until the model has answered, and succeeds with the result of the run. A cancelled run is a result; a failed one
   * fails with `RunFailed`. Interrupting the effect cancels the run, and waits for its end.
   *
   * With an `output` schema, of the agent or of this prompt, the result has the decoded `output`. A run that ends without one
   * then fails: with reason `OutputInvalid` after the repairs, and with `OutputMissing` if it was cancelled or stopped.
   */
  readonly prompt: <A = never>(
    input: Message.Input,
    options?: PromptOptions<A>
  ) => Effect.Effect<RunResult & OutputOf<A, O>, RunFailed | CannotBegin>
  /**
   * Runs as a stream of events. The stream fails with `RunFailed` after the events of a run that failed. The run waits with
   * further deltas while the reader is more than 64 events behind. Leaving the stream cancels the run.
   */
  readonly stream: (
    input: Message.Input,
    options?: PromptOptions<unknown>
  ) => Stream.Stream<AgentEvent, RunFailed | CannotBegin>
  /** `stream` without failures, for a server: `RunError` and `RunEnd` end a failed run, and one that could not begin. */
  readonly streamEvents: (input: Message.Input, options?: PromptOptions<unknown>) => Stream.Stream<AgentEvent>
  /**
   * Starts a new run without a prompt: from the turn that the last run left open when it was suspended, else with queued messages after a complete answer, else from the transcript as it stands.
   * An answer that failed or was cancelled stays in the transcript, and the model answers again. A call without a result gets
   * an error result, and does not run. Fails with `InvalidContinuation` if the model has nothing to answer.
   */
  readonly continue: Effect.Effect<RunResult & O, RunFailed | CannotBegin | InvalidContinuation>
  /** `continue` as a stream of events. */
  readonly continueStream: Stream.Stream<AgentEvent, RunFailed | CannotBegin | InvalidContinuation>
  /** Starts a run in the scope of the agent, and returns its handle: events and result of one run. The run ends with that scope at the latest. */
  readonly start: <A = never>(
    input: Message.Input,
    options?: PromptOptions<A>
  ) => Effect.Effect<StartedRun<OutputOf<A, O>>, CannotBegin>
  /** Starts the run of `continue` in the scope of the agent, and returns its handle. */
  readonly startContinue: Effect.Effect<StartedRun<O>, CannotBegin | InvalidContinuation>
  /**
   * Queues a message for the time after the current turn, which `interrupt` ends at once. An idle agent keeps it for its next run.
   * Messages that a stopped run left stand before the next prompt.
   */
  readonly steer: (message: Message.Input, options?: SteerOptions) => Effect.Effect<void>
  /** Queues a message for the time when the run would end. An idle agent keeps it for its next run. */
  readonly followUp: (message: Message.Input) => Effect.Effect<void>
  /** Holds the run before its next turn or tool call. Work in flight continues. Does nothing while the agent is idle. */
  readonly pause: (reason?: string) => Effect.Effect<void>
  /** Releases a paused run; `RunResumed` has the reason. Fails with `NotPaused` if no run is paused: see `continue`. */
  readonly resume: (reason?: string) => Effect.Effect<void, NotPaused>
  /** Interrupts the work in flight and ends the run. Does not wait for the end. Does nothing while the agent is idle. */
  readonly cancel: (reason?: string) => Effect.Effect<void>
  /**
   * Puts a summary in place of the older messages of later requests. The transcript keeps them. Runs without turns: its events are
   * `RunStart`, `Compaction` and `RunEnd`. `instructions` are for the summary. Default none.
   *
   * Fails with `AgentBusy` during a run, and with `RunFailed` of reason `CompactionFailed` if the context manager does not compact or
   * its summary failed. Interrupting the effect cancels the run.
   */
  readonly compact: (
    instructions?: string
  ) => Effect.Effect<CompactionResult, RunFailed | AgentBusy | AgentClosed>
  /** Clears messages, queues, the summary and the last error. Fails with `AgentBusy` during a run. */
  readonly reset: Effect.Effect<void, AgentBusy>
  /** Waits until the agent has no run, and subscribers have received all events. */
  readonly waitForIdle: Effect.Effect<void>
  /**
   * Changes options for later turns, those of the current run too. `null` unsets an option, as in `{ system: null }` or
   * `{ limits: { maxTurns: null } }`; one that is `undefined` stays as it is.
   */
  readonly update: (changes: Update) => Effect.Effect<void, InvalidInput>
  /** Replaces the transcript, and removes its summary. The current run takes it from its next turn. */
  readonly setMessages: (messages: ReadonlyArray<Message.Message>) => Effect.Effect<void, InvalidInput>
  /** The approvals and questions that wait for a person, oldest first, those of sub-agents too. */
  readonly requests: Effect.Effect<Approval.OpenRequests>
  /**
   * Answers a request by its `approvalId` or `questionId`, and succeeds with the answer that counts: the first one. A call of a suspended
   * run runs with `continue`.
   *
   * - An approval takes `{ decision, argumentsHash }`, with the hash of the request. `params` replace those of the call, which then needs
   *   no further approval.
   * - A question of the model takes `{ answer }`, which its schema decodes. `{ declined: true }` declines: the call is rejected, and the
   *   model reads the reason.
   *
   * Fails with `RequestNotFound` for a request that is not open, with `AnswerConflict` for another hash, or another answer than the first
   * one to a question, and with `InvalidAnswer` for params or an answer that the tool or the schema does not take.
   */
  readonly answer: {
    (id: string, reply: Approval.Reply): Effect.Effect<Approval.Answer, Approval.CannotAnswer>
    (id: string, reply: Approval.QuestionReply): Effect.Effect<Approval.QuestionAnswer, Approval.CannotAnswer>
    (
      id: string,
      reply: Approval.Reply | Approval.QuestionReply
    ): Effect.Effect<Approval.Answer | Approval.QuestionAnswer, Approval.CannotAnswer>
  }
  /** The messages that wait for the end of the turn, and for the end of the run. */
  readonly queues: AgentQueues
  /** The state of the agent: read it with `state.get`, watch it with `state.changes`. */
  readonly state: Subscribable<AgentState>
  /** The answer that streams at the moment, as far as it came. */
  readonly partial: Effect.Effect<Option.Option<Message.Assistant>>
  /**
   * The events of all runs until the agent closes. A reader that is more than 1024 events behind loses the oldest; no run
   * waits for it.
   */
  readonly events: Stream.Stream<AgentEvent>
  /** How many events the readers of `events` have lost. */
  readonly droppedEvents: Effect.Effect<number>
  /**
   * Calls the listener for each event of each run, until the scope closes, and awaits it before the next event. Subscribers
   * are called in the order in which they subscribed. One that subscribes in the agent's own scope also receives the end of
   * the last run.
   *
   * A listener cannot change a run: the agent logs its first failure. A listener that takes longer than `timeout` (default 5
   * seconds) for an event is interrupted and unsubscribed. One that is busy when the run is stopped is interrupted after 100
   * milliseconds and receives only `RunEnd` of that run. Interruption is its abort signal:
   * `Effect.tryPromise((signal) => …)`.
   */
  readonly subscribe: <E, R>(
    listener: (event: AgentEvent) => Effect.Effect<void, E, R>,
    options?: SubscribeOptions
  ) => Effect.Effect<void, never, R | Scope.Scope>
  /** The report of the current run, or of the last one. */
  readonly report: Effect.Effect<Option.Option<RunReport>>
  /** The tools of this agent. Changes count from the next turn. */
  readonly tools: ToolRegistry.ToolRegistry["Service"]
  /** The hooks of this agent. */
  readonly hooks: HookManager.HookManager
  /**
   * The hooks that failed too often in a row in the current run, or the last one: the run does not call them again. `enable` of their
   * manager takes a hook off the list.
   */
  readonly disabledHooks: Effect.Effect<ReadonlyArray<HookManager.Registered>>
}

/**
 * The queues of an agent: messages that `steer` and `followUp` put there, until a run takes them.
 *
 * @category models
 * @since 0.2.0
 */
export interface AgentQueues {
  /** How many messages wait in each queue. */
  readonly sizes: Effect.Effect<Sizes>
  /** The messages that wait in each queue, oldest first. */
  readonly messages: Effect.Effect<Queued>
  /** The mode of each queue. Default `"one-at-a-time"` for both. */
  readonly modes: Effect.Effect<QueueModes>
  /** Removes the messages of one queue, or of both, and succeeds with them: each was removed, or a run has taken it. */
  readonly clear: (which: QueueName | "all") => Effect.Effect<Queued>
  /** Sets how many messages of a queue a turn takes: one, or all. */
  readonly setMode: (which: QueueName, mode: QueueMode) => Effect.Effect<void>
}

/**
 * The result of `agent.compact`.
 *
 * @category models
 * @since 0.2.0
 */
export interface CompactionResult {
  /** The id of the run. */
  readonly runId: string
  /**
   * The end of the run: it made a summary, it found nothing to compact, or the application cancelled it.
   */
  readonly status: "compacted" | "nothing" | "cancelled"
  /** The compaction; absent if there is none. `tokensBefore` and `tokensAfter` are those of a request, measured or estimated. */
  readonly compaction?: Transcript.Compaction & {
    /** The id in the event `Compaction`. */
    readonly entryId: string
    readonly tokensBefore: number
    readonly tokensAfter: number
  }
  /** The tokens of the model calls that made the summary. */
  readonly usage: Usage
}

/**
 * Makes an agent that lives as long as its scope.
 *
 * **Details**
 *
 * The agent requires a `Provider`, and the services that its tools and hooks need. Fails with `InvalidInput` for options or
 * messages that are not valid; the error names each fault.
 *
 * With `output` each run ends only when the model has given an output that the schema decodes. The model answers with JSON where
 * `structuredOutput` of the provider allows it; else it calls the tool `final_answer`, for which the run calls no tool hooks and
 * counts no tool call. An output that is not valid takes a turn to repair, `outputRetries` times. Messages that wait in a queue
 * come first: the output is that of the last turn.
 *
 * **Example** (Asking a model with a tool)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Tool } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const time = Tool.make({
 *   name: "time",
 *   description: "The time in Oslo",
 *   execute: () => Effect.succeed("12:00")
 * })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", tools: [time] })
 *   const { text } = yield* agent.prompt("What time is it?")
 *   return text
 * }).pipe(
 *   Effect.provide(
 *     ScriptedProvider.layer([ScriptedProvider.toolCall("time", {}), ScriptedProvider.text("It is noon.")])
 *   ),
 *   Effect.scoped
 * )
 *
 * console.log(await Effect.runPromise(program)) // => It is noon.
 * ```
 *
 * **Example** (Decoding the output)
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Agent } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", output: Schema.Struct({ grade: Schema.Int }) })
 *   const { output } = yield* agent.prompt("Review my essay.")
 *   return output.grade
 * }).pipe(
 *   Effect.catchReason("RunFailed", "OutputInvalid", ({ text }) => Effect.die(`No review: ${text}`)),
 *   Effect.provide(ScriptedProvider.layer([ScriptedProvider.toolCall("final_answer", { grade: 2 })])),
 *   Effect.scoped
 * )
 *
 * console.log(await Effect.runPromise(program)) // => 2
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export function make<const T extends Tools = readonly [], const H extends Hooks = readonly [], A = never>(
  options: AgentOptions<T, H> & OutputOptions<A>
): Effect.Effect<
  Agent<OutputOf<A>>,
  InvalidInput,
  Scope.Scope | Provider | Tool.Requirements<T[number]> | Hook.Requirements<H[number]>
>
export function make<const T extends Tools, const H extends Hooks>(
  options: AgentOptions<T, H> & OutputOptions<unknown>
): Effect.Effect<
  Agent,
  InvalidInput,
  Scope.Scope | Provider | Tool.Requirements<T[number]> | Hook.Requirements<H[number]>
> {
  return Effect.gen(function* () {
    const definition = yield* Effect.fromResult(readAgent(options))
    const { manager, registry, runtime } = yield* open(definition)
    return agentOf(runtime, definition.ofRuns, registry, manager)
  })
}

/**
 * Runs an agent once: makes it, prompts it, and releases it.
 *
 * **When to use**
 *
 * Use it for a task without a conversation. `make` gives an agent that keeps the conversation, and that others can steer and watch.
 *
 * **Example** (Asking once)
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Agent } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const review = Agent.run("Review my essay.", { model: "any", output: Schema.Struct({ grade: Schema.Int }) })
 *
 * const provider = ScriptedProvider.layer([ScriptedProvider.toolCall("final_answer", { grade: 2 })])
 * const { output } = await Effect.runPromise(Effect.provide(review, provider))
 * console.log(output.grade) // => 2
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const run = <const T extends Tools = readonly [], const H extends Hooks = readonly [], A = never>(
  input: Message.Input,
  options: AgentOptions<T, H> & OutputOptions<A>
): Effect.Effect<
  RunResult & OutputOf<A>,
  RunFailed | InvalidInput,
  Exclude<Provider | Tool.Requirements<T[number]> | Hook.Requirements<H[number]>, Scope.Scope>
> =>
  Effect.scoped(
    Effect.flatMap(make(options), (agent) =>
      // No other code has this agent, so that it cannot be busy or closed.
      Effect.catchTag(agent.prompt(input), ["AgentBusy", "AgentClosed"], Effect.die)
    )
  )

/**
 * Makes a layer with an agent behind a tag of the application.
 *
 * **Example** (Providing an agent as a service)
 *
 * ```ts
 * import { Context, Effect, Layer } from "effect"
 * import { Agent } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * class Coder extends Context.Service<Coder, Agent.Agent>()("Coder") {}
 *
 * const CoderLive = Agent.layer(Coder, { model: "any", system: "You write code." }).pipe(
 *   Layer.provide(ScriptedProvider.layer([ScriptedProvider.text("const one = 1")]))
 * )
 *
 * const program = Coder.use((coder) => coder.prompt("Declare one.")).pipe(Effect.provide(CoderLive))
 * console.log((await Effect.runPromise(program)).status) // => completed
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <
  Self,
  const T extends Tools = readonly [],
  const H extends Hooks = readonly [],
  A = never
>(
  tag: Context.Service<Self, Agent<OutputOf<A>>>,
  options: AgentOptions<T, H> & OutputOptions<A>
): Layer.Layer<
  Self,
  InvalidInput,
  Exclude<Provider | Tool.Requirements<T[number]> | Hook.Requirements<H[number]>, Scope.Scope>
> => Layer.effect(tag, make(options))

/** Makes the members of an agent. They do not use `this`, so that an application may destructure an agent. */
const agentOf = (
  runtime: AgentRuntime,
  ofRuns: Unread,
  tools: Agent["tools"],
  hooks: Agent["hooks"]
): Agent => {
  const { queues, subscriptions } = runtime
  const { requests } = runtime.open
  function answer(id: string, reply: Approval.Reply): Effect.Effect<Approval.Answer, Approval.CannotAnswer>
  function answer(
    id: string,
    reply: Approval.QuestionReply
  ): Effect.Effect<Approval.QuestionAnswer, Approval.CannotAnswer>
  function answer(
    id: string,
    reply: Approval.Reply | Approval.QuestionReply
  ): Effect.Effect<Approval.Answer | Approval.QuestionAnswer, Approval.CannotAnswer>
  function answer(id: string, reply: Approval.Reply | Approval.QuestionReply) {
    return runtime.open.answer(id, reply)
  }
  return {
    ...runsOf(runtime, ofRuns),
    steer: (message, options) => runtime.steer(message, options),
    followUp: (message) => runtime.enqueue("followUp", message),
    pause: (reason) => Effect.sync(() => runtime.control?.pause(reason)),
    resume: (reason) => runtime.resume(reason),
    cancel: (reason) => Effect.suspend(() => runtime.control?.cancel(reason) ?? Effect.void),
    compact: (instructions) => compactionOf(runtime, instructions),
    reset: runtime.reset,
    waitForIdle: runtime.waitForIdle,
    update: (changes) => runtime.update(changes),
    setMessages: (messages) => runtime.setMessages(messages),
    requests: Effect.sync(() => requests.open),
    answer,
    queues: {
      sizes: Effect.sync(() => queues.sizes),
      messages: Effect.sync(() => queues.queued),
      modes: Effect.sync(() => queues.modes),
      clear: (which) => runtime.clearQueue(which),
      setMode: (which, mode) => Effect.sync(() => queues.setMode(which, mode))
    },
    state: runtime.watched,
    partial: Effect.sync(() => Option.fromUndefinedOr(partial({ open: runtime.run?.open }))),
    events: subscriptions.events,
    droppedEvents: Effect.sync(() => subscriptions.dropped),
    subscribe: (listener, options) => subscriptions.subscribe(listener, options),
    report: Effect.sync(() => Option.fromUndefinedOr(runtime.run?.mailbox.report)),
    tools,
    hooks,
    disabledHooks: Effect.sync(() => runtime.run?.hooks.disabled ?? [])
  }
}

type Runs = Pick<
  Agent,
  "prompt" | "stream" | "streamEvents" | "continue" | "continueStream" | "start" | "startContinue"
>

/** Makes the members that start runs. `ofRuns` are the output and retry options for prompts that have none of their own. */
const runsOf = (runtime: AgentRuntime, ofRuns: Unread): Runs => {
  const withOptions = <O, A, E>(
    options: PromptOptions<O> | undefined,
    use: (read: Prompted<Partial<RunOptions>, OutputOf<O>>) => Effect.Effect<A, E>
  ) => Effect.suspend(() => Effect.flatMap(Effect.fromResult(readPrompt(options, ofRuns)), use))
  const run = <O, E>(task: MakeTask<E>, options?: PromptOptions<O>) =>
    withOptions(options, (read) =>
      Effect.flatMap(Execution.join(runtime.begin(task, read)), read.typed.result)
    )
  const streamOf = <E>(task: MakeTask<E>, options?: PromptOptions<unknown>) =>
    Execution.stream((reader) => withOptions(options, (read) => runtime.begin(task, read, reader)))
  const stream: Agent["stream"] = (input, options) => streamOf(prompted(input), options)
  const start = <O, E>(task: MakeTask<E>, options?: PromptOptions<O>) =>
    withOptions(options, (read) =>
      Execution.handle((reader) => runtime.begin(task, read, reader), read.typed.result)
    )
  return {
    prompt: (input, options) => run(prompted(input), options),
    start: (input, options) => start(prompted(input), options),
    startContinue: start(runtime.continuation),
    stream,
    streamEvents: (input, options) => eventsOnly(stream(input, options)),
    continue: run(runtime.continuation),
    continueStream: streamOf(runtime.continuation)
  }
}

const compactionOf: (
  runtime: AgentRuntime,
  instructions: string | undefined
) => ReturnType<Agent["compact"]> = Effect.fnUntraced(function* (runtime, instructions) {
  const byHand = new ByHand(instructions)
  const { runId, status, usage } = yield* Execution.join(runtime.compact(byHand))
  const { made } = byHand
  if (made !== undefined) return { runId, status: "compacted", compaction: made, usage }
  return { runId, status: status === "cancelled" ? status : "nothing", usage }
})
