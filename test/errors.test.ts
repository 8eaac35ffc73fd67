import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import { inspect } from "node:util"
import { files, textOf } from "./source.ts"

type ErrorClass = Schema.Codec<Error, unknown, never, never> & { readonly name: string }

const isErrorClass = (value: unknown): value is ErrorClass =>
  typeof value === "function" && value.prototype instanceof Error && Schema.isSchema(value)

const classesOf = async (file: string): Promise<ReadonlyArray<ErrorClass>> => {
  const module: Record<string, unknown> = await import(`../src/${file}`)
  return Object.values(module).filter(isErrorClass)
}

/** A class with a tag: one that a function makes of it, or one with the member `_tag`. */
const tagged =
  /\bclass (\w+)(?:<[^{]*>)? (?:extends [\w.]*(?:Error|Problem|TaggedClass)(?:<\w+>)?(?:\(\))?\(\s*"(\w+)"|\{\s*readonly _tag = "(\w+)")/g
const docs = /\/\*\*[^]*?\*\//g

describe("each error", () => {
  const defining = files.filter((file) => /extends TaggedError</.test(textOf(file)))
  it("is of one kind", () => {
    assert.isAbove(defining.length, 20)
    assert.deepStrictEqual(
      files.filter((file) => file !== "internal/errors.ts" && /Schema\.TaggedError/.test(textOf(file))),
      []
    )
  })
  it("has a tag of its own, which is the name of its class", () => {
    const classes = files.flatMap((file) =>
      [...textOf(file).replaceAll(docs, "").matchAll(tagged)].map(([, name, made, own]) => ({
        name,
        tag: made ?? own
      }))
    )
    assert.isAbove(classes.length, 90)
    const tags = new Map<string | undefined, number>()
    for (const { tag } of classes) tags.set(tag, (tags.get(tag) ?? 0) + 1)
    assert.deepStrictEqual(
      [...tags].filter(([, count]) => count > 1),
      []
    )
    assert.deepStrictEqual(
      classes.filter(({ name, tag }) => name !== tag),
      []
    )
  })
  it.effect.each(defining)("is printed with its message first: %s", (file) =>
    Effect.gen(function* () {
      for (const error of yield* Effect.promise(() => classesOf(file))) {
        const checked = yield* Arbitrary.checkEffect(
          Arbitrary.schema(error),
          (value) =>
            Effect.sync(() =>
              inspect(value).replace(/^\[/, "").startsWith(`${value.name}: ${value.message}`)
            ),
          { runs: 5, seed: 7 }
        )
        assert.strictEqual(checked._tag, "Passed", error.name)
      }
    })
  )
})
