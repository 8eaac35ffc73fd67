import { assert, describe, it } from "@effect/vitest"
import { Duration, Schema } from "effect"
import { ProviderError } from "effect-agent"
import * as Failure from "../../src/providers/internal/reading.ts"
import * as VendorFailure from "../../src/http/VendorFailure.ts"

const refused = (status: number, body: unknown, headers: Record<string, string> = {}): ProviderError.Reason =>
  Failure.ofResponse({
    status,
    headers,
    body: typeof body === "string" ? body : JSON.stringify(body),
    model: "m-1",
    now: 0
  })

const error = (message: string, code?: string) => ({
  error: { message, ...(code === undefined ? {} : { code }) }
})

describe("failure", () => {
  it("is told by the status (row 243)", () => {
    const tags: ReadonlyArray<readonly [number, ProviderError.Reason["_tag"]]> = [
      [400, "InvalidRequest"],
      [401, "Unauthenticated"],
      [402, "QuotaExceeded"],
      [403, "Forbidden"],
      [404, "NotFound"],
      [408, "ServerError"],
      [409, "ServerError"],
      [413, "ContextOverflow"],
      [422, "InvalidRequest"],
      [429, "RateLimited"],
      [500, "ServerError"],
      [503, "ServerError"],
      [529, "Overloaded"]
    ]
    for (const [status, tag] of tags)
      assert.strictEqual(refused(status, error("no"))._tag, tag, String(status))
  })

  it("is told by the names of AWS, which say more than its statuses", () => {
    const named = (status: number, name: string, message = "Sorry.") =>
      refused(status, { message }, { "x-amzn-errortype": `${name}:http://internal.amazon.com/coral/` })._tag
    assert.strictEqual(named(403, "ExpiredTokenException"), "Unauthenticated")
    assert.strictEqual(named(403, "AccessDeniedException"), "Forbidden")
    assert.strictEqual(named(424, "ModelErrorException"), "ServerError")
    assert.strictEqual(named(400, "ThrottlingException"), "RateLimited")
    assert.strictEqual(
      named(400, "ValidationException", "The provided model identifier is invalid."),
      "NotFound"
    )
    const event = JSON.stringify({ type: "throttlingException", message: "Slow down." })
    assert.strictEqual(Failure.ofErrorEvent(event, "m-1")._tag, "RateLimited")
  })

  it("is told by code and words where they say more (row 243)", () => {
    const tags: ReadonlyArray<readonly [number, unknown, ProviderError.Reason["_tag"]]> = [
      [
        429,
        error("You exceeded your current quota, please check your plan", "insufficient_quota"),
        "QuotaExceeded"
      ],
      [429, error("You have reached your monthly limit"), "QuotaExceeded"],
      [400, error("Your credit balance is too low"), "QuotaExceeded"],
      [400, { code: "invalid-argument", error: "Incorrect API key provided" }, "Unauthenticated"],
      [400, error("Invalid prompt: flagged as potentially violating our usage policy"), "ContentPolicy"],
      [
        403,
        { error: { message: "Input was flagged", metadata: { reasons: ["violence"] } } },
        "ContentPolicy"
      ],
      [400, error("gpt-9 is not a valid model ID"), "NotFound"],
      [500, error("Overloaded", "overloaded_error"), "Overloaded"],
      [503, error("Loading model"), "Overloaded"]
    ]
    for (const [status, body, tag] of tags)
      assert.strictEqual(refused(status, body)._tag, tag, JSON.stringify(body))
  })

  it("names the part of the request that the vendor refuses, by its code or its words", () => {
    const parts: ReadonlyArray<readonly [ProviderError.RefusedPart | undefined, unknown, status?: number]> = [
      ["thinking", error("The encrypted content gAAA could not be verified.", "invalid_encrypted_content")],
      [
        "thinking",
        error("The encrypted content gAAA could not be verified. Reason: organization_id did not match")
      ],
      ["thinking", error("messages.1.content.0: Invalid `signature` in `thinking` block")],
      [
        "thinking",
        error("messages.3.content.1: `thinking` or `redacted_thinking` blocks cannot be modified")
      ],
      ["thinking", error("messages.1.content.0.thinking.signature: Field required")],
      [
        "thinking",
        error("Item 'rs_1' of type 'reasoning' was provided without its required following item.")
      ],
      [
        "thinking",
        error("Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."),
        404
      ],
      ["thinking", error("Function call is missing a thought_signature in functionCall parts.")],
      ["thinking", error("Thought signature is not valid")],
      ["thinking", error("The `reasoning_content` in the thinking mode must be passed back to the API.")],
      [
        "thinking",
        error("messages.2.assistant.reasoning_content: property is unsupported", "wrong_api_format")
      ],
      ["image", error("x", "image_too_large")],
      ["image", error("messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 5316852 bytes")],
      ["image", error("Could not process image")],
      ["image", error("No endpoints found that support image input"), 404],
      ["image", error("unknown variant `image_url`, expected `text`")],
      ["image", { detail: "m is not a multimodal model" }],
      ["file", error("messages.0.content.0.pdf.source: The PDF specified was not valid.")],
      ["file", error("No endpoints found that support file input"), 404],
      ["file", error("Unsupported MIME type: application/x-foo")],
      ["thinking", error("Item with id 'fc_1' not found."), 404],
      [
        "message",
        error("messages.2: `tool_use` ids were found without `tool_result` blocks immediately after")
      ],
      ["message", error("No tool output found for function call call_1.")],
      ["message", error("Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern")],
      ["message", error("The toolUse blocks at messages.1.content contain duplicate Ids")],
      ["message", error("messages: final assistant content cannot end with trailing whitespace")],
      ["tool", error("Invalid schema for function 'f': …", "invalid_function_parameters")],
      ["tool", error("tools.0.custom.input_schema: input_schema does not support oneOf at the top level")],
      ["option", error("max_tokens is too large: 32000. This model supports at most 16384")],
      ["option", error("Unsupported parameter: 'temperature' is not supported with this model.")],
      ["option", error("Unrecognized request argument supplied: reasoning")],
      ["option", error("thinking.budget_tokens: Input should be greater than or equal to 1024")],
      ["option", { error: { message: "Invalid value: 'xhigh'.", param: "reasoning.effort" } }],
      [undefined, error("Unknown parameter: 'input[2].status'.", "unknown_parameter")],
      [undefined, { error: { message: "Unsupported value", param: "messages.[2].role" } }],
      [undefined, error("messages: at least one message is required")]
    ]
    for (const [refusedPart, body, status = 400] of parts) {
      const reason = refused(status, body)
      assert.strictEqual(reason._tag, "InvalidRequest", JSON.stringify(body))
      assert.strictEqual("refused" in reason ? reason.refused : undefined, refusedPart, JSON.stringify(body))
    }
    const unsafe = refused(
      400,
      error("The image was flagged by our moderation.", "image_content_policy_violation")
    )
    assert.deepInclude({ ...unsafe }, { _tag: "ContentPolicy", refused: "image" })
  })

  it("keeps the part that the vendor refuses where the failure is encoded", () => {
    const reason = refused(400, error("Could not process image"))
    const failure = new ProviderError.ProviderError({ provider: "acme", reason })
    const json = Schema.encodeUnknownSync(Schema.toCodecJson(ProviderError.ProviderError))(failure)
    const again = Schema.decodeUnknownSync(Schema.toCodecJson(ProviderError.ProviderError))(
      JSON.parse(JSON.stringify(json))
    )
    assert.deepInclude({ ...again.reason }, { _tag: "InvalidRequest", refused: "image" })
  })

  it("keeps the vendor's words, from a body of any shape (row 38)", () => {
    const details: ReadonlyArray<readonly [unknown, string]> = [
      [error("no"), "no"],
      [[error("no")], "no"],
      [{ message: "no" }, "no"],
      [{ detail: "no" }, "no"],
      [{ detail: [{ msg: "no", loc: ["body"] }] }, '[{"msg":"no","loc":["body"]}]'],
      [{ error: "no" }, '"no"'],
      ['"no"', "no"],
      ["plain no", "plain no"],
      ["", "HTTP 400"],
      [
        { error: { message: "Provider returned error", metadata: { raw: "upstream no" } } },
        "Provider returned error: upstream no"
      ]
    ]
    for (const [body, detail] of details) assert.strictEqual(refused(400, body).detail, detail)
  })

  it("names the model, the request, and as much of the body as is of use (row 38)", () => {
    const missing = refused(404, error("no such thing"), { "x-request-id": "req-1" })
    assert.include(missing.detail, "m-1")
    assert.deepStrictEqual([missing.requestId, missing.status], ["req-1", 404])
    const html = refused(502, `<html>${"é".repeat(100_000)}`)
    assert.isAtMost(html.detail.length, 400)
    assert.isAtMost(new TextEncoder().encode(html.body).length, 4096)
  })

  it("is typed, whatever stands where a word or a number belongs", () => {
    const odd: ReadonlyArray<unknown> = [
      { toString: 1, valueOf: 1 },
      [429],
      [[429]],
      true,
      null,
      1e308,
      -1,
      429.5,
      "",
      {},
      []
    ]
    for (const value of odd) {
      const bodies = [
        { error: { message: "m", code: value, status: value, status_code: value, type: value } },
        { code: value, message: value, type: value, detail: value, request_id: value },
        { error: { message: value, metadata: { raw: value, headers: { x: value, "retry-after": value } } } },
        { error: { message: "m", retry_after: value, details: [{ retryDelay: value, violations: value }] } },
        { error: { message: "m", details: [{ violations: [{ quotaId: value }] }, value] } },
        { error: value },
        [value]
      ]
      for (const body of bodies) {
        const said = JSON.stringify(body)
        assert.strictEqual(refused(400, said)._tag, "InvalidRequest", said)
        assert.include(["ServerError", "InvalidRequest"], Failure.ofErrorEvent(said, "m-1")._tag, said)
      }
    }
    // A status is a number, or its digits.
    const status = (code: unknown) =>
      Failure.ofErrorEvent(JSON.stringify({ error: { message: "m", code } }), "m-1").status
    assert.deepStrictEqual(
      [status(429), status("429"), status([429]), status("4e2"), status(200)],
      [429, 429, undefined, undefined, undefined]
    )
  })

  it("is typed, however deep its body nests", () => {
    const lists = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`
    const objects = (levels: number) => `${'{"error":'.repeat(levels)}1${"}".repeat(levels)}`
    for (const deep of [lists(30_000), objects(30_000)]) {
      const bodies = [
        deep,
        `{"detail":${deep}}`,
        `{"error":{"message":"m","code":${deep}}}`,
        `{"error":{"message":"m","details":${deep}}}`,
        `{"error":{"message":"m","metadata":{"headers":{"x":${deep}}}}}`
      ]
      for (const body of bodies) {
        const reason = refused(429, body)
        assert.strictEqual(reason._tag, "RateLimited")
        assert.isAtMost(reason.detail.length, 400)
        assert.strictEqual(Failure.ofErrorEvent(body, "m-1")._tag, "ServerError")
      }
    }
    // As deep as it may be.
    assert.strictEqual(refused(429, `{"message":"m","detail":${lists(250)}}`).detail, "m")
  })

  it("is not to be tried again where the vendor says so itself", () => {
    const isRetryable = (said: string) => {
      const reason = refused(500, error("no"), { "x-should-retry": said })
      return new ProviderError.ProviderError({ provider: "acme", reason }).isRetryable
    }
    assert.deepStrictEqual([isRetryable("false"), isRetryable("true")], [false, true])
  })

  it("tells a context overflow by any vendor's words, with the numbers", () => {
    const sized: ReadonlyArray<readonly [string, number, number]> = [
      ["prompt is too long: 204000 tokens > 200000 maximum", 200000, 204000],
      [
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
        8192,
        9001
      ],
      [
        "The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).",
        1048576,
        1250074
      ],
      [
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        131072,
        537812
      ],
      [
        "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        4096,
        9000
      ],
      ["Your request exceeded model token limit: 131072 (requested: 150000)", 131072, 150000],
      ["Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 50000.", 30000, 50000]
    ]
    for (const [message, limit, size] of sized) {
      const reason = refused(message.startsWith("Request too") ? 429 : 400, error(message))
      assert.deepInclude({ ...reason }, { _tag: "ContextOverflow", limit, size }, message)
    }
    const unsized = [
      error("Your input exceeds the context window of this model", "context_length_exceeded"),
      error("prompt too long; exceeded max context length by 1119046 tokens"),
      error("The total length of all messages is too long."),
      error("too many tokens: the prompt has 9000, the model takes 8192"),
      error("Too many input tokens"),
      error("Input is too long for requested model.")
    ]
    for (const body of unsized)
      assert.strictEqual(refused(400, body)._tag, "ContextOverflow", JSON.stringify(body))
  })

  it("takes no other limit for one (row 243)", () => {
    const others = [
      refused(
        429,
        error("Rate limit reached: Limit 30000, Used 29500, Requested 1200. Please try again in 1.4s.")
      ),
      refused(
        400,
        error("'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40")
      ),
      refused(429, { message: "Too many tokens, please wait before trying again." }),
      refused(429, { message: "Too many tokens per minute" }),
      refused(429, { message: "Too many tokens processed, please slow down" }),
      refused(402, error("This request requires more credits, or fewer max_tokens."))
    ]
    assert.notInclude(
      others.map((reason) => reason._tag),
      "ContextOverflow"
    )
  })
})

describe("retryAfter", () => {
  const now = Date.parse("2026-11-21T00:00:00Z")
  const read = (headers: Record<string, string>, body: Record<string, never> | object = {}, message = "") => {
    const wait = VendorFailure.retryAfter(headers, JSON.parse(JSON.stringify(body)), message, now)
    return wait === undefined ? undefined : Duration.toMillis(wait)
  }

  it("is read in every form", () => {
    assert.strictEqual(read({ "retry-after": "2" }), 2000)
    assert.strictEqual(read({ "retry-after": "2", "retry-after-ms": "1400" }), 1400)
    assert.strictEqual(read({ "retry-after": "1", "retry-after-ms": "0" }), 1000)
    assert.strictEqual(read({ "retry-after": "Sat, 21 Nov 2026 00:00:30 GMT" }), 30_000)
    assert.strictEqual(read({ "retry-after": "Sat, 21 Nov 2020 00:00:30 GMT" }), 0)
    assert.strictEqual(read({}, { details: [{ "@type": "x.RetryInfo", retryDelay: "34.4s" }] }), 34_400)
    assert.strictEqual(read({}, { retry_after: 30 }), 30_000)
    assert.strictEqual(read({}, { retryAfter: 1.5 }), 1500)
    assert.strictEqual(read({}, { retry_after: "30" }), 30_000)
    assert.strictEqual(read({}, {}, "Please try again in 1m2.5s. Visit https://x.test/3s"), 62_500)
    assert.strictEqual(read({}, {}, "Please retry after 20 seconds."), 20_000)
    assert.strictEqual(read({}, {}, "Try again in 250ms"), 250)
  })

  it("is read from the limit that is used up", () => {
    assert.strictEqual(
      read({
        "x-ratelimit-remaining-requests": "3",
        "x-ratelimit-reset-requests": "1h",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "6m0.5s"
      }),
      360_500
    )
    assert.strictEqual(read({ "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(now + 5000) }), 5000)
    assert.strictEqual(
      read({ "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(now / 1000 + 5) }),
      5000
    )
    const metadata = { headers: { "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": String(now + 7000) } }
    assert.strictEqual(read({}, { metadata }), 7000)
  })

  it("is the longest of more waits than 64 Ki characters of a body have room for", () => {
    const headers = Object.fromEntries(
      Array.from({ length: 2000 }, (_, index) => [
        [`x-ratelimit-reset-${index}`, `${index}s`],
        [`x-ratelimit-remaining-${index}`, "0"]
      ]).flat()
    )
    assert.strictEqual(read({}, { metadata: { headers } }), 1_999_000)
  })

  it("is bounded, and nonsense is none", () => {
    const year = Duration.toMillis("365 days")
    assert.strictEqual(read({ "retry-after": "1e308" }), year)
    assert.strictEqual(read({ "retry-after": "inf" }), year)
    assert.strictEqual(read({ "retry-after": "86400" }), 86_400_000)
    assert.strictEqual(read({ "retry-after": "soon" }), undefined)
    assert.strictEqual(read({ "retry-after": "-5" }), undefined)
    assert.strictEqual(read({}), undefined)
  })
})
