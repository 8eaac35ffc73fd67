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
import { partial, type AgentEvent } from "../../AgentEvent.ts"
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
import { Following, type Next, type Opened, SessionView, states } from "./SessionFollowing.ts"
import * as LinkOf from "./Link.ts"
import type { Link } from "./Link.ts"
import * as RunEvents from "./RunEvents.ts"
import { RunRecord } from "./RunEvents.ts"

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
    partial: Effect.sync(() => Option.fromUndefinedOr(partial(view.view))),
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
): Stream.Stream<AgentEvent, RunError | CannotBegin> =>
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
