/**
 * The reasons of a failed run, and the errors that events carry.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { InvalidContinuation } from "./continuation.ts"
import * as FailureText from "./failureText.ts"
import { InvalidInput } from "./invalidInput.ts"
import { bounds, renamed, table } from "./limitTable.ts"
import { ProviderError } from "../ProviderError.ts"
import { AgentBusy, AgentClosed, SessionError, TaggedError } from "./errors.ts"
import { Usage } from "../Usage.ts"

/** Decodes the name that a limit had in version 0.1.0 to its name now. */
const former = (name: (typeof renamed)[number]) => Schema.Literal(table[name].formerly).transform(name)

/**
 * The name of a bound of a run: that of its member in `limits` of `RunOptions`.
 *
 * **Details**
 *
 * - `"maxTurns"`: in turns.
 * - `"executionTime"`: in milliseconds.
 * - `"maxContextSize"`: in bytes.
 * - `"maxTotalTokens"`: in tokens.
 * - `"maxCost"`: in the currency of `Usage.cost`.
 * - `"maxToolCalls"`: in calls.
 * - `"maxIdenticalToolCalls"`: in rounds.
 *
 * The schema also decodes the names of version 0.1.0, such as `"tokens"`, which stored events have.
 *
 * @category models
 * @since 0.1.0
 */
export const LimitName = Schema.Union([Schema.Literals(bounds), ...renamed.map(former)])
export type LimitName = typeof LimitName.Type

/**
 * The run reached one of its bounds.
 *
 * @category errors
 * @since 0.1.0
 */
export class LimitExceeded extends TaggedError<LimitExceeded>()("LimitExceeded", {
  /** The bound. */
  limit: LimitName,
  /** The amount that the run reached, in the unit of the bound. */
  value: Schema.Finite,
  /** The bound's value, in its unit. */
  max: Schema.Finite,
  /** Whether the run estimated a part of `value`, because a provider did not report its usage. Default `false`. */
  estimated: Schema.optionalKey(Schema.Boolean)
}) {
  override get message(): string {
    const about = this.estimated === true ? "about " : ""
    return `Limit ${this.limit} reached: ${about}${this.value}, allowed ${this.max}`
  }
}

const ofHook = {
  /** The point of the hook, such as `"beforeModel"`. */
  hook: Schema.String,
  /** The name that the hook was given. */
  hookName: Schema.optionalKey(Schema.String),
  /** The failure in words. */
  detail: Schema.String
}

/**
 * A hook failed, and `hookFailureMode` is `"fail"`.
 *
 * @category errors
 * @since 0.1.0
 */
export class HookFailed extends TaggedError<HookFailed>()("HookFailed", ofHook) {
  override get message(): string {
    return `Hook ${this.hook}${FailureText.quoted(this.hookName)} failed: ${this.detail}`
  }
}

/**
 * A tool failed, and `toolFailureMode` is `"fail"`.
 *
 * @category errors
 * @since 0.1.0
 */
export class ToolFailed extends TaggedError<ToolFailed>()("ToolFailed", {
  /** The id of the call. */
  toolCallId: Schema.String,
  /** The name of the tool. */
  toolName: Schema.String,
  /** The failure in words. */
  detail: Schema.String,
  /** The failure as the `failure` schema of the tool encodes it, or the `details` of its result. Default none. */
  failure: Schema.optionalKey(Schema.Json)
}) {
  override get message(): string {
    return `Tool ${this.toolName} failed: ${this.detail}`
  }
}

/**
 * A `beforeModel` hook skipped the model call and gave no answer.
 *
 * @category errors
 * @since 0.1.0
 */
export class ModelCallSkipped extends TaggedError<ModelCallSkipped>()("ModelCallSkipped", {
  /** The reason that the hook gave. */
  detail: Schema.String
}) {
  override get message(): string {
    return `Model call skipped: ${this.detail}`
  }
}

/**
 * A guardrail stopped a request before the model got it, or an answer before others saw it.
 *
 * @category errors
 * @since 0.2.0
 */
export class GuardrailTripped extends TaggedError<GuardrailTripped>()("GuardrailTripped", {
  /** The name of the guard. */
  guard: Schema.String,
  /** The part that the guard stopped: the messages for the model, or the answer of the model. */
  stage: Schema.Literals(["input", "output"]),
  /** The reason in words of the guard. */
  detail: Schema.String
}) {
  override get message(): string {
    return `Guardrail ${JSON.stringify(this.guard)} stopped the ${this.stage}: ${this.detail}`
  }
}

