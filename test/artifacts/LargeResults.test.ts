import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Message, Tool } from "effect-agent"
import { ArtifactStore, LargeResults } from "effect-agent/artifacts"
import { ScriptedProvider } from "effect-agent/testing"
import * as Excerpt from "../../src/artifacts/internal/Excerpt.ts"
import * as Invariants from "../behaviour/invariants.ts"
import { ofTag, play, resultTexts, say, toolResults } from "../behaviour/play.ts"

const done = ScriptedProvider.text("done")
const call = ScriptedProvider.toolCall("big", {})

/** A store that keeps what it is given in a list. */
const listing = (
  put: (artifact: ArtifactStore.Artifact) => Effect.Effect<void, ArtifactStore.ArtifactStoreFailed>
) => {
  const kept: Array<ArtifactStore.Artifact> = []
  const layer = Layer.succeed(ArtifactStore.ArtifactStore, {
    put: (artifact) =>
      Effect.andThen(
        put(artifact),
        Effect.sync(() => void kept.push(artifact))
      ),
    get: (id) => Effect.fail(new ArtifactStore.ArtifactNotFound({ artifactId: id })),
    remove: () => Effect.void
  })
  return { kept, layer }
}
const fine = () => listing(() => Effect.void)

describe("LargeResults", () => {
  it.effect("the model gets the start, the end and how to read the rest; the store has all of it", () =>
    Effect.gen(function* () {
      const { kept, layer } = fine()
      const text = Array.from({ length: 1_000 }, (_, index) => `line ${index + 1}`).join("\n")
      const { events, requests } = yield* play([call, done], {
        tools: [say("big", text)],
        layer: LargeResults.layer({ maxCharacters: 2_000 }).pipe(Layer.provide(layer))
      })
      assert.deepStrictEqual(Invariants.broken(events), [])
      assert.deepStrictEqual(
        kept.map((artifact) => artifact.text),
        [text]
      )
      const [shown = ""] = resultTexts(requests[1]?.messages)
      assert.isAtMost(shown.length, 2_000)
      assert.isTrue(shown.startsWith("line 1\nline 2\n"))
      assert.isTrue(shown.endsWith("\nline 999\nline 1000"))
      const [, note = ""] = /\n\[… (.*) …\]\n/.exec(shown) ?? []
      const [, omitted, line] =
        /^(\d+) of 8892 characters are left out here, from line (\d+) of 1000\./.exec(note) ?? []
      assert.strictEqual(shown.length - note.length - "\n[…  …]\n".length + Number(omitted) + 1, 8_892)
      assert.isTrue(shown.includes(`\nline ${Number(line) - 1}\n[…`))
      assert.isTrue(note.endsWith(`read_artifact {"id":"${kept[0]?.id}","offset":${line}}`))
      const [stored] = ofTag(events, "ArtifactStored")
      assert.deepInclude(stored, { artifactId: kept[0]?.id ?? "", bytes: 8_892, mediaType: "text/plain" })
    })
  )

  it.effect("what is small, and what read_artifact returns, stays; images and details stay", () =>
    Effect.gen(function* () {
      const { kept, layer } = fine()
      const image = Message.image("iVBORw0KGgo=", "image/png")
      const big = Tool.make({
        name: "big",
        description: "",
        execute: () =>
          Effect.succeed(
            Tool.output([Message.text("a".repeat(900)), image, Message.text("b".repeat(900))], {
              details: { size: 2 },
              trust: "untrusted"
            })
          )
      })
      const { events, view } = yield* play(
        [call, ScriptedProvider.toolCall("small", {}), ScriptedProvider.toolCall("read_artifact", {}), done],
        {
          tools: [big, say("small", "s".repeat(1_000)), say("read_artifact", "r".repeat(5_000))],
          layer: LargeResults.layer({ maxCharacters: 10 }).pipe(Layer.provide(layer))
        }
      )
      assert.strictEqual(ofTag(events, "ArtifactStored").length, 1)
      assert.deepInclude(kept[0], { text: `${"a".repeat(900)}\n${"b".repeat(900)}`, trust: "untrusted" })
      const [first, second, third] = toolResults(view.messages)
      assert.deepInclude(first, { details: { size: 2 }, trust: "untrusted" })
      assert.deepStrictEqual(
        first?.content.map(({ type }) => type),
        ["text", "image"]
      )
      assert.strictEqual(second && Message.textOf(second).length, 1_000)
      assert.strictEqual(third && Message.textOf(third).length, 5_000)
    })
  )

  it.effect("JSON is stored as JSON", () =>
    Effect.gen(function* () {
      for (const [result, mediaType] of [
        [{ rows: "x".repeat(2_000) }, "application/json"],
        [`[${"x".repeat(2_000)}`, "text/plain"]
      ] as const) {
        const { kept, layer } = fine()
        yield* play([call, done], {
          tools: [say("big", result)],
          layer: LargeResults.layer({ maxCharacters: 1_000 }).pipe(Layer.provide(layer))
        })
        assert.strictEqual(kept[0]?.mediaType, mediaType)
      }
    })
  )

  it.effect("a store that fails or is late costs the middle of the text, and the result admits it", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const stores = [
        listing(({ id }) =>
          Effect.fail(
            new ArtifactStore.ArtifactStoreFailed({ operation: "put", artifactId: id, detail: "disk full" })
          )
        ),
        listing(() => Effect.andThen(Deferred.succeed(begun, undefined), Effect.never))
      ]
      for (const { layer } of stores) {
        const fiber = yield* Effect.forkChild(
          play([call, done], {
            tools: [say("big", "x".repeat(5_000))],
            layer: LargeResults.layer({ maxCharacters: 1_000, timeout: "3 seconds" }).pipe(
              Layer.provide(layer)
            )
          })
        )
        if (layer === stores[1]?.layer) {
          yield* Deferred.await(begun)
          yield* TestClock.adjust("3 seconds")
        }
        const { events, view } = yield* Fiber.join(fiber)
        assert.deepStrictEqual(Invariants.broken(events), [])
        assert.deepStrictEqual(ofTag(events, "ArtifactStored"), [])
        const [shown = ""] = resultTexts(view.messages)
        assert.match(shown, /4400 of 5000 characters are left out here\. They could not be stored/)
      }
    })
  )

  it("an excerpt never splits a character, and is never longer than it may be", () => {
    for (let length = 1_001; length < 1_500; length++) {
      const text = Array.from({ length }, (_, index) =>
        index % 3 === 0 ? "🎉" : index % 50 === 1 ? "\n" : "é"
      ).join("")
      const shown = Excerpt.make(text, 1_000, "artifact_1")
      assert.isFalse(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(shown))
      assert.isAtMost(shown.length, 1_000)
    }
  })
})
