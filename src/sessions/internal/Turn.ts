/**
 * The turn of a branch whose tool calls have not all ended.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import * as Background from "../../internal/background.ts"
import type { OpenCall, OpenTurn, Question, QuestionAnswer, Request } from "../../internal/openTurn.ts"
import * as Message from "../../Message.ts"
import * as Transcript from "../../Transcript.ts"
import * as Data from "../CustomData.ts"
import type * as SessionEntry from "../SessionEntry.ts"

type Entry = SessionEntry.SessionEntry

/** The open turn at the end of a branch. */
export const openTurnOf = (branch: ReadonlyArray<Entry>): OpenTurn | undefined => {
  const start = branch.findLastIndex(
    (entry) => entry.type === "message" && entry.message.role === "assistant"
  )
  const first = branch[start]
  const rest = branch.slice(start)
  const messages = rest.flatMap((entry) => (entry.type === "message" ? [entry.message] : []))
  if (first?.type !== "message" || first.message.role !== "assistant") return undefined
  if (Transcript.openCalls(messages).length === 0) return undefined
  const runs = runsOf(branch, start)
  const lastRun = runs.at(-1)
  const tools = rest.flatMap((entry) => dataOf("tool", readTool, entry))
  const ended = new Map(
    tools.flatMap((tool) => (tool.phase === "end" ? [[tool.toolCallId, tool] as const] : []))
  )
  return {
    runId: runs.findLast(({ phase }) => phase === "start")?.runId ?? "",
    message: first.message,
    isSuspended: lastRun?.phase === "end" && lastRun.status === "suspended",
    ended: Array.from(ended, ([toolCallId, { outcome, output }]) => ({ toolCallId, outcome, output })),
    begun: [...new Set(tools.flatMap(({ phase, toolCallId }) => (phase === "start" ? [toolCallId] : [])))],
    approvals: approvalsOf(rest),
    questions: questionsOf(rest, new Set(runs.map(({ runId }) => runId)))
  }
}

/** The call of an answer with an id. */
export const callIn = (answer: Message.Assistant | undefined, toolCallId: string) =>
  answer === undefined ? undefined : Message.toolCalls(answer).find(({ id }) => id === toolCallId)

/** The calls of a branch in the background whose ends no message of it reports, in the order of their results. */
export const openCallsOf = (branch: ReadonlyArray<Entry>): ReadonlyArray<OpenCall> => {
  const isBeside = (entry: Entry) =>
    entry.type === "message" && entry.message.role === "toolResult" && entry.message.background !== undefined
  if (!branch.some(isBeside)) return []
  let answer: Message.Assistant | undefined
  /** The calls of the answer, which may have begun and ended before their results came. */
  let known = new Map<string, Pick<OpenCall, "params" | "end">>()
  const open = new Map<string, OpenCall>()
  for (const entry of branch) {
    for (const tool of dataOf("tool", readTool, entry)) {
      const { toolCallId: id } = tool
      const more =
        tool.phase === "start"
          ? { params: tool.params ?? callIn(answer, id)?.params ?? {} }
          : { end: { outcome: tool.outcome, output: tool.output } }
      const left = [...open.values()].find(({ call }) => call.id === id)
      if (left === undefined) known.set(id, { ...known.get(id), ...more })
      else open.set(left.handle, { ...left, ...more })
    }
    if (entry.type !== "message") continue
    const { message } = entry
    for (const { handle } of Background.endsIn(message)) open.delete(handle)
    if (message.role === "assistant") {
      answer = message
      known = new Map()
    }
    if (message.role !== "toolResult" || message.background === undefined || answer === undefined) continue
    const { background: handle, toolCallId } = message
    const call = callIn(answer, toolCallId)
    if (call !== undefined) open.set(handle, { handle, message: answer, call, ...known.get(toolCallId) })
  }
  return [...open.values()]
}

