/**
 * Opens sessions for writing.
 */
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { SessionError, Unreadable } from "../../Session.ts"
import type { CreateOptions, Damage, OpenSession, Options } from "./Contract.ts"
import * as CustomData from "../CustomData.ts"
import { type Keeper, Part, Shared } from "./OpenSession.ts"
import { read } from "./Reading.ts"
import * as SessionEntry from "../SessionEntry.ts"
import * as SessionName from "../SessionName.ts"
import { firstUser } from "./SessionState.ts"
import type { NewSession, SessionStorage, Writer } from "../SessionStorage.ts"

/** The place of a new session. Fails with `Unreadable` if no storage can take its id. */
export const newSession = ({ cwd = "", sessionId = crypto.randomUUID() }: CreateOptions) =>
  Effect.flatMap(
    Clock.currentTimeMillis,
    (created): Effect.Effect<NewSession, SessionError> =>
      SessionName.isId(sessionId)
        ? Effect.succeed({ sessionId, cwd, created })
        : unreadable(
            sessionId,
            'its id must have 1 to 200 characters, without control characters, and not be "." or ".."'
          )
  )

const unreadable = (sessionId: string, detail: string) =>
  Effect.fail(new SessionError({ sessionId, reason: new Unreadable({ detail }) }))

/** The first entry of a new session. Its id is that of the session, so that its name stays known if its line is lost. */
export const startOf = ({ created, cwd, sessionId }: NewSession): SessionEntry.Start => ({
  v: SessionEntry.version,
  type: "session",
  id: sessionId,
  parentId: null,
  timestamp: created,
  sessionId,
  cwd,
  created
})

export const create = (storage: SessionStorage, options: Options, created: CreateOptions = {}) =>
  Effect.gen(function* () {
    const session = yield* newSession(created)
    const writer = yield* storage.create(session)
    const start = { ...startOf(session), ...(created.name === undefined ? {} : { name: created.name }) }
    const shared = new Shared(session.sessionId, options.redact)
    yield* Effect.flatMap(
      shared.attempt(() => shared.line(start)),
      (line) => writer.append([line])
    )
    return yield* opened(storage, options, shared, writer)
  })

export const open = (storage: SessionStorage, options: Options, sessionId: string) =>
  Effect.flatMap(storage.open(sessionId), (writer) =>
    opened(storage, options, new Shared(sessionId, options.redact), writer)
  )

export const openOrCreate = (
  storage: SessionStorage,
  options: Options,
  sessionId: string,
  created: Omit<CreateOptions, "sessionId"> = {}
): Effect.Effect<OpenSession, SessionError, Scope.Scope> => {
  const make = create(storage, options, { ...created, sessionId })
  // Another process may make it in between.
  const reopen = Effect.catchReason(make, "SessionError", "Exists", () => open(storage, options, sessionId))
  return Effect.catchReason(open(storage, options, sessionId), "SessionError", "Missing", () => reopen)
}

const opened = (storage: SessionStorage, options: Options, shared: Shared, writer: Writer) =>
  Effect.gen(function* () {
    const { sessionId } = shared
    const { damage, state } = yield* read(storage, sessionId)
    const keeper: Keeper = {
      load: Effect.map(read(storage, sessionId), (reading) => reading.state),
      write: (lines) =>
        Effect.flatMap(
          shared.attempt(() => Arr.map(lines, (line) => shared.line(line))),
          writer.append
        ),
      verify: writer.verify ?? Effect.void
    }
    const part = new Part(sessionId, shared, keeper, state)
    const { title } = options
    return handleOf(part, damage, title === undefined ? Effect.void : yield* titled(part, title))
  })

/** `recorded` runs after each write of records. */
const handleOf = (part: Part, damage: ReadonlyArray<Damage>, recorded: Effect.Effect<void>): OpenSession => ({
  id: part.id,
  get restored() {
    return part.restored
  },
  damage,
  record: (records) => Effect.andThen(part.record(records), recorded),
  log: (lines) => Effect.andThen(part.log(lines), recorded),
  verify: part.verify,
  child: part.child,
  childOf: part.childOf,
  leaf: Effect.sync(() => part.state.tree.leaf ?? part.id),
  append: (drafts) =>
    // After a write that failed, an entry may stand before them that continues behind the last one.
    Effect.map(part.alone(Effect.andThen(readable(part, drafts), part.write([() => drafts]))), (entries) =>
      entries.slice(-drafts.length).map(({ id }) => id)
    ),
  rewind: (targetId) => part.alone(Effect.andThen(known(part, targetId), part.rewind(targetId))),
  rewindBefore: (messageId) =>
    part.alone(
      Effect.flatMap(part.entryBefore(messageId), (targetId) =>
        targetId === undefined ? unreadable(part.id, `it has no message ${messageId}`) : part.rewind(targetId)
      )
    ),
  label: (targetId, label) =>
    part.alone(
      Effect.andThen(known(part, targetId), part.write([() => [{ type: "label", targetId, label }]]))
    ),
  rename: (label) => rename(part, label)
})

const rename = (part: Part, label: string) =>
  part.alone(part.write([() => [{ type: "label", targetId: part.id, label }]]))

const known = (part: Part, entryId: string) =>
  part.state.tree.has(entryId) ? Effect.void : unreadable(part.id, `it has no entry ${entryId}`)

/** Fails for drafts whose entries no reader could use. */
const readable = (part: Part, drafts: ReadonlyArray<SessionEntry.Draft>) => {
  const faults = drafts.flatMap((draft, at) => faultOf(part, draft, drafts.slice(0, at)) ?? [])
  return faults.length === 0 ? Effect.void : unreadable(part.id, `it cannot hold this: ${faults.join("; ")}`)
}

/** The fault of a draft behind others, in words. */
const faultOf = (
  { state }: Part,
  draft: SessionEntry.Draft,
  before: ReadonlyArray<SessionEntry.Draft>
): string | undefined => {
  if (draft.type === "custom") return CustomData.faultOf(draft.kind, draft.data)
  if (draft.type !== "leaf") return undefined
  const { targetId } = draft
  const isKnown = state.tree.has(targetId) || before.some(({ id }) => id === targetId)
  return isKnown ? undefined : `it has no entry ${targetId}`
}

/** Makes a name after the first record of a user message, once, and beside the conversation. */
const titled = (part: Part, title: NonNullable<Options["title"]>) =>
  Effect.map(Effect.scope, (scope): Effect.Effect<void> => {
    let isTitled = part.state.name !== ""
    return Effect.suspend(() => {
      const message = isTitled ? undefined : firstUser(part.state)
      if (message === undefined) return Effect.void
      isTitled = true
      const named = Effect.flatMap(title(message), (name) =>
        Effect.suspend(() => (part.state.name === "" ? rename(part, name) : Effect.void))
      )
      return Effect.asVoid(Effect.forkIn(Effect.ignore(named), scope))
    })
  })
