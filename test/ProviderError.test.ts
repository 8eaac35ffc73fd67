import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Schema } from "effect"
import { ProviderError } from "effect-agent"

const { Overloaded, RateLimited, ServerError } = ProviderError

describe("retryAfter", () => {
  const codec = Schema.toCodecJson(ProviderError.ProviderError)
  const of = (retryAfter: Duration.Input) =>
    [RateLimited, Overloaded, ServerError].map(
      (Reason) =>
        new ProviderError.ProviderError({ provider: "acme", reason: new Reason({ detail: "x", retryAfter }) })
    )
  const inputs: ReadonlyArray<Duration.Input> = ["30 seconds", 30_000, { seconds: 30 }, Duration.seconds(30)]

  it("takes a duration in any form", () => {
    for (const input of inputs)
      for (const error of of(input)) assert.deepStrictEqual(error.retryAfter, Duration.seconds(30))
  })

  it("refuses a text that is no duration", () => {
    const misspelt: Duration.Input = JSON.parse('"30 secs"')
    assert.throws(() => of(misspelt))
  })

  it.effect("is encoded in one form, whatever was given", () =>
    Effect.gen(function* () {
      for (const input of inputs) {
        for (const error of of(input)) {
          const json = yield* Schema.encodeEffect(codec)(error)
          assert.include(JSON.stringify(json), '"retryAfter":{"_tag":"Millis","value":30000}')
          const decoded = yield* Schema.decodeEffect(codec)(json)
          assert.deepStrictEqual(decoded.retryAfter, Duration.seconds(30))
        }
      }
      const [endless] = of("Infinity")
      assert(endless !== undefined)
      const back = yield* Schema.decodeEffect(codec)(yield* Schema.encodeEffect(codec)(endless))
      assert.deepStrictEqual(back.retryAfter, Duration.infinity)
      const [long] = of(1e300)
      assert(long !== undefined)
      const read = yield* Schema.decodeEffect(codec)(yield* Schema.encodeEffect(codec)(long))
      assert.deepStrictEqual(read.retryAfter, Duration.millis(Number.MAX_SAFE_INTEGER))
    })
  )
})
