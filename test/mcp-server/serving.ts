/**
 * The official client, connected with a server in this process.
 */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { Effect, Layer, type Scope } from "effect"
import { HttpRouter } from "effect/http"
import { ToolRegistry } from "effect-agent"
import { AgentMcpServer } from "effect-agent/mcp"

export interface Connected {
  readonly client: Client
  /** The names of the tools, each time the server has said that they changed. */
  readonly lists: ReadonlyArray<ReadonlyArray<string>>
}

export type Mode = "legacy" | "auto"

/** A client of a server that has these tools and options. */
export const connected = (
  mode: Mode,
  registry: ToolRegistry.ToolRegistry["Service"],
  options: AgentMcpServer.Options<unknown, Scope.Scope> = {}
): Effect.Effect<Connected, never, Scope.Scope> =>
  Effect.gen(function* () {
    const context = yield* Effect.context()
    const served = AgentMcpServer.layerHttp({ name: "test", version: "1.0.0", ...options }).pipe(
      Layer.provide(Layer.succeed(ToolRegistry.ToolRegistry, registry)),
      // The clock and the policy of the test.
      Layer.provide(Layer.succeedContext(context))
    )
    const { handler } = yield* Effect.acquireRelease(
      Effect.sync(() => HttpRouter.toWebHandler(served, { disableLogger: true })),
      ({ dispose }) => Effect.promise(dispose)
    )
    const lists: Array<ReadonlyArray<string>> = []
    const onChanged = (_: unknown, tools: ReadonlyArray<{ readonly name: string }> | null) =>
      void lists.push((tools ?? []).map(({ name }) => name))
    const client = yield* Effect.acquireRelease(
      Effect.promise(async () => {
        const client = new Client(
          { name: "test", version: "1.0.0" },
          { versionNegotiation: { mode }, listChanged: { tools: { onChanged } } }
        )
        await client.connect(
          new StreamableHTTPClientTransport(new URL("http://localhost/mcp"), {
            fetch: (url, init) => handler(new Request(url, init))
          })
        )
        return client
      }),
      (client) => Effect.promise(() => client.close())
    )
    return { client, lists }
  })
