/**
 * Measurements as Markdown tables.
 */
import type { Column } from "./jobs.ts"
import type { Figures } from "./workloads.ts"

/** The rounds of one row: what was measured in each, or why nothing was. */
export interface Row {
  readonly name: string
  readonly rounds: ReadonlyArray<Figures | { readonly trouble: string }>
}

const isMeasured = (round: Row["rounds"][number] | undefined): round is Figures =>
  round !== undefined && !("trouble" in round)

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  return ((sorted[Math.ceil(middle) - 1] ?? NaN) + (sorted[Math.floor(middle)] ?? NaN)) / 2
}

const format = (value: number, digits = 0): string =>
  Number.isNaN(value)
    ? "–"
    : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })

const values = ({ rounds }: Row, figure: string): ReadonlyArray<number> =>
  rounds.filter(isMeasured).flatMap((round) => round[figure] ?? [])

/** The median of what a row is to the first one, round by round: both of a pair had the same machine. */
const ratioOf = (row: Row, base: Row, figure: string): number =>
  median(
    row.rounds.flatMap((round, index) => {
      const beside = base.rounds[index]
      return isMeasured(round) && isMeasured(beside) ? [(round[figure] ?? NaN) / (beside[figure] ?? NaN)] : []
    })
  )

const line = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`

/** The first row is what the others are multiples of. */
export const table = (title: string, columns: ReadonlyArray<Column>, rows: ReadonlyArray<Row>): string => {
  const [base] = rows
  const heads = columns.flatMap(({ label, ratio }) => (ratio === true ? [label, "×"] : [label]))
  const cells = (row: Row) =>
    columns.flatMap(({ digits, figure, ratio }) => {
      const value = format(median(values(row, figure)), digits)
      return ratio === true && base !== undefined ? [value, format(ratioOf(row, base, figure), 2)] : [value]
    })
  const body = rows.map((row) => {
    const trouble = row.rounds.find((round) => !isMeasured(round))
    return trouble === undefined
      ? line([row.name, ...cells(row)])
      : `| ${row.name} | ${String(trouble["trouble"])} |`
  })
  return [
    `### ${title}`,
    "",
    line(["", ...heads]),
    line(["---", ...heads.map(() => "---:")]),
    ...body,
    ""
  ].join("\n")
}
