/**
 * One connection to an MCP server, until it is lost.
 */
import type * as Official from "@modelcontextprotocol/client"
import type * as OfficialStdio from "@modelcontextprotocol/client/stdio"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import * as FailureText from "../../internal/failureText.ts"
import { shown } from "../../internal/invalidInput.ts"
import { kindOfJson } from "../../internal/invalidTool.ts"
import { isObject, maxDepth, nestsTooDeep } from "../../internal/json.ts"
import * as McpModel from "./McpModel.ts"
import { type Options, type Server, type HttpServer, type StdioServer, McpError } from "./McpModel.ts"

/** No time limit of the package counts: those of the effects do. It takes milliseconds that fit in 31 bits. */
const noTimeout = 2 ** 31 - 1

/** The reactions to what a server sends by itself. */
export interface Incoming {
  readonly listChanged: () => void
  readonly elicit: ((params: Official.ElicitRequest["params"]) => Promise<Official.ElicitResult>) | undefined
  readonly sample:
    | ((params: Official.CreateMessageRequest["params"]) => Promise<Official.CreateMessageResult>)
    | undefined
}

export interface Connection {
  readonly client: Official.Client
  /** Fails when the connection is lost. */
  readonly lost: Effect.Effect<never, McpError>
  /** Asks the server whether it lives, because of an error. The connection is lost if no answer comes within 3 seconds. */
  readonly suspect: (error: unknown) => void
  /** Takes the lines on tools that were left out of a list since the last call. */
  readonly leftOut: () => ReadonlyArray<string>
  /** Sends a request. Interruption cancels it at the server. */
  readonly request: <A>(
    send: (client: Official.Client, options: Official.RequestOptions) => Promise<A>,
    options?: Official.RequestOptions
  ) => Effect.Effect<A, McpError>
}

/** Connects, until the scope closes. */
export const open = Effect.fnUntraced(function* (
  server: string,
  address: Server,
  options: Options,
  incoming: Incoming
): Effect.fn.Return<Connection, McpError, Scope.Scope> {
  const found = yield* load(server)
  const lost = yield* Deferred.make<never, McpError>()
  const client = clientOf(found, address, options, incoming)
  const lose = (error: McpError) => Deferred.doneUnsafe(lost, Effect.fail(error))
  const failure = failureOf(server)
  const tools = new ToolList(found, server)
  const { stderr } = yield* connected({
    tools,
    found,
    server,
    address,
    client,
    timeout: options.connectTimeout ?? "30 seconds"
  })
  client.onclose = () => lose(withStderr(failure("lost", "it ended"), stderr()))
  const suspect = asking(found, client, (error) =>
    lose(withStderr(failure("lost", FailureText.firstLine(error)), stderr()))
  )
  client.onerror = suspect
  const request: Connection["request"] = (send, more = {}) =>
    Effect.suspend(() => {
      const ended = Deferred.makeUnsafe<void>()
      const onRequestStreamEnd = () => Deferred.doneUnsafe(ended, Effect.void)
      const sent = Effect.tryPromise({
        try: (signal) => send(client, { timeout: noTimeout, onRequestStreamEnd, ...more, signal }),
        catch: (error) => {
          const mapped = failure(
            reasonOf(found, error),
            FailureText.firstLine(error),
            isNotSent(found, error)
          )
          if (mapped.reason === "lost" || mapped.reason === "unauthorized") lose(mapped)
          return mapped
        }
      })
      // The answer of a stream that ended well is here by then.
      const unanswered = Deferred.await(ended).pipe(
        Effect.andThen(Effect.sleep("500 millis")),
        Effect.andThen(failure("lost", "the stream of the answer ended without an answer"))
      )
      return Effect.raceAllFirst([sent, unanswered, Deferred.await(lost)])
    })
  return { client, lost: Deferred.await(lost), suspect, leftOut: () => tools.lines.splice(0), request }
})

