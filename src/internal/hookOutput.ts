/**
 * What a hook may return. Types do not reach everybody who writes hooks, and a guard that returned something else must not
 * count as one that agreed.
 */
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { ToolOutput } from "../AgentEvent.ts"
import type { Point } from "../Hook.ts"
import { originals } from "./hookInput.ts"
import * as Message from "../Message.ts"
import * as NearestName from "./nearestName.ts"
import { isOutput, rendered as written } from "./toolOutput.ts"
import { ModelOptions, RunOptions, ThinkingLevel } from "../RunOptions.ts"

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

/** The names of all points. */
export const points: ReadonlyArray<string> = Object.keys(outputs)

/**
 * Reads what a hook of this point returned. Members that have no meaning there are left out, unless a member was probably
 * meant or no other member is there: then the hook has failed. A value that throws when it is read is a failure of the
 * hook.
 */
export const read = (point: Point, output: unknown): Exit.Exit<any, unknown> => {
  try {
    const schema = outputs[point]
    const given = defined(output, 3)
    const members = Predicate.hasProperty(schema, "fields") ? Object.keys(Object(schema.fields)) : []
    const unmeant = misspelt(given, members)
    return unmeant === undefined ? decoded(schema, given) : Exit.fail(`The hook returned ${unmeant}`)
  } catch (thrown) {
    return Exit.fail(thrown)
  }
}

const decoded = (schema: Schema.Codec<any, any, never, never>, given: unknown): Exit.Exit<any, unknown> =>
  Result.match(Schema.decodeUnknownResult(schema)(given), {
    onSuccess: Exit.succeed,
    onFailure: ({ message }) =>
      Exit.fail(`${message}. The hook returned something else than its point takes.`)
  })

/** Says which member means nothing. Undefined when there is none that must be told of. */
const misspelt = (given: unknown, members: ReadonlyArray<string>): string | undefined => {
  if (members.length === 0 || !Predicate.isObject(given)) return undefined
  const unknown = Object.keys(given).filter((name) => !members.includes(name))
  const missing = members.filter((name) => !(name in given))
  for (const name of unknown) {
    const nearest = NearestName.of(name, missing)
    if (nearest !== undefined) return `\`${name}\`, which has no meaning here. Did you mean \`${nearest}\`?`
  }
  return unknown.length > 0 && missing.length === members.length
    ? `\`${unknown[0]}\`, which has no meaning here. Return any of ${members.join(", ")}.`
    : undefined
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
