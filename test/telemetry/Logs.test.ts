import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, Hook, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { record } from "./recorder.ts"

describe("logs", () => {
  it.effect("of a run have its id, and those of a tool call the id of the call too", () =>
    Effect.gen(function* () {
      const tool = Tool.make({
        name: "tool",
        description: "Logs.",
        execute: () => Effect.as(Effect.logInfo("tool"), "done")
      })
      const hooks = [
        Hook.beforeModel(() => Effect.logInfo("beforeModel")),
        Hook.approveTool(() => Effect.as(Effect.logInfo("approveTool"), { approved: true }))
      ]
      const script = [ScriptedProvider.toolCall("tool", {}, { id: "c1" }), ScriptedProvider.text("ok")]
      const { exit, logs } = yield* record(
        Effect.gen(function* () {
          const agent = yield* Agent.make({ model: "m", tools: [tool], hooks })
          yield* agent.subscribe((event) =>
            event._tag === "RunEnd" ? Effect.logInfo("RunEnd") : Effect.void
          )
          const { runId } = yield* agent.prompt("Hi")
          yield* Effect.logInfo("outside")
          return runId
        }).pipe(Effect.scoped, Effect.provide(ScriptedProvider.layer(script)))
      )
      const run = { "effect_agent.run.id": exit._tag === "Success" ? exit.value : "" }
      const call = { ...run, "gen_ai.tool.call.id": "c1" }
      assert.deepStrictEqual(
        logs.map(({ annotations, message }) => [String(message), annotations]),
        [
          ["beforeModel", run],
          ["approveTool", call],
          ["tool", call],
          ["beforeModel", run],
          ["RunEnd", run],
          ["outside", {}]
        ]
      )
    })
  )
})
