/** An application whose agent needs five services: two file tools, a shell, a tool of an MCP server, and a service of its own. */
import { NodeServices } from "@effect/platform-node"
import { Context, Effect, Layer } from "effect"
import { Agent, Message, type Provider, type Session, Tool, ToolRegistry } from "effect-agent"
import { McpClient, McpTools } from "effect-agent/mcp"
import { Agents } from "effect-agent/server"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { ReadTool, ShellTool, WriteTool } from "effect-agent/tools"
import { program } from "../mcp/servers.ts"

/** A service of the application. */
class Desk extends Context.Service<Desk, { readonly name: string }>()("test/doors/Desk") {}

const desk = Tool.make({
  name: "desk",
  description: "Says which desk this is.",
  execute: () => Effect.map(Desk, ({ name }) => name)
})

const toolsOf = (root: string) =>
  [
    ReadTool.make({ root }),
    WriteTool.make({ root }),
    ShellTool.make({ root, sandbox: "auto" }),
    desk
  ] as const

/** The calls of a run, and what the model reads of their results. */
export const calls = {
  read: { path: "a.txt" },
  write: { path: "b.txt", content: "beta" },
  shell: { command: "cat a.txt && echo $((40 + 2))" },
  mcp__everything__echo: { message: "ping" },
  desk: {}
}

/** Asks for the calls, and then answers with their results as JSON. */
const turn = ({ messages }: Provider.ModelRequest) => {
  const results = messages.slice(messages.findLastIndex(({ role }) => role === "assistant") + 1)
  return results.some(({ role }) => role === "toolResult")
    ? ScriptedProvider.text(JSON.stringify(Object.fromEntries(results.flatMap(shown))))
    : ScriptedProvider.turn(
        ...Object.entries(calls).map(([name, params]) => Step.toolCall(name, params)),
        Step.finish("toolUse")
      )
}

const shown = (message: Message.Message) =>
  message.role === "toolResult"
    ? [[message.toolName, { isError: message.isError, text: Message.textOf(message) }] as const]
    : []

const provider = ScriptedProvider.layer(Array.from({ length: 100 }, () => turn))
const services = Layer.mergeAll(NodeServices.layer, provider, Layer.succeed(Desk, { name: "the desk" }))

/** Makes an agent over a folder with the file `a.txt`. */
const agentOf = (root: string, session?: Session.Session) =>
  Effect.gen(function* () {
    const agent = yield* Agent.make({
      model: "any",
      tools: toolsOf(root),
      ...(session === undefined ? {} : { session })
    })
    yield* McpTools.join(agent.tools, yield* McpClient.connect("everything", program("everything")))
    return agent
  })

/** The agents of a server. */
export const agents = (root: string) =>
  Agents.layer(({ session }) => agentOf(root, session)).pipe(Layer.provide(services))

/** What an MCP server serves: the agent and its tools. */
export const mcp = (root: string) => ({
  agent: { make: agentOf(root) },
  services: Layer.provideMerge(ToolRegistry.layer(...toolsOf(root)), services)
})
