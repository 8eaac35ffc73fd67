/** The routes of clients of the AI SDK. */
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as RcMap from "effect/RcMap"
import * as Stream from "effect/Stream"
import { AiSdkUi } from "../../ai-sdk-ui/index.ts"
import type * as Payload from "../../api/Payload.ts"
import * as Problem from "../../api/Problem.ts"
import * as EventStream from "../EventStream.ts"
import * as Following from "../../runs/Following.ts"
import * as Routes from "../Routes.ts"
import type { Service } from "../../runs/Runs.ts"

type Options = Pick<AiSdkUi.Options, "dynamic">

export const make = (
  runs: Service,
  chats: Following.Chats,
  options: Options
): ReadonlyArray<Routes.Route> => [
  Routes.make("POST", "/ui/chat", chat(runs, chats, options), {
    body: "json",
    summary:
      "Takes a message or answers of a client of the AI SDK, and streams the answer as a UI message stream.",
    responses: { 200: "text/event-stream" },
    query: ["onDisconnect"]
  }),
  Routes.make("GET", "/ui/chat/:chatId", messages(runs, options), {
    body: "none",
    summary: "Gives the messages of a chat for a page with the AI SDK."
  }),
  Routes.make("GET", "/ui/chat/:chatId/stream", reconnect(runs, chats, options), {
    body: "none",
    summary: "Streams the open run of a chat from its start.",
    responses: { 200: "text/event-stream", 204: "" },
    query: ["onDisconnect"]
  }),
  Routes.make("POST", "/ui/chat/:chatId/stop", stop(runs), {
    body: "optional",
    summary: "Cancels the run of a chat.",
    responses: { 204: "" }
  })
]

const chat = (runs: Service, chats: Following.Chats, options: Options) =>
  Effect.gen(function* () {
    const request = yield* Effect.mapError(
      HttpServerRequest.schemaBodyJson(AiSdkUi.ChatRequest),
      ({ message }) => new Problem.MalformedRequest({ detail: message })
    )
    const cancelOnLeave = yield* cancelsOnLeave
    const { id: sessionId } = request
    const pages = yield* RcMap.get(chats, sessionId)
    const messageId = AiSdkUi.answered(request)
    if (messageId !== undefined) {
      const { answered, runId } = yield* answer(runs, request)
      yield* Following.followChat(pages)
      const chain = yield* Following.chainOf(runs, runId)
      return respond(runs, chain, () => follower({ ...options, messageId }, answered), cancelOnLeave)
    }
    const prompt = AiSdkUi.prompt(request)
    if (prompt.length === 0) return yield* Following.nothing(yield* Following.openRun(runs, sessionId))
    const chain = yield* pages.lock.withPermit(
      Effect.tap(begun(runs, pages, request, prompt), () => Following.followChat(pages))
    )
    return respond(runs, chain, () => follower(options), cancelOnLeave)
  })

type Prompt = ReturnType<typeof AiSdkUi.prompt>

/** The runs that answer a prompt: new ones, or those that answer it already. */
const begun = Effect.fnUntraced(function* (
  runs: Service,
  pages: Following.Chat,
  request: AiSdkUi.ChatRequest,
  prompt: Prompt
) {
  const { id: sessionId } = request
  const known = yield* Following.keyed(runs, sessionId)
  if (known !== undefined) return known
  const active = yield* runs.active(sessionId)
  const last = prompt.at(-1)
  if (active !== undefined && last !== undefined && !isReplacing(request)) {
    if (yield* Following.isBegunBy(runs, { runId: active, sessionId }, last)) return [active]
  }
  yield* Following.cleared(runs, pages, active)
  return yield* Following.started(runs, sessionId, prompt, yield* replaced(runs, request, prompt))
})

const isReplacing = ({ messageId, trigger }: AiSdkUi.ChatRequest): boolean =>
  trigger === "regenerate-message" || messageId !== undefined

/**
 * The message that a prompt replaces: the client regenerates its answer, or has edited it. None for one that has never come here, where the
 * client has the end of the conversation.
 */
const replaced = Effect.fnUntraced(function* (runs: Service, request: AiSdkUi.ChatRequest, prompt: Prompt) {
  if (!isReplacing(request)) return undefined
  const { id: sessionId, messageId = prompt.at(-1)?.id ?? "", messages } = request
  const ids = (yield* Following.transcript(runs, sessionId)).map(({ id }) => id)
  const known = Following.repeated(prompt, ids)
  const end = ids.at(-1)
  if (known !== undefined || end === undefined) return known
  const last = (yield* runs.list(sessionId)).at(-1)?.runId
  const isSeen = messages.some(
    ({ id, metadata, parts }) =>
      id === end ||
      (last !== undefined && metadata?.["runId"] === last) ||
      parts.some((part) => part.id === end)
  )
  if (!isSeen) return yield* new Problem.MessageNotFound({ sessionId, messageId })
})

/** A client that asks so cancels the run by leaving. */
export const cancelsOnLeave = Effect.map(
  HttpServerRequest.ParsedSearchParams,
  ({ onDisconnect }) => onDisconnect === "cancel"
)

