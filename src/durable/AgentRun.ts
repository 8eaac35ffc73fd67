/**
 * A run as a workflow, for applications that compose runs in workflows of their own.
 *
 * @since 0.2.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Activity from "effect/workflow/Activity"
import * as Workflow from "effect/workflow/Workflow"
import type { WorkflowEngine } from "effect/workflow/WorkflowEngine"
import * as Payload from "../api/Payload.ts"
import * as Problem from "../api/Problem.ts"
import * as Message from "../Message.ts"
import * as Runs from "../runs/Runs.ts"

const version = 1

/** The body is opaque to the engine: a payload that newer code cannot decode would fail the run for good before code of ours sees it. */
const Body = Schema.Struct({
  sessionId: Schema.String,
  prompt: Schema.Array(Message.Message),
  options: Schema.optionalKey(Payload.Options)
})

const Stored = Schema.fromJsonString(Schema.Struct({ v: Schema.Int, body: Schema.Json }))

/**
 * The errors of the workflow.
 *
 * @category schemas
 * @since 0.2.0
 */
export const Failure = Schema.Union([
  Problem.MalformedRequest,
  Problem.SessionNotFound,
  Problem.SessionLocked,
  Problem.RunNotFound,
  Problem.StorageUnavailable
])

/**
 * A workflow that runs a prompt in a session, and succeeds with the run when that is over, whatever its status.
 *
 * **Details**
 *
 * {@link payload} makes its payload. All payloads with one id stand for one run. While the session has another run, it waits. A run that waits for a
 * person is not over.
 *
 * **Gotchas**
 *
 * The interruption of the workflow does not cancel the run: cancel it with `Runs.cancel`.
 *
 * **Example** (A workflow of two runs)
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Workflow } from "effect/workflow"
 * import { AgentRun } from "effect-agent/durable"
 *
 * const Report = Workflow.make("Report", { payload: { city: Schema.String }, idempotencyKey: ({ city }) => city })
 *
 * export const report = Report.toLayer(({ city }) =>
 *   Effect.gen(function* () {
 *     for (const prompt of [`Research ${city}.`, "Write a report."]) {
 *       const id = `${city}: ${prompt}`
 *       yield* AgentRun.AgentRun.execute(yield* AgentRun.payload({ id, sessionId: city, prompt }))
 *     }
 *   }).pipe(Effect.orDie)
 * )
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const AgentRun = Workflow.make("AgentRun", {
  payload: { id: Schema.String, body: Schema.String },
  success: Payload.Run,
  error: Failure,
  idempotencyKey: ({ id }) => id
})

/**
 * The prompt of a workflow.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /** The id of the workflow. All workflows with one id stand for one run. */
  readonly id: string
  /** The session, which exists. */
  readonly sessionId: string
  /** The prompt. */
  readonly prompt: Message.Input
  /** The options of the run, which only narrow those of the workers. Default: those of the session. */
  readonly options?: Payload.Options
}

/**
 * Makes the payload of the workflow.
 *
 * **Details**
 *
 * Fails with `MalformedRequest` if the prompt or the options do not match their schemas.
 *
 * **Example** (A payload)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { AgentRun } from "effect-agent/durable"
 *
 * const payload = AgentRun.payload({ id: "report-1", sessionId: "oslo", prompt: "Do I need a coat?" })
 *
 * console.log((await Effect.runPromise(payload)).id) // => report-1
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const payload = ({
  id,
  prompt,
  ...others
}: Options): Effect.Effect<{ readonly id: string; readonly body: string }, Problem.MalformedRequest> =>
  Effect.gen(function* () {
    const messages = Message.fromInput(prompt)
    const body = yield* Schema.encodeEffect(Schema.toCodecJson(Body))({ ...others, prompt: messages })
    return { id, body: yield* Schema.encodeEffect(Stored)({ v: version, body }) }
  }).pipe(Effect.mapError(({ message }) => new Problem.MalformedRequest({ detail: message })))

const read = (text: string) =>
  Effect.gen(function* () {
    const { body, v } = yield* Schema.decodeEffect(Stored)(text)
    if (v !== version) return yield* unreadable(`it has the version ${v}`)
    return yield* Schema.decodeEffect(Schema.toCodecJson(Body))(body)
  }).pipe(Effect.catchTag("SchemaError", ({ message }) => unreadable(message)))

const unreadable = (reason: string) =>
  new Problem.MalformedRequest({ detail: `The payload of the workflow cannot be read: ${reason}.` })

/** Waits until a run is over, and no other one resumes it. */
const ended = Effect.fnUntraced(function* (runs: Runs.Service, firstId: string) {
  let runId = firstId
  while (true) {
    // Behind all positions: nothing is read but the end.
    const pages = yield* runs.watch(runId, Number.MAX_SAFE_INTEGER)
    if (pages !== undefined) yield* Stream.runDrain(pages)
    const run = yield* runs.get(runId)
    if (run.resumedBy !== undefined) runId = run.resumedBy
    else if (run.status === "suspended") yield* Effect.sleep("1 second")
    else return run
  }
})

