/**
 * What the codes and the words of vendors mean: the one table of them, each row with its source. `VendorFailure` reads an error
 * and asks it.
 *
 * Vendors: SDK is the list of codes in openai 7.57, @anthropic-ai/sdk 1.14, @google/genai 3.3 and client-bedrock-runtime 3.1164.
 */
import type { RefusedPart } from "../ProviderError.ts"
import * as VendorText from "./VendorText.ts"

// ───────────────────────── Codes

/** The reasons that an error of a vendor may have. */
const tags = [
  "RateLimited",
  "Overloaded",
  "QuotaExceeded",
  "Unauthenticated",
  "Forbidden",
  "NotFound",
  "InvalidRequest",
  "ContextOverflow",
  "ContentPolicy",
  "ServerError"
] as const
export type Meaning = (typeof tags)[number]

/** Whether a name is that of a meaning. */
export const isMeaning = (name: string): name is Meaning => tags.some((tag) => tag === name)

/** The meaning of codes that say more than their status, `undefined` for others. They are in lower case. */
export const meaningOf = (codes: ReadonlyArray<string>): Meaning | undefined =>
  meanings.find(([, pattern]) => codes.some((code) => pattern.test(code)))?.[0]

/** The first that fits counts. */
const meanings: ReadonlyArray<readonly [Meaning, RegExp]> = [
  // OpenAI, Groq: context_length_exceeded; llama.cpp: exceed_context_size_error; GitHub: model_max_prompt_tokens_exceeded,
  // tokens_limit_reached; Cohere, Cloudflare, Together and LiteLLM: the others. Z.ai and BigModel: 1261 (docs.z.ai/api-reference/
  // api-code); MiniMax: 1039 (platform.minimax.io/docs/api-reference/errorcode).
  [
    "ContextOverflow",
    /^(?:context_length_exceeded|exceed_context_size(?:_error)?|(?:model_)?max_prompt_tokens_exceeded|too_many_prompt_tokens|context_?window_?exceeded(?:_?error)?|input_too_long|tokens_limit_reached|string_above_max_context_length|1261|base_resp 1039)$/
  ],
  // OpenAI: insufficient_quota, billing_hard_limit_reached; of ChatGPT plans usage_limit_reached, usage_not_included (openai/codex).
  // Anthropic: billing_error, contract_, enforced_ and linked_organization_spend_limit_reached, user_profile_not_billable (SDK).
  // DeepSeek, Kimi: insufficient_balance, exceeded_current_quota_error (platform.kimi.ai/docs/api/errors); Bedrock:
  // ServiceQuotaExceededException. LiteLLM: budget_exceeded. Google: BILLING_DISABLED. Alibaba: Arrearage, PrepaidBillOverdue,
  // PostpaidBillOverdue, AllocationQuota.FreeTierOnly; Volcengine: AccountOverdueError. Z.ai: 1113, 1304, 1308 to 1311; MiniMax: 1008, 1028, 1030, 2056, 2061
  // (MiniMax-AI/cli, src/errors/api.ts).
  [
    "QuotaExceeded",
    /insufficient_(?:quota|balance|credits?|funds)|billing|billable|payment_required|spend_limit_reached|budget_exceeded|overdue|^(?:arrearage|allocationquota\.freetieronly|usage_limit_(?:reached|exceeded)|usage_not_included|credits?_exhausted|(?:storage_)?quota_exceeded|exceeded_current_quota(?:_error)?|servicequotaexceededexception|1113|1304|1308|1309|1310|1311|base_resp (?:1008|1028|1030|2056|2061))$/
  ],
  // OpenAI: bio_policy, misalignment_policy_violation, image_content_policy_violation (SDK), cyber_policy (openai/codex). Azure:
  // content_filter, ResponsibleAIPolicyViolation. Alibaba: data_inspection_failed; Z.ai: 1301; MiniMax: 1026, 1027. Codes of
  // Anthropic for policies of a workspace or an organization are none.
  [
    "ContentPolicy",
    /^(?!workspace|external|organization)(?:\w+_)?policy(?:_violation)?$|^(?:content_filter\w*|content_blocked|content_moderation\w*|moderation_\w+|\w*data_?inspection_?failed|responsibleaipolicyviolation|safety\w*|1301|base_resp (?:1026|1027))$/
  ],
  // A request cannot change what the organization may do. OpenAI: the first two; Anthropic: organization_on_hold (SDK); Z.ai: 1112,
  // 1121, 1220, 1313.
  [
    "Forbidden",
    /^(?:unsupported_country_region_territory|account_(?:deactivated|suspended|disabled)|organization_(?:on_hold|disabled)|1112|1121|1220|1313)$/
  ],
  // Google: reason API_KEY_INVALID; OpenAI: invalid_api_key; MiniMax: 1004, 2049.
  ["Unauthenticated", /^(?:api_?key_?invalid|invalid_?api_?key|base_resp (?:1004|2049))$/],
  // OpenAI, Azure, Z.ai.
  ["NotFound", /^(?:model_not_(?:found|available|exist)|deploymentnotfound|1211)$/],
  // Anthropic and OpenAI: of what the request refers to, not of a model. SDK of OpenAI: data_residency_mismatch.
  [
    "InvalidRequest",
    /^(?:previous_response|thread|response|conversation)_not_found$|^data_residency_mismatch$/
  ],
  // Z.ai: 1302, 1303, 1305; MiniMax: 1002, 1041.
  ["RateLimited", /^(?:1302|1303|1305|base_resp (?:1002|1041))$/],
  // Z.ai: 1312.
  ["Overloaded", /^1312$/],
  // MiniMax: 1000, 1001, 1013, 1024, 1033; Z.ai: 1120, 1230, 1234; Anthropic: a thread that another request continues (SDK).
  [
    "ServerError",
    /^(?:1120|1230|1234|base_resp (?:1000|1001|1013|1024|1033)|thread_continue_in_flight|websocket_connection_limit_reached)$/
  ]
]

