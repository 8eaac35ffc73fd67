/** Divides a body into lines, one JSON text each. */
import { Protocol as ProtocolFault, type Reason } from "../../ProviderError.ts"
import type { Frame } from "./frame.ts"

/** Maximum code units of one line: 32 Mi. */
const maxLine = 32 * 1024 * 1024

export class LineReader {
  readonly stray = ""
  problem: Reason | undefined = undefined

  private readonly decoder = new TextDecoder()
  private held: Array<string> = []
  private length = 0

  push(bytes: Uint8Array, out: Array<Frame>): void {
    if (this.problem === undefined) this.feed(this.decoder.decode(bytes, { stream: true }), out)
  }

  end(out: Array<Frame>): void {
    if (this.problem === undefined) this.feed(`${this.decoder.decode()}\n`, out)
  }

  private feed(text: string, out: Array<Frame>): void {
    const [first = "", ...others] = text.split("\n")
    this.hold(first)
    for (const next of others) {
      const line = this.held.join("").trim()
      if (line !== "") out.push({ event: "", data: line })
      this.held = []
      this.length = 0
      this.hold(next)
    }
  }

  /** Keeps the start of a line until its end. Joins the pieces once, so that a long line takes linear time. */
  private hold(text: string): void {
    this.length += text.length
    if (this.length > maxLine)
      this.problem = new ProtocolFault({ kind: "tooLarge", detail: "An event is too large" })
    else if (text !== "") this.held.push(text)
  }
}
