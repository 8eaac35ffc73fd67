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
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Message from "../Message.ts"
import { Runs, type Service as RunsService } from "../runs/Runs.ts"
import { replay } from "./AcpUpdates.ts"
import * as AcpConversation from "./internal/AcpConversation.ts"
import { Conversation, type Peer, type ToolScope } from "./internal/AcpConversation.ts"
import * as Prompting from "./internal/Prompting.ts"
import type { View } from "./internal/UpdateState.ts"

export type { ToolScope } from "./internal/AcpConversation.ts"
export type { Accepts } from "./internal/Prompting.ts"

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
    const app = methods(options, { runs, run })
    const connect = Effect.sync(() => app.connect(Acp.ndJsonStream(output, input)))
    const connection = yield* Effect.acquireRelease(connect, (open) => Effect.sync(() => open.close()))
    yield* Effect.promise(() => connection.closed)
  }).pipe(Effect.scoped)

// ───────────────────────── Methods

/**
 * The session that a client makes or opens.
 *
 * @category options
 * @since 0.2.0
 */
export interface Given {
  /** The id of the session. */
  readonly sessionId: string
  /** The working directory, an absolute path. */
  readonly cwd: string
  /** The MCP servers that the client wants the session to have. */
  readonly mcpServers: ReadonlyArray<Acp.McpServer>
}

/**
 * The options of the agent end.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /** The name of the agent, for programs. */
  readonly name: string
  /** The name of the agent, for people. Default: `name`. */
  readonly title?: string
  /** The version of the agent. */
  readonly version: string
  /** The kinds of content that the model reads. Default: images, and no recordings. */
  readonly accepts?: Prompting.Accepts
  /** The transports of MCP servers that the agent has. Default: none. */
  readonly mcp?: { readonly http?: boolean; readonly sse?: boolean }
  /** Called before a session is made or opened, for agents that use its working directory. A failure with `message` refuses the request. */
  readonly prepare?: (given: Given) => Effect.Effect<void, { readonly message: string }>
  /** The calls that the answer "always" permits. Default: those of the tool with equal params. */
  readonly scopeOf?: ToolScope
  /** The view of a tool call. Default: one that knows the tools of `effect-agent/tools`. */
  readonly view?: (toolName: string, params: unknown, cwd: string | undefined) => View
}

/** The services, and the way to run an effect for the package of ACP. */
interface Services {
  readonly runs: RunsService
  readonly run: <A>(effect: Effect.Effect<A, Acp.RequestError>) => Promise<A>
}

/** The methods, for one connection. */
const methods = (options: Options, { run, runs }: Services): Acp.AgentApp => {
  const server = new Server(options, runs)
  const { session } = Acp.methods.agent
  return Acp.agent({ name: options.name })
    .onRequest(Acp.methods.agent.initialize, ({ params }) => server.initialize(params))
    .onRequest(session.new, ({ params }) => run(server.make(params)))
    .onRequest(session.load, ({ client, params }) => run(server.load(params, client)))
    .onRequest(session.resume, ({ params }) => run(server.open(params)))
    .onRequest(session.list, ({ params }) => run(server.list(params)))
    .onRequest(session.close, ({ params }) => run(server.close(params)))
    .onRequest(session.delete, ({ params }) => run(server.remove(params)))
    .onRequest(session.prompt, ({ client, params, signal }) => run(server.prompt(params, client, signal)))
    .onNotification(session.cancel, ({ params }) => run(server.cancel(params)))
}

class Server {
  private readonly conversations = new Map<string, Conversation>()
  private readonly options: Options
  private peer: Peer

  constructor(options: Options, runs: RunsService) {
    const { scopeOf = AcpConversation.exactly, view } = options
    this.options = options
    this.peer = { runs, capabilities: {}, scopeOf, view }
  }

