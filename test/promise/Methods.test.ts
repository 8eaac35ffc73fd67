import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, AgentEvent, Hook, Message, ProviderError, Run, Tool } from "effect-agent"
import { createAgent } from "effect-agent/promise"
import { ScriptedProvider, Step } from "effect-agent/testing"

const script = (...turns: ScriptedProvider.Script) => ({
  provider: ScriptedProvider.layer(turns),
  model: "m"
})

const ping = Tool.fromPromise({ name: "ping", description: "Answers.", execute: async () => "pong" })

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => assert.fail("it resolved"),
    (error: unknown) => error
  )

const texts = (messages: ReadonlyArray<Message.Message>) => messages.map(Message.textOf)

const collect = async <A>(elements: AsyncIterable<A>): Promise<ReadonlyArray<A>> => {
  const all: Array<A> = []
  for await (const element of elements) all.push(element)
  return all
}

/** An answer that says something and then waits. */
const open = ScriptedProvider.turn(Step.start, Step.text("so far"), Step.never)

describe("a promise agent", () => {
  it("has each method and member of the Effect agent (row 266)", async () => {
    await using agent = createAgent(script())
    const program = Effect.map(Agent.make({ model: "m" }), Object.keys).pipe(
      Effect.provide(ScriptedProvider.layer([])),
      Effect.scoped
    )
    for (const name of await Effect.runPromise(program)) assert.property(agent, name)
  })

  it("continues the conversation", async () => {
    await using agent = createAgent(
      script(
        ScriptedProvider.fail(new ProviderError.Unauthenticated({ detail: "no" })),
        open,
        ScriptedProvider.text("ok")
      )
    )
    assert.instanceOf(await failure(agent.continue()), Agent.InvalidContinuation)
    assert.instanceOf(await failure(agent.prompt("Hi")), Run.RunFailed)
    for await (const event of agent.continueStream()) if (AgentEvent.isTextDelta(event)) break
    const { message } = await agent.continue()
    assert.strictEqual(message && Message.textOf(message), "ok")
  })

  it("continues until a signal aborts", async () => {
    await using agent = createAgent({ ...script(ScriptedProvider.never), messages: [Message.user("Hi")] })
    const controller = new AbortController()
    agent.on("ModelCallStart", () => controller.abort("enough"))
    assert.strictEqual(await failure(agent.continue({ signal: controller.signal })), "enough")
    assert.strictEqual((await agent.state.get()).phase, "idle")
  })

  it("compacts by hand, and rejects typed", async () => {
    await using agent = createAgent({ ...script(), messages: [Message.user("Hi")] })
    const error = await failure(agent.compact())
    assert.instanceOf(error, Run.RunFailed)
    assert.strictEqual(error instanceof Run.RunFailed && error.reason._tag, "CompactionFailed")
  })

  it("starts a run, which has a result of its own", async () => {
    await using agent = createAgent(script(ScriptedProvider.never, ScriptedProvider.text("ok")))
    const run = await agent.start("Hi")
    assert.instanceOf(await failure(agent.prompt("And?")), Agent.AgentBusy)
    await run.cancel()
    assert.strictEqual((await run.result()).status, "cancelled")
    const next = await agent.start("Again")
    assert.notStrictEqual(next.runId, run.runId)
    assert.strictEqual((await next.result()).status, "completed")
  })

  it("resolves the result of a run that close cancelled", async () => {
    const agent = createAgent(script(ScriptedProvider.never))
    const run = await agent.start("Hi")
    await agent.close()
    assert.strictEqual((await run.result()).status, "cancelled")
    assert.match(String(await failure(agent.messages())), /The agent is closed/)
  })

  it("pauses and resumes", async () => {
    await using agent = createAgent({
      ...script(ScriptedProvider.toolCall("ping", {}), ScriptedProvider.text("done")),
      tools: [ping]
    })
    assert.instanceOf(await failure(agent.resume()), Agent.NotPaused)
    const reasons: Array<string | undefined> = []
    agent.on("ToolsDetected", () => agent.pause("wait"))
    agent.on("RunPaused", ({ reason }) => {
      reasons.push(reason)
      void agent.resume("continue")
    })
    agent.on("RunResumed", ({ reason }) => reasons.push(reason))
    assert.strictEqual((await agent.prompt("Hi")).status, "completed")
    assert.deepStrictEqual(reasons, ["wait", "continue"])
  })

  it("waits until it is idle", async () => {
    await using agent = createAgent(script(ScriptedProvider.text("ok")))
    await agent.waitForIdle()
    await agent.start("Hi")
    await agent.waitForIdle()
    assert.deepStrictEqual(texts(await agent.messages()), ["Hi", "ok"])
  })

  it("replaces and clears the transcript, and changes options", async () => {
    await using agent = createAgent(script(ScriptedProvider.text("ok")))
    await agent.setMessages([Message.user("Before")])
    await agent.update({ system: "Be short." })
    const { messages, options } = await agent.state.get()
    assert.deepStrictEqual([texts(messages), options.system], [["Before"], "Be short."])
    await agent.reset()
    assert.deepStrictEqual(await agent.messages(), [])
    const invalid: any = { limits: { maxTurns: -1 } }
    assert.instanceOf(await failure(agent.update(invalid)), Agent.InvalidInput)
  })

  it("shows and changes its queues", async () => {
    await using agent = createAgent(script(ScriptedProvider.text("ok")))
    await agent.steer("one")
    await agent.followUp("two")
    assert.deepStrictEqual(await agent.queues.sizes(), { steering: 1, followUp: 1 })
    const queued = await agent.queues.messages()
    assert.deepStrictEqual(await agent.queues.clear("steering"), { steering: queued.steering, followUp: [] })
    assert.strictEqual(queued.steering.length, 1)
    assert.deepStrictEqual(await agent.queues.sizes(), { steering: 0, followUp: 1 })
    await agent.queues.setMode("followUp", "all")
    assert.deepStrictEqual(await agent.queues.modes(), { steering: "one-at-a-time", followUp: "all" })
  })

  it("shows the answer that streams, and the report", async () => {
    await using agent = createAgent(script(open))
    assert.strictEqual(await agent.partial(), undefined)
    assert.strictEqual(await agent.report(), undefined)
    for await (const text of agent.streamText("Hi")) {
      const partial = await agent.partial()
      assert.deepStrictEqual([text, partial && Message.textOf(partial)], ["so far", "so far"])
      break
    }
    assert.strictEqual((await agent.report())?.turns, 1)
  })

  it("registers tools", async () => {
    await using agent = createAgent(
      script(ScriptedProvider.toolCall("ping", {}), ScriptedProvider.text("done"))
    )
    await agent.tools.register(ping)
    assert.instanceOf(await failure(agent.tools.register(ping)), Error)
    assert.deepStrictEqual(
      [
        await agent.tools.has("ping"),
        (await agent.tools.get("ping"))?.name,
        (await agent.tools.definitions()).length
      ],
      [true, "ping", 1]
    )
    assert.include(texts((await agent.prompt("Hi")).newMessages), "pong")
    assert.deepStrictEqual(
      [await agent.tools.unregister("ping"), await agent.tools.unregister("ping")],
      [true, false]
    )
    await agent.tools.clear()
    assert.isFalse(await agent.tools.has("ping"))
  })

  it("lists the hooks that failed too often, and enables them again (row 128)", async () => {
    await using agent = createAgent({
      ...script(ScriptedProvider.text("ok")),
      maxConsecutiveHookErrors: 1,
      hooks: { afterModel: () => Promise.reject(new Error("offline")) }
    })
    assert.deepStrictEqual(await agent.disabledHooks(), [])
    await agent.prompt("Hi")
    const hooks = await agent.hooks.list()
    assert.deepStrictEqual(await agent.disabledHooks(), hooks)
    assert.isTrue(await agent.hooks.enable(hooks[0]?.id ?? ""))
    assert.deepStrictEqual(await agent.disabledHooks(), [])
  })

  it("registers hooks, and switches them off", async () => {
    await using agent = createAgent(
      script(ScriptedProvider.text("1"), ScriptedProvider.text("2"), ScriptedProvider.text("3"))
    )
    const calls: Array<string> = []
    const id = await agent.hooks.register("after:llm", async function noted() {
      calls.push("function")
    })
    await agent.hooks.register(Hook.afterModel(() => Effect.sync(() => void calls.push("effect"))))
    assert.deepStrictEqual(
      (await agent.hooks.list()).map(({ isEnabled, name, point }) => [point, name, isEnabled]),
      [
        ["afterModel", "noted", true],
        ["afterModel", undefined, true]
      ]
    )
    await agent.prompt("Hi")
    assert.isTrue(await agent.hooks.disable(id))
    await agent.prompt("Hi")
    assert.isTrue(await agent.hooks.enable(id))
    assert.isTrue(await agent.hooks.unregister(id))
    assert.isFalse(await agent.hooks.unregister(id))
    await agent.prompt("Hi")
    assert.deepStrictEqual(calls, ["function", "effect", "effect", "effect"])
    const unknown: any = "afterModell"
    assert.match(String(await failure(agent.hooks.register(unknown, () => {}))), /Did you mean afterModel\?/)
  })
})

