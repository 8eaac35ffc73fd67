import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import { ProviderError } from "effect-agent"
import * as VendorFailure from "../../src/http/VendorFailure.ts"
import * as Codes from "./vendorCodes.ts"

type Tag = ProviderError.Reason["_tag"]

const refused = (status: number, body: unknown, headers: Record<string, string> = {}, now = 0) =>
  VendorFailure.ofResponse({ status, headers, body: JSON.stringify(body), model: "m-1", now })
const reported = (body: unknown) => VendorFailure.ofErrorEvent(JSON.stringify(body), "m-1")
const failureOf = (reason: ProviderError.Reason) =>
  new ProviderError.ProviderError({ provider: "acme", reason })
const retried = (reason: ProviderError.Reason) => failureOf(reason).isRetryable

/** The tags of all codes, those with the same tag in one line. */
const grouped = (pairs: ReadonlyArray<readonly [Tag, string]>) => {
  const groups: Record<string, Array<string>> = {}
  for (const [tag, code] of pairs) (groups[tag] ??= []).push(code)
  return groups
}

describe("every code of an SDK", () => {
  it("of OpenAI has a meaning inside an answer", () => {
    const meant = grouped(
      Codes.openAi.map((code) => [reported({ error: { code, message: "x", type: null } })._tag, code])
    )
    const { ContentPolicy, RateLimited, ServerError, InvalidRequest, ...others } = meant
    assert.deepStrictEqual(ContentPolicy, [
      "bio_policy",
      "misalignment_policy_violation",
      "image_content_policy_violation"
    ])
    assert.deepStrictEqual(RateLimited, ["rate_limit_exceeded"])
    assert.deepStrictEqual(ServerError, ["server_error", "vector_store_timeout"])
    assert.strictEqual(InvalidRequest?.length, Codes.openAi.length - 6)
    assert.deepStrictEqual(others, {})
    for (const code of InvalidRequest ?? []) {
      const reason = reported({ error: { code, message: "x" } })
      const refusedPart = "refused" in reason ? reason.refused : undefined
      assert.strictEqual(refusedPart, code.includes("image") ? "image" : undefined, code)
    }
  })

  it("of Anthropic has the meaning of its status, but for spend, what may not be, and what passes", () => {
    const expected: Readonly<Record<number, Tag>> = {
      400: "InvalidRequest",
      402: "QuotaExceeded",
      403: "Forbidden",
      404: "NotFound",
      409: "ServerError",
      412: "InvalidRequest",
      413: "ContextOverflow",
      429: "RateLimited",
      503: "ServerError",
      529: "Overloaded"
    }
    const others = Codes.anthropicCodes.flatMap(([status, code]) => {
      const { _tag } = refused(status, {
        type: "error",
        error: { message: "x", details: { error_code: code } }
      })
      return _tag === expected[status] ? [] : [`${code} ${_tag}`]
    })
    assert.deepStrictEqual(others.sort(), [
      "contract_spend_limit_reached QuotaExceeded",
      "enforced_spend_limit_reached QuotaExceeded",
      "file_expired InvalidRequest",
      "organization_on_hold Forbidden",
      "storage_quota_exceeded QuotaExceeded",
      "thread_continue_in_flight ServerError",
      "thread_not_found InvalidRequest",
      "user_profile_billing_not_authorized QuotaExceeded",
      "user_profile_not_billable QuotaExceeded"
    ])
  })

  it("of Anthropic's types has one inside an answer too", () => {
    const meant = (type: string) => reported({ type: "error", error: { type, message: "x" } })._tag
    assert.deepStrictEqual(
      Codes.anthropicTypes.map(([type]) => [type, meant(type)]),
      [
        ["invalid_request_error", "InvalidRequest"],
        ["authentication_error", "Unauthenticated"],
        ["billing_error", "QuotaExceeded"],
        ["permission_error", "Forbidden"],
        ["not_found_error", "NotFound"],
        ["rate_limit_error", "RateLimited"],
        ["timeout_error", "ServerError"],
        ["api_error", "ServerError"],
        ["overloaded_error", "Overloaded"],
        ["memory_precondition_failed_error", "InvalidRequest"],
        ["memory_path_conflict_error", "InvalidRequest"],
        ["conflict_error", "ServerError"]
      ]
    )
  })

  it("of Bedrock has one, in a header as in an event", () => {
    const tags: ReadonlyArray<Tag> = [
      "Forbidden",
      "ServerError",
      "ServerError",
      "ServerError",
      "ServerError",
      "ServerError",
      "ServerError",
      "NotFound",
      "QuotaExceeded",
      "Overloaded",
      "RateLimited",
      "InvalidRequest"
    ]
    assert.deepStrictEqual(
      Codes.bedrock.map((name) => refused(400, { message: "x" }, { "x-amzn-errortype": name })._tag),
      tags
    )
    assert.deepStrictEqual(
      Codes.bedrock.map((type) => reported({ type, message: "x" })._tag),
      tags
    )
  })

  it("of Google has one, with a status as without", () => {
    const tags = (read: (status: string, code: number) => ProviderError.Reason) =>
      Codes.google.map(([name, code]) => `${name} ${read(name, code)._tag}`)
    const told = tags((status, code) => refused(code, { error: { code, message: "x", status } }))
    const without = tags((status) => reported({ error: { message: "x", status } }))
    assert.deepStrictEqual(
      told.filter((line) => !without.includes(line)),
      ["ALREADY_EXISTS ServerError", "UNIMPLEMENTED ServerError", "UNAVAILABLE ServerError"]
    )
    assert.includeMembers(told, ["RESOURCE_EXHAUSTED RateLimited", "PERMISSION_DENIED Forbidden"])
  })
})

