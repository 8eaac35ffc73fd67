/** The route of clients of AG-UI. */
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as RcMap from "effect/RcMap"
import * as Stream from "effect/Stream"
import { AgUi } from "../../ag-ui/index.ts"
import type { AgentEvent } from "../../AgentEvent.ts"
import type * as Payload from "../../api/Payload.ts"
import * as Problem from "../../api/Problem.ts"
import * as Approval from "../../Approval.ts"
import { cancelsOnLeave } from "./ChatRoutes.ts"
import * as EventStream from "../EventStream.ts"
import * as Following from "../../runs/Following.ts"
import * as IdempotencyKeys from "../../runs/IdempotencyKeys.ts"
import * as Routes from "../Routes.ts"
import type { Idempotency, Service } from "../../runs/Runs.ts"

export const make = (runs: Service, chats: Following.Chats): ReadonlyArray<Routes.Route> => [
  Routes.make("POST", "/ag-ui", run(runs, chats), {
    body: "json",
    summary:
      "Takes a message or answers of a client of AG-UI, or connects it to its thread, and streams the events.",
    responses: { 200: "text/event-stream" },
    query: ["onDisconnect"]
  }),
  Routes.make("POST", "/ag-ui/:threadId/stop", stop(runs), {
    body: "optional",
    summary: "Cancels the run of a thread.",
    responses: { 204: "" }
  })
]

const run = (runs: Service, chats: Following.Chats) =>
  Effect.gen(function* () {
    const input = yield* Effect.mapError(
      HttpServerRequest.schemaBodyJson(AgUi.RunAgentInput),
      ({ message }) => new Problem.MalformedRequest({ detail: message })
    )
    const options = { cancelOnLeave: yield* cancelsOnLeave }
    const { threadId: sessionId } = input
    const pages = yield* RcMap.get(chats, sessionId)
    const prompt = AgUi.prompt(input)
    const isAnswer = (input.resume ?? []).length > 0
    if (!isAnswer && prompt.length > 0) {
      const chain = yield* pages.lock.withPermit(
        Effect.gen(function* () {
          const own = yield* keyOf(input, prompt)
          const known = yield* Following.keyed(runs, sessionId, own)
          if (known === undefined) yield* Following.cleared(runs, pages, yield* runs.active(sessionId))
          const chain = known ?? (yield* started(runs, sessionId, prompt, own))
          yield* Following.followChat(pages)
          return chain
        })
      )
      return yield* respond(runs, chain, input, options)
    }
    const { answered, runId } = isAnswer ? yield* answer(runs, input) : yield* open(runs, sessionId)
    if (runId === undefined) return yield* shown(runs, input)
    yield* Following.followChat(pages)
    return yield* respond(runs, yield* Following.chainOf(runs, runId), input, options, answered)
  })

/** The key of a request: a client gives each run an id, so that a message with that of a run before is one that comes again. */
const keyOf = ({ runId }: AgUi.RunAgentInput, prompt: ReturnType<typeof AgUi.prompt>) =>
  Effect.map(IdempotencyKeys.hashOf([runId, prompt.at(-1)?.id ?? ""]), (hash) => ({
    key: `ag-ui:${hash}`,
    body: prompt.map(({ content, id }) => ({ id, content: JSON.stringify(content) }))
  }))

/** The run of a thread for a client that connects to it. */
const open = (runs: Service, sessionId: string) =>
  Effect.map(Following.openRun(runs, sessionId), (run) => ({ runId: run?.runId, answered: undefined }))

/** The conversation of a thread without a run. */
const shown = Effect.fnUntraced(function* (runs: Service, input: AgUi.RunAgentInput) {
  const transcript = yield* Following.transcript(runs, input.threadId)
  if (transcript.length === 0) return yield* Following.nothing(undefined)
  const messages = AgUi.messages(transcript)
  const state = AgUi.initial({ ...input, messages })
  const [, begin] = AgUi.resume(state, input)
  const news = lacks(input, messages) ? snapshots(input, state) : []
  const { runId, threadId } = input
  const end = { type: "RUN_FINISHED", threadId, runId, outcome: { type: "success" } } as const
  return eventStream(Stream.succeed(textOf([...begin, ...news, end])))
})

/** Whether the list of a client lacks messages of the thread. */
const lacks = (input: AgUi.Input, messages: ReadonlyArray<AgUi.AgUiMessage>): boolean => {
  const known = new Set((input.messages ?? []).map(({ id }) => id))
  return messages.some(({ id, role }) => role !== "reasoning" && !known.has(id))
}

/**
 * The conversation for a client that lacks messages of it. A client keeps its messages in their places and appends the others: one that has
 * some before those that it lacks gets the conversation up to them first.
 */
const snapshots = (input: AgUi.Input, state: AgUi.State): ReadonlyArray<AgUi.Event> => {
  const whole = AgUi.snapshot(state)
  if (whole.type !== "MESSAGES_SNAPSHOT") return []
  const known = new Set((input.messages ?? []).map(({ id }) => id))
  const lacking = whole.messages.findIndex(({ id }) => !known.has(id))
  const late = whole.messages.findIndex(({ id }, at) => at > lacking && known.has(id))
  return late === -1 ? [whole] : [{ ...whole, messages: whole.messages.slice(0, late) }, whole]
}

const stop = (runs: Service) =>
  Effect.flatMap(HttpRouter.params, ({ threadId = "" }) => Following.stopped(runs, threadId))

