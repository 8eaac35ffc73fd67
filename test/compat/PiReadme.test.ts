/**
 * The README of pi-agent-core, said with the promise agent. A snippet stands between `// pi: N lines` and `// end`, where N are the lines of
 * code of its original, without imports, and it has no more of them.
 */
import { readFileSync } from "node:fs"
import * as fs from "node:fs/promises"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, AgentEvent, Message, Provider, ProviderError, Tool } from "effect-agent"
import { agentLoop, agentLoopContinue, createAgent } from "effect-agent/promise"
import { PiProxy, PiStream } from "effect-agent/proxy"
import { ScriptedProvider } from "effect-agent/testing"
import * as z from "zod"
import { longer, snippetsOf } from "./snippets.ts"

/** A provider that answers with these turns, and the requests that it got. */
const scripted = (...turns: ScriptedProvider.Script) => {
  const requests: Array<Provider.ModelRequest> = []
  const script = turns.map((turn) => (request: Provider.ModelRequest) => {
    requests.push(request)
    return typeof turn === "function" ? turn(request) : turn
  })
  return { provider: ScriptedProvider.layer(script), requests }
}

const said = ScriptedProvider.text(["Hel", "lo!"])
const texts = (messages: ReadonlyArray<Message.Message>) => messages.map(Message.textOf)
const results = (messages: ReadonlyArray<Message.Message>) =>
  messages.filter((message) => message.role === "toolResult")

const bash = Tool.fromPromise({
  name: "bash",
  description: "Runs a command.",
  params: z.object({ command: z.string() }),
  execute: async ({ command }) => command
})
const notifyDone = Tool.fromPromise({
  name: "notify_done",
  description: "Notifies.",
  execute: async () => "sent"
})

