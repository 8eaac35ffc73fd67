/** The output streams of the program: answers and events go to stdout, everything else to stderr. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { styleText } from "node:util"
import * as Inert from "./Inert.ts"

export class Screen extends Context.Service<
  Screen,
  {
    /**
     * Writes to stdout without escaping. Completes when the text is written, or when the reader has closed the
     * pipe.
     */
    readonly out: (text: string) => Effect.Effect<void>
    /** Writes to stderr without escaping. */
    readonly err: (text: string) => Effect.Effect<void>
    /** Colours for stderr. */
    readonly paint: Paint
    /** Whether a person can read a question on stderr and type an answer. */
    readonly isInteractive: boolean
    /** Number of lines that stderr shows at once. */
    readonly rows: () => number
    /** Number of characters of a line on stderr, 0 if it is no terminal that lets the program move in it. */
    readonly width: () => number
  }
>()("effect-agent/cli/Screen") {}

/** The streams of the process. */
export const make = (options: {
  readonly color: boolean
  readonly env: Readonly<Record<string, string | undefined>>
}): Screen["Service"] => {
  const isTerminal = process.stderr.isTTY === true
  return Screen.of({
    out: write(process.stdout),
    err: write(process.stderr),
    paint: paintOf(wantsColours({ isTerminal, flag: options.color, env: options.env })),
    isInteractive: isTerminal && process.stdin.isTTY === true,
    // A terminal of unknown height reports 0.
    rows: () => process.stderr.rows || 24,
    width: () => (isTerminal && options.env["TERM"] !== "dumb" ? process.stderr.columns || 80 : 0)
  })
}

/** Writes a remark in a line of stderr. */
export const complain = (remark: string): Effect.Effect<void, never, Screen> =>
  Screen.use(({ err, paint }) => err(`${paint.red("effect-agent:")} ${Inert.line(remark)}\n`))

/** Writes notes in lines of stderr. */
export const say = (notes: ReadonlyArray<string>): Effect.Effect<void, never, Screen> =>
  Screen.use(({ err, paint }) => err(notes.map((note) => `${paint.dim(Inert.line(note))}\n`).join("")))

// Errors of a write are ignored here. The `error` event of a closed pipe ends the program.
const write =
  (stream: NodeJS.WriteStream) =>
  (text: string): Effect.Effect<void> =>
    text === ""
      ? Effect.void
      : Effect.callback((resume) => {
          stream.write(text, () => resume(Effect.void))
        })

// ───────────────────────── Colours

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
export const wantsColours = (options: {
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

export const paintOf = (colours: boolean): Paint => {
  const style = (format: keyof Paint) => (text: string) =>
    colours ? styleText(format, text, { validateStream: false }) : text
  return { dim: style("dim"), red: style("red"), green: style("green"), bold: style("bold") }
}
