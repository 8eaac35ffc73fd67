/**
 * The transports of MCP servers: a program of this machine, or an address.
 */
import type * as Official from "@modelcontextprotocol/client"
import type * as OfficialStdio from "@modelcontextprotocol/client/stdio"
import * as Effect from "effect/Effect"
import { McpError } from "./McpError.ts"
import type { HttpServer, Server, StdioServer } from "./Model.ts"

/** The official package, loaded when the first server is connected. */
export interface Package {
  readonly main: typeof Official
  readonly stdio: typeof OfficialStdio
}

export const load = (server: string): Effect.Effect<Package, McpError> =>
  Effect.tryPromise({
    try: async () => ({
      main: await import("@modelcontextprotocol/client"),
      stdio: await import("@modelcontextprotocol/client/stdio")
    }),
    catch: () =>
      new McpError({
        server,
        reason: "notInstalled",
        detail: "install the package @modelcontextprotocol/client"
      })
  })

/** A transport that has not started. */
export interface Transport {
  readonly transport: Official.Transport
  /** The last lines on stderr. */
  readonly stderr: () => string
  /** Gives the transport the code of an OAuth redirect. */
  readonly finishAuth: ((code: string) => Promise<void>) | undefined
}

export const isHttp = (server: Server): server is HttpServer => "url" in server

export const make = (found: Package, server: Server): Transport => {
  if ("transport" in server) return { transport: server.transport(), stderr: () => "", finishAuth: undefined }
  return isHttp(server) ? http(found, server) : stdio(found, server)
}

const http = ({ main }: Package, { headers = {}, oauth, url }: HttpServer): Transport => {
  const transport = new main.StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...headers } },
    ...(oauth === undefined ? {} : { authProvider: oauth.provider }),
    // A stream that broke is no reason to wait: the connection is made again.
    reconnectionOptions: {
      initialReconnectionDelay: 100,
      maxReconnectionDelay: 1_000,
      reconnectionDelayGrowFactor: 2,
      maxRetries: 2
    }
  })
  return { transport, stderr: () => "", finishAuth: (code) => transport.finishAuth(code) }
}

/** Characters of stderr that are kept. */
const kept = 2_000

const stdio = (found: Package, { args = [], command, cwd, env }: StdioServer): Transport => {
  // The package adds PATH, HOME and the like, and no other variable of this process.
  const transport = new found.stdio.StdioClientTransport({
    command,
    args: [...args],
    stderr: "pipe",
    ...(env === undefined ? {} : { env: { ...env } }),
    ...(cwd === undefined ? {} : { cwd })
  })
  let written = ""
  transport.stderr?.on("data", (chunk: unknown) => {
    written = (written + String(chunk)).slice(-kept)
  })
  return { transport, stderr: () => written.trim(), finishAuth: undefined }
}