// ───────────────────────── Words

/**
 * The meaning of words that are more exact than a status, `undefined` for others. `status` is absent for an error inside an answer, and
 * `waits` where the server names a wait.
 */
export const meaningOfWords = (message: string, status?: number, waits = false): Meaning | undefined =>
  words.find(([, at, pattern]) => at(status, waits) && pattern.test(message))?.[0]

type At = (status: number | undefined, waits: boolean) => boolean

const always: At = () => true

const among =
  (...statuses: ReadonlyArray<number>): At =>
  (status) =>
    status === undefined || statuses.includes(status)

/** The first that fits counts, at the statuses with which vendors send it. */
const words: ReadonlyArray<readonly [Meaning, At, RegExp]> = [
  // Money that is used up, whatever the status and the wait say. Anthropic: "reached your specified API usage limits"; Google:
  // "exceeded its monthly spending cap", "Your prepayment credits are depleted"; xAI: "used all available credits"; LiteLLM: "Budget
  // has been exceeded!"; Alibaba: "make sure your account is in good standing".
  [
    "QuotaExceeded",
    always,
    /insufficient (?:account )?(?:balance|credit|funds)|balance is (?:too low|not enough|insufficient)|(?:out of|not enough|\bno) (?:\w+ )?credits|(?:used all|depleted|exhausted|exceeded) (?:\w+ ){0,4}credits|credits? (?:\w+ ){0,2}(?:depleted|exhausted|used up)|pre-?pa(?:y|id|yment) (?:credits?|balance)|monthly (?:\w+ )?(?:limit|cap|budget|quota|spend)|spend(?:ing)? (?:limit|cap|budget|quota)|(?:specified|workspace) (?:\w+ ){0,2}usage limit|budget has been exceeded|exceeded(?:token)?budget|in good standing|余额不足|已欠费/i
  ],
  // Anthropic: "Output blocked by content filtering policy", also as an `api_error`; Azure: "content management policy".
  [
    "ContentPolicy",
    always,
    /\bcontent[ _]?(?:\w+ )?polic(?:y|ies)|blocked by (?:\w+ ){0,3}(?:content|safety) filter/i
  ],
  // Z.ai, Kimi, Groq: the words do not distinguish an empty account from a limit of a minute, which a wait does. Bedrock: "Too many
  // tokens per day".
  [
    "QuotaExceeded",
    (status, waits) => !waits && among(400, 403, 429)(status, waits),
    /insufficient quota|more credits|exceeded your \w+ (?:quota|budget)|quota exceeded|(?:daily|weekly|usage|billing)(?: hard)? (?:limit|cap|budget|quota)|\b(?:tokens|requests) per day\b/i
  ],
  // pi's servers and plain texts in place of an answer.
  ["RateLimited", among(), /rate.?limit|too many (?:requests|tokens)|throttl/i],
  // OpenAI, OpenRouter, Alibaba.
  [
    "ContentPolicy",
    among(400, 403, 421, 451),
    /\bflagged\b|usage polic|moderation|inappropriate content|potentially high.risk/i
  ],
  // OpenAI, xAI, Google; FastAPI: "Not authenticated".
  [
    "Unauthenticated",
    among(400),
    /(?:incorrect|invalid|wrong|missing) api.?key|api key (?:not valid|is invalid)|\bnot authenticated\b|\bunauthori[sz]ed\b|\bunauthenticated\b|authentication fail/i
  ],
  ["Forbidden", among(), /\bforbidden\b|permission denied|access denied|no permission/i],
  // OpenRouter, Groq, Ollama.
  [
    "NotFound",
    among(400),
    /model\b.{0,100}(?:does not exist|not found|is not a valid model)|not a valid model|\bunknown model\b/i
  ],
  // Anthropic, Google, llama.cpp, Hugging Face.
  ["Overloaded", (status = 500) => status >= 500, /overload|at capacity|no capacity|loading model/i],
  // Gateways, in plain text.
  ["ServerError", among(), /upstream|timed? ?out|internal (?:server )?error|bad gateway|service unavailable/i]
]

