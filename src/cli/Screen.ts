/**
 * Where the program writes: answers and protocol to stdout, all else to stderr.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Paint } from "./Paint.ts"
import * as Painting from "./Paint.ts"

export class Screen extends Context.Service<
  Screen,
  {
    /** To stdout, as it is. Returns when it is written, or when nobody reads any more. */
    readonly out: (text: string) => Effect.Effect<void>
    /** To stderr, as it is. */
    readonly err: (text: string) => Effect.Effect<void>
    /** Colours for stderr. */
    readonly paint: Paint
    /** A person can read a question on stderr and type the answer. */
    readonly isInteractive: boolean
    /** Lines that stderr shows at once. */
    readonly rows: () => number
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
    // A terminal that does not know its height says 0.
    rows: () => process.stderr.rows || 24
  })
}

// A write that fails has nobody to tell: a closed pipe is noticed by its event, which ends the program.
const write =
  (stream: NodeJS.WriteStream) =>
  (text: string): Effect.Effect<void> =>
    text === ""
      ? Effect.void
      : Effect.callback((resume) => {
          stream.write(text, () => resume(Effect.void))
        })
