/**
 * An MCP server that offers the tools of a registry, and an agent as a tool, to the clients of other programs.
 *
 * @since 0.2.0
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import * as Base64 from "effect/encoding/Base64"
import type * as HttpRouter from "effect/http/HttpRouter"
import type { Agent } from "../Agent.ts"
import * as Approval from "../Approval.ts"
import type { ToolDefinition } from "../Provider.ts"
import * as Tool from "../Tool.ts"
import { ToolRegistry, type PreparedCall } from "../ToolRegistry.ts"
import * as Json from "../internal/json.ts"
import * as AgentEvent from "../AgentEvent.ts"
import * as Message from "../Message.ts"
import { firstLine, of as failureText } from "../internal/failureText.ts"
import * as JsonSchema from "../internal/jsonSchema.ts"

/**
 * An agent that is a tool of the server.
 *
 * @category options
 * @since 0.2.0
 */
export interface AgentTool<out E, out R> {
  /** The name of the tool. A tool of the registry with this name is left out. Default `"agent"`. */
  readonly name?: string
  /** The purpose of the tool, for the model of the client. Default: one sentence that it works on a task with its own tools. */
  readonly description?: string
  /** Makes the agent of one call, in the scope of that call. */
  readonly make: Effect.Effect<Agent, E, R>
}

/**
 * The tools of a server.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options<out E = never, out R = never> {
  /** The agent that is a tool beside those of the registry. Default: none. */
  readonly agent?: AgentTool<E, R>
}

/**
 * The options of a server.
 *
 * @category options
 * @since 0.2.0
 */
export interface ServerOptions<out E = never, out R = never> extends Options<E, R> {
  /** The name of the server, which clients show. */
  readonly name: string
  /** The version of the server, which clients show. */
  readonly version: string
  /** Text on how to use the tools, for the model of the client. Default: none. */
  readonly instructions?: string
}

/**
 * The options of a server over HTTP.
 *
 * @category options
 * @since 0.2.0
 */
export interface HttpOptions<out E = never, out R = never> extends ServerOptions<E, R> {
  /** The path. Default `"/mcp"`. */
  readonly path?: `/${string}`
  /** The origins whose pages may call the server, such as `"https://example.com"`. Default: none. */
  readonly origins?: ReadonlyArray<string>
}

const defaultDescription = "Works on a task with tools of its own, and returns its answer."

