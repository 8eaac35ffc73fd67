/**
 * What an agent is made from.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import type * as Hook from "../Hook.ts"
import * as Input from "./invalidInput.ts"
import * as InvalidHook from "./invalidHook.ts"
import type * as Message from "../Message.ts"
import type { OutputOptions } from "./output.ts"
import * as PromptOptions from "./promptOptions.ts"
import type { QueueMode } from "./pending.ts"
import * as RunOptions from "../RunOptions.ts"
import type { Session } from "../Session.ts"
import type * as Tool from "../Tool.ts"
import * as Transcript from "../Transcript.ts"

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
export type AgentOptions<T extends Tools, H extends Hooks> = RunOptions.RunOptions &
  PromptOptions.RetryOptions & {
    /** The transcript that the conversation begins with, oldest message first. Default: none. */
    readonly messages?: ReadonlyArray<Message.Message>
    /**
     * The session that keeps the conversation: the agent continues from its messages, queues and changed options, and writes each
     * change before others see it. Not together with `messages`. Default: none.
     */
    readonly session?: Session
    /**
     * Whether a prompt continues the conversation. Default `true`. With `false` each begins from `messages` and `compaction`, or from
     * what `setMessages` or `reset` put in their place since the last run; `continue` begins from the last run. Not together with
     * `session`.
     */
    readonly preserveHistory?: boolean
    /** The summary that the conversation begins with, as `state` of an agent has it. Default: none. */
    readonly compaction?: Transcript.Compaction
    /** The tools that the model may call, beside those of a `ToolRegistry` around `Agent.make`, over which they win. Default: none. */
    readonly tools?: T
    /** The hooks, which a run calls in this order. Default: none. */
    readonly hooks?: H
    /** The number of steering messages that a turn takes. Default `"one-at-a-time"`. */
    readonly steeringMode?: QueueMode
    /** The number of follow-up messages that a turn takes. Default `"one-at-a-time"`. */
    readonly followUpMode?: QueueMode
  }

const listOf = (item: Schema.Codec<unknown>) =>
  Schema.optionalKey(Schema.Array(item).annotate({ identifier: "a list" }))
const mode = Schema.optionalKey(
  Schema.Literals(["one-at-a-time", "all"]).annotate({ expected: '"one-at-a-time" or "all"' })
)

const decode = Input.reader(
  Schema.Struct({
    ...RunOptions.RunOptions.fields,
    messages: Schema.optionalKey(Schema.Unknown),
    session: Schema.optionalKey(Schema.Unknown),
    compaction: Schema.optionalKey(Transcript.Compaction),
    preserveHistory: Schema.optionalKey(Schema.Boolean),
    tools: listOf(Schema.Unknown),
    hooks: listOf(Schema.Unknown.check(Schema.makeFilter(InvalidHook.of))),
    steeringMode: mode,
    followUpMode: mode,
    ...PromptOptions.fields
  })
)

/** Reads the options of an agent. Members that are `undefined` count as not given. `beside`: other names that are taken. */
export const read = <T extends Tools, H extends Hooks>(
  options: AgentOptions<T, H> & OutputOptions<unknown>,
  beside: ReadonlyArray<string> = []
) =>
  Result.gen(function* () {
    const decoded = yield* decode(options ?? {}, beside)
    const { followUpMode = "one-at-a-time", preserveHistory = true, steeringMode = "one-at-a-time" } = decoded
    const { maxRetryAfter, messages, output, outputRetries, retry, session } = options
    if (messages !== undefined && session !== undefined) return yield* Result.fail(twoTranscripts)
    if (!preserveHistory && session !== undefined) return yield* Result.fail(notKept)
    const runOptions = Struct.pick(decoded, Struct.keys(RunOptions.RunOptions.fields))
    return {
      session,
      runOptions: RunOptions.patch(
        RunOptions.without(runOptions, session?.restored.unset ?? []),
        session?.restored.options
      ),
      messages: session?.restored.messages ?? (yield* Input.messages(messages ?? [])),
      compaction: session?.restored.compaction ?? decoded.compaction,
      preserveHistory,
      tools: options.tools ?? [],
      hooks: options.hooks ?? [],
      modes: { steering: steeringMode, followUp: followUpMode },
      ofRuns: { maxRetryAfter, output, outputRetries, retry }
    }
  })

/** The definition of an agent, read from its options. */
export type Definition<T extends Tools, H extends Hooks> = Result.Result.Success<
  ReturnType<typeof read<T, H>>
>

const twoTranscripts = new Input.InvalidInput({
  subject: "options",
  faults: [
    "messages is given beside session, which has messages of its own. Use agent.setMessages to replace them"
  ]
})

const notKept = new Input.InvalidInput({
  subject: "options",
  faults: ["preserveHistory is false beside session, which keeps the conversation. Give one of them"]
})
