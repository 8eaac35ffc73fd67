import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Option, Schedule, Scope, Stream } from "effect"
import { Agent, Approval, Message } from "effect-agent"
import { McpClient, McpTools } from "effect-agent/mcp"
import { ScriptedProvider } from "effect-agent/testing"
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Servers from "./servers.ts"

const name = (tool: string) => McpTools.nameOf("all", tool)
const call = (tool: string, params: object = {}) => ({ name: name(tool), params: { ...params } })
const texts = (messages: ReadonlyArray<Message.Message>) =>
  messages.filter((message) => message.role === "toolResult").map(Message.textOf)

const everything = { ...Servers.program("everything", "stdio"), env: { OWN: "one" } }

/** An agent with the tools of a server, which calls them in the order of the script. */
const agentWith = Effect.fnUntraced(function* (
  server: McpClient.Server,
  script: ScriptedProvider.Script,
  options: McpClient.Options = {}
) {
  const client = yield* McpClient.connect("all", server, options)
  const provider = yield* ScriptedProvider.make(script)
  const agent = yield* Agent.make({ model: "any" }).pipe(Effect.provide(provider.layer))
  yield* McpTools.join(agent.tools, client, { resources: true })
  return { agent, client }
})

const transports = [
  ["stdio", Effect.succeed<McpClient.Server>(everything)],
  [
    "HTTP",
    Effect.gen(function* () {
      const port = yield* Servers.freePort
      yield* Servers.overHttp(port)
      return { url: `http://127.0.0.1:${port}/mcp` }
    })
  ]
] as const

describe.each(transports)("a server over %s", (_, server) => {
  it.live(
    "runs tools with text, images, structured content, resources, progress and errors",
    () =>
      Effect.gen(function* () {
        const { agent, client } = yield* agentWith(yield* server, [
          ScriptedProvider.toolCalls(
            call("echo", { message: "hi" }),
            call("get-tiny-image"),
            call("get-structured-content", { location: "New York" }),
            call("trigger-long-running-operation", { duration: 1, steps: 4 }),
            call("echo", {}),
            call("list_resources"),
            call("get-env")
          ),
          ScriptedProvider.text("done")
        ])
        const events = Array.from(yield* Stream.runCollect(agent.stream("go")))
        const ends = events.filter((event) => event._tag === "ToolExecutionEnd")
        const of = (tool: string) => ends.filter(({ toolName }) => toolName === name(tool))
        assert.deepStrictEqual(
          of("echo")
            .map(({ outcome }) => outcome)
            .sort(),
          ["invalidArguments", "success"]
        )
        const [image] = of("get-tiny-image")
        assert.deepStrictEqual(
          image?.result.content.map(({ type }) => type),
          ["text", "image", "text"]
        )
        assert.strictEqual(image?.result.trust, "untrusted")
        const [structured] = of("get-structured-content")
        assert.property(structured?.result.details, "temperature")
        const progress = events.filter((event) => event._tag === "ToolExecutionProgress")
        assert.isAtLeast(progress.length, 3)
        assert.include(texts(agent.state.getUnsafe().messages).join("\n"), "demo://resource")
        assert.strictEqual(events.filter((event) => event.path !== undefined).length, 0)
        assert.isAbove((yield* client.prompts).length, 0)
        const [prompt] = yield* client.prompt("simple-prompt")
        assert.strictEqual(prompt?.role, "user")
        assert.isAbove((yield* client.resources).length, 0)
      }),
    60_000
  )

  it.live(
    "asks the person and the model of the run in the middle of a call",
    () =>
      Effect.gen(function* () {
        const { agent } = yield* agentWith(
          yield* server,
          [
            ScriptedProvider.toolCall(name("trigger-elicitation-request"), {}),
            ScriptedProvider.toolCall(name("trigger-sampling-request"), { prompt: "Hi", maxTokens: 10 }),
            ScriptedProvider.text("an answer of the model"),
            ScriptedProvider.text("done")
          ],
          { sampling: { model: "small" } }
        )
        yield* agent.subscribe((event) =>
          event._tag === "QuestionAsked"
            ? agent.answer(event.questionId, { answer: { name: "Ada", check: true } })
            : Effect.void
        )
        const { newMessages, status } = yield* agent.prompt("go")
        const [elicited = "", sampled = ""] = texts(newMessages)
        assert.include(elicited, "Ada")
        assert.include(sampled, "an answer of the model")
        assert.strictEqual(status, "completed")
      }).pipe(Effect.provide(Approval.layer({ otherwise: "allow", asked: "wait" }))),
    60_000
  )

  it.live(
    "is told when a call is cancelled",
    () =>
      Effect.gen(function* () {
        const { agent, client } = yield* agentWith(yield* server, [
          ScriptedProvider.toolCall(name("trigger-long-running-operation"), { duration: 60, steps: 60 })
        ])
        const begun = yield* Deferred.make<void>()
        yield* agent.subscribe((event) =>
          event._tag === "ToolExecutionProgress" ? Deferred.succeed(begun, undefined) : Effect.void
        )
        const run = yield* Effect.forkChild(agent.prompt("go"), { startImmediately: true })
        yield* Deferred.await(begun)
        yield* agent.cancel("enough")
        const { status } = yield* Fiber.join(run)
        assert.deepStrictEqual([status, (yield* client.state).isConnected], ["cancelled", true])
      }),
    60_000
  )
})

