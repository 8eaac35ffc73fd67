import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger, Stream } from "effect"
import { Message, Tool, ToolRegistry } from "effect-agent"
import { McpClient, McpTools } from "effect-agent/mcp"

const tool = (name: string, more: object = {}): McpClient.ServerTool => ({
  name,
  inputSchema: { type: "object" },
  ...more
})

const none = Effect.succeed([])

/** A client of a server that has these states, one after the other. */
const clientWith = (states: ReadonlyArray<McpClient.State>): McpClient.McpClient => ({
  name: "files",
  state: Effect.succeed(states[0] ?? assert.fail("no state")),
  states: Stream.fromIterable(states),
  callTool: (name) => Effect.succeed(Tool.output([Message.text(`ran ${name}`)])),
  resources: none,
  resourceTemplates: none,
  readResource: () => none,
  prompts: none,
  prompt: () => none
})

const stateOf = (...tools: ReadonlyArray<McpClient.ServerTool>): McpClient.State => ({
  isConnected: true,
  error: undefined,
  tools,
  instructions: undefined,
  hasResources: false
})

describe("names of tools", () => {
  it("cannot be equal for two tools, and are names that providers accept", () => {
    const pairs = [
      ["a", "b__c"],
      ["a__b", "c"],
      ["a_", "b"],
      ["a", "_b"],
      ["a.b", "c"],
      ["a_b", "c"],
      ["a", "x".repeat(80)],
      ["a", `${"x".repeat(79)}y`]
    ] as const
    const names = pairs.map(([server, name]) => McpTools.nameOf(server, name))
    assert.strictEqual(new Set(names).size, pairs.length)
    for (const name of names) assert.match(name, /^mcp__[\w-]{1,59}$/)
    assert.strictEqual(McpTools.nameOf("files", "read_file"), "mcp__files__read_file")
  })
})

describe("tools of a server", () => {
  it.effect("follow its list, keep what did not change, and leave out what is denied", () =>
    Effect.gen(function* () {
      const registry = yield* ToolRegistry.make()
      const read = tool("read", { annotations: { readOnlyHint: true } })
      const first = stateOf(read, tool("write", { annotations: { idempotentHint: true } }), tool("secret"))
      const names = Effect.map(registry.definitions, (tools) => tools.map(({ name }) => name))
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* McpTools.join(registry, clientWith([first]), { deny: ["secret"], trustHints: true })
          assert.deepStrictEqual(yield* names, ["mcp__files__read", "mcp__files__write"])
          const before = yield* registry.get("mcp__files__read")
          assert.deepStrictEqual([before?.effect, before?.trust], ["pure", "untrusted"])
          assert.strictEqual((yield* registry.get("mcp__files__write"))?.effect, "idempotent")
        })
      )
      assert.deepStrictEqual(yield* names, [])
    })
  )

  it.effect("are as they claim only where the application trusts them, and a change is named", () =>
    Effect.gen(function* () {
      const registry = yield* ToolRegistry.make()
      const lines: Array<string> = []
      const [before, after] = [false, true].map((readOnlyHint) =>
        stateOf(tool("wipe", { annotations: { readOnlyHint } }))
      )
      if (before === undefined || after === undefined) return assert.fail("no states")
      const client = { ...clientWith([before, after]), state: Effect.succeed(before) }
      const leftOut = (line: string) => Effect.sync(() => void lines.push(line))
      yield* McpTools.join(registry, client, { leftOut })
      yield* Effect.yieldNow
      assert.isUndefined((yield* registry.get("mcp__files__wipe"))?.effect)
      assert.match(lines.join("\n"), /^The MCP server files changed its tool wipe: /)
    }).pipe(Effect.scoped)
  )

  it.effect("that cannot work are left out and said once, and texts without end are cut", () =>
    Effect.gen(function* () {
      const registry = yield* ToolRegistry.make()
      const lines: Array<string> = []
      const logger = Logger.make(({ message }) => void lines.push(String(message)))
      let deep: object = {}
      for (let level = 0; level < 900; level++) deep = { type: "object", properties: { next: deep } }
      const state = stateOf(
        tool("long", { description: "x".repeat(50_000) }),
        tool("deep", { inputSchema: deep }),
        tool("text", { inputSchema: { type: "string" } }),
        tool("many", { inputSchema: { type: "object", description: "y".repeat(300_000) } })
      )
      const again = { ...state, tools: [...state.tools] }
      const client = { ...clientWith([state, again]), state: Effect.succeed(state) }
      yield* McpTools.join(registry, client).pipe(Effect.provide(Logger.layer([logger])))
      yield* Effect.yieldNow
      const [definition, ...others] = yield* registry.definitions
      assert.strictEqual(definition?.name, "mcp__files__long")
      assert.match(definition?.description ?? "", /^x{16000} … \(cut after 16000 of 50000 characters\)$/)
      assert.deepStrictEqual(others, [])
      assert.deepStrictEqual(
        lines.map((line) => line.slice(0, line.indexOf(" is left out"))),
        ["deep", "text", "many"].map((name) => `The tool ${name} of the MCP server files`)
      )
      assert.match(
        lines.join("\n"),
        /nests deeper than 256 levels\n.*string.*\n.*more than 200000 characters/
      )
    }).pipe(Effect.scoped)
  )

  it.live("are those of its list that are as the protocol says, whatever the others are", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      let deep: object = {}
      for (let level = 0; level < 900; level++) deep = { type: "object", properties: { next: deep } }
      const good = { name: "good", inputSchema: { anyOf: [{ type: "object" }, { type: "object" }] } }
      const tools = [
        good,
        { name: "deep", inputSchema: deep },
        { name: "none" },
        { name: "text", inputSchema: { type: "string" } },
        { name: "null", inputSchema: null },
        { name: 5, inputSchema: { type: "object" } },
        "odd",
        { name: "out", inputSchema: { type: "object" }, outputSchema: { type: "array" } }
      ]
      const client = yield* McpClient.connect("town", { transport: () => serving(tools) })
      const { tools: listed } = yield* client.state
      assert.deepStrictEqual(
        listed.map(({ inputSchema, name }) => [name, inputSchema.type]),
        [
          ["good", "object"],
          ["out", "object"]
        ]
      )
      const leftOut = (line: string) => Effect.sync(() => void lines.push(line))
      yield* McpTools.join(yield* ToolRegistry.make(), client, { leftOut })
      assert.strictEqual(lines.length, 6)
      for (const line of lines) assert.match(line, /^The tool .+ of the MCP server town is left out: ./)
    }).pipe(Effect.scoped)
  )
})

/** A transport to a server that has these tools. */
const serving = (tools: ReadonlyArray<unknown>) => {
  const transport: ReturnType<McpClient.CustomServer["transport"]> = {
    start: async () => {},
    close: async () => transport.onclose?.(),
    send: async (message) => {
      if (!("method" in message) || !("id" in message)) return
      const info = {
        protocolVersion: "2025-06-18",
        capabilities: { tools: {} },
        serverInfo: { name: "t", version: "1" }
      }
      const result = message.method === "initialize" ? info : message.method === "tools/list" ? { tools } : {}
      transport.onmessage?.({ jsonrpc: "2.0", id: message.id, result })
    }
  }
  return transport
}
