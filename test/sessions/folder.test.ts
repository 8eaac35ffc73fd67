import { NodeHttpClient, NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { LLMock } from "@copilotkit/aimock"
import { Effect, FileSystem, Path, Redacted } from "effect"
import { Agent, Message, Transcript } from "effect-agent"
import { OpenAiCompatible } from "effect-agent/providers"
import { Tools } from "effect-agent/tools"

/** A server that plays a session of four turns: find the fault, look at it, mend it, run it. */
const server = Effect.acquireRelease(
  Effect.promise(async () => {
    const mock = new LLMock({ port: 0 })
    const turn = (index: number, name: string, args: object) =>
      mock.on({ turnIndex: index }, { toolCalls: [{ name, arguments: JSON.stringify(args) }] })
    turn(0, "grep", { pattern: "a - b" })
    turn(1, "read", { path: "src/sum.mjs" })
    turn(2, "edit", { path: "src/sum.mjs", oldText: "a - b", newText: "a + b" })
    turn(3, "shell", { command: "node src/main.mjs > result.txt" })
    mock.on({ turnIndex: 4 }, { content: "Fixed: 2 + 3 is 5." })
    await mock.start()
    return mock
  }),
  (mock) => Effect.promise(() => mock.stop())
)

describe("a session over HTTP", () => {
  it.live("greps, reads, edits and runs, and leaves the folder exactly right", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const root = yield* fs.makeTempDirectoryScoped()
      const file = (name: string) => path.join(root, name)
      yield* fs.makeDirectory(file("src"))
      yield* fs.writeFileString(file("src/sum.mjs"), "export const sum = (a, b) => a - b\n")
      yield* fs.writeFileString(
        file("src/main.mjs"),
        'import { sum } from "./sum.mjs"\nconsole.log(sum(2, 3))\n'
      )
      const mock = yield* server

      const agent = yield* Agent.make({ model: "gpt-5-mini", tools: Tools.make({ root }) }).pipe(
        Effect.provide(
          OpenAiCompatible.layer({
            ...OpenAiCompatible.presets.openAi,
            baseUrl: `${mock.url}/v1`,
            apiKey: Redacted.make("test")
          })
        )
      )
      const { message, newMessages, status, turns } = yield* agent.prompt("2 + 3 comes out wrong. Mend it.")

      assert.strictEqual(status, "completed")
      assert.strictEqual(turns, 5)
      assert.strictEqual(message === undefined ? "" : Message.textOf(message), "Fixed: 2 + 3 is 5.")
      assert.deepStrictEqual(
        newMessages.flatMap((one) => (one.role === "toolResult" ? [`${one.toolName} ${one.outcome}`] : [])),
        ["grep success", "read success", "edit success", "shell success"]
      )
      assert.deepStrictEqual(Transcript.violations(newMessages), [])
      assert.deepStrictEqual((yield* fs.readDirectory(root, { recursive: true })).sort(), [
        "result.txt",
        "src",
        "src/main.mjs",
        "src/sum.mjs"
      ])
      assert.strictEqual(
        yield* fs.readFileString(file("src/sum.mjs")),
        "export const sum = (a, b) => a + b\n"
      )
      assert.strictEqual(yield* fs.readFileString(file("result.txt")), "5\n")
    }).pipe(Effect.provide([NodeServices.layer, NodeHttpClient.layerUndici]))
  )
})
