/**
 * The commands of doors to sessions and their runs, and what each does in each state of its session (`Conversation`).
 *
 * A command that needs the agent opens a session that is closed: that takes over its runs, so that the session is idle or running then. It
 * fails with `SessionLocked` if another process has the session, with `RunNotReady` while a run is parked, and with `Draining` while this
 * process is about to end.
 *
 * | command                  | closed             | idle                               | running, paused or waiting for a person          |
 * | ------------------------ | ------------------ | ---------------------------------- | ------------------------------------------------ |
 * | `start`                  | opens              | begins a run, or queues it (gate)  | by `when`: `RunGoesOn`, queues it, or joins      |
 * | `start` with `replaces`  | opens              | rewinds and begins                 | `RunGoesOn`                                      |
 * | `steer`, `followUp`      | opens              | `RunOver`                          | joins; `RunNotReady` for a run that is queued    |
 * | `pause`, `resume`        | opens              | `RunOver`                          | the agent follows it, then it is stored           |
 * | `resume` of a parked run | unparks it, opens  | –                                  | –                                                |
 * | `cancel`                 | unparks it, opens  | `RunOver`                          | as `pause`; a queued run ends without beginning  |
 * | `approve`, `answer`      | opens              | the first answer; of a suspended   | gives it to the agent                            |
 * |                          |                    | run a new run continues            |                                                  |
 * | `create`                 | makes the session  | `SessionExists`                    | `SessionExists`                                  |
 * | `update`: name           | done               | done                               | done                                             |
 * | `update`: model          | done               | closes the agent, done             | `RunGoesOn`                                      |
 * | `remove`                 | removed            | closes, removed                    | `RunGoesOn`, also for a run that is queued       |
 * | `adopt` of a worker      | opens              | begins the oldest queued run       | nothing                                          |
 * | the end of a run         | –                  | –                                  | begins the next one, else idle                   |
 * | a while without change   | –                  | closes                             | closes, if the run waits for a person and no     |
 * |                          |                    |                                    | watcher is there: its answer opens the session   |
 * | `leave`, a lost session  | –                  | closes                             | stops the run without an end, closes             |
 *
 * `fork`, lists and watchers read the stores, and are no commands. `Sessions` has the commands of sessions, `Host` has `adopt` and `leave`.
 * Requests to a run at work go to its agent at once, beside the commands: a slow store does not delay a cancel.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import type * as Agent from "../../Agent.ts"
import type * as Payload from "../../api/Payload.ts"
import * as Problem from "../../api/Problem.ts"
import * as Approval from "../../Approval.ts"
import * as Input from "../../internal/invalidInput.ts"
import * as JsonSchema from "../../internal/jsonSchema.ts"
import * as Message from "../../Message.ts"
import * as History from "../History.ts"
import * as IdempotencyKeys from "../IdempotencyKeys.ts"
import type { RunKey } from "../RunLogStore.ts"
import type * as Runs from "../Runs.ts"
import type { Start } from "../Runs.ts"
import * as SessionProblem from "../SessionProblem.ts"
import { asking, type Conversation, held } from "./Conversation.ts"
import type { Host } from "./Host.ts"
import type { LiveRun } from "./LiveRun.ts"
import type { Requested } from "./LogLine.ts"
import * as Request from "./Request.ts"
import type { Task } from "./Request.ts"
import type { RunState } from "./RunState.ts"

// ───────────────────────── Starts

/** Starts a run, joins the one that the session has, or queues one. */
export const start = (host: Host, request: Start) =>
  Effect.catchTag(
    host.ask(request.sessionId, (conversation) => known(host, conversation, request)),
    "RunNotReady",
    ({ runId }) => whileParked(host, runId, request)
  )

/** Answers a prompt while a run is parked: one that came before as it was answered first. */
const whileParked = (host: Host, runId: string, { idempotency, sessionId }: Start) =>
  Effect.gen(function* () {
    const first =
      idempotency === undefined
        ? undefined
        : yield* IdempotencyKeys.stored(host.parts, sessionId, idempotency)
    return first ?? (yield* new Problem.RunGoesOn({ runId }))
  })

