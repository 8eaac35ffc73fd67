/** Keeps what the calls of a session change in files, and takes it back. */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import * as Tool from "../../Tool.ts"
import type { Change, Keeper } from "../../tools/Keeping.ts"
import { KeepFailed, type KeptStore } from "./KeptStore.ts"
import * as Ledger from "./Ledger.ts"
import * as PromptChanges from "./PromptChanges.ts"
import * as Restoring from "./Restoring.ts"
import * as Snapshot from "./Snapshot.ts"
import * as Version from "./Version.ts"

/** The most bytes of a file, and of all versions of a session, that are kept. */
export interface Limits {
  /** Default 10 MB. */
  readonly keepFile?: number
  /** Default 500 MB. */
  readonly keepSession?: number
}

const snapshotJson = Schema.fromJsonString(Snapshot.Snapshot)
const encodeSnapshot = Schema.encodeEffect(snapshotJson)
const decodeSnapshot = Schema.decodeUnknownOption(snapshotJson)

const unkept = ({ message }: { readonly message: string }) => new KeepFailed({ detail: message })

/** Opens the versions of a session: ends what a killed process has left, and succeeds with the keeper. */
export const open = Effect.fnUntraced(function* (store: KeptStore, limits: Limits = {}) {
  const services = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const keeper = new FileKeeper(store, limits, Context.pick(FileSystem.FileSystem, Path.Path)(services))
  yield* keeper.load
  return keeper
})

export class FileKeeper implements Keeper {
  private state = Ledger.initial
  private sizes = new Map<string, number>()
  /** The versions of files that did not change lately, by path. */
  private readonly known = new Map<string, { readonly stamp: string; readonly version: Version.Version }>()
  private readonly one = Semaphore.makeUnsafe(1)
  private readonly store: KeptStore
  private readonly keepFile: number
  private readonly keepSession: number
  private readonly services: Context.Context<FileSystem.FileSystem | Path.Path>

  constructor(
    store: KeptStore,
    { keepFile = 10_000_000, keepSession = 500_000_000 }: Limits,
    services: Context.Context<FileSystem.FileSystem | Path.Path>
  ) {
    this.store = store
    this.keepFile = keepFile
    this.keepSession = keepSession
    this.services = services
  }

  /** Reads the records, and ends what has no end: a restore is finished or taken back, a command has changed what differs now. */
  get load(): Effect.Effect<void, KeepFailed> {
    return Effect.gen({ self: this }, function* () {
      this.sizes = new Map(yield* this.store.sizes)
      this.state = Ledger.read(yield* this.store.lines).reduce(Ledger.step, Ledger.initial)
      yield* this.settle
      for (const begin of this.state.begun) yield* this.end(begin)
      if (this.state.restore !== undefined) yield* this.finish(this.state.restore)
    }).pipe(this.using)
  }

  /** The changes that can be taken back, and those that can be made again. */
  get current(): Ledger.State {
    return this.state
  }

  /** The first version of each file that was changed, by path. */
  get firstVersions(): ReadonlyMap<string, Version.Version> {
    const all = this.state.back.flatMap(({ changes }) => changes)
    return new Map(all.toReversed().map(({ before, path }) => [path, before]))
  }

  /** The text of a version, `""` for one that is not kept. */
  text(version: Version.Version): Effect.Effect<string, KeepFailed> {
    return version.kind === "file" && version.kept
      ? Effect.map(this.store.get(version.hash), (bytes) => new TextDecoder().decode(bytes))
      : Effect.succeed("")
  }

  // ───────────────────────── Keeping

  file({ content, path, through }: Change) {
    return Effect.gen({ self: this }, function* () {
      const before = yield* this.read(through)
      const after = yield* this.keep(content)
      yield* this.append({ type: "file", ...(yield* named), path, before, after })
    }).pipe(Effect.mapError(unkept), this.using)
  }

  command<A, E, R>(root: string, run: Effect.Effect<A, E, R>): Effect.Effect<A, E | KeepFailed, R> {
    const begin = Effect.gen({ self: this }, function* () {
      const snapshot = yield* encodeSnapshot(yield* Snapshot.take(root, this.reads))
      const content = new TextEncoder().encode(snapshot)
      const hash = Version.hashOf(content)
      yield* this.store.put(hash, content)
      const record: Ledger.Begin = { type: "begin", ...(yield* named), root, snapshot: hash }
      yield* this.append(record)
      return record
    }).pipe(Effect.mapError(unkept), this.using)
    return Effect.acquireUseRelease(
      Effect.interruptible(begin),
      () => run,
      (record) => Effect.catch(this.end(record), (error) => Effect.logWarning(error.message))
    )
  }

  /** Records what a command has changed. */
  private end({ id, runId, snapshot }: Ledger.Begin): Effect.Effect<void, KeepFailed> {
    return Effect.gen({ self: this }, function* () {
      const text = new TextDecoder().decode(yield* this.store.get(snapshot))
      const before = decodeSnapshot(text)
      const { changes, notKept } = Option.isSome(before)
        ? yield* Snapshot.compare(before.value, this.reads, (content, mode) => this.keep(content, mode))
        : { changes: [], notKept: [] }
      yield* this.append({ type: "end", id, runId, changes, notKept })
      const isUsed = this.state.begun.some((other) => other.snapshot === snapshot)
      if (!isUsed) yield* this.store.drop(snapshot)
    }).pipe(Effect.mapError(unkept), this.using)
  }

  private readonly reads: Snapshot.Reads = (path, limit) => this.using(this.read(path, limit))

