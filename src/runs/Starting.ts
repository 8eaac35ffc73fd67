/**
 * The start of a run: once for each idempotency key, and one at a time in a session.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Agent from "../Agent.ts"
import type * as Payload from "../api/Payload.ts"
import * as Problem from "../api/Problem.ts"
import * as Input from "../internal/invalidInput.ts"
import type { Conversation } from "./internal/Conversation.ts"
import type { Host } from "./internal/Host.ts"
import * as IdempotencyKeys from "./IdempotencyKeys.ts"
import type { LiveRun } from "./internal/LiveRun.ts"
import * as MessageIds from "./MessageIds.ts"
import * as Narrowing from "./internal/Narrowing.ts"
import type { Task } from "./internal/Request.ts"
import * as Requesting from "./internal/Requesting.ts"
import type { Idempotency, Start } from "./Runs.ts"
import * as SessionProblem from "./SessionProblem.ts"

/** Starts a run, joins the one that the session has, or queues one. */
export const start = (host: Host, request: Start) =>
  Effect.catchTag(
    host.locked(request.sessionId, (conversation) => known(host, conversation, request)),
    "RunNotReady",
    ({ runId }) => parked(host, runId, request)
  )

/** Answers a prompt while a run is parked: one that came before as it was answered first. */
const parked = (host: Host, runId: string, { idempotency, sessionId }: Start) =>
  Effect.gen(function* () {
    const first = idempotency === undefined ? undefined : yield* stored(host.parts, sessionId, idempotency)
    return first ?? (yield* new Problem.RunGoesOn({ runId }))
  })

type Answer = Payload.Started | Payload.Joined

/** Answers a key that came before as it was answered first. */
const known = Effect.fnUntraced(function* (host: Host, conversation: Conversation, request: Start) {
  const { idempotency } = request
  yield* host.ready
  // Runs of another process are taken first: only a run that can begin is known.
  const agent = yield* conversation.open
  yield* valid(agent, request)
  if (idempotency === undefined) return yield* placed(host, conversation, agent, request, () => Effect.void)
  const { body, key } = idempotency
  const keys = yield* conversation.keys
  const stored = Effect.map(
    SessionProblem.reading(host.parts.sessions.read(request.sessionId)),
    ({ entries }) => MessageIds.of(entries)
  )
  const first = yield* firstAnswer(keys, idempotency, stored)
  if (first !== undefined) return first
  const hash = yield* IdempotencyKeys.hashOf(body)
  return yield* placed(host, conversation, agent, request, (answer, messages) =>
    SessionProblem.logging(keys.add({ key, hash, messages }, answer))
  )
})

/**
 * The first answer to a key; `undefined` for one that is new, and for one whose process ended before the messages that joined a run were
 * stored: `messageIds` are those of the session. Fails for a key that came with another body.
 */
export const firstAnswer = Effect.fnUntraced(function* <E>(
  keys: IdempotencyKeys.IdempotencyKeys,
  { body, key }: Idempotency,
  messageIds: Effect.Effect<ReadonlySet<string>, E>
) {
  const first = yield* SessionProblem.logging(keys.find(key))
  if (first === undefined) return undefined
  const { hash, messages = [], runId, status } = first
  if (hash !== (yield* IdempotencyKeys.hashOf(body))) return yield* new Problem.KeyReused({ runId })
  if (status !== "joined") return { runId, status }
  const joined: Payload.Joined = { runId, status }
  if (messages.length === 0) return joined
  const stored = yield* messageIds
  return messages.every((id) => stored.has(id)) ? joined : undefined
})

/** The first answer to a key, as the stores have it. */
export const stored = (
  { logs, sessions }: Pick<Host["parts"], "logs" | "sessions">,
  sessionId: string,
  idempotency: Idempotency
) =>
  Effect.gen(function* () {
    const lines = yield* SessionProblem.logging(logs.keys(sessionId))
    const messageIds = Effect.mapBoth(sessions.read(sessionId), {
      onFailure: SessionProblem.unavailable,
      onSuccess: ({ entries }) => MessageIds.of(entries)
    })
    return yield* firstAnswer(
      new IdempotencyKeys.IdempotencyKeys(sessionId, logs, lines),
      idempotency,
      messageIds
    )
  })

/** Stores the answer to a key, with the ids of the messages that join a run. */
type Keep = (
  answer: Answer,
  messages?: ReadonlyArray<string>
) => Effect.Effect<void, Problem.StorageUnavailable>

const placed = Effect.fnUntraced(function* (
  host: Host,
  conversation: Conversation,
  agent: Agent.Agent,
  request: Start,
  keep: Keep
) {
  const { current } = conversation
  if (current !== undefined) return yield* beside(host, conversation, agent, request, current, keep)
  yield* replaceable(conversation.sessionId, agent, request)
  yield* isNew(conversation.sessionId, agent, request)
  return yield* entered(host, conversation, request, keep)
})

/** Stores the beginning of a run before it is answered, and begins the run if it is next and there is room. */
const entered = Effect.fnUntraced(function* (
  host: Host,
  conversation: Conversation,
  request: Start,
  keep: Keep
) {
  const run = yield* host.newRun(conversation.sessionId)
  run.trace = request.trace ?? run.trace
  const task = { ...taskOf(request), ...(run.trace === undefined ? {} : { trace: run.trace }) }
  const isNext = conversation.first === undefined && host.hasPlace(run.runId)
  const answer: Payload.Started = { runId: run.runId, status: isNext ? "started" : "queued" }
  yield* Effect.onError(
    Effect.andThen(keep(answer), SessionProblem.logging(run.enter(isNext ? undefined : task))),
    () => Effect.sync(() => host.parts.places?.leave(run.runId))
  )
  host.has(run)
  conversation.queue(run, task)
  yield* conversation.beginWaiting
  if (isNext) yield* run.begun.await
  return answer
})

/** Checks the prompt and the options of a run before anything is stored. */
const valid = (agent: Agent.Agent, { options = {}, prompt }: Start) =>
  Effect.clockWith((clock) => {
    const own = agent.state.getUnsafe().options
    const checks = Effect.andThen(
      Effect.fromResult(Input.prompt(prompt, clock.currentTimeMillisUnsafe())),
      Effect.fromResult(Input.patch(Narrowing.of(own, options)))
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

/** The place of a prompt beside a run that has not ended. */
const beside = Effect.fnUntraced(function* (
  host: Host,
  conversation: Conversation,
  agent: Agent.Agent,
  request: Start,
  current: LiveRun,
  keep: Keep
) {
  const { replaces, when } = request
  if (when === undefined || replaces !== undefined)
    return yield* new Problem.RunGoesOn({ runId: current.runId })
  if (when !== "queue") return yield* joining(host, conversation, agent, { ...request, when }, current, keep)
  return yield* entered(host, conversation, request, keep)
})

/** Gives a prompt to the run that has not ended. The key has the ids of its messages, by which a retry sees whether they were stored. */
const joining = Effect.fnUntraced(function* (
  host: Host,
  conversation: Conversation,
  agent: Agent.Agent,
  { prompt, when }: Start & { readonly when: "steer" | "followUp" },
  current: LiveRun,
  keep: Keep
) {
  const read = Effect.clockWith((clock) =>
    Effect.fromResult(Input.prompt(prompt, clock.currentTimeMillisUnsafe()))
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
  yield* Requesting.held(current)
  // The run may have ended meanwhile: then the message begins one of its own.
  if (conversation.current === undefined) {
    yield* conversation.resume(yield* host.newRun(conversation.sessionId), agent)
  }
  return joined
})
