/**
 * The events of a run that its session holds: they are written there before the log has them.
 */
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type AgentEvent, version } from "../../AgentEvent.ts"
import { defect } from "../../internal/failureReason.ts"
import * as Message from "../../Message.ts"
import { RunOptions } from "../../RunOptions.ts"
import * as Data from "../../sessions/CustomData.ts"
import * as SessionEntry from "../../sessions/SessionEntry.ts"
import { Tree } from "../../sessions/Tree.ts"
import * as Usage from "../../Usage.ts"

type Entry = SessionEntry.SessionEntry
type Events = ReadonlyArray<AgentEvent>

/**
 * The events of a run, and of those inside of it, that the entries of a session hold, in their order. They have the turn, and no number.
 */
export const of = (entries: ReadonlyArray<Entry>, runId: string): Events => {
  const tree = new Tree()
  for (const entry of entries) tree.add(entry)
  const branch = tree.branch()
  const first = branch.findLastIndex(
    (entry) => entry.type === "run" && entry.phase === "start" && entry.runId === runId
  )
  if (first === -1) return []
  const part = new Part(entries.find(({ type }) => type === "session")?.id ?? "")
  const events: Array<AgentEvent> = []
  for (const entry of branch.slice(first)) {
    if (entry.type === "run" && entry.runId !== runId) break
    events.push(...part.eventsOf(entry))
  }
  return prompted(events)
}

/** The prompts of a run are the messages that it begins with. */
const prompted = (events: Events): Events =>
  events.map((event, at) => {
    if (event._tag !== "RunStart") return event
    const own = events.slice(at + 1).filter(({ runId }) => runId === event.runId)
    const end = own.findIndex(
      (event) =>
        event._tag !== "MessageEnd" ||
        event.message.role === "assistant" ||
        event.message.role === "toolResult"
    )
    const prompts = own
      .slice(0, end === -1 ? undefined : end)
      .flatMap(
        (event): ReadonlyArray<Message.Message> => (event._tag === "MessageEnd" ? [event.message] : [])
      )
    return { ...event, prompts }
  })

/** The conversation of one agent: that of the session, or of an agent inside of a call. */
class Part {
  private runId = ""
  /** The turn of the last answer. */
  private turn = 0
  /** The id of the session, or of the part of it. */
  private readonly id: string
  private readonly path: AgentEvent["path"]
  private children = new Map<string, Part>()
  /** The calls of the last answer. */
  private calls: ReadonlyArray<Message.ToolCall> = []
  /** The calls in the background, with the turns that made them. */
  private readonly background = new Map<string, { readonly background: string; readonly turn: number }>()

  constructor(id: string, path?: AgentEvent["path"]) {
    this.id = id
    this.path = path
  }

  eventsOf(entry: Entry): Events {
    switch (entry.type) {
      case "run":
        return this.ofRun(entry)
      case "message":
        return this.ofMessage(entry)
      case "approval":
        return entry.runId === this.runId ? [this.ofApproval(entry)] : []
      case "compaction":
        return this.ofCompaction(entry)
      case "custom":
        return this.ofCustom(entry)
      default:
        return []
    }
  }

  private base({ timestamp }: Entry, turn = this.turn) {
    const { path, runId } = this
    const parent = path?.at(-1)
    return {
      runId,
      seq: 0,
      timestamp,
      ...(turn === 0 ? {} : { turn }),
      ...(parent === undefined ? {} : { parent }),
      ...(path === undefined ? {} : { path })
    }
  }

  private ofRun(entry: SessionEntry.Run): Events {
    const { error, model, options, phase, resumes, runId, status = "failed", usage = Usage.zero } = entry
    if (phase === "start") {
      this.runId = runId
      this.turn = resumes === undefined ? 0 : 1
      const decoded = Option.getOrUndefined(readOptions(options))
      const given = decoded === undefined ? {} : { options: decoded }
      const resumed = resumes === undefined ? {} : { resumes }
      const start = { _tag: "RunStart", v: version, prompts: [], model, continued: false } as const
      return [{ ...this.base(entry, 0), ...start, ...given, ...resumed }]
    }
    const failure = error === undefined ? {} : { error: defect(error.message) }
    const resumed = status === "suspended" ? { resume: { sessionId: this.id, runId } } : {}
    const ended = {
      _tag: "RunEnd",
      status,
      usage,
      turns: this.turn,
      newMessageIds: [],
      durationMs: 0
    } as const
    return [{ ...this.base(entry, 0), ...ended, ...failure, ...resumed }]
  }

  private ofMessage(entry: SessionEntry.MessageEntry): Events {
    const { message } = entry
    if (message.role === "assistant")
      this.children = new Map([...this.children].filter(([id]) => this.background.has(id)))
    const turn = message.role === "toolResult" ? this.turn : this.turn + 1
    if (message.role === "assistant") {
      this.turn = turn
      this.calls = Message.toolCalls(message)
    }
    return [...this.leftBy(entry, message), { ...this.base(entry, turn), _tag: "MessageEnd", message }]
  }

