/**
 * An open session: the functions of `RemoteAgent` over the API.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import { Message } from "../../Message.ts"
import type { RunResult } from "../../Run.ts"
import * as Payload from "../../api/Payload.ts"
import type * as Problem from "../../api/Problem.ts"
import * as Approval from "../../Approval.ts"
import { InvalidContinuation } from "../../internal/continuation.ts"
import { NotPaused } from "../../internal/errors.ts"
import { eventsOnly } from "../../internal/eventsOnly.ts"
import { type Refused, UnexpectedResponse, NoRun, type CannotBegin, type RunError } from "../ClientError.ts"
import type { CannotAnswer, RemoteAgent, ToRun, PromptOptions, RemoteRun } from "../RemoteAgent.ts"
import * as LinkOf from "./Link.ts"
import type { Link } from "./Link.ts"
import * as RunEvents from "./RunEvents.ts"
import { RunRecord } from "./RunEvents.ts"
import * as Deferred from "effect/Deferred"
import * as Exit from "effect/Exit"
import * as PubSub from "effect/PubSub"
import type * as Take from "effect/Take"
import type { Subscribable } from "../../Agent.ts"
import * as AgentEvent from "../../AgentEvent.ts"

/** Opens a session until the scope closes. */
export const open = Effect.fnUntraced(function* (
  link: Link,
  sessionId: string
): Effect.fn.Return<RemoteAgent, Refused | Problem.SessionNotFound, Scope.Scope> {
  const view = new SessionView(yield* states)
  const following = new Following(link, view, yield* Queue.unbounded<Next>())
  const opened: Opened = { link, sessionId, following, scope: yield* Effect.scope }
  yield* refresh(opened)
  yield* Effect.addFinalizer(() => Effect.sync(() => following.close()))
  yield* Effect.forkScoped(following.all)
  return agentOf(opened)
})

const agentOf = (opened: Opened): RemoteAgent => {
  const { following, sessionId } = opened
  const { view } = following
  return {
    sessionId,
    prompt: (input, options) => prompt(opened, input, options),
    stream: (input, options) => stream(opened, input, options),
    streamEvents: (input, options) => eventsOnly(stream(opened, input, options)),
    start: (input, options) => start(opened, input, options),
    continue: continued(opened),
    ...control(opened),
    ...requests(opened),
    waitForIdle: idle(opened),
    state: view.subscribable,
    partial: Effect.sync(() => Option.fromUndefinedOr(AgentEvent.partial(view.view))),
    refresh: refresh(opened),
    runs: list(opened)
  }
}

const decodeMessages = Schema.decodeUnknownEffect(Schema.toCodecJson(Schema.Array(Message)))

const refresh = Effect.fnUntraced(function* (opened: Opened) {
  const { following, link, sessionId } = opened
  const runs = yield* list(opened)
  const { view } = yield* LinkOf.repeated(link, link.api.sessions.get({ params: { sessionId } }))
  const messages = yield* Effect.mapError(
    decodeMessages(view["messages"]),
    ({ message }) => new UnexpectedResponse({ detail: message })
  )
  if (following.current === undefined) following.view.restore(messages)
  for (const run of runs) if (Payload.isGoing(run)) following.follow(run.runId)
})

const idle = (opened: Opened): RemoteAgent["waitForIdle"] =>
  Effect.gen(function* () {
    const going = (yield* list(opened)).find(Payload.isGoing)
    if (going === undefined) return
    yield* Effect.exit(opened.following.outcome(going.runId))
    yield* idle(opened)
  })

const continued = (opened: Opened): RemoteAgent["continue"] =>
  Effect.gen(function* () {
    const last = (yield* list(opened)).at(-1)
    if (last === undefined || last.status === "suspended")
      return yield* new InvalidContinuation({
        detail: "No run continues a suspended one: answer its requests."
      })
    return yield* opened.following.outcome(last.runId)
  })

const requests = (opened: Opened): Pick<RemoteAgent, "requests" | "answer"> => {
  const { link } = opened
  const { approve, answer: answerQuestion } = link.api.runs
  const open = Effect.map(list(opened), (runs) => ({
    approvals: runs.flatMap(({ pending }) => pending.approvals),
    questions: runs.flatMap(({ pending }) => pending.questions)
  }))
  function answer(id: string, reply: Payload.AnswerApproval): Effect.Effect<Payload.Decided, CannotAnswer>
  function answer(id: string, reply: Payload.AnswerQuestion): Effect.Effect<Payload.Answered, CannotAnswer>
  function answer(id: string, reply: Payload.AnswerApproval | Payload.AnswerQuestion) {
    return Effect.flatMap(runOf(opened, id), (runId) =>
      LinkOf.once((once): Effect.Effect<Payload.Decided | Payload.Answered, CannotAnswer> => {
        if (!Predicate.hasProperty(reply, "decision")) {
          const request = { params: { runId, questionId: id }, payload: reply, ...once }
          return LinkOf.repeated(link, answerQuestion(request))
        }
        return LinkOf.repeated(link, approve({ params: { runId, approvalId: id }, payload: reply, ...once }))
      })
    )
  }
  return { requests: open, answer }
}

