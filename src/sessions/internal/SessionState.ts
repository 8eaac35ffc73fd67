/**
 * The state of a session: a fold of its entries in the order in which they were written. Reading a session and writing to it fold
 * with one function, so that the state of an open session is that which another process would find.
 *
 * Messages, compactions, agents inside calls and open calls belong to a branch. Options, queues, labels and runs belong to the session,
 * whatever branch is current: they do not return to what they were when the conversation does.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import type * as Message from "../../Message.ts"
import * as RunOptions from "../../RunOptions.ts"
import type { Restored } from "../../Session.ts"
import type { Compaction } from "../../Transcript.ts"
import * as Data from "../CustomData.ts"
import * as SessionEntry from "../SessionEntry.ts"
import { Tree } from "../Tree.ts"
import { openCallsOf, openTurnOf } from "./Turn.ts"

type Queues = Restored["queues"]

export class SessionState {
  readonly tree = new Tree()
  /** The first entry of the session. */
  start: SessionEntry.Start | undefined
  /** The name of the session, `""` without one. */
  name = ""
  /** The labels by the id of their entry. */
  readonly labels = new Map<string, string>()
  options: Partial<RunOptions.RunOptions> = {}
  /** The names of options that were unset. Those of `options` count after them. */
  unset: ReadonlyArray<string> = []
  queues: Queues = { steering: [], followUp: [] }
  /** The models of the runs that have begun and not ended, by the id of the run. */
  readonly runs = new Map<string, string>()
  /** The open questions about calls, by their id. */
  readonly approvals = new Map<string, SessionEntry.Approval>()
  /** The entries of the agents inside the calls of the last answer, by the id of the call. */
  readonly children = new Map<string, Array<SessionEntry.SessionEntry>>()

  /** The ids of the calls that continued in the background: their agents outlive the answer. */
  private readonly beside = new Set<string>()

  private readonly sessionId: string

  constructor(sessionId: string) {
    this.sessionId = sessionId
  }

  /** Adds the next entry. Returns a fault in words, if it has one. */
  add(entry: SessionEntry.SessionEntry): string | undefined {
    const fault = this.tree.add(entry)
    switch (entry.type) {
      case "session":
        if (this.start === undefined) this.name = entry.name ?? ""
        this.start ??= entry
        break
      case "message":
        this.addMessage(entry.message)
        break
      case "run":
        if (entry.phase === "start") this.runs.set(entry.runId, entry.model)
        else this.runs.delete(entry.runId)
        break
      case "approval":
        if (entry.decision === undefined) this.approvals.set(entry.approvalId, entry)
        else this.approvals.delete(entry.approvalId)
        break
      case "model":
        this.options = RunOptions.patch(this.options, { model: entry.model })
        break
      case "label":
        if (entry.targetId === (this.start?.id ?? this.sessionId)) this.name = entry.label
        else if (entry.label === "") this.labels.delete(entry.targetId)
        else this.labels.set(entry.targetId, entry.label)
        break
      case "leaf":
        this.returnTo(this.tree.behind(isAnswer))
        break
      case "custom":
        return this.addCustom(entry) ?? fault
    }
    return fault
  }

  /** Returns to the agents inside the calls of a branch: `entries` are those behind its last answer, `undefined` if they are not known. */
  private returnTo(entries: ReadonlyArray<SessionEntry.SessionEntry> | undefined): void {
    if (entries === undefined) return
    this.children.clear()
    for (const entry of entries) if (entry.type === "custom" && entry.kind === "child") this.addCustom(entry)
  }

  private addMessage(message: Message.Message): void {
    const { followUp, steering } = this.queues
    const others = (queue: ReadonlyArray<Message.Message>) => queue.filter(({ id }) => id !== message.id)
    if (steering.length + followUp.length > 0) {
      this.queues = { steering: others(steering), followUp: others(followUp) }
    }
    if (message.role === "toolResult" && message.background !== undefined) this.beside.add(message.toolCallId)
    if (message.role === "assistant")
      for (const id of this.children.keys()) if (!this.beside.has(id)) this.children.delete(id)
  }

  private addCustom({ data, kind }: SessionEntry.Custom): string | undefined {
    switch (kind) {
      case "queue":
        return ifRead(readQueue(data), (change) => {
          this.queues = changed(this.queues, change)
        })
      case "options":
        return ifRead(readOptions(data), ({ unset = [], ...options }) => {
          this.options = RunOptions.patch(RunOptions.without(this.options, unset), options)
          this.unset = [...new Set([...this.unset, ...unset])]
        })
      case "child":
        return ifRead(readChild(data), ({ entry, toolCallId }) => {
          const entries = this.children.get(toolCallId) ?? []
          this.children.set(toolCallId, entries)
          const read = SessionEntry.fromJson(entry)
          if (Result.isSuccess(read)) entries.push(read.success)
        })
    }
    return undefined
  }

  /** The messages of the current branch. */
  messages(): ReadonlyArray<SessionEntry.MessageEntry> {
    return this.tree.branch().filter((entry) => entry.type === "message")
  }

  /** Whether a compaction stands on the current branch. */
  isCompacted(): boolean {
    return this.tree.branch().some((entry) => entry.type === "compaction")
  }

  /** The state as an agent begins with it. */
  restored(): Restored {
    const branch = this.tree.branch()
    const messages = branch.flatMap((entry) => (entry.type === "message" ? [entry.message] : []))
    const compaction = compactionOf(branch)
    const first = branch.find(({ id }) => id === compaction?.firstKeptId)
    const open = openTurnOf(branch)
    const handedOff = handOffOf(branch)
    const notes = notesOf(branch)
    const background = openCallsOf(branch)
    const lostRun = [...this.runs.keys()].at(-1)
    return {
      messages,
      options: this.options,
      ...(this.unset.length === 0 ? {} : { unset: this.unset }),
      queues: this.queues,
      ...(compaction !== undefined && first?.type === "message"
        ? {
            compaction: {
              ...Struct.pick(compaction, ["summary", "summarizesFirst"]),
              firstKept: first.message.id,
              ...madeAfter(branch)
            }
          }
        : {}),
      ...(handedOff === undefined ? {} : { handedOff }),
      ...(notes.size === 0 ? {} : { notes }),
      ...(lostRun === undefined ? {} : { lostRun }),
      ...(open === undefined ? {} : { open }),
      ...(background.length === 0 ? {} : { background })
    }
  }
}

