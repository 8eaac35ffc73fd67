// Writes the tables of keys and commands in `docs/program.md` from the tables that the session reads. `npm run docs` runs it, and
// `test/readme.test.ts` compares.
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as CommandTable from "../src/cli/session/CommandTable.ts"
import * as Keys from "../src/cli/session/Keys.ts"

const page = join(import.meta.dirname, "../docs/program.md")

const tableOf = (heads: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  [heads, heads.map(() => "---"), ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`)
    .join("\n")

const commands: ReadonlyArray<CommandTable.Row> = CommandTable.table

const tables: Readonly<Record<string, string>> = {
  keys: tableOf(
    ["key", "idle", "while it works"],
    Keys.table.map(({ idle, key, working }) => [key, idle, working])
  ),
  commands: tableOf(
    ["command", "effect"],
    commands.map(({ aliases = [], args, isAlone, name, what }) => {
      const others = aliases.map((alias) => `, \`${alias}\``).join("")
      return [`\`${`${name} ${args}`.trim()}\`${others}${isAlone === true ? " \\*" : ""}`, what]
    })
  )
}

/** The text of the page with the tables as they are now. */
export const pageWith = (text: string): string =>
  Object.entries(tables).reduce((before, [name, table]) => {
    const marker = `<!-- ${name} of the session -->`
    const from = before.indexOf(marker)
    const to = before.indexOf("<!-- end -->", from)
    if (from === -1 || to === -1) throw new Error(`docs/program.md has no ${marker}`)
    const ignored = `<!-- prettier-ignore-start -->\n\n${table}\n\n<!-- prettier-ignore-end -->`
    return `${before.slice(0, from)}${marker}\n${ignored}\n${before.slice(to)}`
  }, text)

if (process.argv[1] === import.meta.filename) writeFileSync(page, pageWith(readFileSync(page, "utf8")))
