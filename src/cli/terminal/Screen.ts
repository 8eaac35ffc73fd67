/** The output streams of the program: answers and events go to stdout, everything else to stderr. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Paint } from "./Paint.ts"
import * as Painting from "./Paint.ts"

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
    paint: Painting.make(Painting.wanted({ isTerminal, flag: options.color, env: options.env })),
    isInteractive: isTerminal && process.stdin.isTTY === true,
    // A terminal of unknown height reports 0.
    rows: () => process.stderr.rows || 24,
    width: () => (isTerminal && options.env["TERM"] !== "dumb" ? process.stderr.columns || 80 : 0)
  })
}

// Errors of a write are ignored here. The `error` event of a closed pipe ends the program.
const write =
  (stream: NodeJS.WriteStream) =>
  (text: string): Effect.Effect<void> =>
    text === ""
      ? Effect.void
      : Effect.callback((resume) => {
          stream.write(text, () => resume(Effect.void))
        })
