/**
 * Why a run failed: the reasons of `RunFailed`, and what the events say of them.
 */
import * as Schema from "effect/Schema"
import * as FailureText from "./internal/failureText.ts"
import { ProviderError } from "./ProviderError.ts"

export const LimitName = Schema.Literals([
  "maxTurns",
  "executionTime",
  "contextSize",
  "tokens",
  "cost",
  "toolCalls",
  "identicalToolCalls"
])
export type LimitName = typeof LimitName.Type

/** Units are those of `RunOptions.limits`; `executionTime` is milliseconds. */
export class LimitExceeded extends Schema.TaggedError<LimitExceeded>()("LimitExceeded", {
  limit: LimitName,
  value: Schema.Finite,
  max: Schema.Finite,
  /** A part of `value` is an estimate, as a provider did not tell what it used. */
  estimated: Schema.optionalKey(Schema.Boolean)
}) {
  override get message(): string {
    const about = this.estimated === true ? "about " : ""
    return `Limit ${this.limit} reached: ${about}${this.value}, allowed ${this.max}`
  }
}

/** A hook failed, and `hookFailureMode` is "fail". */
export class HookFailed extends Schema.TaggedError<HookFailed>()("HookFailed", {
  hook: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return `Hook ${this.hook} failed: ${this.detail}`
  }
}

/** A tool failed, and `toolFailureMode` is "fail". */
export class ToolFailed extends Schema.TaggedError<ToolFailed>()("ToolFailed", {
  toolCallId: Schema.String,
  toolName: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return `Tool ${this.toolName} failed: ${this.detail}`
  }
}

/** A `beforeModel` hook skipped the call and gave no answer. */
export class ModelCallSkipped extends Schema.TaggedError<ModelCallSkipped>()("ModelCallSkipped", {
  detail: Schema.String
}) {
  override get message(): string {
    return `Model call skipped: ${this.detail}`
  }
}

/** A hook that shapes the request or the next turn failed. */
export class TransformFailed extends Schema.TaggedError<TransformFailed>()("TransformFailed", {
  hook: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return `Hook ${this.hook} failed: ${this.detail}`
  }
}

/** The transcript is one a provider would refuse, and `transcript` is "strict". */
export class InvalidTranscript extends Schema.TaggedError<InvalidTranscript>()("InvalidTranscript", {
  violations: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return `Invalid transcript: ${this.violations.join("; ")}`
  }
}

/** What `RunFailed` carries. */
export const FailureReason = Schema.Union([
  ProviderError,
  LimitExceeded,
  HookFailed,
  ToolFailed,
  ModelCallSkipped,
  TransformFailed,
  InvalidTranscript
])
export type FailureReason = typeof FailureReason.Type

/** In events, a defect too has a name. The stream then dies with the original. */
export const Defect = Schema.TaggedStruct("Defect", { message: Schema.String })
export type Defect = typeof Defect.Type

/** The agent runs already. Steer it, or wait for it. */
export class AgentBusy extends Schema.TaggedError<AgentBusy>()("AgentBusy", {}) {
  override get message(): string {
    return "The agent is already processing a prompt. Use steer or followUp, or wait until it is idle."
  }
}

export const EventError = Schema.Union([...FailureReason.members, AgentBusy, Defect])
export type EventError = typeof EventError.Type

/** What the event says of a defect. */
export const defect = (cause: unknown): Defect => ({
  _tag: "Defect",
  message: FailureText.of(cause)
})
