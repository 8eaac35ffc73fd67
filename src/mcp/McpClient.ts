/**
 * Connections to MCP servers, which are made again when they are lost.
 *
 * @since 0.2.0
 */
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import { Calls } from "./internal/McpCalls.ts"
import * as McpConnection from "./internal/McpConnection.ts"
import * as McpModel from "./internal/McpModel.ts"
import { type McpClient, type Options, type Server, type State, McpError } from "./internal/McpModel.ts"

export { McpError } from "./internal/McpModel.ts"
export type {
  CustomServer,
  HttpServer,
  McpClient,
  OAuth,
  Options,
  Sampling,
  Server,
  ServerTool,
  State,
  StdioServer
} from "./internal/McpModel.ts"

/**
 * Connects to a server, until the scope closes.
 *
 * **When to use**
 *
 * Use it together with `McpTools.join`, which adds the tools of the server to an agent.
 *
 * **Details**
 *
 * The first connection loads the package `@modelcontextprotocol/client`, an optional peer of this package. A program is started once, and
 * ended with the scope. A connection that is lost is made again, with the pauses of `reconnect`. Requests wait for it, at most 10 seconds;
 * those that were in flight fail with `McpError`. A request is sent again only where the server did not get it, such as after a 404 for a
 * session that a restart ended. A server that does not answer a call in time gets a ping, and is started again if it does not answer that.
 *
 * With `required` it fails where the first attempt fails. Otherwise it logs a warning, and `state` has the error until an attempt succeeds.
 *
 * **Example** (Connecting to a program)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-agent"
 * import { McpClient, McpTools } from "effect-agent/mcp"
 *
 * export const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5" })
 *   const files = yield* McpClient.connect("files", {
 *     command: "npx",
 *     args: ["-y", "@modelcontextprotocol/server-filesystem", "."]
 *   })
 *   yield* McpTools.join(agent.tools, files)
 *   return yield* agent.prompt("Which files are here?")
 * }).pipe(Effect.scoped)
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const connect = Effect.fnUntraced(function* (
  name: string,
  server: Server,
  options: Options = {}
): Effect.fn.Return<McpClient, McpError, Scope.Scope> {
  const state = yield* SubscriptionRef.make<State>(away)
  const changes = yield* Queue.sliding<void>(1)
  const tried = yield* Deferred.make<void, McpError>()
  const calls = new Calls(name, options.sampling)
  let current: McpConnection.Connection | undefined
  /** Waits while the connection is made again, until there is another one than `lost`. */
  const connected = (lost: McpConnection.Connection | undefined) =>
    SubscriptionRef.changes(state).pipe(
      Stream.filter(({ error }) => (current !== undefined && current !== lost) || isFinal(error)),
      Stream.runHead,
      Effect.timeoutOption(patience)
    )
  const once: McpConnection.Connection["request"] = (send, more) =>
    Effect.suspend(() => current?.request(send, more) ?? unreachable(name, SubscriptionRef.getUnsafe(state)))
  const request: McpConnection.Connection["request"] = (send, more) =>
    Effect.suspend(() => {
      const before = current
      const again = Effect.andThen(connected(before), once(send, more))
      return before === undefined
        ? again
        : Effect.catchIf(
            before.request(send, more),
            ({ notSent }) => notSent === true,
            () => again
          )
    })
  const live = Effect.gen(function* () {
    const incoming = incomingOf(calls, changes, options)
    const connection = yield* McpConnection.open(name, server, options, incoming)
    current = connection
    const list = listed(name, connection, state, options)
    yield* Effect.andThen(list, Deferred.succeed(tried, undefined))
    const follow = Effect.forever(Effect.andThen(Queue.take(changes), list))
    return yield* Effect.raceFirst(follow, connection.lost)
  }).pipe(
    Effect.scoped,
    Effect.tapError((error) => {
      const ended = current === undefined ? Effect.void : Effect.logWarning(lastWords(error))
      current = undefined
      const left = SubscriptionRef.update(state, (before) => ({ ...before, isConnected: false, error }))
      return Effect.andThen(Effect.andThen(left, ended), Deferred.fail(tried, error))
    })
  )
  const fiber = yield* Effect.forkScoped(kept(live, options.reconnect))
  const failed = (error: McpError) => Effect.andThen(Fiber.interrupt(fiber), error)
  yield* Effect.catch(Deferred.await(tried), options.required === false ? triedAgain : failed)
  return {
    name,
    state: SubscriptionRef.get(state),
    states: SubscriptionRef.changes(state),
    ...make({ name, request, suspect: (error) => current?.suspect(error) }, calls)
  }
})

/** How long a request waits for a connection that is made again. */
const patience = Duration.seconds(10)

/** Whether another attempt fails too, so that no request waits for it. */
const isFinal = (error: McpError | undefined): boolean =>
  error?.reason === "unauthorized" || error?.reason === "notInstalled"

