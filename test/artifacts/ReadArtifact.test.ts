import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent, Message } from "effect-agent"
import { ArtifactStore, ReadArtifact } from "effect-agent/artifacts"
import { ScriptedProvider } from "effect-agent/testing"
import { resultTexts, toolResults } from "../behaviour/play.ts"

type Params = Parameters<ReturnType<typeof ReadArtifact.make>["execute"]>[0]

/** Reads a text as an artifact. */
const reader = (text: string, maxCharacters = 500) => {
  const tool = ReadArtifact.make({ maxCharacters })
  const store = Layer.effectDiscard(
    ArtifactStore.ArtifactStore.use((store) =>
      store.put({ id: "a", runId: "r", toolCallId: "c", toolName: "t", mediaType: "text/plain", text })
    )
  ).pipe(Layer.provideMerge(ArtifactStore.layerMemory()))
  return (params: Omit<Params, "id">) =>
    tool.execute({ id: "a", ...params }).pipe(Effect.map(Message.textOf), Effect.provide(store))
}

/** Half a pair of surrogates. */
const halves = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/

/** A page without its last line, and that line. */
const parts = (page: string): readonly [body: string, note: string] => {
  const at = page.lastIndexOf("\n")
  return [page.slice(0, Math.max(0, at)), page.slice(at + 1)]
}

describe("read_artifact", () => {
  it.effect("all lines can be read by following the offsets", () =>
    Effect.gen(function* () {
      const text = Array.from({ length: 300 }, (_, index) => `${index} ${"é".repeat(index % 90)}`).join("\n")
      const read = reader(text)
      const pages: Array<string> = []
      for (let offset: number | undefined = 1; offset !== undefined; ) {
        const [body, note] = parts(yield* read({ offset }))
        assert.isAtMost(body.length, 500)
        pages.push(body)
        const [, next] = /next: offset (\d+)/.exec(note) ?? []
        offset = next === undefined ? undefined : Number(next)
      }
      assert.strictEqual(pages.join("\n"), text)
      assert.isAbove(pages.length, 20)
    })
  )

  it.effect("all characters can be read by following the offsets, whole", () =>
    Effect.gen(function* () {
      const text = "a🎉".repeat(700)
      for (const limit of [1, 2, 100, 10_000]) {
        const read = reader(text, 250)
        let all = ""
        for (let offset: number | undefined = 1; offset !== undefined; ) {
          const [body, note] = parts(yield* read({ offset, limit, unit: "characters" }))
          assert.isFalse(halves.test(body))
          assert.isAtMost(body.length, Math.max(2, Math.min(limit, 250)))
          all += body
          const [, next] = /"offset":(\d+)/.exec(note) ?? []
          offset = next === undefined || all.length > 400 ? undefined : Number(next)
        }
        assert.isTrue(text.startsWith(all))
        assert.isAtLeast(all.length, 400)
      }
    })
  )

  it.effect("a line longer than a page is begun, with the character it begins at", () =>
    Effect.gen(function* () {
      const page = yield* reader(`one\n${"x".repeat(2_000)}\nthree`)({ offset: 2 })
      const [body, note] = parts(page)
      assert.strictEqual(note, "[line 2 of 3 is longer than a page. It begins at character 5]")
      assert.isTrue(
        body.endsWith('\n[characters 5 to 504 of 2010; next: {"unit":"characters","offset":505}]')
      )
    })
  )

  it.effect("the last lines, a line end at the end, and offsets behind it", () =>
    Effect.gen(function* () {
      const read = reader("one\ntwo\n")
      assert.strictEqual(yield* read({}), "one\ntwo\n[lines 1 to 2 of 2]")
      assert.strictEqual(yield* read({ offset: 3 }), "[the artifact ends before that offset: it has 2 lines]")
      assert.strictEqual(
        yield* read({ offset: 9, unit: "characters" }),
        "[the artifact ends before that offset: it has 8 characters]"
      )
      assert.strictEqual(yield* reader("")({}), "[the artifact is empty]")
    })
  )

  it.effect("search finds a text in any case, as it stands, with its line", () =>
    Effect.gen(function* () {
      const text = Array.from({ length: 100 }, (_, n) =>
        n % 10 === 5 ? `row ${n} (a.b*)` : `row ${n}`
      ).join("\n")
      const read = reader(text, 2_000)
      const page = yield* read({ search: "(A.B*)", limit: 2 })
      assert.strictEqual(
        page,
        [
          `line 6, character ${text.indexOf("(a") + 1}: row 5 (a.b*)`,
          "line 16, character 110: row 15 (a.b*)",
          "[there are more: search again with unit characters from offset 187]"
        ].join("\n")
      )
      const rest = yield* read({ search: "(A.B*)", offset: 187, unit: "characters" })
      assert.isTrue(rest.endsWith("[8 found; there are no more]"))
      assert.strictEqual(yield* read({ search: "(a.b*)", offset: 97 }), "[no match]")
    })
  )

  it.effect("search shows pieces of a long line", () =>
    Effect.gen(function* () {
      const text = `${"x".repeat(1_000)}needle${"y".repeat(1_000)}needle`
      const page = yield* reader(text, 2_000)({ search: "needle" })
      assert.deepStrictEqual(
        page.split("\n").map((line) => line.length),
        [24 + 1 + 406 + 1, 24 + 1 + 206, 28]
      )
      assert.isTrue(page.startsWith(`line 1, character 1001: …${"x".repeat(200)}needle`))
    })
  )

  it.effect("an unknown id is an error that the model reads, and trust is that of the text", () =>
    Effect.gen(function* () {
      const store = yield* ArtifactStore.ArtifactStore
      const artifact = { runId: "r", toolCallId: "c", toolName: "t", mediaType: "text/plain", text: "x" }
      yield* store.put({ ...artifact, id: "a", trust: "untrusted" })
      const agent = yield* Agent.make({ model: "m", tools: [ReadArtifact.make()] })
      const { newMessages } = yield* agent.prompt("hi")
      assert.deepStrictEqual(resultTexts(newMessages), ['There is no artifact "../a"', "x\n[line 1 of 1]"])
      assert.deepStrictEqual(
        toolResults(newMessages).map(({ isError, trust }) => [isError, trust]),
        [
          [true, undefined],
          [false, "untrusted"]
        ]
      )
    }).pipe(
      Effect.scoped,
      Effect.provide([
        ArtifactStore.layerMemory(),
        ScriptedProvider.layer([
          ScriptedProvider.toolCall("read_artifact", { id: "../a" }),
          ScriptedProvider.toolCall("read_artifact", { id: "a" }),
          ScriptedProvider.text("done")
        ])
      ])
    )
  )
})
