/** The MCP servers of `--mcp-config`. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as NearestName from "../../internal/nearestName.ts"
import type * as McpClient from "../../mcp/McpClient.ts"
import { UsageError } from "../ExitCode.ts"
import type { Settings } from "../settings/Settings.ts"

const texts = Schema.Record(Schema.String, Schema.String)

const Entry = Schema.Struct({
  command: Schema.optionalKey(Schema.String),
  args: Schema.optionalKey(Schema.Array(Schema.String)),
  env: Schema.optionalKey(texts),
  cwd: Schema.optionalKey(Schema.String),
  url: Schema.optionalKey(Schema.String),
  headers: Schema.optionalKey(texts),
  /** The client that a sign-in uses, where the server registers none by itself. */
  oauth: Schema.optionalKey(
    Schema.Struct({
      clientId: Schema.String,
      clientSecret: Schema.optionalKey(Schema.String),
      /** The port of the address to which the server sends the person back. */
      port: Schema.optionalKey(Schema.Int)
    })
  ),
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

/** The settings that name the servers. */
export type Given = Pick<Settings, "mcpConfig" | "noMcp">

/** A server of the file. */
export interface Named {
  readonly name: string
  readonly entry: Entry
  /** Its address, with the variables filled in; `undefined` for a server that is not used. */
  readonly server: Exclude<McpClient.Server, McpClient.CustomServer> | undefined
}

/** The servers of the file, checked. Fails with `UsageError`. */
export const servers = Effect.fnUntraced(function* ({ mcpConfig, noMcp }: Given) {
  if (Option.isNone(mcpConfig)) return []
  const entries = Object.entries(yield* read(mcpConfig.value))
  return yield* Effect.forEach(
    entries,
    ([name, entry]): Effect.Effect<Named, UsageError> =>
      noMcp || entry.disabled === true
        ? Effect.succeed({ name, entry, server: undefined })
        : Effect.map(serverOf(name, entry), (server) => ({ name, entry, server }))
  )
})

/** The server of a name. Fails with `UsageError`. */
export const find = Effect.fnUntraced(function* (given: Given, name: string) {
  const all = yield* servers(given)
  return all.find((one) => one.name === name) ?? (yield* unknown(all, name))
})

/** Fails for a name that no server has. */
export const unknown = (all: ReadonlyArray<Named>, name: string): Effect.Effect<never, UsageError> => {
  const names = all.map((one) => one.name)
  const nearest = NearestName.of(name, names)
  const others =
    names.length === 0 ? "None is configured: --mcp-config FILE." : `Servers: ${names.join(", ")}.`
  const advice = nearest === undefined ? others : `Did you mean ${nearest}?`
  return Effect.fail(new UsageError({ detail: `There is no MCP server ${JSON.stringify(name)}. ${advice}` }))
}

/** The name and the address of a server to which a person can sign in: one at an address, without credentials in the file. */
export const signsIn = ({ entry: { headers = {}, url }, name }: Named) =>
  url === undefined || Object.keys(headers).some((header) => header.toLowerCase() === "authorization")
    ? undefined
    : { name, url }

/** Reads the file, where `${NAME}` in a value stands for a variable of the environment. */
const read = Effect.fnUntraced(function* (path: string) {
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

const serverOf = (name: string, entry: Entry): Effect.Effect<NonNullable<Named["server"]>, UsageError> => {
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
export const filled = (
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
