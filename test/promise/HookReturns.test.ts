import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Message, Tool } from "effect-agent"
import { createAgent, type HookFunctions } from "effect-agent/promise"
import { ScriptedProvider } from "effect-agent/testing"

const echo = Tool.fromJsonSchema({
  name: "echo",
  description: "Repeats.",
  parameters: { type: "object", properties: { text: { type: "string" } } },
  execute: (params) => Effect.succeed(JSON.stringify(params))
})

/** The result of the call. */
const resultWith = async (hooks: HookFunctions) => {
  await using agent = createAgent({
    provider: ScriptedProvider.layer([
      ScriptedProvider.toolCall("echo", { text: "a" }),
      ScriptedProvider.text("done")
    ]),
    model: "m",
    tools: [echo],
    hooks
  })
  const { newMessages } = await agent.prompt("Hi")
  const result = newMessages.find(({ role }) => role === "toolResult")
  return result?.role === "toolResult" ? [result.outcome, Message.textOf(result)] : []
}

describe("hooks under oneringai's names return as there", () => {
  it("before:tool skips a call with a result, and changes its arguments (row 115)", async () => {
    const skipping: HookFunctions = {
      "before:tool": async () => ({ skip: true, mockResult: { degrees: 4 }, reason: "test" })
    }
    assert.deepStrictEqual(await resultWith(skipping), ["skipped", '{"degrees":4}'])
    const changing = (text: string): HookFunctions => ({
      "before:tool": ({ call }) => ({ modified: { function: { name: call.name, arguments: text } } })
    })
    assert.deepStrictEqual(await resultWith(changing('{"text":"b"}')), ["success", '{"text":"b"}'])
    assert.strictEqual((await resultWith(changing("{")))[0], "invalidArguments")
    const unchanged: HookFunctions = { "before:tool": () => ({ modified: {} }) }
    assert.deepStrictEqual(await resultWith(unchanged), ["success", '{"text":"a"}'])
  })

  it("approve:tool approves with other arguments (row 116)", async () => {
    const hooks: HookFunctions = {
      "approve:tool": async () => ({ approved: true, modifiedArgs: { text: "c" } })
    }
    assert.deepStrictEqual(await resultWith(hooks), ["success", '{"text":"c"}'])
    const rejecting: HookFunctions = {
      "approve:tool": () => ({ approved: false, reason: "no", modifiedArgs: {} })
    }
    assert.strictEqual((await resultWith(rejecting))[0], "rejected")
  })

  it("after:tool changes the result (row 119)", async () => {
    const modified = (change: { readonly content?: unknown; readonly error?: string }): HookFunctions => ({
      "after:tool": async () => ({ modified: change, reason: "test" })
    })
    assert.deepStrictEqual(await resultWith(modified({ content: "new" })), ["success", "new"])
    assert.deepStrictEqual(await resultWith(modified({ error: "broken" })), ["error", "broken"])
  })

  it("before:llm changes the request (row 113)", async () => {
    const scripted = await Effect.runPromise(ScriptedProvider.make([ScriptedProvider.text("done")]))
    const modified = { instructions: "Be kind.", max_output_tokens: 9 }
    await using agent = createAgent({
      provider: scripted.layer,
      model: "m",
      hooks: {
        "before:llm": ({ messages }) => ({ modified, skip: messages.length > 9, reason: "is polite" }),
        "after:llm": async () => ({}),
        onError: () => assert.fail("no hook fails")
      }
    })
    await agent.prompt("Hi")
    const [request] = await Effect.runPromise(scripted.requests)
    assert.deepStrictEqual([request?.system, request?.options.maxTokens], ["Be kind.", 9])
  })

  it("before:llm skips a model call, and the run fails with the reason (row 113)", async () => {
    await using agent = createAgent({
      provider: ScriptedProvider.layer([ScriptedProvider.text("done")]),
      model: "m",
      hooks: { "before:llm": async () => ({ modified: {}, skip: true, reason: "not now" }) }
    })
    const error: unknown = await agent.prompt("Hi").catch((error: unknown) => error)
    assert.match(String(error), /not now/)
  })

  it("a member that no system has is a failure of the hook, and one of oneringai under our names too", async () => {
    const unknown: any = { "before:tool": () => ({ skip: true, mockResult: 1, whatever: 1 }) }
    assert.strictEqual((await resultWith(unknown))[0], "rejected")
    const ours: any = { beforeTool: () => ({ skip: true, mockResult: 1 }) }
    assert.strictEqual((await resultWith(ours))[0], "rejected")
  })
})
