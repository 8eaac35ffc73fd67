/**
 * The options of one run: `RunOptions`, which are data, and beside them its output.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Input from "./invalidInput.ts"
import type { OutputOf, OutputOptions } from "./output.ts"
import * as OutputReview from "./outputReview.ts"
import type { RunOptions } from "../RunOptions.ts"

/**
 * The options of one prompt: changes to the options of the agent, and an output of its own.
 *
 * @category options
 * @since 0.2.0
 */
export type PromptOptions<A = never> = Partial<RunOptions> & OutputOptions<A>

/** The options beside `RunOptions`, as an application gave them. Types do not guard plain JavaScript. */
export type Unread = {
  readonly [Name in keyof OutputOptions<unknown>]-?: OutputOptions<unknown>[Name] | undefined
}

/** The schemas of the options beside `RunOptions`. */
export const fields = {
  output: Schema.optionalKey(
    Schema.declare((value) => Schema.isSchema(value) || Predicate.hasProperty(value, "~standard"), {
      expected: "a Schema or a Standard Schema"
    })
  ),
  outputRetries: Schema.optionalKey(
    Schema.Number.check(
      Schema.makeFilter((count) => Number.isInteger(count) && count >= 0, {
        expected: "a whole number from 0"
      })
    )
  )
}
const readOutput = Input.reader(Schema.Struct(fields))

/** The options of a run, read. */
export interface Prompted<Options, O = {}> {
  readonly options: Options
  readonly typed: OutputReview.Typed<O>
}

type Read<A> = (input: unknown, beside: ReadonlyArray<string>) => Result.Result<A, Input.InvalidInput>

const reading =
  <Options>(readData: Read<Options>) =>
  <A = never>(
    given?: PromptOptions<A>,
    agent?: Unread
  ): Result.Result<Prompted<Options, OutputOf<A>>, Input.InvalidInput> =>
    Result.gen(function* () {
      const { output = agent?.output, outputRetries = agent?.outputRetries, ...data } = given ?? {}
      yield* readOutput({ output, outputRetries })
      const options = yield* readData(data, Object.keys(fields))
      return { options, typed: OutputReview.typed<A>(output, outputRetries) }
    })

/** Reads the options of a prompt. Those beside `RunOptions` are those of the agent, unless the prompt has its own. */
export const readPrompt = reading(Input.patch)

/** Reads the options of a run without an agent. */
export const readRun = reading(Input.options)
