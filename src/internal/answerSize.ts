/**
 * Bounds the size of one answer of a provider, so that a broken or hostile server cannot fill the memory. No model reaches the bounds. The
 * bytes of media do not count.
 */
import { Protocol } from "../ProviderError.ts"

/** Most characters of the arguments of all calls of an answer: 8 Mi. */
export const maxArguments = 8 * 1024 * 1024
/** Most characters of the text and the thinking of an answer: 32 Mi. */
export const maxText = 32 * 1024 * 1024

/** Measures an answer as it comes. */
export class AnswerSize {
  /** Why the answer is refused, `undefined` while it is not too large. */
  problem: Protocol | undefined = undefined

  private text = 0
  private json = 0

  addText(length: number): void {
    this.text += length
    if (this.text > maxText) this.problem ??= tooLarge("The text of an answer", maxText)
  }

  /** Measures the whole arguments of a call, for a provider that did not stream all of their pieces. */
  addWhole(length: number): void {
    if (length > maxArguments) this.addArguments(length)
  }

  addArguments(length: number): void {
    this.json += length
    if (this.json > maxArguments)
      this.problem ??= tooLarge("The arguments of the calls of an answer", maxArguments)
  }
}

const tooLarge = (what: string, most: number): Protocol =>
  new Protocol({ kind: "tooLarge", detail: `${what} may have at most ${most / 1024 / 1024} Mi characters` })
