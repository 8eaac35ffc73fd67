/**
 * Agents for code without Effect: promises and `for await`, with the same errors and events.
 *
 * @since 0.1.0
 */
export { agentLoop, agentLoopContinue, createAgent } from "./createAgent.ts"
export type { ApiKey, LoopHistory, LoopRun, Options } from "./createAgent.ts"
export type {
  HookAliases,
  HookContext,
  HookFunction,
  HookFunctions,
  HookName,
  NamedHook,
  PointOf,
  ApprovalResult,
  CompactionVerdict,
  HookReturns,
  LlmModification,
  ToolModification,
  ToolResultModification
} from "./HookFunctions.ts"
export type {
  EventName,
  EventOf,
  Listener,
  ListenerContext,
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
