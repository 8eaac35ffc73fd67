import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { ProviderError } from "effect-agent"
import { Auth } from "effect-agent/providers"

const unsigned = {
  method: "POST",
  url: "https://example.com/",
  headers: {},
  body: "",
  key: undefined,
  isRefused: false
} as const

/** AWS's published test suite of Signature Version 4: the credentials, the time and the service of all its cases. */
const suite = Auth.sigV4({
  service: "service",
  region: "us-east-1",
  credentials: Effect.succeed({
    accessKeyId: "AKIDEXAMPLE",
    secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
  })
})
const time = Date.UTC(2015, 7, 30, 12, 36, 0)

const cases = [
  [
    "get-vanilla",
    "GET",
    "https://example.amazonaws.com/",
    {},
    "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
  ],
  [
    "get-vanilla-query-order-key-case",
    "GET",
    "https://example.amazonaws.com/?Param2=value2&Param1=value1",
    {},
    "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"
  ],
  [
    "get-unreserved",
    "GET",
    "https://example.amazonaws.com/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    {},
    "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"
  ],
  [
    "post-vanilla",
    "POST",
    "https://example.amazonaws.com/",
    {},
    "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"
  ],
  [
    "post-header-key-sort",
    "POST",
    "https://example.amazonaws.com/",
    { "my-header1": "value1" },
    "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"
  ]
] as const

describe("Signature Version 4", () => {
  it.effect.each(cases)("signs %s as AWS publishes it", ([, method, url, headers, signature]) =>
    Effect.gen(function* () {
      yield* TestClock.setTime(time)
      const signed = yield* suite({ ...unsigned, method, url, headers })
      assert.strictEqual(signed.headers["authorization"]?.split("Signature=")[1], signature)
      assert.strictEqual(signed.headers["x-amz-date"], "20150830T123600Z")
    })
  )

  it.effect("keeps the secrets of the account, and sends the token of a session", () =>
    Effect.gen(function* () {
      const auth = Auth.sigV4({
        service: "bedrock",
        region: "eu-central-1",
        credentials: Effect.succeed({
          accessKeyId: "AK",
          secretAccessKey: "secret-1",
          sessionToken: "token-1"
        })
      })
      const { headers, secrets } = yield* auth(unsigned)
      assert.strictEqual(headers["x-amz-security-token"], "token-1")
      assert.include(headers["authorization"] ?? "", "x-amz-security-token")
      assert.deepStrictEqual(secrets.map(Redacted.value), ["secret-1", "token-1"])
    })
  )

  it.effect("gives way to a key, which goes out as a bearer token", () =>
    Effect.gen(function* () {
      const { headers } = yield* suite({ ...unsigned, key: Redacted.make("api-key") })
      assert.deepStrictEqual(headers, { authorization: "Bearer api-key" })
    })
  )
})

describe("a token", () => {
  it.effect("comes from its source, which learns that the vendor refused the last one", () =>
    Effect.gen(function* () {
      const auth = Auth.token((isRefused) => Effect.succeed(Redacted.make(isRefused ? "new" : "old")))
      assert.deepStrictEqual((yield* auth(unsigned)).headers, { authorization: "Bearer old" })
      assert.deepStrictEqual((yield* auth({ ...unsigned, isRefused: true })).headers, {
        authorization: "Bearer new"
      })
    })
  )

  it.effect("fails with the reason of its source", () =>
    Effect.gen(function* () {
      const reason = new ProviderError.Unauthenticated({ detail: "no account" })
      const auth = Auth.token(() => Effect.fail(reason))
      assert.strictEqual(yield* Effect.flip(auth(unsigned)), reason)
    })
  )
})

describe("an empty key", () => {
  it.effect.each(["", " \n"])("is refused before a request: %j", (key) =>
    Effect.gen(function* () {
      const refused = yield* Effect.flip(Auth.bearer({ ...unsigned, key: Redacted.make(key) }))
      assert.strictEqual(refused._tag, "Unauthenticated")
      assert.include(refused.detail, "the API key is empty")
    })
  )
})
