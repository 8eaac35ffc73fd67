/** The keys of the session, as a person reads them: the help and the documentation have this table. */
interface KeyRow {
  readonly key: string
  readonly idle: string
  readonly working: string
}

const same = "the same"

export const table: ReadonlyArray<KeyRow> = [
  {
    key: "Enter",
    idle: "sends",
    working: "steers: the model reads it after the running turn and its tools, before the next model call"
  },
  { key: "Alt-Enter", idle: "sends", working: "queues: a new prompt when the run ends" },
  { key: "Shift-Enter, Ctrl-J, \\ then Enter", idle: "new line", working: "new line" },
  {
    key: "Esc",
    idle: "closes a list; twice within 1 s: clears the input, or with an empty one opens /rewind",
    working: "closes a list, else stops the run"
  },
  {
    key: "Ctrl-C",
    idle: "clears the input (Up brings it back); empty: twice within 2 s leaves",
    working: "clears the input, and the run continues; empty: stops the run"
  },
  {
    key: "Ctrl-D",
    idle: "empty: leaves; else deletes forward",
    working: "empty: twice stops the run and leaves"
  },
  {
    key: "Up, Down",
    idle: "moves; at the first and the last line: history",
    working: "the same; with an empty input Up takes the last message that waits back into it"
  },
  { key: "Tab", idle: "completes a / command, an @ path or an argument", working: same },
  { key: "Shift-Tab", idle: "mode: ask, edits, plan, ask", working: "the same, from the next call on" },
  { key: "Ctrl-R", idle: "searches the history", working: same },
  { key: "Ctrl-O", idle: "writes the last tool call or thought whole", working: same },
  { key: "Ctrl-T", idle: "hides and shows the task list", working: same },
  { key: "Ctrl-G", idle: "opens the input in $VISUAL, else $EDITOR", working: same },
  { key: "Ctrl-L", idle: "draws the live region again", working: same },
  { key: "Ctrl-Z", idle: "suspends the program until fg", working: "the same, and the run continues" },
  {
    key: "Ctrl-A E B F K U W Y, Alt-B F D, Ctrl-_",
    idle: "as in readline; Ctrl-_ undoes typing",
    working: same
  }
]
