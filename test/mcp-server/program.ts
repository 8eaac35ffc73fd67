/** A program with a server on stdio, or over HTTP at the port that it is given, whose tool `learn` adds a tool. */
import { NodeHttpServer, NodeRuntime, NodeServices } from "@effect/platform-node"
import { Effect, Layer, Logger, Schema } from "effect"
import { HttpRouter } from "effect/http"
import { Agent, Message, Tool, ToolRegistry } from "effect-agent"
import { AgentMcpServer } from "effect-agent/mcp"
import { ScriptedProvider } from "effect-agent/testing"
import { createServer } from "node:http"

const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

const registry = Effect.runSync(ToolRegistry.make())

const forget = Tool.make({
  name: "forget",
  description: "Removes the tool hum.",
  execute: () => registry.unregister("hum")
})

const hum = Tool.make({
  name: "hum",
  description: "Hums.",
  execute: () => Effect.succeed("hm")
})

const learn = Tool.make({
  name: "learn",
  description: "Adds the tool hum.",
  execute: () => Effect.as(registry.register(hum), "learned")
})

const draw = Tool.make({
  name: "draw",
  description: "Draws.",
  effect: "pure",
  execute: () =>
    Effect.gen(function* () {
      const { progress } = yield* Tool.ToolContext
      yield* progress(Tool.output("drawing"))
      return Tool.output([Message.image(pixel, "image/png")])
    })
})

const count = Tool.make({
  name: "count",
  description: "Counts.",
  params: Schema.Struct({ words: Schema.Array(Schema.String) }),
  success: Schema.Struct({ count: Schema.Int }),
  execute: ({ words }) => Effect.succeed({ count: words.length })
})

const tools = Layer.effect(
  ToolRegistry.ToolRegistry,
  Effect.as(
    Effect.forEach([learn, forget, draw, count], (tool: Tool.Runnable) => registry.register(tool)),
    registry
  )
)

const make = Agent.make({ model: "any" }).pipe(
  Effect.provide(ScriptedProvider.layer([ScriptedProvider.text(["It ", "rains."])]))
)
const options = { name: "own", version: "1.0.0", agent: { make } }

const port = process.argv[2]

const served =
  port === undefined
    ? AgentMcpServer.layerStdio(options).pipe(Layer.provide(tools), Layer.provide(NodeServices.layer))
    : HttpRouter.serve(Layer.provide(AgentMcpServer.layerHttp(options), tools), {
        disableLogger: true,
        disableListenLog: true
      }).pipe(
        Layer.provide(NodeHttpServer.layer(() => createServer(), { port: Number(port), host: "127.0.0.1" }))
      )

NodeRuntime.runMain(
  Layer.launch(Layer.provide(served, Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])))
)