describe("the README of pi", () => {
  it("quick start (row 266)", async () => {
    const { provider } = scripted(said)
    let out = ""
    const write = (text: string) => (out += text)
    // pi: 12 lines
    const agent = createAgent({
      provider,
      model: "claude-sonnet-4-20250514",
      system: "You are a helpful assistant."
    })

    agent.subscribe((event) => {
      if (AgentEvent.isTextDelta(event)) write(event.delta.delta)
    })

    await agent.prompt("Hello!")
    // end
    assert.strictEqual(out, "Hello!")
    await agent.close()
  })

  it("shouldStopAfterTurn of the loop (row 90)", async () => {
    const { provider } = scripted(ScriptedProvider.toolCall("bash", { command: "ls" }))
    const shouldCompact = (messages: ReadonlyArray<Message.Message>) => messages.length > 2
    const prompts = [Message.user("Go")]
    const context = { messages: [] }
    // pi: 7 lines
    const run = agentLoop(prompts, context, {
      provider,
      model: "m",
      tools: [bash],
      hooks: { shouldStopAfterTurn: ({ messages }) => shouldCompact(messages) }
    })
    // end
    assert.strictEqual((await run.result()).status, "stopped")
  })

  it("continue after an error (row 195)", async () => {
    const { provider } = scripted(
      ScriptedProvider.fail(new ProviderError.Overloaded({ detail: "busy" })),
      said
    )
    await using agent = createAgent({ provider, model: "m" })
    await agent.prompt("Hi").catch(() => {})
    // pi: 1 line
    await agent.continue()
    // end
    assert.deepStrictEqual(texts(agent.state.current.messages).at(-1), "Hello!")
  })

  it("all options of an agent (rows 40, 44, 120, 121, 253)", async () => {
    const { provider, requests } = scripted(
      ScriptedProvider.toolCall("bash", { command: "ls" }),
      ScriptedProvider.toolCall("other", {}),
      ScriptedProvider.toolCall("notify_done", {})
    )
    const other = Tool.fromPromise({
      name: "other",
      description: "Answers.",
      execute: async () => Tool.output("ok", { details: { size: 2 } })
    })
    const refreshToken = async () => "sk-new"
    const prune = (messages: ReadonlyArray<Message.Message>) => messages.slice(-50)
    // pi: 36 lines
    const agent = createAgent({
      provider,
      apiKey: async () => refreshToken(),
      system: "Be brief.",
      model: "m",
      tools: [bash, other, notifyDone],
      messages: [Message.user("Before")],
      steeringMode: "one-at-a-time",
      followUpMode: "one-at-a-time",
      toolExecution: "parallel",
      modelOptions: {
        thinkingLevel: "high",
        sessionId: "session-123",
        thinkingBudgets: { minimal: 128, low: 512, medium: 1024, high: 2048 }
      },
      hooks: {
        toModelMessages: ({ messages }) => messages.filter((message) => message.role !== "custom"),
        transformMessages: ({ messages }) => prune(messages),
        beforeTool: ({ call }) =>
          call.name === "bash" ? { block: true, reason: "bash is disabled" } : undefined,
        afterTool: ({ call, isError, result }) => {
          if (call.name === "notify_done" && !isError) return { terminate: true }
          if (!isError) return { details: { before: result.details ?? null, audited: true } }
          return undefined
        }
      }
    })
    // end
    const { newMessages, status } = await agent.prompt("Go")
    assert.strictEqual(status, "terminated")
    assert.deepStrictEqual(
      results(newMessages).map((result) => [Message.textOf(result), result.details]),
      [
        ["bash is disabled", undefined],
        ["ok", { before: { size: 2 }, audited: true }],
        ["sent", undefined]
      ]
    )
    assert.deepInclude(requests[0]?.options, { sessionId: "session-123", thinkingLevel: "high" })
    await agent.close()
  })

  it("prompting (rows 84, 192)", async () => {
    const { provider, requests } = scripted(said, said, said)
    await using agent = createAgent({ provider, model: "m" })
    const base64Data = "aGk="
    // pi: 5 lines
    await agent.prompt("Hello")
    await agent.prompt([Message.text("What's in this image?"), Message.image(base64Data, "image/jpeg")])
    await agent.prompt(Message.user("Hello", Date.now()))
    // end
    assert.strictEqual(requests.at(-1)?.messages.length, 5)
  })

  it("state (rows 190, 191, 201, 207)", async () => {
    const { provider, requests } = scripted(said, said)
    await using agent = createAgent({ provider, model: "m" })
    const newMessages = [Message.user("New")]
    const message = Message.user("Newest")
    // pi: 10 lines
    const modelOptions = { thinkingLevel: "medium" } as const
    await agent.update({ system: "New prompt", model: "gpt-4o", modelOptions, toolExecution: "sequential" })
    await agent.tools.register(bash)
    await agent.hooks.register("beforeTool", async () => undefined)
    await agent.hooks.register("afterTool", async () => undefined)
    await agent.setMessages(newMessages)
    await agent.setMessages([...agent.state.current.messages, message])
    // end
    await agent.continue()
    assert.deepInclude(requests[0], { system: "New prompt", model: "gpt-4o" })
    assert.deepStrictEqual(texts(requests[0]?.messages ?? []), ["New", "Newest"])
    assert.deepStrictEqual(
      requests[0]?.tools.map(({ name }) => name),
      ["bash"]
    )
    await agent.reset()
    assert.deepStrictEqual(agent.state.current.messages, [])
  })

  it("the fields of the state (rows 164, 190, 204)", async () => {
    const { provider } = scripted(said)
    await using agent = createAgent({ provider, model: "m", system: "s", tools: [bash] })
    await agent.prompt("Hi")
    // pi: 11 lines
    const { lastError, messages, options, pendingToolCalls, phase } = agent.state.current
    const { model, modelOptions, system } = options
    const streamingMessage = agent.state.partial
    const tools = await agent.tools.definitions()
    // end
    assert.deepStrictEqual(
      [
        lastError,
        messages.length,
        pendingToolCalls.size,
        phase,
        model,
        modelOptions,
        system,
        streamingMessage
      ],
      [undefined, 2, 0, "idle", "m", undefined, "s", undefined]
    )
    assert.strictEqual(tools.length, 1)
  })

  it("session and thinking budgets (rows 41, 44)", async () => {
    const { provider, requests } = scripted(said)
    await using agent = createAgent({ provider, model: "m" })
    // pi: 7 lines
    const thinkingBudgets = { minimal: 128, low: 512, medium: 1024, high: 2048 }
    await agent.update({ modelOptions: { sessionId: "session-123", thinkingBudgets } })
    // end
    await agent.prompt("Hi")
    assert.deepInclude(requests[0]?.options, { sessionId: "session-123" })
  })

  it("control, and a listener that the end of a run waits for (rows 202, 215, 234)", async () => {
    const { provider } = scripted(ScriptedProvider.never)
    await using agent = createAgent({ provider, model: "m" })
    let isFlushed = false
    const flushSessionState = async (signal: AbortSignal) => {
      await Promise.resolve()
      isFlushed = !signal.aborted
    }
    // pi: 6 lines
    const unsubscribe = agent.on("RunEnd", (_, { signal }) => flushSessionState(signal))
    // end
    const run = await agent.start("Hi")
    // pi: 2 lines
    await agent.cancel()
    await agent.waitForIdle()
    // end
    assert.isTrue(isFlushed)
    assert.strictEqual((await run.result()).status, "cancelled")
    unsubscribe()
  })

  it("steering and follow-up (rows 197, 198, 199)", async () => {
    const { provider } = scripted(said, said)
    await using agent = createAgent({ provider, model: "m" })
    // pi: 17 lines
    await agent.queues.setMode("steering", "one-at-a-time")
    await agent.queues.setMode("followUp", "one-at-a-time")

    await agent.steer("Stop! Do this instead.")
    await agent.followUp("Also summarize the result.")

    const { followUp, steering } = await agent.queues.modes()
    const queued = await agent.queues.sizes()

    await agent.queues.clear("steering")
    await agent.queues.clear("followUp")
    await agent.queues.clear("all")
    // end
    assert.deepStrictEqual([followUp, steering], ["one-at-a-time", "one-at-a-time"])
    assert.deepStrictEqual(queued, { steering: 1, followUp: 1 })
    assert.deepStrictEqual(await agent.queues.sizes(), { steering: 0, followUp: 0 })
  })

  it("messages of the application (rows 13, 85)", async () => {
    const { provider, requests } = scripted(said)
    // pi: 12 lines
    const Notification = Message.customKind("notification", Schema.Struct({ text: Schema.String }))
    const info = Notification.make({ text: "Info" })

    const agent = createAgent({ provider, model: "m", messages: [info] })
    // end
    await agent.prompt("Hi")
    const [first] = agent.state.current.messages
    assert.strictEqual(first && Notification.is(first) ? first.data.text : "", "Info")
    assert.deepStrictEqual(texts(requests[0]?.messages ?? []), ["Hi"])
    await agent.close()
  })

  it("tools, and a tool that throws (rows 10, 136, 138, 153, 160)", async () => {
    // pi: 24 lines
    const readFile = Tool.fromPromise({
      name: "read_file",
      label: "Read File",
      description: "Read a file's contents",
      params: z.object({ path: z.string().describe("File path") }),
      executionMode: "sequential",
      execute: async ({ path }, { progress, signal }) => {
        progress("Reading...")
        const content = await fs.readFile(path, { encoding: "utf8", signal })
        return Tool.output(content, { details: { path, size: content.length } })
      }
    })
    // end
    const { provider } = scripted(
      ScriptedProvider.toolCall("read_file", { path: "LICENSE" }),
      ScriptedProvider.toolCall("read_file", { path: "none" }),
      said
    )
    await using agent = createAgent({ provider, model: "m", tools: [readFile] })
    const { newMessages } = await agent.prompt("Read.")
    const [first, second] = results(newMessages)
    assert.deepStrictEqual(first?.details, { path: "LICENSE", size: readFileSync("LICENSE", "utf8").length })
    assert.deepStrictEqual([first?.isError, second?.isError], [false, true])
    assert.match(second ? Message.textOf(second) : "", /ENOENT/)
  })

  it("a proxy (rows 236, 238)", async () => {
    const script = await Effect.runPromise(ScriptedProvider.make([said]))
    const handle = PiStream.toWebHandler(script.provider, { models: ["acme/small"] })
    const keys: Array<string | null> = []
    const served = (request: Request) => {
      keys.push(request.headers.get("authorization"))
      return handle(request)
    }
    const layer = Layer.succeed(FetchHttpClient.Fetch, (url, init) => served(new Request(url, init)))
    // pi: 8 lines
    const token = Redacted.make("...")
    const provider = PiProxy.layer({ url: "https://your-server.example", token })
    const agent = createAgent({ provider, layer, model: "acme/small" })
    // end
    assert.strictEqual((await agent.prompt("Hi")).text, "Hello!")
    assert.deepStrictEqual(keys, ["Bearer ..."])
    await agent.close()
  })

  it("the loop without an agent, and its continuation (rows 82, 83, 196)", async () => {
    const { provider, requests } = scripted(said, said)
    const tags: Array<string> = []
    // pi: 19 lines
    const context = { messages: [Message.user("Before")] }

    const config = {
      provider,
      model: "gpt-4o",
      system: "You are helpful.",
      toolExecution: "parallel",
      hooks: { beforeTool: async () => undefined, afterTool: async () => undefined }
    } as const

    for await (const event of agentLoop("Hello", context, config).events) {
      tags.push(event._tag)
    }

    for await (const event of agentLoopContinue(context, config).events) {
      tags.push(event._tag)
    }
    // end
    assert.strictEqual(tags.filter((tag) => tag === "RunEnd").length, 2)
    assert.deepStrictEqual(
      requests.map(({ messages }) => texts(messages)),
      [["Before", "Hello"], ["Before"]]
    )
    const answered = [...context.messages, Message.assistant("Hello!")]
    const refused = await agentLoopContinue({ messages: answered }, config)
      .result()
      .catch((error: unknown) => error)
    assert.instanceOf(refused, Agent.InvalidContinuation)
  })

  it("is not longer in one snippet", () => {
    const snippets = snippetsOf(import.meta.filename)
    assert.strictEqual(snippets.length, 15)
    assert.deepStrictEqual(longer(snippets), [])
  })
})