  initialize({ clientCapabilities = {} }: Acp.InitializeRequest): Acp.InitializeResponse {
    const { accepts: { audio = false, image = true } = {}, mcp = {}, name, title, version } = this.options
    const { http = false, sse = false } = mcp
    this.peer = { ...this.peer, capabilities: clientCapabilities }
    return {
      protocolVersion: Acp.PROTOCOL_VERSION,
      agentInfo: { name, version, ...(title === undefined ? {} : { title }) },
      authMethods: [],
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image, audio, embeddedContext: true },
        mcpCapabilities: { http, sse },
        sessionCapabilities: { list: {}, delete: {}, resume: {}, close: {} }
      }
    }
  }

  make({ cwd, mcpServers }: Acp.NewSessionRequest): Effect.Effect<Acp.NewSessionResponse, Acp.RequestError> {
    const sessionId = crypto.randomUUID()
    const made = Prompting.answering(sessionId)(this.peer.runs.sessions.create({ sessionId, cwd }))
    return this.prepared({ sessionId, cwd, mcpServers }).pipe(
      Effect.andThen(made),
      Effect.map(() => {
        this.conversations.set(sessionId, new Conversation(sessionId, cwd, this.peer))
        return { sessionId }
      })
    )
  }

  private prepared(given: Given): Effect.Effect<void, Acp.RequestError> {
    const { prepare = () => Effect.void } = this.options
    return Effect.mapError(prepare(given), ({ message }) => Prompting.invalid(message))
  }

  /** Opens a session, without its conversation. */
  open(request: Acp.ResumeSessionRequest): Effect.Effect<Acp.ResumeSessionResponse, Acp.RequestError> {
    return Effect.as(this.opened(request), {})
  }

  private opened({ cwd, mcpServers = [], sessionId }: Acp.ResumeSessionRequest) {
    return Effect.gen({ self: this }, function* () {
      const contents = yield* Prompting.answering(sessionId)(this.peer.runs.sessions.get(sessionId))
      yield* this.prepared({ sessionId, cwd, mcpServers })
      const known = this.conversations.get(sessionId)
      const conversation = known ?? new Conversation(sessionId, cwd, this.peer)
      this.conversations.set(sessionId, conversation)
      return { contents, conversation }
    })
  }

  /** Opens a session, and repeats its conversation. */
  load(request: Acp.LoadSessionRequest, client: Acp.AgentContext) {
    return Effect.gen({ self: this }, function* () {
      const { contents, conversation } = yield* this.opened(request)
      const messages = Option.getOrElse(decodeMessages(contents.view["messages"]), () => [])
      const fresh = new Conversation(request.sessionId, request.cwd, this.peer)
      const [state, updates] = replay(fresh.state, messages)
      conversation.state = state
      yield* conversation.tell(client, updates)
      return {}
    })
  }

  list({ cursor, cwd }: Acp.ListSessionsRequest): Effect.Effect<Acp.ListSessionsResponse, Acp.RequestError> {
    const page = {
      ...(typeof cwd === "string" ? { cwd } : {}),
      ...(typeof cursor === "string" ? { cursor } : {})
    }
    return Effect.map(
      Prompting.answering("")(this.peer.runs.sessions.list(page)),
      ({ items, nextCursor }): Acp.ListSessionsResponse => ({
        sessions: items.map(({ cwd, modified, sessionId, title }) => ({
          sessionId,
          cwd,
          ...(title === "" ? {} : { title }),
          updatedAt: new Date(modified).toISOString()
        })),
        ...(nextCursor === undefined ? {} : { nextCursor })
      })
    )
  }

  private of(sessionId: string): Effect.Effect<Conversation, Acp.RequestError> {
    const conversation = this.conversations.get(sessionId)
    return conversation === undefined
      ? Effect.fail(Prompting.unknownSession(sessionId))
      : Effect.succeed(conversation)
  }

  close({ sessionId }: Acp.CloseSessionRequest): Effect.Effect<Acp.CloseSessionResponse, Acp.RequestError> {
    return Effect.flatMap(this.of(sessionId), ({ cancel }) => {
      this.conversations.delete(sessionId)
      return Effect.as(cancel, {})
    })
  }

  remove({
    sessionId
  }: Acp.DeleteSessionRequest): Effect.Effect<Acp.DeleteSessionResponse, Acp.RequestError> {
    const removed = Prompting.answering(sessionId)(this.peer.runs.sessions.remove(sessionId))
    return Effect.map(removed, () => {
      this.conversations.delete(sessionId)
      return {}
    })
  }

  /** Runs a prompt. A client that cancels the request cancels the run. */
  prompt({ prompt, sessionId }: Acp.PromptRequest, client: Acp.AgentContext, signal: AbortSignal) {
    return Effect.gen({ self: this }, function* () {
      const conversation = yield* this.of(sessionId)
      const content = yield* Prompting.contentOf(prompt, this.options.accepts ?? {})
      const aborted = Effect.andThen(untilAborted(signal), conversation.cancel)
      yield* Effect.forkScoped(aborted)
      return yield* Prompting.run(this.peer, client, conversation, content)
    }).pipe(Effect.scoped)
  }

  cancel({ sessionId }: Acp.CancelNotification): Effect.Effect<void> {
    return this.conversations.get(sessionId)?.cancel ?? Effect.void
  }
}

const decodeMessages = Schema.decodeUnknownOption(Schema.Array(Message.Message))

const untilAborted = (signal: AbortSignal): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const abort = () => resume(Effect.void)
    if (signal.aborted) abort()
    signal.addEventListener("abort", abort, { once: true })
    return Effect.sync(() => signal.removeEventListener("abort", abort))
  })
