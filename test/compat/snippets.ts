/**
 * Snippets of a test: between `// SYSTEM: N lines` and `// end`, where N are the lines of code of the original, without imports.
 */
import { readFileSync } from "node:fs"

export interface Snippet {
  readonly code: string
  readonly lines: number
  readonly original: number
}

const marked = /\n *\/\/ \w+: (\d+) lines?\n([^]*?)\n *\/\/ end\n/g

/** The snippets of a file. */
export const snippetsOf = (file: string): ReadonlyArray<Snippet> =>
  [...readFileSync(file, "utf8").matchAll(marked)].map(([, original, code = ""]) => ({
    code,
    lines: code.split("\n").filter((line) => line.trim() !== "").length,
    original: Number(original)
  }))

/** Those that are longer than their original. */
export const longer = (snippets: ReadonlyArray<Snippet>): ReadonlyArray<Snippet> =>
  snippets.filter(({ lines, original }) => lines > original)
