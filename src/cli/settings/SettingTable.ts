/** All settings of a run, in the order of the help. */
import * as Effect from "effect/Effect"
import * as Struct from "effect/Struct"
import type * as CliOutput from "effect/cli/CliOutput"
import type * as Command from "effect/cli/Command"
import type * as HelpDoc from "effect/cli/HelpDoc"
import { stripVTControlCharacters } from "node:util"
import * as ModelSettings from "./ModelSettings.ts"
import * as RunSettings from "./RunSettings.ts"
import * as ServerSettings from "./ServerSettings.ts"
import * as SessionSettings from "./SessionSettings.ts"
import * as Setting from "./Setting.ts"
import type { Sources } from "./Source.ts"
import * as TextSettings from "./TextSettings.ts"
import * as ToolSettings from "./ToolSettings.ts"

export const all = {
  ...ModelSettings.settings,
  ...TextSettings.settings,
  ...ToolSettings.settings,
  ...SessionSettings.settings,
  ...RunSettings.settings
}

const group = (
  title: string,
  settings: Readonly<Record<string, Pick<Setting.Setting<unknown>, "names">>>
) => ({ title, names: new Set(Object.values(settings).flatMap(({ names }) => names)) })

/** The groups of the help, with the names of their flags. */
export const groups = [
  group("MODEL", ModelSettings.settings),
  group("PROMPT AND ANSWER", TextSettings.settings),
  group("TOOLS AND APPROVALS", ToolSettings.settings),
  group("SESSION", SessionSettings.settings),
  group("BOUNDS AND PROGRAM", RunSettings.settings),
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
