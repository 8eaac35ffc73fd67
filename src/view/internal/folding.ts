/** The fold of events to rows. */
import type { AgentEvent, OfTag } from "../../AgentEvent.ts"
import { add, zero } from "../../internal/usageSum.ts"
import * as Rows from "./rows.ts"
import type { Block, Shown, State, Turn, View } from "./rows.ts"
import * as Messages from "./messages.ts"

export const fold = (view: View, event: AgentEvent): View => {
  switch (event._tag) {
    case "MessageDelta":
      return Messages.delta(view, event)
    case "MessageEnd":
      return Messages.end(view, event)
    case "MessageRetracted":
      return Rows.changedAll(
        view,
        ({ messageId }) => messageId === event.messageId,
        Rows.ended("retracted", event.timestamp)
      )
    case "RunStart":
      return started(view, event)
    case "RunEnd":
      return ended(view, event)
    case "TurnStart":
      return turnStarted(view, event)
    case "TurnEnd":
      return turnEnded(view, event)
    case "ModelCallStart":
      return begun(view, event, "call", event.model)
    case "ModelCallEnd":
      return modelEnded(view, event)
    case "ModelCallError":
      return event.willRetry ? view : modelFailed(view, event)
    case "ToolExecutionStart":
    case "ToolInvoked":
    case "ToolExecutionProgress":
    case "ToolExecutionEnd":
      return ofCall(view, event)
    case "ApprovalRequested":
    case "ApprovalAnswered":
    case "QuestionAsked":
    case "QuestionAnswered":
      return Messages.request(view, event)
    case "QueueUpdate": {
      const { followUp, path, steering } = event
      return path === undefined ? { ...view, queued: { steering, followUp } } : view
    }
    default:
      return happened(view, event)
  }
}

/** Adds a row that an event begins. */
const begun = (view: View, event: AgentEvent, kind: "call" | "compaction", title: string): View =>
  Rows.added(view, { ...Rows.unsaid(kind, title), ...Rows.placeOf(view, event) })

/** Adds a row that an event begins and ends. */
const at = (view: View, event: AgentEvent, said: Rows.Said, state: State = "done"): View =>
  Rows.added(view, { ...Rows.said(view, said), ...Rows.placeOf(view, event), state, to: event.timestamp })

/** Changes what is known of the run that the view shows, by an event of it or of its sub-agents. */
const ofRun = (view: View, change: (run: Shown) => Partial<Shown>): View =>
  view.run === undefined ? view : { ...view, run: { ...view.run, ...change(view.run) } }

const problem = ({ problems }: Shown) => ({ problems: problems + 1 })

// ───────────────────────── Runs

const started = (view: View, event: OfTag<"RunStart">): View => {
  const { model, path, prompts, runId, timestamp: from } = event
  if (path !== undefined) return inside(view, event)
  const [prompt] = prompts
  const title = prompt?.role === "user" ? Rows.firstLine(Rows.textOf(prompt.content)) : view.run?.title
  const run = {
    runId,
    status: "running",
    title: title ?? "",
    model,
    from,
    toolCalls: 0,
    problems: 0
  } as const
  return { ...view, run: { ...run, usage: zero }, usageBefore: view.usage, error: undefined }
}

/** Makes room for a run of a sub-agent in the row of its call. */
const inside = (view: View, event: OfTag<"RunStart" | "TurnStart">): View => {
  const call = Rows.callAround(view, event)
  if (call === undefined) return view
  const fewer = Rows.withFewerRuns(view, call, event.runId)
  return call.kind === "agent"
    ? fewer
    : Rows.changed(
        fewer,
        ({ id }) => id === call.id,
        (row) => ({ ...row, kind: "agent" })
      )
}

const ended = (view: View, event: OfTag<"RunEnd">): View => {
  const { error, path, runId, status, timestamp: to, usage } = event
  const state = status === "failed" ? "failed" : status === "cancelled" ? "cancelled" : "done"
  const isLeft = (row: Block) => row.runId === runId && Rows.isOpen(row)
  const rest = status === "suspended" ? view : Rows.changedAll(view, isLeft, Rows.ended(state, to))
  const lacksRow =
    error !== undefined && !rest.rows.some((row) => row.runId === runId && row.kind === "error")
  const failed = lacksRow ? at(rest, event, { kind: "error", text: Rows.wordsOf(error) }, "failed") : rest
  if (path !== undefined) {
    const call = Rows.callAround(view, event)
    return call === undefined ? failed : Rows.changed(failed, ({ id }) => id === call.id, spent(usage))
  }
  return {
    ...ofRun(failed, () => ({ status, to, usage })),
    usage: add(view.usageBefore, usage),
    asked: status === "suspended" ? view.asked : [],
    error: error && Rows.wordsOf(error)
  }
}