type Answer = Payload.Started | Payload.Joined

/** A request to start, and what it needs of an open session. */
interface Starting {
  readonly host: Host
  readonly conversation: Conversation
  readonly agent: Agent.Agent
  readonly request: Start
  /** Stores the answer to the key of the request, with the ids of the messages that join a run. */
  readonly keep: (
    answer: Answer,
    messages?: ReadonlyArray<string>
  ) => Effect.Effect<void, Problem.StorageUnavailable>
}

/** Answers a key that came before as it was answered first. */
const known = Effect.fnUntraced(function* (host: Host, conversation: Conversation, request: Start) {
  const { idempotency } = request
  yield* host.ready
  // Runs of another process are taken first: only a run that can begin is known.
  const agent = yield* conversation.open
  yield* valid(agent, request)
  const starting = { host, conversation, agent, request }
  if (idempotency === undefined) return yield* placed({ ...starting, keep: () => Effect.void })
  const { body, key } = idempotency
  const keys = yield* conversation.keys
  const stored = Effect.map(
    SessionProblem.reading(host.parts.sessions.read(request.sessionId)),
    ({ entries }) => IdempotencyKeys.messageIdsIn(entries)
  )
  const first = yield* IdempotencyKeys.firstAnswer(keys, idempotency, stored)
  if (first !== undefined) return first
  const hash = yield* IdempotencyKeys.hashOf(body)
  const keep: Starting["keep"] = (answer, messages) =>
    SessionProblem.logging(keys.add({ key, hash, messages }, answer))
  return yield* placed({ ...starting, keep })
})

/** Gives a prompt its place: in a run that begins now or later, or in the one that has not ended. */
const placed = Effect.fnUntraced(function* (starting: Starting) {
  const { agent, conversation, request } = starting
  const { current, sessionId } = conversation
  const { replaces, when } = request
  if (current === undefined) {
    yield* replaceable(sessionId, agent, request)
    yield* isNew(sessionId, agent, request)
    return yield* entered(starting)
  }
  if (when === undefined || replaces !== undefined)
    return yield* new Problem.RunGoesOn({ runId: current.runId })
  return yield* when === "queue" ? entered(starting) : joining(starting, current, when)
})

/** Stores the beginning of a run before it is answered, and begins the run if it is next and there is room. */
const entered = Effect.fnUntraced(function* ({ conversation, host, keep, request }: Starting) {
  const run = yield* conversation.newRun
  run.trace = request.trace ?? run.trace
  const task = { ...taskOf(request), ...(run.trace === undefined ? {} : { trace: run.trace }) }
  const isNext = conversation.first === undefined && host.hasPlace(run.runId)
  const answer: Payload.Started = { runId: run.runId, status: isNext ? "started" : "queued" }
  yield* Effect.onError(
    Effect.andThen(keep(answer), SessionProblem.logging(run.enter(isNext ? undefined : task))),
    () => Effect.sync(() => host.parts.places?.leave(run.runId))
  )
  host.add(run)
  conversation.queue(run, task)
  yield* conversation.beginWaiting
  if (isNext) yield* run.begun.await
  return answer
})

/** Gives a prompt to the run that has not ended. The key has the ids of its messages, by which a retry sees whether they were stored. */
const joining = Effect.fnUntraced(function* (
  { agent, conversation, keep, request }: Starting,
  current: LiveRun,
  when: "steer" | "followUp"
) {
  const read = Effect.clockWith((clock) =>
    Effect.fromResult(Input.prompt(request.prompt, clock.currentTimeMillisUnsafe()))
  )
  const messages = yield* Effect.mapError(
    read,
    ({ message }) => new Problem.MalformedRequest({ detail: message })
  )
  const joined: Payload.Joined = { runId: current.runId, status: "joined" }
  yield* keep(
    joined,
    messages.map(({ id }) => id)
  )
  yield* when === "steer" ? agent.steer(messages) : agent.followUp(messages)
  // A message that is stored is known to the request that comes again.
  if (current.isLeft) return yield* new Problem.Draining({ detail: "This process has let go of the run." })
  yield* held(current)
  // The run may have ended meanwhile: then the message begins one of its own.
  if (conversation.current === undefined) {
    yield* conversation.resume(yield* conversation.newRun, agent)
  }
  return joined
})

