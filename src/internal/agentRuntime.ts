/**
 * The state of an agent between and during its runs: the transcript, the queues, the subscribers, and the current run, of which there is at
 * most one. `Agent` exports its members.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { AgentEvent } from "../AgentEvent.ts"
import * as State from "./agentState.ts"
import * as Background from "./background.ts"
import { type ByHand, Compactions } from "./compactions.ts"
import * as Continuation from "./continuation.ts"
import { Subscriptions } from "./mailbox.ts"
import { type Reader, Readers } from "./reader.ts"
import * as Execution from "./execution.ts"
import type { Interrupted } from "./openTurn.ts"
import type { Control } from "./interruption.ts"
import * as Input from "./invalidInput.ts"
import type { Journal } from "./journal.ts"
import * as Message from "../Message.ts"
import { OpenTurns } from "./waiting.ts"
import * as Ending from "./ending.ts"
import type { Prompted } from "./options.ts"
import { type Queued, type QueueMode, type QueueName, Queues } from "./queues.ts"
import type { Run, Services } from "./run.ts"
import * as Options from "../RunOptions.ts"
import type * as Session from "../Session.ts"
import { AgentBusy, AgentClosed, NotPaused } from "./errors.ts"
import type { RunSpec } from "./runSpec.ts"
import type { Team } from "./team.ts"

type Starting<E> = Effect.Effect<Execution.RunHandle, AgentBusy | AgentClosed | E>

/** Makes the specification of a run that begins at `now`, in milliseconds since the epoch. */
export type MakeTask<E> = (now: number) => Result.Result<Begin, E>

/** The options of a run that asks the model nothing. */
const ofNothing: Prompted<{}> = {
  options: {},
  typed: Ending.typed(undefined, undefined),
  retry: undefined
}

/** The parts of an agent that do not come from its options. */
interface AgentParts {
  readonly journal: Journal | undefined
  readonly team: Team
  /** The run whose tool call the agent works for. Default: none. */
  readonly parent: Run | undefined
  /** Whether a prompt continues the conversation. With `false` each prompt begins from the same messages. */
  readonly preserveHistory: boolean
  readonly scope: Scope.Scope
}

/**
 * Options of `agent.steer`.
 *
 * @category options
 * @since 0.2.0
 */
export interface SteerOptions {
  /**
   * Whether the message ends the turn at work: the answer that streams stops there, its tools are interrupted, and the next turn
   * begins with the message, and with those that wait before it. Calls in the background continue. Default: `false`, the message
   * waits for the end of the turn.
   */
  readonly interrupt?: boolean
}

export class AgentRuntime {
  readonly queues: Queues
  current: State.AgentState
  /** The queues through which the streams of `state.changes` get each new state. */
  private readonly watchers = new Readers<State.AgentState>()
  /** Adds the agent's services to those of the caller. The agent's win. */
  private readonly services: (caller: Context.Context<never>) => Context.Context<Services>
  /** A latch that opens when the current run is over and its subscribers have received all events; `undefined` without a run. */
  private ended: Latch.Latch | undefined
  private isClosed = false
  readonly compactions: Compactions
  /** The current run, or the last one. */
  run: Run | undefined
  readonly subscriptions: Subscriptions
  /** The turn that waits for a person, and the open requests. */
  readonly open: OpenTurns
  private readonly journal: Journal | undefined
  private readonly parent: Run | undefined
  readonly team: Team
  /** The messages and the summary that each prompt begins from; `undefined` where it continues the conversation. */
  private origin: Pick<State.AgentState, "messages" | "compaction"> | undefined
  /** Changes that the application made since the last turn began. */
  private changes:
    | { options?: Partial<Options.RunOptions>; unset?: ReadonlyArray<string>; replaced?: boolean }
    | undefined