// ───────────────────────── Statuses

/** The status of a name of AWS, which says more than the one of HTTP: 403 is an expired token too. `undefined` for other codes. */
export const awsStatus = (codes: ReadonlyArray<string>, message: string): number | undefined => {
  const code = codes.find((code) => aws.has(code))
  if (code === undefined) return undefined
  if (code === "accessdeniedexception" && /api key|authentication failed/i.test(message)) return 401
  if (code === "validationexception" && /model identifier is invalid/i.test(message)) return 404
  return aws.get(code)
}

/** docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html, and the exceptions of its SDK. */
const aws: ReadonlyMap<string, number> = new Map([
  ["accessdeniedexception", 403],
  ["conflictexception", 409],
  ["expiredtoken", 401],
  ["expiredtokenexception", 401],
  ["incompletesignature", 401],
  ["incompletesignatureexception", 401],
  ["internalserverexception", 500],
  ["invalidclienttokenid", 401],
  ["invalidsignatureexception", 401],
  ["missingauthenticationtokenexception", 401],
  // The model failed, which another try may not.
  ["modelerrorexception", 500],
  ["modelnotreadyexception", 503],
  ["modelstreamerrorexception", 500],
  ["modeltimeoutexception", 408],
  ["resourcenotfoundexception", 404],
  ["servicequotaexceededexception", 402],
  ["serviceunavailableexception", 529],
  ["throttlingexception", 429],
  ["unrecognizedclientexception", 401],
  ["validationexception", 400]
])

/** The status that the codes of an error inside an answer stand for, `undefined` if no row knows them. */
export const statusOf = (codes: ReadonlyArray<string>): number | undefined =>
  statuses.find(([pattern]) => codes.some((code) => pattern.test(code)))?.[1]