const clientOf = (
  { main }: Package,
  address: Server,
  { clientInfo }: Options,
  { elicit, listChanged, sample }: Incoming
): Official.Client => {
  const capabilities: Official.ClientCapabilities = {
    ...(elicit === undefined ? {} : { elicitation: { form: {} } }),
    ...(sample === undefined ? {} : { sampling: {} })
  }
  const client = new main.Client(clientInfo ?? { name: "effect-agent", version: "0.2.0" }, {
    capabilities,
    // With "auto" the package starts a program twice.
    versionNegotiation: { mode: isHttp(address) ? "auto" : "legacy" },
    listChanged: { tools: { autoRefresh: false, onChanged: listChanged } }
  })
  if (elicit !== undefined) client.setRequestHandler("elicitation/create", ({ params }) => elicit(params))
  if (sample !== undefined) client.setRequestHandler("sampling/createMessage", ({ params }) => sample(params))
  return client
}

interface Attempt {
  readonly found: Package
  readonly server: string
  readonly address: Server
  readonly client: Official.Client
  readonly tools: ToolList
  readonly timeout: Duration.Input
}

/** Connects, once more with the code of an OAuth redirect if the server wants one. */
const connected = (attempt: Attempt) =>
  Effect.catch(connectOnce(attempt), ({ error, made }) => {
    const code = isHttp(attempt.address) ? attempt.address.oauth?.code : undefined
    const { finishAuth } = made
    if (error.reason !== "unauthorized" || code === undefined || finishAuth === undefined)
      return Effect.fail(error)
    const finished = Effect.flatMap(code, (code) =>
      Effect.tryPromise({
        try: () => finishAuth(code),
        catch: (thrown) => failureOf(attempt.server)("unauthorized", FailureText.firstLine(thrown))
      })
    )
    return Effect.andThen(
      finished,
      Effect.mapError(connectOnce(attempt), ({ error }) => error)
    )
  })

const connectOnce = Effect.fnUntraced(function* ({
  address,
  client,
  found,
  server,
  timeout,
  tools
}: Attempt) {
  const failure = failureOf(server)
  const made = make(found, address)
  // The client calls the function that is there before its own.
  made.transport.onmessage = tools.sift
  yield* Effect.addFinalizer(() => closed(client))
  const failed = (error: McpError) => ({ made, error: withStderr(error, made.stderr()) })
  const done = Effect.tryPromise({
    try: (signal) => client.connect(made.transport, { timeout: noTimeout, signal }),
    catch: (error) =>
      failed(
        failure(isUnauthorized(found, error) ? "unauthorized" : "unreachable", FailureText.firstLine(error))
      )
  })
  return yield* Effect.timeoutOrElse(Effect.as(done, made), {
    duration: timeout,
    orElse: () => Effect.fail(failed(failure("timeout", "no answer came")))
  })
})

/** A program gets its time to end; the package kills it after 4 seconds. */
const closed = (client: Official.Client): Effect.Effect<void> =>
  Effect.tryPromise(() => client.close()).pipe(Effect.timeoutOption("6 seconds"), Effect.ignore)

/** Over HTTP nothing closes when the server dies: an error is a reason to ask whether it lives. */
const asking = (found: Package, client: Official.Client, lose: (error: unknown) => void) => {
  let isAsked = false
  const ask = () =>
    client.getProtocolEra() === "modern"
      ? client.discover({ timeout: 3_000 })
      : client.ping({ timeout: 3_000 })
  return (error: unknown) => {
    if (isAsked || found.main.ProtocolError.isInstance(error)) return
    isAsked = true
    ask().then(
      () => {
        isAsked = false
      },
      () => lose(error)
    )
  }
}

const withStderr = (error: McpError, stderr: string): McpError =>
  stderr === "" ? error : new McpError({ ...fieldsOf(error), stderr })

const fieldsOf = ({ detail, reason, server }: McpError) => ({ server, reason, detail })