  /** The result of a call that continues in the background has its handle. */
  private leftBy(entry: Entry, message: Message.Message): Events {
    if (message.role !== "toolResult" || message.background === undefined) return []
    const { background: handle, toolCallId, toolName } = message
    this.background.set(toolCallId, { background: handle, turn: this.turn })
    return [{ ...this.base(entry), _tag: "ToolBackgrounded", toolCallId, toolName, handle }]
  }

  private ofCompaction(entry: SessionEntry.Compaction): Events {
    const { id: entryId, reason, tokensAfter, tokensBefore, usage } = entry
    if (reason === undefined) return []
    const spent = usage === undefined ? {} : { usage }
    // It comes before an answer of its turn. A run that compacts by hand has no turn.
    const base = this.base(entry, reason === "manual" ? 0 : this.turn + 1)
    return [
      { ...base, _tag: "Compaction", status: "end", reason, tokensBefore, tokensAfter, entryId, ...spent }
    ]
  }

  private ofApproval(entry: SessionEntry.Approval): AgentEvent {
    const {
      approvalId,
      argumentsHash,
      by,
      decision,
      edited,
      expiresAt,
      params,
      reason,
      toolCallId,
      toolName
    } = entry
    const why = reason === undefined ? {} : { reason }
    const base = { ...this.base(entry), approvalId, toolCallId, ...why }
    if (decision === undefined) {
      const until = expiresAt === undefined ? {} : { expiresAt }
      return { ...base, _tag: "ApprovalRequested", toolName, params, argumentsHash, ...until }
    }
    const given = { ...(edited === undefined ? {} : { params: edited }), ...(by === undefined ? {} : { by }) }
    return { ...base, _tag: "ApprovalAnswered", decision, ...given }
  }

  private ofCustom(entry: SessionEntry.Custom): Events {
    switch (entry.kind) {
      case "tool":
        return ifRead(readTool(entry.data), (tool) => [this.ofTool(entry, tool)])
      case "question":
        return ifRead(readQuestion(entry.data), (question) => this.ofQuestion(entry, question))
      case "handOff":
        return ifRead(readHandOff(entry.data), (handOff) => [
          { ...this.base(entry), _tag: "HandedOff", ...handOff }
        ])
      case "child":
        return ifRead(readChild(entry.data), ({ entry, toolCallId }) => {
          const read = SessionEntry.fromJson(entry)
          return Result.isSuccess(read) ? this.childOf(toolCallId).eventsOf(read.success) : []
        })
      default:
        return []
    }
  }

  private childOf(toolCallId: string): Part {
    const caller = { runId: this.runId, toolCallId }
    const path: AgentEvent["path"] = [...(this.path ?? []), caller]
    const child = this.children.get(toolCallId) ?? new Part(`${this.id}/${toolCallId}`, path)
    this.children.set(toolCallId, child)
    return child
  }

  private ofTool(entry: Entry, tool: typeof Data.Tool.Type): AgentEvent {
    const { toolCallId, toolName } = tool
    const { background, turn } = this.background.get(toolCallId) ?? { turn: this.turn }
    const base = { ...this.base(entry, turn), toolCallId, toolName }
    if (tool.phase === "start") {
      const { params = this.calls.find(({ id }) => id === toolCallId)?.params ?? {} } = tool
      return { ...base, _tag: "ToolInvoked", params, modified: false, approved: false }
    }
    const { durationMs, isError, outcome, output: result } = tool
    const beside = background === undefined ? {} : { background }
    this.background.delete(toolCallId)
    return { ...base, _tag: "ToolExecutionEnd", result, isError, outcome, durationMs, ...beside }
  }

  private ofQuestion(entry: Entry, question: typeof Data.Question.Type): Events {
    if (question.runId !== this.runId) return []
    const { runId: _, ...own } = question
    if (own.phase === "asked") {
      const { path: _path, phase: _phase, ...asked } = own
      return [{ ...this.base(entry), _tag: "QuestionAsked", ...asked }]
    }
    const { phase: _phase, ...answered } = own
    return [{ ...this.base(entry), _tag: "QuestionAnswered", ...answered }]
  }
}

const HandOff = Schema.Struct({ ...Data.HandOff.fields, toolCallId: Schema.String })
const readOptions = Schema.decodeUnknownOption(Schema.toCodecJson(RunOptions))
const readTool = Schema.decodeUnknownResult(Data.Tool)
const readQuestion = Schema.decodeUnknownResult(Data.Question)
const readHandOff = Schema.decodeUnknownResult(HandOff)
const readChild = Schema.decodeUnknownResult(Data.Child)

const ifRead = <A, E>(read: Result.Result<A, E>, use: (data: A) => Events): Events =>
  Result.isSuccess(read) ? use(read.success) : []
