import { assert, describe, it } from "@effect/vitest"
import { reasonOf } from "../../src/ai-sdk/internal/AiSdkAnswer.ts"
import { fromUnknown } from "../../src/ai/internal/ModelCall.ts"
import * as VendorFailure from "../../src/http/VendorFailure.ts"

const failed = (name: string, members: object) => Object.assign(new Error("failed"), { name, ...members })

/** Failures inside an answer, as vendors send them. */
const bodies: ReadonlyArray<object> = [
  { type: "error", code: "insufficient_quota", message: "no" },
  { code: "content_filter", message: "blocked" },
  { error: { code: "insufficient_quota", message: "no" } },
  { error: { code: "context_length_exceeded", message: "no" } },
  { base_resp: { status_code: 1008, status_msg: "no" } },
  { base_resp: { status_code: 1026, status_msg: "no" } },
  { code: "Arrearage", message: "Access denied", request_id: "1" },
  { error: { code: "1301", message: "no" } },
  { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
  [{ error: { code: 403, status: "PERMISSION_DENIED", message: "no" } }],
  { error: { code: 403, message: "no", metadata: { reasons: ["violence"] } } },
  { error: "insufficient credits" }
]

describe("a failure inside an answer", () => {
  it("means the same to a provider of its own, to the AI SDK and to effect/ai", () => {
    for (const body of bodies) {
      const json = JSON.stringify(body)
      const expected = VendorFailure.inText(json, "m")?._tag
      assert.isDefined(expected, json)
      const call = failed("AI_APICallError", { statusCode: 200, responseBody: json })
      for (const error of [
        body,
        json,
        call,
        failed("AI_TypeValidationError", { value: body }),
        failed("AI_JSONParseError", { text: json }),
        failed("AI_RetryError", { lastError: call }),
        new Error("wrapped", { cause: call })
      ])
        assert.strictEqual(reasonOf(error, "m", 0)._tag, expected, json)
      for (const error of [body, json, new Error(json)])
        assert.strictEqual(fromUnknown(error)._tag, expected, json)
      if ("error" in body) assert.strictEqual(fromUnknown(body.error)._tag, expected, json)
    }
  })

  it("has the code of an Error, but none of the runtime", () => {
    const coded = (code: string) => fromUnknown(Object.assign(new Error("no"), { code }))._tag
    assert.deepStrictEqual(
      ["insufficient_quota", "content_filter", "context_length_exceeded", "ERR_STREAM_PREMATURE_CLOSE"].map(
        coded
      ),
      ["QuotaExceeded", "ContentPolicy", "ContextOverflow", "ServerError"]
    )
    assert.strictEqual(fromUnknown(Object.assign(new Error("no"), { status: 429 }))._tag, "RateLimited")
    assert.strictEqual(fromUnknown({ type: "error", message: "acme: RateLimited: slow" })._tag, "RateLimited")
  })

  it("is none in a value of a wrong shape", () => {
    const error = failed("AI_TypeValidationError", { value: { choices: [{ delta: 1 }] } })
    assert.strictEqual(reasonOf(error, "m", 0)._tag, "Protocol")
  })
})
