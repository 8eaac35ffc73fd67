/** The input of the session: an editor with undo, a kill ring and history, whose cursor is that of the terminal. */
import {
  CURSOR_MARKER,
  Editor,
  ProcessTerminal,
  TuiMainScreen,
  stripTerminalSequences,
  visibleWidth
} from "@earendil-works/pi-tui"

/** The screen that the editor is made for. It draws nothing. */
class Screen extends TuiMainScreen {
  override requestRender(): void {}
}

const plain = (text: string): string => text
const list = {
  selectedPrefix: plain,
  selectedText: plain,
  description: plain,
  scrollInfo: plain,
  noMatch: plain
}

/** A tab of the text while it is in the editor, which would make spaces of it. */
const tab = "\ue009"

/** Characters that a terminal obeys, and those that reorder a line. */
// oxlint-disable-next-line no-control-regex -- Control characters.
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

export class Input {
  private readonly editor = new Editor(new Screen(new ProcessTerminal()), {
    borderColor: plain,
    selectList: list
  })

  constructor(history: ReadonlyArray<string>) {
    this.editor.focused = true
    this.editor.disableSubmit = true
    for (const prompt of history) this.editor.addToHistory(prompt)
  }

  /** The text, with what was pasted. */
  get text(): string {
    return this.editor.getExpandedText().replaceAll(tab, "\t")
  }

  get isEmpty(): boolean {
    return this.editor.getText() === ""
  }

  /** The text before the cursor in its line. */
  get before(): string {
    const { col, line } = this.editor.getCursor()
    return (this.editor.getLines()[line] ?? "").slice(0, col)
  }

  /** Whether the cursor stands in the first line. */
  get isInFirstLine(): boolean {
    return this.editor.getCursor().line === 0
  }

  /** Puts a text in the place of what is there. */
  set(text: string): void {
    this.editor.setText(text.replaceAll(controls, "").replaceAll("\t", tab))
  }

  /** Empties the input, and returns its text. */
  take(): string {
    const { text } = this
    this.editor.setText("")
    return text
  }

  /** Keeps a prompt for the key Up. */
  remember(prompt: string): void {
    if (!/^\s/.test(prompt)) this.editor.addToHistory(prompt)
  }

  insert(text: string): void {
    this.editor.insertTextAtCursor(text)
  }

  /** Puts a text in the place of the one before the cursor. */
  replace(before: string, text: string): void {
    for (const _ of before) this.editor.handleInput("\u007f")
    this.editor.insertTextAtCursor(text)
  }

  /** Begins a new line. After a backslash, in its place. */
  newLine(isAfterBackslash = false): void {
    if (isAfterBackslash) this.editor.handleInput("\u007f")
    this.editor.insertTextAtCursor("\n")
  }

  paste(text: string): void {
    const lines = text.replaceAll(/\r\n?/g, "\n").replaceAll(controls, "").replaceAll("\t", tab)
    this.editor.handleInput(`\u001b[200~${lines}\u001b[201~`)
  }

  /** A key that edits. */
  key(data: string): void {
    this.editor.handleInput(data)
  }

  /** The lines of the input without its sign, and the place of the cursor. */
  render(width: number) {
    const rows = this.editor.render(Math.max(4, width)).slice(1, -1)
    const line = Math.max(
      0,
      rows.findIndex((row) => row.includes(CURSOR_MARKER))
    )
    const [before = ""] = shown(rows[line] ?? "").split(CURSOR_MARKER)
    const lines = rows.map((row) => stripTerminalSequences(shown(row)).trimEnd())
    return { lines, cursor: { line, column: visibleWidth(before) } }
  }
}

const shown = (row: string): string =>
  row.replaceAll(/\[paste #(\d+) \+?(\d+ \w+)\]/g, "[paste $1: $2]").replaceAll(tab, " ")
