/** The options of the command line. */
import * as Arr from "effect/Array"
import * as Argument from "effect/cli/Argument"
import * as CliConfig from "effect/cli/CliConfig"
import type * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as RunOptions from "../RunOptions.ts"
import * as LocalRules from "../providers/LocalRules.ts"
import * as CommandRules from "../tools/CommandRules.ts"
import * as Tools from "../tools/Tools.ts"
import { modelName } from "./ModelChoice.ts"
import type { Request } from "./ModelList.ts"
import { companies } from "./Vendors.ts"

/** The variable with the value of a flag that is not given. */
const variable = (flag: (typeof fromVariable)[number]): string =>
  `EFFECT_AGENT_${flag.toUpperCase().replaceAll("-", "_")}`

/** Flags that also have a variable, beside `--model`. */
const fromVariable = ["base-url", "effort", "max-tokens", "temperature", "sandbox", "allow", "deny"] as const

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
  "Shell commands run in a sandbox where bubblewrap (Linux) or sandbox-exec (macOS) works. They can change the",
  "folder of the tools, but not .git and the settings of other programs, and have no network.",
  "",
  "Variables for flags that are not given:",
  `${Arr.chunksOf(fromVariable.map(variable), 4)
    .map((names) => names.join(", "))
    .join(",\n  ")}.`,
  "",
  "Traces and metrics go to the collector of OTEL_EXPORTER_OTLP_ENDPOINT, if it is set.",
  "Requests go through the proxy of HTTPS_PROXY or HTTP_PROXY, except for the hosts of NO_PROXY and this machine.",
  "",
  "The answer goes to stdout, everything else to stderr. Exit codes: 0 answered, 1 failed or cut short,",
  "2 wrong usage, 3 a limit was reached, 5 refused and no answer, 130 interrupted, 143 terminated."
].join("\n  ")

type Name = (typeof Tools.names)[number]

const isName = (name: string): name is Name => Tools.names.some((known) => known === name)

const items = (list: string): ReadonlyArray<string> =>
  list
    .split(",")
    .map((item) => item.trim())
    .filter(Boolean)

const namesIn = (list: string): Option.Option<ReadonlyArray<Name>> => {
  const names = items(list)
  return names.length > 0 && names.every(isName) ? Option.some(names) : Option.none()
}

/** The tools and commands that `--allow` or `--deny` name. */
export interface Named {
  readonly tools: ReadonlySet<string>
  /** Rules for commands of the tool `shell`. */
  readonly commands: ReadonlyArray<CommandRules.Words>
}

/** Names of tools, and `shell(git status)` for a rule, separated by commas. */
const namedIn = (list: string): Option.Option<Named> => {
  const rules = Array.from(list.matchAll(ruleIn), ([, text = ""]) => CommandRules.parseRule(text))
  const commands = rules.flatMap((rule) => (Result.isSuccess(rule) ? [rule.success] : []))
  const others = items(list.replaceAll(ruleIn, ","))
  const isRead = rules.length === commands.length && rules.length + others.length > 0
  return isRead && others.every(isName) ? Option.some({ tools: new Set(others), commands }) : Option.none()
}

// A rule holds no brackets, because rules cannot read them.
const ruleIn = /(?<=^|,)\s*shell\(([^()]*)\)\s*(?=,|$)/g

const tools = (): string => `names out of ${Tools.names.join(", ")}`

const units = { ms: "millis", s: "seconds", m: "minutes", h: "hours" } as const

const isUnit = (unit: string): unit is keyof typeof units => unit in units

/** `90` and `90s` are seconds. Also `500ms`, `5m`, `2h`. */
const durationOf = (text: string): Option.Option<Duration.Duration> => {
  const [, count, unit = "s"] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text) ?? []
  return count === undefined || Number(count) === 0 || !isUnit(unit)
    ? Option.none()
    : Option.some(Duration.fromInputUnsafe(`${Number(count)} ${units[unit]}`))
}

/** An address without the slash at its end. */
const addressOf = (text: string): Option.Option<string> => {
  const url = /^https?:\/\//.test(text) ? URL.parse(text) : null
  return url === null ? Option.none() : Option.some(text.replace(/\/+$/, ""))
}

const value = (name: string, metavar: string, text: string) =>
  Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(text))

const is = (name: string, text: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(text), Flag.withDefault(false), Flag.withoutNegation)

const positive = (name: string, text: string) =>
  Flag.Int(name).pipe(Flag.withMetavar("N"), Flag.withDescription(text))

const aboveZero = Flag.filter(
  (count: number) => count > 0,
  () => "a number above 0"
)

const named = (name: "allow" | "deny", text: string) =>
  value(name, "NAME", text).pipe(
    Flag.atLeast(1),
    Flag.withFallbackConfig(Config.map(Config.String(variable(name)), Arr.of)),
    Flag.withDefault([]),
    Flag.filterMap(
      (lists) => Option.all(lists.map(namedIn)),
      () => `${tools()}, or shell(COMMAND) with a command of plain words`
    ),
    Flag.map(
      (lists): Named => ({
        tools: new Set(lists.flatMap(({ tools }) => [...tools])),
        commands: lists.flatMap(({ commands }) => commands)
      })
    )
  )

const sandboxes = ["auto", "require", "off"] as const

const baseUrl = value("base-url", "URL", "Address of the API, instead of that of the provider").pipe(
  Flag.withFallbackConfig(Config.String(variable("base-url"))),
  Flag.filterMap(addressOf, () => "an address such as http://127.0.0.1:8000/v1"),
  Flag.optional
)

