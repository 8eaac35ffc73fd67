/**
 * Servers that speak Chat Completions, as data: `OpenAiCompatible.layerConfig(OpenAiCompatible.presets.groq)`.
 * Addresses, names and differences as documented by the vendors and seen in recordings, November 2026.
 */
import type { Compat } from "./internal/compat.ts"

export interface Preset {
  readonly id: string
  readonly baseUrl: string
  /** The environment name of its key, for those that want one. */
  readonly apiKeyName?: string
  /** The environment name of its address, where one is customary. */
  readonly baseUrlName?: string
  /** The environment names of headers, by header, where such are customary. */
  readonly headerNames?: Readonly<Record<string, string>>
  readonly compat?: Partial<Compat>
}

// Most models know three levels.
const threeEfforts = { minimal: "low", xhigh: "high", max: "high" }

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
    cacheKey: true
  }
}

export const openRouter: Preset = {
  id: "openrouter",
  baseUrl: "https://openrouter.ai/api/v1",
  apiKeyName: "OPENROUTER_API_KEY",
  compat: { gateway: true, thinking: "reasoning", efforts: { max: "xhigh" } }
}

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

export const groq: Preset = {
  id: "groq",
  baseUrl: "https://api.groq.com/openai/v1",
  apiKeyName: "GROQ_API_KEY",
  compat: { maxTokensField: "max_completion_tokens", files: false }
}

export const xai: Preset = {
  id: "xai",
  baseUrl: "https://api.x.ai/v1",
  apiKeyName: "XAI_API_KEY",
  compat: { maxTokensField: "max_completion_tokens" }
}

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

export const zai: Preset = {
  id: "zai",
  baseUrl: "https://api.z.ai/api/paas/v4",
  apiKeyName: "ZAI_API_KEY",
  compat: { files: false, output: "json_object" }
}

export const together: Preset = {
  id: "together",
  baseUrl: "https://api.together.xyz/v1",
  apiKeyName: "TOGETHER_API_KEY",
  compat: { gateway: true, thinking: "none", files: false }
}

export const fireworks: Preset = {
  id: "fireworks",
  baseUrl: "https://api.fireworks.ai/inference/v1",
  apiKeyName: "FIREWORKS_API_KEY",
  compat: { gateway: true, thinking: "none", files: false }
}

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

export const nvidia: Preset = {
  id: "nvidia",
  baseUrl: "https://integrate.api.nvidia.com/v1",
  apiKeyName: "NVIDIA_API_KEY",
  compat: { gateway: true, thinking: "none", files: false }
}

// Servers on this machine: no key, and no files.

const local: Partial<Compat> = { efforts: threeEfforts, files: false }

export const ollama: Preset = { id: "ollama", baseUrl: "http://127.0.0.1:11434/v1", compat: local }

export const lmStudio: Preset = { id: "lmstudio", baseUrl: "http://127.0.0.1:1234/v1", compat: local }

export const llamaCpp: Preset = { id: "llamacpp", baseUrl: "http://127.0.0.1:8080/v1", compat: local }

export const vllm: Preset = { id: "vllm", baseUrl: "http://127.0.0.1:8000/v1", compat: local }