/** Checks the prompt and the options of a run before anything is stored. */
const valid = (agent: Agent.Agent, { options = {}, prompt }: Start) =>
  Effect.clockWith((clock) => {
    const own = agent.state.getUnsafe().options
    const checks = Effect.andThen(
      Effect.fromResult(Input.prompt(prompt, clock.currentTimeMillisUnsafe())),
      Effect.fromResult(Input.patch(Request.narrow(own, options)))
    )
    return Effect.mapError(checks, ({ message }) => new Problem.MalformedRequest({ detail: message }))
  })

/** Checks that the conversation has the message that a prompt replaces. */
const replaceable = Effect.fnUntraced(function* (
  sessionId: string,
  agent: Agent.Agent,
  { replaces: messageId }: Start
) {
  if (messageId === undefined) return
  const message = agent.state.getUnsafe().messages.findLast(({ id }) => id === messageId)
  if (message === undefined) return yield* new Problem.MessageNotFound({ sessionId, messageId })
  if (message.role !== "toolResult") return
  const detail = "A prompt cannot replace the result of a tool call, which belongs to its call."
  return yield* new Problem.MalformedRequest({ detail })
})

/** Checks that no message of the prompt is in the conversation already, before the message that it replaces. */
const isNew = Effect.fnUntraced(function* (
  sessionId: string,
  agent: Agent.Agent,
  { prompt, replaces }: Start
) {
  const { messages } = agent.state.getUnsafe()
  const kept = replaces === undefined ? messages.length : messages.findLastIndex(({ id }) => id === replaces)
  const ids = new Set(messages.slice(0, kept).map(({ id }) => id))
  // One that is not valid is refused where the run begins.
  const given = Result.getOrElse(Input.prompt(prompt, 0), () => [])
  const known = given.find(({ id }) => ids.has(id))
  if (known !== undefined) return yield* new Problem.MessageExists({ sessionId, messageId: known.id })
})

const taskOf = ({ options = {}, prompt, replaces }: Start): Task => ({
  options,
  prompt,
  ...(replaces === undefined ? {} : { replaces })
})

// ───────────────────────── Controls

type Controls = Pick<Runs.Service, "steer" | "followUp" | "pause" | "resume" | "cancel">

/** The functions of the service that control runs. */
export const controls = (host: Host): Controls => {
  const sent = (runId: string, input: Message.Input, send: Send) =>
    Effect.suspend(() => {
      let messages = Message.fromInput(input)
      const delivered = Effect.fnUntraced(function* (run: LiveRun) {
        yield* send(yield* agentOf(host, run), messages)
        if (!run.isLeft) return yield* held(run)
        const stored = yield* IdempotencyKeys.messageIds(host.parts.sessions, run.sessionId)
        messages = messages.filter(({ id }) => !stored.has(id))
        if (messages.length > 0) return yield* SessionProblem.left(runId)
      })
      return asked(host, runId, false, delivered)
    })
  const running = (runId: string, control: typeof resume, reason: string | undefined) =>
    asked(host, runId, false, (run) =>
      Effect.flatMap(agentOf(host, run), (agent) => control(agent, run, reason))
    )
  return {
    steer: (runId, message, options) =>
      sent(runId, message, (agent, messages) => agent.steer(messages, options)),
    followUp: (runId, message) => sent(runId, message, (agent, messages) => agent.followUp(messages)),
    pause: (runId, reason) => running(runId, pause, reason),
    resume: (runId, reason) =>
      Effect.flatMap(parked(host, runId), (wasParked) =>
        wasParked ? Effect.asVoid(find(host, runId, true)) : running(runId, resume, reason)
      ),
    cancel: (runId, reason) => asked(host, runId, true, (run) => cancel(host, run, reason))
  }
}

