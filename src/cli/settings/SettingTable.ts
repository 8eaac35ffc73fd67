/** All settings of a run, in the order of the help. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Struct from "effect/Struct"
import type * as CliOutput from "effect/cli/CliOutput"
import type * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import type * as HelpDoc from "effect/cli/HelpDoc"
import { stripVTControlCharacters } from "node:util"
import * as RunOptions from "../../RunOptions.ts"
import { table as limits } from "../../internal/limitTable.ts"
import * as ServerSettings from "./ServerSettings.ts"
import * as Setting from "./Setting.ts"
import type { Sources, Rules } from "./Source.ts"
import * as ToolSettings from "./ToolSettings.ts"
import * as Values from "./Values.ts"

const outputs = ["text", "json", "stream-json"] as const
const inputs = ["text", "stream-json"] as const

/** Paths of files. */
const paths = (texts: ReadonlyArray<string>) =>
  texts.every((text) => text.trim() !== "") ? Option.some(texts) : Option.none()

const promptAndAnswer = {
  file: Setting.list({
    name: "file",
    alias: "f",
    metavar: "PATH",
    description: "Send this text, image or PDF with the prompt, as @PATH in the prompt does. May be repeated",
    read: paths,
    expected: "the path of a file",
    flag: Flag.File("file"),
    isKept: false
  }),
  inputFormat: Setting.choice({
    name: "input-format",
    words: inputs,
    description:
      'text: stdin is a part of the prompt. stream-json: each line of stdin is an object: {"type":"prompt","text":"…"}, or of the type steer, followUp, approve, answer or cancel. Default: text',
    isKept: false
  }),
  print: Setting.toggle({
    name: "print",
    alias: "p",
    description:
      "Answer and exit, without asking for approvals. A stdout that is no terminal gets the answer alone, when it is whole",
    isKept: false
  }),
  outputFormat: Setting.choice({
    name: "output-format",
    words: outputs,
    description:
      "text: the answer. json: one object at the end. stream-json: one event per line. Default: text"
  }),
  json: Setting.toggle({
    name: "json",
    description: "The same as --output-format stream-json",
    isKept: false
  }),
  outputSchema: Setting.text({
    name: "output-schema",
    metavar: "FILE|JSON",
    description: "JSON Schema that the answer must match",
    read: Values.nonEmpty,
    expected: "a file, or an object of JSON",
    isKept: false
  }),
  output: Setting.text({
    name: "output",
    alias: "o",
    metavar: "FILE",
    description: "Write the final answer to a file too",
    flag: Flag.File("output"),
    read: Values.nonEmpty,
    expected: "the path of a file",
    isKept: false
  })
}

/** A project may lower a bound, which is `usual` where the user has none. */
const below = (usual = Infinity): Pick<Rules<number>, "widens"> => ({
  widens: (value, otherwise) => value > Option.getOrElse(otherwise, () => usual)
})

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
  ...promptAndAnswer,
  ...ToolSettings.settings,
  ...session,
  ...bounds
}

const group = (
  title: string,
  settings: Readonly<Record<string, Pick<Setting.Setting<unknown>, "names">>>
) => ({ title, names: new Set(Object.values(settings).flatMap(({ names }) => names)) })

/** The groups of the help, with the names of their flags. */
export const groups = [
  group("MODEL", model),
  group("PROMPT AND ANSWER", promptAndAnswer),
  group("TOOLS AND APPROVALS", ToolSettings.settings),
  group("SESSION", session),
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
  "failOnRefusal"
] as const

/** The flags of a command that serves others. */
export const serving = Struct.omit(flags, ofPrompt)

/** The parsed flags. */
export type Flags = Command.Command.Config.Infer<typeof flags>

/** Picks the value of each setting from the flags and the other places. */
export const pick = (flags: Flags, sources: Sources) =>
  Effect.all(Struct.map(Struct.pick(flags, Struct.keys(all)), Setting.toPick(sources)))

export type Picks = Effect.Success<ReturnType<typeof pick>>

// ───────────────────────── The help

/** Fewer flags stay in one list. */
const minGrouped = 12

/** A formatter that writes many flags in the groups of the settings, and those that are no settings as a group of their own. */
export const grouped = (base: CliOutput.Formatter): CliOutput.Formatter => ({
  ...base,
  formatHelpDoc: (doc) => {
    const text = base.formatHelpDoc(doc).split("\n").flatMap(spaced).join("\n")
    if (doc.flags.length < minGrouped) return text
    const sections = sectionsOf(doc.flags).map(([title, flags]) =>
      partsOf(base.formatHelpDoc({ ...doc, flags }))
        .filter(isFlagList)
        .map((part) => part.replace("FLAGS", title))
        .join("")
    )
    return partsOf(text)
      .flatMap((part) => (isFlagList(part) ? sections : [part]))
      .join("\n\n")
  }
})

/** The parts of a help, each with its title in the first line. */
const partsOf = (text: string): ReadonlyArray<string> => text.split("\n\n")

const isFlagList = (part: string): boolean => stripVTControlCharacters(part).startsWith("FLAGS\n")

/** The library puts the examples right below the commands. */
const spaced = (line: string, index: number, lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  stripVTControlCharacters(line) === "EXAMPLES" && lines[index - 1] !== "" ? ["", line] : [line]

type Section = readonly [title: string, flags: ReadonlyArray<HelpDoc.FlagDoc>]

const sectionsOf = (flags: ReadonlyArray<HelpDoc.FlagDoc>): ReadonlyArray<Section> => {
  const titleOf = ({ name }: HelpDoc.FlagDoc) =>
    groups.find(({ names }) => names.has(`--${name}`))?.title ?? "OTHER FLAGS"
  const titles = [...groups.map(({ title }) => title), "OTHER FLAGS"]
  return titles
    .map((title): Section => [title, flags.filter((flag) => titleOf(flag) === title)])
    .filter(([, flags]) => flags.length > 0)
}
