/**
 * The words of the scenarios, and which of the library's they stand for.
 */

/** A part of a scenario or of what it showed: JSON whose format is declared beside the scenarios, not here. */
export type Words = ReturnType<typeof JSON.parse>
type Names = Readonly<Record<string, string>>

/** The ten event types. */
export const eventTypes: Names = {
  RunStart: "agent_start",
  RunEnd: "agent_end",
  TurnStart: "turn_start",
  TurnEnd: "turn_end",
  MessageStart: "message_start",
  MessageDelta: "message_update",
  MessageEnd: "message_end",
  ToolExecutionStart: "tool_execution_start",
  ToolExecutionProgress: "tool_execution_update",
  ToolExecutionEnd: "tool_execution_end"
}

/** Errors, by the tag of the innermost reason. */
export const errorKinds: Names = {
  AgentBusy: "busy",
  InvalidContinuation: "invalidContinuation",
  LimitExceeded: "limitExceeded",
  ToolFailed: "toolFailed",
  HookFailed: "hookFailed",
  ModelCallSkipped: "llmSkipped",
  TransformFailed: "contextTransform",
  InvalidTranscript: "invalidTranscript",
  ServerError: "providerHttp",
  InvalidRequest: "providerHttp",
  NotFound: "providerHttp",
  Forbidden: "providerHttp",
  Overloaded: "providerHttp",
  Unauthenticated: "providerAuth",
  RateLimited: "providerRateLimit",
  QuotaExceeded: "providerRateLimit",
  ContextOverflow: "contextOverflow",
  Transport: "providerTransport",
  StreamTruncated: "streamTruncated",
  Protocol: "streamProtocol",
  Defect: "defect"
}

/** The provider failures a script may ask for, but `http`, which is told by its status. */
export const failures: Readonly<Record<string, { readonly _tag: string; readonly kind?: string }>> = {
  auth: { _tag: "Unauthenticated" },
  rateLimit: { _tag: "RateLimited" },
  overflow: { _tag: "ContextOverflow" },
  transport: { _tag: "Transport", kind: "reset" },
  truncated: { _tag: "StreamTruncated" },
  protocol: { _tag: "Protocol", kind: "badJson" }
}

/** Hook points, and keys of what hooks return and of options. What is not here has the same name. */
const libraryNames: Names = {
  beforeLlm: "beforeModel",
  afterLlm: "afterModel",
  transformContext: "transformMessages",
  convertToLlm: "toModelMessages",
  args: "params",
  mockResult: "result",
  systemPrompt: "system",
  toolTimeoutMs: "toolTimeout",
  executionTimeMs: "executionTime",
  timeoutMs: "hookTimeout",
  approvalTimeoutMs: "approvalTimeout",
  failureMode: "hookFailureMode"
}
export const toLibrary = (name: string): string => libraryNames[name] ?? name
export const fromLibrary = (name: string): string =>
  Object.keys(libraryNames).find((known) => libraryNames[known] === name) ?? name

/** The same with other keys, and other values if need be. */
export const renamed = (
  words: Words,
  rename: (key: string, value: Words) => readonly [string, Words]
): Words => Object.fromEntries(Object.entries<Words>(words).map(([key, value]) => rename(key, value)))

/** Without the fields that are undefined. */
export const defined = (fields: object): Words => JSON.parse(JSON.stringify(fields))