/** Types of OpenAI, Anthropic and their imitators; names of google.rpc.Code (cloud.google.com/apis/design/errors). */
const statuses: ReadonlyArray<readonly [RegExp, number]> = [
  [/rate.?limit|too_?many_?requests|resource_exhausted|throttl/, 429],
  [/overload|capacity|slow_down|unavailable/, 529],
  [/permission|forbidden|access_?denied/, 403],
  [/authenti|api_key|unauthori[sz]ed/, 401],
  [/not_?found/, 404],
  [/quota|payment/, 402],
  [/timeout|timed_?out|deadline/, 408],
  [
    /invalid|bad_?request|unprocessable|precondition|unsupported|unimplemented|out_of_range|already_exists/,
    400
  ],
  [
    /server_?error|internal|^api_error$|bad_?gateway|upstream|^(?:unknown|aborted|cancelled|data_loss|conflict_error)$/,
    500
  ]
]

/** The meaning of a status. A status below 400 has none, and an unknown one is a refusal. */
export const meaningOfStatus = (status: number): Meaning =>
  byStatus.get(status) ?? (status >= 500 ? "ServerError" : "InvalidRequest")

const byStatus: ReadonlyMap<number, Meaning> = new Map([
  [401, "Unauthenticated"],
  [402, "QuotaExceeded"],
  [403, "Forbidden"],
  [404, "NotFound"],
  // Timeout, conflict, "too early", and Google's "cancelled", which this client did not cause, are temporary like a failure of the
  // server.
  [408, "ServerError"],
  [409, "ServerError"],
  [425, "ServerError"],
  [499, "ServerError"],
  // A body that is too large. Gateways say no word about the context.
  [413, "ContextOverflow"],
  // MiMo: content moderation (platform.xiaomimimo.com/docs, error codes).
  [421, "ContentPolicy"],
  [429, "RateLimited"],
  // Groq: capacity of the flex tier is exceeded; Anthropic: overloaded.
  [498, "Overloaded"],
  [529, "Overloaded"]
])

// ───────────────────────── Context overflow

/** The token counts in an error about the context window, if it contains them. */
export interface Overflow {
  readonly limit?: number
  readonly size?: number
}

/**
 * The overflow that the words report, `undefined` for another failure: also for a budget of output that is too large beside a
 * conversation that fills at most half of the window. There a shorter conversation is no help.
 */
export const overflowIn = (words: string): Overflow | undefined => {
  const message = VendorText.start(words)
  const match = overflows.map((wording) => wording.exec(message)).find((found) => found !== null)
  if (match === undefined) return undefined
  const limit = count(match.groups?.["limit"])
  const total = count(match.groups?.["size"])
  const output = count(outputSize.exec(message)?.groups?.["output"])
  const rest = total === undefined || output === undefined || output >= total ? total : total - output
  const size = count(inputSize.exec(message)?.groups?.["input"]) ?? rest
  const isKnown = limit !== undefined && size !== undefined
  if (isKnown ? size <= limit / 2 && outputWords.test(message) : outputRefusal.test(message)) return undefined
  return { ...(limit === undefined ? {} : { limit }), ...(size === undefined ? {} : { size }) }
}

const count = (digits: string | undefined): number | undefined =>
  digits === undefined ? undefined : Number(digits.replaceAll(",", ""))

/** OpenAI: "(3200 in your prompt; 1000 for the completion)"; vLLM: "your request has 1200 input tokens"; TGI: "Given: 1200 `inputs` tokens". */
const inputSize =
  /(?<![\d,])(?<input>\d[\d,]{0,14}) (?:tokens )?(?:in (?:your|the) (?:prompt|messages|input)|`?inputs?`? tokens|tokens from the input)/i