  constructor(
    state: State.AgentState,
    modes: Partial<Record<QueueName, QueueMode>>,
    { journal, parent, preserveHistory, scope, team }: AgentParts,
    services: (caller: Context.Context<never>) => Context.Context<Services>
  ) {
    this.current = state
    this.origin = preserveHistory ? undefined : state
    this.compactions = new Compactions(state.messages, state.compaction)
    this.queues = new Queues(modes)
    this.journal = journal
    this.parent = parent
    this.team = team
    this.subscriptions = new Subscriptions(scope)
    this.services = services
    this.open = new OpenTurns(
      () => team.active.registry,
      (event) => journal?.write([{ _tag: "Event", event }]) ?? Effect.void
    )
  }

  /** Restores the state from the session. Writes `RunLost` for a run whose process ended, unless the next run continues it. */
  readonly restore = Effect.suspend(() => {
    if (this.journal === undefined) return Effect.void
    const { background = [], interrupted, lostRun, notes, open, queues } = this.journal.session.restored
    notes?.forEach((note, messageId) => this.compactions.notes.set(messageId, note))
    this.open.interrupted = interrupted
    this.open.keep(open)
    this.open.background = background
    this.queues.add("steering", queues.steering)
    this.queues.add("followUp", queues.followUp)
    return interrupted === undefined ? this.journal.lose(lostRun) : Effect.void
  })

  get control(): Control | undefined {
    return this.ended && this.run?.control
  }

  /** The state for readers: they cannot set it. */
  get watched(): State.Subscribable<State.AgentState> {
    return {
      get: Effect.sync(() => this.current),
      getUnsafe: () => this.current,
      changes: this.watchers.stream(Queue.unbounded(), () => [this.current])
    }
  }

  private set(state: State.AgentState): void {
    this.current = state
    for (const watcher of this.watchers.queues) Queue.offerUnsafe(watcher, state)
  }

  /**
   * Starts a run, or fails with `AgentBusy` if there is a current one. The check and the start are one uninterruptible step: of two callers
   * at once only one starts a run, and an interruption cannot leave the agent busy without a run.
   */
  begin<E>(
    makeTask: MakeTask<E>,
    prompted: Prompted<Partial<Options.RunOptions>>,
    reader?: Reader
  ): Starting<E> {
    return Effect.uninterruptible(
      Effect.gen({ self: this }, function* () {
        if (this.isClosed) return yield* new AgentClosed()
        if (this.ended !== undefined) return yield* new AgentBusy()
        const now = yield* Clock.currentTimeMillis
        const begin = yield* Effect.fromResult(makeTask(now))
        if (!begin.continued && this.origin !== undefined) this.returnTo(this.origin)
        yield* this.open.take(begin.interrupted, this.journal)
        const isResumed = begin.open !== undefined || begin.byHand !== undefined
        const isContinued = isResumed || begin.interrupted !== undefined
        const { background } = this.open
        const results = isResumed ? [] : this.open.close(this.current.messages, now)
        const ends = isContinued || background.length === 0 ? [] : Background.closing(background, now)
        const prompts = [...results, ...ends, ...begin.prompts]
        const left = isContinued && begin.byHand === undefined ? { background } : {}
        if (begin.byHand === undefined) this.open.background = []
        const { runId = prompted.runId } = begin
        return yield* this.start({ ...begin, ...left, prompts, runId }, prompted, reader)
      })
    )
  }

  /** Puts the messages and the summary of the origin in place of the conversation. */
  private returnTo({ compaction, messages }: NonNullable<AgentRuntime["origin"]>): void {
    this.open.keep(undefined)
    this.compactions.drop(messages, compaction)
    this.set(State.initial(messages, this.current.options, compaction))
  }

  /** Starts a run that compacts the conversation and takes no turn. */
  compact(byHand: ByHand): Effect.Effect<Execution.RunHandle, AgentBusy | AgentClosed> {
    return this.begin(
      () => Result.succeed({ prompts: [], continued: true, pollFirst: false, byHand }),
      ofNothing
    )
  }