/**
 * Adds the tools of a `ToolRegistry`, and an agent, to the `McpServer` of Effect.
 *
 * **When to use**
 *
 * Use with a server that has resources, prompts or other tools of its own. `layerStdio` and `layerHttp` make a server that has these
 * tools alone.
 *
 * **Details**
 *
 * - The list follows the registry: clients get `notifications/tools/list_changed`. Tools with a `question` are left out, as is a tool
 *   whose `parameters` describe no object.
 * - A tool with `effect: "pure"` has the hint `readOnlyHint`, and one that may run twice `idempotentHint`.
 * - The policy `Approval` decides about each call of a tool of the registry. A call that needs approval gets it from a `Person`, and is
 *   refused where the policy has none.
 * - Failures, params that do not decode, time limits and refusals are results with `isError`, whose text says why. The time limit is
 *   that of the tool, 30 seconds by default.
 * - Images stay images. `details` are `structuredContent` where the text of the result is the JSON of them, as with a tool that has a
 *   `success` schema. Other `details` are in `_meta`, under `effect-agent/details`.
 * - Progress of a tool, and the text and the tool calls of the agent as they come, go to `notifications/progress` if the client wants to
 *   know, and a heartbeat every 15 seconds.
 * - A client that cancels a call interrupts the tool, or cancels the run of the agent.
 * - The agent gets `{ prompt }`. Its last answer is the result; with `output` it is the output as JSON. A run that failed, was cancelled
 *   or waits for a person is a result with `isError`.
 *
 * **Gotchas**
 *
 * The text of an answer that the agent's provider retracts has been sent as progress. The result is the last answer alone.
 *
 * **Example** (Adding tools to a server with other tools)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { McpProtocol, McpServer } from "effect/ai"
 * import { ToolRegistry } from "effect-agent"
 * import { AgentMcpServer } from "effect-agent/mcp"
 * import { ReadTool } from "effect-agent/tools"
 *
 * const rules = McpServer.resource({ uri: "file://rules", name: "rules", content: Effect.succeed("Be kind.") })
 *
 * export const ServerLive = McpServer.layerStdio({
 *   name: "files",
 *   version: "1.0.0",
 *   protocols: [McpProtocol.v2025_11_25],
 *   registrations: Layer.mergeAll(rules, AgentMcpServer.layer())
 * }).pipe(Layer.provide(ToolRegistry.layer(ReadTool.make({ root: "." }))))
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = <E = never, R = never>(
  options: Options<E, R> = {}
): Layer.Layer<never, never, McpServer.McpServer | ToolRegistry | Exclude<R, Scope.Scope>> =>
  Layer.effectDiscard(register(options))

const register = Effect.fnUntraced(function* <E, R>({ agent }: Options<E, R>) {
  const server = yield* McpServer.McpServer
  const registry = yield* ToolRegistry
  const parts = { registry, policy: yield* Approval.Approval }
  const reserved = agent === undefined ? undefined : (agent.name ?? "agent")
  if (agent !== undefined) yield* addAgent(server, agent)
  let offered: ReadonlyMap<string, Tool.Any> = new Map()
  let last: ReadonlyArray<ToolDefinition> | undefined
  const sync = Effect.fnUntraced(function* (definitions: ReadonlyArray<ToolDefinition>) {
    if (definitions === last) return
    last = definitions
    const before = offered
    const found = yield* Effect.forEach(definitions, ({ name }) => registry.get(name))
    const tools = found.filter((tool) => tool !== undefined).filter(({ name }) => name !== reserved)
    offered = new Map(tools.filter(isOfferable).map((tool) => [tool.name, tool]))
    const isOffered = (name: string) => offered.has(name)
    for (const tool of offered.values()) {
      if (before.get(tool.name) !== tool) yield* addTool(server, parts, tool, isOffered)
    }
    if ([...before.keys()].some((name) => !offered.has(name)))
      yield* server.notifications["notifications/tools/list_changed"]({})
  })
  yield* Effect.flatMap(registry.definitions, sync)
  yield* Effect.forkScoped(Stream.runForEach(registry.changes, sync))
})

/** A client has no person who answers the question of a tool, and no params that are no object. */
const isOfferable = ({ parameters, question }: Tool.Any): boolean =>
  question === undefined && isToolJson(parameters)

type Server = McpServer.McpServer["Service"]

/** A server cannot forget a tool: `isOffered` hides it. */
const addTool = Effect.fnUntraced(function* (
  server: Server,
  parts: Parameters<typeof call>[0],
  tool: Tool.Any,
  isOffered: (name: string) => boolean
) {
  const { description, label, name, parameters } = tool
  if (!isToolJson(parameters)) return
  yield* server.addTool({
    tool: new McpSchema.Tool({
      name,
      description,
      inputSchema: parameters,
      annotations: annotationsOf(tool),
      ...(label === undefined ? {} : { title: label })
    }),
    annotations: Context.make(McpSchema.EnabledWhen, () => isOffered(name)),
    handle: (params) => during(server, (progress) => call(parts, name, params, progress))
  })
})

const isToolJson = Schema.is(McpSchema.ToolJson)

const annotationsOf = ({ effect = "once" }: Pick<Tool.Any, "effect">) =>
  McpSchema.ToolAnnotations.make({
    readOnlyHint: effect === "pure",
    destructiveHint: effect !== "pure",
    idempotentHint: effect !== "once"
  })

const addAgent = Effect.fnUntraced(function* <E, R>(
  server: Server,
  { description = defaultDescription, make, name = "agent" }: AgentTool<E, R>
) {
  const context = yield* Effect.context<Exclude<R, Scope.Scope>>()
  yield* server.addTool({
    tool: new McpSchema.Tool({ name, description, inputSchema: parameters }),
    annotations: Context.empty(),
    handle: (params) =>
      during(server, (progress) => Effect.provideContext(callAgent(make, params, progress), context))
  })
})

/** Newest first: a client that offers a version that the server does not have gets the first. */
const protocols = [
  McpProtocol.v2026_07_28,
  McpProtocol.v2025_11_25,
  McpProtocol.v2025_06_18,
  McpProtocol.v2025_03_26,
  McpProtocol.v2024_11_05
] as const