/**
 * The starts and ends of the runs of a turn: the one that its answer is of, and those that resumed it. One that only compacted, or that
 * a cancel ended before it came to the turn, has left the turn as it was: a cancel within the turn gives each call its result.
 */
const runsOf = (branch: ReadonlyArray<Entry>, answer: number): ReadonlyArray<SessionEntry.Run> => {
  const ofRuns = (entries: ReadonlyArray<Entry>) => entries.filter((entry) => entry.type === "run")
  const later = ofRuns(branch.slice(answer))
  const cancelled = new Set(later.flatMap(({ runId, status }) => (status === "cancelled" ? [runId] : [])))
  const others = new Set(
    later.flatMap(({ phase, resumes, runId }) =>
      phase === "start" && (resumes === undefined || cancelled.has(runId)) ? [runId] : []
    )
  )
  return ofRuns(branch).filter(({ runId }) => !others.has(runId))
}

const readTool = Schema.decodeUnknownResult(Data.Tool)
const readQuestion = Schema.decodeUnknownResult(Data.Question)

/** The data of a custom entry of a kind. */
const dataOf = <A, E>(
  kind: string,
  read: (data: unknown) => Result.Result<A, E>,
  entry: Entry
): ReadonlyArray<A> => {
  if (entry.type !== "custom" || entry.kind !== kind) return []
  const data = read(entry.data)
  return Result.isSuccess(data) ? [data.success] : []
}

/** The question that an entry asks or answers, if it does. */
export const questionIn = (entry: Entry) => dataOf("question", readQuestion, entry)

/** The requests by their id, each with the first answer to it. A request that is made again waits again. */
const approvalsOf = (entries: ReadonlyArray<Entry>): OpenTurn["approvals"] => {
  const found = new Map<string, OpenTurn["approvals"][number]>()
  for (const entry of entries) {
    if (entry.type !== "approval") continue
    const { approvalId, by, decision, edited, reason } = entry
    if (decision === undefined) found.set(approvalId, { request: requestOf(entry) })
    else {
      const request = found.get(approvalId)
      const answer = {
        decision,
        ...(edited === undefined ? {} : { params: edited }),
        ...(reason === undefined ? {} : { reason }),
        ...(by === undefined ? {} : { by })
      }
      if (request !== undefined && request.answer === undefined) found.set(approvalId, { ...request, answer })
    }
  }
  return [...found.values()]
}

const requestOf = (entry: SessionEntry.Approval): Request => {
  const { approvalId, argumentsHash, expiresAt, params, path, reason, runId, toolCallId, toolName } = entry
  return {
    runId,
    approvalId,
    toolCallId,
    toolName,
    params,
    argumentsHash,
    ...(path === undefined ? {} : { path }),
    ...(reason === undefined ? {} : { reason }),
    ...(expiresAt === undefined ? {} : { expiresAt })
  }
}

/** The questions with their answers. One about the unknown end of a call is over when the call begins again: `runs` names those of its agent. */
const questionsOf = (entries: ReadonlyArray<Entry>, runs: ReadonlySet<string>): OpenTurn["questions"] => {
  const found = new Map<string, { readonly request: Question; readonly answer?: QuestionAnswer }>()
  for (const data of entries.flatMap((entry) => [...questionIn(entry), ...dataOf("tool", readTool, entry)])) {
    if (data.phase === "asked") {
      const { phase: _, ...request } = data
      found.set(data.questionId, { request })
    } else if (data.phase === "answered") {
      const answer = Struct.pick(data, ["answer", "declined", "reason", "by"])
      const request = found.get(data.questionId)
      if (request !== undefined && request.answer === undefined)
        found.set(data.questionId, { ...request, answer })
    } else if (data.phase === "start") {
      for (const [id, { request }] of found) {
        const isOfCall = request.toolCallId === data.toolCallId && runs.has(request.runId)
        if (isOfCall && request.about !== undefined) found.delete(id)
      }
    }
  }
  return [...found.values()]
}
