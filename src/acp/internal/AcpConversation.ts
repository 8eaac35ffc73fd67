/**
 * A session that a client has open, and the prompts that have no answer yet.
 */
import {
  type AgentContext,
  type ClientCapabilities,
  type SessionUpdate,
  methods,
  type PermissionOption,
  type ToolCallUpdate,
  CreateElicitationResponse,
  type ElicitationPropertySchema,
  type ElicitationSchema
} from "@agentclientprotocol/sdk"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type { Service as Runs } from "../../runs/Runs.ts"
import * as UpdateStep from "./UpdateStep.ts"
import * as UpdateState from "./UpdateState.ts"
import type { OfTag } from "../../AgentEvent.ts"
import type * as Payload from "../../api/Payload.ts"
import * as Following from "../../runs/Following.ts"

/**
 * The calls that the answer "always" permits.
 *
 * **Details**
 *
 * It permits those with an equal `key`, and `words` names them in the request.
 *
 * @category options
 * @since 0.2.0
 */
export type ToolScope = (
  toolName: string,
  params: Schema.Json
) => { readonly key: string; readonly words: string }

/** The client, and what its sessions need. */
export interface Peer {
  readonly runs: Runs
  /** The capabilities, which the client says first. */
  readonly capabilities: ClientCapabilities
  readonly scopeOf: ToolScope
  readonly view:
    | ((toolName: string, params: unknown, cwd: string | undefined) => UpdateState.View)
    | undefined
}

/** A prompt without its answer. */
export class Turn {
  /** Done when the client cancels. */
  readonly cancelled = Deferred.makeUnsafe<void>()
  /** The run, once it has an id. */
  runId: string | undefined
}

export class Conversation {
  readonly sessionId: string
  readonly turns = new Set<Turn>()
  state: UpdateState.State
  private readonly peer: Peer
  private readonly rules = new Map<string, Deferred.Deferred<void>>()

  constructor(sessionId: string, cwd: string, peer: Peer) {
    const { capabilities, view } = peer
    this.sessionId = sessionId
    this.peer = peer
    this.state = UpdateState.initial({
      cwd,
      notices: isGiven(capabilities.session?.notices),
      compaction: isGiven(capabilities.session?.compaction),
      ...(view === undefined ? {} : { view })
    })
  }

  /** The rule that allows the calls of a scope. It is done once the person has said so. */
  rule(key: string): Deferred.Deferred<void> {
    const rule = this.rules.get(key) ?? Deferred.makeUnsafe<void>()
    this.rules.set(key, rule)
    return rule
  }

  /** Sends updates, in their order. Those to a client that has left are lost. */
  tell(client: AgentContext, updates: ReadonlyArray<SessionUpdate>): Effect.Effect<void> {
    const { sessionId } = this
    return Effect.forEach(
      UpdateStep.joined(updates),
      (update) =>
        Effect.ignore(
          Effect.tryPromise(() => client.notify(methods.client.session.update, { sessionId, update }))
        ),
      { discard: true }
    )
  }

  /** Cancels the runs of all prompts. */
  readonly cancel: Effect.Effect<void> = Effect.suspend(() =>
    Effect.forEach(
      this.turns,
      ({ cancelled, runId }) =>
        Effect.andThen(
          Deferred.succeed(cancelled, undefined),
          runId === undefined
            ? Effect.void
            : Effect.ignore(this.peer.runs.cancel(runId, "the editor cancelled the prompt"))
        ),
      { discard: true }
    )
  )
}

const isGiven = (capability: unknown): boolean => capability !== undefined && capability !== null

// ───────────────────────── Requests to the person

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
    chosen(asker, UpdateStep.requestedCall(conversation.state, event), permissions(scope.words))
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
  const choices = choicesOf(schema)
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
    Effect.catchTag("InvalidAnswer", ({ detail = "It does not match." }) => Effect.succeed(detail)),
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
  const { answerOf, requestedSchema } = form(event.schema)
  const message = detail === "" ? event.question : `${event.question}\n\n${detail}`
  const { sessionId, state } = conversation
  const toolCallId = UpdateState.callIdOf(state, event)
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
  const toolCallId = UpdateState.callIdOf(asker.conversation.state, event)
  const options: Array<PermissionOption> = [
    ...choices.map((choice, at) => ({
      optionId: `answer-${at}`,
      name: wordOf(choice),
      kind: "allow_once" as const
    })),
    { optionId: "no", name: "No answer", kind: "reject_once" }
  ]
  return Effect.map(chosen(asker, { toolCallId, title: event.question }, options), (optionId) => {
    const answer = choices.find((_, at) => optionId === `answer-${at}`)
    return answer === undefined ? noAnswer : { answer }
  })
}

