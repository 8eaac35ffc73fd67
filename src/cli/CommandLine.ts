/** The commands of the program, and their help. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Argument from "effect/cli/Argument"
import * as CliConfig from "effect/cli/CliConfig"
import type * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as LocalRules from "../providers/LocalRules.ts"
import * as Tools from "../tools/Tools.ts"
import * as ExitCode from "./ExitCode.ts"
import { modelName } from "./agent/ModelChoice.ts"
import { companies } from "./agent/Vendors.ts"
import type { Request as ConfigRequest } from "./commands/ConfigList.ts"
import type { Request as ModelsRequest } from "./commands/ModelList.ts"
import { plainFlag, plainText } from "./settings/Setting.ts"
import * as ServerSettings from "./settings/ServerSettings.ts"
import * as SettingTable from "./settings/SettingTable.ts"
import type { PlaceFlags } from "./settings/Settings.ts"
import * as Values from "./settings/Values.ts"
import * as Words from "./Words.ts"
import { RunStatus } from "../AgentEvent.ts"
import type * as Payload from "../api/Payload.ts"

const { noSession: _noSession, json: asJson, ...served } = SettingTable.serving
const { healthPort, tokenFile, url, ...ofServe } = ServerSettings.flags
const { clusterHost, clusterPort, grace, lease, retain, sessionModel, unknown } = ofServe

/** The parsed flags of `effect-agent serve` and `effect-agent worker`; each has those of the other as absent. */
export type ServingLine = SettingTable.Flags & ServerSettings.Flags

const serve = Command.make("serve", {
  ...served,
  json: Flag.withDescription(asJson, "Write the address, and a new token, as a line of JSON on stdout"),
  ...ofServe,
  tokenFile
}).pipe(
  Command.withDescription(
    "Serves sessions and runs over HTTP. The model, tool and policy flags mean what they mean for a prompt"
  )
)

const worker = Command.make("worker", {
  ...served,
  json: Flag.withDescription(asJson, "Write the addresses as a line of JSON on stdout"),
  clusterHost,
  clusterPort,
  healthPort,
  grace,
  lease,
  retain,
  sessionModel,
  unknown
}).pipe(
  Command.withDescription(
    "Runs sessions of the PostgreSQL database of --store, together with effect-agent serve --durable and other workers. The model, tool and policy flags mean what they mean for a prompt"
  )
)

const reached = { url, tokenFile, json: plainFlag("json", "Write JSON") }
const run = Argument.String("run").pipe(Argument.withDescription("The id of the run, or its beginning"))
const reason = plainText("reason", "TEXT", "The reason, which the events of the run show")

const statuses = ["queued", "running", "paused", "waiting", ...RunStatus.literals] as const

const list = Command.make("list", {
  session: Argument.String("session").pipe(
    Argument.withDescription("The id of the session. Default: all sessions of the server"),
    Argument.optional
  ),
  status: Flag.Literals("status", statuses).pipe(
    Flag.withMetavar("STATUS"),
    Flag.withDescription(`The status of the runs: ${statuses.join(", ")}. Default: each`),
    Flag.optional
  ),
  limit: Flag.Int("limit").pipe(
    Flag.withMetavar("N"),
    Flag.withDescription("The most runs, the newest ones. Default: 50"),
    Flag.filter(
      (limit) => limit > 0,
      () => "a number above 0"
    ),
    Flag.withDefault(50)
  ),
  ...reached
}).pipe(
  Command.withDescription(
    "Lists runs: the newest of all sessions first, or those of a session, the oldest first"
  )
)
const show = Command.make("show", { run, ...reached }).pipe(
  Command.withDescription("Shows the state of a run")
)
const watch = Command.make("watch", {
  run,
  after: Flag.Int("after").pipe(
    Flag.withMetavar("N"),
    Flag.withDescription("The position of the last event that you have. Default: 0, the start of the run"),
    Flag.withDefault(0)
  ),
  ...reached
}).pipe(Command.withDescription("Writes the events of a run until it is over"))
const cancel = Command.make("cancel", { run, reason, ...reached }).pipe(
  Command.withDescription("Cancels a run")
)
const resume = Command.make("resume", { run, reason, ...reached }).pipe(
  Command.withDescription("Continues a run that is paused, or that the server has parked")
)
const remove = Command.make("rm", { run, ...reached }).pipe(
  Command.withDescription("Removes a run that has ended, and its events. The conversation stays")
)