describe("a failure", () => {
  it("that a policy or an empty account causes is never tried again, whatever its status", () => {
    const codes = [
      "bio_policy",
      "cyber_policy",
      "misalignment_policy_violation",
      "image_content_policy_violation",
      "data_residency_mismatch",
      "content_filter",
      "insufficient_quota",
      "usage_limit_reached",
      "usage_not_included",
      "contract_spend_limit_reached",
      "billing_hard_limit_reached"
    ]
    for (const code of codes) {
      const body = { error: { code, message: "This request was blocked." } }
      for (const reason of [reported(body), ...[400, 403, 429].map((status) => refused(status, body))]) {
        if (code !== "data_residency_mismatch" || reason.status !== 429) assert.isFalse(retried(reason), code)
      }
    }
  })

  it("of money that is used up, or of a policy, is told by plain words whatever the status, the type and the wait say", () => {
    const plain: ReadonlyArray<readonly [Tag, ReadonlyArray<string>]> = [
      [
        "QuotaExceeded",
        [
          "Your project has exceeded its monthly spending cap.",
          "You have reached your specified API usage limits. You will regain access on 2026-12-01.",
          "You have reached your specified workspace API usage limits.",
          "Your prepayment credits are depleted. Please go to AI Studio to manage your billing.",
          "Your team has either used all available credits or reached its monthly spending limit.",
          "You have exceeded your monthly included credits for Inference Providers.",
          "Your credit balance is too low to access the API.",
          "Budget has been exceeded! Current cost: 1.2, Max budget: 1.0",
          "Access denied, please make sure your account is in good standing."
        ]
      ],
      [
        "ContentPolicy",
        [
          "Output blocked by content filtering policy",
          "The response was filtered: it triggered the content management policy.",
          "litellm.ContentPolicyViolationError: blocked"
        ]
      ]
    ]
    const wait = { details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "0.1s" }] }
    for (const [tag, sentences] of plain)
      for (const message of sentences) {
        for (const type of ["invalid_request_error", "api_error", "rate_limit_error"]) {
          assert.strictEqual(reported({ type: "error", error: { type, message } })._tag, tag, message)
          for (const status of [400, 403, 429, 500, 502])
            assert.strictEqual(
              refused(status, { error: { type, message } }, { "retry-after": "1" })._tag,
              tag,
              message
            )
        }
        assert.strictEqual(refused(429, { error: { message, ...wait } })._tag, tag, message)
        assert.strictEqual(VendorFailure.inText(message, "m-1")?._tag, tag, message)
      }
    const doubtful = [
      "quota exceeded",
      "You exceeded your current quota, please check your plan and billing details."
    ]
    for (const message of [
      ...doubtful,
      "Rate limit reached. Add more credits to increase your rate limit."
    ]) {
      assert.strictEqual(refused(429, { error: { message, ...wait } })._tag, "RateLimited", message)
      assert.strictEqual(refused(429, { error: { message } }, { "retry-after": "1" })._tag, "RateLimited")
    }
    assert.strictEqual(
      reported({ error: { type: "api_error", message: "quota exceeded" } })._tag,
      "ServerError"
    )
  })

  it("of an account without money has the codes of many servers, in a response as in an answer", () => {
    const bodies = [
      { code: "Arrearage", message: "Access denied." },
      { code: "PrepaidBillOverdue", message: "no" },
      { code: "AllocationQuota.FreeTierOnly", message: "no" },
      { error: { code: "AccountOverdueError", message: "no" } },
      { error: { code: "400", type: "budget_exceeded", message: "no" } }
    ]
    for (const body of bodies)
      for (const reason of [reported(body), ...[400, 403, 429].map((status) => refused(status, body))])
        assert.strictEqual(reason._tag, "QuotaExceeded", JSON.stringify(body))
  })

  it("that a gateway repeats as the JSON of its provider has the meaning of that", () => {
    const told: ReadonlyArray<readonly [Tag, unknown]> = [
      ["ContentPolicy", { error: { code: "content_filter", message: "blocked" } }],
      ["QuotaExceeded", { error: { code: "insufficient_quota", message: "no" } }],
      ["QuotaExceeded", { code: "Arrearage", message: "no" }],
      ["ContextOverflow", [{ error: { code: "context_length_exceeded", message: "no" } }]],
      ["QuotaExceeded", { error: { message: "Your credit balance is too low" } }],
      ["ServerError", { error: { message: "no" } }]
    ]
    for (const [tag, sent] of told)
      for (const raw of [sent, JSON.stringify(sent), `data: ${JSON.stringify(sent)}\n\n`]) {
        const body = { error: { code: 502, message: "Provider returned error", metadata: { raw } } }
        for (const reason of [refused(502, body), reported(body)])
          assert.strictEqual(reason._tag, tag, JSON.stringify(raw))
      }
  })

  it("inside an answer whose code nobody knows is not tried again, and one without a code is", () => {
    assert.isFalse(retried(reported({ error: { code: "new_policy_2027", message: "no" } })))
    assert.isFalse(retried(reported({ error: { code: 20061, message: "no" } })))
    assert.isTrue(retried(reported({ error: { message: "no" } })))
    assert.isTrue(retried(reported({ type: "error", error: { message: "no" } })))
  })

  it("in a 200 answer is typed in the vendor's words", () => {
    const told: ReadonlyArray<readonly [Tag, string, string]> = [
      [
        "QuotaExceeded",
        "insufficient balance",
        '{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}'
      ],
      [
        "RateLimited",
        "rate limit",
        '{"choices":null,"base_resp":{"status_code":1002,"status_msg":"rate limit"}}'
      ],
      ["ContentPolicy", "sensitive", '{"base_resp":{"status_code":1026,"status_msg":"sensitive"}}'],
      [
        "QuotaExceeded",
        "insufficient balance",
        '{"success":false,"message":"insufficient balance","code":1008}'
      ],
      ["ServerError", "404 NOT_FOUND", '{"code":500,"msg":"404 NOT_FOUND","success":false}'],
      ["Unauthenticated", "Not authenticated", '{"detail":"Not authenticated"}'],
      ["Forbidden", "You have no permission", '{"success":false,"msg":"You have no permission"}'],
      [
        "Unauthenticated",
        "Invalid API key",
        '{"errors":[{"code":9,"message":"Invalid API key"}],"success":false}'
      ],
      ["RateLimited", "Rate limit exceeded", "Rate limit exceeded"],
      ["Overloaded", "The model is overloaded", "The model is overloaded"]
    ]
    for (const [tag, detail, text] of told) {
      const reason = VendorFailure.inText(text, "m-1")
      assert.deepStrictEqual([reason?._tag, reason?.detail], [tag, detail])
    }
  })

  it("is none where an event is one of the protocol, or half of one", () => {
    const events = [
      '{"choices":[{"delta":{"content":"rate limit"}}],"base_resp":{"status_code":0}}',
      '{"type":"content_block_delta","delta":{"text":"insufficient balance"}}',
      '{"candidates":[{"content":{"parts":[{"text":"overloaded"}]}}]}',
      '{"usageMetadata":{"totalTokenCount":3}}',
      '{"id":"x","object":"chat.completion.chunk","choices":[],"code":200}',
      '{"choices":[{"delta":{"content":"the rate limit'
    ]
    for (const text of events) assert.isUndefined(VendorFailure.inText(text, "m-1"), text)
  })

  it("in words that a server sends on is read like the response", () => {
    const told: ReadonlyArray<readonly [Tag, string]> = [
      ["RateLimited", "acme: RateLimited: slow down"],
      ["ContextOverflow", "acme: ContextOverflow"],
      ["RateLimited", "429 Too Many Requests"],
      ["Overloaded", '529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'],
      [
        "QuotaExceeded",
        '429 {"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}'
      ],
      ["NotFound", "Error 404: no such model"],
      ["ServerError", "something"]
    ]
    for (const [tag, words] of told) assert.strictEqual(VendorFailure.ofWords(words)._tag, tag, words)
  })

  it("of a plan that is used up says when it renews", () => {
    const body = {
      error: { type: "usage_limit_reached", message: "The usage limit has been reached", resets_at: 93_600 }
    }
    const reason = refused(429, body, {}, 86_400_000)
    assert.strictEqual(reason._tag, "QuotaExceeded")
    assert.isFalse(retried(reason))
    const renewed = { error: { ...body.error, resets_at: 1_800_010_800 } }
    const failure = failureOf(refused(429, renewed, {}, 1_800_000_000_000))
    assert.deepStrictEqual(failure.retryAfter, Duration.hours(3))
    assert.strictEqual(
      failure.message,
      "acme: QuotaExceeded: The usage limit has been reached. It renews in 3 hours."
    )
  })

  it("says a long wait in words, and no short one", () => {
    const message = (seconds: number) =>
      failureOf(refused(429, { error: { message: "Slow down." } }, { "retry-after": String(seconds) }))
        .message
    assert.strictEqual(message(86_400), "acme: RateLimited: Slow down. Try again in 24 hours.")
    assert.strictEqual(message(7 * 86_400), "acme: RateLimited: Slow down. Try again in 7 days.")
    assert.strictEqual(message(90), "acme: RateLimited: Slow down. Try again in 90 seconds.")
    assert.strictEqual(message(30), "acme: RateLimited: Slow down.")
  })
})

