/**
 * The codes and words of vendors for what they refuse, each with its source.
 */
import type { RefusedPart } from "../ProviderError.ts"

/** The part of a request that an error refuses, `undefined` if it names none that is known. `codes` are in lower case. */
export const refusedPart = (codes: ReadonlyArray<string>, message: string): RefusedPart | undefined =>
  refusals.find(
    ({ code, words }) => codes.some((found) => code?.test(found) === true) || words?.test(message) === true
  )?.part

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
  { part: "thinking", words: /without its required|item with id '?rs_\w+'? not found/i },
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

  // OpenAI: "Invalid schema for function 'f'", code `invalid_function_parameters`; SDK of Anthropic 1.14: codes of its tools, and
  // "tools.0.custom.input_schema: …"; Gemini: "GenerateContentRequest.tools[0].function_declarations[0]…".
  {
    part: "tool",
    code: /^(?:invalid_function_parameters|available_tools_limit_exceeded|tool_(?:name_conflict|reference_unresolved))$/
  },
  { part: "tool", words: /\binvalid schema for function\b|\btools[.[]\d|\bfunction_declarations\[\d/i },

  // A budget of output: OpenAI and vLLM "max_tokens is too large: 32000", DeepSeek "Invalid max_tokens value", Anthropic
  // "max_tokens: 300000 > 128000, which is the maximum allowed"; OpenAI's codes for parameters.
  { part: "option", code: /^(?:unsupported_(?:parameter|value)|unknown_parameter)$/ },
  {
    part: "option",
    words: /\bmax_(?:completion_|output_|new_)?tokens\b|\bunsupported (?:parameter|value)\b/i
  }
]