/** The run that a request belongs to. */
const runOf = (opened: Opened, requestId: string) =>
  Effect.suspend(() => {
    const known = opened.following.requests.get(requestId)
    if (known !== undefined) return Effect.succeed(known)
    return Effect.flatMap(list(opened), (runs): Effect.Effect<string, Approval.RequestNotFound> => {
      const run = runs.find(
        ({ pending: { approvals, questions } }) =>
          approvals.some(({ approvalId }) => approvalId === requestId) ||
          questions.some(({ questionId }) => questionId === requestId)
      )
      if (run !== undefined) return Effect.succeed(run.runId)
      return Effect.fail(new Approval.RequestNotFound({ id: requestId }))
    })
  })

// ───────────────────────── Control

/** The runs of the session, oldest first. */
const list = ({ link, sessionId }: Opened) =>
  Effect.map(LinkOf.repeated(link, link.api.runs.list({ params: { sessionId } })), ({ items }) => items)

type Control = Pick<RemoteAgent, "steer" | "followUp" | "pause" | "resume" | "cancel">

/** The functions that reach the run of the session. */
const control = (opened: Opened): Control => {
  const { link } = opened
  const { pause, cancel } = link.api.runs
  const ask = (request: typeof pause | typeof cancel, reason: string | undefined) =>
    toRun(
      opened,
      (runId) =>
        LinkOf.once((once) =>
          LinkOf.repeated(link, request({ params: { runId }, payload: because(reason), ...once }))
        ),
      Effect.void
    )
  return {
    ...messages(opened),
    pause: (reason) => ask(pause, reason),
    cancel: (reason) => ask(cancel, reason),
    resume: (reason) => resume(opened, reason)
  }
}

const because = (reason: string | undefined) => (reason === undefined ? {} : { reason })

const messages = (opened: Opened): Pick<Control, "steer" | "followUp"> => {
  const { link, sessionId } = opened
  const { steer, followUp } = link.api.runs
  const noRun = Effect.suspend(() => Effect.fail(new NoRun({ sessionId })))
  const send = (request: typeof steer | typeof followUp, payload: Payload.Steer) =>
    toRun(
      opened,
      (runId) => LinkOf.once((once) => LinkOf.called(request({ params: { runId }, payload, ...once }))),
      noRun
    )
  return {
    steer: (message, options) => send(steer, { message, ...options }),
    followUp: (message) => send(followUp, { message })
  }
}

const resume = (opened: Opened, reason: string | undefined) => {
  const notPaused = Effect.suspend(() => Effect.fail(new NotPaused()))
  const { resume } = opened.link.api.runs
  return Effect.catchTag(
    toRun(
      opened,
      (runId) =>
        LinkOf.once((once) =>
          LinkOf.called(resume({ params: { runId }, payload: because(reason), ...once }))
        ),
      notPaused
    ),
    "RunNotReady",
    () => notPaused
  )
}

/** Sends to the run of the session: to the one that is followed, and if that is over, to the one that the server has. */
const toRun = <E>(
  opened: Opened,
  send: (runId: string) => Effect.Effect<void, ToRun>,
  without: Effect.Effect<void, E>
): Effect.Effect<void, ToRun | E> =>
  Effect.suspend(() => {
    const { current } = opened.following
    const found = Effect.flatMap(list(opened), (runs): Effect.Effect<void, ToRun | E> => {
      const going = runs.find(Payload.isGoing)
      return going === undefined ? without : send(going.runId)
    })
    return current === undefined ? found : Effect.catchTag(send(current), "RunOver", () => found)
  })

// ───────────────────────── Prompts

/** The longest wait for the end of a run after its prompt was interrupted. */
const patience = "5 seconds"

const bodyOf = (prompt: Payload.Prompt, given: PromptOptions): Payload.StartRun => {
  const options = Struct.omit(given, ["cancelOnInterrupt", "key", "replaces", "when"])
  return {
    prompt,
    ...(Object.keys(options).length === 0 ? {} : { options }),
    ...(given.when === undefined ? {} : { when: given.when }),
    ...(given.replaces === undefined ? {} : { replaces: given.replaces })
  }
}

