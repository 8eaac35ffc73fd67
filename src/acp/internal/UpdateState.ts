/**
 * The state of a session as a client of ACP sees it: the answer that streams, and the calls that have not ended.
 */
import type { SessionUpdate, ToolCallContent, ToolCallLocation, ToolKind } from "@agentclientprotocol/sdk"
import * as Predicate from "effect/Predicate"
import type { AgentEvent } from "../../AgentEvent.ts"
import type { Streamed } from "../../ui/Streamed.ts"
import type { StopReason } from "../../Message.ts"

/**
 * The options of the updates of a session.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /** The working directory of the session, an absolute path, at which the paths of tools start. Default: paths stay as they are. */
  readonly cwd?: string
  /** Whether the client has the capability `session.notices`. Default `false`. */
  readonly notices?: boolean
  /** Whether the client has the capability `session.compaction`. Default `false`. */
  readonly compaction?: boolean
  /** The view of a tool call. Default: one that knows the tools of `effect-agent/tools`. */
  readonly view?: (toolName: string, params: unknown, cwd: string | undefined) => View
}

/**
 * A call that has not ended.
 *
 * @category models
 * @since 0.2.0
 */
export interface OpenCall {
  /** Its id in the session of the client. */
  readonly id: string
  /** The change of files that it makes. */
  readonly changes: ReadonlyArray<ToolCallContent>
}

/**
 * The answer that streams.
 *
 * @category models
 * @since 0.2.0
 */
export interface OpenAnswer {
  /** The id of its message. */
  readonly messageId: string
  /** The part that the client has. */
  readonly streamed: Streamed
}

/**
 * The state of a session as a client of ACP sees it.
 *
 * @category models
 * @since 0.2.0
 */
export interface State {
  /** The options of the updates. */
  readonly options: Options
  /** The answer that streams, `undefined` if none does. */
  readonly answer: OpenAnswer | undefined
  /** The open calls, by the ids of the calls around them and their own. */
  readonly calls: ReadonlyMap<string, OpenCall>
  /** How many calls had an id. */
  readonly used: ReadonlyMap<string, number>
  /** How often the client got an answer that is void, by its id. */
  readonly voided: ReadonlyMap<string, number>
  /** The messages of the prompt, which the client has. */
  readonly prompts: ReadonlySet<string>
  /** The id of the compaction that goes on, `undefined` if none does. */
  readonly compactionId: string | undefined
  /** The reason why the last answer ended, `undefined` before the first end. */
  readonly lastStop: StopReason | undefined
}

export type Step = readonly [State, ReadonlyArray<SessionUpdate>]

export const initial = (options: Options = {}): State => ({
  options,
  answer: undefined,
  calls: new Map(),
  used: new Map(),
  voided: new Map(),
  prompts: new Set(),
  compactionId: undefined,
  lastStop: undefined
})

type Caller = Pick<AgentEvent, "path"> & { readonly toolCallId: string }

/** The key of a call: a call inside has those around it before its own. */
export const keyOf = ({ path, toolCallId }: Caller): string =>
  [...(path ?? []).map((caller) => caller.toolCallId), toolCallId].join("/")

/** The id of a call in the session of the client. */
export const callIdOf = ({ calls }: State, caller: Caller): string =>
  calls.get(keyOf(caller))?.id ?? keyOf(caller)

/** Opens a call under an id that no call of the session had: some vendors number the calls of each answer from 0. */
export const opened = (
  state: State,
  key: string,
  changes: OpenCall["changes"]
): readonly [State, OpenCall] => {
  const count = (state.used.get(key) ?? 0) + 1
  const call = { id: count === 1 ? key : `${key}~${count}`, changes }
  const calls = new Map(state.calls).set(key, call)
  return [{ ...state, calls, used: new Map(state.used).set(key, count) }, call]
}

export const closed = (state: State, key: string): State => {
  const calls = new Map(state.calls)
  calls.delete(key)
  return { ...state, calls }
}

/** The id of a message of the client. A message that comes again after it was void has another one. */
export const messageIdOf = ({ voided }: State, messageId: string): string => {
  const count = voided.get(messageId) ?? 0
  return count === 0 ? messageId : `${messageId}~${count + 1}`
}

/** What the client has of an answer is void. */
export const withVoid = (state: State, messageId: string): State => ({
  ...state,
  answer: undefined,
  voided: new Map(state.voided).set(messageId, (state.voided.get(messageId) ?? 0) + 1)
})

// ───────────────────────── Views of tools

/**
 * The view of a tool call.
 *
 * @category models
 * @since 0.2.0
 */
export interface View {
  /** The title, one line. */
  readonly title: string
  /** The kind, by which an editor chooses an icon. */
  readonly kind: ToolKind
  /** The files that the call is about, with absolute paths. Default: none. */
  readonly locations?: ReadonlyArray<ToolCallLocation>
  /** The change of files that the call makes. Default: none. */
  readonly content?: ReadonlyArray<ToolCallContent>
}

const kinds: ReadonlyMap<string, ToolKind> = new Map([
  ["read", "read"],
  ["list", "read"],
  ["read_artifact", "read"],
  ["skill", "read"],
  ["find", "search"],
  ["grep", "search"],
  ["tool_search", "search"],
  ["web_search", "search"],
  ["web_fetch", "fetch"],
  ["write", "edit"],
  ["edit", "edit"],
  ["shell", "execute"]
])

/** The view of a call of one of the tools of `effect-agent/tools`, or of another tool by its name and params. */
export const viewOf = (name: string, params: unknown, cwd: string | undefined): View => {
  const kind = kinds.get(name) ?? "other"
  const path = kind === "other" || kind === "execute" ? undefined : textIn(params, "path")
  const place = path === undefined || cwd === undefined ? path : absolute(path, cwd)
  return {
    title: titleOf(name, params),
    kind,
    ...(place === undefined ? {} : { locations: [{ path: place }] }),
    ...(place === undefined || kind !== "edit" ? {} : { content: changesOf(place, params) })
  }
}

const absolute = (path: string, cwd: string): string =>
  /^([/\\]|[A-Za-z]:[\\/])/.test(path) ? path : `${cwd.replace(/[\\/]$/, "")}/${path.replace(/^\.\//, "")}`

const maxTitle = 160

// In reading order: the question, command or pattern, then the place.
const shown = ["question", "command", "pattern", "path", "url", "query"]

const titleOf = (name: string, params: unknown): string => {
  const values = shown.flatMap((key) => textIn(params, key) ?? [])
  const line = `${name} ${values.join(" in ")}`.replaceAll(/\s+/g, " ").trim()
  return line.length > maxTitle ? `${line.slice(0, maxTitle - 1)}…` : line
}

const changesOf = (path: string, params: unknown): ReadonlyArray<ToolCallContent> => {
  const content = textIn(params, "content")
  if (content !== undefined) return [{ type: "diff", path, newText: content }]
  const edits: unknown = Predicate.hasProperty(params, "edits") ? params.edits : undefined
  return [params, ...(Array.isArray(edits) ? edits : [])].flatMap((edit: unknown) => {
    const newText = textIn(edit, "newText")
    const oldText = textIn(edit, "oldText")
    return newText === undefined || oldText === undefined ? [] : [{ type: "diff", path, oldText, newText }]
  })
}

const textIn = (params: unknown, name: string): string | undefined =>
  Predicate.hasProperty(params, name) && typeof params[name] === "string" ? params[name] : undefined