/**
 * Serves the tools of a `ToolRegistry`, and an agent, on stdin and stdout.
 *
 * **Details**
 *
 * The tools are those of {@link layer}. Lines that are not JSON are left out, and logged. When stdin ends, the server completes the
 * calls in flight, and interrupts the fiber that builds the layer.
 *
 * **Gotchas**
 *
 * The protocol owns stdout, where loggers and `Console.log` write by default. Provide a logger that writes to stderr, as below.
 *
 * **Example** (Serving tools on stdio)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, Layer, Logger } from "effect"
 * import { Tool, ToolRegistry } from "effect-agent"
 * import { AgentMcpServer } from "effect-agent/mcp"
 *
 * const ping = Tool.make({
 *   name: "ping",
 *   description: "Answers.",
 *   effect: "pure",
 *   execute: () => Effect.succeed("pong")
 * })
 *
 * // NodeRuntime.runMain(Layer.launch(ServerLive))
 * export const ServerLive = AgentMcpServer.layerStdio({ name: "ping", version: "1.0.0" }).pipe(
 *   Layer.provide(ToolRegistry.layer(ping)),
 *   Layer.provide([NodeServices.layer, Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])])
 * )
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layerStdio = <E = never, R = never>(
  options: ServerOptions<E, R>
): Layer.Layer<never, never, Stdio.Stdio | ToolRegistry | Exclude<R, Scope.Scope>> =>
  withTools(options, (registrations) =>
    Layer.provide(McpServer.layerStdio({ ...serverOf(options), protocols, registrations }), layerLines)
  )

/**
 * Serves the tools of a `ToolRegistry`, and an agent, by streamable HTTP as a route of an `HttpRouter`.
 *
 * **Details**
 *
 * The tools are those of {@link layer}. A request with an `Origin` that `origins` does not list is refused.
 *
 * **Gotchas**
 *
 * The route requires no token and looks at no `Host`. Listen on the loopback address, or put an authentication of your own in front.
 *
 * **Example** (Serving an agent over HTTP)
 *
 * ```ts
 * import { Layer } from "effect"
 * import { HttpRouter } from "effect/http"
 * import { Agent, ToolRegistry } from "effect-agent"
 * import { AgentMcpServer } from "effect-agent/mcp"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const McpLive = AgentMcpServer.layerHttp({
 *   name: "helper",
 *   version: "1.0.0",
 *   agent: { make: Agent.make({ model: "any" }) }
 * }).pipe(Layer.provide([ToolRegistry.layer(), ScriptedProvider.layer([ScriptedProvider.text("Hello!")])]))
 *
 * const { dispose, handler } = HttpRouter.toWebHandler(McpLive, { disableLogger: true })
 * const ask = (method: string, params: object) =>
 *   handler(
 *     new Request("http://localhost/mcp", {
 *       method: "POST",
 *       headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
 *       body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })
 *     })
 *   )
 * const response = await ask("initialize", {
 *   protocolVersion: "2025-11-25",
 *   capabilities: {},
 *   clientInfo: { name: "example", version: "1.0.0" }
 * })
 * console.log(response.status) // => 200
 * await dispose()
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layerHttp = <E = never, R = never>(
  options: HttpOptions<E, R>
): Layer.Layer<never, never, HttpRouter.HttpRouter | ToolRegistry | Exclude<R, Scope.Scope>> =>
  withTools(options, (registrations) => {
    const { origins = [], path = "/mcp" } = options
    return McpServer.layerHttp({
      ...serverOf(options),
      protocols,
      registrations,
      path,
      allowedOrigins: origins,
      allowSessionTermination: true
    })
  })

const serverOf = ({ instructions, name, version }: ServerOptions<unknown, unknown>) => ({
  name,
  version,
  ...(instructions === undefined ? {} : { instructions })
})

/** Gives the services of the agent to the registrations, so that the types of the server do not depend on them. */
const withTools = <E, R, A, E2, R2>(
  options: Options<E, R>,
  serve: (
    registrations: Layer.Layer<never, never, McpServer.McpServer | ToolRegistry>
  ) => Layer.Layer<A, E2, R2>
): Layer.Layer<never, never, Exclude<R, Scope.Scope> | R2> =>
  Layer.unwrap(
    Effect.contextWith((context: Context.Context<Exclude<R, Scope.Scope>>) => {
      const registrations = Layer.provide(layer(options), Layer.succeedContext(context))
      return Effect.succeed(Layer.orDie(Layer.effectDiscard(Layer.build(serve(registrations)))))
    })
  )

