/**
 * The agent loop for Effect: data, services, the loop and the agent.
 *
 * @since 0.1.0
 */
export * as Usage from "./Usage.ts"
export * as Message from "./Message.ts"
export * as ProviderError from "./ProviderError.ts"
export * as ModelEvent from "./ModelEvent.ts"
export * as StopCondition from "./StopCondition.ts"
export * as RunOptions from "./RunOptions.ts"
export * as AgentEvent from "./AgentEvent.ts"
export * as RunReport from "./RunReport.ts"
export * as Run from "./Run.ts"
export * as Transcript from "./Transcript.ts"
export * as Provider from "./Provider.ts"
export * as Tool from "./Tool.ts"
export * as ToolRegistry from "./ToolRegistry.ts"
export * as Approval from "./Approval.ts"
export * as Hook from "./Hook.ts"
export * as HookManager from "./HookManager.ts"
export * as ContextManager from "./ContextManager.ts"
export * as Prices from "./Prices.ts"
export * as Session from "./Session.ts"
export * as Telemetry from "./Telemetry.ts"
export * as Loop from "./Loop.ts"
export * as Agent from "./Agent.ts"