describe("a conversation that is too long", () => {
  const at = (status: number, message: string) => refused(status, { error: { message } })

  it("is told by the words of servers of many kinds", () => {
    const texts: ReadonlyArray<readonly [message: string, limit?: number, size?: number]> = [
      [
        "You passed 202753 input tokens and requested 0 output tokens. However, the model's context length is only 202752 tokens",
        202752,
        202753
      ],
      ["<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]", 983616],
      ["Prompt exceeds max length"],
      ["Input length 203743 exceeds the maximum length 202752. Request id: 0217", 202752, 203743],
      [
        "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 9000>= n_ctx: 4096).",
        4096,
        9000
      ],
      ["prompt token count of 131264 exceeds the limit of 128000", 128000, 131264],
      [
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 333000 tokens.",
        272000,
        333000
      ],
      ["Invalid request: Input token length too long"],
      ["Prompt length (33000) exceeds maximum input length (32768).", 32768, 33000],
      ["Input validation error: `inputs` must have less than 4095 tokens. Given: 4200", 4095, 4200],
      ["The input token count exceeds the maximum number of tokens allowed 1048576.", 1048576],
      ["Requested tokens (5097) exceed context window of 4096", 4096, 5097],
      ["inputs tokens + max_new_tokens must be <= 131072. Given: 131085 inputs tokens", 131072, 131085],
      ["The prompt is too long: 138320, model maximum context length: 131071", 131071, 138320],
      ["The input (40002 tokens) is longer than the model's context length (32768 tokens).", 32768, 40002],
      [
        "This model's maximum context length is 4097 tokens, however you requested 4200 tokens (3200 in your prompt; 1000 for the completion).",
        4097,
        3200
      ],
      ["input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000", 200000, 190000]
    ]
    for (const [message, limit, size] of texts) {
      const reason = at(400, message)
      assert.strictEqual(reason._tag, "ContextOverflow", message)
      if (reason._tag === "ContextOverflow")
        assert.deepStrictEqual([reason.limit, reason.size], [limit, size], message)
    }
    assert.strictEqual(
      refused(400, { error: { code: "1261", message: "Prompt 超长" } })._tag,
      "ContextOverflow"
    )
  })

  it("is what 413 means, with any body or none, unless the body names an image or a file", () => {
    const bodies = [
      "",
      "<html><h1>413 Request Entity Too Large</h1></html>",
      '{"error":{"type":"request_too_large"}}'
    ]
    for (const body of bodies)
      assert.strictEqual(VendorFailure.ofResponse({ status: 413, headers: {}, body })._tag, "ContextOverflow")
    const bytes = {
      error: { type: "request_too_large", message: "Request exceeds the maximum size" },
      request_id: "req_1"
    }
    assert.deepInclude({ ...refused(413, bytes) }, { _tag: "InvalidRequest", refused: "image" })
    assert.deepInclude({ ...at(413, "The image is too large") }, { _tag: "InvalidRequest", refused: "image" })
  })

  it("is none where the budget of output alone is too large", () => {
    const texts = [
      "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.",
      "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
      "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 1200 input tokens (32000 > 32768 - 1200).",
      "This endpoint's maximum context length is 262144 tokens. However, you requested about 284283 tokens (8963 of text input, 13176 of tool input, 262144 in the output).",
      "This model's maximum context length is 4097 tokens, however you requested 4200 tokens (100 in your prompt; 4100 for the completion).",
      "max_tokens: 300000 > 128000, which is the maximum allowed number of output tokens",
      "input length and `max_tokens` exceed context limit: 1000 + 200000 > 200000, decrease input length or `max_tokens`",
      "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 120 `inputs` tokens and 4000 `max_new_tokens`",
      "max_tokens (32000) exceeds the model's maximum context length (8192)"
    ]
    for (const message of texts)
      assert.deepInclude({ ...at(400, message) }, { _tag: "InvalidRequest", refused: "option" }, message)
  })
})

describe("a file that is gone", () => {
  it("is a part of the request, whatever the status", () => {
    const gone = [
      [404, "File not found: file_011CNha8iCJcU1wXNR6q4V8w"],
      [404, "No such File object: file-abc123"],
      [404, "File file-abc not found"],
      [404, "file_id 'file-abc' does not exist"],
      [403, "You do not have permission to access the File abc123 or it may not exist."],
      [400, "The File abc123 is not in an ACTIVE state and usage is not allowed."],
      [400, "Error while downloading file. Upstream status code: 404."],
      [400, "Unable to download the file. Please verify the URL and try again."],
      [400, "Cannot fetch content from the provided URL."]
    ] as const
    for (const [status, message] of gone)
      assert.deepInclude(
        { ...refused(status, { error: { type: "not_found_error", message } }) },
        { _tag: "InvalidRequest", refused: "file", detail: message }
      )
  })

  it("is no file that a web server does not have, and no right that a key lacks", () => {
    for (const message of ["File not found.", "File not found"])
      assert.strictEqual(refused(404, { error: { message } })._tag, "NotFound")
    assert.strictEqual(refused(403, { error: { message: "This key may not use files" } })._tag, "Forbidden")
  })
})
