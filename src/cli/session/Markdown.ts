/**
 * Markdown as lines of a terminal. A line of the source becomes lines of the screen once it is whole, and they do not change any more; only a
 * table waits for its end, since its columns are aligned. Code stays as it is.
 */
import { visibleWidth, wrapTextWithAnsi } from "@earendil-works/pi-tui"
import * as Inert from "../terminal/Inert.ts"
import type { Theme } from "./Theme.ts"

/** The meaning of the lines before for the next one. */
export interface State {
  /** The fence of the code block that is open. */
  readonly fence: string | undefined
  /** Whether the start of the line has become lines of the screen. */
  readonly isInside: boolean
  /** The lines of the table that is open. */
  readonly table: ReadonlyArray<string>
}

export const initial: State = { fence: undefined, isInside: false, table: [] }

/** The lines of the screen that one more line of the source completes. */
export const next = (
  { fence, isInside, table }: State,
  source: string,
  theme: Theme,
  width: number
): readonly [State, ReadonlyArray<string>] => {
  if (isInside) return [initial, restOf(source, theme, width)]
  const opened = /^\s*(`{3,}|~{3,})/.exec(source)?.[1]
  if (fence !== undefined) {
    const isEnd = opened !== undefined && opened.startsWith(fence) && source.trim() === opened
    const line = isEnd ? theme.style("dim", safe(source)) : safe(source)
    return [{ ...initial, fence: isEnd ? undefined : fence }, [line.trimEnd()]]
  }
  if (isRow(source)) return [{ ...initial, table: [...table, source] }, []]
  const before = tableOf(table, theme)
  if (opened !== undefined)
    return [{ ...initial, fence: opened }, [...before, theme.style("dim", safe(source).trimEnd())]]
  return [initial, [...before, ...lineOf(source, theme, width)]]
}

/** The lines that the end of the source completes. */
export const end = ({ table }: State, theme: Theme): ReadonlyArray<string> => tableOf(table, theme)

/** The lines of a whole text. */
export const all = (text: string, theme: Theme, width: number): ReadonlyArray<string> => {
  let state = initial
  const lines = text.split("\n").flatMap((source) => {
    const [after, out] = next(state, source, theme, width)
    state = after
    return out
  })
  return [...lines, ...end(state, theme)]
}

/** A line that is not whole. */
export const unfinished = ({ fence, isInside }: State, source: string, theme: Theme, width: number) => {
  if (fence !== undefined) return [safe(source).replaceAll("\t", "    ")]
  return isInside ? restOf(source, theme, width) : lineOf(source, theme, width)
}

/** The rows of a line that is not whole which still may change: words move to the next one. */
const loose = 3

/**
 * The rows of a line that is not whole which no longer change, and the length of their source. Only those of plain text do not: a mark that
 * is open may change the rows before.
 */
export const settled = (
  { fence, isInside }: State,
  source: string,
  width: number
): { readonly rows: ReadonlyArray<string>; readonly length: number } => {
  const none = { rows: [], length: 0 }
  const isPlain = !/[*_`[\]|<>\t]/.test(source) && safe(source) === source
  const isText = isInside || /^[\p{L}\p{N}"'(]/u.test(source)
  if (fence !== undefined || !isPlain || !isText || /^\d{1,3}[.)] /.test(source)) return none
  const rows = wrapped(source, width).slice(0, -loose)
  // The rows have all characters of the source but the spaces between them.
  let left = rows.join("").replaceAll(/\s/g, "").length
  let length = 0
  while (left > 0) if (/\S/.test(source[length++] ?? "")) left--
  while (/\s/.test(source[length] ?? "")) length++
  return rows.length === 0 ? none : { rows, length }
}

const restOf = (source: string, theme: Theme, width: number): ReadonlyArray<string> =>
  wrapped(inline(safe(source).replaceAll("\t", "    ").trimEnd(), theme), width)

const safe = (text: string): string => Inert.text(text)

const lineOf = (source: string, theme: Theme, width: number): ReadonlyArray<string> => {
  const { style } = theme
  const text = safe(source).replaceAll("\t", "    ").trimEnd()
  const [, marks = "", title = ""] = /^ {0,3}(#{1,6}) +(.*?)(?: +#+)?$/.exec(text) ?? []
  if (title !== "" && theme.isStyled) return wrapped(style("bold", inline(title, theme)), width)
  const [, space = "", bullet = "", rest = ""] = /^(\s*)([-*+] |\d{1,3}[.)] |> ?)(.*)$/.exec(text) ?? []
  if (bullet === "") return wrapped(marks === "" ? inline(text, theme) : text, width)
  const head = space + bullet.replace(/^[*+]/, "-")
  const indent = " ".repeat(visibleWidth(head))
  return wrapped(inline(rest, theme), Math.max(1, width - indent.length)).map(
    (line, index) => (index === 0 ? head : indent) + line
  )
}

/** The text in lines between words, which are no wider and end without spaces. */
export const wrapped = (text: string, width: number): ReadonlyArray<string> =>
  wrapTextWithAnsi(text, Math.max(1, width)).map((line) => line.trimEnd())

// Code first, since nothing counts in it.
const inlines =
  /(`+)([^`]|[^`].*?[^`])\1(?!`)|!?\[([^\]]*)\]\(\s*<?([^\s)>]+)>?[^)]*\)|(\*\*|__)(?=\S)(.+?)(?<=\S)\5|(?<![\w*])([*_])(?=\S)([^*_]+?)(?<=\S)\7(?![\w*])/g

const inline = (text: string, theme: Theme): string =>
  text.replaceAll(
    inlines,
    (
      whole,
      _ticks: string,
      code: string | undefined,
      label: string | undefined,
      address: string | undefined,
      _strong: string,
      strong: string | undefined,
      _emphasis: string,
      emphasis: string | undefined
    ) => {
      if (address !== undefined)
        return label === address || label === "" ? address : `${label ?? ""} (${address})`
      if (!theme.isStyled) return whole
      if (code !== undefined) return theme.style("cyan", code)
      if (strong !== undefined) return theme.style("bold", inline(strong, theme))
      return emphasis === undefined ? whole : theme.style("italic", emphasis)
    }
  )

// ───────────────────────── Tables

const isRow = (line: string): boolean => /^\s*\|.*\|\s*$/.test(line)

const cellsOf = (row: string): ReadonlyArray<string> =>
  row
    .trim()
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map((cell) => safe(cell).trim().replaceAll("\\|", "|"))

const tableOf = (rows: ReadonlyArray<string>, theme: Theme): ReadonlyArray<string> => {
  if (rows.length === 0) return []
  const cells = rows
    .map(cellsOf)
    .filter((row) => !row.every((cell) => /^:?-+:?$/.test(cell)))
    .map((row) => row.map((cell) => inline(cell, theme)))
  const widths = cells.reduce<ReadonlyArray<number>>(
    (all, row) =>
      Array.from({ length: Math.max(all.length, row.length) }, (_, index) =>
        Math.max(all[index] ?? 0, visibleWidth(row[index] ?? ""))
      ),
    []
  )
  return cells.map((row, index) => {
    const line = row
      .map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - visibleWidth(cell)))
      .join("  ")
      .trimEnd()
    return index === 0 ? theme.style("bold", line) : line
  })
}