// ───────────────────────── Lines

/** Leaves out lines of stdin that are not JSON, or nest too deep, and logs that. */
const layerLines: Layer.Layer<Stdio.Stdio, never, Stdio.Stdio> = Layer.effect(
  Stdio.Stdio,
  Effect.map(Stdio.Stdio, (stdio) => ({
    ...stdio,
    stdin: stdio.stdin.pipe(
      Stream.decodeText,
      Stream.splitLines,
      Stream.filter((line) => line.trim() !== ""),
      Stream.filterEffect((line) =>
        Json.parse(line) !== undefined
          ? Effect.succeed(true)
          : Effect.as(Effect.logWarning("A line of stdin is no JSON, or nests too deep"), false)
      ),
      Stream.map((line) => `${line}\n`),
      Stream.encodeText
    )
  }))
)

// ───────────────────────── Calls

interface Parts {
  readonly registry: ToolRegistry["Service"]
  readonly policy: Approval.Policy
}

const isJson = Schema.is(Schema.Json)

/** The result of a call, which is an error if the tool, its params or the policy are the reason that there is no other. */
const call = (
  parts: Parts,
  name: string,
  params: unknown,
  progress: Progress
): Effect.Effect<McpSchema.CallToolResult> =>
  Effect.suspend(() => {
    const id = crypto.randomUUID()
    const made: Message.ToolCall = {
      type: "toolCall",
      id,
      name,
      rawArguments: JSON.stringify(params ?? {}),
      params: isJson(params) ? params : {}
    }
    return prepared(parts, made)
  }).pipe(
    Effect.flatMap((prepared) => execute(parts, prepared, progress)),
    Effect.catchTags({
      Refused: ({ reason }) => Effect.succeed(Tool.failure(`Tool execution was rejected: ${reason}`)),
      ToolNotFound: failed,
      InvalidArguments: failed
    }),
    Effect.map(resultOf)
  )

const failed = ({ message }: Error) => Effect.succeed(Tool.failure(message))

const prepared = ({ policy, registry }: Parts, call: Message.ToolCall) =>
  Effect.flatMap(registry.prepare(call), (prepared) => permitted(policy, registry, prepared))

const defaultTimeout = Duration.seconds(30)

/** Runs the tool, within its time. */
const execute = (
  { registry }: Parts,
  prepared: PreparedCall,
  progress: Progress
): Effect.Effect<AgentEvent.ToolOutput> => {
  const { call, tool } = prepared
  const { timeout = defaultTimeout } = tool
  let isRunning = true
  const context: Tool.ToolContext["Service"] = {
    toolCallId: call.id,
    idempotencyKey: call.id,
    runId: call.id,
    turn: 1,
    progress: (partial) =>
      Effect.suspend(() => (isRunning ? progress(textOf(Tool.render(partial))) : Effect.void))
  }
  return Effect.timeoutOrElse(registry.execute(prepared, context), {
    duration: timeout,
    orElse: () => {
      const limit = Duration.format(Duration.fromInputUnsafe(timeout))
      return Effect.succeed(Tool.failure(`Tool ${tool.name} timed out after ${limit}.`))
    }
  }).pipe(Effect.ensuring(Effect.sync(() => (isRunning = false))))
}

const textOf = ({ content }: AgentEvent.ToolOutput): string =>
  content.map((block) => (block.type === "text" ? block.text : "[image]")).join("\n")

// ───────────────────────── Permission

/** A call that may not run, and why. */
class Refused {
  readonly _tag = "Refused"
  readonly reason: string
  constructor(reason: string) {
    this.reason = reason
  }
}