/** Gives the answers of a request to the run that waits for them. */
const answer = Effect.fnUntraced(function* (runs: Service, request: AiSdkUi.ChatRequest) {
  const run = yield* Following.openRun(runs, request.id)
  const { approvals, outputs } = AiSdkUi.answers(request)
  const decisions = approvals.flatMap(({ approvalId, ...decision }) =>
    (run?.pending.approvals ?? [])
      .filter((request) => request.approvalId === approvalId)
      .map(({ argumentsHash }) => ({ approvalId, answer: { ...decision, argumentsHash } }))
  )
  const replies = (run?.pending.questions ?? []).flatMap((question) =>
    outputs
      .filter(({ toolCallId }) => isPartOf(question, toolCallId))
      .map(({ answer }) => ({ questionId: question.questionId, answer }))
  )
  if (run === undefined || decisions.length + replies.length === 0) return yield* late(runs, request, run)
  let { runId } = run
  for (const { answer, approvalId } of decisions) {
    runId = yield* Following.given(runs, approvalId, runs.approve(run.runId, approvalId, answer))
  }
  for (const { answer, questionId } of replies) {
    runId = yield* Following.given(runs, questionId, runs.answer(run.runId, questionId, answer))
  }
  const answered = [
    ...decisions.map(({ approvalId }) => approvalId),
    ...replies.map(({ questionId }) => questionId)
  ]
  return { runId, answered }
})

/** The run that had other answers before those of a request came: the client gets its end. */
const late = Effect.fnUntraced(function* (
  runs: Service,
  request: AiSdkUi.ChatRequest,
  run: Payload.Run | undefined
) {
  const { id: sessionId, messages } = request
  const id = AiSdkUi.answered(request)
  const { metadata } = messages.find((message) => message.id === id) ?? {}
  const answered = AiSdkUi.answers(request).approvals.map(({ approvalId }) => approvalId)
  const all = yield* Effect.orElseSucceed(runs.list(sessionId), () => [])
  const began = all.find(({ runId }) => runId === metadata?.["runId"])
  if (began === undefined || answered.length === 0) return yield* Following.nothing(run)
  return { runId: Following.chainFrom(all, began.runId).at(-1) ?? began.runId, answered }
})

const isPartOf = ({ runId, toolCallId }: Payload.Pending["questions"][number], part: string): boolean =>
  part === toolCallId || part === `${runId}:${toolCallId}`

/** The messages for a page that shows an old conversation. Those of a run that has not ended come with its stream. */
const messages = (runs: Service, options: Options) =>
  Effect.gen(function* () {
    const { chatId = "" } = yield* HttpRouter.params
    const run = yield* Following.openRun(runs, chatId)
    const [first] = run === undefined ? [] : yield* Following.chainOf(runs, run.runId)
    const transcript = yield* first === undefined
      ? Following.transcript(runs, chatId)
      : Following.upToPrompt(runs, chatId, first)
    return HttpServerResponse.jsonUnsafe(AiSdkUi.uiMessages(transcript, options))
  })

const reconnect = (runs: Service, chats: Following.Chats, options: Options) =>
  Effect.gen(function* () {
    const { chatId = "" } = yield* HttpRouter.params
    const run = yield* Following.openRun(runs, chatId)
    if (run === undefined) return HttpServerResponse.empty({ status: 204 })
    const { runId } = run
    yield* Following.followChat(yield* RcMap.get(chats, chatId))
    const chain = yield* Following.chainOf(runs, runId)
    return respond(runs, chain, () => follower(options), yield* cancelsOnLeave)
  })

const stop = (runs: Service) =>
  Effect.flatMap(HttpRouter.params, ({ chatId = "" }) => Following.stopped(runs, chatId))

const respond = (
  runs: Service,
  chain: ReadonlyArray<string>,
  make: () => Following.Follower,
  cancelOnLeave: boolean
) =>
  EventStream.response(
    Stream.encodeText(Following.text(runs, chain, make, { cancelOnLeave })),
    AiSdkUi.headers
  )

const textOf = (chunks: ReadonlyArray<AiSdkUi.Chunk>): string =>
  chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")

/**
 * Follows a run from its start. With answers it begins where the step began in which they were requested, and takes away the part of the
 * step that the client has: that part may end anywhere.
 */
const follower = (options: AiSdkUi.Options, answered?: ReadonlyArray<string>): Following.Follower => {
  let state = AiSdkUi.initial(options)
  /** The chunks of the step, until a request of the answers has come. */
  let held: Array<AiSdkUi.Chunk> | undefined = answered === undefined ? undefined : []
  const shown = (chunks: ReadonlyArray<AiSdkUi.Chunk>) => {
    if (held === undefined) return chunks
    for (const chunk of chunks) {
      if (chunk.type === "start-step") held = []
      else if (chunk.type !== "start" && !("transient" in chunk)) held.push(chunk)
    }
    const isRequested = AiSdkUi.requests(state).some(({ request }) => answered?.includes(idOf(request)))
    if (!isRequested) return []
    const { messageId = "" } = state
    const all: ReadonlyArray<AiSdkUi.Chunk> = [{ type: "start", messageId }, { type: "reset-step" }, ...held]
    held = undefined
    return all
  }
  return {
    take: (event, isLast) => {
      const [next, chunks] = AiSdkUi.step(state, event)
      state = next
      // A run that another one resumes is not the end of the message.
      return textOf(shown(isLast ? chunks : chunks.filter(({ type }) => type !== "finish")))
    },
    waitsFor: () => {
      if (held !== undefined || !AiSdkUi.isWaiting(state)) return []
      const ids = AiSdkUi.requests(state).map(({ request }) => idOf(request))
      // The log may get the answers later than the run.
      return ids.some((id) => answered?.includes(id)) ? [] : ids
    },
    pause: () => textOf(AiSdkUi.pause()),
    end: "data: [DONE]\n\n"
  }
}

const idOf = (request: ReturnType<typeof AiSdkUi.requests>[number]["request"]): string =>
  request._tag === "QuestionAsked" ? request.questionId : request.approvalId
