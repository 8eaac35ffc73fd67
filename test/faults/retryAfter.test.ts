import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { refuse, serve } from "../providers/server.ts"
import { answer, play, type Setup, told } from "./session.ts"
import { type Vendor, vendors } from "./vendors.ts"

/** A server that has too much to do, `times` times, and how long it was left alone between the requests. */
const limited = Effect.fnUntraced(function* (
  vendor: Vendor,
  headers: Readonly<Record<string, string>>,
  times: number,
  setup?: Setup
) {
  const server = yield* serve((response, _, count) =>
    count <= times
      ? refuse(response, 429, { error: { message: "slow down" } }, headers)
      : answer(response, vendor.answer({ text: ["Hel", "lo"] }))
  )
  const played = yield* play(vendor, server, setup)
  const [retry] = played.retries
  const after = played.events[played.events.findIndex(({ _tag }) => _tag === "ModelCallRetry") + 1]
  const waited = after === undefined || retry === undefined ? 0 : after.timestamp - retry.timestamp
  return { ...played, waited, requests: server.requests.length }
})

const retryAfterOf = (reason: Effect.Success<ReturnType<typeof play>>["reason"]) =>
  reason?._tag === "RateLimited" && reason.retryAfter !== undefined
    ? Duration.toMillis(reason.retryAfter)
    : undefined

describe.each(vendors)("$name", (vendor) => {
  it.effect("F015: `Retry-After: 1` is a second's wait, and little more", () =>
    Effect.gen(function* () {
      const { requests, retries, text, waited } = yield* limited(vendor, { "retry-after": "1" }, 1)
      assert.deepStrictEqual([text, requests], ["Hello", 2])
      assert.strictEqual(retryAfterOf(retries[0]?.error.reason), 1000)
      assert.isTrue(waited >= 1000 && waited <= 1500, `${waited} ms`)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F016: `retry-after-ms: 1500` wins over the schedule, and over its coarser brother", () =>
    Effect.gen(function* () {
      for (const headers of [{}, { "retry-after": "9" }]) {
        const all = { ...headers, "retry-after-ms": "1500" }
        const { requests, text, waited } = yield* limited(vendor, all, 1)
        assert.deepStrictEqual([text, requests], ["Hello", 2])
        assert.strictEqual(waited, 1500)
      }
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F018: a wait of a day, or of for ever, is not waited for, and told", () =>
    Effect.gen(function* () {
      const year = Duration.toMillis("365 days")
      for (const [value, millis] of [
        ["86400", 86_400_000],
        ["61", 61_000],
        ["1e308", year],
        ["inf", year]
      ] as const) {
        const { events, reason, requests, retries } = yield* limited(vendor, { "retry-after": value }, 9)
        assert.deepStrictEqual([told(reason), retryAfterOf(reason)], ["RateLimited", millis], value)
        assert.deepStrictEqual([requests, retries.length], [1, 0])
        assert.strictEqual((events.at(-1)?.timestamp ?? 0) - (events[0]?.timestamp ?? 0), 0)
      }
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F018: how long is too long is for the user to say", () =>
    Effect.gen(function* () {
      const patient = { retry: { maxRetryAfter: "2 minutes" } } as const
      const { text, waited } = yield* limited(vendor, { "retry-after": "90" }, 1, patient)
      assert.deepStrictEqual([text, waited], ["Hello", 90_000])
      const hasty = { retry: { maxRetryAfter: "5 seconds" } } as const
      assert.strictEqual((yield* limited(vendor, { "retry-after": "6" }, 1, hasty)).requests, 1)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F019: a wait that nobody can read is none: the schedule's own is waited", () =>
    Effect.gen(function* () {
      for (const value of ["soon", "-5", "NaN", "0x10", ""]) {
        const { requests, text, waited } = yield* limited(vendor, { "retry-after": value }, 1)
        assert.deepStrictEqual([text, requests], ["Hello", 2], value)
        assert.isTrue(waited >= 800 && waited <= 1200, `${value}: ${waited} ms`)
      }
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )
})
