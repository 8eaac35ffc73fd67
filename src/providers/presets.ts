/**
 * Servers that implement the Chat Completions API, as data for `OpenAiCompatible.layerConfig`.
 *
 * The addresses, names and differences are from the documentation of the vendors and from recordings of
 * November 2026.
 *
 * @since 0.1.0
 */
import type { Compat } from "./openAiChat/compat.ts"

/**
 * The options of `OpenAiCompatible.layerConfig` for one server.
 *
 * @since 0.1.0
 * @category models
 */
export interface Preset {
  /** The id of the provider. */
  readonly id: string
  /** The address of the server, including the version. */
  readonly baseUrl: string
  /** The environment variable of the API key (default: the server requires no key). */
  readonly apiKeyName?: string
  /** The environment variable of the address (default: none). */
  readonly baseUrlName?: string
  /** The environment variables of HTTP headers, by header (default: none). */
  readonly headerNames?: Readonly<Record<string, string>>
  /** The differences of the server from the defaults of `Compat` (default: none). */
  readonly compat?: Partial<Compat>
}

// Most models have three levels.
const threeEfforts = { minimal: "low", xhigh: "high", max: "high" }

/**
 * OpenAI, over the Chat Completions API (key: `OPENAI_API_KEY`).
 *
 * @since 0.1.0
 * @category constants
 */
export const openAi: Preset = {
  id: "openai",
  baseUrl: "https://api.openai.com/v1",
  apiKeyName: "OPENAI_API_KEY",
  baseUrlName: "OPENAI_BASE_URL",
  headerNames: { "openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID" },
  compat: {
    maxTokensField: "max_completion_tokens",
    systemRole: "developer",
    callIds: { pattern: /^[\w-]{1,40}$/, length: 32 },
    cacheKey: true,
    webSearch: "options"
  }
}

/**
 * OpenRouter, a gateway to other vendors (key: `OPENROUTER_API_KEY`).
 *
 * @since 0.1.0
 * @category constants
 */
export const openRouter: Preset = {
  id: "openrouter",
  baseUrl: "https://openrouter.ai/api/v1",
  apiKeyName: "OPENROUTER_API_KEY",
  compat: { gateway: true, thinking: "reasoning", efforts: { max: "xhigh" }, webSearch: "plugin" }
}

/**
 * DeepSeek (key: `DEEPSEEK_API_KEY`).
 *
 * @since 0.1.0
 * @category constants
 */
export const deepSeek: Preset = {
  id: "deepseek",
  baseUrl: "https://api.deepseek.com/v1",
  apiKeyName: "DEEPSEEK_API_KEY",
  compat: {
    replayThinking: "reasoning_content",
    files: false,
    output: "json_object"
  }
}

/**
 * Mistral (key: `MISTRAL_API_KEY`).
 *
 * @since 0.1.0
 * @category constants
 */
export const mistral: Preset = {
  id: "mistral",
  baseUrl: "https://api.mistral.ai/v1",
  apiKeyName: "MISTRAL_API_KEY",
  compat: {
    callIds: { pattern: /^[a-zA-Z0-9]{9}$/, length: 9 },
    toolName: true,
    assistantAfterTools: true,
    streamUsage: false
  }
}

/**
 * Groq (key: `GROQ_API_KEY`).
 *
 * @since 0.1.0
 * @category constants
 */
export const groq: Preset = {
  id: "groq",
  baseUrl: "https://api.groq.com/openai/v1",
  apiKeyName: "GROQ_API_KEY",
  compat: { maxTokensField: "max_completion_tokens", files: false }
}

/**
 * xAI (key: `XAI_API_KEY`).
 *
 * @since 0.1.0
 * @category constants
 */
export const xai: Preset = {
  id: "xai",
  baseUrl: "https://api.x.ai/v1",
  apiKeyName: "XAI_API_KEY",
  compat: { maxTokensField: "max_completion_tokens" }
}

/**
 * Kimi, of Moonshot (key: `MOONSHOT_API_KEY`).
 *
 * @since 0.1.0
 * @category constants
 */
export const kimi: Preset = {
  id: "kimi",
  baseUrl: "https://api.moonshot.ai/v1",
  apiKeyName: "MOONSHOT_API_KEY",
  compat: {
    vendor: "moonshot",
    maxTokensField: "max_completion_tokens",
    replayThinking: "reasoning_content",
    files: false
  }
}

/**
 * Z.ai (key: `ZAI_API_KEY`).
 *
 * @since 0.1.0
 * @category constants
 */
export const zai: Preset = {
  id: "zai",
  baseUrl: "https://api.z.ai/api/paas/v4",
  apiKeyName: "ZAI_API_KEY",
  compat: { files: false, output: "json_object" }
}

/**
 * Together, a gateway to other vendors (key: `TOGETHER_API_KEY`).
 *
 * @since 0.1.0
 * @category constants
 */
export const together: Preset = {
  id: "together",
  baseUrl: "https://api.together.xyz/v1",
  apiKeyName: "TOGETHER_API_KEY",
  compat: { gateway: true, thinking: "none", files: false }
}

/**
 * Fireworks, a gateway to other vendors (key: `FIREWORKS_API_KEY`).
 *
 * @since 0.1.0
 * @category constants
 */
export const fireworks: Preset = {
  id: "fireworks",
  baseUrl: "https://api.fireworks.ai/inference/v1",
  apiKeyName: "FIREWORKS_API_KEY",
  compat: { gateway: true, thinking: "none", files: false }
}

/**
 * Cerebras, which serves models of other vendors (key: `CEREBRAS_API_KEY`).
 *
 * @since 0.1.0
 * @category constants
 */
export const cerebras: Preset = {
  id: "cerebras",
  baseUrl: "https://api.cerebras.ai/v1",
  apiKeyName: "CEREBRAS_API_KEY",
  compat: {
    gateway: true,
    thinking: "none",
    maxTokensField: "max_completion_tokens",
    images: false,
    files: false
  }
}

/**
 * NVIDIA, which serves models of other vendors (key: `NVIDIA_API_KEY`).
 *
 * @since 0.1.0
 * @category constants
 */
export const nvidia: Preset = {
  id: "nvidia",
  baseUrl: "https://integrate.api.nvidia.com/v1",
  apiKeyName: "NVIDIA_API_KEY",
  compat: { gateway: true, thinking: "none", files: false }
}

// Local servers need no key and take no files.

const local: Partial<Compat> = { efforts: threeEfforts, files: false }

/**
 * Ollama on this machine, port 11434.
 *
 * @since 0.1.0
 * @category constants
 */
export const ollama: Preset = { id: "ollama", baseUrl: "http://127.0.0.1:11434/v1", compat: local }

/**
 * LM Studio on this machine, port 1234.
 *
 * @since 0.1.0
 * @category constants
 */
export const lmStudio: Preset = { id: "lmstudio", baseUrl: "http://127.0.0.1:1234/v1", compat: local }

/**
 * The server of llama.cpp on this machine, port 8080.
 *
 * @since 0.1.0
 * @category constants
 */
export const llamaCpp: Preset = { id: "llamacpp", baseUrl: "http://127.0.0.1:8080/v1", compat: local }

/**
 * vLLM on this machine, port 8000.
 *
 * @since 0.1.0
 * @category constants
 */
export const vllm: Preset = { id: "vllm", baseUrl: "http://127.0.0.1:8000/v1", compat: local }