type Send = (agent: Agent.Agent, messages: ReadonlyArray<Message.Message>) => Effect.Effect<void>

/** A request to a run. Where this process lets go of the run meanwhile, it is done as one that comes behind that. */
const asked = <A, E>(
  host: Host,
  runId: string,
  isUnparked: boolean,
  ask: (run: LiveRun) => Effect.Effect<A, E>
) =>
  Effect.suspend(() => {
    let found: LiveRun | undefined
    const isLeft = () => found?.isLeft === true
    const attempt = Effect.suspend(() => {
      found = undefined
      return Effect.flatMap(find(host, runId, isUnparked), (run) => ask((found = run)))
    })
    // The cluster sends it again, to the worker that has the session then.
    return Effect.retry(attempt, { while: () => isLeft() && !host.parts.adopts }).pipe(
      Effect.mapError((error) => (isLeft() ? SessionProblem.left(runId) : error))
    )
  })

const agentOf = (host: Host, run: LiveRun): Effect.Effect<Agent.Agent, Problem.RunNotReady> =>
  Effect.suspend(() => {
    const { agent, current } = host.conversation(run.sessionId)
    return agent === undefined || current !== run
      ? new Problem.RunNotReady({ runId: run.runId, detail: "The run waits for the one before it." })
      : Effect.succeed(agent)
  })

/** Whether a run is parked. */
const parked = (host: Host, runId: string) =>
  host.runs.has(runId)
    ? Effect.succeed(false)
    : Effect.map(host.stored(runId), (run) => run.ended === undefined && run.parked !== undefined)

/** A run that has not ended. One that is parked is started again if `isUnparked`. */
const find = Effect.fnUntraced(function* (host: Host, runId: string, isUnparked: boolean) {
  // The agent of a run that has shown its end is about to begin another one.
  yield* host.settled(runId)
  const live = host.runs.get(runId)
  if (live?.isLeft === false) return live
  const { ended, parked, sessionId } = yield* host.stored(runId)
  if (ended !== undefined) return yield* new Problem.RunOver({ runId })
  if (parked !== undefined && !isUnparked)
    return yield* new Problem.RunNotReady({ runId, detail: `The run waits for resume: ${parked}` })
  if (host.isDraining) return yield* SessionProblem.left(runId)
  if (parked !== undefined) yield* SessionProblem.logging(host.parts.logs.unpark(runId))
  yield* Effect.catchTags(
    host.ask(sessionId, ({ open }) => open),
    {
      SessionLocked: ({ detail = "" }) =>
        new Problem.RunNotReady({ runId, detail: `Another process has the run: ${detail}` }),
      SessionNotFound: () => new Problem.RunNotFound({ runId }),
      MalformedRequest: ({ detail = "" }) => new Problem.StorageUnavailable({ detail })
    }
  )
  const taken = host.runs.get(runId)
  if (taken === undefined) return yield* new Problem.RunOver({ runId })
  return taken.isLeft ? yield* SessionProblem.left(runId) : taken
})

/** Cancels a run of this process. */
export const cancel = (host: Host, run: LiveRun, reason?: string) =>
  Effect.suspend(() => {
    const conversation = host.conversation(run.sessionId)
    const { agent } = conversation
    if (conversation.current !== run)
      return Effect.andThen(
        conversation.cancelQueued((queued) => queued === run),
        held(run)
      )
    return agent === undefined ? Effect.void : cancelCurrent(agent, run, reason)
  })

/** Keeps a request that the agent has followed or is about to follow. */
const kept = (
  run: LiveRun,
  what: Requested["what"],
  reason: string | undefined
): Effect.Effect<void, Problem.StorageUnavailable> =>
  Effect.mapError(
    run.request({ what, ...(reason === undefined ? {} : { reason }) }),
    ({ message }) => new Problem.StorageUnavailable({ detail: message })
  )