/** Succeeds with the call that may run. A policy or a person that fails refuses it. */
const permitted = (
  policy: Approval.Policy,
  registry: ToolRegistry["Service"],
  prepared: PreparedCall
): Effect.Effect<PreparedCall, Refused> =>
  Effect.exit(decided(policy, registry, prepared)).pipe(
    Effect.flatMap((exit) => {
      if (Exit.isSuccess(exit)) return Effect.succeed(exit.value)
      if (Cause.hasInterrupts(exit.cause)) return Effect.interrupt
      const failure = Cause.squash(exit.cause)
      if (failure instanceof Refused) return Effect.fail(failure)
      const refused = new Refused(`the approval failed: ${firstLine(failure)}`)
      return Effect.andThen(
        Effect.logError("The approval of a call failed", exit.cause),
        Effect.fail(refused)
      )
    })
  )

const decided = Effect.fnUntraced(function* (
  policy: Approval.Policy,
  registry: ToolRegistry["Service"],
  prepared: PreparedCall
) {
  const { call, input, tool } = prepared
  const ids = { runId: call.id, toolCallId: call.id, toolName: tool.name }
  // The policy gets params of its own, so that it cannot change those that the tool gets.
  const { params } = yield* registry.prepare(call, { input: structuredClone(input) })
  const decision = yield* policy.decide({ ...ids, params, input: structuredClone(input), tool })
  if (decision.decision === "allow") return prepared
  if (decision.decision === "deny") return yield* Effect.fail(new Refused(decision.reason))
  const { reason } = decision
  const { asked, expiresAfter = "Infinity" } = policy
  const why = reason === undefined ? "" : `, as ${reason}`
  if (typeof asked === "string")
    return yield* Effect.fail(new Refused(`it needs approval${why}, and no person can give it here`))
  const answer = yield* asked
    .approve({
      ...ids,
      approvalId: call.id,
      params: input,
      argumentsHash: yield* Json.hash(input),
      ...(reason === undefined ? {} : { reason })
    })
    .pipe(
      Effect.timeoutOrElse({
        duration: expiresAfter,
        orElse: () => Effect.fail(new Refused("no person answered in time"))
      })
    )
  if (answer.decision === "reject") return yield* Effect.fail(new Refused(answer.reason ?? "not approved"))
  return answer.params === undefined ? prepared : yield* registry.prepare(call, { input: answer.params })
})

// ───────────────────────── Content

type Block = AgentEvent.ToolOutput["content"][number]

/** The key of `details` that are not the text of a result. */
const detailsKey = "effect-agent/details"

/** A result. `details` that its text is the JSON of are structured content, as MCP wants it; others are metadata. */
const resultOf = ({ content, details, isError }: AgentEvent.ToolOutput): McpSchema.CallToolResult =>
  new McpSchema.CallToolResult({
    content: content.map(blockOf),
    ...(details === undefined
      ? {}
      : Predicate.isObject(details) && content.some((block) => isJsonOf(block, details))
        ? { structuredContent: details }
        : { _meta: { [detailsKey]: details } }),
    ...(isError === true ? { isError } : {})
  })

const decodeJson = Schema.decodeOption(Schema.fromJsonString(Schema.Json))

const isJsonOf = (block: Block, details: Schema.Json): boolean =>
  block.type === "text" && Option.exists(decodeJson(block.text), (json) => JsonSchema.same(json, details))

const blockOf = (block: Block): McpSchema.ContentBlock => {
  if (block.type === "text") return McpSchema.TextContent.make({ text: block.text })
  const { source } = block
  if ("url" in source) return McpSchema.TextContent.make({ text: `[image: ${source.url}]` })
  const bytes = Base64.decode(source.data)
  return Result.isSuccess(bytes)
    ? McpSchema.ImageContent.make({ data: bytes.success, mimeType: source.mediaType })
    : McpSchema.TextContent.make({ text: `[image: ${source.mediaType}, not base64]` })
}

// ───────────────────────── Progress

/** Sends progress, with a message or without one, and waits until it is on its way. */
type Progress = (message?: string) => Effect.Effect<void>

const none: Progress = () => Effect.void

/** The longest time without progress: clients give up a request after a minute of silence, some sooner. */
const heartbeat = "15 seconds"