interface Server extends Command.Command.Config.Infer<typeof reached> {}

/** The arguments of `effect-agent runs`. */
export type RunsLine = Server &
  (
    | {
        readonly action: "list"
        readonly session: Option.Option<string>
        readonly status: Option.Option<Payload.ListedStatus>
        readonly limit: number
      }
    | { readonly action: "show" | "rm"; readonly run: string }
    | { readonly action: "watch"; readonly run: string; readonly after: number }
    | { readonly action: "cancel" | "resume"; readonly run: string; readonly reason: Option.Option<string> }
  )

/** The command `runs`, with a function that runs it. */
const runs = <E, R>(handle: (line: RunsLine) => Effect.Effect<void, E, R>) =>
  Command.make("runs").pipe(
    Command.withDescription("Lists, watches and manages the runs of a server"),
    Command.withSubcommands([
      list.pipe(Command.withHandler((line) => handle({ ...line, action: "list" }))),
      show.pipe(Command.withHandler((line) => handle({ ...line, action: "show" }))),
      watch.pipe(Command.withHandler((line) => handle({ ...line, action: "watch" }))),
      cancel.pipe(Command.withHandler((line) => handle({ ...line, action: "cancel" }))),
      resume.pipe(Command.withHandler((line) => handle({ ...line, action: "resume" }))),
      remove.pipe(Command.withHandler((line) => handle({ ...line, action: "rm" })))
    ])
  )

const keyNames = new Set(companies.flatMap(({ keyNames, model }) => (model === undefined ? [] : keyNames)))

// The library indents the first line only.
const description = [
  "Asks a model, runs the tools it calls, asks again, and streams the answer.",
  "",
  `--model or ${modelName} names the model. Without them the program uses the first key that is set, then`,
  "a local server at its default port (Ollama, LM Studio, llama.cpp, vLLM, Jan), then local/rules. Keys, in order:",
  `${Arr.chunksOf([...keyNames], 4)
    .map((names) => names.join(", "))
    .join(",\n  ")}.`,
  "",
  "local/rules is not a language model. It understands a few verbs, joined by and, then or commas:",
  ...LocalRules.verbs.split("; ").map((verb) => `  ${verb}`),
  "",
  `Tools: ${Tools.names.join(", ")}. Those that change something (${[...Tools.changing].join(", ")})`,
  "require an approval on a terminal, and are refused without one, unless --allow or --yes is given.",
  "Of the flags --deny wins over --allow, --allow over --yes, and --yes over --approve.",
  "Shell commands run in a sandbox where bubblewrap (Linux) or sandbox-exec (macOS) works. They can change the",
  "folder of the tools, but not .git and the settings of other programs, and have no network.",
  "",
  "Each flag has a variable, such as EFFECT_AGENT_MAX_TURNS for --max-turns, where commas separate the items of a",
  "list; --yes, --allow and --approve allow have none. A flag wins over its variable, a variable over",
  ".effect-agent/config.json of the project, and that over $XDG_CONFIG_HOME/effect-agent/config.json.",
  "",
  "Traces and metrics go to the collector of OTEL_EXPORTER_OTLP_ENDPOINT, if it is set.",
  "Requests go through the proxy of HTTPS_PROXY or HTTP_PROXY, except for the hosts of NO_PROXY and this machine.",
  "",
  "The answer goes to stdout, everything else to stderr. Exit codes: 0 answered, 1 failed or cut short,",
  "2 wrong usage, 3 a limit was reached, 4 suspended: it waits for an approval, 5 refused: no answer, or --fail-on-refusal is given, 130 interrupted, 143 terminated."
].join("\n  ")

