/**
 * Files of lines, to which a store of the logs of runs appends.
 */
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as LineReader from "../../sessions/LineReader.ts"
import { type Append, RunLogError } from "../RunLogStore.ts"

export const failing = <A, R>(effect: Effect.Effect<A, PlatformError, R>): Effect.Effect<A, RunLogError, R> =>
  Effect.mapError(effect, (error) => new RunLogError({ detail: LineReader.detailOf(error) }))

const encoder = new TextEncoder()

/** Opens a file in a folder. Begins with a line feed if it has lines, since a crash may have cut the last one. */
export const appending = (
  files: FileSystem.FileSystem,
  folder: string,
  path: string
): Effect.Effect<Append, RunLogError, Scope.Scope> =>
  failing(
    Effect.gen(function* () {
      yield* files.makeDirectory(folder, { recursive: true, mode: 0o700 })
      const file = yield* files.open(path, { flag: "a", mode: 0o600 })
      let isCut = Number((yield* file.stat).size) > 0
      const lock = Semaphore.makeUnsafe(1)
      const write = (lines: ReadonlyArray<string>) => {
        const text = `${isCut ? "\n" : ""}${lines.join("\n")}\n`
        // Until it has succeeded: a write may stop within a line.
        isCut = true
        const done = Effect.sync(() => void (isCut = false))
        return failing(Effect.andThen(file.writeAll(encoder.encode(text)), done))
      }
      return (lines: ReadonlyArray<string>) =>
        lines.length === 0 ? Effect.void : lock.withPermit(Effect.suspend(() => write(lines)))
    })
  )

/** Reads the lines of a file; none if it is not there. */
export const read = Effect.fnUntraced(function* (files: FileSystem.FileSystem, path: string) {
  if (!(yield* failing(files.exists(path)))) return []
  const text = yield* failing(files.readFileString(path))
  return text.split("\n").filter((line) => line !== "")
})