const lastWords = ({ message, stderr }: McpError): string =>
  `${message}. It is connected again.${stderr === undefined ? "" : ` Its last lines on stderr: ${stderr}`}`

const triedAgain = ({ message }: McpError) => Effect.logWarning(`${message}. It is tried again.`)

const away: State = {
  isConnected: false,
  error: undefined,
  tools: [],
  instructions: undefined,
  hasResources: false
}

const incomingOf = (
  calls: Calls,
  changes: Queue.Queue<void>,
  { elicitation = true, sampling }: Options
): McpConnection.Incoming => ({
  listChanged: () => Queue.offerUnsafe(changes, undefined),
  elicit: elicitation ? calls.elicit : undefined,
  sample: sampling === undefined ? undefined : calls.sample
})

/** Connects again for ever. A connection that held for a while begins with the first pause again. */
const kept = (live: Effect.Effect<void, McpError>, reconnect = pauses): Effect.Effect<void> =>
  Effect.forever(
    Effect.retry(
      Effect.flatMap(Effect.timed(Effect.result(live)), ([time, result]) =>
        Duration.isGreaterThan(time, Duration.seconds(30)) ? Effect.void : Effect.fromResult(result)
      ),
      reconnect
    )
  ).pipe(Effect.ignore)

const pauses: Schedule.Schedule<unknown> = Schedule.min([
  Schedule.exponential("200 millis"),
  Schedule.spaced("5 seconds")
])

const unreachable = (server: string, { error }: State) =>
  new McpError({
    server,
    reason: "unreachable",
    detail: `${error?.detail ?? "it has not answered yet"}. The connection is being made again; try later`
  })

/** Reads the list of the tools. One that fails keeps the list of before, and loses the connection. */
const listed = Effect.fnUntraced(function* (
  server: string,
  { client, leftOut, request }: McpConnection.Connection,
  state: SubscriptionRef.SubscriptionRef<State>,
  { connectTimeout = "30 seconds" }: Options
) {
  const capabilities = client.getServerCapabilities()
  const listing = request((client, options) =>
    client.listTools(undefined, { ...options, cacheMode: "refresh" })
  )
  const tools =
    capabilities?.tools === undefined
      ? []
      : yield* Effect.timeoutOrElse(
          Effect.map(listing, ({ tools }) => tools),
          {
            duration: connectTimeout,
            orElse: () =>
              new McpError({
                server,
                reason: "timeout",
                detail: "it did not list its tools"
              })
          }
        )
  yield* SubscriptionRef.set(state, {
    isConnected: true,
    error: undefined,
    tools,
    leftOut: leftOut(),
    instructions: client.getInstructions(),
    hasResources: capabilities?.resources !== undefined
  })
})

// ───────────────────────── Requests

type Request = McpConnection.Connection["request"]

interface Link extends Pick<McpConnection.Connection, "request" | "suspect"> {
  readonly name: string
}

const make = (link: Link, calls: Calls): Omit<McpClient, "name" | "state" | "states"> => {
  const { request } = link
  return {
    callTool: callTool(link, calls),
    ...ofResources(request),
    prompts: Effect.map(
      request((client, options) => client.listPrompts(undefined, options)),
      ({ prompts }) => prompts
    ),
    prompt: (name, args = {}) =>
      Effect.map(
        request((client, options) => client.getPrompt({ name, arguments: { ...args } }, options)),
        ({ messages }) => messages
      )
  }
}

const callTool =
  ({ name: server, request, suspect }: Link, calls: Calls): McpClient["callTool"] =>
  (name, params, { timeout = "1 minute" } = {}) =>
    calls.during((inbox, silence) => {
      const sent = request(
        (client, options) => client.callTool({ name, arguments: recordOf(params) }, options),
        {
          onprogress: (progress) => {
            Queue.offerUnsafe(inbox, { _tag: "Progress", progress })
          }
        }
      )
      const tooLong = Effect.flatMap(silence(timeout), (limit) => {
        const detail = `no answer and no progress came for ${limit}`
        const error = new McpError({ server, reason: "timeout", detail })
        suspect(error)
        return error
      })
      return Effect.map(Effect.raceFirst(sent, tooLong), McpModel.outputOf)
    })

const recordOf = (params: Schema.Json): Record<string, unknown> =>
  typeof params === "object" && params !== null ? { ...params } : {}

const ofResources = (
  request: Request
): Pick<McpClient, "resources" | "resourceTemplates" | "readResource"> => ({
  resources: Effect.map(
    request((client, options) => client.listResources(undefined, options)),
    ({ resources }) => resources
  ),
  resourceTemplates: Effect.map(
    request((client, options) => client.listResourceTemplates(undefined, options)),
    ({ resourceTemplates }) => resourceTemplates
  ),
  readResource: (uri) =>
    Effect.map(
      request((client, options) => client.readResource({ uri }, options)),
      ({ contents }) => contents.map(McpModel.resourceOf)
    )
})
