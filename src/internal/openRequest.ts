/**
 * The fields of requests to a person, which events and open turns share.
 */
import * as Schema from "effect/Schema"

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