/** Starts a run. A prompt whose last message the conversation has replaces what stands there: AG-UI has no other sign of that. */
const started = Effect.fnUntraced(function* (
  runs: Service,
  sessionId: string,
  prompt: ReturnType<typeof AgUi.prompt>,
  own: Idempotency
) {
  const [first, ...others] = prompt
  const replaces =
    others.length === 0
      ? first?.id
      : Following.repeated(
          prompt,
          (yield* Following.transcript(runs, sessionId)).map(({ id }) => id)
        )
  return yield* Effect.catchTag(
    Following.started(runs, sessionId, prompt, replaces, own),
    "MessageNotFound",
    () => Following.started(runs, sessionId, prompt, undefined, own)
  )
})

const eventStream = (text: Stream.Stream<string>) =>
  EventStream.response(Stream.encodeText(text), AgUi.headers)

const respond = Effect.fnUntraced(function* (
  runs: Service,
  chain: ReadonlyArray<string>,
  input: AgUi.RunAgentInput,
  options: Following.Options,
  answered?: ReadonlyArray<string>
) {
  const before = yield* Following.upToPrompt(runs, input.threadId, chain[0] ?? "")
  const thread = AgUi.messages(before)
  return eventStream(Following.text(runs, chain, () => follower(input, thread, answered), options))
})

/** Gives the answers of a request to the run that waits for them. */
const answer = Effect.fnUntraced(function* (runs: Service, input: AgUi.RunAgentInput) {
  const run = yield* Following.openRun(runs, input.threadId)
  const replies = AgUi.replies(input).filter(({ id }) => run !== undefined && isPending(run, id))
  if (run === undefined || replies.length === 0) return yield* Following.nothing(run)
  let { runId } = run
  for (const reply of replies) runId = yield* give(runs, run, reply)
  return { runId, answered: replies.map(({ id }) => id) }
})

const isPending = ({ pending }: Payload.Run, id: string): boolean =>
  pending.approvals.some(({ approvalId }) => approvalId === id) ||
  pending.questions.some(({ questionId }) => questionId === id)

/** Gives one answer, and succeeds with the id of the run that continues. */
const give = Effect.fnUntraced(function* (runs: Service, run: Payload.Run, reply: AgUi.Reply) {
  const { answer = null, decision, id, isCancelled } = reply
  const { runId } = run
  const approval = run.pending.approvals.find(({ approvalId }) => approvalId === id)
  if (approval !== undefined) {
    if (decision === undefined) {
      const detail = "The payload that resumes an approval is {approved: boolean, reason?: string}."
      return yield* new Approval.InvalidAnswer({ id, runId, detail })
    }
    const { argumentsHash } = approval
    return yield* Following.given(runs, id, runs.approve(runId, id, { ...decision, argumentsHash }))
  }
  const given = isCancelled ? { declined: true as const } : { answer }
  return yield* Following.given(runs, id, runs.answer(runId, id, given))
})

const textOf = (events: ReadonlyArray<AgUi.Event>): string =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")

/**
 * Follows a run from its start, or from the place where it has waited for the answers. `thread` is the conversation before it: a client that
 * lacks messages gets all.
 */
const follower = (
  input: AgUi.Input,
  thread: ReadonlyArray<AgUi.AgUiMessage>,
  answered?: ReadonlyArray<string>
): Following.Follower => {
  const isBehind = lacks(input, thread)
  let state = AgUi.initial(isBehind ? { ...input, messages: thread } : input)
  let isBefore = answered !== undefined
  let hasBegun = false
  const isWaiting = () =>
    AgUi.isWaiting(state) && AgUi.requests(state).some((request) => answered?.includes(idOf(request)))
  return {
    take: (event, isLast) => {
      const begin = isBefore && (isAnswer(event, answered) || isEnd(event, isLast)) ? resumed() : []
      const [next, events] = AgUi.step(state, event)
      state = next
      if (!isBefore)
        return textOf([...begin, ...events.filter((event) => isShown(event, isLast)).flatMap(withNews)])
      return isWaiting() ? textOf(resumed()) : ""
    },
    waitsFor: () => {
      if (isBefore || !AgUi.isWaiting(state)) return []
      const ids = AgUi.requests(state).map(idOf)
      // The log may get the answers later than the run.
      return ids.some((id) => answered?.includes(id)) ? [] : ids
    },
    pause: () => textOf(AgUi.pause(state)),
    end: ""
  }

  function resumed(): ReadonlyArray<AgUi.Event> {
    isBefore = false
    hasBegun = true
    const [next, events] = AgUi.resume(state, input)
    state = next
    return lacks(input, state.messages) ? events.flatMap((event) => withSnapshot(event)) : events
  }

  function withNews(event: AgUi.Event): ReadonlyArray<AgUi.Event> {
    return isBehind ? withSnapshot(event) : [event]
  }

  function withSnapshot(event: AgUi.Event): ReadonlyArray<AgUi.Event> {
    return event.type === "RUN_STARTED" ? [event, ...snapshots(input, state)] : [event]
  }

  /** A run that another one resumes, and that one, are one run of AG-UI. */
  function isShown({ type }: AgUi.Event, isLast: boolean): boolean {
    if (type === "RUN_FINISHED") return isLast
    if (type !== "RUN_STARTED") return true
    const isFirst = !hasBegun
    hasBegun = true
    return isFirst
  }
}

const isAnswer = (event: AgentEvent, answered: ReadonlyArray<string> | undefined): boolean =>
  (event._tag === "ApprovalAnswered" && answered?.includes(event.approvalId) === true) ||
  (event._tag === "QuestionAnswered" && answered?.includes(event.questionId) === true)

const isEnd = ({ _tag, path }: AgentEvent, isLast: boolean) =>
  _tag === "RunEnd" && isLast && path === undefined

const idOf = (request: ReturnType<typeof AgUi.requests>[number]): string =>
  request._tag === "QuestionAsked" ? request.questionId : request.approvalId
