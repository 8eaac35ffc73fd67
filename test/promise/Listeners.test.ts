import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, AgentEvent, Tool } from "effect-agent"
import { OneRingEmitter } from "effect-agent/compat"
import { createAgent } from "effect-agent/promise"
import { ScriptedProvider } from "effect-agent/testing"
import { play } from "../compat/recording.ts"

const tool = (name: string, execute: () => Promise<unknown>) =>
  Tool.fromPromise({ name, description: "A tool.", execute, timeout: 20 })

const tools = [
  tool("good", async () => "ok"),
  tool("bad", () => Promise.reject(new Error("broken"))),
  tool("slow", () => new Promise(() => {})),
  tool("forbidden", async () => "no")
]

const calls = ScriptedProvider.toolCalls(
  ...["good", "bad", "slow", "forbidden", "missing"].map((name) => ({ name, params: {} }))
)

const oneRingNames = [
  "execution:start",
  "execution:complete",
  "execution:error",
  "execution:paused",
  "execution:resumed",
  "execution:cancelled",
  "iteration:start",
  "iteration:complete",
  "llm:request",
  "llm:response",
  "llm:error",
  "tool:detected",
  "tool:start",
  "tool:complete",
  "tool:error",
  "tool:timeout",
  "hook:error"
] as const

const agentOf = (...turns: ScriptedProvider.Script) =>
  createAgent({ provider: ScriptedProvider.layer(turns), model: "m", tools })

const pause = () => new Promise((resolve) => setTimeout(resolve, 5))

describe("on", () => {
  it("calls a listener for the events of a tag, and of all runs", async () => {
    await using agent = agentOf(ScriptedProvider.text("1"), ScriptedProvider.text("2"))
    const statuses: Array<AgentEvent.RunStatus> = []
    agent.on("RunEnd", ({ status }) => statuses.push(status))
    await agent.prompt("Hi")
    await agent.prompt("Hi")
    assert.deepStrictEqual(statuses, ["completed", "completed"])
  })

  it("does not call a listener for the events of sub-agents, which `subscribe` has", async () => {
    const helper = Agent.asTool({ name: "helper", description: "Helps.", agent: { model: "m" } })
    const script = [
      ScriptedProvider.toolCall("helper", { prompt: "Help" }),
      ScriptedProvider.text("inside"),
      ScriptedProvider.text("outside")
    ]
    await using agent = createAgent({
      provider: ScriptedProvider.layer(script),
      model: "m",
      tools: [helper]
    })
    const ends: Array<string> = []
    agent.on("RunEnd", () => ends.push("on"))
    agent.on("execution:complete", () => ends.push("alias"))
    agent.subscribe(({ _tag, path }) => {
      if (_tag === "RunEnd") ends.push(`subscribe ${path?.length ?? 0}`)
    })
    let text = ""
    for await (const piece of agent.streamText("Hi")) text += piece
    assert.deepStrictEqual(ends, ["subscribe 1", "on", "alias", "subscribe 0"])
    assert.strictEqual(text, "outside")
  })

  it("has the names of oneringai", async () => {
    await using agent = createAgent({
      provider: ScriptedProvider.layer([calls, ScriptedProvider.text("done")]),
      model: "m",
      tools,
      hooks: { approveTool: ({ call }) => ({ approved: call.name !== "forbidden" }) }
    })
    const seen: Array<string> = []
    for (const name of ["tool:start", "tool:complete", "tool:error", "tool:timeout"] as const) {
      agent.on(name, ({ toolCall }) => seen.push(`${name} ${toolCall.function.name}`))
    }
    for (const name of [
      "execution:start",
      "execution:complete",
      "llm:response",
      "iteration:start"
    ] as const) {
      agent.on(name, () => seen.push(name))
    }
    await agent.prompt("Hi")
    assert.sameMembers(seen, [
      "execution:start",
      "iteration:start",
      "llm:response",
      "tool:start good",
      "tool:start bad",
      "tool:start slow",
      "tool:complete good",
      "tool:error bad",
      "tool:start missing",
      "tool:error missing",
      "tool:timeout slow",
      "iteration:start",
      "llm:response",
      "execution:complete"
    ])
  })

  it("gives the listeners of oneringai's names its events (row 98)", async () => {
    await using agent = createAgent({
      provider: ScriptedProvider.layer([
        calls,
        ScriptedProvider.text("done"),
        calls,
        ScriptedProvider.text("end")
      ]),
      model: "m",
      system: "Be brief.",
      tools,
      hooks: { beforeModel: () => Promise.reject(new Error("offline")) }
    })
    const ours: Array<AgentEvent.AgentEvent> = []
    const given: Array<OneRingEmitter.Event> = []
    agent.subscribe((event) => ours.push(event))
    for (const name of oneRingNames) agent.on(name, (event) => given.push(event))
    await agent.prompt("Hi")
    // A new system prompt, tools and messages count from the next run on.
    const messages = (await agent.messages()).slice(0, 1)
    await agent.setMessages(messages)
    await agent.update({ system: "Be long." })
    await agent.tools.unregister("forbidden")
    const first = ours.splice(0)
    await agent.prompt("Again")
    const played = [
      ...play(OneRingEmitter.from({ system: "Be brief.", tools }), OneRingEmitter.step, first),
      ...play(
        OneRingEmitter.from({ system: "Be long.", tools: tools.slice(0, -1), messages }),
        OneRingEmitter.step,
        ours
      )
    ]
    assert.deepStrictEqual(given, played)
    assert.isAbove(new Set(given.map(({ type }) => type)).size, 10)
  })

  it("gives them the events after they subscribed, in the middle of a run too", async () => {
    await using agent = agentOf(ScriptedProvider.toolCall("good", {}), ScriptedProvider.text("done"))
    const texts: Array<string | undefined> = []
    const seen: Array<string> = []
    agent.on("ToolInvoked", () => {
      agent.on("tool:complete", ({ executionId, iteration, result, toolCall }) => {
        assert.match(executionId, /^run_/)
        seen.push(`${iteration} ${toolCall.function.name} ${toolCall.state} ${result.content}`)
      })
      agent.on("llm:request", ({ options }) => seen.push(options.input.map(({ role }) => role).join(" ")))
      agent.on("execution:complete", ({ response }) => texts.push(response?.output_text))
    })
    await agent.prompt("Hi")
    assert.deepStrictEqual(seen, ["1 good completed ok", "user assistant user"])
    assert.deepStrictEqual(texts, ["done"])
  })

  it("awaits an async listener before the next event", async () => {
    await using agent = agentOf(ScriptedProvider.text("ok"))
    const order: Array<string> = []
    agent.on("RunStart", async () => {
      order.push("begins")
      await pause()
      order.push("ends")
    })
    agent.on("TurnStart", () => order.push("turn"))
    await agent.prompt("Hi")
    assert.deepStrictEqual(order, ["begins", "ends", "turn"])
  })

  it("returns a function that unsubscribes, before the first use and later (row 203)", async () => {
    await using agent = agentOf(ScriptedProvider.text("1"), ScriptedProvider.text("2"))
    let early = 0
    let late = 0
    const unsubscribe = agent.on("RunEnd", () => early++)
    unsubscribe()
    unsubscribe()
    const stop = agent.on("RunEnd", () => late++)
    await agent.prompt("Hi")
    stop()
    await agent.prompt("Hi")
    assert.deepStrictEqual([early, late], [0, 1])
  })

  it("is typed by the name, and refuses another", () => {
    const agent = agentOf()
    agent.on("ToolExecutionEnd", (event, { signal }) => {
      expectTypeOf(event).toEqualTypeOf<AgentEvent.OfTag<"ToolExecutionEnd">>()
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
    })
    agent.on("tool:start", (event) => {
      expectTypeOf(event).toEqualTypeOf<Extract<OneRingEmitter.Event, { readonly type: "tool:start" }>>()
      expectTypeOf(event.toolCall).toEqualTypeOf<OneRingEmitter.ToolCall>()
    })
    // @ts-expect-error there is no such event
    const misspelt = () => agent.on("tool:begin", () => {})
    assert.throws(misspelt, Agent.InvalidInput, /on: there is no event "tool:begin"/)
    const tag: any = "RunStarted"
    assert.throws(() => agent.on(tag, () => {}), Agent.InvalidInput, /Did you mean RunStart\?/)
  })
})

