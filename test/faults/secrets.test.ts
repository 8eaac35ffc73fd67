import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { FetchHttpClient } from "effect/http"
import * as Secrets from "../../src/providers/internal/secrets.ts"
import { drive, leaks } from "./secrets/drive.ts"
import { languages, secrets, ways } from "./secrets/planted.ts"
import { shapes } from "./secrets/shapes.ts"

describe("secrets", () => {
  it("F150: are twenty and more, against more than thirty answers", () => {
    assert.isAtLeast(new Set(secrets.map(({ value }) => value)).size, 20)
    assert.isAtLeast(shapes.length, 30)
  })

  it("F150: are found where a text breaks off in the middle of one", () => {
    const redact = Secrets.make([Redacted.make("sk-planted-0123456789")], {}, "https://acme.test")
    assert.strictEqual(redact("Incorrect key: sk-planted-0123"), "Incorrect key: [redacted]")
    assert.strictEqual(redact("Incorrect key: sk-plan"), "Incorrect key: sk-plan")
  })

  it.live.each(languages)(
    "F150: of a provider of %s are in no event, error, log or span, whatever a server gives back",
    (language) =>
      Effect.gen(function* () {
        const found: Array<string> = []
        for (const [index, shape] of shapes.entries()) {
          // All ways with all answers are the business of chaos.
          const way = ways[index % ways.length] ?? "options"
          const sinks = yield* drive({ language, shape, way }, FetchHttpClient.layer)
          assert.isNotEmpty(sinks.events)
          assert.isNotEmpty(sinks.spans)
          found.push(...leaks(sinks).map((leak) => `${shape.name}, by ${way}: ${leak}`))
        }
        assert.deepStrictEqual(found, [])
      }),
    120_000
  )
})