  private start(
    begin: Begin,
    { options: patch, retry, typed: { output } }: Prompted<Partial<Options.RunOptions>>,
    reader: Reader | undefined
  ): Effect.Effect<Execution.RunHandle> {
    const ended = Latch.makeUnsafe(false)
    this.ended = ended
    this.changes = undefined
    const { compactions, nextTurn, observe, queues, subscriptions, team } = this
    const { inner, requests } = this.open
    const { messages } = this.current
    const options = Options.patch(Options.patch(this.current.options, begin.interrupted?.options), patch)
    const onRun = (run: Run) => {
      this.run = run
    }
    // A run is over when its last subscriber has received its end.
    const rest = Effect.suspend(() => {
      this.ended = undefined
      if (begin.byHand === undefined) this.keepOpen(this.run)
      this.set({ ...this.current, phase: "idle" })
      return ended.open
    })
    const ofAgent = { messages, compactions, options, output, queues, requests, inner, retry, team, nextTurn }
    const audience = { journal: this.journal, observe, subscriptions, reader, parent: this.parent }
    return Effect.updateContext(
      Execution.start({ ...begin, ...ofAgent }, audience, onRun, rest),
      this.services
    )
  }

  /** Keeps the turn that a suspended run left open, unless the application has replaced the messages of that turn. */
  private keepOpen(run: Run | undefined): void {
    const { turn } = run?.waiting ?? {}
    if (turn !== undefined) this.open.background = run?.background?.left(turn.message) ?? []
    this.open.keep(turn)
    if (!this.current.messages.some(({ id }) => id === turn?.message.id)) this.open.keep(undefined)
  }

  /** Returns the changes that the application made since the last call, for the next turn. */
  private readonly nextTurn = () => {
    const { changes } = this
    this.changes = undefined
    // After `setMessages` the run has added its own messages to the new ones: `current` has both.
    return changes?.replaced === true ? { ...changes, messages: this.current.messages } : changes
  }

  /** Folds events of the current run into the state. */
  private readonly observe = (events: ReadonlyArray<AgentEvent>): void => {
    const next = State.after(this.current, events, this)
    if (next !== this.current) this.set(next)
  }

  readonly continuation = (now: number) => of(this.open, this.current.messages, this.queues, now)

  readonly waitForIdle: Effect.Effect<void> = Effect.suspend(() => this.ended?.await ?? Effect.void)

  /** Releases a paused run. */
  resume(reason: string | undefined): Effect.Effect<void, NotPaused> {
    return Effect.suspend(() => {
      const { control } = this
      if (control?.isPaused !== true) return new NotPaused()
      control.resume(reason)
      return Effect.void
    })
  }

  /** Puts messages in the queue of steering. With `interrupt`, also interrupts the current turn, so that the next one begins with them. */
  steer(input: Message.Input, { interrupt = false }: SteerOptions = {}): Effect.Effect<void> {
    const cut = Effect.suspend(() => {
      this.queues.urgent = this.queues.queued.steering.at(-1)
      return this.control?.cutTurn ?? Effect.void
    })
    return interrupt ? Effect.andThen(this.enqueue("steering", input), cut) : this.enqueue("steering", input)
  }

  /** Puts messages in a queue. */
  enqueue(queue: QueueName, input: Message.Input): Effect.Effect<void> {
    return Effect.clockWith((clock) =>
      Effect.fromResult(Input.prompt(input, clock.currentTimeMillisUnsafe()))
    ).pipe(
      Effect.orDie,
      Effect.flatMap((messages) =>
        this.recorded({ _tag: "Queued", queue, messages }, () => this.queues.add(queue, messages))
      )
    )
  }

  clearQueue(queue: QueueName | "all"): Effect.Effect<Queued> {
    return this.recorded({ _tag: "QueueCleared", queue }, () => this.queues.clear(queue))
  }

  update(changes: Options.Update): Effect.Effect<void, Input.InvalidInput> {
    return Effect.suspend(() =>
      Effect.flatMap(Effect.fromResult(Input.update(changes)), ({ options, unset }) => {
        const change = <O extends Partial<Options.RunOptions>>(of: O) =>
          Options.patch(Options.without(of, unset), options)
        const record = { _tag: "OptionsChanged", options, ...(unset.length === 0 ? {} : { unset }) } as const
        return this.recorded(record, () => {
          const before = this.changes
          this.change({ options: change(before?.options ?? {}), unset: [...(before?.unset ?? []), ...unset] })
          this.set({ ...this.current, options: change(this.current.options) })
        })
      })
    )
  }

