/**
 * What an agent is made from.
 */
import * as Result from "effect/Result"
import type * as Hook from "../Hook.ts"
import * as Input from "./invalidInput.ts"
import * as InvalidHook from "./invalidHook.ts"
import { InvalidInput } from "./invalidInput.ts"
import type * as Message from "../Message.ts"
import type { QueueMode } from "./queues.ts"
import type { RunOptions } from "../RunOptions.ts"
import type * as Tool from "../Tool.ts"

export type Tools = ReadonlyArray<Tool.Any>
export type Hooks = ReadonlyArray<Hook.Hook>

export type AgentOptions<T extends Tools, H extends Hooks> = RunOptions & {
  readonly messages?: ReadonlyArray<Message.Message>
  readonly tools?: T
  readonly hooks?: H
  /** Default "one-at-a-time". */
  readonly steeringMode?: QueueMode
  /** Default "one-at-a-time". */
  readonly followUpMode?: QueueMode
}

const own = ["messages", "tools", "hooks", "steeringMode", "followUpMode"]

/** Reads the options of an agent. Members that are `undefined` count as not given. `beside`: other names that are taken. */
export const read = <T extends Tools, H extends Hooks>(
  options: AgentOptions<T, H>,
  beside: ReadonlyArray<string> = []
) => {
  const { followUpMode, hooks, messages, steeringMode, tools, ...others } = options ?? {}
  const modes = {
    ...(steeringMode === undefined ? {} : { steering: steeringMode }),
    ...(followUpMode === undefined ? {} : { followUp: followUpMode })
  }
  const listed = { tools: tools ?? [], hooks: hooks ?? [], modes }
  return Result.gen(function* () {
    const runOptions = yield* Input.options(others, [...own, ...beside])
    const faults = [
      ...faultOfMode("steeringMode", steeringMode),
      ...faultOfMode("followUpMode", followUpMode),
      ...faultOfList("tools", tools),
      ...faultOfList("hooks", hooks),
      ...faultsOfHooks(hooks)
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
