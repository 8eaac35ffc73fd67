/** The lines that the program itself writes in a session. */
import * as Inert from "../terminal/Inert.ts"
import type { Face } from "./Face.ts"
import * as Markdown from "./Markdown.ts"
import type { Theme } from "./Theme.ts"

export class Voice {
  readonly theme: Theme
  readonly face: Face

  constructor(theme: Theme, face: Face) {
    this.theme = theme
    this.face = face
  }

  /** Writes lines of the program. */
  say(...lines: ReadonlyArray<string>): void {
    const label = this.theme.isLabelled ? "note: " : ""
    this.face.print(lines.flatMap((line) => this.wrapped(label + line)))
    this.face.changed()
  }

  /** Shows a command that the person entered. */
  echo(text: string): void {
    const line = this.theme.isLabelled ? `you: ${text}` : `> ${text}`
    this.face.print(this.wrapped(line).map((each) => this.theme.style("dim", each)))
  }

  /** The lines of a text of the program, broken between words. */
  private wrapped(text: string): ReadonlyArray<string> {
    const width = this.face.width()
    return Inert.text(text)
      .split("\n")
      .flatMap((line) => Markdown.wrapped(line, width))
  }

  note(line: string): void {
    const { isLabelled, style } = this.theme
    const lines = this.wrapped(isLabelled ? `note: ${line}` : line)
    this.face.print(lines.map((each) => style("dim", each)))
    this.face.changed()
  }

  fail(line: string, ...advice: ReadonlyArray<string>): void {
    const { isLabelled, signs, style } = this.theme
    const sign = isLabelled ? "error:" : signs.failed
    this.face.print([
      ...this.wrapped(`${sign} ${Inert.line(line, 2_000)}`).map((each) => style("red", each)),
      ...advice.map((each) => `${isLabelled ? "note:" : " "} ${Inert.line(each)}`)
    ])
    this.face.changed()
  }
}
