/**
 * The UI message stream of the AI SDK, for its clients such as `useChat`.
 *
 * @since 0.2.0
 */
export * as AiSdkUi from "./AiSdkUi.ts"
