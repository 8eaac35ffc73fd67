/**
 * A session that is open for writing, and the parts of it that belong to agents inside tool calls.
 *
 * The state of an open session is the fold of its entries, which are added one by one before they are written. After a write that fails
 * only the storage knows how much of it the session holds. The next change reads the session again, and continues behind the entry that
 * was the current one before the failure.
 */
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { MessageId } from "../../Message.ts"
import { type Record, type Restored, type Session, SessionError, Unreadable } from "../../Session.ts"
import type { Logged } from "./Contract.ts"
import * as Journal from "./Journal.ts"
import * as RunLines from "./RunLines.ts"
import * as SessionEntry from "../SessionEntry.ts"
import { SessionState } from "./SessionState.ts"
import type { Line } from "../SessionStorage.ts"

type Entries = ReadonlyArray<SessionEntry.Known>
/** The lines of a write. */
type Lines = ReadonlyArray<Logged | SessionEntry.Known>
/** Makes lines of logs, and drafts that belong behind a state. */
type Step = (state: SessionState) => ReadonlyArray<Logged | SessionEntry.Draft>

/** The place where a part keeps its entries. */
export interface Keeper {
  /** The state of the entries that are kept. */
  readonly load: Effect.Effect<SessionState, SessionError>
  /** Writes lines, all or none of them. */
  readonly write: (
    lines: Arr.NonEmptyReadonlyArray<Logged | SessionEntry.Known>
  ) => Effect.Effect<void, SessionError>
  /** Succeeds while the session has no other writer. */
  readonly verify: Effect.Effect<void, SessionError>
}

/** All parts of a session share one. */
type Redact = (entry: SessionEntry.Known) => SessionEntry.Known

export class Shared {
  readonly sessionId: string
  readonly lock = Semaphore.makeUnsafe(1)
  /** Counts failed writes: the state of a part that was loaded before the last one is void. */
  failures = 0
  private readonly redact: Redact | undefined

  constructor(sessionId: string, redact: Redact | undefined) {
    this.sessionId = sessionId
    this.redact = redact
  }

  /** Computes what may fail because data is no JSON. */
  attempt<A>(compute: () => A): Effect.Effect<A, SessionError> {
    return Effect.try({
      try: compute,
      catch: (error) => {
        const reason = new Unreadable({ detail: `it cannot hold this: ${String(error)}` })
        return new SessionError({ sessionId: this.sessionId, reason })
      }
    })
  }

  /** The line of an entry. Entries of agents inside calls are redacted before they are wrapped. */
  line(entry: Logged | SessionEntry.Known): Line {
    if (isLogged(entry)) return RunLines.encode(entry)
    const { type } = entry
    const isWrapper = type === "custom" && entry.kind === "child"
    return { type, text: SessionEntry.encode(isWrapper ? entry : this.stored(entry)) }
  }

  /** An entry as it is stored. */
  stored(entry: SessionEntry.Known): SessionEntry.Known {
    return this.redact === undefined
      ? entry
      : { ...this.redact(entry), id: entry.id, parentId: entry.parentId }
  }
}

export class Part implements Session {
  readonly id: string
  /** The state when the session was opened, or rewound last. */
  restored: Restored
  state: SessionState
  private readonly shared: Shared
  private readonly keeper: Keeper
  /** The current entry after the last write that succeeded. */
  private leaf: string | null
  /** The number of failed writes when the state was loaded. */
  private failures: number
  /** The entries that the next write begins with. */
  private staged: Entries = []

  constructor(id: string, shared: Shared, keeper: Keeper, state: SessionState) {
    this.id = id
    this.shared = shared
    this.keeper = keeper
    this.restored = state.restored()
    this.state = state
    this.leaf = state.tree.leaf
    this.failures = shared.failures
    state.tree.trim()
  }

