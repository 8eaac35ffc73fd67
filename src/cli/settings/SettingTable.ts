/** All settings of a run, in the order of the help. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import type * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as RunOptions from "../../RunOptions.ts"
import { table as limits } from "../../internal/limitTable.ts"
import * as PromptSettings from "./PromptSettings.ts"
import * as ServerSettings from "./ServerSettings.ts"
import * as SessionSettings from "./SessionSettings.ts"
import * as Setting from "./Setting.ts"
import * as Values from "./Values.ts"

/** A project must not change this setting without the user's consent. */
const always = { widens: () => true }

/** `words` are in order, the narrowest first. */
const narrower = <Words extends ReadonlyArray<string>>(
  words: Words,
  usual: Words[number]
): Pick<Setting.Rules<Words[number]>, "widens"> => ({
  widens: (value, otherwise) => words.indexOf(value) > words.indexOf(Option.getOrElse(otherwise, () => usual))
})

/** Names of environment variables. */
const variables = (texts: ReadonlyArray<string>) =>
  texts.every((text) => /^[A-Za-z_]\w*$/.test(text)) ? Option.some(texts) : Option.none()

const named = (texts: ReadonlyArray<string>) =>
  Option.map(Option.all(texts.map(Values.named)), Values.together)

const toolsAndRules = `${Values.knownTools}, mcp__SERVER__TOOL, or shell(COMMAND) with a command of plain words`

const threshold = (text: string) =>
  text === "off"
    ? Option.some(Infinity)
    : Values.number((value) => value === 0 || Values.isCount(value))(text)

const sandboxes = ["auto", "require", "off"] as const
const approvals = ["ask", "deny", "allow", "defer"] as const

/** A project may lower a bound, which is `usual` where the user has none. */
const below = (usual = Infinity): Pick<Setting.Rules<number>, "widens"> => ({
  widens: (value, otherwise) => value > Option.getOrElse(otherwise, () => usual)
})

const ofTools = {
  cwd: Setting.text({
    name: "cwd",
    metavar: "DIR",
    description: "Folder of the tools. Default: the current one",
    flag: Flag.Directory("cwd"),
    read: Values.nonEmpty,
    expected: "a folder",
    isKept: false
  }),
  tools: Setting.list({
    name: "tools",
    metavar: "NAMES",
    description: "Tools that the model may call, separated by commas, or none. Default: all",
    read: (texts) => Option.map(Option.all(texts.map(Values.toolNames)), (lists) => lists.flat()),
    expected: `none, or ${Values.knownTools}`,
    split: (text) => [text],
    rules: {
      widens: (names, otherwise) => {
        const own: ReadonlyArray<string> = Option.getOrElse(otherwise, () => Values.tools)
        return names.some((name) => !own.includes(name))
      }
    }
  }),
  approve: Setting.choice({
    name: "approve",
    words: approvals,
    description:
      "What to do with a call that needs an approval: ask a person, deny or allow it, or end the run and wait (defer). Default: ask on a terminal, else deny",
    rules: { isVariable: (mode) => mode !== "allow", ...narrower(["deny", "defer", "ask", "allow"], "ask") }
  }),
  allow: Setting.list({
    name: "allow",
    metavar: "NAME",
    description:
      "Let this tool run without asking, or with shell(git status) the commands that begin so. May be repeated",
    read: named,
    expected: toolsAndRules,
    split: (text) => [text],
    rules: { isVariable: () => false, ...always }
  }),
  deny: Setting.list({
    name: "deny",
    metavar: "NAME",
    description: "Never let this tool or command run. Wins over --allow and --yes. May be repeated",
    read: named,
    expected: toolsAndRules,
    split: (text) => [text],
    rules: { join: Values.together }
  }),
  yes: Setting.toggle({
    name: "yes",
    alias: "y",
    description: "Let every tool run without asking",
    rules: { isVariable: () => false, widens: (isOn) => isOn }
  }),
  plan: Setting.toggle({
    name: "plan",
    description:
      "Begin in plan mode: the model changes nothing, and proposes a plan. Without a terminal the plan is the answer",
    isKept: false
  }),
  taskList: Setting.toggle({
    name: "task-list",
    description:
      "Let the model keep a list of its tasks, which the user sees. --no-task-list takes the tool away. Default: true",
    isNegated: true
  }),
  sandbox: Setting.choice({
    name: "sandbox",
    words: sandboxes,
    description:
      "Sandbox of shell commands: auto uses one that works, require refuses to start without. Default: auto",
    rules: narrower(["require", "auto", "off"], "auto")
  }),
  network: Setting.toggle({
    name: "network",
    description: "Let commands in the sandbox use the network",
    rules: { widens: (isOn) => isOn }
  }),
  writable: Setting.list({
    name: "writable",
    metavar: "DIR",
    description: "Let commands in the sandbox change this folder too. May be repeated",
    flag: Flag.Directory("writable"),
    read: Values.paths,
    expected: "a folder",
    rules: always
  }),
  passEnv: Setting.list({
    name: "pass-env",
    metavar: "NAME",
    description:
      "Let commands have this variable although it looks like a secret, such as GITHUB_TOKEN. May be repeated",
    read: variables,
    expected: "the name of a variable",
    rules: always
  }),
  mcpConfig: Setting.text({
    name: "mcp-config",
    metavar: "FILE",
    description: 'MCP servers whose tools the model may call: a JSON file {"mcpServers": {…}}',
    read: Values.nonEmpty,
    expected: "a file",
    rules: always
  }),
  noMcp: Setting.toggle({ name: "no-mcp", description: "Use no MCP servers" }),
  noContextFiles: Setting.toggle({
    name: "no-context-files",
    description: "Do not read AGENTS.md and CLAUDE.md"
  }),
  hooksFrom: Setting.list({
    name: "hooks-from",
    metavar: "FILE",
    description: "Run the command hooks of this file too, such as .claude/settings.json. May be repeated",
    read: Values.paths,
    expected: "the path of a file"
  }),
  disableHooks: Setting.toggle({
    name: "no-hooks",
    description: "Run no command hooks",
    // Hooks of the user may guard what the agent does.
    rules: { widens: (isOn) => isOn }
  }),
  toolSearch: Setting.text({
    name: "tool-search",
    metavar: "N",
    description:
      "With more tools than this the model searches for those it needs, instead of getting all. off: never. Default: 40",
    read: threshold,
    expected: "a number of at least 0, or off",
    json: Schema.Union([Schema.Finite, Schema.Literal("off")])
  }),
  maxResult: Setting.number({
    name: "max-result",
    metavar: "N",
    description:
      "Characters of a tool result that the model gets at once. It reads the rest with the tool read_artifact. Default: 60000",
    isFine: (value) => Values.isCount(value) && value >= 1000,
    expected: "a number of at least 1000"
  }),
  keepFile: Setting.number({
    name: "keep-file",
    metavar: "MB",
    description: "Keep earlier versions of files of at most this size, for sessions rewind. Default: 10",
    isFine: (value) => value >= 0,
    expected: "a number of at least 0",
    rules: below(10)
  }),
  keepSession: Setting.number({
    name: "keep-session",
    metavar: "MB",
    description: "Keep at most this much of earlier versions of files of a session. Default: 500",
    isFine: (value) => value >= 0,
    expected: "a number of at least 0",
    rules: below(500)
  })
}

