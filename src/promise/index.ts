/**
 * Agents for code without Effect: promises and `for await`, with the same errors and events.
 *
 * @since 0.1.0
 */
export { createAgent } from "./PromiseAgent.ts"
export type { Options, PromiseAgent, PromptOptions } from "./PromiseAgent.ts"
