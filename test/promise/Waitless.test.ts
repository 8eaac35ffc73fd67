import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { Agent, AgentEvent, Hook, Message, Provider, Tool, ToolRegistry } from "effect-agent"
import { agentLoop, agentLoopContinue, createAgent } from "effect-agent/promise"
import { OpenAi } from "effect-agent/providers"
import { ScriptedProvider, Step } from "effect-agent/testing"

const add = Tool.fromPromise({
  name: "add",
  description: "Adds.",
  params: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  execute: async ({ a, b }) => `${a + b}`
})

const open = ScriptedProvider.turn(Step.start, Step.text("so far"), Step.never)

describe("a promise agent that a user interface reads", () => {
  it("has its state before its first use, and during a run, without waiting (row 266)", async () => {
    await using agent = createAgent({
      provider: ScriptedProvider.layer([open]),
      model: "m",
      messages: [Message.user("Before")]
    })
    const { current } = agent.state
    assert.deepStrictEqual(
      [current.messages.map(Message.textOf), current.phase, current.options.model],
      [["Before"], "idle", "m"]
    )
    assert.strictEqual(agent.state.current, current)
    assert.isUndefined(agent.state.partial)
    const run = await agent.start("Hi")
    for await (const event of run.events) if (AgentEvent.isTextDelta(event)) break
    assert.strictEqual(agent.state.current.phase, "model")
    assert.deepStrictEqual(agent.state.current.messages.map(Message.textOf), ["Before", "Hi"])
    assert.strictEqual(agent.state.partial && Message.textOf(agent.state.partial), "so far")
    await run.cancel()
    await agent.waitForIdle()
    await agent.setMessages([])
    assert.deepStrictEqual([agent.state.current.phase, agent.state.current.messages], ["idle", []])
  })

  it("calls a tool by its name (row 266)", async () => {
    await using agent = createAgent({ provider: ScriptedProvider.layer([]), model: "m", tools: [add] })
    const { content, outcome } = await agent.tools.call("add", { a: 2, b: 3 })
    assert.deepStrictEqual([content, outcome], [[{ type: "text", text: "5" }], "success"])
    const refused = await agent.tools.call("add", { a: "two" }).catch((error: unknown) => error)
    assert.instanceOf(refused, ToolRegistry.InvalidArguments)
    const unknown = await agent.tools.call("sub", {}).catch((error: unknown) => error)
    assert.instanceOf(unknown, ToolRegistry.ToolNotFound)
  })

  it("takes keys from a function, at each request (row 266)", async () => {
    const keys: Array<string | undefined> = []
    const client = HttpClient.make((request) =>
      Effect.sync(() => {
        keys.push(request.headers["authorization"])
        return HttpClientResponse.fromWeb(request, new Response("{}", { status: 401 }))
      })
    )
    let count = 0
    const asked: Array<string> = []
    await using agent = createAgent({
      provider: OpenAi.layer({ apiKey: "sk-fixed" }),
      layer: Layer.succeed(HttpClient.HttpClient, client),
      apiKey: async (provider) => {
        asked.push(provider)
        count++
        return count === 1
          ? "sk-first"
          : count === 2
            ? undefined
            : Promise.reject(new Error("the vault is shut"))
      },
      model: "m"
    })
    const failureOf = (prompt: string) => agent.prompt(prompt).catch((error: unknown) => String(error))
    await failureOf("1")
    await failureOf("2")
    assert.match(String(await failureOf("3")), /apiKey failed: the vault is shut/)
    assert.deepStrictEqual(keys, ["Bearer sk-first", "Bearer sk-fixed"])
    assert.deepStrictEqual(new Set(asked), new Set(["openai"]))
    const wrong = { provider: OpenAi.layer({ apiKey: "k" }), model: "m", apiKey: "sk" }
    // @ts-expect-error a key is no function
    assert.throws(() => createAgent(wrong), /apiKey/)
  })

  it("runs the loop once, for its events and its result (row 82)", async () => {
    const run = agentLoop(
      "And?",
      { messages: [Message.user("Hi"), Message.user("Ho")] },
      {
        provider: ScriptedProvider.layer([
          ScriptedProvider.toolCall("add", { a: 1, b: 1 }),
          ScriptedProvider.text("2")
        ]),
        model: "m",
        tools: [add]
      }
    )
    const { newMessages, status } = await run.result()
    assert.deepStrictEqual([status, newMessages.map(Message.textOf)], ["completed", ["And?", "", "2", "2"]])
    const tags: Array<string> = []
    for await (const event of run.events) tags.push(event._tag)
    assert.deepStrictEqual([tags[0], tags.at(-1)], ["RunStart", "RunEnd"])
  })

  it("fails the events and the result of a loop that cannot begin (row 82)", async () => {
    const provider = Layer.effect(Provider.Provider, Effect.fail(new Error("no key")))
    const run = agentLoop("Hi", {}, { provider, model: "m" })
    const messages = await Promise.all([
      run.result().catch((error: unknown) => String(error)),
      (async () => {
        for await (const _ of run.events) assert.fail("there is no event")
      })().catch((error: unknown) => String(error))
    ])
    assert.strictEqual(String(messages[0]), String(messages[1]))
    assert.match(String(messages[0]), /no key/)
  })
})