const isAnswer = (entry: SessionEntry.SessionEntry): boolean =>
  entry.type === "message" && entry.message.role === "assistant"

/** The last compaction of a branch, unless its transcript was replaced since. */
const compactionOf = (
  branch: ReadonlyArray<SessionEntry.SessionEntry>
): SessionEntry.Compaction | undefined => {
  const last = branch.findLast(
    (entry) => entry.type === "compaction" || (entry.type === "custom" && entry.kind === "uncompacted")
  )
  return last?.type === "compaction" ? last : undefined
}

/** The newest message of a branch before its last compaction. */
const madeAfter = (branch: ReadonlyArray<SessionEntry.SessionEntry>): Pick<Compaction, "madeAfter"> => {
  const at = branch.findLastIndex(({ type }) => type === "compaction")
  const entry = branch.slice(0, at).findLast(({ type }) => type === "message")
  return entry?.type === "message" ? { madeAfter: entry.message.id } : {}
}

/** The first message of the user on the current branch. */
export const firstUser = (state: SessionState): Message.User | undefined =>
  state.messages().flatMap(({ message }) => (message.role === "user" ? [message] : []))[0]

const readQueue = Schema.decodeUnknownResult(Data.Queue)
const readOptions = Schema.decodeUnknownResult(Data.Options)
const readChild = Schema.decodeUnknownResult(Data.Child)
const readNote = Schema.decodeUnknownResult(Data.Note)
const readHandOff = Schema.decodeUnknownResult(Data.HandOff)

/** The last hand-off of a branch. */
const handOffOf = (branch: ReadonlyArray<SessionEntry.SessionEntry>): Restored["handedOff"] => {
  const entry = branch.findLast((entry) => entry.type === "custom" && entry.kind === "handOff")
  return Result.getOrUndefined(readHandOff(entry?.type === "custom" ? entry.data : undefined))
}

/** The notes of providers on the answers of a branch. */
const notesOf = (branch: ReadonlyArray<SessionEntry.SessionEntry>): NonNullable<Restored["notes"]> =>
  new Map(
    branch.flatMap((entry) => {
      const read = entry.type === "custom" && entry.kind === "note" ? readNote(entry.data) : undefined
      return read !== undefined && Result.isSuccess(read)
        ? [[read.success.messageId, read.success.note] as const]
        : []
    })
  )

/** Applies data that was read. Returns the fault in words otherwise. */
const ifRead = <A>(
  read: Result.Result<A, Schema.SchemaError>,
  apply: (data: A) => void
): string | undefined => {
  if (Result.isFailure(read)) return read.failure.message
  apply(read.success)
  return undefined
}

const changed = (queues: Queues, change: typeof Data.Queue.Type): Queues => {
  if ("queue" in change) {
    const ids = new Set(change.messages.map(({ id }) => id))
    const others = queues[change.queue].filter(({ id }) => !ids.has(id))
    return { ...queues, [change.queue]: [...others, ...change.messages] }
  }
  const { cleared } = change
  return {
    steering: cleared === "followUp" ? queues.steering : [],
    followUp: cleared === "steering" ? queues.followUp : []
  }
}
