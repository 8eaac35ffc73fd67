import { Effect } from "effect"
import { Agent } from "effect-agent"
import { McpClient, McpTools } from "effect-agent/mcp"
import { ScriptedProvider } from "effect-agent/testing"

// A program on stdio. A server over HTTP is `{ url: "https://example.com/mcp", headers: { … } }`.
const program = Effect.gen(function* () {
  const agent = yield* Agent.make({ model: "any" })
  const files = yield* McpClient.connect("files", {
    command: process.execPath,
    args: ["-e", server]
  })
  yield* McpTools.join(agent.tools, files, { timeout: "1 minute" })
  console.log((yield* agent.tools.definitions).map(({ name }) => name))
  console.log((yield* agent.prompt("What time is it?")).text)
}).pipe(Effect.scoped)

/** A server of one tool, as short as the protocol allows. */
const server = `
  const reply = (id, result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }))
  const answers = {
    initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "clock", version: "1" } }),
    "tools/list": () => ({ tools: [{ name: "now", description: "The time.", inputSchema: { type: "object" } }] }),
    "tools/call": () => ({ content: [{ type: "text", text: "12:00" }] }),
    ping: () => ({})
  }
  require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
    const { id, method, params } = JSON.parse(line)
    if (id !== undefined && answers[method]) reply(id, answers[method](params))
  })`

const script = [ScriptedProvider.toolCall("mcp__files__now", {}), ScriptedProvider.text("It is noon.")]
await Effect.runPromise(Effect.provide(program, ScriptedProvider.layer(script)))