// ───────────────────────── The form of an answer

/** A form, and the answer that its content is. */
interface Form {
  readonly requestedSchema: ElicitationSchema
  readonly answerOf: (content: Readonly<Record<string, Schema.Json>>) => Schema.Json
}

/** Most options of a question without a form. */
const maxChoices = 10

/** The answers to choose from, `undefined` for a question with another answer. */
const choicesOf = (schema: Schema.Json): ReadonlyArray<Schema.Json> | undefined => {
  if (textIn(schema, "type") === "boolean") return [true, false]
  const all = valuesOf(schema)
  return all.length === 0 || all.length > maxChoices ? undefined : all
}

/** The form of a question. An answer for which ACP has no field is JSON in a field of text. */
const form = (schema: Schema.Json): Form => {
  const properties = fieldsOf(schema)
  if (properties !== undefined) {
    const required = Predicate.hasProperty(schema, "required") ? schema.required : undefined
    return {
      requestedSchema: {
        type: "object",
        properties,
        ...(Array.isArray(required) ? { required: required.filter(Predicate.isString) } : {})
      },
      answerOf: (content) => ({ ...content })
    }
  }
  const field = fieldOf(schema)
  const property: ElicitationPropertySchema = field ?? { type: "string", description: "The answer, as JSON" }
  const isText = field !== undefined && textIn(schema, "type") === "string" && valuesOf(schema).length === 0
  const isWritten = property.type === "string" && !isText
  return {
    requestedSchema: { type: "object", properties: { answer: property }, required: ["answer"] },
    answerOf: ({ answer = null }) => (isWritten ? written(answer, valuesOf(schema)) : answer)
  }
}

/** The value that a text stands for: one of the values, or JSON. */
const written = (answer: Schema.Json, values: ReadonlyArray<Schema.Json>): Schema.Json => {
  const value = values.find((value) => wordOf(value) === answer)
  if (value !== undefined) return value
  return Option.getOrElse(decodeJson(answer), () => answer)
}

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))

/** A value as a person reads it. */
const wordOf = (value: Schema.Json): string => (typeof value === "string" ? value : JSON.stringify(value))

/** The fields of an object whose members are all simple. */
const fieldsOf = (schema: Schema.Json): Record<string, ElicitationPropertySchema> | undefined => {
  const members: unknown = Predicate.hasProperty(schema, "properties") ? schema.properties : undefined
  if (!Predicate.isObject(members)) return undefined
  const entries = Object.entries(members).map(([name, member]) => [name, plainFieldOf(member)] as const)
  if (entries.length === 0) return undefined
  const fields: Record<string, ElicitationPropertySchema> = {}
  for (const [name, field] of entries) {
    if (field === undefined) return undefined
    fields[name] = field
  }
  return fields
}

/** A field whose content is the answer as it is. */
const plainFieldOf = (schema: unknown): ElicitationPropertySchema | undefined =>
  valuesOf(schema).every(Predicate.isString) ? fieldOf(schema) : undefined

const fieldOf = (schema: unknown): ElicitationPropertySchema | undefined => {
  const values = valuesOf(schema)
  const words = ["title", "description"].flatMap((key) => {
    const text = textIn(schema, key)
    return text === undefined ? [] : [[key, text] as const]
  })
  const described: { readonly title?: string; readonly description?: string } = Object.fromEntries(words)
  if (values.length > 0) return { type: "string", enum: values.map(wordOf), ...described }
  switch (textIn(schema, "type")) {
    case "string":
      return { type: "string", ...described }
    case "number":
      return { type: "number", ...described }
    case "integer":
      return { type: "integer", ...described }
    case "boolean":
      return { type: "boolean", ...described }
    default:
      return undefined
  }
}

const valuesOf = (schema: unknown): ReadonlyArray<Schema.Json> =>
  Predicate.hasProperty(schema, "enum") && isValues(schema.enum) ? schema.enum : []

const isValues = Schema.is(Schema.Array(Schema.Json))

const textIn = (schema: unknown, name: string): string | undefined =>
  Predicate.hasProperty(schema, name) && typeof schema[name] === "string" ? schema[name] : undefined
