/**
 * The entries of a session, each a JSON object that a store keeps.
 *
 * **Details**
 *
 * A session is a tree that only grows. Each entry names the entry before it by `parentId`, and the conversation is the way from the
 * first entry to the current one: the last entry, or the target of the last `leaf` entry.
 *
 * The format grows by addition only. A reader keeps members and types that it does not know, and does not use them.
 *
 * @since 0.2.0
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { RunStatus } from "../AgentEvent.ts"
import { compactionReason } from "../internal/eventParts.ts"
import { isObject, type JsonObject } from "../internal/json.ts"
import * as Message from "../Message.ts"
import { Usage } from "../Usage.ts"

/**
 * The version of the entries that this version of the package writes.
 *
 * @category constants
 * @since 0.2.0
 */
export const version = 1

const base = {
  /** The version of the entry. */
  v: Schema.Literal(version),
  /** The id of the entry, unique in its session. */
  id: Schema.String,
  /** The id of the entry before it, `null` for the first. */
  parentId: Schema.NullOr(Schema.String),
  /** The time of the entry in milliseconds since the epoch. */
  timestamp: Schema.Finite
}

/**
 * The first entry of a session.
 *
 * @category models
 * @since 0.2.0
 */
export const Start = Schema.Struct({
  ...base,
  /** The type of the entry. */
  type: Schema.Literal("session"),
  /** The id of the session. */
  sessionId: Schema.String,
  /** The working directory of the session, `""` if it has none. */
  cwd: Schema.String,
  /** The time at which the session began, in milliseconds since the epoch. */
  created: Schema.Finite,
  /** The name that the session was given. Default none. */
  name: Schema.optionalKey(Schema.String),
  /** The session and the entry that this session was forked from. Default none. */
  forkedFrom: Schema.optionalKey(Schema.Struct({ sessionId: Schema.String, entryId: Schema.String }))
})
export interface Start extends Schema.Schema.Type<typeof Start> {}

/**
 * A message of the transcript.
 *
 * **Details**
 *
 * The id of the entry is that of the message, where no other entry has it.
 *
 * @category models
 * @since 0.2.0
 */
export const MessageEntry = Schema.Struct({
  ...base,
  /** The type of the entry. */
  type: Schema.Literal("message"),
  /** The message. */
  message: Message.Message
})
export interface MessageEntry extends Schema.Schema.Type<typeof MessageEntry> {}

/**
 * The start or the end of a run.
 *
 * @category models
 * @since 0.2.0
 */
export const Run = Schema.Struct({
  ...base,
  /** The type of the entry. */
  type: Schema.Literal("run"),
  /** Whether the run begins or ends. */
  phase: Schema.Literals(["start", "end"]),
  /** The id of the run. */
  runId: Schema.String,
  /** The id of the model that the run began with, `""` if it is not known. */
  model: Schema.String,
  /** The id of the run whose open turn a run begins with. Default: none. */
  resumes: Schema.optionalKey(Schema.String),
  /** The options of a run that begins, without those that may be secret. */
  options: Schema.optionalKey(Schema.Json),
  /** The way in which the run ended. */
  status: Schema.optionalKey(RunStatus),
  /** The tokens of a run that ended. */
  usage: Schema.optionalKey(Usage),
  /** The failure of a run that ended. */
  error: Schema.optionalKey(Schema.Struct({ _tag: Schema.String, message: Schema.String }))
})
export interface Run extends Schema.Schema.Type<typeof Run> {}

/**
 * A question whether a tool call may run, or the answer to it.
 *
 * **Details**
 *
 * An entry without `decision` is the question.
 *
 * @category models
 * @since 0.2.0
 */
export const Approval = Schema.Struct({
  ...base,
  /** The type of the entry. */
  type: Schema.Literal("approval"),
  /** The id of the approval. */
  approvalId: Schema.String,
  /** The id of the run that asks. */
  runId: Schema.String,
  /** The id of the call. */
  toolCallId: Schema.String,
  /** The name of the tool. */
  toolName: Schema.String,
  /** The params of the call when the run asked. */
  params: Schema.Json,
  /** The SHA-256 of the canonical JSON of `params`, in hexadecimal. */
  argumentsHash: Schema.String,
  /** The answer. Default: none yet. */
  decision: Schema.optionalKey(Schema.Literals(["approve", "reject"])),
  /** The person or the program that answered. Default: not known. */
  by: Schema.optionalKey(Schema.String),
  /** The tool calls that the run is inside of, outermost first. Default: none. */
  path: Schema.optionalKey(
    Schema.NonEmptyArray(Schema.Struct({ runId: Schema.String, toolCallId: Schema.String }))
  ),
  /** The time in milliseconds since the epoch at which the question expires. Default: it does not expire. */
  expiresAt: Schema.optionalKey(Schema.Finite),
  /** The params that the answer replaces those of the call with. Default: unchanged. */
  edited: Schema.optionalKey(Schema.Json),
  /** The reason for the question or the answer. Default none. */
  reason: Schema.optionalKey(Schema.String)
})
export interface Approval extends Schema.Schema.Type<typeof Approval> {}

