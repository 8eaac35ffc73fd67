/**
 * Sub-agents: an agent as a tool of another one. Each call is one run of a new agent; the run that calls is its parent run.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { RunStatus } from "../AgentEvent.ts"
import type { AgentRuntime } from "./agentRuntime.ts"
import type { InvalidContinuation } from "./continuation.ts"
import * as Execution from "./execution.ts"
import { EventError } from "./failureReason.ts"
import { type InvalidInput, shown } from "./invalidInput.ts"
import { InvalidTool } from "./invalidTool.ts"
import type * as Message from "../Message.ts"
import { open, type Requirements } from "./openAgent.ts"
import type { OutputOptions } from "./output.ts"
import type { ParamsSchema } from "./params.ts"
import { type AgentOptions, type Hooks, prompted, readAgent, readPrompt, type Tools } from "./options.ts"
import { Outer, type Run } from "./run.ts"
import type { RunFailed, RunResult } from "../Run.ts"
import { type AgentBusy, type AgentClosed, TaggedError } from "./errors.ts"
import * as Tool from "../Tool.ts"

/**
 * The run of an agent that is a tool gave no answer.
 *
 * @category errors
 * @since 0.2.0
 */
export class SubAgentFailed extends TaggedError<SubAgentFailed>()("SubAgentFailed", {
  /** The name of the tool. */
  agent: Schema.String,
  /** The way in which the run ended; absent if it could not begin. */
  status: Schema.optionalKey(RunStatus),
  /** The error that failed the run; absent if it was cancelled or could not begin. */
  reason: Schema.optionalKey(EventError),
  /** The reason in words. */
  detail: Schema.String
}) {
  override get message(): string {
    const ended = this.status === "cancelled" ? "was cancelled" : "failed"
    return `The agent ${this.agent} ${ended}: ${this.detail}`
  }
}

/**
 * The params of an agent that is a tool, unless it has params of its own.
 *
 * @category models
 * @since 0.2.0
 */
export interface SubAgentParams {
  /** The task, in words. */
  readonly prompt: string
}

const defaultParams = Schema.Struct({
  prompt: Schema.String.annotate({
    description: "The task, with all that the agent must know: it does not see this conversation."
  })
})

const defaultConcurrency = 4

/**
 * The options of an agent that is a tool: those of the tool, and those of the agent.
 *
 * @category options
 * @since 0.2.0
 */
export type SubAgentOptions<Name extends string, T extends Tools, H extends Hooks, A> = Omit<
  Tool.Options<Name>,
  "parameters"
> & {
  /** The options of the agent that each call runs. With `output` the result of the call is the output as JSON. */
  readonly agent: Omit<AgentOptions<T, H>, "session"> & OutputOptions<A>
  /** How many calls of one run may run at a time. Further calls wait. Default 4. */
  readonly concurrency?: number
  /** Longest time of a call; `"Infinity"` for no limit. Default `"Infinity"`: the limits of the runs hold. */
  readonly timeout?: Duration.Input
}

/**
 * The params of an agent that is a tool, where a task in words is not enough.
 *
 * @category options
 * @since 0.2.0
 */
export interface SubAgentInput<in out Params> {
  /** The schema of the params, as of `Tool.make`. Default: an object with the string `prompt`. */
  readonly params: ParamsSchema<Params>
  /** Makes the prompt of the agent from the params. Default: their `prompt`. */
  readonly prompt: (params: Params) => Message.Input
}

/** A tool whose calls run an agent. */
type SubAgent<Name extends string, T extends Tools, H extends Hooks, Params> = Tool.Tool<
  Name,
  Params,
  Tool.ToolOutput,
  SubAgentFailed,
  Requirements<T, H> | Scope.Scope | Tool.ToolContext
>

type Beside = { readonly params?: undefined; readonly prompt?: undefined }

