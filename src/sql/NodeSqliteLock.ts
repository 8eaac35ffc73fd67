/**
 * Locks of processes, as files that SQLite locks: the system takes the lock back from a process that ends, in whatever way, and no
 * process id is mistaken for that of another process or container.
 */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import * as SqlError from "effect/sql/SqlError"
import type * as Sqlite from "node:sqlite"

const failure = (cause: unknown): SqlError.SqlError =>
  new SqlError.SqlError({
    reason: new SqlError.ConnectionError({
      cause,
      message: cause instanceof Error ? cause.message : String(cause),
      operation: "lock"
    })
  })

const attempt = <A>(call: () => A): Effect.Effect<A, SqlError.SqlError> =>
  Effect.try({ try: call, catch: failure })

/** The modules of Node, which a bundle of the other stores is without. */
const node = attempt(() => ({
  fs: process.getBuiltinModule("node:fs"),
  path: process.getBuiltinModule("node:path"),
  sqlite: process.getBuiltinModule("node:sqlite")
}))

/** Opens a file that SQLite locks, until the scope closes. */
const open = (
  path: string,
  readOnly: boolean
): Effect.Effect<Sqlite.DatabaseSync, SqlError.SqlError, Scope.Scope> =>
  Effect.flatMap(node, ({ sqlite }) =>
    Effect.acquireRelease(
      attempt(() => new sqlite.DatabaseSync(path, { readOnly, timeout: 0 })),
      (db) => Effect.sync(() => db.close())
    )
  )

/** The lock takes no journal beside the file. */
const lock = (db: Sqlite.DatabaseSync) =>
  attempt(() => db.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE"))

const remove = (path: string) =>
  Effect.flatMap(node, ({ fs }) => attempt(() => fs.rmSync(path, { force: true })))

/**
 * Makes the file of a lock, and locks it until the scope closes. Returns the name of the process. Removes the files of processes that
 * ended, whose paths begin with `prefix` too.
 */
export const take = (prefix: string, id: number): Effect.Effect<string, SqlError.SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    const path = `${prefix}${id}`
    const { fs } = yield* node
    yield* Effect.ignore(sweep(prefix))
    yield* Effect.acquireRelease(
      attempt(() => fs.closeSync(fs.openSync(path, "wx", 0o600))),
      () => Effect.ignore(remove(path))
    )
    yield* lock(yield* open(path, false))
    // A process that swept before the file was locked may have removed it.
    if (!fs.existsSync(path)) return yield* failure(new Error(`another process removed ${path}`))
    return `process ${process.pid}`
  })

/** Removes the files whose processes ended. Locks each of them, so that it is that of no process which is about to lock it. */
const sweep = (prefix: string) =>
  Effect.gen(function* () {
    const { fs, path } = yield* node
    const folder = path.dirname(prefix)
    const files = yield* attempt(() => fs.readdirSync(folder))
    const locks = files.filter((file) => file.startsWith(path.basename(prefix)) && /-\d+$/.test(file))
    yield* Effect.forEach(
      locks.map((file) => path.join(folder, file)),
      (path) =>
        Effect.ignore(
          Effect.scoped(
            Effect.gen(function* () {
              if (yield* isHeld(path)) return
              yield* lock(yield* open(path, false))
              yield* remove(path)
            })
          )
        ),
      { discard: true }
    )
  })

/** `SQLITE_BUSY`. */
const busy = 5
const codeOf = ({ reason: { cause } }: SqlError.SqlError): unknown =>
  Predicate.hasProperty(cause, "errcode") ? cause.errcode : undefined

/** Whether a living process has a file locked. It reads with a shared lock, so that readers do not take one another for the owner. */
export const isHeld = (path: string): Effect.Effect<boolean, SqlError.SqlError> =>
  Effect.gen(function* () {
    const { fs } = yield* node
    const read = Effect.flatMap(open(path, true), (db) =>
      attempt(() => db.exec("SELECT count(*) FROM sqlite_schema"))
    )
    const error = yield* Effect.match(Effect.scoped(read), {
      onSuccess: () => undefined,
      onFailure: (error) => error
    })
    if (error === undefined || !fs.existsSync(path)) return false
    return codeOf(error) === busy ? true : yield* error
  })