const begin = Effect.fnUntraced(function* (
  { link, sessionId }: Opened,
  input: Payload.Prompt,
  options: PromptOptions
): Effect.fn.Return<Payload.Started | Payload.Joined, CannotBegin> {
  const key = options.key ?? (yield* LinkOf.makeKey)
  const payload = bodyOf(input, options)
  const headers = { "idempotency-key": key }
  return yield* LinkOf.repeated(link, link.api.runs.start({ params: { sessionId }, headers, payload }))
})

const cancel = ({ link }: Opened, runId: string, reason?: string) => {
  const payload = reason === undefined ? {} : { reason }
  const request = LinkOf.once((once) =>
    LinkOf.repeated(link, link.api.runs.cancel({ params: { runId }, payload, ...once }))
  )
  return Effect.catchTags(request, {
    RunOver: () => Effect.void,
    RunNotReady: () => Effect.void
  })
}

/** Cancels what a prompt began when it is interrupted, also one whose response is still to come. */
const cancelling = (
  opened: Opened,
  begun: Fiber.Fiber<Payload.Started | Payload.Joined, CannotBegin>,
  { cancelOnInterrupt = true, replaces }: PromptOptions
): Effect.Effect<void> => {
  const stop = Effect.gen(function* () {
    const { runId, status } = yield* Fiber.join(begun)
    if (status === "joined") return
    yield* cancel(opened, runId, "interrupted")
    opened.following.follow(runId, replaces)
    yield* opened.following.outcome(runId)
  })
  return cancelOnInterrupt ? Effect.ignore(Effect.timeout(Effect.interruptible(stop), patience)) : Effect.void
}

/** Begins a run and uses it. An interruption of the use cancels the run. */
const using = <A, E>(
  opened: Opened,
  input: Payload.Prompt,
  options: PromptOptions,
  use: (runId: string) => Effect.Effect<A, E>
): Effect.Effect<A, E | CannotBegin> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const begun = yield* Effect.forkIn(Effect.interruptible(begin(opened, input, options)), opened.scope)
      const used = Effect.flatMap(Fiber.join(begun), ({ runId }) => {
        opened.following.follow(runId, options.replaces)
        return use(runId)
      })
      return yield* Effect.onInterrupt(restore(used), () => cancelling(opened, begun, options))
    })
  )

const prompt = (
  opened: Opened,
  input: Payload.Prompt,
  options: PromptOptions = {}
): Effect.Effect<RunResult, RunError | CannotBegin> =>
  using(opened, input, options, (runId) => opened.following.outcome(runId))

const start = (
  opened: Opened,
  input: Payload.Prompt,
  options: PromptOptions = {}
): Effect.Effect<RemoteRun, CannotBegin> =>
  Effect.map(begin(opened, input, options), ({ runId, status }) => {
    opened.following.follow(runId, options.replaces)
    return {
      runId,
      status,
      result: opened.following.outcome(runId),
      cancel: (reason) => cancel(opened, runId, reason)
    }
  })

const stream = (
  opened: Opened,
  input: Payload.Prompt,
  options: PromptOptions = {}
): Stream.Stream<AgentEvent.AgentEvent, RunError | CannotBegin> =>
  Stream.unwrap(
    Effect.gen(function* () {
      let isOver = false
      const begun = yield* Effect.forkIn(begin(opened, input, options), opened.scope)
      yield* Effect.addFinalizer(() => (isOver ? Effect.void : cancelling(opened, begun, options)))
      const { runId } = yield* Effect.onError(Fiber.join(begun), () =>
        Effect.sync(() => {
          isOver = begun.pollUnsafe() !== undefined
        })
      )
      opened.following.follow(runId, options.replaces)
      const record = new RunRecord(runId)
      const events = Stream.map(RunEvents.events(opened.link, runId), ({ event }) => {
        record.add(event)
        return event
      })
      const ended = Effect.andThen(
        Effect.sync(() => {
          isOver = true
        }),
        record.outcome
      )
      return Stream.concat(events, Stream.drain(Stream.fromEffect(ended)))
    })
  )

// ───────────────────────── Following
//
// The runs of a session that a client follows, one after another: their events make the state, and their results.

/** A session that a client has open. */
interface Opened {
  readonly link: Link
  readonly sessionId: string
  readonly following: Following
  readonly scope: Scope.Scope
}