/** Adds tokens to those inside of a row. */
const spent =
  (usage: Block["usage"] & object) =>
  (row: Block): Block => {
    const sum = add(row.usage ?? zero, usage)
    return { ...row, usage: sum, ...costOf(sum) }
  }

const costOf = ({ cost }: Block["usage"] & object): { readonly cost?: number } =>
  cost === undefined ? {} : { cost }

// ───────────────────────── Turns and model calls

const turnStarted = (view: View, event: OfTag<"TurnStart">): View => {
  const { path, runId, timestamp: from, turn = 0 } = event
  const { turn: _, ...outside } = event
  const place = { ...Rows.placeOf(view, outside, Rows.turnId(runId, turn)), turn }
  const around = path === undefined ? view : inside(view, event)
  const next = Rows.added(around, { ...Rows.unsaid("turn", String(turn)), ...place })
  if (path !== undefined) return next
  const numbers = { runId, turn, from, ms: 0, modelMs: 0, toolMs: 0, toolCalls: 0 }
  const { turns } = view
  const { turns: most } = view.bounds
  return { ...next, turns: [...(turns.length < most * 1.2 ? turns : turns.slice(-most)), numbers] }
}

const turnEnded = (view: View, event: OfTag<"TurnEnd">): View => {
  const { path, runId, stopReason, timestamp: to, turn = 0, usage } = event
  const state = stopReason === "error" ? "failed" : stopReason === "aborted" ? "cancelled" : "done"
  const id = Rows.turnId(runId, turn)
  const next = Rows.changed(
    view,
    (row) => row.id === id,
    (row) => ({ ...Rows.ended(state, to)(row), usage, ...costOf(usage) })
  )
  if (path !== undefined) return next
  const ofTurn = inTurn(next, event, ({ from }) => ({ ms: to - from, usage, ...costOf(usage) }))
  const ran = ofRun(ofTurn, (run) => ({ usage: add(run.usage, usage) }))
  return { ...ran, usage: add(view.usage, usage) }
}

/** Changes the numbers of the turn of an event, if it is one of the outermost run. */
const inTurn = (
  view: View,
  { path, runId, turn }: AgentEvent,
  change: (turn: Turn) => Partial<Turn>
): View => {
  const isMeant = (one: Turn) => one.turn === turn && one.runId === runId
  const at = path === undefined ? view.turns.findLastIndex(isMeant) : -1
  const known = view.turns[at]
  return known === undefined ? view : { ...view, turns: view.turns.with(at, { ...known, ...change(known) }) }
}

const isCallOf =
  ({ runId }: AgentEvent) =>
  (row: Block): boolean =>
    row.kind === "call" && row.runId === runId && row.state === "running"

const modelEnded = (view: View, event: OfTag<"ModelCallEnd">): View => {
  const { durationMs, messageId, timestamp, usage } = event
  const next = Rows.changed(view, isCallOf(event), (row) => ({
    ...Rows.ended("done", timestamp)(row),
    messageId,
    ...(usage === undefined ? {} : { usage, ...costOf(usage) })
  }))
  return inTurn(next, event, ({ modelMs }) => ({
    modelMs: modelMs + durationMs,
    ...(usage === undefined ? {} : { context: usage.input + usage.output })
  }))
}

const modelFailed = (view: View, event: OfTag<"ModelCallError">): View =>
  Rows.changed(view, isCallOf(event), (row) => ({
    ...Rows.ended("failed", event.timestamp)(row),
    ...Rows.said(view, { kind: "call", title: row.title, text: Rows.wordsOf(event.error) })
  }))

// ───────────────────────── Tool calls

const ofCall = (
  view: View,
  event: OfTag<"ToolExecutionStart" | "ToolInvoked" | "ToolExecutionProgress" | "ToolExecutionEnd">
): View => {
  const { runId, toolCallId, toolName } = event
  const known = Rows.callOf(view, event, toolCallId)
  const shown = known === undefined && event._tag === "ToolExecutionStart" ? call(view, event) : view
  const isMeant = (row: Block) => row.id === (known?.id ?? callId(runId, toolCallId))
  switch (event._tag) {
    case "ToolExecutionStart":
      return Rows.changed(shown, isMeant, ({ to: _to, ...row }) => ({ ...row, state: "running" }))
    case "ToolInvoked": {
      const title = Rows.callTitle(toolName, event.params)
      const given = Rows.said(view, { kind: "tool", title, text: Rows.jsonOf(event.params) })
      return Rows.changed(view, isMeant, (row) => ({
        ...row,
        ...(event.modified ? { ...given, kind: row.kind, digest: "" } : {}),
        state: "running"
      }))
    }
    case "ToolExecutionProgress": {
      const { output } = view.bounds
      const result = Rows.textOf(event.partial.content).slice(-output)
      return Rows.changed(view, isMeant, (row) => ({ ...row, result, preview: Rows.lineOf(result, 300) }))
    }
    case "ToolExecutionEnd":
      return callEnded(view, event, isMeant)
  }
}