const examples = [
  { command: 'effect-agent "fix the failing test"', description: "Asks before it writes or runs anything" },
  { command: 'git diff | effect-agent -p "review this"', description: "Appends stdin to the prompt" },
  {
    command: "effect-agent --allow 'shell(npm test)' \"run the tests\"",
    description: "Lets these commands run without asking"
  },
  {
    command: 'effect-agent -c "and now the docs"',
    description: "Continues the newest session of this folder"
  },
  { command: 'effect-agent --approve defer "clean up"', description: "Ends where a call needs an approval" },
  {
    command: 'effect-agent --url http://127.0.0.1:4111 "clean up"',
    description: "Runs the prompt at a server, which has the token of EFFECT_AGENT_TOKEN"
  },
  { command: 'effect-agent --json "list src" | jq -c ._tag', description: "Writes one event on each line" }
]

const prompt = Argument.String("prompt").pipe(
  Argument.withDescription("What to do; - reads it from stdin. Piped stdin is appended."),
  Argument.variadic(),
  Argument.map((words) => words.join(" "))
)

const line = { prompt, ...SettingTable.flags, url, tokenFile }

const models = Command.make("models", {
  filter: Argument.String("filter").pipe(
    Argument.withDescription(
      "A provider, such as anthropic or ollama, or a part of the name of a model, such as gpt-5.5. Default: the provider that a prompt would go to"
    ),
    Argument.optional
  ),
  baseUrl: Flag.String("base-url").pipe(
    Flag.withMetavar("URL"),
    Flag.withDescription("Address of a local server, instead of its usual one"),
    Flag.filterMap(Values.address, () => "an address such as http://127.0.0.1:8000/v1"),
    Flag.optional
  ),
  json: plainFlag("json", "Write one model per line, as JSON")
}).pipe(
  Command.withDescription(
    "Lists models, with window, largest answer, what they accept, thinking levels and prices"
  )
)

const { json: _, ...others } = SettingTable.flags

const config = Command.make("config", {
  ...others,
  ...ServerSettings.flags,
  json: plainFlag("json", "Write one object, as JSON"),
  trust: plainFlag(
    "trust",
    "Let the configuration of this project, as it is now, widen what the agent may do"
  ),
  untrust: plainFlag("untrust", "Take that back")
}).pipe(Command.withDescription("Shows the settings that apply, and where each value comes from"))

const { cwd, sessionDir, store } = SettingTable.flags
const place = { cwd, sessionDir, store, json: plainFlag("json", "Write JSON") }
const id = Argument.String("id").pipe(Argument.withDescription("The id of the session, or its beginning"))

const listSessions = Command.make("list", place).pipe(
  Command.withDescription("Lists the sessions of this folder")
)
const showSession = Command.make("show", { id, ...place }).pipe(Command.withDescription("Shows a session"))
const removeSession = Command.make("rm", { id, ...place }).pipe(Command.withDescription("Removes a session"))
const exportSession = Command.make("export", {
  id,
  format: Flag.Literals("format", ["jsonl", "md"]).pipe(
    Flag.withDescription("jsonl: all entries, one a line. md: the conversation. Default: jsonl"),
    Flag.withDefault("jsonl" as const)
  ),
  ...place
}).pipe(Command.withDescription("Writes a session to stdout"))

const rewinding = {
  id,
  to: Flag.Int("to").pipe(
    Flag.withMetavar("N"),
    Flag.withDescription("The prompt to go back before, from the newest one, which is 1. Default: 1"),
    Flag.filter(
      (to) => to > 0,
      () => "a number above 0"
    ),
    Flag.withDefault(1)
  ),
  files: plainFlag("files", "Take back what these prompts changed in files too"),
  dryRun: plainFlag("dry-run", "List what would go back, and change nothing"),
  force: plainFlag("force", "Replace files that changed since, too")
}
const rewindSession = Command.make("rewind", { ...rewinding, ...place }).pipe(
  Command.withDescription("Goes back before a prompt of a session")
)

