import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Path } from "effect"
import { Agent } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { Tools } from "effect-agent/tools"
import { Keeping } from "../../src/tools/Keeping.ts"

describe("a keeper of the tools", () => {
  it.live("that fails leaves files and folders as they are: write, edit and shell do nothing", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const paths = yield* Path.Path
      const root = yield* files.realPath(yield* files.makeTempDirectoryScoped())
      yield* files.writeFileString(paths.join(root, "a.txt"), "one")
      const seen: Array<readonly [path: string, now: string, content: string]> = []
      const keeper = {
        file: Effect.fnUntraced(function* ({
          content,
          path,
          through
        }: {
          readonly content: Uint8Array
          readonly path: string
          readonly through: string
        }) {
          const now = yield* Effect.orElseSucceed(files.readFileString(through), () => "")
          seen.push([paths.relative(root, path), now, new TextDecoder().decode(content)])
          return yield* Effect.fail({ detail: "the disk is full" })
        }),
        command: () => Effect.fail({ detail: "the disk is full" })
      }
      const provider = yield* ScriptedProvider.make([
        ScriptedProvider.toolCall("write", { path: "a.txt", content: "two" }),
        ScriptedProvider.toolCall("edit", { path: "a.txt", oldText: "one", newText: "three" }),
        ScriptedProvider.toolCall("write", { path: "new.txt", content: "two" }),
        ScriptedProvider.toolCall("shell", { command: "echo two > a.txt" }),
        ScriptedProvider.text("done")
      ])
      const agent = yield* Agent.make({ model: "any", tools: Tools.make({ root }) }).pipe(
        Effect.provideService(Keeping, keeper),
        Effect.provide(provider.layer)
      )
      const { newMessages } = yield* agent.prompt("go")
      const results = newMessages.flatMap((message) => (message.role === "toolResult" ? [message] : []))
      assert.deepStrictEqual(
        results.map(({ outcome }) => outcome),
        ["error", "error", "error", "error"]
      )
      for (const result of results) assert.include(JSON.stringify(result), "the disk is full")
      assert.deepStrictEqual(yield* files.readDirectory(root), ["a.txt"])
      assert.strictEqual(yield* files.readFileString(paths.join(root, "a.txt")), "one")
      assert.deepStrictEqual(seen, [
        ["a.txt", "one", "two"],
        ["a.txt", "one", "three"],
        ["new.txt", "", "two"]
      ])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
