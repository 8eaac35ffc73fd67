/**
 * The idempotency keys of a session: each stands for the body that it came with first, and for the answer to it.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Problem from "../api/Problem.ts"
import { Queue } from "../sessions/CustomData.ts"
import type { SessionEntry } from "../sessions/SessionEntry.ts"
import type * as SessionStore from "../sessions/SessionStore.ts"
import type { Idempotency } from "./Runs.ts"
import * as SessionProblem from "./SessionProblem.ts"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Payload from "../api/Payload.ts"
import * as Json from "../internal/json.ts"
import type { RunLogError, Service } from "./RunLogStore.ts"

const Record = Schema.Struct({
  key: Schema.String,
  hash: Schema.String,
  runId: Schema.String,
  status: Schema.Literals(["started", "queued", "joined"]),
  timestamp: Schema.Finite,
  /** The ids of the messages that join the run. Default: none, or those of an earlier version are not known. */
  messages: Schema.optionalKey(Schema.Array(Schema.String))
})
type Record = typeof Record.Type

/** A key that is new. */
interface New extends Pick<Record, "key" | "hash"> {
  /** The ids of the messages that join a run. */
  readonly messages: ReadonlyArray<string> | undefined
}

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Record))

const lifetime = 24 * 3_600_000

/** The hash of a body: two bodies with the same canonical JSON have one. */
export const hashOf = (body: Schema.Json): Effect.Effect<string> => Json.hash(body)

export class IdempotencyKeys {
  private readonly records = new Map<string, Record>()
  private readonly sessionId: string
  private readonly store: Service

  constructor(sessionId: string, store: Service, lines: ReadonlyArray<string>) {
    this.sessionId = sessionId
    this.store = store
    for (const line of lines) {
      const record = Option.getOrUndefined(decode(line))
      if (record !== undefined) this.records.set(record.key, record)
    }
  }

  /** The record of a key that is not older than a day, and whose run exists. */
  find(key: string): Effect.Effect<Record | undefined, RunLogError> {
    return Effect.clockWith((clock) => {
      const record = this.records.get(key)
      if (record === undefined || record.timestamp + lifetime < clock.currentTimeMillisUnsafe()) {
        return Effect.undefined
      }
      // A crash came between the key and the log of its run.
      return Effect.map(this.store.find(record.runId), (run) => (run === undefined ? undefined : record))
    })
  }

  /** Stores a key before its run begins, or before its messages join a run. */
  add(
    { hash, key, messages }: New,
    { runId, status }: Payload.Started | Payload.Joined
  ): Effect.Effect<void, RunLogError> {
    return Effect.clockWith((clock) => {
      const ids = messages === undefined ? {} : { messages }
      const record: Record = { key, hash, runId, status, timestamp: clock.currentTimeMillisUnsafe(), ...ids }
      return Effect.map(
        this.store.addKey(this.sessionId, JSON.stringify(record)),
        () => void this.records.set(key, record)
      )
    })
  }
}

interface Stores {
  readonly logs: Service
  readonly sessions: SessionStore.Service
}

/**
 * The first answer to a key; `undefined` for one that is new, and for one whose process ended before the messages that joined a run were
 * stored: `messageIds` are those of the session. Fails for a key that came with another body.
 */
export const firstAnswer = Effect.fnUntraced(function* <E>(
  keys: IdempotencyKeys,
  { body, key }: Idempotency,
  messageIds: Effect.Effect<ReadonlySet<string>, E>
) {
  const first = yield* SessionProblem.logging(keys.find(key))
  if (first === undefined) return undefined
  const { hash, messages = [], runId, status } = first
  if (hash !== (yield* hashOf(body))) return yield* new Problem.KeyReused({ runId })
  if (status !== "joined") return { runId, status }
  const joined: Payload.Joined = { runId, status }
  if (messages.length === 0) return joined
  const stored = yield* messageIds
  return messages.every((id) => stored.has(id)) ? joined : undefined
})

/** The first answer to a key, as the stores have it. */
export const stored = ({ logs, sessions }: Stores, sessionId: string, idempotency: Idempotency) =>
  Effect.gen(function* () {
    const lines = yield* SessionProblem.logging(logs.keys(sessionId))
    const keys = new IdempotencyKeys(sessionId, logs, lines)
    return yield* firstAnswer(keys, idempotency, messageIds(sessions, sessionId))
  })

/** The ids of the messages of a session, as its store has them. */
export const messageIds = (sessions: SessionStore.Service, sessionId: string) =>
  Effect.mapBoth(sessions.read(sessionId), {
    onFailure: SessionProblem.unavailable,
    onSuccess: ({ entries }) => messageIdsIn(entries)
  })

/** The ids of the messages that entries add: to each of the branches, and to the queues. */
export const messageIdsIn = (entries: ReadonlyArray<SessionEntry>): ReadonlySet<string> =>
  new Set(entries.flatMap(idsIn))

const readQueue = Schema.decodeUnknownResult(Queue)

const idsIn = (entry: SessionEntry): ReadonlyArray<string> => {
  if (entry.type === "message") return [entry.message.id]
  if (entry.type !== "custom" || entry.kind !== "queue") return []
  const read = readQueue(entry.data)
  return Result.isSuccess(read) && "messages" in read.success ? read.success.messages.map(({ id }) => id) : []
}
