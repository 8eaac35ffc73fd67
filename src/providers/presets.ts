/**
 * Servers that implement the Chat Completions API, as data for `OpenAiCompatible.layerConfig` and for the program.
 *
 * The addresses, names and differences are from the documentation of the vendors and from recordings of
 * November 2026.
 *
 * @since 0.1.0
 */
import type { Wire } from "./internal/answer.ts"
import type { Compat } from "./internal/openAiChat/compat.ts"

/**
 * The options of `OpenAiCompatible.layerConfig` for one server.
 *
 * @since 0.1.0
 * @category models
 */
export interface Preset {
  /** The id of the provider. */
  readonly id: string
  /**
   * The address of the server, including the version.
   *
   * `{NAME}` stands for the value of the environment variable `NAME`, such as the id of an account.
   */
  readonly baseUrl: string
  /** The environment variable of the API key (default: the server requires no key). */
  readonly apiKeyName?: string
  /** The environment variable of the address, for other regions and gateways (default: none). */
  readonly baseUrlName?: string
  /** HTTP headers of each request (default: none). */
  readonly headers?: Readonly<Record<string, string>>
  /** The environment variables of HTTP headers, by header (default: none). */
  readonly headerNames?: Readonly<Record<string, string>>
  /**
   * The model that the program uses if the user names none and the key is set (default: none, so that the program uses
   * the server only if the user names it).
   */
  readonly model?: string
  /** The differences of the server from the defaults of `Compat` (default: none). */
  readonly compat?: Partial<Compat>
  /** How strictly answers are read (default: `"strict"` for known vendors and gateways, `"lenient"` for other servers). */
  readonly wire?: Wire
}

const table = <Name extends string>(presets: Readonly<Record<Name, Preset>>): typeof presets => presets

// Gateways and hosts of open models. Each of their models takes a thinking level in its own way, so they take none.
const host: Partial<Compat> = { gateway: true, thinking: "none", files: false }

// Local servers need no key and take no files. Most models have three levels.
const local: Partial<Compat> = {
  efforts: { minimal: "low", xhigh: "high", max: "high" },
  files: false
}

/**
 * The known servers, in the order in which the program searches for their keys.
 *
 * **Example** (Listing the servers that need no key)
 *
 * ```ts
 * import { OpenAiCompatible } from "effect-agent/providers"
 *
 * const servers = Object.values(OpenAiCompatible.presets)
 * const local = servers.filter(({ apiKeyName }) => apiKeyName === undefined)
 *
 * console.log(local.map(({ id }) => id).join(", ")) // => ollama, lmstudio, llamacpp, vllm, jan
 * ```
 *
 * @since 0.1.0
 * @category constants
 */
