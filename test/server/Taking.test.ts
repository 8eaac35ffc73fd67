/** Runs of another process that this one takes in vain. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Scope } from "effect"
import { Agent, Approval } from "effect-agent"
import { Agents, RunLogStore, Runs } from "effect-agent/server"
import { ScriptedProvider } from "effect-agent/testing"
import * as LiveRuns from "../../src/runs/LiveRuns.ts"
import { disk as makeDisk, type Disk, Life, storesOf } from "./killing.ts"
import { gated } from "./runsContract.ts"

/** Leaves a run that has begun and one that waits. Their process is gone. */
const left = Effect.fnUntraced(function* (disk: Disk) {
  const { script, setup } = yield* gated
  const life = new Life(Infinity)
  const agents = Agents.layer(({ session }) => Agent.make({ model: "any", ...setup, session })).pipe(
    Layer.provide([ScriptedProvider.layer(script), Approval.layer({ rules: [], otherwise: "allow" })])
  )
  const layer = LiveRuns.layer({ flush: 0 }).pipe(Layer.provide([agents, storesOf(disk, life)]))
  const runs = yield* Effect.provide(Runs.Runs, yield* Layer.buildWithScope(layer, yield* Scope.make()))
  const sessionId = yield* runs.sessions.create({ sessionId: "s" })
  const { runId } = yield* runs.start({ sessionId, prompt: "one" })
  yield* runs.start({ sessionId, prompt: "two", when: "queue" })
  yield* life.end
  for (let index = 0; index < 50; index++) yield* Effect.yieldNow
  yield* life.bury
  return { runId, sessionId }
})

interface Faults {
  readonly make?: { readonly message: string }
  readonly begun?: RunLogStore.RunLogError
}

/** A host that takes runs. It counts the logs that are open. */
const taking = Effect.fnUntraced(function* (disk: Disk, faults: Faults) {
  const open = { count: 0 }
  const counted = Effect.acquireRelease(
    Effect.sync(() => void open.count++),
    () => Effect.sync(() => void open.count--)
  )
  const logs: RunLogStore.Service = {
    ...disk.logs,
    open: (run) => Effect.andThen(counted, disk.logs.open(run)),
    begun: (run) => (faults.begun === undefined ? disk.logs.begun(run) : Effect.fail(faults.begun))
  }
  const agents = Layer.succeed(Agents.Agents, {
    make: () => (faults.make === undefined ? Effect.never : Effect.fail(faults.make))
  })
  const context = yield* Layer.build(Layer.merge(agents, storesOf({ ...disk, logs }, new Life(Infinity))))
  const { host } = yield* Effect.provideContext(LiveRuns.make({ flush: 0, adopts: true }), context)
  return { host, open }
})

describe("a process that takes runs", () => {
  it.effect("closes their logs where the agent is refused", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      const run = yield* left(disk)
      const { host, open } = yield* taking(disk, { make: { message: "no such model" } })
      assert.strictEqual((yield* Effect.flip(host.adopt(run)))._tag, "MalformedRequest")
      assert.strictEqual(open.count, 0)
    }).pipe(Effect.scoped)
  )

  it.effect("closes their logs where a start cannot be counted", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      const run = yield* left(disk)
      const begun = new RunLogStore.RunLogError({ detail: "the disk is full" })
      const { host, open } = yield* taking(disk, { begun })
      assert.strictEqual((yield* Effect.flip(host.adopt(run)))._tag, "StorageUnavailable")
      assert.strictEqual(open.count, 0)
    }).pipe(Effect.scoped)
  )

  it.effect("closes their logs where the run is parked", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      const run = yield* left(disk)
      for (let count = 0; count < 6; count++) yield* disk.logs.begun(run)
      const { host, open } = yield* taking(disk, {})
      assert.strictEqual((yield* Effect.flip(host.adopt(run)))._tag, "RunNotReady")
      assert.strictEqual(open.count, 0)
    }).pipe(Effect.scoped)
  )
})