const bounds = {
  maxTurns: Setting.number({
    name: "max-turns",
    metavar: "N",
    description: `Maximum model calls. Default: ${limits.maxTurns.initial}`,
    isFine: Values.isCount,
    expected: "a number above 0",
    rules: below(limits.maxTurns.initial)
  }),
  maxCost: Setting.number({
    name: "max-cost",
    metavar: "USD",
    description: "Maximum cost of the run in US dollars. Default: none",
    isFine: (value) => value > 0,
    expected: "a number above 0",
    rules: below()
  }),
  maxTokensTotal: Setting.number({
    name: "max-tokens-total",
    metavar: "N",
    description: "Maximum tokens of the run, requests and answers together. Default: none",
    isFine: Values.isCount,
    expected: "a number above 0",
    rules: below()
  }),
  timeout: Setting.text({
    name: "timeout",
    metavar: "TIME",
    description: "Time limit of the run, such as 90s, 5m or 1h. Default: none",
    read: Values.duration,
    expected: "a time such as 90s, 5m or 1h",
    rules: {
      widens: (value, otherwise) => Option.exists(otherwise, (own) => Duration.isGreaterThan(value, own))
    }
  }),
  failOnRefusal: Setting.toggle({
    name: "fail-on-refusal",
    description: "Exit with 5 if a tool call was refused, although the model answered"
  }),
  noDetect: Setting.toggle({
    name: "no-detect",
    description: "Do not look for a local server when no key is set. CI=true does the same"
  }),
  noColor: Setting.toggle({
    name: "no-color",
    description: "No colours on a terminal. NO_COLOR does the same",
    isKept: false
  }),
  verbose: Setting.toggle({
    name: "verbose",
    description: "Log more on stderr, including causes of failures. DEBUG does the same",
    isKept: false
  })
}

const expected = "the id of a session, or its beginning"

