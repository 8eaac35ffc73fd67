/**
 * A prompt of a client: a run, whose events become updates while the person answers its requests.
 */
import {
  type AgentContext,
  type PromptResponse,
  RequestError,
  type SessionUpdate,
  type ContentBlock
} from "@agentclientprotocol/sdk"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberMap from "effect/FiberMap"
import * as Stream from "effect/Stream"
import type { AgentEvent, OfTag } from "../../AgentEvent.ts"
import * as Message from "../../Message.ts"
import { stopReason } from "../AcpUpdates.ts"
import * as AcpConversation from "./AcpConversation.ts"
import { type Conversation, type Peer, Turn } from "./AcpConversation.ts"
import * as UpdateState from "./UpdateState.ts"
import * as Steps from "./UpdateStep.ts"
import * as FailureText from "../../internal/failureText.ts"
import type { EventError } from "../../Run.ts"

/** Runs a prompt, and succeeds with its answer when the run has ended. An interruption cancels the run. */
export const run = (
  peer: Peer,
  client: AgentContext,
  conversation: Conversation,
  content: Message.User["content"]
): Effect.Effect<PromptResponse, RequestError> =>
  Effect.suspend(() => {
    const turn = new Turn()
    conversation.turns.add(turn)
    return Effect.ensuring(
      Effect.scoped(played(peer, client, conversation, turn, content)),
      Effect.sync(() => conversation.turns.delete(turn))
    )
  })

const played = Effect.fnUntraced(function* (
  peer: Peer,
  client: AgentContext,
  conversation: Conversation,
  turn: Turn,
  content: Message.User["content"]
) {
  const { sessionId } = conversation
  const refuse = answering(sessionId)
  const started = yield* refuse(peer.runs.start({ sessionId, prompt: Message.user(content), when: "queue" }))
  let runId: string | undefined = started.runId
  let end: OfTag<"RunEnd"> | undefined
  while (runId !== undefined) {
    turn.runId = runId
    // The cancel came before the run had an id.
    if (yield* Deferred.isDone(turn.cancelled))
      yield* Effect.ignore(peer.runs.cancel(runId, "the editor cancelled the prompt"))
    const followed: Followed = yield* refuse(follow({ peer, client, conversation, turn, runId }))
    end = followed.end ?? end
    runId = followed.next
  }
  const isCancelled = yield* Deferred.isDone(turn.cancelled)
  const reason =
    isCancelled || end === undefined ? ("cancelled" as const) : stopReason(conversation.state, end)
  if (reason === undefined) return yield* Effect.fail(ofRun(end?.error))
  return { stopReason: reason } satisfies PromptResponse
})

interface Run {
  readonly peer: Peer
  readonly client: AgentContext
  readonly conversation: Conversation
  readonly turn: Turn
  readonly runId: string
}

interface Followed {
  readonly end: OfTag<"RunEnd"> | undefined
  /** The run that continues it, after the answer to a request that it was suspended for. */
  readonly next: string | undefined
}

/** Shows a run until its end, and that of a suspended one until a person has answered. */
const follow = Effect.fnUntraced(function* (run: Run) {
  const { conversation, peer, runId, turn } = run
  const asked = yield* FiberMap.make<string, void, never>()
  const requests: Requests = { asked, ofCalls: new Map() }
  const next = yield* Deferred.make<string>()
  const onward = (id: string) => (id === runId ? Effect.void : Effect.asVoid(Deferred.succeed(next, id)))
  const asker: AcpConversation.Asker = { peer, client: run.client, conversation, runId, onward }
  let end: OfTag<"RunEnd"> | undefined
  const events = yield* peer.runs.events(runId, 0, { cancelOnLeave: true })
  yield* Stream.runForEachArray(events, (some) =>
    Effect.gen(function* () {
      let updates: Array<SessionUpdate> = []
      for (const { event } of some) {
        const [state, more] = Steps.step(conversation.state, event)
        conversation.state = state
        updates.push(...more)
        if (event._tag === "RunEnd" && event.path === undefined) end = event
        if (!concernsRequests.has(event._tag)) continue
        // The client gets the call before the request about it.
        yield* conversation.tell(run.client, updates)
        updates = []
        yield* attend(requests, asker, event)
      }
      yield* conversation.tell(run.client, updates)
    })
  )
  if (end?.status !== "suspended") return { end, next: undefined } satisfies Followed
  const answered = Effect.raceAllFirst([
    Deferred.await(next),
    Effect.as(Deferred.await(turn.cancelled), undefined),
    Effect.flatMap(FiberMap.awaitEmpty(asked), () =>
      Effect.flatMap(Deferred.isDone(next), (isDone) =>
        isDone ? Deferred.await(next) : Effect.succeed(undefined)
      )
    )
  ])
  return { end, next: yield* answered } satisfies Followed
}, Effect.scoped)

const concernsRequests: ReadonlySet<string> = new Set([
  "ApprovalRequested",
  "ApprovalAnswered",
  "QuestionAsked",
  "QuestionAnswered",
  "ToolExecutionEnd"
])