describe("servers", () => {
  it.live(
    "of other packages work: filesystem and memory",
    () =>
      Effect.gen(function* () {
        const folder = mkdtempSync(join(tmpdir(), "effect-agent-mcp-"))
        writeFileSync(join(folder, "note.txt"), "a note")
        const agent = yield* Agent.make({ model: "any" })
        const [files, memory] = yield* Effect.all(
          [
            McpClient.connect("files", Servers.program("filesystem", folder)),
            McpClient.connect("memory", {
              ...Servers.program("memory"),
              env: { MEMORY_FILE_PATH: join(folder, "memory.jsonl") }
            })
          ],
          { concurrency: 2 }
        )
        yield* McpTools.join(agent.tools, files, {
          trustHints: true,
          deny: ["write_file"],
          only: ["read_text_file", "write_file"]
        })
        yield* McpTools.join(agent.tools, memory)
        const read = yield* agent.tools.get(McpTools.nameOf("files", "read_text_file"))
        assert.strictEqual(read?.effect, "pure")
        assert.isFalse(yield* agent.tools.has(McpTools.nameOf("files", "write_file")))
        const { newMessages } = yield* agent.prompt("go")
        const [text = "", graph = ""] = texts(newMessages)
        assert.include(text, "a note")
        assert.include(graph, "entities")
      }).pipe(
        Effect.provide(
          ScriptedProvider.layer([
            ScriptedProvider.toolCalls(
              { name: McpTools.nameOf("files", "read_text_file"), params: { path: "note.txt" } },
              { name: McpTools.nameOf("memory", "read_graph"), params: {} }
            ),
            ScriptedProvider.text("done")
          ])
        )
      ),
    60_000
  )

  it.live(
    "get no variable but those that are named",
    () =>
      Effect.gen(function* () {
        process.env["EFFECT_AGENT_TEST_SECRET"] = "sk-secret"
        const { agent } = yield* agentWith(everything, [
          ScriptedProvider.toolCall(name("get-env"), {}),
          ScriptedProvider.text("done")
        ])
        const [env = ""] = texts((yield* agent.prompt("go")).newMessages)
        assert.include(env, '"OWN": "one"')
        assert.notInclude(env, "sk-secret")
      }),
    60_000
  )

  it.live(
    "that do not start fail with the reason, or are tried again",
    () =>
      Effect.gen(function* () {
        const failed = (server: McpClient.Server, options?: McpClient.Options) =>
          Effect.flip(McpClient.connect("bad", server, options))
        const missing = yield* failed({ command: "/no/such/program" })
        assert.deepStrictEqual(
          [missing.reason, missing.detail],
          ["unreachable", "spawn /no/such/program ENOENT"]
        )
        const ended = yield* failed({
          command: process.execPath,
          args: ["-e", "console.error('no licence'); process.exit(3)"]
        })
        assert.deepStrictEqual([ended.reason, ended.stderr], ["unreachable", "no licence"])
        const silent = yield* failed(
          { command: process.execPath, args: ["-e", "setInterval(() => {}, 1000)"] },
          { connectTimeout: "300 millis" }
        )
        assert.strictEqual(silent.reason, "timeout")
        const port = yield* Servers.freePort
        const gone = yield* failed({ url: `http://127.0.0.1:${port}/mcp` })
        assert.strictEqual(gone.reason, "unreachable")
        const later = yield* McpClient.connect(
          "later",
          { url: `http://127.0.0.1:${port}/mcp` },
          { required: false, reconnect: Schedule.spaced("100 millis") }
        )
        assert.strictEqual((yield* later.state).error?.reason, "unreachable")
        yield* Servers.overHttp(port)
        const state = yield* later.states.pipe(
          Stream.filter(({ isConnected }) => isConnected),
          Stream.runHead
        )
        assert.isTrue(Option.isSome(state))
      }),
    60_000
  )
})

