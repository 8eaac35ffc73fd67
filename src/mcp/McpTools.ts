/**
 * The tools of MCP servers as tools of an agent.
 *
 * @since 0.2.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Hash from "effect/Hash"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Tool from "../Tool.ts"
import type * as ToolRegistry from "../ToolRegistry.ts"
import { type McpClient, type ServerTool, type State, isJson } from "./internal/McpModel.ts"
import * as McpConnection from "./internal/McpConnection.ts"

/**
 * The options of the tools of a server.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /** The tools, by the names that the server knows. Default: all of them. */
  readonly only?: ReadonlyArray<string>
  /** Tools to leave out, by the names that the server knows. Default: none. */
  readonly deny?: ReadonlyArray<string>
  /** Longest time of a call without an answer or progress of the server. Default 1 minute. */
  readonly timeout?: Duration.Input
  /**
   * Whether the hints of the server count: a tool with `readOnlyHint` then has `effect` `"pure"`, so that a policy may allow it and a
   * durable run repeats it, and one with `idempotentHint` `"idempotent"`. No part of this package checks them. Default `false`.
   */
  readonly trustHints?: boolean
  /** Whether there are tools that list and read the resources of a server that has some. Default `false`. */
  readonly resources?: boolean
  /** Takes a line on each tool that is left out, with its reason, or that the server changed. Default: `Effect.logWarning`. */
  readonly leftOut?: (line: string) => Effect.Effect<void>
}

/**
 * Returns the name that a tool of a server has for the model.
 *
 * **Details**
 *
 * It is `mcp__<server>__<tool>`. A name that is longer than 64 characters, or that could also be the one of another tool, is cut and
 * ends with a hash.
 *
 * **Example** (Naming tools)
 *
 * ```ts
 * import { McpTools } from "effect-agent/mcp"
 *
 * console.log(McpTools.nameOf("files", "read_file")) // => mcp__files__read_file
 * console.log(McpTools.nameOf("files", "x".repeat(80)).length) // => 64
 * ```
 *
 * @category getters
 * @since 0.2.0
 */
export const nameOf = (server: string, tool: string): string => of(server, tool)

/**
 * Adds the tools of a server to a registry, such as `agent.tools`, and follows their changes until the scope closes.
 *
 * **Details**
 *
 * - The names are those of `nameOf`. A tool that the server did not change keeps its place and its definition, so that prompt caches hold.
 * - The tools stay while the server is away: their calls fail then, and the model reads why.
 * - Images, structured content (as `details`) and progress arrive as those of other tools. Results have trust `"untrusted"`.
 * - The hints of the server, such as `readOnlyHint`, count with `trustHints` alone: they are claims.
 *
 * **Example** (Choosing the tools of a server)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-agent"
 * import { McpClient, McpTools } from "effect-agent/mcp"
 *
 * export const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5" })
 *   const web = yield* McpClient.connect("web", { url: "https://example.com/mcp" }, { required: false })
 *   yield* McpTools.join(agent.tools, web, { deny: ["delete_page"], timeout: "5 minutes" })
 *   return yield* agent.prompt("Which pages are there?")
 * }).pipe(Effect.scoped)
 * ```
 *
 * @category combinators
 * @since 0.2.0
 */
export const join = Effect.fnUntraced(function* (
  registry: ToolRegistry.ToolRegistry["Service"],
  client: McpClient,
  options: Options = {}
): Effect.fn.Return<void, never, Scope.Scope> {
  const owner = `mcp ${client.name}`
  let known: ReadonlyMap<string, Tool.Runnable> = new Map()
  const seen = new Map<string, string>()
  const reported = new Set<string>()
  const report = Effect.fnUntraced(function* (line: string) {
    if (!reported.has(line)) yield* (options.leftOut ?? Effect.logWarning)(line)
    reported.add(line)
  })
  let last: State["tools"] | undefined
  const sync = Effect.fnUntraced(function* (state: State) {
    if (state.tools === last) return
    last = state.tools
    const made = new Map<string, Tool.Runnable>()
    for (const line of state.leftOut ?? []) yield* report(line)
    for (const tool of chosen(state, options)) {
      const key = JSON.stringify(tool)
      const isChanged = (seen.get(tool.name) ?? key) !== key
      seen.set(tool.name, key)
      if (isChanged)
        yield* report(`The MCP server ${client.name} changed its tool ${tool.name}: ${key.slice(0, 200)}`)
      const found = known.get(key) ?? toolOf(client, tool, options)
      if (typeof found !== "string") made.set(key, found)
      else yield* report(found)
    }
    const extra = state.hasResources && options.resources === true ? resourceTools(client, known) : []
    for (const tool of extra) made.set(tool.name, tool)
    known = made
    const taken = yield* registry.replace(owner, [...made.values()])
    if (taken.length > 0) yield* Effect.logWarning(`Other tools have the names ${taken.join(", ")}`)
  })
  yield* Effect.flatMap(client.state, sync)
  yield* Effect.forkScoped(Stream.runForEach(client.states, sync))
  yield* Effect.addFinalizer(() => registry.replace(owner, []))
})

