// Compares the features of five systems with the tests that prove them here. `npm run inventory` prints the table, writes it to
// `docs/migrating.md`, and fails where rows and tests do not agree; `test/inventory` runs the comparison too.
//
// `test/inventory/rows.tsv` has a line for each feature. The title of a test, or of a `describe`, proves rows by its
// end: `(row 58)`, `(rows 12, 13)`.
// To finish a row, write `done` in place of `open`, and run this script.
import { globSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")
const page = join(root, "docs/migrating.md")

export const systems = ["karl", "pi", "lemon", "codelet", "oneringai"] as const
type System = (typeof systems)[number]

const titles: Readonly<Record<System, string>> = {
  karl: "Karl",
  pi: "pi",
  lemon: "lemon",
  codelet: "codelet",
  oneringai: "oneringai"
}

export const states = ["done", "open", "out"] as const
type State = (typeof states)[number]

export interface Row {
  readonly number: number
  readonly state: State
  readonly systems: ReadonlyArray<System>
  readonly feature: string
  /** The name here, or the reason why the feature stays out. */
  readonly ours: string
}

export interface Citation {
  readonly file: string
  readonly line: number
  readonly rows: ReadonlyArray<number>
  /** The modifiers of the test, such as `.effect`. Absent if the rows do not stand at the end of the title of a test. */
  readonly modifiers?: string
}

/** The rows of the text of `rows.tsv`. */
export const rowsOf = (text: string): ReadonlyArray<Row> =>
  text
    .trim()
    .split("\n")
    .slice(1)
    .map((line) => {
      const [number = "", state = "", names = "", feature = "", ours = ""] = line.split("\t")
      const isState = (name: string): name is State => states.some((known) => known === name)
      if (!isState(state) || feature === "" || ours === "") throw new Error(`rows.tsv: ${line}`)
      return {
        number: Number(number),
        state,
        systems: systems.filter((system) => names.split(" ").includes(system)),
        feature,
        ours
      }
    })

const test =
  /\b(?:it|describe)((?:\.\w+)*)(?:\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))?\(\s*(["'`])((?:\\.|(?!\2)[^\\])*)\2/g
const cited = /\(rows? (\d+(?:, \d+)*)\)$/

/** The rows that the titles of the tests in a file cite. */
export const citationsIn = (file: string, text: string): ReadonlyArray<Citation> => {
  const lineAt = (index: number) => text.slice(0, index).split("\n").length
  const numbers = (list: string) => list.split(", ").map(Number)
  const inTitles = Array.from(text.matchAll(test)).flatMap(
    ({ 0: all, 1: modifiers = "", 3: title = "", index }) => {
      const rows = cited.exec(title)?.[1]
      return rows === undefined
        ? []
        : [
            {
              at: index + all.length,
              citation: { file, line: lineAt(index), rows: numbers(rows), modifiers }
            }
          ]
    }
  )
  const ends = new Set(inTitles.map(({ at }) => at))
  const elsewhere = Array.from(text.matchAll(/\(rows? (\d+(?:, \d+)*)\)["'`]/g)).flatMap(
    ({ 0: all, 1: rows = "", index }) =>
      ends.has(index + all.length) ? [] : [{ file, line: lineAt(index), rows: numbers(rows) }]
  )
  return [...inTitles.map(({ citation }) => citation), ...elsewhere]
}

const runs = ({ modifiers }: Citation) => modifiers !== undefined && !/\.(?:skip|todo)\b/.test(modifiers)

/** The number of tests that prove a row. */
export const testsOf = (row: Row, citations: ReadonlyArray<Citation>): number =>
  citations.filter((citation) => runs(citation) && citation.rows.includes(row.number)).length

/** The places where rows and tests do not agree. */
export const faultsOf = (
  rows: ReadonlyArray<Row>,
  citations: ReadonlyArray<Citation>
): ReadonlyArray<string> => {
  const known = new Map(rows.map((row) => [row.number, row]))
  return [
    ...rows.flatMap(({ number }, index) =>
      number === index + 1 ? [] : [`rows.tsv: row ${number} stands in the place of row ${index + 1}`]
    ),
    ...rows.flatMap((row) =>
      row.state === "done" && testsOf(row, citations) === 0
        ? [`row ${row.number} is done, and no test cites it: ${row.feature}`]
        : []
    ),
    ...citations.flatMap((citation) => {
      const { file, line } = citation
      if (!runs(citation)) return [`${file}:${line} cites rows outside of the title of a test that runs`]
      return citation.rows.flatMap((number) => {
        const row = known.get(number)
        if (row === undefined) return [`${file}:${line} cites row ${number}, which does not exist`]
        return row.state === "done"
          ? []
          : [
              `${file}:${line} cites row ${number}, which is ${row.state}: if it is done, write so in rows.tsv`
            ]
      })
    })
  ]
}

const words: Readonly<Record<State, string>> = { done: "done", open: "open", out: "out of scope" }

const line = (cells: ReadonlyArray<string | number>) => `| ${cells.join(" | ")} |`

const tableOf = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string | number>>): string =>
  [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n")

/** How many features of each system are done, open and out of scope. */
export const totalsOf = (rows: ReadonlyArray<Row>): string => {
  const counted = (name: string, some: ReadonlyArray<Row>) => [
    name,
    some.length,
    ...states.map((state) => some.filter((row) => row.state === state).length)
  ]
  return tableOf(
    ["system", "features", ...states.map((state) => words[state])],
    [
      ...systems.map((system) =>
        counted(
          titles[system],
          rows.filter((row) => row.systems.includes(system))
        )
      ),
      counted("all", rows)
    ]
  )
}

const columns = ["row", "feature", "here", ...systems.map((system) => titles[system]), "state"]

const cellsOf = (row: Row) => [
  row.number,
  row.feature,
  row.state === "out" ? "–" : row.ours,
  ...systems.map((system) => (row.systems.includes(system) ? "•" : "")),
  row.state === "out" ? `${words.out}: ${row.ours}` : words[row.state]
]

/** The text of the page with the tables as they are now. */
export const pageWith = (text: string, rows: ReadonlyArray<Row>): string => {
  const between = (before: string, name: string, table: string) => {
    const marker = `<!-- ${name} -->`
    const from = before.indexOf(marker)
    const to = before.indexOf("<!-- end -->", from)
    if (from === -1 || to === -1) throw new Error(`docs/migrating.md has no ${marker}`)
    const ignored = `<!-- prettier-ignore-start -->\n\n${table}\n\n<!-- prettier-ignore-end -->`
    return `${before.slice(0, from)}${marker}\n${ignored}\n${before.slice(to)}`
  }
  const totals = between(text, "totals", totalsOf(rows))
  return between(totals, "features", tableOf(columns, rows.map(cellsOf)))
}

export const inventory = () => {
  const rows = rowsOf(readFileSync(join(root, "test/inventory/rows.tsv"), "utf8"))
  const files = globSync("test/**/*.ts", { cwd: root }).filter(
    (file) => !file.startsWith(join("test", "inventory"))
  )
  const citations = files.flatMap((file) => citationsIn(file, readFileSync(join(root, file), "utf8")))
  return { rows, citations, faults: faultsOf(rows, citations) }
}

if (process.argv[1] === import.meta.filename) {
  const { citations, faults, rows } = inventory()
  console.log(
    tableOf(
      [...columns, "tests"],
      rows.map((row) => [...cellsOf(row), testsOf(row, citations)])
    )
  )
  console.log(`\n${totalsOf(rows)}\n`)
  writeFileSync(page, pageWith(readFileSync(page, "utf8"), rows))
  for (const fault of faults) console.error(fault)
  process.exitCode = faults.length === 0 ? 0 : 1
}