const killed = (server: McpClient.Server, kill: Effect.Effect<void>, times: number) =>
  Effect.gen(function* () {
    const steps = Array.from({ length: times }, () => [
      ScriptedProvider.toolCall(name("trigger-long-running-operation"), { duration: 60, steps: 60 }),
      ScriptedProvider.text("killed"),
      ScriptedProvider.toolCall(name("echo"), { message: "back" }),
      ScriptedProvider.text("back")
    ]).flat()
    const { agent, client } = yield* agentWith(server, steps, { reconnect: Schedule.spaced("100 millis") })
    const count = (yield* agent.tools.definitions).length
    let begun = yield* Deferred.make<void>()
    yield* agent.subscribe((event) =>
      event._tag === "ToolExecutionProgress" ? Deferred.succeed(begun, undefined) : Effect.void
    )
    for (let time = 0; time < times; time++) {
      begun = yield* Deferred.make<void>()
      const run = yield* Effect.forkChild(agent.prompt("go"), { startImmediately: true })
      yield* Deferred.await(begun)
      const startedAt = Date.now()
      yield* kill
      const [text = ""] = texts((yield* Fiber.join(run)).newMessages)
      assert.match(text, /^The MCP server all ended its connection/)
      assert.strictEqual((yield* agent.tools.definitions).length, count)
      yield* client.states.pipe(
        Stream.filter(({ isConnected }) => isConnected),
        Stream.runHead
      )
      assert.isBelow(Date.now() - startedAt, 5_000)
      assert.deepStrictEqual(texts((yield* agent.prompt("go")).newMessages), ["Echo: back"])
    }
  })

describe("a server that is killed in the middle of calls", () => {
  const times = Number(process.env["MCP_KILLS"] ?? 5)

  it.live(
    "fails them, and comes back over stdio",
    () =>
      killed(
        everything,
        Effect.promise(async () => {
          for (const pid of await Servers.childrenOf("server-everything")) process.kill(pid, "SIGKILL")
        }),
        times
      ),
    600_000
  )

  it.live(
    "fails them, and comes back over HTTP",
    () =>
      Effect.gen(function* () {
        const port = yield* Servers.freePort
        let child = yield* Servers.overHttp(port)
        const kill = Effect.gen(function* () {
          child.kill("SIGKILL")
          child = yield* Servers.overHttp(port)
        })
        const scope = yield* Effect.scope
        yield* killed(
          { url: `http://127.0.0.1:${port}/mcp` },
          Effect.provideService(kill, Scope.Scope, scope),
          times
        )
      }),
    600_000
  )
})
