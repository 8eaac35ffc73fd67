/**
 * The entity of a session: the requests that the cluster brings to the worker that has the session.
 *
 * Those that change a run are stored before they are acknowledged, and the worker that takes a session over gets those without an answer
 * again. Their bodies are JSON with a version, so that a worker of another version can refuse them, and people can read them.
 */
import * as ClusterSchema from "effect/cluster/ClusterSchema"
import * as Entity from "effect/cluster/Entity"
import * as Rpc from "effect/rpc/Rpc"
import * as Schema from "effect/Schema"
import * as Payload from "../../api/Payload.ts"
import * as Problem from "../../api/Problem.ts"

/** The version of the bodies. */
export const version = 1

const body = { v: Schema.Int, body: Schema.Json }

const toRun = [Problem.RunNotFound, Problem.RunOver, Problem.RunNotReady, Problem.StorageUnavailable] as const
const toOpen = [Problem.SessionNotFound, Problem.SessionLocked, Problem.StorageUnavailable] as const
const toMake = [Problem.InvalidRequest, Problem.Draining, Problem.StorageUnavailable] as const
const toAnswer = [
  Problem.RunNotFound,
  Problem.RunNotReady,
  Problem.RequestNotFound,
  Problem.AnswerConflict,
  Problem.AnswerInvalid,
  Problem.SessionLocked,
  Problem.Draining,
  Problem.StorageUnavailable
] as const

/** A request that is stored. Its caller may leave: the request stays. */
const stored = <Tag extends string, Success extends Schema.Top, Error extends Schema.Top>(
  tag: Tag,
  { error, success }: { readonly success: Success; readonly error: Error }
) =>
  Rpc.make(tag, {
    payload: { ...body, id: Schema.String },
    primaryKey: ({ id }) => id,
    success,
    error
  })
    .annotate(ClusterSchema.Persisted, true)
    .annotate(ClusterSchema.Uninterruptible, "client")

const Message = { success: Schema.Void, error: Schema.Union([Problem.InvalidRequest, ...toRun]) }
const Control = { success: Schema.Void, error: Schema.Union(toRun) }

/** An entry of a log, with its frame of server-sent events. */
export const Entry = Schema.Struct({
  position: Schema.Int,
  tag: Schema.String,
  frame: Schema.String
})

export const SessionEntity = Entity.make("AgentSession", [
  stored("Start", {
    success: Schema.Union([Payload.Started, Payload.Joined]),
    error: Schema.Union([
      Problem.RunGoesOn,
      Problem.MessageNotFound,
      Problem.MessageExists,
      Problem.KeyReused,
      Problem.InvalidRequest,
      Problem.Draining,
      ...toOpen
    ])
  }),
  stored("Steer", Message),
  stored("FollowUp", Message),
  stored("Pause", Control),
  stored("Resume", Control),
  stored("Cancel", Control),
  stored("Approve", { success: Payload.Decided, error: Schema.Union(toAnswer) }),
  stored("Answer", { success: Payload.Answered, error: Schema.Union(toAnswer) }),
  // Answered when the run is over. A worker that ends leaves it without an answer: the next one gets it.
  Rpc.make("Drive", { payload: { id: Schema.String, runId: Schema.String }, primaryKey: ({ id }) => id })
    .annotate(ClusterSchema.Persisted, true)
    .annotate(ClusterSchema.InterruptOnTermination, true),
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