const failureOf =
  (server: string) =>
  (reason: McpError["reason"], detail: string, isNotSent = false): McpError =>
    new McpError({ server, reason, detail, ...(isNotSent ? { notSent: true } : {}) })

const lostCodes: ReadonlySet<unknown> = new Set(["NOT_CONNECTED", "CONNECTION_CLOSED", "SEND_FAILED"])

/** Whether a failed request did not reach the server: there is no such session or no connection. */
const isNotSent = ({ main }: Package, error: unknown): boolean => {
  if (main.SdkHttpError.isInstance(error)) return error.status === 404
  if (Predicate.hasProperty(error, "code") && error.code === "NOT_CONNECTED") return true
  const cause = Predicate.hasProperty(error, "cause") ? error.cause : undefined
  return Predicate.hasProperty(cause, "code") && cause.code === "ECONNREFUSED"
}

/** Whether the server wants credentials, or others than those of the request. */
const isUnauthorized = ({ main }: Pick<Package, "main">, error: unknown): boolean =>
  error instanceof main.UnauthorizedError || (main.SdkHttpError.isInstance(error) && error.status === 401)

/** The kind of a failed request. A failed HTTP request says that the session is over, or that the server is gone. */
const reasonOf = ({ main }: Package, error: unknown): McpError["reason"] => {
  if (isUnauthorized({ main }, error)) return "unauthorized"
  if (main.ProtocolError.isInstance(error)) return "protocol"
  if (main.SdkHttpError.isInstance(error)) return "lost"
  if (Predicate.hasProperty(error, "code") && lostCodes.has(error.code)) return "lost"
  return error instanceof TypeError ? "lost" : "protocol"
}

// ───────────────────────── The list of tools

// The list of the tools of a server, before the official client reads it: that refuses the whole list for one tool that is not
// as the protocol says.

/** The most characters of a schema, which each request to the model repeats. No tool that is meant well has so many. */
const maxSchema = 200_000

/** Takes tools out of lists that pass by, and keeps a line on each. */
class ToolList {
  /** The lines since the last `splice`. */
  readonly lines: Array<string> = []
  private readonly main: Package["main"]
  private readonly server: string

  constructor({ main }: Package, server: string) {
    this.main = main
    this.server = server
  }

  /** Changes a message in place if it is a list of tools. */
  readonly sift = (message: Official.JSONRPCMessage): void => {
    const result = "result" in message ? message.result : undefined
    if (!Predicate.hasProperty(result, "tools") || !Array.isArray(result.tools)) return
    Object.assign(result, { tools: result.tools.flatMap((tool: unknown) => this.kept(tool)) })
  }

  private kept(tool: unknown): ReadonlyArray<unknown> {
    const repaired = isRecord(tool) ? repairedOf(tool) : tool
    const fault = faultOf(repaired) ?? this.invalid(repaired)
    if (fault === undefined) return [repaired]
    const name = Predicate.hasProperty(tool, "name") ? shown(tool.name) : "without a name"
    this.lines.push(leftOut(this.server, name, fault))
    return []
  }

  /** The fault of a tool by the protocol. */
  private invalid(tool: unknown): string | undefined {
    const result = this.main.specTypeSchemas.Tool["~standard"].validate(tool)
    if (!("issues" in result) || result.issues === undefined) return undefined
    const [{ message, path = [] } = { message: "it is no tool" }] = result.issues
    const steps = path.map((step) => String(typeof step === "object" ? step.key : step))
    return [steps.join("."), message].filter((text) => text !== "").join(": ")
  }
}

/** The line on a tool that is left out. */
export const leftOut = (server: string, tool: string, reason: string): string =>
  `The tool ${tool.slice(0, 100)} of the MCP server ${server} is left out: ${reason}`

type Tool = Readonly<Record<string, unknown>>

const isRecord = (tool: unknown): tool is Tool => Predicate.isObject(tool)

