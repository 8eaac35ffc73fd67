/**
 * The agent for plain TypeScript: promises and `for await`, with the same errors and events.
 */
export { createAgent } from "./PromiseAgent.ts"
export type { Options, PromiseAgent, PromptOptions } from "./PromiseAgent.ts"
