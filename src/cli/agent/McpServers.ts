/** The MCP servers of `--mcp-config`, and those that an editor wants a session to have. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as McpClient from "../../mcp/McpClient.ts"
import * as McpTools from "../../mcp/McpTools.ts"
import type { ToolRegistry } from "../../ToolRegistry.ts"
import { UsageError } from "../ExitCode.ts"
import * as Inert from "../terminal/Inert.ts"
import { Screen } from "../terminal/Screen.ts"
import type { Settings } from "../settings/Settings.ts"
import type { Given } from "../../acp/AcpAgent.ts"

const texts = Schema.Record(Schema.String, Schema.String)

const Entry = Schema.Struct({
  command: Schema.optionalKey(Schema.String),
  args: Schema.optionalKey(Schema.Array(Schema.String)),
  env: Schema.optionalKey(texts),
  cwd: Schema.optionalKey(Schema.String),
  url: Schema.optionalKey(Schema.String),
  headers: Schema.optionalKey(texts),
  /** Milliseconds of a call. */
  timeout: Schema.optionalKey(Schema.Finite),
  required: Schema.optionalKey(Schema.Boolean),
  disabled: Schema.optionalKey(Schema.Boolean),
  only: Schema.optionalKey(Schema.Array(Schema.String)),
  deny: Schema.optionalKey(Schema.Array(Schema.String)),
  /** Whether the server may ask the model of the run. */
  sampling: Schema.optionalKey(Schema.Boolean),
  trustHints: Schema.optionalKey(Schema.Boolean)
})
type Entry = typeof Entry.Type

const Config = Schema.Struct({ mcpServers: Schema.Record(Schema.String, Entry) })

/** Adds the tools of all servers, until the scope closes. Fails if the file is not valid, or a required server does not start. */
export const join = (
  tools: ToolRegistry["Service"],
  settings: Pick<Settings, "mcpConfig" | "noMcp">,
  model: string
) => Effect.flatMap(connect(settings, model), (servers) => joinAll(tools, servers))

interface Checked {
  readonly name: string
  readonly entry: Entry
  readonly server: McpClient.Server
}

interface Connected {
  readonly client: McpClient.McpClient
  readonly options: McpTools.Options
}

/** The servers of the file, checked. Fails with `UsageError`. */
export const servers = Effect.fnUntraced(function* (settings: Pick<Settings, "mcpConfig" | "noMcp">) {
  if (settings.noMcp || Option.isNone(settings.mcpConfig)) return []
  const entries = Object.entries(yield* read(settings.mcpConfig.value))
  return yield* Effect.forEach(
    entries.filter(([, { disabled }]) => disabled !== true),
    ([name, entry]) => Effect.map(serverOf(name, entry), (server) => ({ name, entry, server }))
  )
})

/** Connects to all servers, until the scope closes. Fails as `join` does. */
export const connect = Effect.fnUntraced(function* (
  settings: Pick<Settings, "mcpConfig" | "noMcp">,
  model: string
) {
  const all = yield* servers(settings)
  // Their programs end side by side.
  const scope = yield* Scope.fork(yield* Effect.scope, "parallel")
  return yield* Effect.forEach(all, (one) => connected(one, model), { concurrency: "unbounded" }).pipe(
    Scope.provide(scope)
  )
})

/** Adds the tools of these servers to a registry, until the scope closes. */
export const joinAll = (tools: ToolRegistry["Service"], servers: ReadonlyArray<Connected>) =>
  Effect.forEach(servers, ({ client, options }) => McpTools.join(tools, client, options), { discard: true })

const connected = Effect.fnUntraced(function* ({ entry, name, server }: Checked, model: string) {
  const { deny, only, required = false, sampling = false, timeout, trustHints } = entry
  const waiting = yield* Effect.forkChild(Effect.delay(notice(waits(name)), "3 seconds"))
  const client = yield* McpClient.connect(name, server, {
    required,
    ...(sampling ? { sampling: { model } } : {})
  }).pipe(
    Effect.mapError((error) => new UsageError({ detail: wordsOf(error) })),
    Effect.ensuring(Fiber.interrupt(waiting))
  )
  const options: McpTools.Options = {
    resources: true,
    leftOut: yield* noticing,
    ...(deny === undefined ? {} : { deny }),
    ...(only === undefined ? {} : { only }),
    ...(timeout === undefined ? {} : { timeout }),
    ...(trustHints === undefined ? {} : { trustHints })
  }
  const { error } = yield* client.state
  if (error !== undefined) yield* notice(`${wordsOf(error)}. It is tried again.`)
  const made: Connected = { client, options }
  return made
})

