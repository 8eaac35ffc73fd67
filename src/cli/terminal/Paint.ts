/** Colours for terminals. */
import { styleText } from "node:util"

export interface Paint {
  readonly dim: (text: string) => string
  readonly red: (text: string) => string
  readonly green: (text: string) => string
  readonly bold: (text: string) => string
}

/**
 * Whether to use colours: on a terminal, unless `--no-color`, `NO_COLOR` or `TERM=dumb` is set. `FORCE_COLOR`
 * wins over the last two and the terminal (https://no-color.org, https://force-color.org).
 */
export const wanted = (options: {
  readonly isTerminal: boolean
  readonly flag: boolean
  readonly env: Readonly<Record<string, string | undefined>>
}): boolean => {
  const { env, flag, isTerminal } = options
  if (!flag) return false
  const forced = env["FORCE_COLOR"] ?? ""
  if (forced !== "") return forced !== "0" && forced !== "false"
  return isTerminal && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb"
}

export const make = (colours: boolean): Paint => {
  const style = (format: keyof Paint) => (text: string) =>
    colours ? styleText(format, text, { validateStream: false }) : text
  return { dim: style("dim"), red: style("red"), green: style("green"), bold: style("bold") }
}
