/** The settings of the tools and of their approval. */
import * as Flag from "effect/cli/Flag"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Setting from "./Setting.ts"
import type { Rules } from "./Source.ts"
import * as Values from "./Values.ts"

/** A project must not change this setting without the user's consent. */
const always = { widens: () => true }

/** `words` are in order, the narrowest first. */
const narrower = <Words extends ReadonlyArray<string>>(
  words: Words,
  usual: Words[number]
): Pick<Rules<Words[number]>, "widens"> => ({
  widens: (value, otherwise) => words.indexOf(value) > words.indexOf(Option.getOrElse(otherwise, () => usual))
})

/** Paths of folders. */
const paths = (texts: ReadonlyArray<string>) =>
  texts.every((text) => text.trim() !== "") ? Option.some(texts) : Option.none()

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

export const settings = {
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
    read: paths,
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
  })
}
