import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema, Stream } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { Agent, AgentEvent, Hook, Message, Provider, ProviderError, Run, Tool } from "effect-agent"
import { createAgent, type PromiseAgent } from "effect-agent/promise"
import { OpenAiCompatible } from "effect-agent/providers"
import { ScriptedProvider, Step } from "effect-agent/testing"

const add = Tool.fromPromise({
  name: "add",
  description: "Adds two numbers.",
  params: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  execute: async ({ a, b }) => a + b
})

class Greeting extends Context.Service<Greeting, { readonly word: string }>()("test/Greeting") {}

const greet = Tool.make({
  name: "greet",
  description: "Greets.",
  execute: () => Greeting.use(({ word }) => Effect.succeed(word))
})

const script = (...turns: ScriptedProvider.Script) => ({
  provider: ScriptedProvider.layer(turns),
  model: "m"
})

const tags = async (events: AsyncIterable<AgentEvent.AgentEvent>) => {
  const seen: Array<AgentEvent.AgentEvent["_tag"]> = []
  for await (const { _tag } of events) seen.push(_tag)
  return seen
}

const statusOf = ({ status }: { readonly status: AgentEvent.RunStatus }) => status

describe("createAgent", () => {
  describe("prompt", () => {
    it("runs tools that are plain functions, and remembers the conversation (rows 136, 137)", async () => {
      const asked = await Effect.runPromise(
        ScriptedProvider.make([
          ScriptedProvider.toolCall("add", { a: 2, b: 3 }),
          ScriptedProvider.text("5"),
          ScriptedProvider.text("Still 5")
        ])
      )
      await using agent = createAgent({ provider: asked.provider, model: "m", tools: [add] })
      const first = await agent.prompt("2 + 3?")
      assert.strictEqual(first.message && Message.textOf(first.message), "5")
      await agent.prompt("Sure?")
      const requests = await Effect.runPromise(asked.requests)
      assert.deepStrictEqual(
        requests[2]?.messages.map(({ role }) => role),
        ["user", "assistant", "toolResult", "assistant", "user"]
      )
    })

    it("rejects with the same errors, not wrapped (rows 242, 244)", async () => {
      const reason = new ProviderError.Unauthenticated({ detail: "no" })
      await using agent = createAgent(script(ScriptedProvider.fail(reason)))
      const error = await agent.prompt("Hi").catch((error: unknown) => error)
      assert.instanceOf(error, Run.RunFailed)
      assert.strictEqual(error._tag, "RunFailed")
      assert.strictEqual(error.reason._tag === "ProviderError" && error.reason.reason, reason)
      assert.strictEqual(error.result.status, "failed")
    })

    it("rejects with AgentBusy while another run goes on, which cancel ends", async () => {
      await using agent = createAgent(script(ScriptedProvider.never))
      const running = agent.prompt("Hi")
      assert.instanceOf(await agent.prompt("And?").catch((error: unknown) => error), Agent.AgentBusy)
      await agent.cancel("enough")
      assert.strictEqual((await running).status, "cancelled")
    })

    it("takes what is steered and queued", async () => {
      await using agent = createAgent(script(ScriptedProvider.text("1"), ScriptedProvider.text("2")))
      await agent.steer("mind this")
      await agent.followUp("and then?")
      const { newMessages } = await agent.prompt("Hi")
      assert.deepStrictEqual(newMessages.map(Message.textOf), ["Hi", "mind this", "1", "and then?", "2"])
    })

    it("rejects with the signal's reason, once the run has ended", async () => {
      const ended: Array<string> = []
      const hooks = [Hook.afterExecution(({ status }) => Effect.sync(() => void ended.push(status)))]
      await using agent = createAgent({
        ...script(ScriptedProvider.never, ScriptedProvider.text("ok")),
        hooks
      })
      const controller = new AbortController()
      const running = agent.prompt("Hi", { signal: controller.signal })
      setTimeout(() => controller.abort("had enough"), 10)
      assert.strictEqual(await running.catch((reason: unknown) => reason), "had enough")
      assert.deepStrictEqual(ended, ["cancelled"])
      const late = agent.prompt("Hi", { signal: controller.signal })
      assert.strictEqual(await late.catch((reason: unknown) => reason), "had enough")
      assert.strictEqual((await agent.prompt("Again")).status, "completed")
    })

    it("rejects with what could not be built", async () => {
      const provider = Layer.effect(Provider.Provider, Effect.fail("no such key"))
      await using agent = createAgent({ provider, model: "m" })
      assert.strictEqual(await agent.prompt("Hi").catch((error: unknown) => error), "no such key")
    })
  })

  describe("stream", () => {
    it("gives the events in order, once for each iteration", async () => {
      await using agent = createAgent(script(ScriptedProvider.text(["a", "b"]), ScriptedProvider.text("c")))
      const events = agent.stream("Hi")
      const seen = await tags(events)
      assert.deepStrictEqual([seen.at(0), seen.at(-1)], ["RunStart", "RunEnd"])
      assert.strictEqual(seen.filter((tag) => tag === "MessageDelta").length, 4)
      assert.strictEqual((await tags(events)).filter((tag) => tag === "MessageDelta").length, 3)
    })

    it("gives every element of a large array, in order", async () => {
      const deltas = Array.from({ length: 3000 }, (_, index) => `${index} `)
      const said = deltas.map((delta) => ({ _tag: "TextDelta", contentIndex: 0, delta }) as const)
      const provider = Provider.Provider.of({
        id: "bulk",
        stream: () => Stream.fromArray([...said, { _tag: "Finish", stopReason: "stop" }])
      })
      await using agent = createAgent({ provider, model: "m" })
      let text = ""
      for await (const event of agent.stream("Hi"))
        if (AgentEvent.isTextDelta(event)) text += event.delta.delta
      assert.strictEqual(text, deltas.join(""))
    })

    it("cancels the run when the reader breaks off, and is then ready for the next", async () => {
      const ended: Array<string> = []
      const hooks = [Hook.afterExecution((input) => Effect.sync(() => void ended.push(statusOf(input))))]
      const slow = ScriptedProvider.turn(Step.start, Step.text("so far"), Step.never)
      await using agent = createAgent({ ...script(slow, ScriptedProvider.text("ok")), hooks })
      for await (const event of agent.stream("Hi")) if (AgentEvent.isTextDelta(event)) break
      assert.deepStrictEqual(ended, ["cancelled"])
      assert.strictEqual((await agent.prompt("Again")).status, "completed")
    })

    it("throws the run's error after its events (row 244)", async () => {
      await using agent = createAgent({
        ...script(ScriptedProvider.toolCall("add", {})),
        limits: { maxTurns: 1 }
      })
      const seen: Array<string> = []
      const reading = async () => {
        for await (const event of agent.stream("Hi")) seen.push(event._tag)
      }
      const error = await reading().catch((error: unknown) => error)
      assert.instanceOf(error, Run.RunFailed)
      assert.strictEqual(error.reason._tag, "LimitExceeded")
      assert.strictEqual(seen.at(-1), "RunEnd")
    })

    it("throws the signal's reason, and cancels the run", async () => {
      const ended: Array<string> = []
      const hooks = [Hook.afterExecution((input) => Effect.sync(() => void ended.push(statusOf(input))))]
      await using agent = createAgent({ ...script(ScriptedProvider.never), hooks })
      const controller = new AbortController()
      setTimeout(() => controller.abort(new Error("stop it")), 10)
      const error = await tags(agent.stream("Hi", { signal: controller.signal })).catch(
        (error: unknown) => error
      )
      assert.strictEqual(error instanceof Error && error.message, "stop it")
      assert.deepStrictEqual(ended, ["cancelled"])
    })

    it("ends when the agent is closed", async () => {
      const agent = createAgent(script(ScriptedProvider.never))
      const reading = tags(agent.stream("Hi"))
      setTimeout(() => void agent.close(), 10)
      assert.include(await reading, "ModelCallStart")
    })
  })

  describe("layer", () => {
    it("has what tools need, and is released by close", async () => {
      let released = 0
      const layer = Layer.effect(
        Greeting,
        Effect.acquireRelease(Effect.succeed({ word: "Hello" }), () => Effect.sync(() => released++))
      )
      const agent = createAgent({
        ...script(ScriptedProvider.toolCall("greet", {}), ScriptedProvider.text("done")),
        tools: [greet],
        layer
      })
      const { newMessages } = await agent.prompt("Hi")
      assert.strictEqual(newMessages[2] && Message.textOf(newMessages[2]), "Hello")
      await agent.close()
      await agent.close()
      assert.strictEqual(released, 1)
    })

    it("may bring an HTTP client in place of fetch", async () => {
      const body = `data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`
      const headers = { "content-type": "text/event-stream" }
      const client = HttpClient.make((request) =>
        Effect.succeed(HttpClientResponse.fromWeb(request, new Response(body, { headers })))
      )
      await using agent = createAgent({
        provider: OpenAiCompatible.layer({ id: "test", baseUrl: "http://127.0.0.1:1/v1" }),
        model: "m",
        layer: Layer.succeed(HttpClient.HttpClient, client)
      })
      const { message } = await agent.prompt("Hi")
      assert.strictEqual(message && Message.textOf(message), "hi")
    })
  })

  describe("checks its options when it is called", () => {
    const provider = ScriptedProvider.layer([])
    const cases: ReadonlyArray<readonly [what: string, options: any, said: RegExp]> = [
      ["no options", undefined, /Invalid options: provider is missing/],
      ["no model", { provider }, /Invalid options: model is missing/],
      ["an empty model", { provider, model: "" }, /Invalid options: model/],
      [
        "a misspelt option",
        { provider, model: "m", maxTurn: 1 },
        /maxTurn is not an option.*limits\.maxTurns/
      ],
      ["a misspelt layer", { provider, model: "m", layr: 1 }, /layr is not an option. Did you mean layer\?/],
      ["a wrong limit", { provider, model: "m", limits: { maxTurns: -1 } }, /limits\.maxTurns/],
      ["tools that are no list", { provider, model: "m", tools: {} }, /tools: expected a list/],
      [
        "messages of no role",
        { provider, model: "m", messages: [{}] },
        /Invalid messages: messages\[0\]\.role/
      ],
      ["a provider that is none", { provider: { id: "x" }, model: "m" }, /Invalid options: provider/],
      [
        "a function as provider",
        { provider: ScriptedProvider.layer, model: "m" },
        /Invalid options: provider/
      ],
      [
        "a provider as text",
        { provider: "sk-secret", model: "m" },
        /provider: expected a layer.*got a string$/
      ],
      ["a layer that is none", { provider, model: "m", layer: {} }, /Invalid options: layer/]
    ]
    it.each(cases)("%s (rows 248, 257)", (_, options, said) => {
      const made = () => createAgent(options)
      assert.throws(made, Agent.InvalidInput, said)
    })
  })

  it("asks for what is needed, and for nothing else (row 248)", () => {
    const provider = ScriptedProvider.layer([])
    expectTypeOf(createAgent({ provider, model: "m" })).toEqualTypeOf<PromiseAgent>()
    const prompted = (agent: PromiseAgent) => agent.prompt("Hi")
    expectTypeOf(prompted).returns.toEqualTypeOf<Promise<Run.RunResult>>()
    createAgent({
      provider: OpenAiCompatible.layer({ id: "x", baseUrl: "http://x" }),
      model: "m",
      tools: [add]
    })
    createAgent({ provider, model: "m", tools: [greet], layer: Layer.succeed(Greeting, { word: "Hi" }) })
    // @ts-expect-error the tool needs a Greeting
    createAgent({ provider, model: "m", tools: [greet] })
    const hooks = [Hook.afterModel(() => Effect.asVoid(Greeting))]
    // @ts-expect-error and so does the hook, which this layer does not have
    createAgent({ provider, model: "m", hooks, layer: Layer.empty })
  })
})
