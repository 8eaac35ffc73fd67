/**
 * The prices and context windows of models, from the package `@pydantic/genai-prices`.
 *
 * This entry point requires `@pydantic/genai-prices`.
 *
 * @since 0.2.0
 */
export * as GenAiPrices from "./GenAiPrices.ts"
