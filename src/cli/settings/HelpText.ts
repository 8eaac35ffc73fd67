/** The help with its flags in groups. */
import type * as CliOutput from "effect/cli/CliOutput"
import type * as HelpDoc from "effect/cli/HelpDoc"
import { stripVTControlCharacters } from "node:util"
import * as SettingTable from "./SettingTable.ts"

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
        .filter(isFlags)
        .map((part) => part.replace("FLAGS", title))
        .join("")
    )
    return partsOf(text)
      .flatMap((part) => (isFlags(part) ? sections : [part]))
      .join("\n\n")
  }
})

/** The parts of a help, each with its title in the first line. */
const partsOf = (text: string): ReadonlyArray<string> => text.split("\n\n")

const isFlags = (part: string): boolean => stripVTControlCharacters(part).startsWith("FLAGS\n")

/** The library puts the examples right below the commands. */
const spaced = (line: string, index: number, lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  stripVTControlCharacters(line) === "EXAMPLES" && lines[index - 1] !== "" ? ["", line] : [line]

type Section = readonly [title: string, flags: ReadonlyArray<HelpDoc.FlagDoc>]

const sectionsOf = (flags: ReadonlyArray<HelpDoc.FlagDoc>): ReadonlyArray<Section> => {
  const titleOf = ({ name }: HelpDoc.FlagDoc) =>
    SettingTable.groups.find(({ names }) => names.has(`--${name}`))?.title ?? "OTHER FLAGS"
  const titles = [...SettingTable.groups.map(({ title }) => title), "OTHER FLAGS"]
  return titles
    .map((title): Section => [title, flags.filter((flag) => titleOf(flag) === title)])
    .filter(([, flags]) => flags.length > 0)
}
