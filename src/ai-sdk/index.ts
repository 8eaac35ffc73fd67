/**
 * Models of the AI SDK as providers.
 *
 * @since 0.2.0
 */
export * as AiSdk from "./AiSdk.ts"
