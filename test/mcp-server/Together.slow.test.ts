import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule, type Scope, Stream } from "effect"
import { Agent, Message } from "effect-agent"
import { McpClient, McpTools } from "effect-agent/mcp"
import { ScriptedProvider } from "effect-agent/testing"
import { type ChildProcess, spawn } from "node:child_process"
import { join } from "node:path"
import { freePort } from "../mcp/servers.ts"

const args = ["--conditions", "effect-agent-source", join(import.meta.dirname, "program.ts")]

/** The program over HTTP, which answers. */
const overHttp = (port: number): Effect.Effect<ChildProcess, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => spawn(process.execPath, [...args, String(port)], { stdio: "ignore" })),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  ).pipe(
    Effect.tap(() =>
      Effect.tryPromise(() => fetch(`http://127.0.0.1:${port}/mcp`)).pipe(
        Effect.retry({ schedule: Schedule.spaced("50 millis"), times: 400 }),
        Effect.orDie
      )
    )
  )

const servers = [
  ["stdio", Effect.succeed<McpClient.Server>({ command: process.execPath, args })],
  [
    "HTTP",
    Effect.gen(function* () {
      const port = yield* freePort
      yield* overHttp(port)
      return { url: `http://127.0.0.1:${port}/mcp` }
    })
  ]
] as const

const named = (tool: string) => McpTools.nameOf("own", tool)
const call = (tool: string, params: object = {}) => ({ name: named(tool), params: { ...params } })

/** Waits until the agent has these tools of the server. */
const until = (agent: Agent.Agent, ...tools: ReadonlyArray<string>) =>
  agent.tools.changes.pipe(
    Stream.map((definitions) => definitions.map(({ name }) => name).sort()),
    Stream.filter((names) => names.join() === tools.map(named).sort().join()),
    Stream.runHead
  )

const textOf = (content: ReadonlyArray<Message.Text | Message.Image>) =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("")

describe.each(servers)("a server and a client of this package over %s", (transport, server) => {
  it.live(
    "are one registry: results, progress, and the tools that come and go",
    () =>
      Effect.gen(function* () {
        const client = yield* McpClient.connect("own", yield* server)
        const agent = yield* Agent.make({ model: "any" })
        yield* McpTools.join(agent.tools, client, { trustHints: true })
        const all = ["agent", "learn", "forget", "draw", "count"]
        yield* until(agent, ...all)
        assert.strictEqual((yield* agent.tools.get(named("draw")))?.effect, "pure")
        const events = Array.from(yield* Stream.runCollect(agent.stream("go")))
        const results = events.flatMap((event) => (event._tag === "ToolExecutionEnd" ? [event] : []))
        const of = (tool: string) => results.find(({ toolName }) => toolName === named(tool))?.result
        assert.deepStrictEqual(
          of("draw")?.content.map(({ type }) => type),
          ["image"]
        )
        assert.deepStrictEqual(of("count")?.details, { count: 2 })
        assert.deepStrictEqual(of("agent")?.content, [Message.text("It rains.")])
        const progress = events.flatMap((event) =>
          event._tag === "ToolExecutionProgress" ? [[event.toolName, textOf(event.partial.content)]] : []
        )
        const said = (tool: string) =>
          progress.flatMap(([name, text]) => (name === named(tool) ? [text] : [])).join("")
        // The official client forgets progress that arrives in one chunk with the result, as pipes may bring it.
        if (transport === "HTTP") {
          assert.strictEqual(said("draw"), "drawing")
          assert.strictEqual(said("agent"), "It rains.")
        }
        yield* until(agent, ...all, "hum")
        assert.include(Message.textOf((yield* agent.prompt("hum")).newMessages[2] ?? Message.user("")), "hm")
        yield* agent.prompt("forget")
        yield* until(agent, ...all)
      }).pipe(
        Effect.provide(
          ScriptedProvider.layer([
            ScriptedProvider.toolCalls(
              call("draw"),
              call("count", { words: ["a", "b"] }),
              call("agent", { prompt: "How is the weather?" }),
              call("learn")
            ),
            ScriptedProvider.text("done"),
            ScriptedProvider.toolCalls(call("hum")),
            ScriptedProvider.text("done"),
            ScriptedProvider.toolCalls(call("forget")),
            ScriptedProvider.text("done")
          ])
        )
      ),
    60_000
  )
})
