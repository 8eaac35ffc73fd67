/**
 * The entity of a session: the requests that the cluster brings to the worker that has the session.
 *
 * The cluster stores none of them. A worker acknowledges a request when its effect is stored, and a process whose request got no reply sends
 * it again: each has a key, by which it has its effect once. Their bodies are JSON with a version, so that a worker of another version can
 * refuse them.
 */
import * as ClusterSchema from "effect/cluster/ClusterSchema"
import * as Entity from "effect/cluster/Entity"
import * as Rpc from "effect/rpc/Rpc"
import * as Schema from "effect/Schema"
import * as Payload from "../../api/Payload.ts"
import * as Problem from "../../api/Problem.ts"
import * as Effect from "effect/Effect"
import * as Message from "../../Message.ts"

/** The version of the bodies. */
export const version = 1

const body = { v: Schema.Int, body: Schema.Json }

const toRun = [Problem.RunNotFound, Problem.RunOver, Problem.RunNotReady, Problem.StorageUnavailable] as const
const toOpen = [Problem.SessionNotFound, Problem.SessionLocked, Problem.StorageUnavailable] as const
const toMake = [Problem.MalformedRequest, Problem.Draining, Problem.StorageUnavailable] as const
const toAnswer = [...Problem.unanswered, Problem.StorageUnavailable] as const

/** A request that changes a run. Its caller may leave: the worker does it to its end. */
const change = <Tag extends string, Success extends Schema.Top, Error extends Schema.Top>(
  tag: Tag,
  { error, success }: { readonly success: Success; readonly error: Error }
) => Rpc.make(tag, { payload: body, success, error }).annotate(ClusterSchema.Uninterruptible, "client")

const message = { success: Schema.Void, error: Schema.Union([Problem.MalformedRequest, ...toRun]) }
const control = { success: Schema.Void, error: Schema.Union(toRun) }

/** An entry of a log, with its frame of server-sent events. */
export const Entry = Schema.Struct({
  position: Schema.Int,
  tag: Schema.String,
  frame: Schema.String
})

export const SessionEntity = Entity.make("AgentSession", [
  change("Start", {
    success: Schema.Union([Payload.Started, Payload.Joined]),
    error: Schema.Union([
      Problem.RunGoesOn,
      Problem.MessageNotFound,
      Problem.MessageExists,
      Problem.KeyReused,
      Problem.MalformedRequest,
      Problem.Draining,
      ...toOpen
    ])
  }),
  change("Steer", message),
  change("FollowUp", message),
  change("Pause", control),
  change("Resume", control),
  change("Cancel", control),
  change("Approve", { success: Payload.Decided, error: Schema.Union(toAnswer) }),
  change("Answer", { success: Payload.Answered, error: Schema.Union(toAnswer) }),
  // Answered when no run of the session is left that works. The worker asks itself: an entity with a request stays alive.
  Rpc.make("Drive").annotate(ClusterSchema.InterruptOnTermination, true),
  Rpc.make("Watch", {
    payload: { runId: Schema.String, after: Schema.Int, partials: Schema.optionalKey(Schema.Boolean) },
    success: Schema.Array(Entry),
    stream: true
  }).annotate(ClusterSchema.InterruptOnTermination, true),
  Rpc.make("Create", {
    payload: body,
    success: Schema.String,
    error: Schema.Union([Problem.SessionExists, ...toMake])
  }),
  Rpc.make("Fork", {
    payload: body,
    success: Schema.String,
    error: Schema.Union([Problem.SessionNotFound, ...toMake])
  }),
  Rpc.make("Update", {
    payload: body,
    error: Schema.Union([Problem.RunGoesOn, Problem.SessionNotFound, Problem.SessionLocked, ...toMake])
  }),
  Rpc.make("Remove", { error: Schema.Union([Problem.RunGoesOn, ...toOpen]) })
])

// ───────────────────────── The bodies of the requests

const run = { runId: Schema.String }
const Messages = Schema.Array(Message.Message)

export const Start = Schema.Struct({
  prompt: Messages,
  options: Schema.optionalKey(Payload.Options),
  when: Schema.optionalKey(Payload.When),
  replaces: Schema.optionalKey(Schema.String),
  trace: Schema.optionalKey(Schema.String),
  idempotency: Schema.Struct({ key: Schema.String, body: Schema.Json })
})

export const Send = Schema.Struct({
  ...run,
  messages: Messages,
  interrupt: Schema.optionalKey(Schema.Boolean)
})

export const Control = Schema.Struct({ ...run, reason: Schema.optionalKey(Schema.String) })

export const Approve = Schema.Struct({ ...run, approvalId: Schema.String, answer: Payload.AnswerApproval })

export const Answer = Schema.Struct({ ...run, questionId: Schema.String, answer: Payload.AnswerQuestion })

export const Create = Schema.Struct({
  ...Payload.CreateSession.fields,
  cwd: Schema.optionalKey(Schema.String)
})

export const Fork = Payload.ForkSession

export const Update = Payload.UpdateSession

/** A body as processes send it. */
export interface Sent {
  readonly v: number
  readonly body: Schema.Json
}

/** A schema without services. */
type Body<A> = Schema.Codec<A, unknown>

/** Encodes a body. Fails for one that the schema refuses. */
export const encode = <A>(schema: Body<A>, value: A): Effect.Effect<Sent, Problem.MalformedRequest> =>
  Effect.mapBoth(Schema.encodeEffect(Schema.toCodecJson(schema))(value), {
    onFailure: ({ message }) => new Problem.MalformedRequest({ detail: message }),
    onSuccess: (body) => ({ v: version, body })
  })

/** Encodes a body that the API has checked. */
export const encoded = <A>(schema: Body<A>, value: A): Effect.Effect<Sent> =>
  Effect.orDie(encode(schema, value))

/** Decodes a body. One of another version fails, and stays as it was stored. */
export const decode = <A>(
  schema: Body<A>,
  { body, v }: Sent
): Effect.Effect<A, Problem.StorageUnavailable> =>
  v === version
    ? Effect.mapError(Schema.decodeEffect(Schema.toCodecJson(schema))(body), ({ message }) =>
        unreadable(message)
      )
    : unreadable(`it has the version ${v}, and this worker reads version ${version}`)

const unreadable = (reason: string) =>
  new Problem.StorageUnavailable({ detail: `The worker cannot read the request: ${reason}.` })
