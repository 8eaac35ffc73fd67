/**
 * The outcomes of tool calls, with the texts that the model reads where a tool did not run to its end, and the calls that the vendor runs.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import { type StopReason, type ToolCall, type ToolOutcome, toolResult, type ToolResult } from "../Message.ts"
import type { ToolOutput } from "../AgentEvent.ts"
import type { Answer, QuestionAnswer } from "./openTurn.ts"
import * as Tool from "../Tool.ts"
import type { InvalidArguments, PreparedCall, ToolNotFound } from "../ToolRegistry.ts"
import * as JsonSchema from "./jsonSchema.ts"

/** The outcome of one call, before it becomes a message of the transcript. */
export interface Outcome {
  readonly _tag: "Outcome"
  readonly outcome: ToolOutcome
  readonly output: ToolOutput
  /** Whether an `afterTool` hook requests that the call runs again. Default: `false`. */
  readonly retry?: boolean
  /** The handle of a call that continues in the background. Default: the call has ended. */
  readonly background?: string
  /** The time limit in milliseconds that the call met. Default: the call met none. */
  readonly timeoutMs?: number
}

export const make = (outcome: ToolOutcome, output: ToolOutput, retry = false): Outcome => ({
  _tag: "Outcome",
  outcome,
  output,
  retry
})

/** Makes an outcome whose result is an error message. */
export const error = (outcome: ToolOutcome, message: string): Outcome => make(outcome, Tool.failure(message))

/** The outcome of a call whose tool does not exist, or does not take its arguments. */
export const mistake = ({ _tag, message }: ToolNotFound | InvalidArguments): Outcome =>
  error(_tag === "ToolNotFound" ? "unknownTool" : "invalidArguments", message)

/** The time limit of a call, unless its tool or the options have another one. */
export const defaultTimeout = Duration.seconds(30)

const abandoned = " It ignored its interruption, and was left behind."

export const aborted = (call: ToolCall, isAbandoned = false): Outcome =>
  error("aborted", `Tool ${call.name} was aborted.${isAbandoned ? abandoned : ""}`)

/** The outcome of a call whose tool ended, and whose `afterTool` hooks were interrupted. */
export const unreviewed = (call: ToolCall): Outcome =>
  error("aborted", `Tool ${call.name} ran. Its result is left out: the hooks that review it did not end.`)

/** The outcome of a call that timed out after `timeout` milliseconds. */
export const timedOut = (call: ToolCall, timeout: number, isAbandoned: boolean): Outcome => {
  const limit = Duration.format(Duration.millis(timeout))
  const text = `Tool ${call.name} timed out after ${limit}.${isAbandoned ? abandoned : ""}`
  return { ...error("timeout", text), timeoutMs: timeout }
}

export const rejected = (reason: string): Outcome =>
  error("rejected", `Tool execution was rejected: ${reason}`)

export const cannotWait = rejected(
  "it waits for a person beyond the end of the run, which a call in the background cannot"
)

/** The outcome of a call that a person did not approve. */
export const notApproved = (reason = "not approved"): Outcome => rejected(reason)

/** The outcome of a call by the answer of a person; `undefined` if it may run. */
export const refused = (answer: Answer | QuestionAnswer): Outcome | undefined => {
  if ("decision" in answer) return answer.decision === "reject" ? notApproved(answer.reason) : undefined
  return answer.declined === true ? rejected(answer.reason ?? "the user declined to answer") : undefined
}

/** Makes the message of an outcome. `content` is the content for the model. Default: that of the output. */
export const result = (
  call: ToolCall,
  { background, outcome, output }: Pick<Outcome, "outcome" | "output" | "background">,
  timestamp: number,
  content = output.content
): ToolResult =>
  toolResult(call, content, {
    isError: output.isError === true,
    outcome,
    timestamp,
    ...(output.details === undefined ? {} : { details: output.details }),
    ...(output.isJson === true ? { isJson: true } : {}),
    ...(background === undefined ? {} : { background }),
    ...(output.addedTools === undefined ? {} : { addedTools: output.addedTools }),
    ...(output.trust === undefined ? {} : { trust: output.trust })
  })

/** The outcome of a call whose process ended while its tool ran. */
export const unknown = (call: ToolCall): Outcome =>
  error(
    "unknown",
    `The process ended while tool ${call.name} ran, and its end is not known. It may have had effects: check before you call it again.`
  )

export const approvalExpired = error("expired", "Not run: the time to approve this call is over.")
export const questionExpired = error("expired", "Not answered: the time to answer this question is over.")
export const notBegun = error("aborted", "Not run: the process ended before this call began.")

/** The outcome of all calls of an answer that was cut, since their arguments may be incomplete; `undefined` for a complete answer. */
export const cut = (stopReason: StopReason): Outcome | undefined => cuts[stopReason]

const filtered = error(
  "truncated",
  "Not run: the provider stopped the answer for its content, so the arguments may be incomplete."
)
const cuts: Partial<Record<StopReason, Outcome>> = {
  length: error(
    "truncated",
    "Not run: the answer was cut at its token limit, so the arguments may be incomplete. Call again, with less."
  ),
  contentFilter: filtered,
  refusal: filtered
}

export const skippedBySteering = error("skipped", "Skipped due to queued user message.")
export const runEnds = error("aborted", "Not run: the run ended first.")
export const stopped = error("aborted", "Not run: the run was stopped.")
export const skippedByFailure = error("aborted", "Not run: another tool of this batch failed.")
export const tooManyCalls = error("aborted", "Not run: the limit on tool calls is reached")

/** The outcomes that count as failures of a tool, and not as a decision of a guard or a stop. */
export const failures: ReadonlySet<ToolOutcome> = new Set<ToolOutcome>([
  "error",
  "timeout",
  "unknownTool",
  "invalidArguments"
])

// ───────────────────────── Calls that the vendor runs

/** The tool of a call that the vendor runs after an approval. It is not `"pure"`, since the vendor's tool may have effects. */
export const hostedTool = ({ name }: Pick<ToolCall, "name">): Tool.Any => ({
  name,
  description: "A tool that the vendor runs.",
  parameters: {},
  effect: "idempotent",
  decode: (input) => Effect.succeed(input),
  execute: () => Effect.succeed("Approved.")
})

/** Prepares a call that the vendor runs. The vendor takes only the params of the model: `undefined` for other params. */
export const preparedHosted = (call: ToolCall, input?: Schema.Json): PreparedCall | undefined => {
  const { params = {} } = call
  return input === undefined || JsonSchema.same(input, params)
    ? { call, tool: hostedTool(call), input: params, params: structuredClone(params) }
    : undefined
}
