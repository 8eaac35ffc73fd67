import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, Message } from "effect-agent"
import { JsonlSessionStore, SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import { Tools } from "effect-agent/tools"
import { mkdtempSync, readFileSync, realpathSync, existsSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as KeptFiles from "../../src/cli/agent/KeptFiles.ts"
import * as PromptChanges from "../../src/cli/files/PromptChanges.ts"
import { Keeping } from "../../src/tools/Keeping.ts"

const write = (path: string, content: string) => ScriptedProvider.toolCall("write", { path, content })
const done = ScriptedProvider.text("done")

/** An open session whose agent has the keeper of the program. */
const setUp = Effect.fnUntraced(function* (script: ScriptedProvider.Script) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "effect-agent-back-")))
  const directory = mkdtempSync(join(tmpdir(), "effect-agent-back-"))
  const store = SessionStore.make(yield* JsonlSessionStore.storage({ directory }))
  const kept = yield* KeptFiles.inFiles({ directory })
  const session = yield* store.create({ cwd: root })
  const keepers = KeptFiles.shared(kept)
  const keeper = keepers.keeper(session.id)
  const provider = yield* ScriptedProvider.make(script)
  const agent = yield* Agent.make({
    model: "any",
    tools: Tools.make({ root }),
    session,
    hooks: keeper.hooks(root)
  }).pipe(Effect.provideService(Keeping, keeper), Effect.provide(provider.layer))
  const at = (name: string) => join(root, name)
  const read = (name: string) => (existsSync(at(name)) ? readFileSync(at(name), "utf8") : undefined)
  const contents = store.read(session.id)
  const open = keepers.open(session.id)
  return { agent, at, contents, open, provider, read }
})

describe("files of an open session", () => {
  it.live("go back and forth by prompts, with conflicts, and the next prompt tells the model", () =>
    Effect.gen(function* () {
      const { agent, at, contents, open, provider, read } = yield* setUp(
        [
          [write("a.txt", "1"), done],
          [write("a.txt", "2"), write("b.txt", "2"), done],
          [done, done]
        ].flat()
      )
      yield* agent.prompt("one")
      yield* agent.prompt("two")
      const keeper = yield* open

      // The prompts, and the files that each of them changed.
      const changed = PromptChanges.byPrompt(yield* contents, keeper.current.back)
      assert.deepStrictEqual(
        changed.map(({ items, prompt }) => [
          prompt?.text,
          items.flatMap(({ changes }) => changes.map(({ path }) => path))
        ]),
        [
          ["one", [at("a.txt")]],
          ["two", [at("a.txt"), at("b.txt")]]
        ]
      )

      // Undo of the last prompt, where the person has changed a file since.
      writeFileSync(at("a.txt"), "mine")
      const count = changed.at(-1)?.items.length ?? 0
      const plan = yield* keeper.plan("back", count)
      assert.deepStrictEqual(plan.conflicts, [at("a.txt")])
      const [conflict] = plan.writes.filter(({ path }) => path === at("a.txt"))
      assert(conflict !== undefined)
      assert.deepStrictEqual(
        [yield* keeper.text(conflict.from), yield* keeper.text(conflict.to)],
        ["mine", "1"]
      )
      yield* keeper.restore(yield* keeper.plan("back", count, new Set([at("a.txt")])))
      assert.deepStrictEqual([read("a.txt"), read("b.txt")], ["mine", undefined])

      // Redo, then undo of the file too.
      const again = PromptChanges.byPrompt(yield* contents, keeper.current.forth).at(-1)
      assert.strictEqual(again?.prompt?.text, "two")
      yield* keeper.restore(yield* keeper.plan("forth", again?.items.length ?? 0))
      assert.deepStrictEqual([read("a.txt"), read("b.txt")], ["mine", "2"])
      yield* keeper.restore(yield* keeper.plan("back", count))
      assert.deepStrictEqual([read("a.txt"), read("b.txt")], ["1", undefined])

      // The first versions of the files.
      const first = yield* Effect.forEach(keeper.firstVersions, ([path, before]) =>
        Effect.map(keeper.text(before), (text) => [path, text])
      )
      assert.deepStrictEqual(first, [[at("a.txt"), ""]])

      yield* agent.prompt("three")
      yield* agent.prompt("four")
      const last = (yield* provider.requests).slice(-2).map(({ messages }) => messages.map(Message.textOf))
      const told = last.map((texts) => texts.filter((text) => text.includes("other versions")))
      const words =
        "The user has brought files to other versions. Read them again before you change them:\nremoved b.txt\nrestored a.txt"
      assert.deepStrictEqual(told, [[words], [words]])
      assert.strictEqual(PromptChanges.of(yield* contents).at(-2)?.text, "three")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
