/**
 * The agent loop without an agent, for code without Effect.
 *
 * @since 0.2.0
 */
import type * as Agent from "../Agent.ts"
import type { AgentEvent } from "../AgentEvent.ts"
import type * as Hook from "../Hook.ts"
import type * as Message from "../Message.ts"
import type { RunResult } from "../Run.ts"
import type * as Tool from "../Tool.ts"
import { createAgent, type Options } from "./createAgent.ts"
import type { ContinueOptions, PromiseAgent, StartedPromiseRun } from "./PromiseAgent.ts"

/**
 * A run that `agentLoop` or `agentLoopContinue` began.
 *
 * **Details**
 *
 * `O` are the members that an `output` schema adds to the result.
 *
 * @category models
 * @since 0.2.0
 */
export interface LoopRun<out O = {}> {
  /** The events of the run from its first one, for each iteration all of them. `break` does not cancel the run. */
  readonly events: AsyncIterable<AgentEvent>
  /** Resolves with the result of the run. Rejects with `RunFailed` if the run fails. */
  readonly result: () => Promise<RunResult & O>
  /** Ends the run. Does not wait for the end. */
  readonly cancel: (reason?: string) => Promise<void>
}

/**
 * The messages that a loop begins from, and the summary of the older ones, if there is one.
 *
 * @category models
 * @since 0.2.0
 */
export type LoopHistory = Pick<Agent.AgentOptions<readonly [], readonly []>, "messages" | "compaction">

/**
 * Runs the loop once, from the messages so far, and keeps nothing after it.
 *
 * **Details**
 *
 * The result has the new messages. The provider and the layers live as long as the run. A `signal` that aborts cancels the run: its
 * events end with `RunEnd`, and the result rejects with the reason of the signal.
 *
 * **Example** (Running the loop)
 *
 * ```ts
 * import { agentLoop } from "effect-agent/promise"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const run = agentLoop("Hi", { messages: [] }, {
 *   provider: ScriptedProvider.layer([ScriptedProvider.text("Hello.")]),
 *   model: "any"
 * })
 *
 * for await (const event of run.events) {
 *   if (event._tag === "MessageEnd") console.log(event.message.role)
 * }
 * const { newMessages, text } = await run.result()
 * console.log(newMessages.length, text)
 * // => user
 * // => assistant
 * // => 2 Hello.
 * ```
 *
 * @category running
 * @since 0.2.0
 */
export const agentLoop = <
  RP = never,
  const T extends ReadonlyArray<Tool.Any> = readonly [],
  const H extends ReadonlyArray<Hook.Hook> = readonly [],
  A = never
>(
  prompt: Message.Input,
  history: LoopHistory,
  options: Options<RP, T, H, A>,
  { signal }: ContinueOptions = {}
): LoopRun<Agent.OutputOf<A>> => {
  const agent = createAgent<RP, T, H, A>({ ...options, ...history })
  return only(agent, () => agent.start(prompt), signal)
}

/**
 * Runs the loop once without a new message, from messages that the model has not answered.
 *
 * **Details**
 *
 * The messages may end with one of the user, or with the result of a tool. The result and the events fail with `InvalidContinuation` if
 * there are no messages, or the last one is a complete answer. All else is as in `agentLoop`.
 *
 * **Example** (Answering a transcript)
 *
 * ```ts
 * import { Message } from "effect-agent"
 * import { agentLoopContinue } from "effect-agent/promise"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const run = agentLoopContinue({ messages: [Message.user("Hi")] }, {
 *   provider: ScriptedProvider.layer([ScriptedProvider.text("Hello.")]),
 *   model: "any"
 * })
 *
 * const { newMessages, text } = await run.result()
 * console.log(newMessages.length, text) // => 1 Hello.
 * ```
 *
 * @category running
 * @since 0.2.0
 */
export const agentLoopContinue = <
  RP = never,
  const T extends ReadonlyArray<Tool.Any> = readonly [],
  const H extends ReadonlyArray<Hook.Hook> = readonly [],
  A = never
>(
  history: LoopHistory,
  options: Options<RP, T, H, A>,
  { signal }: ContinueOptions = {}
): LoopRun<Agent.OutputOf<A>> => {
  const agent = createAgent<RP, T, H, A>({ ...options, ...history })
  return only(agent, agent.startContinue, signal)
}

/** The only run of an agent, which closes after it. */
const only = <O>(
  { close }: PromiseAgent<O>,
  start: () => Promise<StartedPromiseRun<O>>,
  signal: AbortSignal | undefined
): LoopRun<O> => {
  const started = signal?.aborted === true ? Promise.reject(signal.reason) : start()
  const cancel = async (reason?: string) => (await started).cancel(reason)
  // A run that did not start is no run to cancel.
  const onAbort = () => void cancel("its signal aborted").catch(() => {})
  signal?.addEventListener("abort", onAbort, { once: true })
  const end = () => {
    signal?.removeEventListener("abort", onAbort)
    return close()
  }
  const result = started
    .then((run) => run.result())
    .then((ended) =>
      signal?.aborted === true && ended.status === "cancelled" ? Promise.reject(signal.reason) : ended
    )
    .finally(end)
  // The caller may read the failure later, or from the events.
  result.catch(() => {})
  return {
    events: {
      async *[Symbol.asyncIterator]() {
        yield* (await started).events
      }
    },
    result: () => result,
    cancel
  }
}
