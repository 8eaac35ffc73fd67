/** Questions of the model to the person at the terminal. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Approval from "../../Approval.ts"
import * as JsonSchema from "../../internal/jsonSchema.ts"
import * as Inert from "./Inert.ts"
import { Keyboard } from "./Keyboard.ts"
import { Screen } from "./Screen.ts"

/** Shows a question, and waits for an answer that matches its schema. The end of the input declines it. */
export const answerTo = Effect.fnUntraced(function* ({
  question,
  schema
}: Pick<Approval.Question, "question" | "schema">): Effect.fn.Return<
  Approval.QuestionReply,
  never,
  Keyboard | Screen
> {
  const { err, paint } = yield* Screen
  const keyboard = yield* Keyboard
  yield* err(`${paint.bold("The model asks")}\n${linesOf(question)}${choicesIn(schema)}`)
  while (true) {
    // Input from before the question is no answer to it.
    yield* keyboard.forget
    yield* err("Answer: ")
    const typed = yield* Effect.onInterrupt(keyboard.line, () => err("\n"))
    if (typed === undefined) {
      yield* err("\n")
      return { declined: true, reason: "the user gave no answer", by: "user" }
    }
    const answer = read(typed.trim(), schema)
    if (Result.isSuccess(answer)) return { answer: answer.success, by: "user" }
    yield* err(`${paint.red(Inert.line(answer.failure))}\n`)
  }
})

const linesOf = (text: string): string =>
  text
    .split("\n")
    .map((line) => `  ${Inert.exact(line)}\n`)
    .join("")

const choicesIn = (schema: Schema.Json): string => {
  const choices = Predicate.hasProperty(schema, "enum") && Array.isArray(schema.enum) ? schema.enum : []
  return choices.length === 0
    ? ""
    : linesOf(
        `One of: ${choices.map((choice) => (typeof choice === "string" ? choice : JSON.stringify(choice))).join(", ")}`
      )
}

/** The answer that a person types: as text, else as JSON, else as the only member that an object needs. */
const read = (typed: string, schema: Schema.Json): Result.Result<Schema.Json, string> =>
  firstOf([typed, ...Option.toArray(decodeJson(typed)), ...wordOf(typed), ...memberOf(typed, schema)], schema)

/** The answer of a command line: as JSON, else as text, else as the only member that an object needs. */
export const given = (text: string, schema: Schema.Json): Result.Result<Schema.Json, string> =>
  firstOf([...Option.toArray(decodeJson(text)), text, ...wordOf(text), ...memberOf(text, schema)], schema)

const memberOf = (text: string, schema: Schema.Json): ReadonlyArray<Schema.Json> => {
  const required = Predicate.hasProperty(schema, "required") ? schema.required : undefined
  const [name, ...others] = Array.isArray(required) ? required.filter(Predicate.isString) : []
  return name === undefined || others.length > 0 ? [] : [{ [name]: text }]
}

const wordOf = (typed: string): ReadonlyArray<Schema.Json> => {
  const words = new Map<string, Schema.Json>([
    ["y", true],
    ["yes", true],
    ["n", false],
    ["no", false]
  ])
  return Option.toArray(Option.fromUndefinedOr(words.get(typed.toLowerCase())))
}

/** The first candidate that matches the schema. */
const firstOf = (
  candidates: ReadonlyArray<Schema.Json>,
  schema: Schema.Json
): Result.Result<Schema.Json, string> => {
  const decoded = candidates.map((candidate) => JsonSchema.decode(schema, candidate))
  const [first = Result.fail([])] = decoded
  return Result.mapError(decoded.find(Result.isSuccess) ?? first, (faults) => faults.join("; "))
}

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))
