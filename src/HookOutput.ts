/**
 * What a hook may return. Types do not reach everybody who writes hooks, and a guard that returned something else must not
 * count as one that agreed.
 */
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { ToolOutput } from "./AgentEvent.ts"
import type { Point } from "./Hook.ts"
import { originals } from "./HookInput.ts"
import * as Message from "./Message.ts"
import { isOutput, rendered as written } from "./ToolOutput.ts"
import { ModelOptions, RunOptions, ThinkingLevel } from "./RunOptions.ts"

const optional = Schema.optionalKey

const isMessage = Schema.is(Message.Message)
const known = new WeakSet<object>()

/** Each message is looked at once. */
const isKnown = (input: unknown): boolean => {
  if (!Predicate.isObject(input)) return false
  if (known.has(input)) return true
  const holds = isMessage(input)
  if (holds) known.add(input)
  return holds
}
const areMessages = (input: unknown): input is ReadonlyArray<Message.Message> =>
  Array.isArray(input) && input.every(isKnown)

/** Those of the transcript as they are there, not as copies. */
const messages = Schema.declare(areMessages, { expected: "messages" }).pipe(
  Schema.decode(SchemaTransformation.transform({ decode: originals, encode: originals }))
)

/** Rendered here, so that a result that cannot be read, or is not JSON, is a failure of its hook. */
const rendered = Schema.Unknown.pipe(
  Schema.decode(
    SchemaTransformation.transform<unknown, unknown>({
      decode: (result) => Result.getOrThrowWith(written(result), (fault) => `\`result\`: ${fault}`),
      encode: (output) => output
    })
  )
)

const reason = optional(Schema.String)

const toolDefinition = Schema.Struct({
  name: Schema.String,
  description: Schema.String,
  parameters: Schema.Json
})

const outputs: Readonly<Record<Point, Schema.Codec<any, any, never, never>>> = {
  beforeExecution: Schema.Struct({
    modified: optional(Schema.Struct({ ...RunOptions.fields, model: optional(Schema.String) }))
  }),
  afterExecution: Schema.Struct({ modified: optional(Message.Assistant) }),
  // Nobody asks for the opinion of these.
  onError: Schema.Unknown,
  afterModel: Schema.Unknown,
  pauseCheck: Schema.Struct({ shouldPause: Schema.Boolean, reason }),
  beforeModel: Schema.Struct({
    modified: optional(
      Schema.Struct({
        ...ModelOptions.fields,
        messages: optional(messages),
        model: optional(Schema.String),
        system: optional(Schema.String),
        tools: optional(Schema.Array(toolDefinition))
      })
    ),
    skip: optional(Schema.Boolean),
    response: optional(Schema.Union([Schema.String, Message.Assistant])),
    reason
  }),
  beforeTool: Schema.Struct({
    params: optional(Schema.Json),
    block: optional(Schema.Boolean),
    terminate: optional(Schema.Boolean),
    skip: optional(Schema.Boolean),
    result: optional(rendered),
    reason
  }),
  approveTool: Schema.Struct({ approved: Schema.Boolean, reason, params: optional(Schema.Json) }),
  afterTool: Schema.Struct({
    content: optional(ToolOutput.fields.content),
    details: ToolOutput.fields.details,
    isError: ToolOutput.fields.isError,
    terminate: ToolOutput.fields.terminate,
    retry: optional(Schema.Boolean)
  }),
  prepareNextTurn: Schema.Struct({
    messages: optional(messages),
    model: optional(Schema.String),
    thinkingLevel: optional(ThinkingLevel),
    system: optional(Schema.String),
    activeTools: optional(Schema.Array(Schema.String))
  }),
  shouldStopAfterTurn: Schema.Boolean,
  transformMessages: messages,
  toModelMessages: messages,
  steering: messages,
  followUp: messages
}

/**
 * Reads what a hook of this point returned; keys that mean nothing there are left out. A value that throws when it is read
 * is a failure of the hook.
 */
export const read = (point: Point, output: unknown): Exit.Exit<any, unknown> => {
  try {
    return Schema.decodeUnknownExit(outputs[point])(defined(output, 3))
  } catch (thrown) {
    return Exit.fail(thrown)
  }
}

/** Without the keys whose value is `undefined`: whoever writes them means to say nothing. */
const defined = (value: unknown, depth: number): unknown =>
  depth > 0 &&
  !isOutput(value) &&
  Predicate.isObject(value) &&
  Object.getPrototypeOf(value) === Object.prototype
    ? Object.fromEntries(
        Object.entries(value).flatMap(([key, inner]) =>
          inner === undefined ? [] : [[key, defined(inner, depth - 1)]]
        )
      )
    : value
