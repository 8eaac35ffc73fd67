/**
 * The parts of events that open turns and sessions have too: the ends of runs, the outputs of tools, requests to a person, and
 * compactions.
 */
import * as Schema from "effect/Schema"
import type * as Duration from "effect/Duration"
import * as Struct from "effect/Struct"
import { CompactionFailed } from "./failureReason.ts"
import * as Message from "../Message.ts"
import { Usage } from "../Usage.ts"
import { toJson } from "./durationInput.ts"
import type { HostedToolDefinition, ModelOptions, RunOptions } from "../RunOptions.ts"

/**
 * The way in which a run ended.
 *
 * **Details**
 *
 * - `"completed"`: the model answered without tool calls, and nothing was queued.
 * - `"stopped"`: a `shouldStopAfterTurn` hook or `stopWhen` ended the run.
 * - `"terminated"`: every tool of the last turn requested the end of the run, and nothing was queued.
 * - `"incomplete"`: the run reached `maxTurns`, and `onMaxTurns` is `"stop"` or `"wrapUp"`.
 * - `"cancelled"`: the application cancelled the run.
 * - `"suspended"`: the run waits for an approval or an answer. `Agent.continue` resumes it.
 * - `"failed"`: the run failed.
 *
 * @category models
 * @since 0.1.0
 */
export const RunStatus = Schema.Literals([
  "completed",
  "stopped",
  "terminated",
  "incomplete",
  "cancelled",
  "suspended",
  "failed"
])
export type RunStatus = typeof RunStatus.Type

/**
 * The output of a tool, or the output that replaces it where the tool did not run.
 *
 * @category models
 * @since 0.1.0
 */
export const ToolOutput = Schema.Struct({
  /** The blocks that the model reads. */
  content: Schema.Array(Schema.Union([Message.Text, Message.Image])),
  /** Data for programs and displays, which the model does not read. Default none. */
  details: Schema.optionalKey(Schema.Json),
  /** Whether the text is the JSON of the value that the tool returned, and not a text of its own. Default `false`. */
  isJson: Schema.optionalKey(Schema.Boolean),
  /** Whether the call failed. Default `false`. */
  isError: Schema.optionalKey(Schema.Boolean),
  /**
   * Whether the tool requests the end of the run. Default `false`.
   *
   * The run ends if every tool of the turn requests it.
   */
  terminate: Schema.optionalKey(Schema.Boolean),
  /** The usage of the model calls that the tool made itself, which counts for the run as that of sub-agents does. Default none. */
  usage: Schema.optionalKey(Usage),
  /** The names of registered tools that `activeTools` has from the next turn on, beside its own. Default none. */
  addedTools: Schema.optionalKey(Schema.Array(Schema.String)),
  /** Whether the application may trust the content. Default `"trusted"`. */
  trust: Schema.optionalKey(Message.Trust)
})
export interface ToolOutput extends Schema.Schema.Type<typeof ToolOutput> {}

// ───────────────────────── Requests to a person

/** A tool call of a run. */
export const Caller = Schema.Struct({ runId: Schema.String, toolCallId: Schema.String })

/** A request to approve a tool call. */
export const approval = {
  /** The id of the request. */
  approvalId: Schema.String,
  /** The id of the call. */
  toolCallId: Schema.String,
  /** The name of the tool. */
  toolName: Schema.String,
  /** The params of the call, after the guards. */
  params: Schema.Json,
  /** The lower-case hex SHA-256 of the RFC 8785 JSON of `params`. */
  argumentsHash: Schema.String,
  /** The reason of the policy that requests the approval. Default none. */
  reason: Schema.optionalKey(Schema.String),
  /** The time in milliseconds since the epoch at which the request expires. Default: it does not expire. */
  expiresAt: Schema.optionalKey(Schema.Finite)
}

/** The answer to a request to approve a tool call. */
export const decision = {
  /** Whether the call may run. */
  decision: Schema.Literals(["approve", "reject"]),
  /** The params that the tool gets in place of those of the request. Default: those of the request. */
  params: Schema.optionalKey(Schema.Json),
  /** The reason of the decision. The model reads that of a rejection. Default none. */
  reason: Schema.optionalKey(Schema.String),
  /** The person or program that decided. Default none. */
  by: Schema.optionalKey(Schema.String)
}

/** A question to a person, of the model unless `about` says otherwise. */
export const question = {
  /** The id of the question. */
  questionId: Schema.String,
  /** The id of the call that is the question. */
  toolCallId: Schema.String,
  /** The question in words. */
  question: Schema.String,
  /** The JSON Schema of the answer. */
  schema: Schema.Json,
  /** `"unknownEnd"`: the run asks about a call whose process ended while its tool ran. Default: the model asks. */
  about: Schema.optionalKey(Schema.Literal("unknownEnd")),
  /** The time in milliseconds since the epoch at which the question expires. Default: it does not expire. */
  expiresAt: Schema.optionalKey(Schema.Finite)
}

const because = {
  /** The reason why the person declined, which the model reads. Default none. */
  reason: Schema.optionalKey(Schema.String),
  /** The person or program that answered. Default none. */
  by: Schema.optionalKey(Schema.String)
}

/** The refusal to answer a question. */
export const declined = {
  /** The person does not answer. */
  declined: Schema.Literal(true),
  ...because
}

/** The answer to a question. */
export const answer = {
  /** The answer, which matches the schema of the question; `null` where the person declined. */
  answer: Schema.Json,
  /** Present where the person declined to answer. Default: absent. */
  declined: Schema.optionalKey(Schema.Literal(true)),
  ...because
}

// ───────────────────────── Compactions

/** The reason for a compaction. */
export const compactionReason = Schema.Literals(["threshold", "overflow", "manual"])

/** The members of the event `Compaction`. */
export const compaction = {
  status: Schema.Literals(["start", "end", "failed"]),
  reason: compactionReason,
  /** The tokens of the request without the compaction, measured or estimated. */
  tokensBefore: Schema.optionalKey(Schema.Finite),
  /** The tokens of the request with it; present at the end. */
  tokensAfter: Schema.optionalKey(Schema.Finite),
  /** The id of the compaction, unique like that of a message; present at the end. */
  entryId: Schema.optionalKey(Schema.String),
  /** The failure; present where it failed. */
  error: Schema.optionalKey(CompactionFailed),
  /** The tokens of the model calls that made the summary; absent if there were none. */
  usage: Schema.optionalKey(Usage)
}

/**
 * Returns the options as plain data, with durations in milliseconds. Leaves out `system`, `headers`, and `vendor` of the model
 * options and of hosted tools: an application may send events to its users, and they may hold secrets.
 */
export const published = (options: RunOptions): RunOptions =>
  Struct.evolve(Struct.omit(options, ["system"]), {
    modelOptions: (modelOptions = {}) => ofCall(modelOptions),
    limits: (limits = {}) => Struct.evolve(limits, { executionTime: millis }),
    toolTimeout: millis,
    hookTimeout: millis,
    approvalTimeout: millis
  })

/** The options of a model call, without those that may hold secrets. */
export const ofCall = (options: ModelOptions): ModelOptions =>
  Struct.evolve(Struct.omit(options, ["headers", "vendor"]), {
    hostedTools: (tools = []) => tools.map(withoutVendor)
  })

const withoutVendor = (tool: HostedToolDefinition): HostedToolDefinition => {
  const { vendor: _, ...rest } = tool
  return rest
}

// `evolve` gives it no absent member.
const millis = (duration: Duration.Input = 0) => toJson(duration)
