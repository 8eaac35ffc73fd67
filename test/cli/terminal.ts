/**
 * The program on a terminal of its own, which `script` makes.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { once } from "node:events"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Program from "./program.ts"

/** A machine without `script` cannot run these tests. */
export const isThere = spawnSync("script", ["-qefc", "true", "/dev/null"]).status === 0

/** The person in front of it. */
export interface Person {
  readonly type: (text: string) => void
  /** Waits until the screen shows something that matches, or the program has ended. */
  readonly sees: (pattern: RegExp) => Promise<void>
}

export interface Options {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** A line of a shell that runs at the same time. */
  readonly beside?: string
}

export interface Seen {
  readonly code: number | null
  readonly seen: string
}

/** Runs on a terminal to the end, while a person acts. The terminal has to be as it was then. */
export const run = (
  args: ReadonlyArray<string>,
  act: (person: Person) => Promise<unknown>,
  { beside = ":", cwd = Program.folder({}), env = {} }: Options = {}
): Effect.Effect<Seen> =>
  Effect.gen(function* () {
    // The shell in between must outlive a Ctrl-C, to say what it found. `script` turns the echo off.
    writeFileSync(
      join(cwd, "line"),
      `trap : INT; stty echo; stty > before; (${beside}) & "$@"; code=$?; stty > after; exit $code`
    )
    const line = `exec script -qefc 'exec /bin/sh ./line "'"$0"'" '"$(printf "'%s' " "$@")" /dev/null`
    const { code, stdout } = yield* Effect.acquireUseRelease(
      Effect.sync(() =>
        Program.startIn(line, args, { cwd, stdin: "open", env: { SHELL: "/bin/sh", TERM: "xterm", ...env } })
      ),
      (running) => Effect.promise(() => act(inFrontOf(running)).then(() => running.ended)),
      ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
    )
    const settings = (name: string) => readFileSync(join(cwd, name), "utf8")
    assert.strictEqual(settings("after"), settings("before"))
    assert.notMatch(stdout, /\n\s+at |node:internal|Error:/)
    return { code, seen: stdout }
  })

const inFrontOf = ({ child }: Program.Running): Person => {
  let seen = ""
  child.stdout?.on("data", (text: string) => (seen += text))
  child.stdin?.on("error", () => {})
  return {
    type: (text) => void child.stdin?.write(text),
    sees: async (pattern) => {
      while (!pattern.test(seen) && child.exitCode === null) await once(child.stdout ?? child, "data")
    }
  }
}
