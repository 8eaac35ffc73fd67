/**
 * Shows runs to clients of the Agent Client Protocol, version 1.
 *
 * **Details**
 *
 * `step` is a pure fold of the events of the runs of a session to the updates of ACP, and `replay` does it for a conversation from before.
 *
 * | the run | ACP |
 * | --- | --- |
 * | text, thinking | `agent_message_chunk`, `agent_thought_chunk`, with the id of the message |
 * | sources, media | links, images and recordings in `agent_message_chunk` |
 * | a tool call | `tool_call`, then `tool_call_update` as it begins, progresses and ends; changes of files as `diff` |
 * | a message that the client did not send | `user_message_chunk` |
 * | a tool that the vendor ran | `tool_call`, and `tool_call_update` with its result |
 * | a call of a run inside | a call whose id has the calls around it in front: `c1/c2` |
 * | a retraction, a retry, a limit, a hand-off | `notice`, if the client has the capability |
 * | a compaction | `compaction_update`, if the client has the capability |
 *
 * **Gotchas**
 *
 * ACP 1 cannot take back text. After a retraction the answer comes again with another message id: the text before it is void.
 *
 * The module imports nothing of ACP's package but types.
 *
 * **Example** (Listing the updates of a run)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent } from "effect-agent"
 * import { AcpUpdates } from "effect-agent/acp"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any" })
 *   const updates = yield* agent.stream("Hi").pipe(AcpUpdates.project(), Stream.runCollect)
 *   return updates.map((update) => ("content" in update ? update.content : undefined))
 * }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("Hello")])), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => [ { type: 'text', text: 'Hello' } ]
 * ```
 *
 * @since 0.2.0
 */
import type { SessionUpdate, StopReason, ToolCallUpdate } from "@agentclientprotocol/sdk"
import * as Stream from "effect/Stream"
import type { AgentEvent, OfTag } from "../AgentEvent.ts"
import type * as Message from "../Message.ts"
import * as Steps from "./internal/UpdateStep.ts"
import { initial as start, type Options, type State } from "./internal/UpdateState.ts"

export type { Streamed } from "../ui/Streamed.ts"
export type { OpenAnswer, OpenCall, Options, State } from "./internal/UpdateState.ts"
export type { View } from "./internal/UpdateState.ts"

/**
 * An update of a session, the parameter `update` of `session/update`.
 *
 * @category models
 * @since 0.2.0
 */
export type Update = SessionUpdate

/**
 * Returns the state before the first event of a session.
 *
 * **Example** (Starting a session)
 *
 * ```ts
 * import { AcpUpdates } from "effect-agent/acp"
 *
 * console.log(AcpUpdates.initial({ cwd: "/work" }).options) // => { cwd: '/work' }
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const initial: (options?: Options) => State = start

/**
 * Returns the next state, and the updates of one event.
 *
 * **Details**
 *
 * The function is pure. The state of a run is the start of the next run of its session, so that each call has an id of its own. An answer
 * whose deltas are missing comes whole with its `MessageEnd`.
 *
 * **Example** (Folding an event)
 *
 * ```ts
 * import { AcpUpdates } from "effect-agent/acp"
 *
 * const [, [update]] = AcpUpdates.step(AcpUpdates.initial({ cwd: "/work" }), {
 *   _tag: "ToolExecutionStart",
 *   runId: "run_1",
 *   seq: 7,
 *   timestamp: 0,
 *   toolCallId: "call_1",
 *   toolName: "read",
 *   params: { path: "notes.txt" }
 * })
 *
 * console.log(update?.sessionUpdate === "tool_call" && update.locations) // => [ { path: '/work/notes.txt' } ]
 * ```
 *
 * @category folding
 * @since 0.2.0
 */
export const step: (state: State, event: AgentEvent) => readonly [State, ReadonlyArray<Update>] = Steps.step

/**
 * Returns the state and the updates of a conversation that the client has not seen, for `session/load`.
 *
 * **Example** (Replaying a conversation)
 *
 * ```ts
 * import { Message } from "effect-agent"
 * import { AcpUpdates } from "effect-agent/acp"
 *
 * const messages = [Message.user("Hi"), Message.assistant("Hello")]
 * const [, updates] = AcpUpdates.replay(AcpUpdates.initial(), messages)
 * console.log(updates.map(({ sessionUpdate }) => sessionUpdate)) // => [ 'user_message_chunk', 'agent_message_chunk' ]
 * ```
 *
 * @category folding
 * @since 0.2.0
 */
export const replay = (
  state: State,
  messages: ReadonlyArray<Message.Message>
): readonly [State, ReadonlyArray<Update>] => {
  const all: Array<Update> = []
  let last = state
  for (const message of messages) {
    const [next, updates] = Steps.replayed(last, message)
    last = next
    all.push(...updates)
  }
  return [last, all]
}

/**
 * Converts the events of a run to updates of its session.
 *
 * **Example** (Counting the updates of a run)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Agent } from "effect-agent"
 * import { AcpUpdates } from "effect-agent/acp"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any" })
 *   return yield* agent.stream("Hi").pipe(AcpUpdates.project({ notices: true }), Stream.runCount)
 * }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("Hello")])), Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => 1
 * ```
 *
 * @category converting
 * @since 0.2.0
 */
export const project =
  (options?: Options) =>
  <E, R>(self: Stream.Stream<AgentEvent, E, R>): Stream.Stream<Update, E, R> =>
    Stream.suspend(() => {
      let state = initial(options)
      const updatesOf = (event: AgentEvent) => {
        const [next, updates] = step(state, event)
        state = next
        return updates
      }
      return Stream.flattenIterable(Stream.map(self, updatesOf))
    })

/**
 * Returns the call that a request is about, as `session/request_permission` shows it.
 *
 * **Example** (Showing a call)
 *
 * ```ts
 * import { AcpUpdates } from "effect-agent/acp"
 *
 * const { kind, title } = AcpUpdates.callOf(AcpUpdates.initial(), {
 *   toolCallId: "call_1",
 *   toolName: "shell",
 *   params: { command: "git push" }
 * })
 *
 * console.log(kind, title) // => execute shell git push
 * ```
 *
 * @category converting
 * @since 0.2.0
 */
export const callOf: (
  state: State,
  request: Pick<OfTag<"ApprovalRequested">, "path" | "toolCallId" | "toolName" | "params">
) => ToolCallUpdate = Steps.requestedCall

/**
 * Returns the reason with which a prompt ends; `undefined` for a run that failed, whose error answers the prompt.
 *
 * **Example** (Ending a prompt)
 *
 * ```ts
 * import { AcpUpdates } from "effect-agent/acp"
 *
 * console.log(AcpUpdates.stopReason(AcpUpdates.initial(), { status: "cancelled" })) // => cancelled
 * ```
 *
 * @category converting
 * @since 0.2.0
 */
export const stopReason = (
  { lastStop }: State,
  { error, status }: Pick<OfTag<"RunEnd">, "error" | "status">
): StopReason | undefined => {
  if (status === "cancelled") return "cancelled"
  if (status === "incomplete") return "max_turn_requests"
  if (status === "failed") {
    if (error?._tag !== "LimitExceeded") return undefined
    return limits.get(error.limit)
  }
  if (lastStop === "length") return "max_tokens"
  return lastStop === "refusal" || lastStop === "contentFilter" ? "refusal" : "end_turn"
}

const limits: ReadonlyMap<string, StopReason> = new Map([
  ["maxTurns", "max_turn_requests"],
  ["maxTotalTokens", "max_tokens"],
  ["maxContextSize", "max_tokens"]
])