const approve = Command.make("approve", {
  run: Argument.String("run").pipe(
    Argument.withDescription("The id of the run that waits, or its beginning")
  ),
  approval: Argument.String("approval").pipe(
    Argument.withDescription("The id of the approval or the question, if several wait"),
    Argument.optional
  ),
  yes: plainFlag("yes", "Approve the call").pipe(Flag.withAlias("y")),
  no: plainFlag("no", "Reject the call").pipe(Flag.withAlias("n")),
  answer: plainText(
    "answer",
    "JSON",
    "The answer to a question of the model: JSON, or a text without quotes"
  ),
  hash: plainText("hash", "HEX", "The hash of the params that you have seen: other params are refused"),
  params: plainText("params", "JSON", "Params in place of those of the call"),
  reason: plainText("reason", "TEXT", "The reason, which the model reads if you reject the call"),
  cwd,
  sessionDir,
  store
}).pipe(
  Command.withDescription(
    "Records the answer to an approval or a question that a run waits for, and runs nothing"
  )
)

const { json: _json, ...editing } = SettingTable.serving

const acp = Command.make("acp", editing).pipe(
  Command.withDescription("Serves an editor by the Agent Client Protocol, on stdin and stdout")
)

const { mcpConfig } = SettingTable.flags
const server = Argument.String("name").pipe(Argument.withDescription("The name of the server in the file"))

const signIn = Command.make("login", {
  name: server,
  noBrowser: plainFlag("no-browser", "Open no browser, and take the address that you were sent to, pasted"),
  cwd,
  mcpConfig
}).pipe(Command.withDescription("Signs in to an MCP server, and keeps its tokens"))

const signOut = Command.make("logout", { name: server, cwd, mcpConfig }).pipe(
  Command.withDescription("Forgets the tokens of an MCP server")
)

const listServers = Command.make("list", {
  json: plainFlag("json", "Write one object, as JSON"),
  cwd,
  mcpConfig
}).pipe(Command.withDescription("Connects to the MCP servers, and lists their states"))

/** The command `mcp`, with functions that serve, and that run the commands below it. */
const mcp = <E, R>(
  serve: (flags: SettingTable.Flags) => Effect.Effect<void, E, R>,
  handle: (line: McpLine) => Effect.Effect<void, E, R>
) =>
  Command.make("mcp", editing).pipe(
    Command.withHandler((flags) => serve({ ...SettingTable.absent, ...flags })),
    Command.withDescription(
      "Serves the tools, and the agent as the tool agent, to MCP clients, on stdin and stdout. Tools that change something are refused without --allow or --yes. login, logout and list are for the servers of --mcp-config"
    ),
    Command.withSubcommands([
      signIn.pipe(Command.withHandler((line) => handle({ ...line, action: "login" }))),
      signOut.pipe(Command.withHandler((line) => handle({ ...line, action: "logout" }))),
      listServers.pipe(Command.withHandler((line) => handle({ ...line, action: "list" })))
    ])
  )

/** The arguments of `effect-agent mcp login`, `logout` and `list`. */
export type McpLine = Pick<SettingTable.Flags, "cwd" | "mcpConfig"> &
  (
    | { readonly action: "login"; readonly name: string; readonly noBrowser: boolean }
    | { readonly action: "logout"; readonly name: string }
    | { readonly action: "list"; readonly json: boolean }
  )

/** The command `sessions`, with a function that runs it. */
const sessions = <E, R>(handle: (line: SessionsLine) => Effect.Effect<void, E, R>) => {
  const list = (line: Command.Command.Config.Infer<typeof place>) => handle({ ...line, action: "list" })
  return Command.make("sessions", place).pipe(
    Command.withHandler(list),
    Command.withDescription("Lists the sessions of this folder, and shows, writes or removes one"),
    Command.withSubcommands([
      listSessions.pipe(Command.withHandler(list)),
      showSession.pipe(Command.withHandler((line) => handle({ ...line, action: "show" }))),
      exportSession.pipe(Command.withHandler((line) => handle({ ...line, action: "export" }))),
      rewindSession.pipe(Command.withHandler((line) => handle({ ...line, action: "rewind" }))),
      removeSession.pipe(Command.withHandler((line) => handle({ ...line, action: "rm" })))
    ])
  )
}

/** The line of a run: its prompt and its flags. */
export type Line = Command.Command.Config.Infer<typeof line>

