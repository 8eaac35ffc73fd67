/**
 * Refusals and failures in the words of vendors: what they mean, and whether a request is tried again.
 */
import { Effect } from "effect"
import { ProviderError } from "effect-agent"
import * as VendorFailure from "../../../src/http/VendorFailure.ts"
import type { Report } from "./Report.ts"

type Row = readonly [source: string, input: string, status: number, body: unknown, right: string]
const told = (message: string, more: object = {}) => ({ error: { message, ...more } })
const overflow = "ContextOverflow"
const budget = "InvalidRequest (option)"

const lengths: ReadonlyArray<Row> = [
  [
    "anomalyco/opencode#17762",
    "vLLM",
    400,
    told(
      "You passed 202753 input tokens and requested 0 output tokens. However, the model's context length is only 202752 tokens, resulting in a maximum input length of 202752 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=202753)",
      { type: "BadRequestError", param: "input_tokens", code: 400 }
    ),
    overflow
  ],
  [
    "",
    "vLLM, without the name of the parameter",
    400,
    told(
      "You passed 202753 input tokens and requested 0 output tokens. However, the model's context length is only 202752 tokens, resulting in a maximum input length of 202752 tokens."
    ),
    overflow
  ],
  [
    "earendil-works/pi#5930",
    "vLLM, at least",
    400,
    told(
      "This model's maximum context length is 262144 tokens. However, you requested 0 output tokens and your prompt contains at least 262145 input tokens, for a total of at least 262145 tokens. Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=262145)",
      { type: "BadRequestError", param: "input_tokens", code: 400 }
    ),
    overflow
  ],
  [
    "anomalyco/opencode#45834",
    "DashScope",
    400,
    told("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]", {
      type: "invalid_request_error",
      param: null,
      code: "invalid_parameter_error"
    }),
    overflow
  ],
  ["mangowhoiscloud/geode#668", "GLM", 400, told("Prompt exceeds max length", { code: "1261" }), overflow],
  [
    "langgenius/dify#32221",
    "Volcengine",
    400,
    told("Input length 203743 exceeds the maximum length 202752. Request id: 0217", {
      code: "InvalidParameter",
      param: "",
      type: "BadRequest"
    }),
    overflow
  ],
  [
    "",
    "LM Studio",
    400,
    {
      error:
        "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input"
    },
    overflow
  ],
  [
    "",
    "LM Studio, with its numbers",
    400,
    told(
      "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 9000>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input"
    ),
    overflow
  ],
  [
    "",
    "Copilot",
    400,
    told("prompt token count of 131264 exceeds the limit of 128000", {
      code: "model_max_prompt_tokens_exceeded"
    }),
    overflow
  ],
  [
    "",
    "Copilot, without its code",
    400,
    told("prompt token count of 131264 exceeds the limit of 128000"),
    overflow
  ],
  [
    "",
    "Azure",
    400,
    told(
      "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 333000 tokens. Please reduce the length of the messages."
    ),
    overflow
  ],
  [
    "",
    "Kimi",
    400,
    told("Invalid request: Input token length too long", { type: "invalid_request_error" }),
    overflow
  ],
  [
    "",
    "Kimi, with its numbers",
    400,
    told("Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)", {
      type: "invalid_request_error"
    }),
    overflow
  ],
  [
    "",
    "Anthropic, 413",
    413,
    { type: "error", error: { type: "request_too_large", message: "Request exceeds the maximum size" } },
    overflow
  ],
  [
    "",
    "a proxy, 413",
    413,
    "<html><head><title>413 Request Entity Too Large</title></head></html>",
    overflow
  ],
  ["", "Cerebras, 413 without a body", 413, "", overflow],
  ["", "Cerebras, 400 without a body", 400, "", "InvalidRequest"],
  [
    "",
    "Groq",
    400,
    told("Please reduce the length of the messages or completion.", {
      type: "invalid_request_error",
      code: "context_length_exceeded"
    }),
    overflow
  ],
  [
    "",
    "SGLang",
    400,
    {
      object: "error",
      message: "The input (40002 tokens) is longer than the model's context length (32768 tokens).",
      type: "BadRequestError",
      code: 400
    },
    overflow
  ],
  [
    "use-agent-os/agent-os#657",
    "Gemini",
    400,
    [
      told("The input token count (1058724) exceeds the maximum number of tokens allowed (1048576).", {
        code: 400,
        status: "INVALID_ARGUMENT"
      })
    ],
    overflow
  ],
  [
    "",
    "Gemini, without brackets",
    400,
    told("The input token count exceeds the maximum number of tokens allowed 1048576.", {
      code: 400,
      status: "INVALID_ARGUMENT"
    }),
    overflow
  ],
  [
    "anomalyco/opencode#49965",
    "Ollama",
    400,
    told("prompt too long; exceeded max context length by 4 tokens"),
    overflow
  ],
  [
    "anomalyco/opencode#49965",
    "llama.cpp",
    400,
    told("request (124071 tokens) exceeds the available context size (123904 tokens), try increasing it", {
      code: 400,
      type: "exceed_context_size_error",
      n_prompt_tokens: 124071,
      n_ctx: 123904
    }),
    overflow
  ],
  ["", "Bedrock", 400, { message: "Input is too long for requested model." }, overflow],
  [
    "",
    "Bedrock, input and max_tokens",
    400,
    {
      message:
        "The model returned the following errors: input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length or `max_tokens` and try again"
    },
    overflow
  ],
  [
    "",
    "Mistral",
    400,
    {
      object: "error",
      message:
        "Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
      type: "invalid_request_invalid_args",
      code: "3051"
    },
    overflow
  ],
  [
    "",
    "Fireworks",
    400,
    told("The prompt is too long: 138320, model maximum context length: 131071"),
    overflow
  ],
  [
    "",
    "NIM",
    400,
    told(
      "Prompt length (33000) exceeds maximum input length (32768). Set log level to info and check TRTLLM logs for more details"
    ),
    overflow
  ],
  [
    "",
    "TGI",
    422,
    {
      error: "Input validation error: `inputs` must have less than 4095 tokens. Given: 4200",
      error_type: "validation"
    },
    overflow
  ],
  ["", "Baseten", 400, told("Requested tokens (40000) exceed context window of 32768"), overflow],
  [
    "",
    "llama-cpp-python",
    400,
    told("Requested tokens (5097) exceed context window of 4096", { type: "internal_server_error" }),
    overflow
  ],
  [
    "",
    "DeepInfra",
    400,
    told("inputs tokens + max_new_tokens must be <= 131072. Given: 131085 inputs tokens"),
    overflow
  ],
  [
    "",
    "xAI",
    400,
    {
      code: "Client specified an invalid argument",
      error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens."
    },
    overflow
  ],
  ["", "Copilot, Claude", 400, told("prompt is too long: 200045 tokens > 200000 maximum"), overflow],
  [
    "",
    "too large a max_tokens",
    400,
    told(
      "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.",
      { code: "invalid_value" }
    ),
    budget
  ],
  [
    "",
    "too large a max_tokens, DeepSeek",
    400,
    told("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"),
    budget
  ],
  [
    "",
    "too large a max_tokens, vLLM",
    400,
    told(
      "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 1200 input tokens (32000 > 32768 - 1200). (parameter=max_tokens, value=32000)",
      { type: "BadRequestError", param: "max_tokens", code: 400 }
    ),
    budget
  ],
  [
    "openclaw/openclaw#85921",
    "too large a max_tokens, OpenRouter",
    400,
    told(
      "This endpoint's maximum context length is 262144 tokens. However, you requested about 284283 tokens (8963 of text input, 13176 of tool input, 262144 in the output). Please reduce the length of either one",
      { code: 400 }
    ),
    budget
  ],
  [
    "",
    "tokens a minute",
    429,
    told(
      "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.",
      { code: "rate_limit_exceeded" }
    ),
    "RateLimited, again"
  ],
  [
    "",
    "tokens a minute, Bedrock",
    429,
    { message: "Too many tokens, please wait before trying again." },
    "RateLimited, again"
  ],
  [
    "",
    "tokens a day, Bedrock",
    429,
    { message: "Too many tokens per day, please wait before trying again." },
    "QuotaExceeded"
  ],
  [
    "openai/codex#3942",
    "encrypted thinking",
    400,
    told("The encrypted content gAAA...dQ== could not be verified.", {
      type: "invalid_request_error",
      code: "invalid_encrypted_content"
    }),
    "InvalidRequest (thinking)"
  ]
]

