/**
 * The methods of ACP that an agent answers.
 */
import * as Acp from "@agentclientprotocol/sdk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Message from "../../Message.ts"
import type { Service as Runs } from "../../runs/Runs.ts"
import { replay } from "../AcpUpdates.ts"
import * as Asking from "./Asking.ts"
import { Conversation, type Peer, type ToolScope } from "./Conversation.ts"
import * as PromptContent from "./PromptContent.ts"
import * as Prompting from "./Prompting.ts"
import * as Refusal from "./Refusal.ts"
import type { View } from "./ToolView.ts"

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
  readonly accepts?: PromptContent.Accepts
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
export interface Services {
  readonly runs: Runs
  readonly run: <A>(effect: Effect.Effect<A, Acp.RequestError>) => Promise<A>
}

/** The methods, for one connection. */
export const app = (options: Options, { run, runs }: Services): Acp.AgentApp => {
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

  constructor(options: Options, runs: Runs) {
    const { scopeOf = Asking.exactly, view } = options
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
    const made = Refusal.answering(sessionId)(this.peer.runs.createSession({ sessionId, cwd }))
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
    return Effect.mapError(prepare(given), ({ message }) => Refusal.invalid(message))
  }

  /** Opens a session, without its conversation. */
  open(request: Acp.ResumeSessionRequest): Effect.Effect<Acp.ResumeSessionResponse, Acp.RequestError> {
    return Effect.as(this.opened(request), {})
  }

  private opened({ cwd, mcpServers = [], sessionId }: Acp.ResumeSessionRequest) {
    return Effect.gen({ self: this }, function* () {
      const contents = yield* Refusal.answering(sessionId)(this.peer.runs.readSession(sessionId))
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
      Refusal.answering("")(this.peer.runs.listSessions(page)),
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
      ? Effect.fail(Refusal.unknownSession(sessionId))
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
    const removed = Refusal.answering(sessionId)(this.peer.runs.deleteSession(sessionId))
    return Effect.map(removed, () => {
      this.conversations.delete(sessionId)
      return {}
    })
  }

  /** Runs a prompt. A client that cancels the request cancels the run. */
  prompt({ prompt, sessionId }: Acp.PromptRequest, client: Acp.AgentContext, signal: AbortSignal) {
    return Effect.gen({ self: this }, function* () {
      const conversation = yield* this.of(sessionId)
      const content = yield* PromptContent.read(prompt, this.options.accepts ?? {})
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