type Outcome = Deferred.Deferred<RunResult, RunError>

/** A run that is to be followed, and the message that its prompt replaces. */
interface Next {
  readonly runId: string
  readonly replaces: string | undefined
}

class Following {
  readonly view: SessionView
  private readonly link: Link
  private readonly runs: Queue.Queue<Next>
  private readonly outcomes = new Map<string, Outcome>()
  /** The run of each request to a person. */
  readonly requests = new Map<string, string>()
  /** The run whose events come in. */
  current: string | undefined

  constructor(link: Link, view: SessionView, runs: Queue.Queue<Next>) {
    this.link = link
    this.view = view
    this.runs = runs
  }

  /** The outcome of a run, which is followed from now on. */
  outcome(runId: string): Effect.Effect<RunResult, RunError> {
    return Effect.suspend(() => Deferred.await(this.follow(runId)))
  }

  /** Follows a run. `replaces` is the message that its prompt replaces. */
  follow(runId: string, replaces?: string): Outcome {
    const known = this.outcomes.get(runId)
    if (known !== undefined) return known
    const outcome: Outcome = Deferred.makeUnsafe()
    this.outcomes.set(runId, outcome)
    Queue.offerUnsafe(this.runs, { runId, replaces })
    return outcome
  }

  /** Interrupts those who wait for a run. */
  close(): void {
    for (const outcome of this.outcomes.values()) Deferred.doneUnsafe(outcome, Exit.interrupt())
    this.view.close()
  }

  isFollowed(runId: string): boolean {
    return this.outcomes.has(runId)
  }

  /** Follows the runs, one after another, until it is interrupted. */
  readonly all: Effect.Effect<never> = Effect.suspend(() =>
    Effect.forever(Effect.flatMap(Queue.take(this.runs), (next) => this.one(next)))
  )

  private one({ replaces, runId }: Next): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (replaces !== undefined) this.view.before(replaces)
      const record = new RunRecord(runId)
      this.current = runId
      const read = Stream.runForEach(RunEvents.events(this.link, runId), ({ event }) =>
        Effect.sync(() => {
          if (event._tag === "ApprovalRequested") this.requests.set(event.approvalId, runId)
          if (event._tag === "QuestionAsked") this.requests.set(event.questionId, runId)
          record.add(event)
          this.view.add(event)
        })
      )
      return Effect.andThen(read, record.outcome).pipe(
        Effect.onExit((exit) =>
          Effect.sync(() => {
            this.current = undefined
            Deferred.doneUnsafe(this.follow(runId), exit)
          })
        ),
        Effect.ignore
      )
    })
  }
}

// ───────────────────────── The state of a session

type States = PubSub.PubSub<Take.Take<AgentEvent.View>>

/** The latest state: a slow reader skips those before. */
const states = PubSub.sliding<Take.Take<AgentEvent.View>>({ capacity: 16, replay: 1 })

class SessionView {
  private current = AgentEvent.initial()
  /** The ids of the messages, of which a run may show some again. */
  private ids: ReadonlySet<string> = new Set()
  private readonly states: States

  constructor(states: States) {
    this.states = states
  }

  get subscribable(): Subscribable<AgentEvent.View> {
    return {
      get: Effect.sync(() => this.current),
      getUnsafe: () => this.current,
      changes: Stream.fromPubSubTake(this.states)
    }
  }

  get view(): AgentEvent.View {
    return this.current
  }

  /** Puts in the messages that the server has. */
  restore(messages: ReadonlyArray<Message>): void {
    this.ids = new Set(messages.map(({ id }) => id))
    this.set({ ...this.current, messages })
  }

  /** Leaves out a message and those behind it. */
  before(messageId: string): void {
    const { messages } = this.current
    const at = messages.findLastIndex(({ id }) => id === messageId)
    if (at !== -1) this.restore(messages.slice(0, at))
  }

  readonly add = (event: AgentEvent.AgentEvent): void => {
    const { messages } = this.current
    const next = AgentEvent.fold(this.current, event)
    const isAgain = event._tag === "MessageEnd" && this.ids.has(event.message.id)
    if (isAgain) this.set({ ...next, messages })
    else if (next !== this.current) this.set(next)
    if (next.messages !== messages && event._tag === "MessageEnd")
      this.ids = new Set([...this.ids, event.message.id])
  }

  close(): void {
    PubSub.endUnsafe(this.states, Exit.void)
  }

  private set(view: AgentEvent.View): void {
    this.current = view
    PubSub.publishUnsafe(this.states, [view])
  }
}