/**
 * A hook that shapes a request or the next turn failed.
 *
 * @category errors
 * @since 0.1.0
 */
export class TransformFailed extends TaggedError<TransformFailed>()("TransformFailed", ofHook) {
  override get message(): string {
    return `Hook ${this.hook}${FailureText.quoted(this.hookName)} failed: ${this.detail}`
  }
}

/**
 * A provider would refuse the transcript, and the option `transcript` is `"strict"`.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidTranscript extends TaggedError<InvalidTranscript>()("InvalidTranscript", {
  /** The faults of the transcript, one sentence for each. */
  violations: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return `Invalid transcript: ${this.violations.join("; ")}`
  }
}

/**
 * The model gave no valid output, and the run asked it to repair the output as often as `outputRetries` allows.
 *
 * @category errors
 * @since 0.2.0
 */
export class OutputInvalid extends TaggedError<OutputInvalid>()("OutputInvalid", {
  /** The faults of the last output, one line each. */
  detail: Schema.String,
  /** The last output as the model wrote it: the text of its answer, or the arguments of its call. */
  text: Schema.String,
  /** The number of outputs that were not valid. */
  attempts: Schema.Int
}) {
  override get message(): string {
    return `The model gave no valid output in ${this.attempts} attempts: ${this.detail}`
  }
}

/**
 * The run has an `output` schema, and ended before the model gave an output, without a failure.
 *
 * **Details**
 *
 * No event has it: the run ended as its `RunEnd` says. `result` of the `RunFailed` is its result.
 *
 * @category errors
 * @since 0.2.0
 */
export class OutputMissing extends TaggedError<OutputMissing>()("OutputMissing", {
  /** The status of the run, such as `"cancelled"`. */
  status: Schema.String
}) {
  override get message(): string {
    return `The run has no output: its status is ${JSON.stringify(this.status)}`
  }
}

/**
 * A compaction failed, and the conversation stays as it is.
 *
 * **Details**
 *
 * The event `Compaction` has it. A run continues; only `agent.compact` fails with it, as the reason of its `RunFailed`.
 *
 * @category errors
 * @since 0.2.0
 */
export class CompactionFailed extends TaggedError<CompactionFailed>()("CompactionFailed", {
  /** The failure in words. */
  detail: Schema.String,
  /** The failure of the model call or the bound that it reached, absent for another failure. */
  reason: Schema.optionalKey(Schema.Union([ProviderError, LimitExceeded])),
  /** The tokens that the compaction used nevertheless. Default: none. */
  usage: Schema.optionalKey(Usage)
}) {
  override get message(): string {
    return `The conversation was not compacted: ${this.detail}`
  }
}

/**
 * The reason of a `RunFailed`.
 *
 * **Example** (Describing a reason)
 *
 * ```ts
 * import { Run } from "effect-agent"
 *
 * const describe = (reason: Run.FailureReason): string =>
 *   reason._tag === "LimitExceeded" ? `${reason.limit} of ${reason.max}` : reason.message
 *
 * console.log(describe(new Run.LimitExceeded({ limit: "maxTurns", value: 10, max: 10 })))
 * // => maxTurns of 10
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export const FailureReason = Schema.Union([
  ProviderError,
  LimitExceeded,
  HookFailed,
  ToolFailed,
  ModelCallSkipped,
  GuardrailTripped,
  TransformFailed,
  InvalidTranscript,
  OutputInvalid,
  OutputMissing,
  CompactionFailed,
  SessionError
])
export type FailureReason = typeof FailureReason.Type

/**
 * A defect as events carry it.
 *
 * **Details**
 *
 * The effect or the stream of the run dies with the original.
 *
 * @category errors
 * @since 0.1.0
 */
export const Defect = Schema.TaggedStruct("Defect", {
  /** The defect in words. */
  message: Schema.String
})
export type Defect = typeof Defect.Type

/**
 * An error in an event: the reason of a failed run, of a run that could not begin, or a defect.
 *
 * @category errors
 * @since 0.1.0
 */
export const EventError = Schema.Union([
  ...FailureReason.members,
  AgentBusy,
  AgentClosed,
  InvalidInput,
  InvalidContinuation,
  Defect
])
export type EventError = typeof EventError.Type

/** Describes a defect for an event. */
export const defect = (cause: unknown): Defect => ({
  _tag: "Defect",
  message: FailureText.of(cause)
})
