/**
 * The world outside of a worker: a file to which tools and the model write what they do, so that it is counted where no kill can undo it.
 */
import { closeSync, existsSync, openSync, readFileSync, writeSync } from "node:fs"

/** What was done, as one line of the file. */
export interface Deed {
  readonly what: "model" | "begin" | "end" | "fault"
  readonly sessionId: string
  /** The process that did it. */
  readonly pid: number
  /** Milliseconds since the epoch. */
  readonly at: number
  /** The turn of the model, from 0. */
  readonly turn?: number
  readonly call?: string
  readonly kind?: string
  readonly key?: string
  readonly detail?: string
}

export type Append = (deed: Omit<Deed, "pid" | "at">) => void

/** Appends to the file at once: a line is written before the call returns. */
export const appender = (path: string): Append => {
  const file = openSync(path, "a")
  process.once("exit", () => closeSync(file))
  return (deed) => void writeSync(file, `${JSON.stringify({ ...deed, pid: process.pid, at: Date.now() })}\n`)
}

/** All that was done, in order. */
export const read = (path: string): ReadonlyArray<Deed> =>
  existsSync(path)
    ? readFileSync(path, "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line): Deed => JSON.parse(line))
    : []
