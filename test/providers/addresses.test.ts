import { assert, describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import { Addresses } from "../../src/providers/internal/addresses.ts"

const made = () => {
  let count = 0
  const addresses = new Addresses({
    url: (model) => {
      count++
      return `https://example.com/${model}`
    },
    headers: { "X-Team": "blue", "content-type": "text/plain" },
    authorize: (key) => ({ authorization: `Bearer ${key}` })
  })
  return { addresses, count: () => count }
}

describe("where requests go", () => {
  it("is made once for a model and a key, whoever wraps it", () => {
    const { addresses, count } = made()
    const first = addresses.of("m", Redacted.make("secret-key-1"))
    assert.strictEqual(addresses.of("m", Redacted.make("secret-key-1")), first)
    assert.strictEqual(count(), 1)
    assert.deepStrictEqual(
      { ...first.headers },
      {
        accept: "text/event-stream",
        "x-team": "blue",
        authorization: "Bearer secret-key-1",
        "content-type": "application/json"
      }
    )
  })

  it("changes with the model and the key, and no key that was used is shown", () => {
    const { addresses } = made()
    addresses.of("m", Redacted.make("secret-key-1"))
    const { headers, redact } = addresses.of("m", Redacted.make("secret-key-2"))
    assert.strictEqual(headers["authorization"], "Bearer secret-key-2")
    assert.strictEqual(redact("secret-key-1 and secret-key-2"), "[redacted] and [redacted]")
    assert.strictEqual(addresses.of("other", undefined).url, "https://example.com/other")
    assert.isUndefined(addresses.of("m", undefined).headers["authorization"])
  })

  it("is not to be had with a key that was wiped", () => {
    const { addresses } = made()
    const key = Redacted.make("secret-key-1")
    addresses.of("m", key)
    Redacted.wipeUnsafe(key)
    assert.throws(() => addresses.of("m", key))
  })
})
