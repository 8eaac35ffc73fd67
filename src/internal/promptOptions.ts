/**
 * The options of one run: `RunOptions`, which are data, and beside them its output.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Input from "./invalidInput.ts"
import { InvalidInput } from "./invalidInput.ts"
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

/** The names of the options beside `RunOptions`. */
export const names: ReadonlyArray<string> = ["output", "outputRetries"]

/** The options of a run, read. */
export interface Prompted<Options, O = {}> {
  readonly options: Options
  readonly typed: OutputReview.Typed<O>
}

type Read<A> = (input: unknown, beside: ReadonlyArray<string>) => Result.Result<A, InvalidInput>

const reading =
  <Options>(readData: Read<Options>) =>
  <A = never>(
    given?: PromptOptions<A>,
    agent?: Unread
  ): Result.Result<Prompted<Options, OutputOf<A>>, InvalidInput> =>
    Result.gen(function* () {
      const { output = agent?.output, outputRetries = agent?.outputRetries, ...data } = given ?? {}
      const faults = faultsOf({ output, outputRetries })
      if (faults.length > 0) yield* Result.fail(new InvalidInput({ subject: "options", faults }))
      return { options: yield* readData(data, names), typed: OutputReview.typed<A>(output, outputRetries) }
    })

/** Reads the options of a prompt. Those beside `RunOptions` are those of the agent, unless the prompt has its own. */
export const readPrompt = reading(Input.patch)

/** Reads the options of a run without an agent. */
export const readRun = reading(Input.options)

/** One sentence for each option beside `RunOptions` that is not valid. */
export const faultsOf = ({ output, outputRetries }: Unread): ReadonlyArray<string> => [
  ...(output === undefined || isSchema(output)
    ? []
    : [`output: expected a Schema or a Standard Schema, got ${Input.shown(output)}`]),
  ...(outputRetries === undefined || (Number.isInteger(outputRetries) && Number(outputRetries) >= 0)
    ? []
    : [`outputRetries: expected a whole number from 0, got ${Input.shown(outputRetries)}`])
]

const isSchema = (output: unknown): boolean =>
  Schema.isSchema(output) || Predicate.hasProperty(output, "~standard")