const session = {
  continue: Setting.toggle({
    name: "continue",
    alias: "c",
    description: "Continue the newest session of this folder, with its model",
    isKept: false
  }),
  resume: Setting.text({
    name: "resume",
    alias: "r",
    metavar: "SESSION",
    description:
      "Continue this session, of which the beginning of the id is enough, in its folder and with its model; without a prompt what is open in it, such as approved calls. Without a session: pick one",
    read: Option.some,
    expected,
    isKept: false
  }),
  fork: Setting.text({
    name: "fork",
    metavar: "SESSION",
    description: "Continue in a new session that begins as this one",
    read: Values.nonEmpty,
    expected,
    isKept: false
  }),
  noSession: Setting.toggle({ name: "no-session", description: "Keep no session" }),
  sessionDir: Setting.text({
    name: "session-dir",
    metavar: "DIR",
    description:
      "Folder of the session files. Default: one for each folder of the tools, in the home of the program",
    flag: Flag.Directory("session-dir"),
    read: Values.nonEmpty,
    expected: "a folder",
    // Conversations may hold what the project must not get.
    rules: { widens: () => true }
  }),
  store: Setting.text({
    name: "store",
    metavar: "STORE",
    description:
      "Place of the sessions: sqlite:FILE, postgres://USER@HOST/DATABASE, or a folder of files. Default: files in the home of the program",
    read: Values.store,
    expected: Values.storeExpected,
    rules: { widens: () => true }
  }),
  name: Setting.text({
    name: "name",
    metavar: "TEXT",
    description: "Name of the session. Default: the first line of the prompt",
    read: Values.nonEmpty,
    expected: "a text",
    isKept: false
  })
}

const model = {
  model: Setting.text({
    name: "model",
    alias: "m",
    metavar: "PROVIDER/ID[:EFFORT]",
    description: "The model, such as openai/gpt-5.5 or ollama/qwen3",
    read: Values.model,
    expected: "provider/id"
  }),
  fallbackModel: Setting.list({
    name: "fallback-model",
    metavar: "LIST",
    description: "Models to ask in this order when the model fails, separated by commas",
    read: (texts) => Option.all(texts.flatMap(Values.items).map(Values.model)),
    expected: "models as provider/id, separated by commas"
  }),
  baseUrl: Setting.text({
    name: "base-url",
    metavar: "URL",
    description: "Address of the API, instead of that of the provider",
    read: Values.address,
    expected: "an address such as http://127.0.0.1:8000/v1",
    // The key of the user goes to this address.
    rules: { widens: () => true }
  }),
  effort: Setting.choice({
    name: "effort",
    metavar: "LEVEL",
    description: "Effort of reasoning. Default: that of the model",
    words: RunOptions.ThinkingLevel.literals
  }),
  maxTokens: Setting.number({
    name: "max-tokens",
    metavar: "N",
    description: "Maximum tokens of one answer. Default: that of the provider",
    isFine: Values.isCount,
    expected: "a number above 0",
    rules: { widens: (value, otherwise) => Option.exists(otherwise, (own) => value > own) }
  }),
  temperature: Setting.number({
    name: "temperature",
    metavar: "N",
    description: "Randomness of the answer, from 0 to 2. Default: that of the model",
    isFine: (value) => value >= 0 && value <= 2,
    expected: "a number from 0 to 2"
  }),
  system: Setting.text({
    name: "system",
    metavar: "TEXT",
    description: "System prompt, instead of the default one",
    read: Option.some,
    expected: "a text"
  }),
  appendSystem: Setting.text({
    name: "append-system",
    metavar: "TEXT",
    description: "Text behind the system prompt",
    read: Option.some,
    expected: "a text"
  })
}

export const all = {
  ...model,
  ...PromptSettings.settings,
  ...ofTools,
  ...session,
  ...SessionSettings.settings,
  ...bounds
}

const group = (
  title: string,
  settings: Readonly<Record<string, Pick<Setting.Setting<unknown>, "names">>>
) => ({ title, names: new Set(Object.values(settings).flatMap(({ names }) => names)) })

/** The groups of the help, with the names of their flags. */
export const groups = [
  group("MODEL", model),
  group("PROMPT AND ANSWER", PromptSettings.settings),
  group("TOOLS AND APPROVALS", ofTools),
  group("SESSION", session),
  group("INTERACTIVE SESSION", SessionSettings.settings),
  group("BOUNDS AND PROGRAM", bounds),
  group("SERVER AND WORKERS", ServerSettings.settings)
]

/** The flags of all settings. */
export const flags = Struct.map(all, Setting.toFlag)

/** The settings of a command that has none. */
export const absent = Struct.map(all, Setting.toAbsent)

/** The flags that mean nothing to a command that serves others: they are about one prompt. */
const ofPrompt = [
  "file",
  "inputFormat",
  "print",
  "outputFormat",
  "outputSchema",
  "output",
  "continue",
  "resume",
  "fork",
  "name",
  "failOnRefusal",
  "plan",
  "interactive",
  "plain",
  "enter",
  "notify",
  "theme",
  "title",
  "motion"
] as const

/** The flags of a command that serves others. */
export const serving = Struct.omit(flags, ofPrompt)

/** The parsed flags. */
export type Flags = Command.Command.Config.Infer<typeof flags>

/** Picks the value of each setting from the flags and the other places. */
export const pick = (flags: Flags, sources: Setting.Sources) =>
  Effect.all(Struct.map(Struct.pick(flags, Struct.keys(all)), Setting.toPick(sources)))

export type Picks = Effect.Success<ReturnType<typeof pick>>
