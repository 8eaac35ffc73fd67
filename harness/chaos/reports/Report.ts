/**
 * An input that somebody reported, here or elsewhere, and what is right with it.
 */
import type { Effect } from "effect"

export interface Report {
  /** Where it was reported, such as `ollama/ollama#15457`. Empty: an input that nobody has reported. */
  readonly source: string
  readonly input: string
  /** What came of it, in one line. */
  readonly seen: Effect.Effect<string>
  /** What has to come of it: all of the line, or what is in it. */
  readonly right: string | RegExp
}