const anthropic = (
  status: number,
  type: string,
  error_code: string,
  message = "x"
): readonly [status: number, body: object] => [
  status,
  { type: "error", error: { type, message, details: { error_code } }, request_id: "req_1" }
]
const codes: ReadonlyArray<Row> = [
  [
    "",
    "contract_spend_limit_reached",
    ...anthropic(
      429,
      "rate_limit_error",
      "contract_spend_limit_reached",
      "Your organization has reached the spend limit of its contract."
    ),
    "QuotaExceeded"
  ],
  [
    "",
    "enforced_spend_limit_reached",
    ...anthropic(
      429,
      "rate_limit_error",
      "enforced_spend_limit_reached",
      "Your organization has crossed the API usage threshold of its tier for this month."
    ),
    "QuotaExceeded"
  ],
  [
    "",
    "ramp_limit_exceeded",
    ...anthropic(429, "rate_limit_error", "ramp_limit_exceeded", "The request would exceed a ramp limit."),
    "RateLimited, again"
  ],
  [
    "",
    "linked_organization_spend_limit_reached",
    ...anthropic(402, "billing_error", "linked_organization_spend_limit_reached", "spend limit"),
    "QuotaExceeded"
  ],
  [
    "",
    "linked_organization_billing_unavailable",
    ...anthropic(402, "billing_error", "linked_organization_billing_unavailable"),
    "QuotaExceeded"
  ],
  [
    "",
    "compaction_unavailable",
    ...anthropic(529, "overloaded_error", "compaction_unavailable", "Compaction is unavailable"),
    "Overloaded, again"
  ],
  [
    "",
    "image_dimensions_too_large",
    ...anthropic(
      400,
      "invalid_request_error",
      "image_dimensions_too_large",
      "At least one of the image dimensions exceed max allowed size: 8000 pixels"
    ),
    "InvalidRequest (image)"
  ],
  [
    "",
    "organization_on_hold",
    ...anthropic(
      400,
      "invalid_request_error",
      "organization_on_hold",
      "This organization has been disabled."
    ),
    "Forbidden"
  ],
  [
    "",
    "request_body_too_large_after_decoding",
    ...anthropic(
      413,
      "request_too_large",
      "request_body_too_large_after_decoding",
      "Request exceeds the maximum size"
    ),
    "InvalidRequest (image)"
  ],
  [
    "",
    "user_profile_not_billable",
    ...anthropic(403, "permission_error", "user_profile_not_billable"),
    "QuotaExceeded"
  ],
  [
    "",
    "thread_continue_in_flight",
    ...anthropic(409, "conflict_error", "thread_continue_in_flight"),
    "ServerError, again"
  ],
  [
    "",
    "available_tools_limit_exceeded",
    ...anthropic(400, "invalid_request_error", "available_tools_limit_exceeded", "too many tools"),
    "InvalidRequest (tool)"
  ],
  ["", "timeout_error", ...anthropic(504, "timeout_error", "", "timeout"), "ServerError, again"],
  [
    "earendil-works/pi#4172",
    "usage_limit_reached",
    429,
    {
      error: {
        type: "usage_limit_reached",
        message: "The usage limit has been reached",
        resets_in_seconds: 13872
      }
    },
    "QuotaExceeded"
  ]
]

