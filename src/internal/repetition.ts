/**
 * Notices when a model makes the same tool calls with the same results over and over.
 */
import { range } from "effect/Array"
import type { ToolOutput } from "../AgentEvent.ts"
import { text, type ToolCall } from "../Message.ts"

/** Cycles of up to this many calls count as identical: A-A-A, A-B-A-B, A-B-C-A-B-C. */
const longestCycle = 3

/** The lowest limit that leaves a round in which to warn the model. */
const leastToWarn = 3

/** Arguments of more characters are compared as they were written, shorter ones by their JSON value. */
const longArguments = 1000

/** Texts that identify one call and its result. The transcript holds them anyway. */
type Signature = ReadonlyArray<string>

/** The latest calls of one run. `max`: how many identical rounds are allowed; `Infinity` for no limit. */
export class Repetition {
  /** Oldest first; equal calls are the same object. */
  private recent: ReadonlyArray<Signature> = []
  /** The turn in which the model was warned, while it repeats itself. */
  private warnedIn: number | undefined

  /**
   * Keeps a call and its result, and gives the content of the result for the model: with a warning, once, when one more
   * round of the same calls would end the run.
   */
  record(call: ToolCall, output: ToolOutput, turn: number, max: number): ToolOutput["content"] {
    if (!Number.isFinite(max)) return output.content
    const made = signature(call, output)
    const known = this.recent.find((one) => isSame(one, made)) ?? made
    this.recent = [...this.recent, known].slice(-max * longestCycle)
    if (max < leastToWarn) return output.content
    const isNews = this.warnedIn === undefined
    this.warnedIn = isCircling(this.recent, max - 1) ? (this.warnedIn ?? turn) : undefined
    return isNews && this.warnedIn !== undefined
      ? [...output.content, text(warning(max - 1))]
      : output.content
  }

  /** Whether the limit is reached, and the model had an answer in which to react to the warning. */
  isReached(turn: number, max: number): boolean {
    const isUnread = max >= leastToWarn && this.warnedIn === turn
    return isCircling(this.recent, max) && !isUnread
  }
}

const warning = (times: number): string =>
  `[${times} times now you have made the same calls and got the same results. Once more, and the run is ended. Do something else, or answer with what you have.]`

const signature = (call: ToolCall, output: ToolOutput): Signature => [
  call.name,
  call.rawArguments.length > longArguments
    ? call.rawArguments
    : JSON.stringify(call.params ?? call.rawArguments),
  ...output.content.flatMap((block) =>
    block.type === "text" ? ["text", block.text] : ["image", ...Object.values(block.source)]
  )
]

const isSame = (one: Signature, other: Signature): boolean =>
  one.length === other.length && one.every((part, index) => part === other[index])

/** Whether the last calls are `times` rounds of the same one, two or three calls. */
const isCircling = (calls: ReadonlyArray<Signature>, times: number): boolean =>
  range(1, longestCycle).some((length) => repeats(calls, length, times))

const repeats = (calls: ReadonlyArray<Signature>, length: number, times: number): boolean => {
  const tail = calls.slice(-length * times)
  return tail.length === length * times && tail.every((call, index) => call === tail[index % length])
}
