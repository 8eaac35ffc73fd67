/** The signs and colours of the session. */
import { styleText } from "node:util"

type Style = Parameters<typeof styleText>[0]

export interface Theme {
  readonly signs: Signs
  /** Whether each line says in a word what it is, in place of signs and colours. */
  readonly isLabelled: boolean
  /** Whether styles reach the terminal; else they are no more than the text. */
  readonly isStyled: boolean
  readonly style: (style: Style, text: string) => string
}

interface Signs {
  readonly runs: string
  readonly ended: string
  readonly failed: string
  readonly active: string
  readonly open: string
}

const utf8: Signs = { runs: "→", ended: "✓", failed: "✗", active: "▸", open: "·" }
const ascii: Signs = { runs: "->", ended: "ok", failed: "x", active: ">", open: "-" }

type Environment = Readonly<Record<string, string | undefined>>

/** The first variable that is set counts. */
export const isUtf8 = (env: Environment): boolean => {
  const names = ["LC_ALL", "LC_CTYPE", "LANG"].map((name) => env[name] ?? "")
  return /utf-?8/i.test(names.find((name) => name !== "") ?? "")
}

export const make = (options: {
  readonly isStyled: boolean
  readonly isUtf8: boolean
  readonly isLabelled: boolean
}): Theme => ({
  isLabelled: options.isLabelled,
  signs: options.isUtf8 ? utf8 : ascii,
  isStyled: options.isStyled,
  style: (style, text) =>
    options.isStyled && text !== "" ? styleText(style, text, { validateStream: false }) : text
})
