/**
 * An open session: the functions of `RemoteAgent` over the API.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { partial } from "../../AgentEvent.ts"
import type * as Payload from "../../api/Payload.ts"
import * as Problem from "../../api/Problem.ts"
import { InvalidContinuation } from "../../internal/continuation.ts"
import { eventsOnly } from "../../internal/eventsOnly.ts"
import { Message } from "../../Message.ts"
import { type Refused, UnexpectedResponse } from "../ClientError.ts"
import { control, isGoing, list } from "./Control.ts"
import { Following, type Next, type Opened } from "./Following.ts"
import type { Link } from "./Link.ts"
import * as LinkOf from "./Link.ts"
import * as Prompting from "./Prompting.ts"
import type { CannotAnswer, RemoteAgent } from "../RemoteAgent.ts"
import * as SessionView from "./SessionView.ts"

/** Opens a session until the scope closes. */
export const open = Effect.fnUntraced(function* (
  link: Link,
  sessionId: string
): Effect.fn.Return<RemoteAgent, Refused | Problem.SessionNotFound, Scope.Scope> {
  const view = new SessionView.SessionView(yield* SessionView.states)
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
    prompt: (input, options) => Prompting.prompt(opened, input, options),
    stream: (input, options) => Prompting.stream(opened, input, options),
    streamEvents: (input, options) => eventsOnly(Prompting.stream(opened, input, options)),
    start: (input, options) => Prompting.start(opened, input, options),
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
  const { view } = yield* LinkOf.repeated(link, link.api.sessions.read({ params: { sessionId } }))
  const messages = yield* Effect.mapError(
    decodeMessages(view["messages"]),
    ({ message }) => new UnexpectedResponse({ detail: message })
  )
  if (following.current === undefined) following.view.restore(messages)
  for (const run of runs) if (isGoing(run)) following.follow(run.runId)
})

const idle = (opened: Opened): RemoteAgent["waitForIdle"] =>
  Effect.gen(function* () {
    const going = (yield* list(opened)).find(isGoing)
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
  const { approve, answer: answerQuestion } = link.api.control
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
    return Effect.flatMap(list(opened), (runs): Effect.Effect<string, Problem.RequestNotFound> => {
      const run = runs.find(
        ({ pending: { approvals, questions } }) =>
          approvals.some(({ approvalId }) => approvalId === requestId) ||
          questions.some(({ questionId }) => questionId === requestId)
      )
      if (run !== undefined) return Effect.succeed(run.runId)
      return Effect.fail(
        new Problem.RequestNotFound({
          runId: runs.at(-1)?.runId ?? "",
          detail: `No request ${requestId} waits.`
        })
      )
    })
  })
