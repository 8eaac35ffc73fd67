/** A message that waits behind a run that ends suspended. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { Message, Tool } from "effect-agent"
import { Runs } from "effect-agent/server"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { eventsOf, layer, waiting } from "./host.ts"
import { session } from "./runsContract.ts"

const deploy = Tool.make({ name: "deploy", description: "x", execute: () => Effect.succeed("deployed") })

const usersOf = (events: ReadonlyArray<Runs.Positioned>) =>
  events.flatMap(({ event }) =>
    event._tag === "MessageEnd" && event.message.role === "user" ? [Message.textOf(event.message)] : []
  )

describe("a message behind a run that ends suspended", () => {
  for (const when of ["steer", "followUp"] as const) {
    it.effect(`waits for the run that continues: ${when}`, () =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const calls = { count: 0 }
        const first: ScriptedProvider.Script[number] = () => {
          calls.count++
          return ScriptedProvider.turn(
            Step.toolCall("wait", {}),
            Step.toolCall("deploy", {}),
            Step.finish("toolUse")
          )
        }
        const other: ScriptedProvider.Script[number] = () => {
          calls.count++
          return ScriptedProvider.text("done")
        }
        yield* Effect.gen(function* () {
          const runs = yield* Runs.Runs
          const sessionId = yield* session
          const { runId } = yield* runs.start({ sessionId, prompt: "Go" })
          const joined = yield* runs.start({ sessionId, prompt: "By the way.", when })
          assert.deepStrictEqual(joined, { runId, status: "joined" })
          yield* Deferred.succeed(gate, undefined)
          assert.deepStrictEqual(usersOf(yield* eventsOf(runId)), ["Go"])
          for (let index = 0; index < 200; index++) yield* Effect.yieldNow
          const run = yield* runs.get(runId)
          assert.deepStrictEqual([run.status, run.resumedBy], ["suspended", undefined])
          assert.isUndefined(yield* runs.active(sessionId))
          assert.strictEqual(calls.count, 1)
          const [request] = run.pending.approvals
          const { approvalId = "", argumentsHash = "" } = request ?? {}
          const next = yield* runs.approve(runId, approvalId, { decision: "approve", argumentsHash })
          assert.deepStrictEqual(usersOf(yield* eventsOf(next.runId)), ["By the way."])
          assert.strictEqual((yield* runs.get(next.runId)).status, "completed")
        }).pipe(
          Effect.provide(
            layer([first, other, other, other], {
              tools: [waiting("wait", Deferred.await(gate)), deploy],
              needsApproval: ["deploy"],
              asked: "defer"
            })
          )
        )
      })
    )
  }
})
