/** A server in a process of its own, on sessions and logs in files. Arguments: the folder and the port. */
import { NodeHttpServer, NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, Layer, Redacted } from "effect"
import { Agent, Tool } from "effect-agent"
import { Agents, JsonlRunLogStore, LiveRuns, Server } from "effect-agent/server"
import { JsonlSessionStore } from "effect-agent/sessions"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { HttpServer } from "effect/http"
import { createServer } from "node:http"
import { join } from "node:path"
import { token } from "../server/http.ts"

const [, , folder = "", port = "0"] = process.argv

const look = Tool.make({ name: "look", description: "Looks.", execute: () => Effect.succeed("a mess") })
const delta = (at: number) => [Step.text([`${at} `]), Step.sleep("3 millis")]
const answer = ScriptedProvider.turn(
  Step.start,
  ...Array.from({ length: 400 }, (_, at) => delta(at)).flat(),
  Step.finish("stop")
)
const call = ScriptedProvider.toolCall("look", {})
const agents = Agents.layer(({ session }) => Agent.make({ model: "scripted", tools: [look], session })).pipe(
  Layer.provide(ScriptedProvider.layer([call, call, answer, call, answer]))
)
const runs = LiveRuns.layer({ flush: 1 }).pipe(
  Layer.provide([
    agents,
    JsonlSessionStore.layer({ directory: join(folder, "sessions") }),
    JsonlRunLogStore.layer({ directory: join(folder, "runs") })
  ])
)
const listening = Layer.effectDiscard(
  HttpServer.HttpServer.use(({ address }) => Console.log("port" in address ? address.port : 0))
)

listening.pipe(
  Layer.provideMerge(Server.layer({ tokens: [Redacted.make(token)], grace: 0 })),
  // The runs come first: a server that listens without a handler leaves requests without an answer.
  Layer.provide(NodeHttpServer.layer(() => createServer(), { host: "127.0.0.1", port: Number(port) })),
  Layer.provide(runs),
  Layer.provide(NodeServices.layer),
  Layer.launch,
  NodeRuntime.runMain
)