/** Waits until the agent has begun the run, or this process has no more to do of it. Fails where the request would not be kept. */
const begun = (agent: Agent.Agent, run: LiveRun): Effect.Effect<void, Problem.StorageUnavailable> => {
  const isBusy = () => agent.state.getUnsafe().phase !== "idle"
  if (isBusy()) return Effect.void
  const busy = Stream.runHead(Stream.filter(agent.state.changes, ({ phase }) => phase !== "idle"))
  return Effect.andThen(Effect.raceFirst(busy, run.gone), held(run))
}

const pause = (agent: Agent.Agent, run: LiveRun, reason?: string) =>
  Effect.andThen(begun(agent, run), Effect.andThen(agent.pause(reason), kept(run, "pause", reason)))

const resume = (agent: Agent.Agent, run: LiveRun, reason?: string) => {
  const resumed = Effect.mapError(
    agent.resume(reason),
    ({ message }) => new Problem.RunNotReady({ runId: run.runId, detail: message })
  )
  return Effect.andThen(begun(agent, run), Effect.andThen(resumed, kept(run, "resume", reason)))
}

const cancelCurrent = (agent: Agent.Agent, run: LiveRun, reason?: string) =>
  Effect.andThen(
    begun(agent, run),
    Effect.andThen(run.cancelledBy(agent.cancel(reason)), kept(run, "cancel", reason))
  )

// ───────────────────────── Answers

/** The functions of the service that answer requests. */
export const answers = (host: Host): Pick<Runs.Service, "approve" | "answer"> => ({
  approve: (runId, approvalId, answer) => {
    const first = ({ decision }: Pick<Payload.Decided, "decision">) =>
      decision === answer.decision
        ? Effect.succeed({ decision })
        : conflict(approvalId, runId, `The call has another decision: ${decision}`)
    return answered(host, runId, {
      requestId: approvalId,
      give: (agent) =>
        Effect.flatMap(Effect.mapError(agent.answer(approvalId, answer), problem(runId)), first),
      find: ({ decisions }) => {
        const known = decisions.get(approvalId)
        if (known === undefined) return new Approval.RequestNotFound({ id: approvalId, runId })
        return known.argumentsHash === answer.argumentsHash
          ? first(known)
          : conflict(
              approvalId,
              runId,
              "The answer is about other params: its argumentsHash is not that of the request."
            )
      }
    })
  },
  answer: (runId, questionId, answer) =>
    answered(host, runId, {
      requestId: questionId,
      give: (agent) =>
        Effect.mapBoth(agent.answer(questionId, answer), {
          onFailure: problem(runId),
          onSuccess: shown
        }),
      find: ({ answers }) => {
        const first = answers.get(questionId)
        if (first === undefined) return new Approval.RequestNotFound({ id: questionId, runId })
        const isSame =
          "answer" in answer
            ? first.declined !== true && JsonSchema.same(first.answer, answer.answer)
            : first.declined === true
        if (isSame) return Effect.succeed(shown(first))
        return conflict(questionId, runId, `The question has another answer: ${JSON.stringify(shown(first))}`)
      }
    })
})

const conflict = (id: string, runId: string, detail: string) =>
  new Approval.AnswerConflict({ id, runId, detail })

const shown = (answer: Approval.QuestionAnswer) => Struct.pick(answer, ["answer", "declined", "reason"])

interface Reply<A> {
  /** The approval or the question. */
  readonly requestId: string
  readonly give: (agent: Agent.Agent) => Effect.Effect<A, Approval.CannotAnswer>
  /** Finds the first answer in a run that knows it. */
  readonly find: (state: RunState) => Effect.Effect<A, Approval.RequestNotFound | Approval.AnswerConflict>
}