const waits = (server: string): string =>
  `The MCP server ${server} has not answered yet: the program waits for it, at most 30 seconds (--no-mcp: without servers).`

const wordsOf = ({ message, stderr }: McpClient.McpError): string =>
  stderr === undefined ? message : `${message}. Its last line on stderr: ${stderr.split("\n").at(-1) ?? ""}`

/** Writes a line to stderr. */
const noticing = Effect.map(
  Screen,
  ({ err, paint }) =>
    (line: string) =>
      err(`${paint.dim(Inert.line(line))}\n`)
)

const notice = (line: string) => Effect.flatMap(noticing, (write) => write(line))

/** Reads the file, where `${NAME}` in a value stands for a variable of the environment. */
export const read = Effect.fnUntraced(function* (path: string) {
  const refused = (fault: string) => new UsageError({ detail: `--mcp-config: ${path}: ${fault}` })
  const text = yield* Effect.mapError(
    FileSystem.FileSystem.use((files) => files.readFileString(path)),
    ({ message }) => refused(message)
  )
  const json = yield* Effect.try({
    try: (): unknown => JSON.parse(text),
    catch: (thrown) => refused(`not JSON: ${thrown instanceof Error ? thrown.message : String(thrown)}`)
  })
  const { mcpServers } = yield* Effect.mapError(Schema.decodeUnknownEffect(Config)(json), ({ message }) =>
    refused(message.replaceAll(/\s+/g, " "))
  )
  return mcpServers
})

const serverOf = (name: string, entry: Entry): Effect.Effect<McpClient.Server, UsageError> => {
  const { args, command, cwd, env, headers, url } = entry
  if ((command === undefined) === (url === undefined))
    return Effect.fail(
      new UsageError({ detail: `--mcp-config: the server ${JSON.stringify(name)} needs a command or a url.` })
    )
  if (url !== undefined && !URL.canParse(url))
    return Effect.fail(
      new UsageError({ detail: `--mcp-config: the url of the server ${JSON.stringify(name)} is no address.` })
    )
  const values = url === undefined ? env : headers
  return Effect.map(filled(name, values ?? {}), (filled) => {
    if (url !== undefined) return { url, ...(values === undefined ? {} : { headers: filled }) }
    return {
      command: command ?? "",
      ...(args === undefined ? {} : { args }),
      ...(values === undefined ? {} : { env: filled }),
      ...(cwd === undefined ? {} : { cwd })
    }
  })
}

/** The values of a server, with variables of the environment for `${NAME}`. Fails for a variable that is not set. */
const filled = (
  server: string,
  values: Readonly<Record<string, string>>
): Effect.Effect<Record<string, string>, UsageError> => {
  const missing = new Set<string>()
  const read = (_: string, variable: string): string => {
    const value = process.env[variable]
    if (value === undefined) missing.add(variable)
    return value ?? ""
  }
  const entries = Object.entries(values).map(
    ([name, value]) => [name, value.replace(/\$\{(\w+)\}/g, read)] as const
  )
  return missing.size === 0
    ? Effect.succeed(Object.fromEntries(entries))
    : Effect.fail(
        new UsageError({
          detail: `--mcp-config: the server ${JSON.stringify(server)} needs ${[...missing].join(" and ")}, which the environment does not have.`
        })
      )
}

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
    McpClient.connect(server.name, addressOf(server)),
    ({ message }) => new UsageError({ detail: message })
  )
  const leftOut = yield* noticing
  yield* McpTools.join(tools, client, { resources: true, leftOut })
  const { error } = yield* client.state
  if (error !== undefined) yield* leftOut(`${error.message}. It is tried again.`)
})

const addressOf = (server: Server): McpClient.Server =>
  "command" in server
    ? { command: server.command, args: server.args, env: recordOf(server.env) }
    : { url: server.url, headers: recordOf(server.headers) }

const recordOf = (pairs: ReadonlyArray<{ readonly name: string; readonly value: string }>) =>
  Object.fromEntries(pairs.map(({ name, value }) => [name, value]))