/**
 * A summary that stands in place of older messages in later requests.
 *
 * @category models
 * @since 0.2.0
 */
export const Compaction = Schema.Struct({
  ...base,
  /** The type of the entry. */
  type: Schema.Literal("compaction"),
  /** The text of the summary. */
  summary: Schema.String,
  /** The id of the entry of the first message that requests hold behind the summary. */
  firstKeptId: Schema.String,
  /** Whether the summary stands in place of the first user message too, which else stays. */
  summarizesFirst: Schema.optionalKey(Schema.Boolean),
  /** The tokens of a request before the compaction. */
  tokensBefore: Schema.Finite,
  /** The tokens of a request after the compaction. */
  tokensAfter: Schema.Finite,
  /** The reason for the compaction, as its event has it; absent in an entry of an earlier version. */
  reason: Schema.optionalKey(compactionReason),
  /** The tokens of the model calls that made the summary; absent if there were none. */
  usage: Schema.optionalKey(Usage)
})
export interface Compaction extends Schema.Schema.Type<typeof Compaction> {}

/**
 * The model that later runs ask.
 *
 * @category models
 * @since 0.2.0
 */
export const Model = Schema.Struct({
  ...base,
  /** The type of the entry. */
  type: Schema.Literal("model"),
  /** The id of the model. */
  model: Schema.String
})
export interface Model extends Schema.Schema.Type<typeof Model> {}

/**
 * A label of an entry.
 *
 * **Details**
 *
 * The label of the first entry is the name of the session.
 *
 * @category models
 * @since 0.2.0
 */
export const Label = Schema.Struct({
  ...base,
  /** The type of the entry. */
  type: Schema.Literal("label"),
  /** The id of the entry that the label is for. */
  targetId: Schema.String,
  /** The label. `""` removes the label. */
  label: Schema.String
})
export interface Label extends Schema.Schema.Type<typeof Label> {}

/**
 * Data that no other type of entry holds.
 *
 * **Details**
 *
 * The package writes the kinds `tool` (a call began or ended), `queue`, `options`, `question`, `handOff`, `note`, `uncompacted` and `child` (an entry of an agent
 * inside a tool call). An application may write others.
 *
 * @category models
 * @since 0.2.0
 */
export const Custom = Schema.Struct({
  ...base,
  /** The type of the entry. */
  type: Schema.Literal("custom"),
  /** The kind of the data. */
  kind: Schema.String,
  /** The data. */
  data: Schema.Json
})
export interface Custom extends Schema.Schema.Type<typeof Custom> {}

/**
 * A change of the current entry: the conversation continues behind the target, in a new branch.
 *
 * @category models
 * @since 0.2.0
 */
export const Leaf = Schema.Struct({
  ...base,
  /** The type of the entry. */
  type: Schema.Literal("leaf"),
  /** The id of the entry that becomes the current one. */
  targetId: Schema.String
})
export interface Leaf extends Schema.Schema.Type<typeof Leaf> {}

/**
 * An entry of a type that this version knows.
 *
 * @category schemas
 * @since 0.2.0
 */
export const Known = Schema.Union([
  Start,
  MessageEntry,
  Run,
  Approval,
  Compaction,
  Model,
  Label,
  Custom,
  Leaf
])
export type Known = typeof Known.Type

/**
 * An entry that a newer version wrote, with a place in the tree and no meaning.
 *
 * @category models
 * @since 0.2.0
 */
export interface Unknown {
  /** The type of the entry. */
  readonly type: "unknown"
  /** The id of the entry, unique in its session. */
  readonly id: string
  /** The id of the entry before it. */
  readonly parentId: string | null
  /** The time of the entry in milliseconds since the epoch, 0 if it has none. */
  readonly timestamp: number
  /** The entry as the store holds it. */
  readonly entry: { readonly [key: string]: Schema.Json }
}

/**
 * An entry of a session.
 *
 * @category models
 * @since 0.2.0
 */
export type SessionEntry = Known | Unknown

type Unplaced<Entry> = Entry extends Known ? Omit<Entry, keyof typeof base> & { readonly id?: string } : never
/**
 * An entry before it has its place and its time.
 *
 * **Details**
 *
 * Without an `id` it gets a new one.
 *
 * @category models
 * @since 0.2.0
 */
export type Draft = Unplaced<Known>

const types: ReadonlySet<string> = new Set(Known.members.map(({ fields }) => fields.type.literal))
const is = Schema.is(Known)
const isBlock = Schema.is(
  Schema.Union([
    Message.Text,
    Message.Image,
    Message.File,
    Message.Thinking,
    Message.ToolCall,
    Message.Source,
    Message.Media,
    Message.HostedTool
  ])
)

