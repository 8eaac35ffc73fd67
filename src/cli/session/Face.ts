/** Where a session is shown: the screen, or line mode. */
import type * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type * as Path from "effect/Path"
import type * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import type { AgentEvent } from "../../AgentEvent.ts"
import type { Screen } from "../terminal/Screen.ts"

/** The services of all that a session does. */
export type Services = FileSystem.FileSystem | Path.Path | Screen | ChildProcessSpawner.ChildProcessSpawner

/** How the person has left. */
export type Leaving = "quit" | "unfinished"

export interface Face {
  readonly leave: (how: Leaving) => void
  /** Puts a text in place of the input. */
  readonly fill: (text: string) => void
  /** Writes lines that are finished and safe. */
  readonly print: (lines: ReadonlyArray<string>) => void
  /** Shows events: the screen by the lines that they finish, line mode by lines of its own. */
  readonly events: (events: ReadonlyArray<AgentEvent>, finished: ReadonlyArray<string>) => void
  /** The columns of a line. */
  readonly width: () => number
  /** Something of the session has changed. */
  readonly changed: () => void
  /** Puts a text before what is in the input. */
  readonly giveBack: (text: string) => void
  /** Puts a text in place of the input, and requests that it is edited there; the next Enter gives it to the function. */
  readonly edit: (text: string, title: string, done: (text: string | undefined) => void) => void
  /** Opens a text in the person's editor, and succeeds with what it became. */
  readonly editor: (text: string, name: string) => Effect.Effect<string | undefined, Error, Services>
  /** Calls the person. */
  readonly notify: (what: "approval" | "question" | "done") => void
}