describe("subscribe", () => {
  it("calls listeners for all events, in the order in which they subscribed (row 104)", async () => {
    await using agent = agentOf(ScriptedProvider.text("ok"))
    const seen: Array<string> = []
    agent.subscribe(({ _tag }) => seen.push(`1 ${_tag}`))
    agent.subscribe(async ({ _tag }) => seen.push(`2 ${_tag}`))
    await agent.prompt("Hi")
    assert.deepStrictEqual(seen.slice(0, 4), ["1 RunStart", "2 RunStart", "1 TurnStart", "2 TurnStart"])
    assert.strictEqual(seen.at(-1), "2 RunEnd")
  })

  it("receives the end of the run that close cancels", async () => {
    const agent = agentOf(ScriptedProvider.never)
    const seen: Array<string> = []
    agent.subscribe(({ _tag }) => seen.push(_tag))
    await agent.start("Hi")
    await agent.close()
    assert.strictEqual(seen.at(-1), "RunEnd")
  })

  it("isolates a listener that rejects (row 105)", async () => {
    await using agent = agentOf(ScriptedProvider.text("ok"))
    agent.subscribe(() => Promise.reject(new Error("broken")))
    agent.subscribe(() => {
      throw new Error("broken, too")
    })
    assert.strictEqual((await agent.prompt("Hi")).status, "completed")
  })

  it("measures a turn for a listener that comes in its middle from its first event on", async () => {
    await using agent = agentOf(ScriptedProvider.text("ok"))
    const runIds: Array<string> = []
    const ended: Array<readonly [string, boolean]> = []
    agent.subscribe(({ _tag, runId }) => {
      if (_tag !== "ModelCallStart") return
      runIds.push(runId)
      agent.on("iteration:complete", ({ duration, executionId }) => {
        ended.push([executionId, duration >= 0 && duration < 10_000])
      })
    })
    await agent.prompt("And now?")
    assert.strictEqual(ended.length, 1)
    assert.deepStrictEqual(
      ended,
      runIds.map((runId) => [runId, true] as const)
    )
  })

  it("aborts the signal of a listener that is late, and unsubscribes it", async () => {
    await using agent = agentOf(ScriptedProvider.text("ok"))
    const aborted: Array<string> = []
    agent.subscribe(
      ({ _tag }, { signal }) =>
        new Promise<void>((resolve) => {
          signal.addEventListener("abort", () => {
            aborted.push(_tag)
            resolve()
          })
        }),
      { timeout: 10, name: "late" }
    )
    assert.strictEqual((await agent.prompt("Hi")).status, "completed")
    assert.deepStrictEqual(aborted, ["RunStart"])
  })

  it("subscribes to an agent that cannot be built without an unhandled rejection", async () => {
    const provider = Effect.runSync(ScriptedProvider.make([])).provider
    await using agent = createAgent({ provider, model: "m" })
    agent.subscribe(() => {})
    assert.strictEqual((await agent.prompt("Hi").catch((error: unknown) => error)) instanceof Error, true)
  })
})
