/** The connections to the MCP servers of `--mcp-config`, and to those that an editor wants a session to have. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as FileSystem from "effect/FileSystem"
import type * as Path from "effect/Path"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as McpClient from "../../mcp/McpClient.ts"
import * as McpTools from "../../mcp/McpTools.ts"
import type { ToolRegistry } from "../../ToolRegistry.ts"
import { UsageError } from "../ExitCode.ts"
import * as Inert from "../terminal/Inert.ts"
import { Screen } from "../terminal/Screen.ts"
import type { Given } from "../../acp/AcpAgent.ts"
import * as McpConfig from "./McpConfig.ts"
import * as McpTokens from "./McpTokens.ts"

type Registry = ToolRegistry["Service"]

/** Shows a line about a server. */
type Notice = (line: string) => Effect.Effect<void>

type State =
  | { readonly state: "connected"; readonly tools: number }
  | { readonly state: "needs sign-in" | "off" }
  | { readonly state: "failed"; readonly reason: string }

/** A server, and its state. */
export type Status = State & { readonly name: string }

/** The servers of a process, which are connected once for all registries. */
export interface Servers {
  /**
   * Adds the tools of all servers to a registry until the scope closes, when each server has answered. Fails with `UsageError` if a required
   * one has not started.
   */
  readonly join: (tools: Registry) => Effect.Effect<void, UsageError, Scope.Scope>
  /** The states now. */
  readonly list: Effect.Effect<ReadonlyArray<Status>>
  /** Waits until each server has answered, or has failed. */
  readonly settled: Effect.Effect<void>
  /** Connects to a server again, and brings its tools to the registries. Fails with `UsageError` for an unknown one. */
  readonly reconnect: (name: string) => Effect.Effect<Status, UsageError>
}

/** A line on a server for people. `login` is the command that signs in. */
export const lineOf = (status: Status, login: string): string => {
  const name = Inert.line(status.name)
  switch (status.state) {
    case "connected":
      return `${name} · connected · ${status.tools} ${status.tools === 1 ? "tool" : "tools"}`
    case "needs sign-in":
      return `${name} · needs sign-in: ${login} ${name}`
    case "failed":
      return `${name} · failed: ${Inert.line(status.reason)}`
    case "off":
      return `${name} · off`
  }
}

/**
 * Begins to connect to the servers, until the scope closes. `say` gets a line on each that does not start. Fails with `UsageError` for a
 * file that is not valid.
 */
export const open = Effect.fnUntraced(function* (given: McpConfig.Given, model: string, say: Notice) {
  const all = yield* McpConfig.servers(given)
  // Their programs end side by side.
  const scope = yield* Scope.fork(yield* Effect.scope, "parallel")
  const links = yield* Effect.forEach(all, (one) => linkOf(one, { model, scope, say }))
  const servers: Servers = {
    join: (tools) =>
      Effect.forEach(links, ({ join }) => join(tools), { concurrency: "unbounded", discard: true }),
    list: Effect.forEach(links, ({ status }) => status),
    settled: Effect.forEach(links, ({ settled }) => settled, { discard: true }),
    reconnect: (name) => {
      const link = links.find((link) => link.name === name)
      return link === undefined ? McpConfig.unknown(all, name) : Effect.andThen(link.reconnect, link.status)
    }
  }
  return servers
})

interface Linking {
  readonly model: string
  readonly scope: Scope.Scope
  readonly say: Notice
}

interface Connected {
  readonly client: McpClient.McpClient
  readonly options: McpTools.Options
}

/** Why a server has no connection. */
interface Lack {
  readonly state: State
  readonly words: string
}

const failed = (reason: string, words = reason): Lack => ({ state: { state: "failed", reason }, words })

/** The connection of one server, which begins at once, and the registries that have its tools. */
const linkOf = Effect.fnUntraced(function* (one: McpConfig.Named, linking: Linking) {
  const { entry, name } = one
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const lock = Semaphore.makeUnsafe(1)
  const registries = new Map<Registry, Scope.Scope>()
  let now: (Connected & { readonly scope: Scope.Closeable }) | Lack = failed("it has not answered yet")
  const attach = (tools: Registry, own: Scope.Scope) =>
    Effect.gen(function* () {
      if (!("client" in now)) return
      const both = yield* Scope.fork(now.scope)
      yield* Scope.addFinalizer(own, Scope.close(both, Exit.void))
      yield* Scope.provide(McpTools.join(tools, now.client, now.options), both)
    })
  const connect = Effect.gen(function* () {
    const scope = yield* Scope.fork(linking.scope, "parallel")
    const made = yield* Effect.result(Scope.provide(connected(one, linking), scope))
    now = Result.isSuccess(made) ? { ...made.success, scope } : made.failure
    if (Result.isFailure(made)) yield* Scope.close(scope, Exit.void)
    yield* Effect.forEach(registries, ([tools, own]) => attach(tools, own), { discard: true })
  })
  const first = yield* Effect.forkIn(lock.withPermit(connect), linking.scope)
  const settled = Effect.asVoid(Fiber.await(first))
  const join = Effect.fnUntraced(function* (tools: Registry) {
    const own = yield* Effect.scope
    registries.set(tools, own)
    yield* Scope.addFinalizer(
      own,
      Effect.sync(() => registries.delete(tools))
    )
    yield* attach(tools, own)
    if (entry.required === true && "words" in now) return yield* new UsageError({ detail: now.words })
  })
  return {
    name,
    settled,
    join: (tools: Registry) => Effect.andThen(settled, lock.withPermit(join(tools))),
    status: Effect.suspend((): Effect.Effect<Status> => {
      if (!("client" in now)) return Effect.succeed({ name, ...now.state })
      return Effect.map(now.client.state, (state) => ({ name, ...stateOf(one, state) }))
    }),
    reconnect: lock.withPermit(
      Effect.gen(function* () {
        if ("client" in now) yield* Scope.close(now.scope, Exit.void)
        now = failed("it has not answered yet")
        yield* Effect.provideContext(connect, context)
      })
    )
  }
})