  /** Reads what is at a path, and keeps its content. */
  private read(
    path: string,
    limit = this.keepFile
  ): Effect.Effect<Version.Version, KeepFailed | PlatformError, FileSystem.FileSystem> {
    return Effect.gen({ self: this }, function* () {
      const files = yield* FileSystem.FileSystem
      const now = yield* Clock.currentTimeMillis
      const info = yield* Effect.option(files.lstat(path))
      const stamp = Option.match(info, { onNone: () => "", onSome: Version.stampOf })
      const known = this.known.get(path)
      if (known !== undefined && known.stamp === stamp && stamp !== "") return known.version
      const { content, version } = yield* Version.read(path, limit)
      const kept = version.kind === "file" ? yield* this.keep(content ?? empty, version.mode) : version
      const changed = Option.flatMap(info, ({ mtime }) => mtime)
      // A file that changed just now can change again within the resolution of its time.
      if (Option.exists(changed, (time) => time.getTime() < now - 2_000))
        this.known.set(path, { stamp, version: kept })
      return kept
    })
  }

  /** Keeps a content, within the limits. */
  private keep(content: Uint8Array, mode?: number): Effect.Effect<Version.File, KeepFailed> {
    return Effect.gen({ self: this }, function* () {
      const hash = Version.hashOf(content)
      const has = this.sizes.has(hash)
      const total = [...this.sizes.values()].reduce((sum, size) => sum + size, 0)
      const kept = has || (content.length <= this.keepFile && total + content.length <= this.keepSession)
      if (kept && !has) {
        yield* this.store.put(hash, content)
        this.sizes.set(hash, content.length)
      }
      return { kind: "file", hash, kept, ...(mode === undefined ? {} : { mode }) }
    })
  }

  private append(record: Ledger.Record): Effect.Effect<void, KeepFailed> {
    const write = Effect.gen({ self: this }, function* () {
      yield* this.store.append(yield* Effect.orDie(Ledger.encode(record)))
      this.state = Ledger.step(this.state, record)
    })
    return this.one.withPermit(Effect.uninterruptible(write))
  }

  /** Records of each change that a call was about to make, and did not make, that it was not made. */
  private readonly settle = Effect.gen({ self: this }, function* () {
    for (const { after, before, path, runId } of this.state.intended.values()) {
      const { version } = yield* Version.read(path, this.keepFile)
      if (Version.isSame(version, after) || !Version.isSame(version, before)) continue
      const changes = [{ path, before: after, after: before }]
      yield* this.append({ type: "end", id: crypto.randomUUID(), runId, changes, notKept: [] })
    }
  }).pipe(Effect.mapError(unkept))

  // ───────────────────────── Taking back

  /**
   * Plans to take back what the newest items changed, or to make it again. `kept` are paths that stay as they are. Nothing is written but
   * the versions that would be overwritten.
   */
  plan(direction: Restoring.Direction, count: number, kept: ReadonlySet<string> = new Set()) {
    return Effect.gen({ self: this }, function* () {
      yield* this.settle
      const from = direction === "back" ? this.state.back : this.state.forth
      const items = from.slice(Math.max(0, from.length - count)).toReversed()
      return yield* Restoring.plan(direction, items, kept, this.reads)
    }).pipe(Effect.mapError(unkept), this.using)
  }

  /** The words for the model on what went back since its last prompt, and records that it knows; `undefined` if nothing did. */
  report(root: string): Effect.Effect<string | undefined, KeepFailed> {
    return Effect.gen({ self: this }, function* () {
      const { unreported } = this.state
      if (unreported.length === 0) return undefined
      const paths = yield* Path.Path
      const lines = unreported.map(({ path, to }) => {
        const inRoot = path.startsWith(`${root}${paths.sep}`)
        return `${to.kind === "absent" ? "removed" : "restored"} ${inRoot ? paths.relative(root, path) : path}`
      })
      const more = lines.length > maxReported ? [`and ${lines.length - maxReported} more`] : []
      yield* this.append({ type: "reported" })
      return [PromptChanges.report, ...lines.slice(0, maxReported), ...more].join("\n")
    }).pipe(this.using)
  }

  /** Carries out a plan, all of it or nothing. */
  restore({ direction, items, writes }: Restoring.Plan): Effect.Effect<void, KeepFailed> {
    return Effect.gen({ self: this }, function* () {
      const restore: Ledger.Restore = { type: "restore", id: crypto.randomUUID(), direction, items, writes }
      yield* this.append(restore)
      yield* this.finish(restore)
    }).pipe(Effect.uninterruptible)
  }

  private finish(restore: Ledger.Restore): Effect.Effect<void, KeepFailed> {
    return Effect.gen({ self: this }, function* () {
      const done = yield* Effect.result(Restoring.write(restore, "to", this.store))
      if (done._tag === "Failure") yield* Restoring.write(restore, "from", this.store)
      this.known.clear()
      yield* this.append({ type: "restored", id: restore.id, isDone: done._tag === "Success" })
      if (done._tag === "Failure") return yield* done.failure
    }).pipe(this.using)
  }

  private readonly using = <A, E, R>(
    effect: Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, Exclude<R, FileSystem.FileSystem | Path.Path>> =>
    Effect.provideContext(effect, this.services)
}

/** The most files that the words for the model name. */
const maxReported = 50

const empty = new Uint8Array()

/** The ids of a record: its own, and that of the run that the person's prompt began. */
const named = Effect.map(Effect.serviceOption(Tool.ToolContext), (context) => ({
  id: crypto.randomUUID(),
  runId: Option.match(context, { onNone: () => "", onSome: ({ path, runId }) => path?.[0]?.runId ?? runId })
}))
