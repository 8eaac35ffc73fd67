/** The log of a run as the text of another protocol, up to the end of the run or to a request that waits for a person. */
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../AgentEvent.ts"
import type * as Payload from "../api/Payload.ts"
import * as Problem from "../api/Problem.ts"
import { noAnswer, noApproval } from "../internal/waiting.ts"
import * as Message from "../Message.ts"
import type { Idempotency, Positioned, Service } from "./Runs.ts"
import * as RcMap from "effect/RcMap"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as SubscriptionRef from "effect/SubscriptionRef"

/** The state of one response. */
export interface Follower {
  /** The text for one event. `isLast` says that no other run continues its run. */
  readonly take: (event: AgentEvent, isLast: boolean) => string
  /** The ids of the requests for which all of the run waits. Empty where it does not wait. */
  readonly waitsFor: () => ReadonlyArray<string>
  /** The text that ends the response while the run waits. */
  readonly pause: () => string
  /** The last text. */
  readonly end: string
}

export interface Options {
  /** Whether the run is cancelled when the last client with this option has left, but for one whose run waits. */
  readonly cancelOnLeave: boolean
}

const ping = ": ping\n\n"

/** The text of a response about a run, and about those that it resumes. */
export const text = (
  runs: Service,
  chain: ReadonlyArray<string>,
  make: () => Follower,
  { cancelOnLeave }: Options
): Stream.Stream<string> =>
  Stream.suspend(() => {
    const follower = make()
    let isPaused = false
    const last = chain.at(-1) ?? ""
    const pages = (runId: string) => {
      const isLast = runId === last
      const options = isLast && cancelOnLeave ? { cancelOnLeave: () => !isPaused } : {}
      const watched = Effect.orElseSucceed(runs.watch(runId, 0, options), () => undefined)
      return Stream.unwrap(Effect.map(watched, (stream) => stream ?? Stream.empty)).pipe(
        Stream.mapEffect((page) => {
          const output = page.reduce(
            (all, { event }) => (event === undefined ? all : all + follower.take(event, isLast)),
            page.length === 0 ? ping : ""
          )
          return Effect.map(isLast ? isWaiting(runs, runId, follower) : Effect.succeed(false), (waits) => {
            isPaused = waits
            return waits ? output + follower.pause() : output
          })
        })
      )
    }
    return Stream.fromIterable(chain).pipe(
      Stream.flatMap(pages),
      Stream.takeUntil(() => isPaused),
      Stream.filter((output) => output !== ""),
      Stream.concat(follower.end === "" ? Stream.empty : Stream.succeed(follower.end))
    )
  })

/** A request of the log may have its answer further on. */
const isWaiting = (runs: Service, runId: string, follower: Follower): Effect.Effect<boolean> => {
  const ids = follower.waitsFor()
  if (ids.length === 0) return Effect.succeed(false)
  return runs.get(runId).pipe(
    Effect.map(({ pending, status }) => {
      const open = [
        ...pending.approvals.map(({ approvalId }) => approvalId),
        ...pending.questions.map(({ questionId }) => questionId)
      ]
      return status === "running" && ids.some((id) => open.includes(id))
    }),
    Effect.orElseSucceed(() => false)
  )
}

/** The run, after those that it resumes. */
export const chainOf = (runs: Service, runId: string): Effect.Effect<ReadonlyArray<string>> =>
  startOf(runs, runId).pipe(
    Effect.flatMap((start) =>
      start?.resumes === undefined
        ? Effect.succeed([])
        : Effect.filterOrFail(chainOf(runs, start.resumes), (chain) => !chain.includes(runId))
    ),
    Effect.orElseSucceed((): ReadonlyArray<string> => []),
    Effect.map((before) => [...before, runId])
  )

/** The run of a session that has not ended, or that waits for an answer. */
export const openRun = Effect.fnUntraced(function* (runs: Service, sessionId: string) {
  const active = yield* runs.active(sessionId)
  if (active !== undefined) return yield* runs.get(active)
  const all = yield* Effect.catchTag(runs.list(sessionId), "SessionNotFound", () =>
    Effect.succeed<ReadonlyArray<Payload.Run>>([])
  )
  const last = all.at(-1)
  return last?.status === "suspended" ? last : undefined
})

/**
 * Gives an answer, and succeeds with the id of the run that has it in its log. A run that is about to be suspended may miss it: then it
 * is given again, and resumes the run.
 */
export const given = <E>(
  runs: Service,
  requestId: string,
  give: Effect.Effect<{ readonly runId: string }, E>
): Effect.Effect<string, E> =>
  Effect.gen(function* () {
    const { runId } = yield* give
    const events = Effect.orElseSucceed(runs.events(runId, 0), () => Stream.empty)
    const found = yield* Stream.runHead(
      Stream.filter(Stream.unwrap(events), ({ event }) => isAnswer(event, requestId))
    )
    return found._tag === "Some" ? runId : (yield* give).runId
  })

