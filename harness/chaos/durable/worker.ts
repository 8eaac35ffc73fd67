/**
 * A process that runs durable runs and serves them over HTTP: `worker.mjs SETTINGS`, which are JSON. It prints `ready PORT`.
 *
 * It reads lines: `arm WRITE before|after` lets it die at a write, `writes` lets it print how many there were.
 */
import { Effect, Layer, Redacted } from "effect"
import { HttpServer } from "effect/http"
import { NodeHttpServer } from "@effect/platform-node"
import { Server } from "effect-agent/server"
import { createServer } from "node:http"
import { flushCompileCache } from "node:module"
import { writeSync } from "node:fs"
import { createInterface } from "node:readline"
import * as Deaths from "./deaths.ts"
import * as Stack from "./stack.ts"

const settings: Stack.Settings & { readonly token: string; readonly point: Deaths.Point } = JSON.parse(
  process.argv[2] ?? "{}"
)
const print = (line: string): void => void writeSync(1, `${line}\n`)

Deaths.watch(settings.url)
Deaths.arm(settings.point)

createInterface({ input: process.stdin }).on("line", (line) => {
  const [word, write = "0", when] = line.split(" ")
  if (word === "arm") Deaths.arm({ write: Number(write), isAfter: when === "after" })
  if (word === "writes") print(`writes ${Deaths.count()}`)
  if (word === "rss") print(`rss ${Math.round(process.memoryUsage.rss() / 2 ** 20)}`)
  if (word === "cpu") {
    const { system, user } = process.cpuUsage()
    print(`cpu ${Math.round((system + user) / 1000)}`)
  }
})

const node = NodeHttpServer.layer(() => createServer(), { host: "127.0.0.1", port: 0 })
/** What is compiled serves the next process: this one may not come to its end. */
const compiled = Effect.sync(() => setTimeout(() => flushCompileCache(), 500).unref())
const announced = Layer.effectDiscard(
  Effect.map(HttpServer.HttpServer, ({ address }) =>
    print(`ready ${"port" in address ? address.port : 0}`)
  ).pipe(Effect.andThen(compiled))
)
const app = announced.pipe(
  Layer.provideMerge(Server.layer({ tokens: [Redacted.make(settings.token)], grace: 0 })),
  Layer.provideMerge(Stack.runs(settings)),
  Layer.provideMerge(node)
)

const ended = new AbortController()
process.once("SIGTERM", () => ended.abort())
await Effect.runPromise(Layer.launch(app), { signal: ended.signal }).catch((error: unknown) => {
  if (!ended.signal.aborted) print(`failed ${String(error)}`)
  process.exitCode = 1
})
process.exit()