const config = {
  prompt: Argument.String("prompt").pipe(
    Argument.withDescription("What to do; - reads it from stdin. Piped stdin is appended."),
    Argument.variadic(),
    Argument.map((words) => words.join(" "))
  ),
  model: value("model", "PROVIDER/ID", "The model, such as openai/gpt-5.5 or ollama/qwen3").pipe(
    Flag.withAlias("m"),
    Flag.optional
  ),
  baseUrl,
  effort: Flag.Literals("effort", RunOptions.ThinkingLevel.literals).pipe(
    Flag.withMetavar("LEVEL"),
    Flag.withDescription("Effort of reasoning. Default: that of the model"),
    Flag.withFallbackConfig(Config.Literals(RunOptions.ThinkingLevel.literals, variable("effort"))),
    Flag.optional
  ),
  maxTokens: positive("max-tokens", "Maximum tokens of one answer. Default: that of the provider").pipe(
    Flag.withFallbackConfig(Config.Int(variable("max-tokens"))),
    aboveZero,
    Flag.optional
  ),
  temperature: Flag.Finite("temperature").pipe(
    Flag.withMetavar("N"),
    Flag.withDescription("Randomness of the answer, from 0 to 2. Default: that of the model"),
    Flag.withFallbackConfig(Config.Finite(variable("temperature"))),
    Flag.filter(
      (temperature) => temperature >= 0 && temperature <= 2,
      () => "a number from 0 to 2"
    ),
    Flag.optional
  ),
  print: is("print", "Answer and exit, without asking for approvals").pipe(Flag.withAlias("p")),
  json: is("json", "Write one event per line to stdout, as JSON"),
  output: Flag.File("output").pipe(
    Flag.withAlias("o"),
    Flag.withMetavar("FILE"),
    Flag.withDescription("Write the final answer to a file too"),
    Flag.optional
  ),
  system: value("system", "TEXT", "System prompt, instead of the default one").pipe(Flag.optional),
  cwd: Flag.Directory("cwd", { mustExist: true }).pipe(
    Flag.withMetavar("DIR"),
    Flag.withDescription("Folder of the tools. Default: the current one"),
    Flag.withDefault(".")
  ),
  tools: value(
    "tools",
    "NAMES",
    "Tools that the model may call, separated by commas, or none. Default: all"
  ).pipe(
    Flag.filterMap(
      (list) => (list === "none" ? Option.some([]) : namesIn(list)),
      () => `none, or ${tools()}`
    ),
    Flag.withDefault(Tools.names)
  ),
  allow: named(
    "allow",
    "Let this tool run without asking, or with shell(git status) the commands that begin so. May be repeated"
  ),
  deny: named("deny", "Never let this tool or command run. Wins over --allow and --yes. May be repeated"),
  sandbox: Flag.Literals("sandbox", sandboxes).pipe(
    Flag.withDescription(
      "Sandbox of shell commands: auto uses one that works, require refuses to start without. Default: auto"
    ),
    Flag.withFallbackConfig(Config.Literals(sandboxes, variable("sandbox"))),
    Flag.withDefault("auto")
  ),
  network: is("network", "Let commands in the sandbox use the network"),
  writable: Flag.Directory("writable", { mustExist: true }).pipe(
    Flag.withMetavar("DIR"),
    Flag.withDescription("Let commands in the sandbox change this folder too. May be repeated"),
    Flag.atLeast(0)
  ),
  yes: is("yes", "Let every tool run without asking").pipe(Flag.withAlias("y")),
  maxTurns: positive("max-turns", "Maximum model calls. Default: 50").pipe(aboveZero, Flag.optional),
  timeout: value("timeout", "TIME", "Time limit of the run, such as 90s, 5m or 1h. Default: none").pipe(
    Flag.filterMap(durationOf, () => "a time such as 90s, 5m or 1h"),
    Flag.optional
  ),
  noDetect: is("no-detect", "Do not look for a local server when no key is set. CI=true does the same"),
  noColor: is("no-color", "No colours on a terminal. NO_COLOR does the same"),
  verbose: is("verbose", "Log more on stderr, including causes of failures. DEBUG does the same")
}

const command = Command.make("effect-agent", config)

const models = Command.make("models", {
  provider: Argument.String("provider").pipe(
    Argument.withDescription(
      "Such as anthropic or ollama. Default: that of the model that a prompt would go to"
    ),
    Argument.optional
  ),
  baseUrl: baseUrl.pipe(Flag.withDescription("Address of a local server, instead of its usual one")),
  json: is("json", "Write one model per line, as JSON")
}).pipe(
  Command.withDescription(
    "Lists the models of a provider, with window, largest answer, thinking levels and prices"
  )
)

/** The parsed options. */
export type Settings = Command.Command.Config.Infer<typeof config>

/** Parses the command line. None if it requested help or, with `list`, the models of a provider: both are then shown. */
export const parse = Effect.fnUntraced(function* <E, R>(
  args: ReadonlyArray<string>,
  version: string,
  list: (request: Request) => Effect.Effect<void, E, R>
): Effect.fn.Return<Option.Option<Settings>, CliError.CliError | E, Command.Environment | R> {
  const parsed = yield* Ref.make(Option.none<Settings>())
  const parsing = command.pipe(
    Command.withDescription(description),
    Command.withHandler((settings) => Ref.set(parsed, Option.some(settings))),
    Command.withSubcommands([Command.withHandler(models, list)])
  )
  yield* Command.runWith(parsing, { version })(args).pipe(
    Effect.provideService(
      CliConfig.CliConfig,
      CliConfig.make({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] })
    )
  )
  return yield* Ref.get(parsed)
})
