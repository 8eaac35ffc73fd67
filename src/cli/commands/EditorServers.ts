/** The MCP servers that an editor wants a session to have. */
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import type { Given } from "../../acp/AcpAgent.ts"
import * as McpClient from "../../mcp/McpClient.ts"
import * as McpTools from "../../mcp/McpTools.ts"
import type { ToolRegistry } from "../../ToolRegistry.ts"
import { UsageError } from "../ExitCode.ts"
import { noticing } from "../agent/McpServers.ts"

type Server = Given["mcpServers"][number]

/** Adds the tools of all servers, until the scope closes. A server that does not start has none. */
export const join = Effect.fnUntraced(function* (
  tools: ToolRegistry["Service"],
  servers: ReadonlyArray<Server>
) {
  // Their programs end side by side.
  const scope = yield* Scope.fork(yield* Effect.scope, "parallel")
  yield* Effect.forEach(servers, (server) => joined(tools, server), {
    concurrency: "unbounded",
    discard: true
  }).pipe(Scope.provide(scope))
})

const joined = Effect.fnUntraced(function* (tools: ToolRegistry["Service"], server: Server) {
  const client = yield* Effect.mapError(
    McpClient.connect(server.name, addressOf(server)),
    ({ message }) => new UsageError({ detail: message })
  )
  const leftOut = yield* noticing
  yield* McpTools.join(tools, client, { resources: true, leftOut })
  const { error } = yield* client.state
  if (error !== undefined) yield* leftOut(`${error.message}. It is tried again.`)
})

const addressOf = (server: Server): McpClient.Server =>
  "command" in server
    ? { command: server.command, args: server.args, env: recordOf(server.env) }
    : { url: server.url, headers: recordOf(server.headers) }

const recordOf = (pairs: ReadonlyArray<{ readonly name: string; readonly value: string }>) =>
  Object.fromEntries(pairs.map(({ name, value }) => [name, value]))
