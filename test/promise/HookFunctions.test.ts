import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, type AgentEvent, Hook, Message, Run, Tool } from "effect-agent"
import { Compaction } from "effect-agent/context"
import { createAgent, type HookFunctions } from "effect-agent/promise"
import { ScriptedProvider } from "effect-agent/testing"

const script = (...turns: ScriptedProvider.Script) => ({
  provider: ScriptedProvider.layer(turns),
  model: "m"
})

const echo = Tool.fromJsonSchema({
  name: "echo",
  description: "Repeats.",
  parameters: { type: "object", properties: { text: { type: "string" } } },
  execute: (params) => Effect.succeed(JSON.stringify(params))
})

const calling = (hooks: HookFunctions) =>
  createAgent({
    ...script(ScriptedProvider.toolCall("echo", { text: "a" }), ScriptedProvider.text("done")),
    tools: [echo],
    hooks
  })

/** The text of the result of the call. */
const resultWith = async (hooks: HookFunctions) => {
  await using agent = calling(hooks)
  const { newMessages } = await agent.prompt("Hi")
  return newMessages[2] && Message.textOf(newMessages[2])
}

describe("hooks as functions", () => {
  it("change what happens, async or sync, under the names of their point", async () => {
    assert.strictEqual(
      await resultWith({ beforeTool: async () => ({ params: { text: "b" } }) }),
      `{"text":"b"}`
    )
    assert.strictEqual(await resultWith({ "before:tool": () => ({ params: { text: "c" } }) }), `{"text":"c"}`)
    assert.strictEqual(
      await resultWith({ "pre-tool": async () => ({ skip: true, result: "skipped" }) }),
      "skipped"
    )
    assert.include(
      await resultWith({ "approve:tool": async () => ({ approved: false, reason: "not today" }) }),
      "not today"
    )
    assert.strictEqual(await resultWith({ beforeTool: async () => {} }), `{"text":"a"}`)
  })

  it("are called at every point", async () => {
    const called: Array<string> = []
    const noted = (point: string) => () => void called.push(point)
    const hooks = Object.fromEntries(Object.keys(Hook.points).map((point) => [point, noted(point)]))
    await using agent = calling({ ...hooks, afterTool: () => Promise.reject(new Error("broken")) })
    await agent.prompt("Hi")
    const others = Object.keys(Hook.points).filter((point) => !/afterTool|onError|Compaction/.test(point))
    assert.includeMembers(called, others)
  })

  it("are called around a compaction, under the names of pi too (row 135)", async () => {
    const called: Array<unknown> = []
    const statusWith = async (hooks: HookFunctions) => {
      await using agent = createAgent({
        ...script(ScriptedProvider.text("It wrote x.")),
        messages: [Message.user("Write x"), Message.assistant("x".repeat(4_000)), Message.user("And y")],
        layer: Compaction.layer({ keepRecent: 100 }),
        hooks
      })
      return await agent.compact().then(({ status }) => status, String)
    }
    const noted: HookFunctions = {
      beforeCompaction: ({ reason }) => void called.push(reason),
      session_before_compact: ({ tokensBefore }) => {
        called.push(tokensBefore > 1_000)
        return {}
      },
      afterCompaction: async ({ summary }) => void called.push(summary),
      session_compact: ({ summarized }) => void called.push(summarized)
    }
    assert.strictEqual(await statusWith(noted), "compacted")
    assert.deepStrictEqual(called, ["manual", true, "It wrote x.", 1])
    const skipped = /a beforeCompaction hook skipped it/
    assert.match(await statusWith({ session_before_compact: () => ({ cancel: true }) }), skipped)
    assert.match(await statusWith({ session_before_compact: async () => ({ skip: true }) }), skipped)
    assert.strictEqual(await statusWith({ session_before_compact: () => ({ cancel: false }) }), "compacted")
  })

  it("run in order where a point has several", async () => {
    const order: Array<number> = []
    await resultWith({
      beforeTool: [() => void order.push(1), async () => void order.push(2)],
      "before:tool": () => void order.push(3)
    })
    assert.deepStrictEqual(order, [1, 2, 3])
  })

  it("reject the call when a guard throws or rejects, with the name of its function", async () => {
    const guard = () => Promise.reject(new Error("no answer"))
    assert.match((await resultWith({ approveTool: guard })) ?? "", /guard.*no answer/)
    const thrown = () => {
      throw new Error("broken")
    }
    assert.match((await resultWith({ beforeTool: thrown })) ?? "", /broken/)
  })

  it("fail the run when a shaper rejects", async () => {
    await using agent = calling({ transformMessages: async () => Promise.reject(new Error("no view")) })
    const error = await agent.prompt("Hi").catch((error: unknown) => error)
    assert.instanceOf(error, Run.RunFailed)
    assert.strictEqual(error.reason._tag, "TransformFailed")
  })

  it("are reported when an observer rejects, and the run continues", async () => {
    await using agent = calling({ "after:llm": () => Promise.reject(new Error("offline")) })
    const errors: Array<AgentEvent.OfTag<"HookError">> = []
    agent.on("HookError", (event) => errors.push(event))
    assert.strictEqual((await agent.prompt("Hi")).status, "completed")
    assert.deepStrictEqual(
      errors.map(({ error, hook }) => [hook, error]),
      [
        ["afterModel", "offline"],
        ["afterModel", "offline"]
      ]
    )
  })

  it("get a signal, which aborts when they take too long and when the run is cancelled (row 217)", async () => {
    const aborted: Array<string> = []
    const waiting =
      (why: string) =>
      (_: unknown, { signal }: { readonly signal: AbortSignal }) =>
        new Promise<void>((resolve) => {
          signal.addEventListener("abort", () => {
            aborted.push(why)
            resolve()
          })
        })
    await using slow = createAgent({
      ...script(ScriptedProvider.text("ok")),
      hookTimeout: 10,
      hooks: { beforeModel: waiting("timeout") }
    })
    assert.strictEqual((await slow.prompt("Hi")).status, "completed")
    let asked = () => {}
    const asking = new Promise<void>((resolve) => (asked = resolve))
    await using agent = calling({
      approveTool: (input, context) => {
        asked()
        return waiting("cancel")(input, context)
      }
    })
    const run = agent.prompt("Hi")
    await asking
    await agent.cancel()
    assert.strictEqual((await run).status, "cancelled")
    assert.deepStrictEqual(aborted, ["timeout", "cancel"])
  })

  it("are typed by their point", () => {
    const options = script()
    createAgent({
      ...options,
      hooks: {
        beforeTool: async (input, { signal }) => {
          expectTypeOf(input).toEqualTypeOf<Hook.Input<"beforeTool">>()
          expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
        },
        "after:llm": (input) => {
          expectTypeOf(input).toEqualTypeOf<Hook.Input<"afterModel">>()
        }
      }
    })
    // @ts-expect-error shouldStopAfterTurn returns a boolean
    createAgent({ ...options, hooks: { shouldStopAfterTurn: async () => "yes" } })
    // @ts-expect-error a call is approved or not
    createAgent({ ...options, hooks: { approveTool: async () => ({ approved: "yes" }) } })
    // @ts-expect-error a hook is a function
    assert.throws(() => createAgent({ ...options, hooks: { beforeTool: true } }), Agent.InvalidInput)
    const misspelt = () =>
      // @ts-expect-error there is no such point
      createAgent({ ...options, hooks: { beforeTool: () => {}, afterTol: () => {} } })
    assert.throws(
      misspelt,
      Agent.InvalidInput,
      /hooks: there is no point "afterTol"\. Did you mean afterTool\?/
    )
  })

  const cases: ReadonlyArray<readonly [what: string, hooks: any, said: RegExp]> = [
    ["no function", { beforeTool: "no" }, /hooks\["beforeTool"\]: expected a function/],
    ["an unknown name", { whenever: () => {} }, /there is no point "whenever"\. Points: beforeExecution/],
    ["a text", "beforeTool", /hooks: expected a list of hooks, or functions .*, got a string/]
  ]
  it.each(cases)("are refused at once: %s (row 124)", (_, hooks, said) => {
    const options: any = { ...script(), hooks }
    assert.throws(() => createAgent(options), Agent.InvalidInput, said)
  })
})
