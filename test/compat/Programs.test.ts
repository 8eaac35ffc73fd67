/**
 * Parts of programs on other systems, said with promises: those that are not in `PiReadme.test.ts`, `KarlDropIn.test.ts` and `examples/from-*.ts`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Message, Provider, Tool } from "effect-agent"
import { OneRingStream, Pi } from "effect-agent/compat"
import { createAgent } from "effect-agent/promise"
import { FunctionProvider } from "effect-agent/providers"
import { ScriptedProvider } from "effect-agent/testing"
import * as z from "zod"
import { longer, snippetsOf } from "./snippets.ts"

const weather = Tool.fromPromise({
  name: "get_weather",
  description: "The weather.",
  params: z.object({ location: z.string() }),
  execute: async ({ location }) => ({ temp: 72, location })
})
const wipe = Tool.fromPromise({
  name: "delete_all_data",
  description: "Deletes all.",
  execute: async () => "gone"
})

const asked = ScriptedProvider.toolCall("get_weather", { location: "Paris" })
const answered = ScriptedProvider.text(["7", "2"], { usage: { input: 5, output: 2 } })
const scripted = (...turns: ScriptedProvider.Script) => ({
  provider: ScriptedProvider.layer(turns),
  model: "m",
  tools: [weather, wipe]
})

describe("programs on oneringai", () => {
  it("listen to events by their names, with their members (row 98)", async () => {
    await using agent = createAgent(scripted(asked, answered))
    const seen: Array<string> = []
    // oneringai: 6 lines
    agent.on("tool:start", ({ toolCall }) => {
      seen.push(`Tool ${toolCall.function.name} started`)
    })
    agent.on("tool:complete", ({ toolCall, result }) => {
      seen.push(`Tool ${toolCall.function.name} returned ${result.content}`)
    })
    // end
    await agent.prompt("What is the weather?")
    const text = '{"temp":72,"location":"Paris"}'
    assert.deepStrictEqual(seen, ["Tool get_weather started", `Tool get_weather returned ${text}`])
  })

  it("replace a result, and forbid a tool, by the hooks of its names (rows 108, 115, 116)", async () => {
    const calls = ScriptedProvider.toolCalls(
      { name: "get_weather", params: { location: "Paris" } },
      { name: "delete_all_data", params: {} }
    )
    // oneringai: 12 lines
    const agent = createAgent({
      ...scripted(calls, answered),
      hooks: {
        "before:llm": () => ({ modified: { temperature: 0.1 } }),
        "before:tool": ({ call }) =>
          call.name === "get_weather" ? { skip: true, mockResult: { temp: 1 } } : {},
        "approve:tool": ({ call }) => ({
          approved: call.name !== "delete_all_data",
          reason: "Dangerous operation blocked"
        })
      }
    })
    // end
    const { newMessages } = await agent.prompt("Go")
    const [first, second] = newMessages.filter((message) => message.role === "toolResult")
    assert.strictEqual(first && Message.textOf(first), '{"temp":1}')
    assert.strictEqual(second?.outcome, "rejected")
    await agent.close()
  })

  it("read a stream by its types (row 99)", async () => {
    await using agent = createAgent(scripted(asked, answered))
    const out: Array<string> = []
    // oneringai: 13 lines
    for await (const event of OneRingStream.iterate(agent.stream("Hi"), "documentation")) {
      switch (event.type) {
        case "response.output_text.delta":
          out.push(event.delta)
          break
        case "response.tool_execution.start":
          out.push(`Executing: ${event.tool_name}`)
          break
        case "response.complete":
          out.push(`Used ${event.usage.total_tokens} tokens`)
      }
    }
    // end
    assert.deepStrictEqual(out, ["Executing: get_weather", "7", "2", "Used 7 tokens"])
  })
})

describe("programs on codelet", () => {
  it("have a provider that answers whole, whose answer they get whole (rows 50, 76)", async () => {
    // codelet: 20 lines
    const provider = FunctionProvider.make({
      id: "mock",
      complete: async ({ messages }) =>
        messages.at(-1)?.role === "user"
          ? { content: [{ type: "toolCall", name: "get_weather", params: { location: "Rome" } }] }
          : "It is warm."
    })
    // end
    const request = { model: "m", messages: [Message.user("Hi")], tools: [], options: {} }
    // codelet: 5 lines
    const complete = Effect.provideService(Provider.complete(request), Provider.Provider, provider)
    // end
    assert.strictEqual((await Effect.runPromise(complete)).stopReason, "toolUse")
    await using agent = createAgent({ provider, model: "m", tools: [weather] })
    assert.strictEqual((await agent.prompt("Hi")).text, "It is warm.")
  })

  it("execute a tool by its name (row 139)", async () => {
    await using agent = createAgent(scripted())
    // codelet: 5 lines
    const result = await agent.tools.call("get_weather", { location: "Rome" })
    // end
    assert.strictEqual(Message.textOf(result), '{"temp":72,"location":"Rome"}')
  })
})

describe("programs on pi", () => {
  it("stream with a function of their own (row 50)", async () => {
    // pi: 8 lines
    const provider = FunctionProvider.make({
      id: "custom",
      stream: async function* () {
        yield "He"
        yield "llo"
      }
    })
    // end
    await using agent = createAgent({ provider, model: "m" })
    assert.strictEqual((await agent.prompt("Hi")).text, "Hello")
  })

  it("subscribe to its events, and read those of one run (row 97)", async () => {
    await using agent = createAgent(scripted(answered, answered))
    const seen: Array<string> = []
    // pi: 3 lines
    agent.subscribe(Pi.listener(({ type }) => seen.push(type)))
    // end
    const read: Array<string> = []
    for await (const { type } of Pi.iterate(agent.stream("Hi"))) read.push(type)
    assert.deepStrictEqual(seen, read)
    assert.deepStrictEqual(seen.slice(0, 4), ["agent_start", "turn_start", "message_start", "message_end"])
    assert.strictEqual(seen.at(-1), "agent_end")
  })

  it("return the object of its tools, an error too (rows 138, 146)", async () => {
    // pi: 8 lines
    const ported = Tool.fromPromise({
      name: "ported",
      description: "Fails.",
      execute: async () => ({
        content: [{ type: "text", text: "file not found" }],
        isError: true
      })
    })
    // end
    const script = scripted(ScriptedProvider.toolCall("ported", {}), answered)
    await using agent = createAgent({ ...script, tools: [ported] })
    const [result] = (await agent.prompt("Hi")).newMessages.filter(({ role }) => role === "toolResult")
    assert.deepStrictEqual(result && [Message.textOf(result)], ["file not found"])
    assert.isTrue(result?.role === "toolResult" && result.isError)
  })
})

describe("their parts", () => {
  it("are not longer here", () => {
    const snippets = snippetsOf(import.meta.filename)
    assert.strictEqual(snippets.length, 9)
    assert.deepStrictEqual(longer(snippets), [])
  })
})