const stateOf = (one: McpConfig.Named, { error, isConnected, tools }: McpClient.State): State => {
  const { deny = [], only } = one.entry
  if (error !== undefined && !isConnected) return lackOf(one, error).state
  const chosen = tools.filter(({ name }) => (only?.includes(name) ?? true) && !deny.includes(name))
  return { state: "connected", tools: chosen.length }
}

const lackOf = (one: McpConfig.Named, error: McpClient.McpError): Lack => {
  const login = `${one.name} needs sign-in: effect-agent mcp login ${one.name}`
  return error.reason === "unauthorized" && McpConfig.signsIn(one) !== undefined
    ? { state: { state: "needs sign-in" }, words: login }
    : failed(withLastLine(error.detail, error), withLastLine(error.message, error))
}

const withLastLine = (text: string, { stderr }: McpClient.McpError): string =>
  stderr === undefined ? text : `${text}. Its last line on stderr: ${stderr.split("\n").at(-1) ?? ""}`

/** Connects to a server. One that needs a sign-in has no connection: it is not tried again by itself. */
const connected = Effect.fnUntraced(function* (one: McpConfig.Named, { model, say }: Linking) {
  const { entry, name, server } = one
  if (server === undefined)
    return yield* Effect.fail<Lack>({ state: { state: "off" }, words: `${name} is off.` })
  const { deny, only, required = false, sampling = false, timeout, trustHints } = entry
  const waiting = yield* Effect.forkChild(Effect.delay(say(waits(name)), "3 seconds"))
  const client = yield* addressOf(one, server).pipe(
    Effect.mapError(({ message }) => failed(message)),
    Effect.flatMap((address) =>
      Effect.mapError(
        McpClient.connect(name, address, { required, ...(sampling ? { sampling: { model } } : {}) }),
        (error) => lackOf(one, error)
      )
    ),
    Effect.ensuring(Fiber.interrupt(waiting))
  )
  const options: McpTools.Options = {
    resources: true,
    leftOut: say,
    ...(deny === undefined ? {} : { deny }),
    ...(only === undefined ? {} : { only }),
    ...(timeout === undefined ? {} : { timeout }),
    ...(trustHints === undefined ? {} : { trustHints })
  }
  const { error } = yield* client.state
  const lack = error === undefined ? undefined : lackOf(one, error)
  if (lack?.state.state === "needs sign-in") return yield* Effect.andThen(say(lack.words), Effect.fail(lack))
  if (lack !== undefined) yield* say(`${lack.words}. It is tried again.`)
  yield* Effect.forkScoped(refusals(one, client, say))
  const made: Connected = { client, options }
  return made
})

/** Says it once, if the server no longer takes the tokens of a sign-in. Those of a later one count by themselves. */
const refusals = (one: McpConfig.Named, client: McpClient.McpClient, say: Notice) =>
  client.states.pipe(
    Stream.map(({ error }) => (error === undefined ? undefined : lackOf(one, error))),
    Stream.filter((lack) => lack?.state.state === "needs sign-in"),
    Stream.take(1),
    Stream.runForEach((lack) => say(lack?.words ?? ""))
  )

/** The address, with the tokens of a sign-in. */
const addressOf = Effect.fnUntraced(function* (one: McpConfig.Named, server: McpClient.Server) {
  const signing = McpConfig.signsIn(one)
  return signing === undefined || !("url" in server)
    ? server
    : { ...server, oauth: { provider: yield* McpTokens.provider(signing) } }
})

const waits = (server: string): string =>
  `The MCP server ${server} has not answered yet: the program waits for it, at most 30 seconds (--no-mcp: without servers).`

/** Writes a line to stderr. */
export const notices = Effect.map(
  Screen,
  ({ err, paint }): Notice =>
    (line) =>
      err(`${paint.dim(Inert.line(line))}\n`)
)

// ───────────────────────── The servers that an editor wants a session to have

type Server = Given["mcpServers"][number]

/** Adds the tools of all servers, until the scope closes. A server that does not start has none. */
export const joinOfEditor = Effect.fnUntraced(function* (
  tools: ToolRegistry["Service"],
  servers: ReadonlyArray<Server>
) {
  // Their programs end side by side.
  const scope = yield* Scope.fork(yield* Effect.scope, "parallel")
  yield* Effect.forEach(servers, (server) => joinedOfEditor(tools, server), {
    concurrency: "unbounded",
    discard: true
  }).pipe(Scope.provide(scope))
})

const joinedOfEditor = Effect.fnUntraced(function* (tools: ToolRegistry["Service"], server: Server) {
  const client = yield* Effect.mapError(
    McpClient.connect(server.name, ofEditor(server)),
    ({ message }) => new UsageError({ detail: message })
  )
  const leftOut = yield* notices
  yield* McpTools.join(tools, client, { resources: true, leftOut })
  const { error } = yield* client.state
  if (error !== undefined) yield* leftOut(`${error.message}. It is tried again.`)
})

const ofEditor = (server: Server): McpClient.Server =>
  "command" in server
    ? { command: server.command, args: server.args, env: recordOf(server.env) }
    : { url: server.url, headers: recordOf(server.headers) }

const recordOf = (pairs: ReadonlyArray<{ readonly name: string; readonly value: string }>) =>
  Object.fromEntries(pairs.map(({ name, value }) => [name, value]))