  /** Runs an effect while no other change of the session is under way. A change is never left half done. */
  alone<A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.uninterruptible(this.shared.lock.withPermit(effect))
  }

  readonly record = (records: Arr.NonEmptyReadonlyArray<Record>): Effect.Effect<void, SessionError> =>
    this.log(records)

  readonly log = (lines: Arr.NonEmptyReadonlyArray<Logged | Record>): Effect.Effect<void, SessionError> =>
    Effect.asVoid(
      this.alone(
        this.write(
          lines.map((line) => (state) => (line._tag === "Logged" ? [line] : Journal.drafts(state, line)))
        )
      )
    )

  get verify(): Effect.Effect<void, SessionError> {
    return this.keeper.verify
  }

  readonly child = (toolCallId: string): Effect.Effect<Session, SessionError> =>
    this.partOf(toolCallId, (step) => Effect.asVoid(this.write([step])))

  readonly childOf = (toolCallId: string): Effect.Effect<Session, SessionError> =>
    this.partOf(toolCallId, (step) =>
      Effect.map(this.placed([step]), (lines) => void (this.staged = lines.filter(isEntry)))
    )

  private partOf(toolCallId: string, write: (step: Step) => Effect.Effect<void, SessionError>) {
    return this.alone(
      Effect.gen({ self: this }, function* () {
        const keeper: Keeper = {
          load: Effect.map(this.refresh, () => childState(this.state, toolCallId)),
          write: (lines) =>
            write(() =>
              lines.filter(isEntry).map((entry) => Journal.ofChild(toolCallId, this.shared.stored(entry)))
            ),
          verify: this.verify
        }
        return new Part(`${this.id}/${toolCallId}`, this.shared, keeper, yield* keeper.load)
      })
    )
  }

  /** Writes what the steps draft, each behind what those before it drafted. The caller holds the lock. */
  write(steps: ReadonlyArray<Step>): Effect.Effect<Entries, SessionError> {
    return Effect.gen({ self: this }, function* () {
      const lines = yield* this.placed(steps)
      this.staged = []
      if (Arr.isReadonlyArrayNonEmpty(lines)) yield* this.failing(this.keeper.write(lines))
      this.leaf = this.state.tree.leaf
      return lines.filter(isEntry)
    })
  }

  /** The entries that are staged, and the lines that the steps draft. */
  private placed(steps: ReadonlyArray<Step>): Effect.Effect<Lines, SessionError> {
    return this.failing(
      Effect.gen({ self: this }, function* () {
        const behind = yield* this.refresh
        const now = yield* Clock.currentTimeMillis
        const added = yield* this.shared.attempt(() =>
          [...behind, ...steps].flatMap((step) => this.add(step(this.state), now))
        )
        return [...this.staged, ...added]
      })
    )
  }

  private failing<A>(write: Effect.Effect<A, SessionError>): Effect.Effect<A, SessionError> {
    const failed = Effect.sync(() => {
      this.shared.failures++
      this.staged = []
    })
    return Effect.onError(write, () => failed)
  }

  /**
   * The entry behind which a message of the current branch stands, but for the start of its run; `undefined` without the message. The
   * caller holds the lock.
   */
  entryBefore(messageId: MessageId): Effect.Effect<string | undefined, SessionError> {
    return Effect.map(this.keeper.load, ({ tree }) => {
      const branch = tree.branch()
      const at = branch.findLastIndex((entry) => entry.type === "message" && entry.message.id === messageId)
      const before = branch.slice(0, Math.max(0, at))
      return before.findLast((entry) => entry.type !== "run" || entry.phase !== "start")?.id
    })
  }

  /** Makes an entry the current one, and loads the state there. The caller holds the lock. */
  rewind(targetId: string): Effect.Effect<Restored, SessionError> {
    return Effect.gen({ self: this }, function* () {
      yield* this.write([() => [{ type: "leaf", targetId }]])
      this.state = yield* this.keeper.load
      this.restored = this.state.restored()
      this.state.tree.trim()
      return this.restored
    })
  }

  /** Loads the state again if a write has failed since. Returns the step that continues behind the last entry before it. */
  private readonly refresh: Effect.Effect<ReadonlyArray<Step>, SessionError> = Effect.suspend(() => {
    const { failures } = this.shared
    if (this.failures === failures) return Effect.succeed([])
    return Effect.map(this.keeper.load, (state) => {
      const { leaf: targetId } = this
      state.tree.trim(targetId ?? undefined)
      this.state = state
      this.failures = failures
      return targetId === null || state.tree.leaf === targetId ? [] : [() => [{ type: "leaf", targetId }]]
    })
  })

  private add(drafts: ReadonlyArray<Logged | SessionEntry.Draft>, timestamp: number): Lines {
    return drafts.map((draft) => {
      if (isLogged(draft)) return draft
      const entry = place(this.state, draft, timestamp)
      this.state.add(entry)
      return entry
    })
  }
}

const isLogged = (line: Logged | SessionEntry.Draft | SessionEntry.Known): line is Logged => "_tag" in line

const isEntry = (line: Logged | SessionEntry.Known): line is SessionEntry.Known => !isLogged(line)

/** A draft as the next entry. */
const place = ({ tree }: SessionState, draft: SessionEntry.Draft, timestamp: number): SessionEntry.Known => {
  const id = draft.id !== undefined && !tree.has(draft.id) ? draft.id : SessionEntry.makeId()
  // Behind its target, so that the last entry is the end of the current branch for every reader.
  const parentId = draft.type === "leaf" ? draft.targetId : tree.leaf
  return { ...draft, v: SessionEntry.version, id, parentId, timestamp }
}

const childState = (parent: SessionState, toolCallId: string): SessionState => {
  const state = new SessionState("")
  for (const entry of parent.children.get(toolCallId) ?? []) state.add(entry)
  return state
}
