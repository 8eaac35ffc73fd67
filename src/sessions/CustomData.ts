/**
 * The data of the custom entries that the package writes, by their kinds.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { ToolOutput } from "../AgentEvent.ts"
import { Message, ToolOutcome } from "../Message.ts"
import * as RunOptions from "../RunOptions.ts"

const QueueName = Schema.Literals(["steering", "followUp"])

/** Kind `queue`: messages that were put in a queue, or a queue that was cleared. */
export const Queue = Schema.Union([
  Schema.Struct({ queue: QueueName, messages: Schema.Array(Message) }),
  Schema.Struct({ cleared: Schema.Literals(["steering", "followUp", "all"]) })
])

/** Kind `options`: changes of options, and the names of those that were unset before. */
export const Options = Schema.toCodecJson(
  Schema.Struct({ ...RunOptions.Patch.fields, unset: Schema.optionalKey(Schema.Array(Schema.String)) })
)

const call = { runId: Schema.String, toolCallId: Schema.String, toolName: Schema.String }

/** Kind `tool`: a call that began, with its params unless they are those of the last answer, or one that ended. */
export const Tool = Schema.Union([
  Schema.Struct({ phase: Schema.Literal("start"), ...call, params: Schema.optionalKey(Schema.Json) }),
  Schema.Struct({
    phase: Schema.Literal("end"),
    ...call,
    output: ToolOutput,
    isError: Schema.Boolean,
    outcome: ToolOutcome,
    durationMs: Schema.Finite
  })
])

const asker = { runId: Schema.String, questionId: Schema.String, toolCallId: Schema.String }

/** Kind `question`: a question to a person, or the answer. */
export const Question = Schema.Union([
  Schema.Struct({
    phase: Schema.Literal("asked"),
    ...asker,
    path: Schema.optionalKey(
      Schema.NonEmptyArray(Schema.Struct({ runId: Schema.String, toolCallId: Schema.String }))
    ),
    question: Schema.String,
    schema: Schema.Json,
    about: Schema.optionalKey(Schema.Literal("unknownEnd")),
    expiresAt: Schema.optionalKey(Schema.Finite)
  }),
  Schema.Struct({
    phase: Schema.Literal("answered"),
    ...asker,
    answer: Schema.Json,
    declined: Schema.optionalKey(Schema.Literal(true)),
    reason: Schema.optionalKey(Schema.String),
    by: Schema.optionalKey(Schema.String)
  })
])

/** Kind `handOff`: the conversation continues with another agent. */
export const HandOff = Schema.Struct({ from: Schema.String, to: Schema.String, messageId: Schema.String })

/** Kind `note`: the note of the provider on an answer. */
export const Note = Schema.Struct({ messageId: Schema.String, note: Schema.Json })

/** Kind `child`: an entry of the agent inside a call. */
export const Child = Schema.Struct({ toolCallId: Schema.String, entry: Schema.Json })

type Read = (data: unknown) => Result.Result<unknown, Schema.SchemaError>

const readers: ReadonlyMap<string, Read> = new Map<string, Read>([
  ["queue", Schema.decodeUnknownResult(Queue)],
  ["options", Schema.decodeUnknownResult(Options)],
  ["tool", Schema.decodeUnknownResult(Tool)],
  ["question", Schema.decodeUnknownResult(Question)],
  ["handOff", Schema.decodeUnknownResult(HandOff)],
  ["note", Schema.decodeUnknownResult(Note)],
  ["child", Schema.decodeUnknownResult(Child)]
])

/** The fault of the data of a custom entry in words, if it has one. Data of a kind that the package does not write has none. */
export const faultOf = (kind: string, data: Schema.Json): string | undefined => {
  const result = readers.get(kind)?.(data)
  return result !== undefined && Result.isFailure(result) ? result.failure.message : undefined
}
