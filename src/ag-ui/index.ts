/**
 * AG-UI 1.0, for its clients such as `HttpAgent`.
 *
 * @since 0.2.0
 */
export * as AgUi from "./AgUi.ts"
