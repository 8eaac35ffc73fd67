/**
 * The beginning of a run as its log keeps it, so that another process can begin the run.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Payload from "../../api/Payload.ts"
import * as Message from "../../Message.ts"

/** The beginning of a run. */
export interface Task {
  readonly prompt: Message.Input
  readonly options: Payload.Options
  /** The id of the message that the prompt replaces. Default: none. */
  readonly replaces?: string
  /** The place of the run in a trace, as the header `traceparent` has it. Default: none. */
  readonly trace?: string
}

/** The version of the beginnings that this version of the package writes. */
const version = 1

const Prompt = Schema.Union([
  Schema.String,
  Schema.Array(Schema.Union([Message.Text, Message.Image, Message.File])),
  Message.Message,
  Schema.Array(Message.Message)
])

const Stored = Schema.toCodecJson(
  Schema.Struct({
    v: Schema.Literal(version),
    prompt: Prompt,
    options: Payload.Options,
    replaces: Schema.optionalKey(Schema.String),
    trace: Schema.optionalKey(Schema.String)
  })
)

const encodeStored = Schema.encodeUnknownOption(Stored)
const decodeStored = Schema.decodeUnknownOption(Stored)

/** The JSON of a beginning; `undefined` for one that is no JSON. */
export const encode = (task: Task): Schema.Json | undefined =>
  Option.getOrUndefined(encodeStored({ v: version, ...task }))

/** Reads a beginning; `undefined` for one of a later version. */
export const decode = (request: Schema.Json | undefined): Task | undefined =>
  Option.getOrUndefined(decodeStored(request))
