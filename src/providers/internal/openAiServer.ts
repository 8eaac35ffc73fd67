/** The server of OpenAI, which the Responses API and Chat Completions share. */
import type { Preset } from "../presets.ts"

export const openAi = {
  id: "openai",
  baseUrl: "https://api.openai.com/v1",
  apiKeyName: "OPENAI_API_KEY",
  baseUrlName: "OPENAI_BASE_URL",
  headerNames: { "openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID" }
} satisfies Preset