  setMessages(messages: ReadonlyArray<Message.Message>): Effect.Effect<void, Input.InvalidInput> {
    return Effect.suspend(() =>
      Effect.flatMap(Effect.fromResult(Input.messages(messages)), (messages) =>
        this.recorded({ _tag: "MessagesReplaced", messages }, () => {
          this.change({ replaced: true })
          if (this.ended === undefined) this.open.keep(undefined)
          this.compactions.drop(messages)
          this.origin &&= { messages }
          this.set(State.compacted({ ...this.current, messages }, undefined))
        })
      )
    )
  }

  private change(changes: NonNullable<AgentRuntime["changes"]>): void {
    if (this.ended !== undefined) this.changes = { ...this.changes, ...changes }
  }

  readonly reset: Effect.Effect<void, AgentBusy> = Effect.suspend(() => {
    if (this.ended !== undefined) return Effect.fail(new AgentBusy())
    return Effect.andThen(
      this.clearQueue("all"),
      this.recorded({ _tag: "MessagesReplaced", messages: [] }, () => {
        this.origin &&= { messages: [] }
        this.returnTo({ messages: [] })
      })
    )
  })

  /** Writes a record to the session, then makes the change that the record describes in one synchronous step. */
  private recorded<A>(record: Session.Record, change: () => A): Effect.Effect<A> {
    return Effect.andThen(this.journal?.write([record]) ?? Effect.void, Effect.sync(change))
  }

  /** Ends the current run and waits for its end. Later runs fail with `AgentClosed`. */
  readonly close = Effect.gen({ self: this }, function* () {
    this.isClosed = true
    if (this.control !== undefined) yield* this.control.cancel("the agent was closed")
    yield* this.waitForIdle
    this.watchers.end()
    this.subscriptions.close()
  })
}

// ───────────────────────── The start of a run that continues

/** The members of a `RunSpec` that say how its run begins. */
export type Begin = Pick<
  RunSpec,
  "prompts" | "continued" | "pollFirst" | "promptsFrom" | "byHand" | "open" | "runId" | "interrupted"
>

/** The start of a run that continues an interrupted one. */
const ofInterrupted = (interrupted: Interrupted): Begin => ({
  runId: interrupted.runId,
  prompts: interrupted.prompts,
  continued: true,
  pollFirst: interrupted.open === undefined,
  open: interrupted.open?.turn,
  interrupted
})

/**
 * Decides how a run without a prompt begins. In this order: it continues an interrupted run, it resumes the turn that waits for a person,
 * it gives error results to calls without results, it takes queued messages as its prompt after an answer, or it asks the model again in
 * place of an answer that broke off.
 */
export const of = (
  { current: open, interrupted }: Pick<OpenTurns, "current" | "interrupted">,
  messages: ReadonlyArray<Message.Message>,
  queues: Queues,
  now: number
): Result.Result<Begin, Continuation.InvalidContinuation> => {
  if (interrupted !== undefined) return Result.succeed(ofInterrupted(interrupted))
  if (open !== undefined) return Result.succeed({ prompts: [], continued: true, pollFirst: false, open })
  if (messages.length === 0) {
    return Result.fail(new Continuation.InvalidContinuation({ detail: "No messages to continue from" }))
  }
  const isUnanswered = Continuation.isUnanswered(messages)
  if (!isUnanswered || Continuation.isBrokenOff(messages)) {
    const queued = queuedPrompts(queues)
    if (queued !== undefined) return Result.succeed(queued)
  }
  if (!isUnanswered) return Result.fail(Continuation.answered())
  const prompts = Continuation.missingResults(messages, now)
  return Result.succeed({ prompts, continued: true, pollFirst: true })
}

const queuedPrompts = (queues: Queues): Begin | undefined => {
  for (const promptsFrom of ["steering", "followUp"] as const) {
    const prompts = queues.drain(promptsFrom)
    const pollFirst = promptsFrom === "followUp"
    if (prompts.length > 0) return { prompts, promptsFrom, continued: true, pollFirst }
  }
  return undefined
}
