/**
 * Bridges to `effect/ai` in both directions: its models as providers, its toolkits as tools, and providers as its models.
 *
 * @since 0.1.0
 */
export * as AiTools from "./AiTools.ts"
export * as LanguageModelProvider from "./LanguageModelProvider.ts"
export * as ProviderLanguageModel from "./ProviderLanguageModel.ts"
