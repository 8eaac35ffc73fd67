/**
 * One connection to an MCP server, until it is lost.
 */
import type * as Official from "@modelcontextprotocol/client"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import * as FailureText from "../../internal/failureText.ts"
import { McpError } from "./McpError.ts"
import type { Options, Server } from "./Model.ts"
import { ToolList } from "./ToolList.ts"
import * as Transport from "./Transport.ts"

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
  const found = yield* Transport.load(server)
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
  { main }: Transport.Package,
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
    versionNegotiation: { mode: Transport.isHttp(address) ? "auto" : "legacy" },
    listChanged: { tools: { autoRefresh: false, onChanged: listChanged } }
  })
  if (elicit !== undefined) client.setRequestHandler("elicitation/create", ({ params }) => elicit(params))
  if (sample !== undefined) client.setRequestHandler("sampling/createMessage", ({ params }) => sample(params))
  return client
}

interface Attempt {
  readonly found: Transport.Package
  readonly server: string
  readonly address: Server
  readonly client: Official.Client
  readonly tools: ToolList
  readonly timeout: Duration.Input
}

/** Connects, once more with the code of an OAuth redirect if the server wants one. */
const connected = (attempt: Attempt) =>
  Effect.catch(connectOnce(attempt), ({ error, made }) => {
    const code = Transport.isHttp(attempt.address) ? attempt.address.oauth?.code : undefined
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
  const made = Transport.make(found, address)
  // The client calls the function that is there before its own.
  made.transport.onmessage = tools.sift
  yield* Effect.addFinalizer(() => closed(client))
  const failed = (error: McpError) => ({ made, error: withStderr(error, made.stderr()) })
  const done = Effect.tryPromise({
    try: (signal) => client.connect(made.transport, { timeout: noTimeout, signal }),
    catch: (error) =>
      failed(
        failure(
          error instanceof found.main.UnauthorizedError ? "unauthorized" : "unreachable",
          FailureText.firstLine(error)
        )
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
const asking = (found: Transport.Package, client: Official.Client, lose: (error: unknown) => void) => {
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
const isNotSent = ({ main }: Transport.Package, error: unknown): boolean => {
  if (main.SdkHttpError.isInstance(error)) return error.status === 404
  if (Predicate.hasProperty(error, "code") && error.code === "NOT_CONNECTED") return true
  const cause = Predicate.hasProperty(error, "cause") ? error.cause : undefined
  return Predicate.hasProperty(cause, "code") && cause.code === "ECONNREFUSED"
}

/** The kind of a failed request. A failed HTTP request says that the session is over, or that the server is gone. */
const reasonOf = ({ main }: Transport.Package, error: unknown): McpError["reason"] => {
  if (error instanceof main.UnauthorizedError) return "unauthorized"
  if (main.ProtocolError.isInstance(error)) return "protocol"
  if (main.SdkHttpError.isInstance(error)) return "lost"
  if (Predicate.hasProperty(error, "code") && lostCodes.has(error.code)) return "lost"
  return error instanceof TypeError ? "lost" : "protocol"
}