interface Requests {
  readonly asked: FiberMap.FiberMap<string, void, never>
  /** The ids of the requests of the calls that wait. */
  readonly ofCalls: Map<string, string>
}

/** Asks beside the events, since a cancel must come through, and takes back a request that is void. */
const attend = (
  { asked, ofCalls }: Requests,
  asker: AcpConversation.Asker,
  event: AgentEvent
): Effect.Effect<void> => {
  const ask = (id: string, call: string, effect: Effect.Effect<void>) => {
    ofCalls.set(call, id)
    return Effect.asVoid(FiberMap.run(asked, id, effect, { onlyIfMissing: true }))
  }
  switch (event._tag) {
    case "ApprovalRequested":
      return ask(event.approvalId, UpdateState.keyOf(event), AcpConversation.approval(asker, event))
    case "QuestionAsked":
      return ask(event.questionId, UpdateState.keyOf(event), AcpConversation.question(asker, event))
    case "ApprovalAnswered":
    case "QuestionAnswered":
    case "ToolExecutionEnd": {
      const id = ofCalls.get(UpdateState.keyOf(event))
      return id === undefined ? Effect.void : FiberMap.remove(asked, id)
    }
    default:
      return Effect.void
  }
}

// ───────────────────────── Refusals

interface Problem {
  readonly _tag: string
  readonly title?: string
  readonly detail?: string
}

/** The parameters of a request are not valid. */
export const invalid = (detail: string): RequestError => RequestError.invalidParams({ detail }, detail)

/** The client has not opened the session, or there is none. */
export const unknownSession = (sessionId: string): RequestError => RequestError.sessionNotFound(sessionId)

const internal = (message: string, data?: unknown): RequestError => new RequestError(-32603, message, data)

/** A run that failed. */
const ofRun = (error: EventError | undefined): RequestError =>
  internal(error === undefined ? "The run broke off" : FailureText.of(error), { error })

/** Answers with the error that a problem of the server is. */
export const answering =
  (sessionId: string) =>
  <A, R>(effect: Effect.Effect<A, Problem, R>): Effect.Effect<A, RequestError, R> =>
    Effect.mapError(effect, (problem) => {
      const { _tag, detail, title = _tag } = problem
      if (_tag === "SessionNotFound") return unknownSession(sessionId)
      if (_tag === "MalformedRequest") return invalid(detail ?? title)
      return internal(detail === undefined ? title : `${title}: ${detail}`, { problem: _tag })
    })

// ───────────────────────── Content of prompts

/**
 * The kinds of content that the model reads.
 *
 * @category options
 * @since 0.2.0
 */
export interface Accepts {
  /** Whether it reads images. Default `true`. */
  readonly image?: boolean
  /** Whether it reads recordings. Default `false`. */
  readonly audio?: boolean
}

type PromptBlock = Message.User["content"][number]

/** Fails for a prompt without content, and for content that the model does not read. */
export const contentOf = (
  prompt: ReadonlyArray<ContentBlock>,
  accepts: Accepts
): Effect.Effect<ReadonlyArray<PromptBlock>, RequestError> =>
  prompt.length === 0
    ? Effect.fail(invalid("The prompt has no content."))
    : Effect.forEach(prompt, (block) => blockOf(block, accepts))

const blockOf = (
  block: ContentBlock,
  { audio = false, image = true }: Accepts
): Effect.Effect<PromptBlock, RequestError> => {
  switch (block.type) {
    case "text":
      return Effect.succeed({ type: "text", text: block.text })
    case "image":
      if (!image) return Effect.fail(invalid("The model does not read images."))
      return Effect.succeed(promptFileOf(block.data, block.mimeType, undefined))
    case "audio":
      if (!audio) return Effect.fail(invalid("The model does not read recordings."))
      return Effect.succeed(promptFileOf(block.data, block.mimeType, undefined))
    case "resource_link":
      return Effect.succeed({ type: "text", text: `[${block.name}](${block.uri})` })
    case "resource": {
      const { resource } = block
      if ("text" in resource)
        return Effect.succeed({
          type: "text",
          text: `<resource uri=${JSON.stringify(resource.uri)}>\n${resource.text.trimEnd()}\n</resource>`
        })
      const mediaType = resource.mimeType ?? "application/octet-stream"
      return Effect.succeed(promptFileOf(resource.blob, mediaType, nameOf(resource.uri)))
    }
    default:
      return Effect.fail(invalid("The prompt has content of an unknown type."))
  }
}

const promptFileOf = (data: string, mediaType: string, name: string | undefined): PromptBlock =>
  mediaType.startsWith("image/")
    ? { type: "image", source: { data, mediaType } }
    : { type: "file", source: { data, mediaType }, ...(name === undefined ? {} : { name }) }

const nameOf = (uri: string): string | undefined => {
  const last = uri.split(/[?#]/)[0]?.split("/").at(-1)
  return last === undefined || last === "" ? undefined : last
}