const callId = (runId: string, toolCallId: string): string => `${runId}/${toolCallId}`

/** A row for a call that no message has announced. */
const call = (view: View, event: OfTag<"ToolExecutionStart">): View => {
  const { params, runId, toolCallId, toolName } = event
  const title = Rows.callTitle(toolName, params)
  const said = Rows.said(view, { kind: "tool", title, text: Rows.jsonOf(params) })
  const place = Rows.placeOf(view, event, callId(runId, toolCallId))
  return Rows.added(view, { ...said, ...place, digest: "", state: "running", toolCallId })
}

const callEnded = (view: View, event: OfTag<"ToolExecutionEnd">, isMeant: (row: Block) => boolean): View => {
  const { durationMs, isError, outcome, result, timestamp: to } = event
  const state = outcomes.get(outcome) ?? (isError ? "failed" : "done")
  const next = Rows.changed(view, isMeant, (row) => ({
    ...Rows.answered(view, row, Rows.textOf(result.content)),
    state,
    to
  }))
  const answered = Messages.requestsClosed(next, event, state)
  const ran = ofRun(answered, (run) => ({ toolCalls: run.toolCalls + 1, ...(isError ? problem(run) : {}) }))
  return inTurn(ran, event, ({ toolCalls, toolMs }) => ({
    toolCalls: toolCalls + 1,
    toolMs: toolMs + durationMs
  }))
}

const outcomes: ReadonlyMap<string, State> = new Map([
  ["rejected", "rejected"],
  ["blocked", "rejected"],
  ["expired", "rejected"],
  ["skipped", "cancelled"],
  ["aborted", "cancelled"]
])

// ───────────────────────── What else happens

const happened = (view: View, event: AgentEvent): View => {
  switch (event._tag) {
    case "Output":
      return at(view, event, { kind: "output", title: "", text: Rows.jsonOf(event.value) })
    case "RunError": {
      const failed = at(view, event, { kind: "error", text: Rows.wordsOf(event.error) }, "failed")
      return ofRun(failed, problem)
    }
    case "ModelCallRetry":
    case "RunRetry": {
      const text = Rows.wordsOf(event.error)
      return at(view, event, { kind: "retry", title: String(event.attempt), text })
    }
    case "Compaction":
      return compacted(view, event)
    case "LimitReached": {
      const { estimated, limit, max, value } = event
      const text = `${estimated === true ? "about " : ""}${value} of ${max}`
      return at(view, event, { kind: "limit", title: limit, text })
    }
    case "HandedOff":
      return at(view, event, { kind: "handoff", title: event.to, text: `from ${event.from}` })
    case "HookError": {
      const said = { kind: "hook", title: event.hookName ?? event.hook, text: event.error } as const
      return ofRun(at(view, event, said, "failed"), problem)
    }
    case "RunPaused":
    case "RunResumed": {
      const isPaused = event._tag === "RunPaused"
      const noted = note(view, event, isPaused ? "Paused" : "Resumed", event.reason)
      return event.path === undefined
        ? ofRun(noted, () => ({ status: isPaused ? "paused" : "running" }))
        : noted
    }
    case "RunCancelled":
      return note(view, event, "Cancelled", event.reason)
    case "ContextTransformed":
      return event.dropped === 0 || event.reason === "compaction"
        ? view
        : note(view, event, `${event.dropped} older messages are left out`, event.reason)
    case "ToolBackgrounded":
      return note(view, event, `${event.toolName} continues in the background as ${event.handle}`, event.note)
    case "ArtifactStored":
      return note(view, event, `Stored ${event.artifactId}`, `${event.mediaType}, ${event.bytes} bytes`)
    default:
      return view
  }
}

const note = (view: View, event: AgentEvent, what: string, why: string | undefined): View =>
  at(view, event, { kind: "note", text: why === undefined || why === "" ? what : `${what}: ${why}` })

const compacted = (view: View, event: OfTag<"Compaction">): View => {
  const { error, runId, status, timestamp, tokensAfter, tokensBefore, usage } = event
  if (status === "start") return begun(view, event, "compaction", "")
  const isBegun = (row: Block) => row.kind === "compaction" && row.runId === runId && row.state === "running"
  const open = view.rows.some(isBegun) ? view : begun(view, event, "compaction", "")
  const text =
    error === undefined ? `from ${tokensBefore ?? "?"} to ${tokensAfter ?? "?"} tokens` : Rows.wordsOf(error)
  return Rows.changed(open, isBegun, (row) => ({
    ...row,
    ...Rows.said(view, { kind: "compaction", title: "", text }),
    state: error === undefined ? "done" : "failed",
    to: timestamp,
    ...(usage === undefined ? {} : { usage, ...costOf(usage) })
  }))
}
