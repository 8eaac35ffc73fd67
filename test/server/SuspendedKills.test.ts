/** A run that is suspended, whose process ends at each of its writes. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Schema, Scope, Stream } from "effect"
import { Agent, Approval, Tool } from "effect-agent"
import { Agents, Runs } from "effect-agent/server"
import { ScriptedProvider } from "effect-agent/testing"
import { disk as makeDisk, type Disk, Life, processOf, World } from "./killing.ts"

const turn: ScriptedProvider.Script[number] = ({ messages }) =>
  messages.some(({ role }) => role === "toolResult")
    ? ScriptedProvider.text("Over.")
    : ScriptedProvider.toolCall("deploy", { n: 1 })

/** A tool whose approval no run waits for. */
const agents = () => {
  const deploy = Tool.make({
    name: "deploy",
    description: "deploy",
    params: Schema.Struct({ n: Schema.Number }),
    execute: () => Effect.succeed("deployed")
  })
  return Agents.layer(({ session }) => Agent.make({ model: "any", tools: [deploy], session })).pipe(
    Layer.provide([
      ScriptedProvider.layer(Array.from({ length: 9 }, () => turn)),
      Approval.layer({ rules: [Approval.ask("deploy")], otherwise: "allow", asked: "defer" })
    ])
  )
}

/** A process that starts the run, and uses it once it has ended. Returns whether the process was killed before. */
const process = Effect.fnUntraced(function* <A>(
  disk: Disk,
  last: number,
  use: (runs: Runs.Service, runId: string) => Effect.Effect<A, unknown>
) {
  const life = new Life(last)
  const scope = yield* Scope.make()
  const work = Effect.gen(function* () {
    const context = yield* Layer.buildWithScope(processOf(new World(agents), disk, life), scope)
    const runs = yield* Effect.provide(Runs.Runs, context)
    if ((yield* Effect.result(runs.list("s")))._tag === "Failure")
      yield* runs.sessions.create({ sessionId: "s" })
    const { runId } = yield* runs.start({
      sessionId: "s",
      prompt: "Go",
      idempotency: { key: "k", body: null }
    })
    yield* Stream.runDrain(yield* runs.events(runId, 0))
    return yield* use(runs, runId)
  })
  const died = Effect.as(Deferred.await(life.over), undefined)
  // A write that is not done cannot be interrupted.
  const fiber = yield* Effect.forkDetach(work)
  const used = yield* Effect.raceFirst(Fiber.join(fiber), died)
  yield* life.end
  for (let index = 0; index < 50; index++) yield* Effect.yieldNow
  yield* life.bury
  return { used, writes: life.writes }
})

describe("a run that is suspended", () => {
  it.effect("keeps its request at whatever write its process ends", () =>
    Effect.gen(function* () {
      const { writes } = yield* process(yield* makeDisk, Infinity, () => Effect.void)
      assert.isAbove(writes, 5)
      for (let kill = 1; kill <= writes; kill++) {
        const disk = yield* makeDisk
        yield* process(disk, kill, () => Effect.void)
        const { used } = yield* process(disk, Infinity, (runs, runId) =>
          Effect.gen(function* () {
            const { pending, status } = yield* runs.get(runId)
            const [request] = pending.approvals
            const events = yield* Stream.runCollect(yield* runs.events(runId, 0))
            assert.deepInclude(events.at(-1)?.event, {
              _tag: "RunEnd",
              status: "suspended",
              resume: { sessionId: "s", runId }
            })
            const seen = [
              status,
              request?.toolName,
              events.filter(({ event }) => event._tag === "ToolExecutionEnd").length
            ]
            if (request === undefined) return seen
            const { approvalId, argumentsHash } = request
            const next = yield* runs.approve(runId, approvalId, { decision: "approve", argumentsHash })
            yield* Stream.runDrain(yield* runs.events(next.runId, 0))
            return [...seen, (yield* runs.get(next.runId)).status]
          })
        )
        assert.deepStrictEqual(used, ["suspended", "deploy", 0, "completed"], `killed at write ${kill}`)
      }
    })
  )
})
