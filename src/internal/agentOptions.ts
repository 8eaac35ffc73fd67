/**
 * What an agent is made from.
 */
import * as Result from "effect/Result"
import type * as Hook from "../Hook.ts"
import * as Input from "./invalidInput.ts"
import * as InvalidHook from "./invalidHook.ts"
import { InvalidInput } from "./invalidInput.ts"
import type * as Message from "../Message.ts"
import type { OutputOptions } from "./output.ts"
import * as PromptOptions from "./promptOptions.ts"
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

const own = ["messages", "tools", "hooks", "steeringMode", "followUpMode", ...PromptOptions.names]

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
      ...PromptOptions.faultsOf({ output, outputRetries })
    ]
    if (faults.length > 0) yield* Result.fail(new InvalidInput({ subject: "options", faults }))
    return { ...listed, runOptions, messages: yield* Input.messages(messages ?? []) }
  })
}

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