/** The arguments of `effect-agent sessions`. */
export type SessionsLine = PlaceFlags & { readonly json: boolean } & (
    | { readonly action: "list" }
    | { readonly action: "show" | "rm"; readonly id: string }
    | { readonly action: "export"; readonly id: string; readonly format: "jsonl" | "md" }
    | RewindLine
  )

/** The arguments of `effect-agent sessions rewind`. */
export type RewindLine = { readonly action: "rewind" } & Command.Command.Config.Infer<typeof rewinding>

/** The arguments of `effect-agent approve`. */
export interface ApproveLine extends PlaceFlags {
  readonly run: string
  readonly approval: Option.Option<string>
  readonly yes: boolean
  readonly no: boolean
  readonly answer: Option.Option<string>
  readonly hash: Option.Option<string>
  readonly params: Option.Option<string>
  readonly reason: Option.Option<string>
}

/** The commands beside a prompt. Each returns its exit code. */
export interface Commands<E, R> {
  readonly models: (request: ModelsRequest) => Effect.Effect<number, E, R>
  readonly config: (request: ConfigRequest) => Effect.Effect<number, E, R>
  readonly approve: (request: ApproveLine) => Effect.Effect<number, E, R>
  readonly sessions: (request: SessionsLine) => Effect.Effect<number, E, R>
  readonly runs: (request: RunsLine) => Effect.Effect<number, E, R>
  readonly acp: (flags: SettingTable.Flags) => Effect.Effect<number, E, R>
  readonly mcp: (flags: SettingTable.Flags) => Effect.Effect<number, E, R>
  readonly mcpServers: (line: McpLine) => Effect.Effect<number, E, R>
}

/** A run or a server that is to begin, or the exit code of what is done. */
type Parsed =
  | { readonly line: Line }
  | { readonly serve: ServingLine }
  | { readonly worker: ServingLine }
  | { readonly code: number }

const absent = { ...SettingTable.absent, ...ServerSettings.absent }

/** Parses the command line. Runs the command, if it names one, and shows the help, if it requests that. */
export const parse = Effect.fnUntraced(function* <E, R>(
  args: ReadonlyArray<string>,
  version: string,
  commands: Commands<E, R>
): Effect.fn.Return<Parsed, CliError.CliError | ExitCode.UsageError | E, Command.Environment | R> {
  const parsed = yield* Ref.make<Parsed>({ code: ExitCode.answered })
  const finish = (run: Effect.Effect<number, E, R>) =>
    Effect.flatMap(run, (code) => Ref.set(parsed, { code }))
  const handled = <A>(run: (request: A) => Effect.Effect<number, E, R>) =>
    Command.withHandler((request: A) => finish(run(request)))
  const parsing = Command.make("effect-agent", line, (line) => Ref.set(parsed, { line })).pipe(
    Command.withDescription(description),
    Command.withExamples(examples),
    Command.withSubcommands([
      models.pipe(handled(commands.models)),
      config.pipe(handled(commands.config)),
      approve.pipe(handled(commands.approve)),
      serve.pipe(Command.withHandler((line) => Ref.set(parsed, { serve: { ...absent, ...line } }))),
      worker.pipe(Command.withHandler((line) => Ref.set(parsed, { worker: { ...absent, ...line } }))),
      runs((line) => finish(commands.runs(line))),
      acp.pipe(handled((flags) => commands.acp({ ...SettingTable.absent, ...flags }))),
      mcp(
        (flags) => finish(commands.mcp(flags)),
        (line) => finish(commands.mcpServers(line))
      ),
      sessions((line) => finish(commands.sessions(line)))
    ])
  )
  const names = new Set(parsing.subcommands.flatMap(({ commands }) => commands.map(({ name }) => name)))
  yield* Command.runWith(parsing, { version })(Words.read(args, names)).pipe(
    Effect.provideService(
      CliConfig.CliConfig,
      CliConfig.make({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] })
    )
  )
  const done = yield* Ref.get(parsed)
  const misspelt = "line" in done ? Words.misspelling(done.line.prompt, args, names) : undefined
  return misspelt === undefined ? done : yield* new ExitCode.UsageError({ detail: misspelt })
})
