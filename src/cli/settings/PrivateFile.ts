/** JSON files of the user that no other user may read. They are replaced as a whole. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as WriterLock from "../../sessions/WriterLock.ts"
import { UsageError } from "../ExitCode.ts"

/** Replaces a file. */
export const write = Effect.fnUntraced(function* (
  file: string,
  content: object
): Effect.fn.Return<void, PlatformError, FileSystem.FileSystem | Path.Path> {
  const files = yield* FileSystem.FileSystem
  yield* files.makeDirectory((yield* Path.Path).dirname(file), { recursive: true })
  const next = `${file}.${process.pid}`
  yield* files.writeFileString(next, `${JSON.stringify(content, undefined, 2)}\n`, { mode: 0o600 })
  yield* files.rename(next, file)
})

/** Runs an effect while no other process changes a file, for which it waits at most 30 seconds. */
export const locked = <A, E, R>(file: string, effect: Effect.Effect<A, E, R>) =>
  Effect.scoped(
    Effect.andThen(
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        yield* files.makeDirectory((yield* Path.Path).dirname(file), { recursive: true })
        yield* Effect.retry(WriterLock.acquire(`${file}.lock`), {
          while: ({ _tag }) => _tag === "Held",
          schedule: Schedule.spaced("50 millis"),
          times: 600
        })
      }).pipe(Effect.mapError(() => new UsageError({ detail: `${file} cannot be changed: it is locked.` }))),
      effect
    )
  )

/** A file with values by name. Errors name the file, and nothing that is in it. */
export const records = <A>(value: Schema.Codec<A, unknown>) => {
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Record(Schema.String, value)))
  const read = (
    file: string
  ): Effect.Effect<Readonly<Record<string, A>>, UsageError, FileSystem.FileSystem> =>
    FileSystem.FileSystem.use((files) => files.readFileString(file)).pipe(
      Effect.flatMap((text) =>
        Effect.mapError(
          decode(text),
          () => new UsageError({ detail: `${file} is not as the program wrote it: repair or remove it.` })
        )
      ),
      Effect.catchTag("PlatformError", ({ message, reason }) =>
        reason._tag === "NotFound"
          ? Effect.succeed({})
          : Effect.fail(new UsageError({ detail: `${file} cannot be read: ${message}` }))
      )
    )
  /** Sets a value, or removes it. Returns the one before. */
  const put = Effect.fnUntraced(function* (file: string, name: string, value: A | undefined) {
    const { [name]: before, ...others } = yield* read(file)
    if (value !== undefined || before !== undefined)
      yield* Effect.mapError(
        write(file, value === undefined ? others : { ...others, [name]: value }),
        ({ message }) => new UsageError({ detail: `${file} cannot be written: ${message}` })
      )
    return before
  })
  return { read, put }
}
