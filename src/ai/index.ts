/**
 * `effect/ai` on either side: its models answer our loop, its toolkits are our tools, and our providers are its models.
 */
export * as AiTools from "./AiTools.ts"
export * as LanguageModelProvider from "./LanguageModelProvider.ts"
export * as ProviderLanguageModel from "./ProviderLanguageModel.ts"
