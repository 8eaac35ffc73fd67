/**
 * Files of lines, to which a store of the logs of runs appends.
 */
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
import * as LineReader from "../../sessions/LineReader.ts"
import { RunLogError } from "../RunLogStore.ts"

export const failing = <A, R>(effect: Effect.Effect<A, PlatformError, R>): Effect.Effect<A, RunLogError, R> =>
  Effect.mapError(effect, (error) => new RunLogError({ detail: LineReader.detailOf(error) }))

const encoder = new TextEncoder()

/**
 * Appends lines to a file in a folder, and makes both if they are not there. Begins with a line feed if the file has lines, since a crash
 * may have cut the last one.
 */
export const append = (
  files: FileSystem.FileSystem,
  folder: string,
  path: string,
  lines: ReadonlyArray<string>
): Effect.Effect<void, RunLogError> => {
  const appended = Effect.gen(function* () {
    yield* files.makeDirectory(folder, { recursive: true, mode: 0o700 })
    const file = yield* files.open(path, { flag: "a", mode: 0o600 })
    const start = Number((yield* file.stat).size) > 0 ? "\n" : ""
    if (lines.length > 0) yield* file.writeAll(encoder.encode(`${start}${lines.join("\n")}\n`))
  })
  return failing(Effect.scoped(appended))
}

/** Reads the lines of a file; none if it is not there. */
export const read = Effect.fnUntraced(function* (files: FileSystem.FileSystem, path: string) {
  if (!(yield* failing(files.exists(path)))) return []
  const text = yield* failing(files.readFileString(path))
  return text.split("\n").filter((line) => line !== "")
})
