/**
 * The lock file of a session: the process that may write to it.
 *
 * The file appears whole, as a hard link of a complete file. The lock of a process that ended counts for nothing, and exactly one of
 * several processes takes its place: the one that holds a lock of its own on the name of the dead one, and finds the dead one still
 * there. That second lock is taken in this way too, so that a process that ends in the middle of it is in no one's way.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { TaggedError } from "../internal/errors.ts"

/** A process that has a lock. */
const Owner = Schema.Struct({
  pid: Schema.Int,
  start: Schema.optionalKey(Schema.String),
  /** The time of the lock, in milliseconds since the epoch. */
  since: Schema.optionalKey(Schema.Finite),
  /** A name of this lock, which no other has. */
  token: Schema.optionalKey(Schema.String)
})
type Owner = typeof Owner.Type

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Owner))

/** A process that lives has the lock. */
export class Held extends TaggedError<Held>()("Held", {
  /** The id of the process, absent if the file does not say it. */
  pid: Schema.optionalKey(Schema.Int),
  /** The time of the lock, in milliseconds since the epoch. */
  since: Schema.optionalKey(Schema.Finite)
}) {}

type Locking<A = void> = Effect.Effect<A, Held | PlatformError, FileSystem.FileSystem>

/** Takes the lock at a path, until the scope closes. Fails at once if a process that lives has it. */
export const acquire = (
  path: string
): Effect.Effect<void, Held | PlatformError, FileSystem.FileSystem | Scope.Scope> =>
  Effect.gen(function* () {
    const { pid, start } = yield* thisProcess
    const since = yield* Clock.currentTimeMillis
    const token = crypto.randomUUID().slice(0, 8)
    const mine: Owner = { pid, start, since, token }
    yield* Effect.acquireRelease(take(path, mine), () => release(path, mine))
  })

const take = (path: string, mine: Owner): Locking =>
  Effect.gen(function* () {
    if (yield* create(path, mine)) return
    const owner = yield* read(path)
    // Released in between.
    if (owner === undefined) return yield* take(path, mine)
    if (yield* processLives({ start: "", ...owner })) return yield* held(owner)
    yield* replace(path, owner, mine)
  })

const held = ({ pid, since }: Owner) =>
  new Held({ ...(pid > 0 ? { pid } : {}), ...(since === undefined ? {} : { since }) })

/** Takes the place of an owner that is dead. */
const replace = (path: string, dead: Owner, mine: Owner): Locking => {
  const claim = `${path}.${dead.token ?? dead.pid}`
  return Effect.acquireUseRelease(
    take(claim, mine),
    () =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const owner = yield* read(path)
        if (owner !== undefined && owner.token !== dead.token) return yield* held(owner)
        yield* files.remove(path, { force: true })
        if (!(yield* create(path, mine))) return yield* held((yield* read(path)) ?? dead)
      }),
    () => release(claim, mine)
  )
}

/** Makes the lock file, unless there is one. */
const create = (path: string, mine: Owner): Locking<boolean> =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const whole = `${path}.${mine.token}.tmp`
    const text = `${JSON.stringify(mine)}\n`
    yield* files.writeFileString(whole, text, { mode: 0o600 })
    return yield* files.link(whole, path).pipe(
      // A file system without hard links.
      Effect.catchIf(
        ({ reason }) => reason._tag !== "AlreadyExists",
        () => files.writeFileString(path, text, { flag: "wx", mode: 0o600 })
      ),
      Effect.as(true),
      Effect.catchIf(
        ({ reason }) => reason._tag === "AlreadyExists",
        () => Effect.succeed(false)
      ),
      Effect.ensuring(Effect.ignore(files.remove(whole, { force: true })))
    )
  })

/**
 * The owner of a lock, `undefined` if there is none. A file that says no owner counts as the lock of a dead process, unless it is so
 * new that its process may still write it.
 */
const read = (path: string): Locking<Owner | undefined> =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const text = yield* ifThere(files.readFileString(path))
    if (text === undefined) return undefined
    const owner = yield* Effect.orElseSucceed(decode(text), () => undefined)
    if (owner !== undefined) return owner
    const info = yield* ifThere(files.stat(path))
    const modified = Option.getOrUndefined(info?.mtime ?? Option.none())?.getTime() ?? 0
    if ((yield* Clock.currentTimeMillis) - modified < 500) return yield* new Held()
    return { pid: 0, token: "unreadable" }
  })

const ifThere = <A>(effect: Effect.Effect<A, PlatformError>) =>
  Effect.catchIf(
    effect,
    ({ reason }) => reason._tag === "NotFound",
    () => Effect.undefined
  )

const release = (path: string, mine: Owner) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const owner = yield* read(path)
    if (owner?.token === mine.token) yield* files.remove(path, { force: true })
  }).pipe(Effect.ignore)

// ───────────────────────── Processes

// The processes of this machine, each by its id and its start: a later process may have the id, and has another start.
//
// On Linux both come from `/proc`. Elsewhere the runtime says whether a process lives, and its start is not known.

export interface Process {
  readonly pid: number
  /** The boot of the machine and the ticks since then, `""` if it is not known. */
  readonly start: string
}

/** Reads the process from a line of `/proc`. A process that ended and that its parent has not noticed yet does not live. */
const parse = (stat: string, boot: string): Process | undefined => {
  // The name, in parentheses, may have spaces and parentheses.
  const [state, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  const [pid, ticks] = [Number.parseInt(stat, 10), fields[18]]
  const isOver = state === "Z" || state === "X" || ticks === undefined || Number.isNaN(pid)
  return isOver ? undefined : { pid, start: `${boot}/${ticks}` }
}

const readProcess = (name: string) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const boot = yield* files.readFileString("/proc/sys/kernel/random/boot_id")
    return parse(yield* files.readFileString(`/proc/${name}/stat`), boot.trim())
  })

/** This process. */
export const thisProcess: Effect.Effect<Process, never, FileSystem.FileSystem> = readProcess("self").pipe(
  Effect.orElseSucceed(() => undefined),
  Effect.map((found) => found ?? { pid: globalThis.process?.pid ?? 0, start: "" })
)

/** Returns whether a process lives, and is the one that had this start, where that is known. */
export const processLives = ({ pid, start }: Process): Effect.Effect<boolean, never, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const isListed = yield* Effect.orElseSucceed(files.exists("/proc/self/stat"), () => false)
    if (!isListed) return yield* answers(pid)
    const found = yield* Effect.orElseSucceed(readProcess(String(pid)), () => undefined)
    return found !== undefined && (start === "" || found.start === start)
  })

/** Whether the system knows a process. One that it may not signal lives too. */
const answers = (pid: number): Effect.Effect<boolean> =>
  Effect.match(
    Effect.try(() => globalThis.process?.kill(pid, 0)),
    {
      onSuccess: () => true,
      onFailure: ({ cause }) => !(cause instanceof Error && "code" in cause && cause.code === "ESRCH")
    }
  )