/** The storage may be away for a while. */
const storage = { schedule: Schedule.spaced("2 seconds"), times: 300 }
const isStorage = (error: unknown) =>
  error instanceof Problem.StorageUnavailable || error instanceof Problem.Draining

/**
 * Provides the workflow to an engine, on the runs of the context.
 *
 * **Details**
 *
 * The engine of a cluster keeps messages in the database, so the cluster needs the option `workflows`.
 *
 * **Example** (A workflow and its run in one process, on SQLite)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { ClusterWorkflowEngine } from "effect/cluster"
 * import { Agent } from "effect-agent"
 * import { AgentRun, Cluster, DurableRuns } from "effect-agent/durable"
 * import { Agents, Runs, SqlRunLogStore } from "effect-agent/server"
 * import { SqlSessionStore } from "effect-agent/sessions"
 * import * as NodeSqlite from "effect-agent/node/NodeSqlite"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const agents = Agents.layer(({ session }) => Agent.make({ model: "any", session })).pipe(
 *   Layer.provide(ScriptedProvider.layer([ScriptedProvider.text("Yes.")]))
 * )
 * const stores = SqlRunLogStore.layer().pipe(
 *   Layer.provideMerge(SqlSessionStore.layer({ takeOver: true })),
 *   Layer.provideMerge(NodeSqlite.layer({ filename: ":memory:" }))
 * )
 * const runs = DurableRuns.layer().pipe(Layer.provideMerge(DurableRuns.worker()))
 * const workflows = AgentRun.layer.pipe(
 *   Layer.provideMerge(Layer.merge(ClusterWorkflowEngine.layer, runs)),
 *   Layer.provide([agents, Cluster.embedded({ workflows: true })]),
 *   Layer.provide(stores)
 * )
 *
 * const program = Effect.gen(function* () {
 *   const sessionId = yield* (yield* Runs.Runs).sessions.create({})
 *   const payload = yield* AgentRun.payload({ id: "coat", sessionId, prompt: "Do I need a coat?" })
 *   return (yield* AgentRun.AgentRun.execute(payload)).status
 * })
 *
 * console.log(await Effect.runPromise(Effect.provide(program, workflows))) // => completed
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer: Layer.Layer<never, never, WorkflowEngine | Runs.Runs> = Layer.unwrap(
  Effect.map(Runs.Runs, (runs) =>
    AgentRun.toLayer(
      Effect.fnUntraced(function* ({ body, id }) {
        const runId = yield* Activity.make({
          name: "start",
          success: Schema.String,
          error: Failure,
          execute: start(runs, id, body)
        })
        return yield* Effect.retry(ended(runs, runId), { ...storage, while: isStorage })
      })
    )
  )
)

const start = (runs: Runs.Service, id: string, text: string) =>
  Effect.gen(function* () {
    const { options, prompt, sessionId } = yield* read(text)
    const idempotency = { key: `workflow ${id}`, body: text }
    const begun = runs.start({
      sessionId,
      prompt,
      ...(options === undefined ? {} : { options }),
      when: "queue",
      idempotency
    })
    const { runId } = yield* Effect.retry(begun, { ...storage, while: isStorage })
    return runId
  }).pipe(
    Effect.catchTags({
      // The same id is the same run, also with another prompt.
      KeyReused: ({ runId }) =>
        runId === undefined ? unreadable("its key belongs to another request") : Effect.succeed(runId),
      RunGoesOn: ({ runId }) => unreadable(`the session has run ${runId}`),
      MessageNotFound: () => unreadable("it replaces no message"),
      MessageExists: ({ messageId }) => unreadable(`the session has message ${messageId}`),
      Draining: ({ message }) => new Problem.StorageUnavailable({ detail: message })
    })
  )