/** OpenAI: "1000 for the completion"; OpenRouter: "262144 in the output". */
const outputSize =
  /(?<![\d,])(?<output>\d[\d,]{0,14}) (?:tokens )?(?:in the output|(?:in|for) the completion|output tokens)/i
const outputWords = /\bmax_\w*tokens\b|\boutput\b|\bcompletion\b/i
const outputRefusal =
  /^(?![^]*\b(?:input|prompt|messages)\b)[^]*\b(?:max_\w*tokens|output tokens|completion tokens)\b/i

/** Patterns with numbers come first. Each repetition is bounded: a server may send any text. */
const overflows: ReadonlyArray<RegExp> = [
  // Anthropic, Copilot: "prompt is too long: 204000 tokens > 200000 maximum". Fireworks: "The prompt is too long: 138320, model
  // maximum context length: 131071".
  /prompt is too long: (?<size>\d{1,15})(?: tokens?)?(?: > |, model maximum context length: )(?<limit>\d{1,15})/i,
  // Anthropic, Bedrock: "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000".
  /exceed context limit: (?<size>\d{1,15}) \+ \d{1,15} > (?<limit>\d{1,15})/i,
  // vLLM (anomalyco/opencode#17762): "You passed 202753 input tokens and requested 0 output tokens. However, the model's context
  // length is only 202752 tokens".
  /you passed (?<size>\d{1,15}) input tokens[^]{0,120}?context length is only (?<limit>\d{1,15})/i,
  // OpenAI, OpenRouter, DeepSeek, Groq, vLLM (earendil-works/pi#5930).
  /maximum context length (?:is|of) (?<limit>[\d,]{1,15})[^]{0,120}?(?:requested|resulted in|contains?|has)\D{0,40}(?<size>[\d,]{1,15})/i,
  // OpenAI, Azure: "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 333000 tokens."
  /exceed the configured limit of (?<limit>\d{1,15}) tokens[^]{0,60}?resulted in (?<size>\d{1,15})/i,
  // Google: "The input token count (1058724) exceeds the maximum number of tokens allowed (1048576)", also without brackets.
  /input token count (?:\((?<size>\d{1,15})\) )?exceeds the maximum number of tokens allowed \(?(?<limit>\d{1,15})/i,
  // xAI: "This model's maximum prompt length is 131072 but the request contains 537812 tokens."
  /maximum prompt length is (?<limit>\d{1,15})\D{1,60}(?<size>\d{1,15})/i,
  // Copilot: "prompt token count of 131264 exceeds the limit of 128000".
  /token count of (?<size>\d{1,15}) exceeds the limit of (?<limit>\d{1,15})/i,
  // Volcengine (langgenius/dify#32221): "Input length 203743 exceeds the maximum length 202752". NIM: "Prompt length (33000) exceeds
  // maximum input length (32768)". SGLang: "Input length (40002 tokens) exceeds the maximum allowed length (32768 tokens)".
  /(?:input|prompt) length \(?(?<size>\d{1,15})(?: tokens)?\)? exceeds (?:the )?maximum (?:\w+ )?length \(?(?<limit>\d{1,15})/i,
  // Alibaba (anomalyco/opencode#45834): "Range of input length should be [1, 983616]".
  /range of input length should be \[\d+, ?(?<limit>\d{1,15})\]/i,
  // llama.cpp, LM Studio.
  /\((?<size>\d{1,15}) tokens\) exceeds the available context size \((?<limit>\d{1,15})/i,
  /first (?<size>\d{1,15}) tokens when context[^]{0,200}?context length of only (?<limit>\d{1,15})/i,
  /tokens to keep from the initial prompt is greater than the context length(?: \(n_keep: (?<size>\d{1,15}) ?>= n_ctx: (?<limit>\d{1,15}))?/i,
  // SGLang: "The input (40002 tokens) is longer than the model's context length (32768 tokens)."
  /\((?<size>\d{1,15}) tokens\) is longer than the model's context length \((?<limit>\d{1,15})/i,
  // llama-cpp-python, Baseten: "Requested tokens (5097) exceed context window of 4096".
  /requested tokens \((?<size>\d{1,15})\) exceed context window of (?<limit>\d{1,15})/i,
  // Kimi: "Your request exceeded model token limit: 262144 (requested: 291351)".
  /model token limit: (?<limit>\d{1,15}) \(requested: (?<size>\d{1,15})\)/i,
  // Mistral: "Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length".
  /contains (?<size>\d{1,15}) tokens[^]{0,120}?(?<limit>\d{1,15}) maximum context/i,
  // vLLM: "(length 9000) is longer than the maximum model length of 8192".
  /\(length (?<size>\d{1,15})\) is longer than the maximum model length of (?<limit>\d{1,15})/i,
  // TGI, Together, DeepInfra: "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4090 `inputs` tokens and 20
  // `max_new_tokens`"; "`inputs` must have less than 4095 tokens. Given: 4200".
  /must be <= (?<limit>\d{1,15})\. Given: (?<size>\d{1,15}) `?inputs`? tokens/i,
  /must have less than (?<limit>\d{1,15}) tokens\. Given: (?<size>\d{1,15})/i,
  // OpenAI and Groq, if one request exceeds the limit of a minute. Waiting does not help, a shorter request does.
  /request too large[^]{0,120}?limit (?<limit>\d{1,15}), requested (?<size>\d{1,15})/i,
  // GitHub: "Request body too large for gpt-4o model. Max size: 8000 tokens."
  /too large for \S+ model\. max size: (?<limit>\d{1,15}) tokens/i,
  // Ollama, Azure, MiniMax, Together and others.
  /context[ _-]?(?:window|length|size|limit)[^]{0,60}(?:exceed|overflow|too (?:long|large|small))/i,
  /(?:exceed|overflow|larger than|longer than|greater than|too (?:long|large) for)[^]{0,60}context[ _-]?(?:window|length|size|limit)/i,
  // Bedrock, Perplexity, Cohere, Kimi ("Input token length too long"), Z.ai ("Prompt exceeds max length", mangowhoiscloud/geode#668;
  // "Prompt 超长"), Baidu ("the input prompt tokens is too long").
  /(?:prompt|input|conversation|total length of all messages)(?: prompt)?(?: tokens?)?(?: length)? (?:is |are )?too (?:long|large)/i,
  /(?:prompt|input)(?: tokens?)?(?: length| count)?(?: \(\d+\))? exceeds? (?:the )?max(?:imum)?(?: (?:\w+ ){0,2}(?:length|tokens?))|prompt ?超长/i,
  // Bedrock also uses these words for limits of a minute or a day.
  /too many (?:input |prompt )?tokens(?!,? please wait| per (?:minute|hour|day)| processed)/i,
  /maximum context length/i
]

// ───────────────────────── Parts of a request

/** The part of a request that an error refuses, `undefined` if it names none that is known. `codes` are in lower case. */
export const refusedPart = (codes: ReadonlyArray<string>, message: string): RefusedPart | undefined => {
  const { part } =
    refusals.find(
      ({ code, words }) => codes.some((found) => code?.test(found) === true) || words?.test(message) === true
    ) ?? {}
  return part === "option" && inHistory.test(message) ? undefined : part
}

/** The place of a message in a request: `messages.3.content`, `messages[3]`, `input[2].output`, `["body","messages",3]`. */
const inHistory = /\b(?:messages|input|contents)(?:\.|\.?\[|["'], ?)\d/

interface Refusal {
  readonly part: RefusedPart
  readonly code?: RegExp
  readonly words?: RegExp
}

/** The first that fits counts. */
const refusals: ReadonlyArray<Refusal> = [
  // OpenAI: "The encrypted content … could not be verified." openai/codex#3942, #8119. SDK of Anthropic 1.14, of a summary
  // that it has signed.
  { part: "thinking", code: /^(?:invalid_encrypted_content|compaction_signature_invalid)$/ },
  {
    part: "thinking",
    words: /encrypted[ _]content\b.{0,200}\b(?:could not be|decrypt|verif|invalid|organization)/is
  },
  // OpenAI: "Item 'rs_1' of type 'reasoning' was provided without its required following item" (vercel/ai#7099), "Item 'fc_1' of
  // type 'function_call' was provided without its required 'reasoning' item" (TanStack/ai#1212), with 404 "Item with id 'rs_1' not
  // found. Items are not persisted when `store` is set to false" (can1357/oh-my-pi#41).
  { part: "thinking", words: /without its required|item with id '?\w+'? not found/i },
  // Anthropic and Bedrock: "Invalid `signature` in `thinking` block" (anthropics/anthropic-sdk-python#1598), "`thinking` or
  // `redacted_thinking` blocks in the latest assistant message cannot be modified" (anthropics/claude-code#63203), "Expected
  // `thinking` or `redacted_thinking`, but found `tool_use`" (docs, extended thinking), "thinking.signature: Field required",
  // "Input tag 'thinking' found using 'type' does not match" (servers that speak Messages).
  {
    part: "thinking",
    words:
      /redacted_thinking|thinking[`'"]? blocks?\b|thinking\.(?:signature|thinking)\b|tag [`'"]thinking\b/i
  },
  // Gemini: "Thought signature is not valid", "Corrupted thought signature", "Function call is missing a thought_signature"
  // (docs, thought signatures; langgenius/dify-official-plugins#2088).
  { part: "thinking", words: /thought[ _]?signature/i },
  // DeepSeek and Kimi, of thinking that is missing or not wanted: "The `reasoning_content` in the thinking mode must be passed
  // back" (docs, thinking mode; anomalyco/opencode#25356); Cerebras: "property 'messages.2.assistant.reasoning_content' is
  // unsupported" (Kilo-Org/kilocode#10375).
  { part: "thinking", words: /\breasoning_(?:content|details|text)\b/i },

  // OpenAI: "Invalid schema for function 'f'", code `invalid_function_parameters`; SDK of Anthropic 1.14: codes of its tools, and
  // "tools.0.custom.input_schema: …"; Gemini: "GenerateContentRequest.tools[0].function_declarations[0]…".
  {
    part: "tool",
    code: /^(?:invalid_function_parameters|available_tools_limit_exceeded|tool_(?:name_conflict|reference_unresolved))$/
  },
  { part: "tool", words: /\binvalid schema for function\b|\btools[.[]\d|\bfunction_declarations\[\d/i },

  // An uploaded file or an address that is gone. Anthropic: "File not found: file_01" (404); OpenAI: "No such File object: file-1"
  // (404), "Error while downloading file. Upstream status code: 404."; Gemini: "You do not have permission to access the File x or it
  // may not exist." (403), "The File x is not in an ACTIVE state". Web servers say "File not found" of the address of a request.
  {
    part: "file",
    words:
      /\bno such file object\b|\bfile not found: ?[\w'"`]|\bfile(?:_id)?\b[^\w\n]{0,3}(?!not\b)\S.{0,120}?(?:\bnot (?:be )?found\b|\bnot exist|\bexpired\b|\bdeleted\b|\bno longer\b|\bnot in an active\b)|\b(?:down ?load|fetch)\w*\b.{0,40}\b(?:file|url|content)\b/i
  },

  // OpenAI's `ResponseError` (SDK 7.57) and Anthropic's `image_dimensions_too_large` (SDK 1.14).
  { part: "image", code: /image/ },
  // Anthropic: "image exceeds 5 MB maximum" (earendil-works/pi#824), "Could not process image" (anthropics/claude-code#53228),
  // "image dimensions exceed max allowed size"; Gemini: "Unable to process input image", "Provided image is not valid"; vLLM: "At
  // most 0 image(s) may be provided", "is not a multimodal model"; llama.cpp: "image input is not supported"; OpenRouter and MiMo, with 404: "No
  // endpoints found that support image input" (JohnnyZ93/oai-compatible-copilot#229); xAI, Mistral: "Image input is not enabled for this model"; Converse: "the image
  // content block that you provided"; Groq: "content must be a string" of a model that reads text only; DeepSeek: "unknown
  // variant `image_url`, expected `text`".
  {
    part: "image",
    words:
      /\bimages?(?:\(s\)|_url)?\b|\bvision\b|multi-?modal|content[`'"]? must be a string|unsupported mime type:? [`'"]?image/i
  },

  // OpenAI: `invalid_file`, `unsupported_file`, `file_too_large`; SDK of Anthropic 1.14: `file_expired`,
  // `file_not_downloadable`.
  { part: "file", code: /(?:^|_)(?:file|pdf|document|audio|video)(?:_|$)/ },
  // Anthropic: "The PDF specified was not valid", "A maximum of 100 PDF pages may be provided"; Gemini: "The document has no
  // pages", "Unsupported MIME type"; OpenAI: "Invalid file data", "Expected a file with an application/pdf MIME type"; OpenRouter:
  // "No endpoints found that support file input"; Converse: "the document content block".
  {
    part: "file",
    words:
      /\bpdfs?\b|\bmime.?type|\b(?:input|invalid|unsupported|expected a) file\b|\bfile (?:input|data|url|type|format)|\bdocument (?:has no|content block|format|block)|\b(?:audio|video) (?:input|content|format|file)|\binput_(?:file|audio|video)\b/i
  },

  // Anthropic: "messages.2.content.0.tool_use.input: Input should be a valid dictionary", "unexpected `tool_use_id` found in
  // `tool_result` blocks", "`tool_use` ids must be unique"; OpenAI: "An assistant message with 'tool_calls' must be followed by
  // tool messages", "Invalid 'messages[1].tool_calls[0].function.arguments'", "No tool output found for function call call_1";
  // Gemini: "the number of function response parts is equal to the number of function call parts"; Converse: "The toolUse blocks
  // at messages.1 contain duplicate Ids". Of the text of an answer, Anthropic: "final assistant content cannot end with trailing whitespace".
  {
    part: "message",
    words:
      /\btool_(?:result|use|call)s?(?:_ids?)?\b|\btool(?:Result|Use|Call)s?\b|\bfunction[._](?:arguments|call|response)\w*|\bfunction (?:call|response) parts\b|\b(?:no )?tool (?:call|output|result) found\b|\bassistant (?:content|message|turn)s?\b/
  },

  // A budget of output: OpenAI and vLLM "max_tokens is too large: 32000", DeepSeek "Invalid max_tokens value", Anthropic
  // "max_tokens: 300000 > 128000, which is the maximum allowed"; OpenAI's codes for parameters. Unknown members: Azure
  // "Unrecognized request argument supplied: x"; Anthropic, FastAPI "Extra inputs are not permitted"; Gemini "Unknown name";
  // Groq "property 'x' is unsupported". Places: Anthropic "thinking.budget_tokens: Input should be …", and `param` of OpenAI.
  { part: "option", code: /^(?:unsupported_(?:parameter|value)|unknown_parameter)$/ },
  {
    part: "option",
    words:
      /\bmax_(?:completion_|output_|new_)?tokens\b|\bunsupported (?:parameter|value)\b|\bin the output\b|\bfor the completion\b|\bun(?:known|recognized|expected) (?:request )?(?:parameter|argument|field|keyword|name|option)\b|\bextra inputs are not permitted\b|\bproperty \W?\w+\W? is unsupported\b|^(?:temperature|top_[pk]|seed|stop_sequences|thinking|reasoning|reasoning_effort|text|verbosity|tool_choice|metadata|service_tier|output_config|response_format|\w+_penalty)[.:]/i
  }
]
