/**
 * Agents for code without Effect: promises and `for await`, with the same errors and events.
 *
 * @since 0.1.0
 */
export { agentLoop, agentLoopContinue } from "./agentLoop.ts"
export type { LoopHistory, LoopRun } from "./agentLoop.ts"
export { createAgent } from "./createAgent.ts"
export type { ApiKey, Options } from "./createAgent.ts"
export type {
  HookAliases,
  HookContext,
  HookFunction,
  HookFunctions,
  HookName,
  NamedHook,
  PointOf
} from "./HookFunctions.ts"
export type {
  ApprovalResult,
  CompactionVerdict,
  HookReturns,
  LlmModification,
  ToolModification,
  ToolResultModification
} from "./HookReturns.ts"
export type { EventName, EventOf, Listener, ListenerContext } from "./Listeners.ts"
export type {
  ContinueOptions,
  ListedHook,
  PromiseAgent,
  PromiseHooks,
  PromiseQueues,
  PromiseState,
  PromiseTools,
  PromptOptions,
  StartedPromiseRun
} from "./PromiseAgent.ts"