/**
 * Makes a tool whose calls run another agent.
 *
 * **When to use**
 *
 * Use it for a task that needs a system prompt, a model or tools of its own, or that would fill the transcript. Use `Agent.handOff`
 * where the other agent continues the conversation.
 *
 * **Details**
 *
 * - Each call makes a new agent, which sees only its prompt. Its last answer is the result of the call; with `output` it is the output
 *   as JSON. `details` of the result are the `runId` and the `status` of the run, and the `output`.
 * - A run that failed is a failure of the call, `SubAgentFailed`, whose message the model reads. An answer at the limit of turns says
 *   that the work is not complete.
 * - The events of the run stand between those of the parent run, with a `runId`, `seq` and `path` of their own. They end before the
 *   `ToolExecutionEnd` of the call.
 * - Cancelling, pausing and the time limit of the parent run hold for the sub-agent's run, and so do its limits on tokens and cost. The
 *   `usage` of the parent run includes that of the sub-agent; `childUsage` of `RunEnd` and of the report is that part.
 * - Requests for approval and questions of a sub-agent are among the `requests` of the outermost agent. Where its policy defers them, the
 *   parent runs end suspended too. When the outermost agent continues, the sub-agent continues from where it stopped: after a restart from
 *   its part of the session.
 * - The `effect` of the tool is `"idempotent"` by default: after the end of the process, a host of durable runs continues the sub-agent's
 *   run, whose tools have effects of their own.
 * - A call has no time limit of its own. `concurrency`, by default 4, limits the calls of one run that run at a time.
 * - The provider is that of the parent run. `Tool.wrap` gives another one: wrap `execute` in `Effect.provide`.
 * - A sub-agent has hooks of its own. The hooks of the parent run see the call of the sub-agent, and not the tool calls of the sub-agent.
 *
 * **Gotchas**
 *
 * Throws `InvalidTool` for options that are not valid.
 *
 * **Example** (Asking another agent)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const researcher = Agent.asTool({
 *   name: "researcher",
 *   description: "Finds facts.",
 *   agent: { model: "gpt-5.4-mini", system: "You find facts and answer in one sentence." }
 * })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5", tools: [researcher] })
 *   yield* agent.subscribe((event) => {
 *     if (event._tag === "RunEnd") console.log(event.path?.length ?? 0, event.status)
 *     return Effect.void
 *   })
 *   const { text } = yield* agent.prompt("How high is Galdhøpiggen?")
 *   console.log(text)
 * }).pipe(Effect.scoped)
 *
 * const script = [
 *   ScriptedProvider.toolCall("researcher", { prompt: "The height of Galdhøpiggen" }),
 *   ScriptedProvider.text("It is 2469 m high."),
 *   ScriptedProvider.text("2469 m.")
 * ]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => 1 completed
 * // => 0 completed
 * // => 2469 m.
 * ```
 *
 * **Example** (Giving params and a typed output)
 *
 * ```ts
 * import { Schema } from "effect"
 * import { Agent } from "effect-agent"
 *
 * export const review = Agent.asTool({
 *   name: "review",
 *   description: "Reviews a file.",
 *   params: Schema.Struct({ path: Schema.String }),
 *   prompt: ({ path }) => `Review ${path}.`,
 *   concurrency: 2,
 *   agent: {
 *     model: "gpt-5.4-mini",
 *     output: Schema.Struct({ grade: Schema.Int }),
 *     limits: { maxTurns: 10 }
 *   }
 * })
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export function asTool<
  const Name extends string,
  const T extends Tools = readonly [],
  const H extends Hooks = readonly [],
  A = never
>(options: SubAgentOptions<Name, T, H, A> & Beside): SubAgent<Name, T, H, SubAgentParams>
export function asTool<
  const Name extends string,
  Params,
  const T extends Tools = readonly [],
  const H extends Hooks = readonly [],
  A = never
>(options: SubAgentOptions<Name, T, H, A> & SubAgentInput<Params>): SubAgent<Name, T, H, Params>
export function asTool<Name extends string, Params, T extends Tools, H extends Hooks>(
  options: SubAgentOptions<Name, T, H, unknown> & (SubAgentInput<Params> | Beside)
): SubAgent<Name, T, H, Params> | SubAgent<Name, T, H, SubAgentParams> {
  const fault = faultOf(options)
  if (fault !== undefined)
    return Result.getOrThrow(Result.fail(new InvalidTool({ tool: options.name, detail: fault })))
  const { params, prompt, ...rest } = options
  return params === undefined
    ? build(rest, { params: defaultParams, prompt: (params) => params.prompt })
    : build(rest, { params, prompt })
}

const build = <Name extends string, Params, T extends Tools, H extends Hooks>(
  options: SubAgentOptions<Name, T, H, unknown>,
  { params, prompt }: SubAgentInput<Params>
): SubAgent<Name, T, H, Params> => {
  const { agent, concurrency = defaultConcurrency, ...common } = options
  const permits = new WeakMap<Run, Semaphore.Semaphore>()
  // Each parent run has permits of its own. With shared ones a call could wait for a sub-agent that itself waits for a permit.
  const permitsOf = (parent: Run) => {
    const found = permits.get(parent) ?? Semaphore.makeUnsafe(concurrency)
    permits.set(parent, found)
    return found
  }
  return Tool.make({
    timeout: "Infinity",
    // The call may run again, since the session has the start of the sub-agent's run before any of its tools begins: the run then
    // continues.
    effect: "idempotent",
    ...common,
    params,
    failure: SubAgentFailed,
    execute: (params) =>
      Effect.flatMap(Outer, (parent) => {
        const running = Effect.suspend(() => run(options.name, agent, prompt(params), parent))
        return parent === undefined ? running : permitsOf(parent).withPermit(running)
      })
  })
}

/** Finds a fault in the options of the sub-agent. Types do not guard them in plain JavaScript. */
const faultOf = <Params>({
  agent,
  concurrency = defaultConcurrency,
  params,
  prompt
}: SubAgentOptions<string, Tools, Hooks, unknown> & (SubAgentInput<Params> | Beside)): string | undefined => {
  if (!(concurrency >= 1)) return `\`concurrency\` is ${shown(concurrency)}; expected a number from 1.`
  if (params !== undefined && typeof prompt !== "function")
    return "`prompt` must be a function that makes the prompt of the agent from the params."
  const faults = Result.getFailure(readAgent(agent))
  return Option.isNone(faults) ? undefined : `\`agent\`: ${faults.value.message}`
}