describe("streamText", () => {
  it("gives the text of the answers", async () => {
    await using agent = createAgent({
      ...script(ScriptedProvider.toolCall("ping", {}), ScriptedProvider.text(["Hel", "lo"])),
      tools: [ping]
    })
    assert.deepStrictEqual(await collect(agent.streamText("Hi")), ["Hel", "lo"])
  })

  it("cancels the run when the reader breaks off", async () => {
    const ended: Array<string> = []
    await using agent = createAgent({
      ...script(open, ScriptedProvider.text("ok")),
      hooks: { afterExecution: ({ status }) => void ended.push(status) }
    })
    for await (const text of agent.streamText("Hi")) if (text === "so far") break
    assert.deepStrictEqual(ended, ["cancelled"])
    assert.strictEqual((await agent.prompt("Again")).status, "completed")
  })

  it("throws the error of the run, and the reason of a signal", async () => {
    const reason = new ProviderError.Unauthenticated({ detail: "no" })
    await using agent = createAgent(script(ScriptedProvider.fail(reason), open))
    assert.instanceOf(await failure(collect(agent.streamText("Hi"))), Run.RunFailed)
    const controller = new AbortController()
    const reading = async () => {
      for await (const _ of agent.streamText("Hi", { signal: controller.signal })) controller.abort("enough")
    }
    assert.strictEqual(await failure(reading()), "enough")
  })
})

describe("events and state.changes", () => {
  it("last from run to run, until the agent closes", async () => {
    const agent = createAgent(script(ScriptedProvider.text("1"), ScriptedProvider.text("2")))
    const events = agent.events[Symbol.asyncIterator]()
    const phases = agent.state.changes[Symbol.asyncIterator]()
    const first = events.next()
    assert.strictEqual((await phases.next()).value?.phase, "idle")
    await agent.prompt("Hi")
    await agent.prompt("Hi")
    const seen = [(await first).value?._tag]
    await agent.close()
    for (let next = await events.next(); next.done !== true; next = await events.next())
      seen.push(next.value._tag)
    assert.strictEqual(seen.filter((tag) => tag === "RunEnd").length, 2)
    let count = 0
    for (let next = await phases.next(); next.done !== true; next = await phases.next()) count++
    assert.isAbove(count, 4)
  })

  it("can be left while they wait", async () => {
    await using agent = createAgent(script())
    const events = agent.events[Symbol.asyncIterator]()
    const waiting = events.next()
    await events.return?.()
    assert.isTrue((await waiting).done)
    assert.strictEqual(await agent.droppedEvents(), 0)
  })
})