/** Says the type of an input schema that can only be one of objects, and leaves out an output schema that cannot be read. */
const repairedOf = (tool: Tool): Tool => {
  const { inputSchema, outputSchema, ...rest } = tool
  return {
    ...rest,
    ...("inputSchema" in tool ? { inputSchema: withType(inputSchema) } : {}),
    ...(outputSchema === undefined || sizeFault(outputSchema) !== undefined || !isTyped(outputSchema)
      ? {}
      : { outputSchema })
  }
}

const isTyped = (schema: unknown): boolean =>
  Predicate.hasProperty(schema, "type") && schema.type === "object"

const withType = (schema: unknown): unknown => {
  if (sizeFault(schema) !== undefined || !McpModel.isJson(schema) || !isObject(schema)) return schema
  return isTyped(schema) || kindOfJson(schema) !== undefined ? schema : { ...schema, type: "object" }
}

const faultOf = (tool: unknown): string | undefined => {
  if (!Predicate.hasProperty(tool, "inputSchema")) return "it has no input schema"
  const { inputSchema } = tool
  const fault = sizeFault(inputSchema)
  if (fault !== undefined) return fault
  return isTyped(inputSchema) ? undefined : "its input schema is no JSON Schema of an object"
}

/** Why a schema is too large for a request, if it is. */
export const sizeFault = (schema: unknown): string | undefined => {
  const text = JSON.stringify(schema) ?? ""
  if (nestsTooDeep(text)) return `its schema nests deeper than ${maxDepth} levels`
  return text.length > maxSchema ? `its schema has more than ${maxSchema} characters` : undefined
}

// ───────────────────────── The transport

/** The official package, loaded when the first server is connected. */
interface Package {
  readonly main: typeof Official
  readonly stdio: typeof OfficialStdio
}

const load = (server: string): Effect.Effect<Package, McpError> =>
  Effect.tryPromise({
    try: async () => ({
      main: await import("@modelcontextprotocol/client"),
      stdio: await import("@modelcontextprotocol/client/stdio")
    }),
    catch: () =>
      new McpError({
        server,
        reason: "notInstalled",
        detail: "install the package @modelcontextprotocol/client"
      })
  })

/** A transport that has not started. */
interface Transport {
  readonly transport: Official.Transport
  /** The last lines on stderr. */
  readonly stderr: () => string
  /** Gives the transport the code of an OAuth redirect. */
  readonly finishAuth: ((code: string) => Promise<void>) | undefined
}

const isHttp = (server: Server): server is HttpServer => "url" in server

const make = (found: Package, server: Server): Transport => {
  if ("transport" in server) return { transport: server.transport(), stderr: () => "", finishAuth: undefined }
  return isHttp(server) ? http(found, server) : stdio(found, server)
}

const http = ({ main }: Package, { headers = {}, oauth, url }: HttpServer): Transport => {
  const transport = new main.StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...headers } },
    ...(oauth === undefined ? {} : { authProvider: oauth.provider }),
    // A stream that broke is no reason to wait: the connection is made again.
    reconnectionOptions: {
      initialReconnectionDelay: 100,
      maxReconnectionDelay: 1_000,
      reconnectionDelayGrowFactor: 2,
      maxRetries: 2
    }
  })
  return { transport, stderr: () => "", finishAuth: (code) => transport.finishAuth(code) }
}

/** Characters of stderr that are kept. */
const kept = 2_000

const stdio = (found: Package, { args = [], command, cwd, env }: StdioServer): Transport => {
  // The package adds PATH, HOME and the like, and no other variable of this process.
  const transport = new found.stdio.StdioClientTransport({
    command,
    args: [...args],
    stderr: "pipe",
    ...(env === undefined ? {} : { env: { ...env } }),
    ...(cwd === undefined ? {} : { cwd })
  })
  let written = ""
  transport.stderr?.on("data", (chunk: unknown) => {
    written = (written + String(chunk)).slice(-kept)
  })
  return { transport, stderr: () => written.trim(), finishAuth: undefined }
}
