/**
 * The agent loop without an agent, for code without Effect.
 *
 * @since 0.2.0
 */
import type * as Agent from "../Agent.ts"
import type { AgentEvent } from "../AgentEvent.ts"
import type * as Hook from "../Hook.ts"
import type * as Message from "../Message.ts"
import type { RunResult } from "../RunResult.ts"
import type * as Tool from "../Tool.ts"
import { createAgent, type Options } from "./createAgent.ts"

/**
 * A run that `agentLoop` began.
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
 * Runs the loop once, from the messages so far, and keeps nothing after it.
 *
 * **Details**
 *
 * The result has the new messages. The provider and the layers live as long as the run.
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
  history: Pick<Agent.AgentOptions<readonly [], readonly []>, "messages" | "compaction">,
  options: Options<RP, T, H, A>
): LoopRun<Agent.OutputOf<A>> => {
  const agent = createAgent<RP, T, H, A>({ ...options, ...history })
  const started = agent.start(prompt)
  const result = started.then((run) => run.result()).finally(agent.close)
  // The caller may read the failure later, or from the events.
  result.catch(() => {})
  return {
    events: {
      async *[Symbol.asyncIterator]() {
        yield* (await started).events
      }
    },
    result: () => result,
    cancel: async (reason) => (await started).cancel(reason)
  }
}
