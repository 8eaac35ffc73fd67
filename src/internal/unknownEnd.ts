/**
 * The question to a person about a call whose process ended while its tool ran, and what the answers mean for the call.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ToolCall } from "../Message.ts"
import * as Tool from "../Tool.ts"
import type { Question, QuestionAnswer } from "./openTurn.ts"
import * as ToolOutcome from "./toolOutcome.ts"

/** The most characters of the params that the question shows. */
const maxParams = 300

/** The question about a call with these params. */
export const questionOf = (
  { name }: ToolCall,
  params: Schema.Json
): Pick<Question, "about" | "question" | "schema"> => {
  const text = JSON.stringify(params)
  const shown = text.length > maxParams ? `${text.slice(0, maxParams)}…` : text
  const question = `The process ended while tool ${name} ran with ${shown}, and its end is not known. Did the call happen?`
  return { about: "unknownEnd", question, schema }
}

const schema: Schema.Json = {
  type: "object",
  properties: {
    decision: {
      type: "string",
      enum: ["again", "done", "unknown"],
      description:
        "again: run the call again, with its idempotency key. done: it happened. unknown: tell the model that its end is not known"
    },
    result: { type: "string", description: "For done: the result that the model reads" }
  },
  required: ["decision"],
  additionalProperties: false
}

const decode = Schema.decodeUnknownOption(
  Schema.Struct({ decision: Schema.String, result: Schema.optionalKey(Schema.String) })
)

const nothing: { readonly decision: string; readonly result?: string } = { decision: "unknown" }

/** The outcome of a call by the answer; `undefined` if it is to run again. */
export const outcomeOf = (
  call: ToolCall,
  { answer, declined }: QuestionAnswer
): ToolOutcome.Outcome | undefined => {
  const { decision, result = "Done: a person says that the call happened." } = Option.getOrElse(
    decode(declined === true ? undefined : answer),
    () => nothing
  )
  if (decision === "again") return undefined
  return decision === "done" ? ToolOutcome.make("success", Tool.render(result)) : ToolOutcome.unknown(call)
}
