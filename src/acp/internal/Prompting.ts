/**
 * A prompt of a client: a run, whose events become updates while the person answers its requests.
 */
import type { AgentContext, PromptResponse, RequestError } from "@agentclientprotocol/sdk"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberMap from "effect/FiberMap"
import * as Stream from "effect/Stream"
import type { SessionUpdate } from "@agentclientprotocol/sdk"
import type { AgentEvent, OfTag } from "../../AgentEvent.ts"
import * as Message from "../../Message.ts"
import { stopReason } from "../AcpUpdates.ts"
import * as AcpRequests from "./AcpRequests.ts"
import { type Conversation, type Peer, Turn } from "./AcpConversation.ts"
import * as AcpRefusal from "./AcpRefusal.ts"
import * as UpdateState from "./UpdateState.ts"
import * as Steps from "./UpdateStep.ts"

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
  const refuse = AcpRefusal.answering(sessionId)
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
  if (reason === undefined) return yield* Effect.fail(AcpRefusal.ofRun(end?.error))
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
  const asker: AcpRequests.Asker = { peer, client: run.client, conversation, runId, onward }
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
  asker: AcpRequests.Asker,
  event: AgentEvent
): Effect.Effect<void> => {
  const ask = (id: string, call: string, effect: Effect.Effect<void>) => {
    ofCalls.set(call, id)
    return Effect.asVoid(FiberMap.run(asked, id, effect, { onlyIfMissing: true }))
  }
  switch (event._tag) {
    case "ApprovalRequested":
      return ask(event.approvalId, UpdateState.keyOf(event), AcpRequests.approval(asker, event))
    case "QuestionAsked":
      return ask(event.questionId, UpdateState.keyOf(event), AcpRequests.question(asker, event))
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