/** Runs a call with the progress of the current request, which it sends also while the call says nothing. It sends none without a token. */
const during = <A, E, R>(
  server: McpServer.McpServer["Service"],
  call: (progress: Progress) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R | McpSchema.McpRequestContext> =>
  Effect.flatMap(make(server), (progress) =>
    progress === none
      ? call(none)
      : Effect.raceFirst(call(progress), Effect.forever(Effect.delay(progress(), heartbeat)))
  )

const make = (
  server: McpServer.McpServer["Service"]
): Effect.Effect<Progress, never, McpSchema.McpRequestContext> =>
  Effect.contextWith((context) => {
    const { requestMetadata } = Context.get(context, McpSchema.McpRequestContext)
    const token = tokenIn(requestMetadata)
    if (token === undefined) return Effect.succeed(none)
    let sent = 0
    const progress: Progress = (message) =>
      Effect.suspend(() =>
        server.notifications["notifications/progress"]({
          progressToken: token,
          progress: ++sent,
          ...(message === undefined ? {} : { message })
        })
      ).pipe(Effect.ignore, Effect.provideContext(context))
    return Effect.succeed(progress)
  })

const tokenIn = (metadata: unknown): string | number | undefined => {
  const token = Predicate.hasProperty(metadata, "progressToken") ? metadata.progressToken : undefined
  return typeof token === "string" || typeof token === "number" ? token : undefined
}

// ───────────────────────── Calls of agents

/** The JSON Schema of the params. */
const parameters = {
  type: "object",
  properties: {
    prompt: {
      type: "string",
      description: "The task, with all that the agent must know: it sees nothing else of this conversation."
    }
  },
  required: ["prompt"],
  additionalProperties: false
} as const

/** The answer of a new agent, which is an error if its run did not end with one. */
const callAgent = <E, R>(
  make: Effect.Effect<Agent, E, R | Scope.Scope>,
  params: unknown,
  progress: Progress
): Effect.Effect<McpSchema.CallToolResult, never, Exclude<R, Scope.Scope>> => {
  const prompt = Predicate.hasProperty(params, "prompt") ? params.prompt : undefined
  if (typeof prompt !== "string")
    return Effect.succeed(resultOf(Tool.failure("`prompt` is missing: expected a string")))
  return Effect.flatMap(make, (agent) => run(agent, prompt, progress)).pipe(
    Effect.scoped,
    Effect.catch((error) => Effect.succeed(Tool.failure(`The agent failed: ${failureText(error)}`))),
    Effect.catchDefect((defect) =>
      Effect.as(
        Effect.logError("The agent died", defect),
        Tool.failure(`The agent failed unexpectedly: ${firstLine(defect)}`)
      )
    ),
    Effect.map(resultOf)
  )
}

const run = Effect.fnUntraced(function* (agent: Agent, prompt: string, progress: Progress) {
  let text = ""
  let ended: AgentEvent.RunEnd | undefined
  let output: Schema.Json | undefined
  const see = (event: AgentEvent.AgentEvent) => {
    if (event._tag === "RunEnd") ended = event
    if (event._tag === "Output") output = event.value
    if (event._tag === "MessageEnd" && event.message.role === "assistant")
      text = Message.textOf(event.message)
  }
  const events = AgentEvent.outermost(agent.stream(prompt))
  yield* Stream.runForEachArray(events, (some) => {
    some.forEach(see)
    const said = some.map(wordsOf).join("")
    return said === "" ? progress() : progress(said)
  })
  return resultOfRun(text, ended, output)
})

/** What a client shows of an event while the agent works. */
const wordsOf = (event: AgentEvent.AgentEvent): string => {
  if (AgentEvent.isTextDelta(event)) return event.delta.delta
  return event._tag === "ToolExecutionStart" ? `\n→ ${event.label ?? event.toolName}\n` : ""
}

const resultOfRun = (text: string, ended: AgentEvent.RunEnd | undefined, output: Schema.Json | undefined) => {
  switch (ended?.status) {
    case "suspended":
      return Tool.failure("The agent did not finish: its run waits for a person.")
    case "cancelled":
      return Tool.failure("The agent was cancelled.")
    default:
      return output === undefined
        ? answer(text, ended)
        : Tool.output(JSON.stringify(output), { details: output })
  }
}

const answer = (text: string, ended: AgentEvent.RunEnd | undefined) => {
  const notes = [
    ...(text.trim() === "" ? ["[The agent gave no answer.]"] : [text]),
    ...(ended?.status === "incomplete"
      ? ["[The agent reached its limit of turns: its work is not complete.]"]
      : [])
  ]
  return Tool.output(notes.join("\n\n"))
}
