import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Auth } from "effect-agent/providers"
import * as Outgoing from "../../src/providers/internal/connection.ts"
import { Used } from "../../src/providers/internal/secrets.ts"

const deployment = { auth: Auth.bearer, headers: { "X-Team": "blue", "content-type": "text/plain" } }

const post = (used: Used, key: Redacted.Redacted | undefined, url = "https://example.com/m") =>
  Outgoing.post(deployment, { url, accept: "text/event-stream", body: "{}", key, isRefused: false }, used)

describe("a request that goes out", () => {
  it.effect("has the headers of the provider, of the application and of its credentials", () =>
    Effect.gen(function* () {
      const { request } = yield* post(new Used(), Redacted.make("secret-key-1"))
      assert.deepStrictEqual(
        { ...request.headers },
        {
          accept: "text/event-stream",
          "x-team": "blue",
          authorization: "Bearer secret-key-1",
          "content-length": "2",
          "content-type": "application/json"
        }
      )
      const without = yield* post(new Used(), undefined)
      assert.isUndefined(without.request.headers["authorization"])
    })
  )

  it.effect("keeps each key out of errors that was in use", () =>
    Effect.gen(function* () {
      const used = new Used()
      yield* post(used, Redacted.make("secret-key-1"))
      const { redact } = yield* post(used, Redacted.make("secret-key-2"))
      assert.strictEqual(redact("secret-key-1 and secret-key-2"), "[redacted] and [redacted]")
    })
  )

  it.effect(
    "cuts the start of a key out of the middle of a text, and leaves what vendors begin all keys with",
    () =>
      Effect.gen(function* () {
        const key = "sk-ant-api03-PLANTED0123456789abcdef"
        const { redact } = yield* post(new Used(), Redacted.make(key))
        assert.strictEqual(redact(`Wrong key ${key.slice(0, -1)}. given`), "Wrong key [redacted]. given")
        assert.strictEqual(
          redact(`${key.slice(0, 18)}… and ${key.slice(0, 18)}!`),
          "[redacted]… and [redacted]!"
        )
        assert.strictEqual(redact("Keys begin with sk-ant-api03- here"), "Keys begin with sk-ant-api03- here")
      })
  )

  it.effect("dies with a key that was wiped", () =>
    Effect.gen(function* () {
      const key = Redacted.make("secret-key-1")
      Redacted.wipeUnsafe(key)
      const exit = yield* Effect.exit(post(new Used(), key))
      assert.strictEqual(exit._tag, "Failure")
    })
  )
})
