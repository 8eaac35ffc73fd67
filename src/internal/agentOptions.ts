/**
 * What an agent is made from.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Hook from "../Hook.ts"
import * as Input from "./invalidInput.ts"
import * as InvalidHook from "./invalidHook.ts"
import { InvalidInput } from "./invalidInput.ts"
import type * as Message from "../Message.ts"
import type { OutputOptions } from "./output.ts"
import * as OutputReview from "./outputReview.ts"
import type { QueueMode } from "./queues.ts"
import type { RunOptions } from "../RunOptions.ts"
import type * as Tool from "../Tool.ts"

/**
 * A list of tools whose types the compiler keeps.
 *
 * **Details**
 *
 * A list that is made at run time is a `ReadonlyArray<Tool.Runnable>`.
 *
 * @category models
 * @since 0.1.0
 */
export type Tools = ReadonlyArray<Tool.Any>

/**
 * A list of hooks whose types the compiler keeps.
 *
 * **Details**
 *
 * A list that is made at run time is a `ReadonlyArray<Hook.Runnable>`.
 *
 * @category models
 * @since 0.1.0
 */
export type Hooks = ReadonlyArray<Hook.Hook>

/**
 * The options of an agent: those of its runs, and those of the agent itself.
 *
 * @category options
 * @since 0.1.0
 */
export type AgentOptions<T extends Tools, H extends Hooks> = RunOptions & {
  /** The transcript that the conversation begins with, oldest message first. Default: none. */
  readonly messages?: ReadonlyArray<Message.Message>
  /** The tools that the model may call. Default: none. */
  readonly tools?: T
  /** The hooks, which a run calls in this order. Default: none. */
  readonly hooks?: H
  /** The number of steering messages that a turn takes. Default `"one-at-a-time"`. */
  readonly steeringMode?: QueueMode
  /** The number of follow-up messages that a turn takes. Default `"one-at-a-time"`. */
  readonly followUpMode?: QueueMode
}

/**
 * The options of one prompt: changes to the options of the agent, and an output of its own.
 *
 * @category options
 * @since 0.2.0
 */
export type PromptOptions<A = never> = Partial<RunOptions> & OutputOptions<A>

const outputNames = ["output", "outputRetries"]
const own = ["messages", "tools", "hooks", "steeringMode", "followUpMode", ...outputNames]

/** Reads the options of an agent. Members that are `undefined` count as not given. `beside`: other names that are taken. */
export const read = <T extends Tools, H extends Hooks>(
  options: AgentOptions<T, H> & OutputOptions<unknown>,
  beside: ReadonlyArray<string> = []
) => {
  const { followUpMode, hooks, messages, output, outputRetries, steeringMode, tools, ...others } =
    options ?? {}
  const modes = {
    ...(steeringMode === undefined ? {} : { steering: steeringMode }),
    ...(followUpMode === undefined ? {} : { followUp: followUpMode })
  }
  const listed = { tools: tools ?? [], hooks: hooks ?? [], modes, output: { output, outputRetries } }
  return Result.gen(function* () {
    const runOptions = yield* Input.options(others, [...own, ...beside])
    const faults = [
      ...faultOfMode("steeringMode", steeringMode),
      ...faultOfMode("followUpMode", followUpMode),
      ...faultOfList("tools", tools),
      ...faultOfList("hooks", hooks),
      ...faultsOfHooks(hooks),
      ...faultsOfOutput({ output, outputRetries })
    ]
    if (faults.length > 0) yield* Result.fail(new InvalidInput({ subject: "options", faults }))
    return { ...listed, runOptions, messages: yield* Input.messages(messages ?? []) }
  })
}

/** The options of a prompt, read. */
export interface Prompted {
  readonly patch: Partial<RunOptions>
  readonly typed: OutputReview.Typed<{}>
}

/** Reads the options of a prompt. Its output is that of the agent, unless the prompt has its own. */
export const readPrompt = (
  options: PromptOptions<unknown> | undefined,
  agent: Unread
): Result.Result<Prompted, InvalidInput> => {
  const { output = agent.output, outputRetries = agent.outputRetries, ...patch } = options ?? {}
  return Result.gen(function* () {
    const faults = faultsOfOutput({ output, outputRetries })
    if (faults.length > 0) yield* Result.fail(new InvalidInput({ subject: "options", faults }))
    return {
      patch: yield* Input.patch(patch, outputNames),
      typed: output === undefined ? OutputReview.untyped : OutputReview.typed(output, outputRetries)
    }
  })
}

const faultsOfOutput = ({ output, outputRetries }: Unread): ReadonlyArray<string> => [
  ...(output === undefined || isSchema(output)
    ? []
    : [`output: expected a Schema or a Standard Schema, got ${Input.shown(output)}`]),
  ...(outputRetries === undefined || (Number.isInteger(outputRetries) && Number(outputRetries) >= 0)
    ? []
    : [`outputRetries: expected a whole number from 0, got ${Input.shown(outputRetries)}`])
]

/** Types do not guard plain JavaScript. */
export type Unread = {
  readonly [Name in keyof OutputOptions<unknown>]-?: OutputOptions<unknown>[Name] | undefined
}

const isSchema = (output: unknown): boolean =>
  Schema.isSchema(output) || Predicate.hasProperty(output, "~standard")

const faultOfMode = (name: string, mode: unknown): ReadonlyArray<string> =>
  mode === undefined || mode === "all" || mode === "one-at-a-time"
    ? []
    : [`${name}: expected "one-at-a-time" or "all", got ${JSON.stringify(mode)}`]

const faultOfList = (name: string, list: unknown): ReadonlyArray<string> =>
  list === undefined || Array.isArray(list) ? [] : [`${name}: expected a list`]

const faultsOfHooks = (hooks: unknown): ReadonlyArray<string> =>
  (Array.isArray(hooks) ? hooks : []).flatMap((hook: unknown, index) => {
    const fault = InvalidHook.of(hook)
    return fault === undefined ? [] : [`hooks[${index}]: ${fault}`]
  })