const answered = <A extends Pick<Payload.Decided, "decision"> | Pick<Payload.Answered, "answer">>(
  host: Host,
  runId: string,
  answer: Reply<A>
) =>
  Effect.gen(function* () {
    const live = yield* liveRun(host, runId)
    const run = live ?? (yield* host.stored(runId))
    const conversation = host.conversation(run.sessionId)
    const { agent } = conversation
    if (live !== undefined && agent !== undefined) {
      if (!live.log.state.hasAsked(answer.requestId))
        return yield* new Approval.RequestNotFound({ id: answer.requestId, runId })
      const found = yield* Effect.catch(answer.give(agent), first(answer, live.log.state))
      // The process may have let go of a run that waits while the answer was under way.
      if (!live.isLeft) return yield* Effect.as(held(live), { ...found, runId })
    }
    return yield* host.ask(run.sessionId, (conversation) => answerLate(host, conversation, run, answer))
  })

/** The first answer to a request that the agent no longer has. */
const first =
  <A>({ find }: Reply<A>, state: RunState) =>
  (failure: Approval.CannotAnswer): Effect.Effect<A, Approval.CannotAnswer> =>
    failure._tag === "RequestNotFound" ? find(state) : Effect.fail(failure)

/** A run that takes answers: one that has shown its end takes none. */
const liveRun = (host: Host, runId: string) => Effect.map(host.settled(runId), () => host.runs.get(runId))

/** Answers a request of a run that has ended, or that this process did not have. */
const answerLate = <A>(host: Host, conversation: Conversation, run: RunKey, answer: Reply<A>) =>
  Effect.gen(function* () {
    const { runId } = run
    yield* host.ready
    const agent = yield* opened(conversation, runId)
    const live = host.runs.get(runId)
    const state =
      live?.log.state ??
      (yield* SessionProblem.logging(History.logOf(host.parts, yield* host.stored(runId)))).log.state
    if (!state.hasAsked(answer.requestId)) return yield* elsewhere(host, run, answer.requestId)
    const wasOpen = (yield* asking(agent)).length > 0
    const given = yield* Effect.result(answer.give(agent))
    if (given._tag === "Failure") {
      const found = yield* first(answer, state)(given.failure)
      return { ...found, runId: (yield* host.history.continuing(run))?.runId ?? runId }
    }
    const { current } = conversation
    if (current !== undefined) return { ...given.success, runId: current.runId }
    const last = yield* host.history.continuing(run)
    // A restart may have come before the run that the answer was to begin.
    const isLeft = last?.status === "suspended"
    const next = wasOpen || isLeft ? yield* resumed(host, conversation, agent) : undefined
    return { ...given.success, runId: next ?? last?.runId ?? runId }
  })

/** The problem of a request that a run did not make: the run that continues it may have. */
const elsewhere = (host: Host, run: RunKey, requestId: string) =>
  Effect.flatMap(host.history.continuing(run), (last) => {
    const { runId } = run
    const { approvals = [], questions = [] } = last?.pending ?? {}
    const isOfLast =
      last !== undefined &&
      last.runId !== runId &&
      (approvals.some(({ approvalId }) => approvalId === requestId) ||
        questions.some(({ questionId }) => questionId === requestId))
    const detail = isOfLast
      ? { detail: `Run ${last.runId} continues this one, and asks: answer that one.` }
      : {}
    return new Approval.RequestNotFound({ id: requestId, runId, ...detail })
  })

/** Continues what is suspended in a run of its own, and succeeds with its id once it has begun. */
const resumed = (host: Host, conversation: Conversation, agent: Agent.Agent) =>
  Effect.gen(function* () {
    yield* host.ready
    const run = yield* conversation.newRun
    yield* conversation.resume(run, agent)
    return run.runId
  })

const opened = (conversation: Conversation, runId: string) =>
  Effect.catchTags(conversation.open, {
    SessionNotFound: () => new Problem.RunNotFound({ runId }),
    MalformedRequest: ({ detail = "" }) => new Problem.StorageUnavailable({ detail })
  })

const problem =
  (runId: string) =>
  (error: Approval.CannotAnswer): Approval.CannotAnswer => {
    const { id } = error
    if (error._tag === "RequestNotFound") return new Approval.RequestNotFound({ id, runId })
    const { detail } = error
    return error._tag === "AnswerConflict"
      ? new Approval.AnswerConflict({ id, runId, detail })
      : new Approval.InvalidAnswer({ id, runId, detail })
  }
