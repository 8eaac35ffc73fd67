import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
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
          yield* McpTools.join(registry, clientWith([first]), { deny: ["secret"] })
          assert.deepStrictEqual(yield* names, ["mcp__files__read", "mcp__files__write"])
          const before = yield* registry.get("mcp__files__read")
          assert.deepStrictEqual([before?.effect, before?.trust], ["pure", "untrusted"])
          assert.strictEqual((yield* registry.get("mcp__files__write"))?.effect, "idempotent")
        })
      )
      assert.deepStrictEqual(yield* names, [])
    })
  )
})
