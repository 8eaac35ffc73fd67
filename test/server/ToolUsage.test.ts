import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Tool, Usage } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { LogProgress } from "../../src/runs/internal/RunProgress.ts"
import { play, say } from "../behaviour/play.ts"

it.effect("a log that breaks off has the usage of the tools of its open turn", () =>
  Effect.gen(function* () {
    const usage = Usage.make({ input: 100, output: 20 })
    const { events } = yield* play(
      [
        ScriptedProvider.toolCall("ask", {}, { usage: { input: 10, output: 5 } }),
        ScriptedProvider.text("done", { usage: { input: 2, output: 1 } })
      ],
      { tools: [say("ask", Tool.output("It rains.", { usage }))] }
    )
    const spent = (count: number | undefined) => {
      const [run] = new LogProgress(events.slice(0, count)).runs.values()
      return [run?.spent.usage.total, run?.spent.childUsage?.total]
    }
    const ended = events.findIndex(({ _tag }) => _tag === "ToolExecutionEnd") + 1
    assert.deepStrictEqual(spent(ended - 1), [15, undefined])
    assert.deepStrictEqual(spent(ended), [135, 120])
    assert.deepStrictEqual(spent(undefined), [138, 120])
  })
)