const isAnswer = (event: AgentEvent, requestId: string): boolean =>
  (event._tag === "ApprovalAnswered" && event.approvalId === requestId) ||
  (event._tag === "QuestionAnswered" && event.questionId === requestId)

/**
 * Starts a run of a session, which begins with it, and succeeds with the runs to show. `replaces` is the message that the prompt replaces.
 * A prompt that the session has answered gives that answer again.
 */
export const started = Effect.fnUntraced(function* (
  runs: Service,
  sessionId: string,
  prompt: ReadonlyArray<Message.User>,
  replaces?: string,
  own?: Idempotency
): Effect.fn.Return<ReadonlyArray<string>, StartProblem, HttpServerRequest> {
  yield* Effect.catchTag(runs.sessions.create({ sessionId }), "SessionExists", () => Effect.void)
  const idempotency = (yield* key) ?? own
  const how = {
    ...(replaces === undefined ? {} : { replaces }),
    ...(idempotency === undefined ? {} : { idempotency })
  }
  const begun = Effect.map(runs.start({ sessionId, prompt, ...how }), ({ runId }) => [runId])
  const known = ({
    messageId
  }: Problem.MessageExists): Effect.Effect<ReadonlyArray<string>, StartProblem, HttpServerRequest> => {
    const last = prompt.at(-1)
    if (last?.id === messageId) return again(runs, sessionId, last)
    const others = prompt.filter(({ id }) => id !== messageId)
    return started(runs, sessionId, others, replaces, own)
  }
  return yield* Effect.catchTag(begun, "MessageExists", known)
})

type Failure<F extends (...args: any) => Effect.Effect<any, any>> = Effect.Error<ReturnType<F>>
type StartProblem =
  | Exclude<Failure<Service["sessions"]["create"]>, Problem.SessionExists>
  | Failure<Service["start"]>

/** The `Idempotency-Key` of a request, and its body, which was decoded before. */
const key = Effect.gen(function* () {
  const { headers, json } = yield* HttpServerRequest
  const key = headers["idempotency-key"]
  const body = Effect.mapError(json, ({ message }) => new Problem.MalformedRequest({ detail: message }))
  return key === undefined ? undefined : { key, body: yield* body }
})

/** The runs that answered a prompt with the `Idempotency-Key` of a request, or its own key; `undefined` for one that is new. */
export const keyed = Effect.fnUntraced(function* (runs: Service, sessionId: string, own?: Idempotency) {
  const idempotency = (yield* key) ?? own
  const first = idempotency && (yield* runs.known(sessionId, idempotency))
  return first && chainFrom(yield* runs.list(sessionId), first.runId)
})

/** The runs that answer a message that the conversation has. */
const again = Effect.fnUntraced(function* (runs: Service, sessionId: string, message: Message.User) {
  const all = yield* runs.list(sessionId)
  const isBegun = (run: Payload.Run) => isBegunBy(runs, run, message)
  const began = yield* Effect.findFirst(all.toReversed(), isBegun)
  if (Option.isNone(began)) return yield* new Problem.MessageExists({ sessionId, messageId: message.id })
  return chainFrom(all, began.value.runId)
})

/** A run of a session, and those that resume it. */
export const chainFrom = (all: ReadonlyArray<Payload.Run>, first: string): ReadonlyArray<string> => {
  const later = new Map(all.map(({ resumedBy, runId }) => [runId, resumedBy]))
  const chain: Array<string> = []
  for (let runId: string | undefined = first; runId !== undefined; runId = later.get(runId)) chain.push(runId)
  return chain
}

/** The first event of a run. Waits for the beginning of one that is queued. */
const startOf = Effect.fnUntraced(function* (runs: Service, runId: string) {
  const head = Effect.flatMap(runs.events(runId, 0), (events) => Stream.runHead(events))
  const first = yield* Effect.orElseSucceed(head, () => Option.none<Positioned>())
  const { event } = Option.getOrUndefined(first) ?? {}
  return event?._tag === "RunStart" ? event : undefined
})

const promptsOf = (runs: Service, runId: string) =>
  Effect.map(startOf(runs, runId), (start) => start?.prompts ?? [])

/** Whether a run began with a message. Fails where it began with another one under the id. */
export const isBegunBy = Effect.fnUntraced(function* (
  runs: Service,
  { runId, sessionId }: Pick<Payload.Run, "runId" | "sessionId">,
  { content, id: messageId }: Message.User
) {
  const prompt = (yield* promptsOf(runs, runId)).find(({ id }) => id === messageId)
  if (prompt === undefined) return false
  if ("content" in prompt && Equal.equals(prompt.content, content)) return true
  const detail = "It has other content."
  return yield* new Problem.MessageExists({ sessionId, messageId, detail })
})

/**
 * Makes room for a message: ends the run that a session has, if no page follows it any more. It refuses the approvals and questions of
 * the run, since the person wrote something else.
 */