export const presets = /* @__PURE__ */ table({
  /** OpenAI, over the Chat Completions API. */
  openAi: {
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
      webSearch: "options",
      replayThinking: "none",
      thinkTags: false
    }
  },
  /** OpenRouter, a gateway to other vendors. */
  openRouter: {
    id: "openrouter",
    baseUrl: "https://openrouter.ai/api/v1",
    apiKeyName: "OPENROUTER_API_KEY",
    model: "moonshotai/kimi-k2.6",
    compat: { gateway: true, thinking: "reasoning", webSearch: "plugin" }
  },
  /** Vercel's AI Gateway, a gateway to other vendors. */
  vercel: {
    id: "vercel",
    baseUrl: "https://ai-gateway.vercel.sh/v1",
    apiKeyName: "AI_GATEWAY_API_KEY",
    model: "moonshotai/kimi-k2.6",
    compat: { gateway: true, thinking: "reasoning", efforts: { max: "xhigh" } }
  },
  /** Mistral. */
  mistral: {
    id: "mistral",
    baseUrl: "https://api.mistral.ai/v1",
    apiKeyName: "MISTRAL_API_KEY",
    model: "devstral-medium-latest",
    compat: {
      callIds: { pattern: /^[a-zA-Z0-9]{9}$/, length: 9 },
      toolName: true,
      assistantAfterTools: true,
      streamUsage: false
    }
  },
  /** Groq. */
  groq: {
    id: "groq",
    baseUrl: "https://api.groq.com/openai/v1",
    apiKeyName: "GROQ_API_KEY",
    model: "openai/gpt-oss-120b",
    compat: { maxTokensField: "max_completion_tokens", files: false }
  },
  /** xAI. */
  xai: {
    id: "xai",
    baseUrl: "https://api.x.ai/v1",
    apiKeyName: "XAI_API_KEY",
    model: "grok-4.5",
    compat: { maxTokensField: "max_completion_tokens", replayThinking: "none" }
  },
  /** DeepSeek. */
  deepSeek: {
    id: "deepseek",
    baseUrl: "https://api.deepseek.com/v1",
    apiKeyName: "DEEPSEEK_API_KEY",
    model: "deepseek-v4-pro",
    compat: { replayThinking: "reasoning_content", files: false, output: "json_object" }
  },
  /** Kimi, of Moonshot. */
  kimi: {
    id: "kimi",
    baseUrl: "https://api.moonshot.ai/v1",
    apiKeyName: "MOONSHOT_API_KEY",
    baseUrlName: "MOONSHOT_BASE_URL",
    model: "kimi-k2.6",
    compat: {
      vendor: "moonshot",
      maxTokensField: "max_completion_tokens",
      replayThinking: "reasoning_content",
      files: false
    }
  },
  /** Z.ai, which sends a tool call whole unless a request sets `tool_stream`. */
  zai: {
    id: "zai",
    baseUrl: "https://api.z.ai/api/paas/v4",
    apiKeyName: "ZAI_API_KEY",
    baseUrlName: "ZAI_BASE_URL",
    model: "glm-5.2",
    compat: { files: false, output: "json_object", body: { tool_stream: true } }
  },
  /** Qwen, of Alibaba's Model Studio. A key is valid in one region; the address is that of Singapore. */
  qwen: {
    id: "qwen",
    baseUrl: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    apiKeyName: "DASHSCOPE_API_KEY",
    baseUrlName: "DASHSCOPE_BASE_URL",
    model: "qwen3.8-max",
    compat: { files: false }
  },
  /** MiniMax, which sends its thinking within the text unless a request separates them. */
  miniMax: {
    id: "minimax",
    baseUrl: "https://api.minimax.io/v1",
    apiKeyName: "MINIMAX_API_KEY",
    baseUrlName: "MINIMAX_BASE_URL",
    model: "MiniMax-M3",
    compat: { maxTokensField: "max_completion_tokens", files: false, body: { reasoning_split: true } }
  },
  /** MiMo, of Xiaomi, which takes back its thinking with each answer. */
  xiaomi: {
    id: "xiaomi",
    baseUrl: "https://api.xiaomimimo.com/v1",
    apiKeyName: "XIAOMI_API_KEY",
    baseUrlName: "XIAOMI_BASE_URL",
    model: "mimo-v2.6-pro",
    compat: { replayThinking: "reasoning_content", files: false, output: "json_object" }
  },
  /** StepFun. */
  stepFun: {
    id: "stepfun",
    baseUrl: "https://api.stepfun.ai/v1",
    apiKeyName: "STEP_API_KEY",
    baseUrlName: "STEP_BASE_URL",
    model: "step-3.7-flash",
    compat: { files: false, output: "json_object" }
  },
  /** Ling, of Ant. */
  antLing: {
    id: "ant-ling",
    baseUrl: "https://api.ant-ling.com/v1",
    apiKeyName: "ANT_LING_API_KEY",
    model: "Ling-2.6-1T",
    compat: { files: false }
  },
  /** TokenHub of Tencent, which serves Hunyuan and models of other vendors. */
  tencent: {
    id: "tencent",
    baseUrl: "https://tokenhub-intl.tencentcloudmaas.com/v1",
    apiKeyName: "TENCENT_API_KEY",
    baseUrlName: "TENCENT_BASE_URL",
    compat: host
  },
  /** Cohere, over its compatibility API, which reports usage without `stream_options`. */
  cohere: {
    id: "cohere",
    baseUrl: "https://api.cohere.ai/compatibility/v1",
    apiKeyName: "COHERE_API_KEY",
    model: "command-a-03-2025",
    compat: { thinking: "none", streamUsage: false, files: false, replayThinking: "none" },
    wire: "strict"
  },
  /** Cerebras, which serves models of other vendors. */
  cerebras: {
    id: "cerebras",
    baseUrl: "https://api.cerebras.ai/v1",
    apiKeyName: "CEREBRAS_API_KEY",
    model: "gpt-oss-120b",
    compat: { ...host, maxTokensField: "max_completion_tokens" }
  },
  /** Together, which serves models of other vendors. */
  together: {
    id: "together",
    baseUrl: "https://api.together.xyz/v1",
    apiKeyName: "TOGETHER_API_KEY",
    model: "moonshotai/Kimi-K3",
    compat: host
  },
  /** Fireworks, which serves models of other vendors. */
  fireworks: {
    id: "fireworks",
    baseUrl: "https://api.fireworks.ai/inference/v1",
    apiKeyName: "FIREWORKS_API_KEY",
    model: "accounts/fireworks/models/kimi-k3",
    compat: host
  },
  /** DeepInfra, which serves models of other vendors. */
  deepInfra: {
    id: "deepinfra",
    baseUrl: "https://api.deepinfra.com/v1/openai",
    apiKeyName: "DEEPINFRA_API_KEY",
    model: "moonshotai/Kimi-K2.6",
    compat: host
  },
  /** SambaNova, which serves models of other vendors. */
  sambaNova: {
    id: "sambanova",
    baseUrl: "https://api.sambanova.ai/v1",
    apiKeyName: "SAMBANOVA_API_KEY",
    model: "gpt-oss-120b",
    compat: host
  },
  /** Nebius Token Factory, which serves models of other vendors. */
  nebius: {
    id: "nebius",
    baseUrl: "https://api.tokenfactory.nebius.com/v1",
    apiKeyName: "NEBIUS_API_KEY",
    model: "openai/gpt-oss-120b",
    compat: host
  },
  /** Baseten, which serves models of other vendors. */
  baseten: {
    id: "baseten",
    baseUrl: "https://inference.baseten.co/v1",
    apiKeyName: "BASETEN_API_KEY",
    model: "moonshotai/Kimi-K3",
    compat: host
  },
  /** NVIDIA, which serves models of other vendors. */
  nvidia: {
    id: "nvidia",
    baseUrl: "https://integrate.api.nvidia.com/v1",
    apiKeyName: "NVIDIA_API_KEY",
    model: "moonshotai/kimi-k2.6",
    compat: host
  },
  /** Perplexity, whose models search the web. Most of them call no tools. */
  perplexity: {
    id: "perplexity",
    baseUrl: "https://api.perplexity.ai",
    apiKeyName: "PERPLEXITY_API_KEY",
    compat: { webSearch: "options", replayThinking: "none" },
    wire: "strict"
  },
  /** Hugging Face, a gateway to other vendors. */
  huggingFace: {
    id: "huggingface",
    baseUrl: "https://router.huggingface.co/v1",
    apiKeyName: "HF_TOKEN",
    compat: host
  },
  /** GitHub Models, a gateway to other vendors. The token needs the permission `models: read`. */
  github: {
    id: "github",
    baseUrl: "https://models.github.ai/inference",
    apiKeyName: "GITHUB_TOKEN",
    headers: { "x-github-api-version": "2022-11-28" },
    compat: { ...host, replayThinking: "none" }
  },
  /** Cloudflare's Workers AI, and through its AI Gateway other vendors. The gateway is the default one of the account. */
  cloudflare: {
    id: "cloudflare",
    baseUrl: "https://api.cloudflare.com/client/v4/accounts/{CLOUDFLARE_ACCOUNT_ID}/ai/v1",
    apiKeyName: "CLOUDFLARE_API_TOKEN",
    headerNames: { "cf-aig-gateway-id": "CLOUDFLARE_GATEWAY_ID" },
    compat: host
  },
  /** Ollama on this machine, port 11434. */
  ollama: { id: "ollama", baseUrl: "http://127.0.0.1:11434/v1", compat: local },
  /** LM Studio on this machine, port 1234. */
  lmStudio: { id: "lmstudio", baseUrl: "http://127.0.0.1:1234/v1", compat: local },
  /** The server of llama.cpp on this machine, port 8080. */
  llamaCpp: { id: "llamacpp", baseUrl: "http://127.0.0.1:8080/v1", compat: local },
  /** vLLM on this machine, port 8000. */
  vllm: { id: "vllm", baseUrl: "http://127.0.0.1:8000/v1", compat: local },
  /** Jan on this machine, port 1337. */
  jan: { id: "jan", baseUrl: "http://127.0.0.1:1337/v1", compat: local }
})

/**
 * Servers of other vendors than OpenAI that implement the Responses API, as data for `OpenAi.layerConfig`.
 *
 * @since 0.2.0
 */
export const responses = /* @__PURE__ */ table({
  /** xAI, whose Chat Completions keeps no thinking between turns. */
  xai: { id: "xai", baseUrl: "https://api.x.ai/v1", apiKeyName: "XAI_API_KEY", model: "grok-4.5" },
  /** Meta, with its Muse models. */
  meta: {
    id: "meta",
    baseUrl: "https://api.meta.ai/v1",
    apiKeyName: "META_API_KEY",
    model: "muse-spark-1.3"
  }
})
