/**
 * The requests of a run to the person at the editor: approvals, and questions of the model.
 */
import type { AgentContext, PermissionOption, ToolCallUpdate } from "@agentclientprotocol/sdk"
import { CreateElicitationResponse, methods } from "@agentclientprotocol/sdk"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { OfTag } from "../../AgentEvent.ts"
import type * as Payload from "../../api/Payload.ts"
import * as Following from "../../runs/Following.ts"
import * as AnswerForm from "./AnswerForm.ts"
import * as Calls from "./Calls.ts"
import type { Conversation, Peer, ToolScope } from "./Conversation.ts"
import * as State from "./State.ts"

/** The calls of a tool with equal params. */
export const exactly: ToolScope = (toolName, params) => ({
  key: JSON.stringify([toolName, params]),
  words: `${toolName} with these params`
})

/** A run that asks, and the client of its prompt. */
export interface Asker {
  readonly peer: Peer
  readonly client: AgentContext
  readonly conversation: Conversation
  readonly runId: string
  /** Called with the run that continues after an answer. */
  readonly onward: (runId: string) => Effect.Effect<void>
}

/** Asks the client to choose an option; `undefined` if it does not, or cannot. */
const chosen = (
  { client, conversation: { sessionId } }: Asker,
  toolCall: ToolCallUpdate,
  options: Array<PermissionOption>
): Effect.Effect<string | undefined> =>
  Effect.tryPromise((signal) =>
    client.request(
      methods.client.session.requestPermission,
      { sessionId, toolCall, options },
      { cancellationSignal: signal, stopWaitingOnCancel: true }
    )
  ).pipe(
    Effect.map(({ outcome }) => (outcome.outcome === "selected" ? outcome.optionId : undefined)),
    Effect.tapCause((cause) => Effect.logDebug("The editor could not ask", cause)),
    Effect.orElseSucceed(() => undefined)
  )

/** Asks about a call, unless a rule of the session allows it, and approves or rejects it. */
export const approval = Effect.fnUntraced(function* (asker: Asker, event: OfTag<"ApprovalRequested">) {
  const { conversation, onward, peer, runId } = asker
  const scope = peer.scopeOf(event.toolName, event.params)
  const rule = conversation.rule(scope.key)
  const asked = Effect.suspend(() =>
    chosen(asker, Calls.requested(conversation.state, event), permissions(scope.words))
  )
  const allowed = Effect.as(Deferred.await(rule), "always")
  const answer = (yield* Deferred.isDone(rule)) ? "always" : yield* Effect.raceFirst(allowed, asked)
  if (answer === "always") yield* Deferred.succeed(rule, undefined)
  const { approvalId, argumentsHash } = event
  const reply =
    answer === "always" || answer === "once"
      ? { decision: "approve" as const, argumentsHash }
      : { decision: "reject" as const, argumentsHash, reason: rejected(answer) }
  yield* Following.given(peer.runs, approvalId, peer.runs.approve(runId, approvalId, reply)).pipe(
    Effect.flatMap(onward),
    Effect.uninterruptible,
    // Another client answered, or the run ended meanwhile.
    Effect.ignore
  )
})

const rejected = (answer: string | undefined): string =>
  answer === "no" ? "the user answered no" : "the editor gave no answer"

const permissions = (words: string): Array<PermissionOption> => [
  { optionId: "once", name: "Allow", kind: "allow_once" },
  { optionId: "always", name: `Always allow ${words}`, kind: "allow_always" },
  { optionId: "no", name: "Reject", kind: "reject_once" }
]

/** How often a person may answer a question in a way that does not match its schema. */
const maxTries = 3

/** Puts a question of the model to the person, and gives the answer to the run, or says that there is none. */
export const question = Effect.fnUntraced(function* (asker: Asker, event: OfTag<"QuestionAsked">) {
  const { peer } = asker
  const { questionId, schema } = event
  const { elicitation } = peer.capabilities
  const hasForms = elicitation?.form !== undefined && elicitation.form !== null
  const choices = AnswerForm.choices(schema)
  const ask = (detail: string) => {
    if (hasForms) return filled(asker, event, detail)
    return choices === undefined ? Effect.succeed(cannotAsk) : picked(asker, event, choices)
  }
  let detail = ""
  for (let tries = 0; tries < maxTries; tries++) {
    const given = yield* ask(detail)
    const refused = yield* replied(asker, questionId, given)
    if (refused === undefined) return
    detail = refused
  }
  const reason = `the answers of the user do not match the schema: ${detail}`
  yield* replied(asker, questionId, { declined: true, reason })
})

/** Gives an answer to the run, or that there is none. Succeeds with the fault of an answer that does not match the schema. */
const replied = ({ onward, peer, runId }: Asker, questionId: string, reply: Reply) =>
  Following.given(peer.runs, questionId, peer.runs.answer(runId, questionId, reply)).pipe(
    Effect.flatMap(onward),
    Effect.as(undefined),
    Effect.catchTag("AnswerInvalid", ({ detail = "It does not match." }) => Effect.succeed(detail)),
    // Another client answered, or the run ended meanwhile.
    Effect.orElseSucceed(() => undefined),
    Effect.uninterruptible
  )

type Reply = Payload.AnswerQuestion

const cannotAsk: Reply = { declined: true, reason: "the editor cannot put this question to the user" }
const noAnswer: Reply = { declined: true, reason: "the user gave no answer" }

/** Asks by a form. */
const filled = (
  { client, conversation }: Asker,
  event: OfTag<"QuestionAsked">,
  detail: string
): Effect.Effect<Reply> => {
  const { answerOf, requestedSchema } = AnswerForm.form(event.schema)
  const message = detail === "" ? event.question : `${event.question}\n\n${detail}`
  const { sessionId, state } = conversation
  const toolCallId = State.callIdOf(state, event)
  return Effect.tryPromise((signal) =>
    client.request(
      methods.client.elicitation.create,
      { mode: "form", sessionId, toolCallId, message, requestedSchema },
      { cancellationSignal: signal, stopWaitingOnCancel: true }
    )
  ).pipe(
    Effect.map(
      (response): Reply =>
        CreateElicitationResponse.isAccept(response) ? { answer: answerOf(response.content ?? {}) } : noAnswer
    ),
    Effect.tapCause((cause) => Effect.logDebug("The editor could not ask", cause)),
    Effect.orElseSucceed(() => cannotAsk)
  )
}

/** Asks by the options of a permission. */
const picked = (
  asker: Asker,
  event: OfTag<"QuestionAsked">,
  choices: ReadonlyArray<Schema.Json>
): Effect.Effect<Reply> => {
  const toolCallId = State.callIdOf(asker.conversation.state, event)
  const options: Array<PermissionOption> = [
    ...choices.map((choice, at) => ({
      optionId: `answer-${at}`,
      name: AnswerForm.wordOf(choice),
      kind: "allow_once" as const
    })),
    { optionId: "no", name: "No answer", kind: "reject_once" }
  ]
  return Effect.map(chosen(asker, { toolCallId, title: event.question }, options), (optionId) => {
    const answer = choices.find((_, at) => optionId === `answer-${at}`)
    return answer === undefined ? noAnswer : { answer }
  })
}
