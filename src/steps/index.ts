/**
 * The agent loop by steps, for programs that call the model or the tools elsewhere.
 *
 * @since 0.2.0
 */
export * as Steps from "./Steps.ts"
