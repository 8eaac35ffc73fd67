/** The address and the environment variables of OpenAI, which the Responses API and Chat Completions share. */

export const openAi = {
  id: "openai",
  baseUrl: "https://api.openai.com/v1",
  apiKeyName: "OPENAI_API_KEY",
  baseUrlName: "OPENAI_BASE_URL",
  headerNames: { "openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID" }
}