/** What a failure in an answer of OpenAI means, by its code. */
const inAnswers: ReadonlyArray<readonly [code: string, right: string]> = [
  ["server_error", "ServerError, again"],
  ["rate_limit_exceeded", "RateLimited, again"],
  ["invalid_prompt", "InvalidRequest"],
  ["data_residency_mismatch", "InvalidRequest"],
  ["bio_policy", "ContentPolicy"],
  ["misalignment_policy_violation", "ContentPolicy"],
  ["cyber_policy", "ContentPolicy"],
  ["image_content_policy_violation", "ContentPolicy (image)"],
  ["content_filter", "ContentPolicy"],
  ["vector_store_timeout", "ServerError, again"],
  ["invalid_image", "InvalidRequest (image)"],
  ["image_parse_error", "InvalidRequest (image)"],
  ["failed_to_download_image", "InvalidRequest (image)"],
  ["image_file_not_found", "InvalidRequest (image)"],
  ["image_too_large", "InvalidRequest (image)"],
  ["context_length_exceeded", overflow],
  ["insufficient_quota", "QuotaExceeded"],
  ["model_error", "InvalidRequest"],
  ["server_is_overloaded", "Overloaded, again"],
  ["slow_down", "Overloaded, again"],
  ["websocket_connection_limit_reached", "ServerError, again"],
  ["usage_limit_reached", "QuotaExceeded"],
  ["usage_not_included", "QuotaExceeded"],
  ["previous_response_not_found", "InvalidRequest"]
]

const meaning = (reason: ProviderError.Reason): string => {
  const error = new ProviderError.ProviderError({ provider: "acme", reason })
  const part = "refused" in reason && reason.refused !== undefined ? ` (${reason.refused})` : ""
  return `${reason._tag}${part}${error.isRetryable ? ", again" : ""}`
}

export const reports: ReadonlyArray<Report> = [
  ...[...lengths, ...codes].map(([source, input, status, body, right]) => ({
    source,
    input: `Refusal: ${input}`,
    seen: Effect.sync(() =>
      meaning(
        VendorFailure.ofResponse({
          status,
          headers: {},
          body: typeof body === "string" ? body : JSON.stringify(body),
          model: "m",
          now: 0
        })
      )
    ),
    right
  })),
  ...inAnswers.map(([code, right]) => ({
    source: "",
    input: `Failure in an answer: ${code}`,
    seen: Effect.sync(() =>
      meaning(VendorFailure.ofErrorEvent(JSON.stringify({ error: { code, message: "x", type: null } }), "m"))
    ),
    right
  }))
]