describe("a loop that continues from a transcript", () => {
  it("answers the last message, or runs on from a tool result (row 83)", async () => {
    const call = { type: "toolCall", id: "1", name: "add", rawArguments: "{}", params: {} } as const
    const histories = [
      [Message.user("Hi")],
      [Message.user("Hi"), Message.assistant([call]), Message.toolResult(call, "2")]
    ]
    for (const messages of histories) {
      const provider = ScriptedProvider.layer([ScriptedProvider.text("Hello.")])
      const run = agentLoopContinue({ messages }, { provider, model: "m" })
      const tags: Array<string> = []
      for await (const event of run.events) tags.push(event._tag)
      const { newMessages, text } = await run.result()
      assert.deepStrictEqual([tags[0], tags.at(-1)], ["RunStart", "RunEnd"])
      assert.deepStrictEqual([newMessages.length, text], [1, "Hello."])
    }
  })

  it("refuses a transcript without messages, and one that ends with an answer (row 196)", async () => {
    const provider = ScriptedProvider.layer([])
    const refused = async (messages: ReadonlyArray<Message.Message>) => {
      const run = agentLoopContinue({ messages }, { provider, model: "m" })
      const error = await run.result().catch((error: unknown) => error)
      assert.instanceOf(error, Agent.InvalidContinuation)
      return error.message
    }
    assert.match(await refused([]), /no messages/i)
    assert.match(await refused([Message.user("Hi"), Message.assistant("Ho")]), /role: assistant/)
  })
})

describe("a signal of a loop", () => {
  it("cancels the run, whose events end and whose result rejects with the reason (row 217)", async () => {
    const controller = new AbortController()
    const provider = ScriptedProvider.layer([open])
    const run = agentLoop("Hi", {}, { provider, model: "m" }, controller)
    const tags: Array<string> = []
    for await (const event of run.events) {
      tags.push(event._tag)
      if (AgentEvent.isTextDelta(event)) controller.abort("enough")
    }
    assert.include(tags, "RunCancelled")
    assert.strictEqual(tags.at(-1), "RunEnd")
    assert.strictEqual(await run.result().catch((error: unknown) => error), "enough")
  })

  it("keeps a run from its start when it has aborted before", async () => {
    const provider = ScriptedProvider.layer([])
    const run = agentLoopContinue(
      { messages: [Message.user("Hi")] },
      { provider, model: "m" },
      { signal: AbortSignal.abort("no") }
    )
    assert.strictEqual(await run.result().catch((error: unknown) => error), "no")
    const reading = (async () => {
      for await (const _ of run.events) assert.fail("there is no event")
    })()
    assert.strictEqual(await reading.catch((error: unknown) => error), "no")
  })

  it("does not change the result of a run that has ended", async () => {
    const controller = new AbortController()
    const provider = ScriptedProvider.layer([ScriptedProvider.text("Hello.")])
    const run = agentLoop("Hi", {}, { provider, model: "m" }, { signal: controller.signal })
    for await (const event of run.events) if (event._tag === "RunEnd") controller.abort("late")
    assert.strictEqual((await run.result()).text, "Hello.")
  })
})

describe("a kind of messages of the application", () => {
  it("reads its data without a cast (row 49)", () => {
    const Note = Message.customKind("note", Schema.Struct({ author: Schema.String }))
    const messages = [
      Message.user("Hi"),
      Note.make({ author: "Ada" }, 5),
      Message.custom("note", { author: 1 }),
      Message.custom("other", { author: "Bob" })
    ]
    const notes = messages.filter(Note.is)
    assert.deepStrictEqual(
      notes.map(({ data, kind, timestamp }) => [data.author, kind, timestamp]),
      [["Ada", "note", 5]]
    )
  })
})

describe("another turn without a message", () => {
  it("follows where a hook returns continue, up to the limit of turns (row 90)", async () => {
    const texts = [ScriptedProvider.text("1"), ScriptedProvider.text("2"), ScriptedProvider.text("3")]
    const turns = async (limit: number) => {
      await using agent = createAgent({
        provider: ScriptedProvider.layer(texts),
        model: "m",
        limits: { maxTurns: limit, onMaxTurns: "stop" },
        hooks: { shouldStopAfterTurn: ({ turn }) => (turn < 3 ? "continue" : false) }
      })
      const { newMessages, status } = await agent.prompt("Hi")
      return [status, newMessages.map(Message.textOf)]
    }
    assert.deepStrictEqual(await turns(9), ["completed", ["Hi", "1", "2", "3"]])
    assert.deepStrictEqual(await turns(2), ["incomplete", ["Hi", "1", "2"]])
  })

  it("does not follow where another hook ends the run (row 90)", async () => {
    const program = Effect.gen(function* () {
      const agent = yield* Agent.make({
        model: "m",
        hooks: [
          Hook.shouldStopAfterTurn(() => Effect.succeed("continue")),
          Hook.shouldStopAfterTurn(() => Effect.succeed(true)),
          Hook.shouldStopAfterTurn(() => Effect.succeed("continue"))
        ]
      })
      return (yield* agent.prompt("Hi")).status
    })
    const layer = ScriptedProvider.layer([ScriptedProvider.text("1")])
    assert.strictEqual(await Effect.runPromise(Effect.scoped(Effect.provide(program, layer))), "stopped")
  })
})