/** Runs a new sub-agent for one call of the parent run. */
const run = Effect.fnUntraced(function* <T extends Tools, H extends Hooks>(
  name: string,
  { messages = [], ...options }: AgentOptions<T, H> & OutputOptions<unknown>,
  input: Message.Input,
  parent: Run | undefined
) {
  const failed = (error: { readonly message: string }) =>
    new SubAgentFailed({ agent: name, detail: error.message })
  const { toolCallId } = yield* Tool.ToolContext
  const session =
    parent?.journal && (yield* Effect.mapError(parent.journal.session.child(toolCallId), failed))
  const own = { agent: { name }, ...options, ...(session === undefined ? {} : { session }) }
  const { interrupted } = session?.restored ?? {}
  if (interrupted?.failure !== undefined) return yield* failed({ message: interrupted.failure })
  const definition = yield* Effect.mapError(Effect.fromResult(readAgent(own)), failed)
  const { runtime } = yield* open(definition, parent)
  const kept = session === undefined ? parent?.waiting.inner.get(toolCallId) : undefined
  parent?.waiting.inner.delete(toolCallId)
  const before = kept?.messages ?? messages
  // A call that a hook runs again starts its sub-agent from the first message.
  const isContinued = () => runtime.open.current !== undefined || interrupted !== undefined
  const isNew = !isContinued() && before.length + runtime.current.messages.length > 0
  if (isNew) yield* Effect.mapError(runtime.setMessages(before), failed)
  if (kept !== undefined) runtime.open.reopen(kept)
  const asked = yield* Effect.mapError(Effect.fromResult(readPrompt(undefined, definition.ofRuns)), failed)
  const started = runtime.begin(isContinued() ? continuing(runtime, input) : prompted(input), asked)
  const typed = Effect.fnUntraced(function* (result: RunResult) {
    if (result.status !== "suspended" || parent === undefined) return yield* asked.typed.result(result)
    const suspended = runtime.open.suspended(runtime.current.messages)
    if (suspended !== undefined) parent.waiting.inner.set(toolCallId, suspended)
    return result
  })
  const result = yield* Execution.join<CannotBegin, never>(started, () => reasonOf(parent)).pipe(
    Effect.flatMap(typed),
    Effect.mapError((error) => (error._tag === "RunFailed" ? failedBy(name, error) : failed(error)))
  )
  return yield* answerOf(name, result, asked.typed.output?.accepted?.json)
})

/** Makes the `RunSpec` of a run that continues. If its process ended before it had a message, it gets its prompt again. */
const continuing = (runtime: AgentRuntime, input: Message.Input) => (now: number) =>
  Result.flatMap(runtime.continuation(now), (begin) => {
    const { interrupted } = begin
    const isBare = interrupted?.open === undefined && interrupted?.newMessages.length === 0
    return isBare && begin.prompts.length === 0
      ? Result.map(prompted(input)(now), ({ prompts }) => ({ ...begin, prompts }))
      : Result.succeed(begin)
  })

type CannotBegin = AgentBusy | AgentClosed | InvalidContinuation | InvalidInput

/** The reason of the cancel of a sub-agent's run whose call was interrupted. */
const reasonOf = (parent: Run | undefined): string => {
  const stop = parent?.control.stop
  if (stop === undefined) return "the call was interrupted"
  if (stop.cause === "cancel") return stop.reason ?? "the run around it was cancelled"
  return stop.cause === "deadline" ? "the run around it is out of time" : "the run around it failed"
}

const failedBy = (agent: string, { message: detail, reason, result }: RunFailed): SubAgentFailed =>
  new SubAgentFailed({ agent, status: result.status, reason, detail })

/** The result of the call: the output, else the last answer. */
const answerOf = (
  agent: string,
  { report, runId, status, text }: RunResult,
  output: Schema.Json | undefined
): Effect.Effect<Tool.ToolOutput, SubAgentFailed> => {
  // The result of a suspended sub-agent is not used: its call has no result until the next run of the parent agent.
  if (status === "suspended") return Effect.succeed(Tool.output(""))
  if (status === "cancelled") {
    const detail =
      report.audit.findLast(({ type }) => type === "execution_cancelled")?.detail ?? "no reason was given"
    return Effect.fail(new SubAgentFailed({ agent, status, detail }))
  }
  const answer = output === undefined ? text : JSON.stringify(output)
  const notes = [
    ...(answer.trim() === "" ? ["The agent gave no answer."] : []),
    ...(status === "incomplete" ? ["The agent reached its limit of turns: its work is not complete."] : [])
  ]
  const content = [answer, ...notes.map((note) => `[${note}]`)].filter((part) => part.trim() !== "")
  const details = { runId, status, ...(output === undefined ? {} : { output }) }
  return Effect.succeed(Tool.output(content.join("\n\n"), { details }))
}