export const cleared = Effect.fnUntraced(function* (runs: Service, chat: Chat, runId: string | undefined) {
  if (runId === undefined) return
  if (!(yield* isChatLeft(chat))) return yield* new Problem.RunGoesOn({ runId })
  const { pending } = yield* runs.get(runId)
  const refusals = [
    ...pending.approvals.map(({ approvalId, argumentsHash }) =>
      runs.approve(runId, approvalId, { decision: "reject", argumentsHash, reason: noApproval })
    ),
    ...pending.questions.map(({ questionId }) =>
      runs.answer(runId, questionId, { declined: true, reason: noAnswer })
    )
  ]
  // Paused, it does not ask the model about the refusals.
  if (refusals.length > 0) yield* unlessMoved(runs.pause(runId))
  yield* Effect.forEach(refusals, unlessMoved, { discard: true })
  yield* unlessMoved(runs.cancel(runId, "the user wrote a message"))
  yield* Stream.runDrain(Stream.unwrap(Effect.orElseSucceed(runs.events(runId, 0), () => Stream.empty)))
})

/** Cancels the run that a session has. */
export const stopped = Effect.fnUntraced(function* (runs: Service, sessionId: string) {
  const runId = yield* runs.active(sessionId)
  if (runId !== undefined) yield* Effect.catchTag(runs.cancel(runId, "stopped"), "RunOver", () => Effect.void)
  return HttpServerResponse.empty({ status: 204 })
})

/** A request to a run that may have come further meanwhile. */
const unlessMoved = <E extends { readonly _tag: string }>(request: Effect.Effect<unknown, E>) =>
  Effect.catchIf(
    Effect.asVoid(request),
    ({ _tag }) => moved.has(_tag),
    () => Effect.void
  )

const moved: ReadonlySet<string> = new Set([
  "RunNotFound",
  "RunOver",
  "RunNotReady",
  "RequestNotFound",
  "AnswerConflict",
  "InvalidAnswer"
])

const decodeMessages = Schema.decodeUnknownEffect(Schema.toCodecJson(Schema.Array(Message.Message)))

/** The messages of a conversation, none without a session. */
export const transcript = (runs: Service, sessionId: string) =>
  runs.sessions.get(sessionId).pipe(
    Effect.flatMap(({ view }) => Effect.orDie(decodeMessages(view["messages"]))),
    Effect.catchTag("SessionNotFound", () => Effect.succeed<ReadonlyArray<Message.Message>>([]))
  )

/** The conversation up to the prompt of a run, with the prompt. */
export const upToPrompt = Effect.fnUntraced(function* (runs: Service, sessionId: string, runId: string) {
  const messages = yield* transcript(runs, sessionId)
  const prompts = yield* promptsOf(runs, runId)
  const ids = new Set(prompts.map(({ id }) => id))
  const first = messages.findIndex(({ id }) => ids.has(id))
  return [...(first === -1 ? messages : messages.slice(0, first)), ...prompts]
})

/** The first message of a prompt that a conversation has. None where it does not have the last one: that one is new. */
export const repeated = (
  prompt: ReadonlyArray<Message.User>,
  ids: ReadonlyArray<string>
): string | undefined => {
  const known = prompt.filter(({ id }) => ids.includes(id))
  return known.length > 0 && known.at(-1) === prompt.at(-1) ? known[0]?.id : undefined
}

/** The refusal of a request that has nothing for a run. */
export const nothing = (run: Payload.Run | undefined) =>
  run === undefined || run.status === "suspended"
    ? new Problem.MalformedRequest({
        detail: "The request has neither a message of the user nor an answer that a run waits for."
      })
    : new Problem.RunGoesOn({ runId: run.runId })

// ───────────────────────── Chats
//
// The pages that follow each chat, by their requests that have not ended.

/** A chat of which pages have requests. */
export interface Chat {
  /** Held by a request that looks at the run of the chat and begins another one. */
  readonly lock: Semaphore.Semaphore
  /** The number of pages that follow the run of the chat. */
  readonly followers: SubscriptionRef.SubscriptionRef<number>
}

export type Chats = RcMap.RcMap<string, Chat>

export const makeChats: Effect.Effect<Chats, never, Scope.Scope> = RcMap.make({
  lookup: (_chatId: string) =>
    Effect.map(SubscriptionRef.make(0), (followers) => ({ lock: Semaphore.makeUnsafe(1), followers }))
})

/** Counts a page as a follower of the chat until its request ends. */
export const followChat = ({ followers }: Chat): Effect.Effect<void, never, Scope.Scope> => {
  const add = (pages: number) => SubscriptionRef.update(followers, (others) => others + pages)
  return Effect.acquireRelease(add(1), () => add(-1))
}

/** The time in which the server sees that a page has left. */
const chatPatience = "1 second"

/** Whether no page follows the chat, or the last one is about to leave. */
export const isChatLeft = ({ followers }: Chat): Effect.Effect<boolean> =>
  SubscriptionRef.changes(followers).pipe(
    Stream.filter((pages) => pages === 0),
    Stream.runHead,
    Effect.timeoutOption(chatPatience),
    Effect.map(Option.isSome)
  )