const chosen = ({ tools }: State, { deny = [], only }: Options): ReadonlyArray<ServerTool> =>
  tools.filter(({ name }) => (only === undefined || only.includes(name)) && !deny.includes(name))

/** The tool, or a line on why it is left out. */
const toolOf = (
  client: McpClient,
  { annotations, description = "", inputSchema, name, title }: ServerTool,
  { timeout = "1 minute", trustHints = false }: Options
): Tool.Runnable | string => {
  const label = title ?? annotations?.title
  const leftOut = (reason: string) => McpConnection.leftOut(client.name, name, reason)
  const tooLarge = McpConnection.sizeFault(inputSchema)
  if (tooLarge !== undefined) return leftOut(tooLarge)
  const made = Result.try(() =>
    Tool.fromJsonSchema({
      name: of(client.name, name),
      ...(label === undefined ? {} : { label: shortened(label, maxLabel) }),
      description: shortened(description, maxDescription),
      parameters: isJson(inputSchema) ? inputSchema : null,
      // The client bounds a call, by the time without progress.
      timeout: "Infinity",
      trust: "untrusted",
      ...(trustHints ? effectOf(annotations ?? {}) : {}),
      execute: (params) => client.callTool(name, params, { timeout })
    })
  )
  return Result.isSuccess(made)
    ? made.success
    : leftOut(made.failure instanceof Tool.InvalidTool ? made.failure.detail : String(made.failure))
}

/** The most characters of texts. Each request to the model repeats them, and no tool that is meant well has so many. */
const maxDescription = 16_000
const maxLabel = 200

const shortened = (text: string, length: number): string =>
  text.length <= length
    ? text
    : `${text.slice(0, length)} … (cut after ${length} of ${text.length} characters)`

const effectOf = ({
  idempotentHint = false,
  readOnlyHint = false
}: NonNullable<ServerTool["annotations"]>): Pick<Tool.Runnable, "effect"> =>
  readOnlyHint ? { effect: "pure" } : idempotentHint ? { effect: "idempotent" } : {}

const resourceTools = (
  client: McpClient,
  known: ReadonlyMap<string, Tool.Runnable>
): ReadonlyArray<Tool.Runnable> => {
  const shared = { effect: "pure", trust: "untrusted", timeout: Duration.minutes(1) } as const
  const [list, read] = [of(client.name, "list_resources"), of(client.name, "read_resource")]
  return [
    known.get(list) ??
      Tool.make({
        ...shared,
        name: list,
        description: `Lists the resources of ${client.name}: their addresses, names and kinds.`,
        execute: () => listing(client)
      }),
    known.get(read) ??
      Tool.make({
        ...shared,
        name: read,
        description: `Reads a resource of ${client.name}.`,
        params: Schema.Struct({
          uri: Schema.String.annotate({ description: "The address of the resource" })
        }),
        execute: ({ uri }) => Effect.map(client.readResource(uri), (content) => Tool.output(content))
      })
  ]
}

const listing = Effect.fnUntraced(function* (client: McpClient) {
  const resources = yield* client.resources
  const templates = yield* Effect.orElseSucceed(client.resourceTemplates, () => [])
  const lines = [
    ...resources.map(({ mimeType = "", name, uri }) => `${uri} ${name} ${mimeType}`.trim()),
    ...templates.map(({ name, uriTemplate }) => `${uriTemplate} ${name}`)
  ]
  return lines.length === 0 ? "There are no resources." : lines.join("\n")
})

/** Most characters of the name of a tool. */
const max = 64

/** A name of a server that ends where the next `__` begins. */
const isPlain = (server: string): boolean => /^[a-zA-Z0-9-]+(?:_[a-zA-Z0-9-]+)*$/.test(server)

/** `mcp__<server>__<tool>`; with a hash at its end if it would be too long, or could also be that of another tool. */
const of = (server: string, tool: string): string => {
  const name = `mcp__${server}__${tool}`
  if (name.length <= max && isPlain(server) && /^[a-zA-Z0-9-][\w-]*$/.test(tool)) return name
  const hash = (Hash.string(JSON.stringify([server, tool])) >>> 0).toString(16).padStart(8, "0")
  return `${name.replace(/[^\w-]/g, "_").slice(0, max - 9)}_${hash}`
}
