/**
 * A run that its process did not survive: a call of `look` has ended, one of `put` has begun, and one of `deploy` waits for an approval.
 * Another run is queued behind it.
 */
import { Context, Effect, Latch, Layer, Schema, Scope, Stream } from "effect"
import { Agent, Approval, Message, Tool } from "effect-agent"
import { Agents, LiveRuns, Runs } from "effect-agent/server"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { type Disk, Life, storesOf } from "./killing.ts"

export interface Version {
  /** The schema of the params of the tools. Default: `n` is a number. */
  readonly params?: Tool.ParamsSchema<{ readonly n?: unknown }>
  /** The tools that this version has. Default: all. */
  readonly tools?: ReadonlyArray<string>
}

/** The keys of the calls that ran. */
export type Ran = Array<readonly [tool: string, key: string]>

const turn: ScriptedProvider.Script[number] = ({ messages }) =>
  messages.some(({ role }) => role === "toolResult")
    ? ScriptedProvider.text("Over.")
    : ScriptedProvider.turn(
        ...["look", "put", "deploy"].map((name) => Step.toolCall(name, { n: 1 }, { id: `call_${name}` })),
        Step.finish("toolUse")
      )

/** A process of a version, until `use` has ended: then nothing of it is written any more. */
export const process = Effect.fnUntraced(function* <A, E>(
  disk: Disk,
  { params = Schema.Struct({ n: Schema.Number }), tools = ["look", "put", "deploy"] }: Version,
  use: (runs: Runs.Service, ran: Ran, begun: Effect.Effect<void>) => Effect.Effect<A, E>,
  returns = true
) {
  const begun = yield* Latch.make()
  const ran: Ran = []
  const made = (["pure", "idempotent", "once"] as const).map((effect, at) => {
    const name = ["look", "put", "deploy"][at] ?? ""
    const execute = () =>
      Effect.gen(function* () {
        ran.push([name, (yield* Tool.ToolContext).idempotencyKey])
        if (name === "look" || returns) return `${name} done`
        yield* begun.open
        return yield* Effect.never
      })
    return Tool.make({ name, description: name, effect, params, execute })
  })
  const agents = Agents.layer(({ session }) =>
    Agent.make({ model: "any", tools: made.filter(({ name }) => tools.includes(name)), session })
  ).pipe(
    Layer.provide([
      ScriptedProvider.layer(Array.from({ length: 9 }, () => turn)),
      Approval.layer({ rules: [Approval.ask("deploy")], otherwise: "allow", asked: "wait" })
    ])
  )
  const life = new Life(Infinity)
  const layer = LiveRuns.layer({ flush: 0 }).pipe(Layer.provide([agents, storesOf(disk, life)]))
  const context = yield* Layer.buildWithScope(layer, yield* Scope.make())
  const value = yield* use(Context.get(context, Runs.Runs), ran, begun.await)
  yield* life.end
  for (let index = 0; index < 50; index++) yield* Effect.yieldNow
  yield* life.bury
  return value
})

/** Begins the runs, and kills their process. Succeeds with their ids. */
export const begun = (disk: Disk) =>
  process(
    disk,
    {},
    (runs, _ran, begun) =>
      Effect.gen(function* () {
        const sessionId = yield* runs.sessions.create({ sessionId: "s" })
        const idempotency = { key: "k", body: { prompt: "Go" } }
        const { runId } = yield* runs.start({ sessionId, prompt: "Go", idempotency })
        const events = yield* runs.events(runId, 0)
        yield* Stream.runDrain(Stream.takeUntil(events, ({ event }) => event._tag === "ToolExecutionEnd"))
        yield* begun
        const asked = yield* runs.events(runId, 0)
        yield* Stream.runDrain(Stream.takeUntil(asked, ({ event }) => event._tag === "ApprovalRequested"))
        const queued = yield* runs.start({ sessionId, prompt: "Later", when: "queue" })
        return [runId, queued.runId] as const
      }),
    false
  )

/** Approves what waits, and succeeds with the results of the tools and the status of the run. */
export const over = Effect.fnUntraced(function* (runs: Runs.Service, runId: string) {
  const events = yield* runs.events(runId, 0)
  const all = yield* Stream.runCollect(
    Stream.tap(events, ({ event }) =>
      event._tag === "ApprovalRequested"
        ? Effect.ignore(
            runs.approve(runId, event.approvalId, {
              decision: "approve",
              argumentsHash: event.argumentsHash
            })
          )
        : Effect.void
    )
  )
  const results = all.flatMap(({ event }) =>
    event._tag === "MessageEnd" && event.message.role === "toolResult"
      ? [[event.message.toolName, event.message.outcome, Message.textOf(event.message)] as const]
      : []
  )
  return { results, status: (yield* runs.get(runId)).status }
})
