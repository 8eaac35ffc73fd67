import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Queue, Sink, Stdio, Stream } from "effect"
import { Tool, ToolRegistry } from "effect-agent"
import { AgentMcpServer } from "effect-agent/mcp"

const ping = Tool.make({ name: "ping", description: "Answers.", execute: () => Effect.succeed("pong") })

const line = (id: number | undefined, method: string, params: object = {}) =>
  JSON.stringify({ jsonrpc: "2.0", ...(id === undefined ? {} : { id }), method, params })

const hello = [
  line(1, "initialize", {
    protocolVersion: "2025-06-18",
    capabilities: {},
    clientInfo: { name: "test", version: "1.0.0" }
  }),
  line(undefined, "notifications/initialized")
]

/** The ids of the responses to a stdin of these chunks, which ends after them. */
const answers = (chunks: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const out = yield* Queue.unbounded<string>()
    const bytes = chunks.map((chunk) => new TextEncoder().encode(chunk))
    const stdio = Stdio.layerTest({
      stdin: Stream.fromIterable(bytes),
      stdout: () =>
        Sink.forEach((chunk: string | Uint8Array) =>
          Queue.offer(out, typeof chunk === "string" ? chunk : new TextDecoder().decode(chunk))
        )
    })
    const server = AgentMcpServer.layerStdio({ name: "test", version: "1.0.0" }).pipe(
      Layer.provide([ToolRegistry.layer(ping), stdio])
    )
    // The server ends with stdin.
    yield* Fiber.await(yield* Effect.forkChild(Layer.launch(server)))
    const text = (yield* Queue.takeAll(out)).join("")
    return text
      .trim()
      .split("\n")
      .map((text): { readonly id: unknown } => JSON.parse(text))
      .map(({ id }) => id)
  })

describe("stdin", () => {
  it.effect("has messages in chunks of any size, and the last may have no line end", () =>
    Effect.gen(function* () {
      const text = [...hello, line(2, "tools/list"), line(3, "tools/call", { name: "ping" })].join("\n")
      assert.sameMembers(yield* answers([text]), [1, 2, 3])
      assert.sameMembers(yield* answers([...text]), [1, 2, 3])
    })
  )

  it.effect("may have lines that are no messages", () =>
    Effect.gen(function* () {
      const deep = `${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`
      const odd = ["no json", "", "{", "1", '"text"', "null", deep]
      const text = [...odd, ...hello, ...odd, line(2, "tools/call", { name: "ping" })].join("\n")
      assert.sameMembers(yield* answers([text]), [1, 2])
    })
  )
})
