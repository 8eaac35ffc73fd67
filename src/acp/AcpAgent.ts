/**
 * The agent end of the Agent Client Protocol, version 1: an editor starts sessions, sends prompts and answers for the person.
 *
 * **Details**
 *
 * It works on the service `Runs` of `effect-agent/server`. `AcpUpdates` says what an editor sees of a run.
 *
 * | the editor | the agent |
 * | --- | --- |
 * | `session/new`, `session/list`, `session/delete` | makes, lists, removes a session |
 * | `session/load` | repeats the whole conversation as updates, and opens the session |
 * | `session/resume` | opens the session |
 * | `session/prompt` | runs the prompt; a second one waits for the end of the first |
 * | `session/cancel`, `session/close` | cancels the runs of the prompts, which are answered with `cancelled` |
 *
 * A tool call that needs an approval is a `session/request_permission`. The answer "always" is a rule of the session until the connection
 * ends. A question of the model is an `elicitation/create` if the editor has forms, else a choice of a `session/request_permission` if it has
 * an `enum` or is a `boolean`, else it is declined, and the model reads why.
 *
 * **Gotchas**
 *
 * The policy of the agents has `asked: "wait"`, so that the person at the editor is asked.
 *
 * @since 0.2.0
 */
import * as Acp from "@agentclientprotocol/sdk"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import { Runs } from "../runs/Runs.ts"
import type { Options } from "./internal/Methods.ts"
import * as Methods from "./internal/Methods.ts"

export type { ToolScope } from "./internal/Conversation.ts"
export type { Given, Options } from "./internal/Methods.ts"
export type { Accepts } from "./internal/PromptContent.ts"

/**
 * Two streams of bytes: what the client sends, and what it gets.
 *
 * @category models
 * @since 0.2.0
 */
export interface Streams {
  /** The bytes from the client, such as stdin. */
  readonly input: ReadableStream<Uint8Array>
  /** The bytes to the client, such as stdout. */
  readonly output: WritableStream<Uint8Array>
}

/**
 * Serves a client until it disconnects.
 *
 * **Details**
 *
 * When the client disconnects, or the effect is interrupted, the runs of its prompts are cancelled.
 *
 * **Example** (Serving an editor)
 *
 * ```ts
 * import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk"
 * import { Effect, Layer } from "effect"
 * import { Agent } from "effect-agent"
 * import { AcpAgent } from "effect-agent/acp"
 * import { Agents, LiveRuns, RunLogStore } from "effect-agent/server"
 * import { MemorySessionStore } from "effect-agent/sessions"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const RunsLive = LiveRuns.layer().pipe(
 *   Layer.provide(Agents.layer(({ session }) => Agent.make({ model: "any", session }))),
 *   Layer.provide([MemorySessionStore.layer(), RunLogStore.layerMemory]),
 *   Layer.provide(ScriptedProvider.layer([ScriptedProvider.text("Hello")]))
 * )
 *
 * const [toAgent, toEditor] = [new TransformStream<Uint8Array>(), new TransformStream<Uint8Array>()]
 * const served = AcpAgent.serve(
 *   { name: "my-agent", version: "1.0.0" },
 *   { input: toAgent.readable, output: toEditor.writable }
 * ).pipe(Effect.provide(RunsLive), Effect.runPromise)
 *
 * // The editor.
 * await client().connectWith(ndJsonStream(toAgent.writable, toEditor.readable), async (agent) => {
 *   await agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} })
 *   await agent.buildSession("/work").withSession(async (session) => {
 *     void session.prompt("Hi")
 *     console.log(await session.readText()) // => Hello
 *   })
 * })
 * await toAgent.writable.close().catch(() => undefined)
 * await served
 * ```
 *
 * @category running
 * @since 0.2.0
 */
export const serve = (options: Options, { input, output }: Streams): Effect.Effect<void, never, Runs> =>
  Effect.gen(function* () {
    const runs = yield* Runs
    const run = yield* FiberSet.makeRuntimePromise()
    const app = Methods.app(options, { runs, run })
    const connect = Effect.sync(() => app.connect(Acp.ndJsonStream(output, input)))
    const connection = yield* Effect.acquireRelease(connect, (open) => Effect.sync(() => open.close()))
    yield* Effect.promise(() => connection.closed)
  }).pipe(Effect.scoped)