/**
 * Reads an entry from a line of JSON.
 *
 * **Details**
 *
 * Fails with the fault in words. Members that this version does not know stay in the entry, and an entry of a type that it does not
 * know becomes an {@link Unknown}. A message keeps the blocks that this version knows.
 *
 * **Example** (Reading a line)
 *
 * ```ts
 * import { Result } from "effect"
 * import { SessionEntry } from "effect-agent/sessions"
 *
 * const line = '{"v":1,"type":"label","id":"e2","parentId":"e1","timestamp":0,"targetId":"e1","label":"start"}'
 *
 * console.log(Result.getOrThrow(SessionEntry.decode(line)).type) // => label
 * console.log(Result.isFailure(SessionEntry.decode(line.slice(0, 40)))) // => true
 * ```
 *
 * @category decoding
 * @since 0.2.0
 */
export const decode = (line: string): Result.Result<SessionEntry, string> => {
  try {
    return fromJson(JSON.parse(line))
  } catch (error) {
    return Result.fail(error instanceof Error ? error.message : String(error))
  }
}

/** @internal Reads an entry from the value of its JSON. */
export const fromJson = (json: Schema.Json): Result.Result<SessionEntry, string> => {
  if (!isObject(json)) return Result.fail("it is no JSON object")
  const entry = upgrade(json)
  if (is(entry)) return Result.succeed(entry)
  const { id, parentId, timestamp, type, v } = entry
  if (typeof id !== "string" || (parentId !== null && typeof parentId !== "string")) {
    return Result.fail("it has no id or no parentId")
  }
  const isNewer = typeof v === "number" && v > version
  if (typeof type === "string" && (isNewer || !types.has(type))) {
    const at = typeof timestamp === "number" ? timestamp : 0
    return Result.succeed({ type: "unknown", id, parentId, timestamp: at, entry })
  }
  const known: Schema.Json = withKnownBlocks(entry)
  return is(known) ? Result.succeed(known) : Result.fail(`it is no entry of type ${JSON.stringify(type)}`)
}

/** The entry without the blocks of its message that this version does not know. */
const withKnownBlocks = (entry: JsonObject): JsonObject => {
  const { message } = entry
  if (!isObject(message) || !Array.isArray(message["content"])) return entry
  return { ...entry, message: { ...message, content: message["content"].filter(isBlock) } }
}

/**
 * Writes an entry as a line of JSON, without a line feed.
 *
 * **Example** (Writing a line)
 *
 * ```ts
 * import { SessionEntry } from "effect-agent/sessions"
 *
 * const base = { v: 1, id: "e2", parentId: "e1", timestamp: 0 } as const
 *
 * console.log(SessionEntry.encode({ ...base, type: "model", model: "gpt-5.4-mini" }))
 * // => {"v":1,"type":"model","id":"e2","parentId":"e1","timestamp":0,"model":"gpt-5.4-mini"}
 * ```
 *
 * @category encoding
 * @since 0.2.0
 */
export const encode = (entry: SessionEntry): string => JSON.stringify(toJson(entry))

/**
 * Returns an entry as the object that its line of JSON holds.
 *
 * **Example** (An entry of a newer version)
 *
 * ```ts
 * import { Result } from "effect"
 * import { SessionEntry } from "effect-agent/sessions"
 *
 * const line = '{"v":1,"type":"mood","id":"e2","parentId":"e1","timestamp":0,"mood":"good"}'
 * const entry = Result.getOrThrow(SessionEntry.decode(line))
 *
 * console.log(entry.type) // => unknown
 * console.log(SessionEntry.toJson(entry)["mood"]) // => good
 * ```
 *
 * @category encoding
 * @since 0.2.0
 */
export const toJson = (entry: SessionEntry): { readonly [key: string]: Schema.Json } => {
  if (entry.type === "unknown") return { ...entry.entry, parentId: entry.parentId }
  const { id, parentId, timestamp, type, v, ...rest } = entry
  return { v, type, id, parentId, timestamp, ...rest }
}

let prefix: string | undefined
let count = 0

/**
 * Makes a new entry id, unique in and across processes.
 *
 * **Example** (Making an id)
 *
 * ```ts
 * import { SessionEntry } from "effect-agent/sessions"
 *
 * console.log(SessionEntry.makeId().startsWith("ent_")) // => true
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const makeId = (): string =>
  `ent_${(prefix ??= crypto.randomUUID().slice(0, 13))}_${(++count).toString(36)}`

// ───────────────────────── Entries of older versions

/** @internal Makes an entry of version `n + 1` of one of version `n`, for each older version `n`. */
export type Migrations = Readonly<Record<number, (entry: JsonObject) => JsonObject>>

/** A new version adds a line here, and a file to `test/sessions/versions`. */
const migrations: Migrations = {}

/** @internal Makes an entry of the current version of an older one. An entry without a way to the current version stays as it is. */
export const upgrade = (entry: JsonObject, table: Migrations = migrations): JsonObject => {
  const { v } = entry
  const next = typeof v === "number" ? table[v] : undefined
  return next === undefined ? entry : upgrade(next(entry), table)
}
