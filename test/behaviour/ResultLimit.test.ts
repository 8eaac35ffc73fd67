import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { Agent, Hook, Message, Tool, ToolRegistry } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import * as Invariants from "./invariants.ts"
import { ofTag, outcomes, play, resultTexts, say, tags, toolResults } from "./play.ts"

const done = ScriptedProvider.text("done")
const stored = { artifactId: "a1", bytes: 99, mediaType: "text/plain" }
const cutTo = (text: string, store: ToolRegistry.Cut["store"]): ToolRegistry.Cut => ({
  unstored: Tool.output("lost"),
  store: Effect.map(store, () => ({ output: Tool.output(text), stored }))
})
const limit = (of: typeof ToolRegistry.ResultLimit.Service) => Layer.succeed(ToolRegistry.ResultLimit, of)
const fine: ToolRegistry.Cut["store"] = Effect.succeed({ output: Tool.output(""), stored })

describe("ResultLimit", () => {
  it.effect("the event follows the store, and the end of the call follows the event", () =>
    Effect.gen(function* () {
      const calls: Array<ToolRegistry.LimitedCall> = []
      const { events, requests } = yield* play([ScriptedProvider.toolCall("big", {}), done], {
        tools: [say("big", "x".repeat(99))],
        layer: limit((call, output) => {
          calls.push(call)
          return Message.textOf(output).length > 10 ? cutTo("xx…", fine) : undefined
        })
      })
      assert.deepStrictEqual(Invariants.broken(events), [])
      const [end] = ofTag(events, "ToolExecutionEnd")
      const [kept] = ofTag(events, "ArtifactStored")
      assert.deepInclude(kept, { ...stored, toolCallId: end?.toolCallId ?? "" })
      assert.deepStrictEqual(
        tags(events).filter((tag) => tag.startsWith("Tool") || tag === "ArtifactStored"),
        ["ToolsDetected", "ToolExecutionStart", "ToolInvoked", "ArtifactStored", "ToolExecutionEnd"]
      )
      assert.deepStrictEqual(end?.result, { content: [Message.text("xx…")] })
      assert.deepStrictEqual(resultTexts(requests[1]?.messages), ["xx…"])
      assert.deepStrictEqual(
        calls.map(({ toolName }) => toolName),
        ["big"]
      )
    })
  )

  it.effect("it sees results after the hooks, and those of refused calls", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const calls = [
        { name: "big", params: {} },
        { name: "none", params: {} }
      ]
      yield* play([ScriptedProvider.toolCalls(...calls), done], {
        tools: [say("big")],
        hooks: [Hook.afterTool(() => Effect.succeed({ content: [Message.text("changed")] }))],
        layer: limit((_, output) => {
          seen.push(Message.textOf(output))
          return undefined
        })
      })
      assert.deepStrictEqual(seen.toSorted(), ['Tool "none" not found. Tools: big.', "changed"])
    })
  )

  it.effect("a store that fails or dies costs the whole text, never the run", () =>
    Effect.gen(function* () {
      for (const store of [Effect.fail("disk full"), Effect.die("broken")]) {
        const { events, view } = yield* play([ScriptedProvider.toolCall("big", {}), done], {
          tools: [say("big")],
          layer: limit(() => cutTo("cut", store))
        })
        assert.deepStrictEqual(Invariants.broken(events), [])
        assert.deepStrictEqual(ofTag(events, "ArtifactStored"), [])
        assert.deepStrictEqual(outcomes(events), ["success"])
        assert.deepStrictEqual(resultTexts(view.messages), ["lost"])
      }
    })
  )

  it.effect("a cancel does not wait for the store", () =>
    Effect.gen(function* () {
      const storing = yield* Deferred.make<void>()
      const provider = yield* ScriptedProvider.make([ScriptedProvider.toolCall("big", {}), done])
      const agent = yield* Agent.make({ model: "m", tools: [say("big")] }).pipe(
        Effect.provide([
          provider.layer,
          limit(() => cutTo("cut", Effect.andThen(Deferred.succeed(storing, undefined), Effect.never)))
        ])
      )
      const fiber = yield* Effect.forkChild(agent.prompt("hi"))
      yield* Deferred.await(storing)
      yield* agent.cancel()
      const { newMessages, status } = yield* Fiber.join(fiber)
      assert.strictEqual(status, "cancelled")
      assert.deepStrictEqual(resultTexts(newMessages), ["lost"])
    })
  )

  it.effect("without one, a block has at most 1,000,000 characters", () =>
    Effect.gen(function* () {
      const { view } = yield* play([ScriptedProvider.toolCall("big", {}), done], {
        tools: [say("big", "x".repeat(1_000_001))]
      })
      const [result] = toolResults(view.messages)
      assert.match(
        result === undefined ? "" : Message.textOf(result),
        /x\n\[cut: 1000001 characters in all\]$/
      )
    })
  )
})
