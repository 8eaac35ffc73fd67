/** The rows of messages: prompts, and the blocks of answers. */
import type { AgentEvent, OfTag } from "../../AgentEvent.ts"
import type { Assistant, Message } from "../../Message.ts"
import * as Rows from "./rows.ts"
import type { Block, State, View } from "./rows.ts"

/** Folds a piece of an answer. */
export const delta = (view: View, event: OfTag<"MessageDelta">): View => {
  const piece = event.delta
  if (!("contentIndex" in piece)) return view
  const id = blockId(event.messageId, piece.contentIndex)
  switch (piece._tag) {
    case "TextStart":
    case "ThinkingStart":
      return opened(view, event, id, piece._tag === "TextStart" ? "answer" : "thinking")
    case "TextDelta":
    case "ThinkingDelta": {
      const isKnown = view.rows.at(-1)?.id === id || view.rows.some((row) => row.id === id)
      const open = isKnown
        ? view
        : opened(view, event, id, piece._tag === "TextDelta" ? "answer" : "thinking")
      return grow(open, id, piece.delta)
    }
    case "ToolCallStart":
      return opened(view, event, id, "tool", { toolCallId: piece.id, title: piece.name })
    case "ToolCallDelta":
      return grow(view, id, piece.delta)
    case "TextEnd":
    case "ThinkingEnd":
      return Rows.changed(view, (row) => row.id === id, Rows.ended("done", event.timestamp))
    // `MessageEnd` has the other blocks.
    default:
      return view
  }
}

const blockId = (messageId: string, index: number): string => `${messageId}/${index}`

const grow = (view: View, id: string, piece: string): View =>
  Rows.changed(
    view,
    (row) => row.id === id,
    (row) => Rows.grown(row, piece, view)
  )

const opened = (
  view: View,
  event: OfTag<"MessageDelta">,
  id: string,
  kind: "answer" | "thinking" | "tool",
  more: { readonly toolCallId?: string; readonly title?: string } = {}
): View =>
  Rows.added(view, {
    ...Rows.unsaid(kind),
    ...placed(view, event, id, event.messageId),
    ...more
  })

/** The place of a block of an answer, in the model call that wrote it. */
const placed = (view: View, event: AgentEvent, id: string, messageId: string) => {
  const call = view.rows.findLast(({ kind, runId }) => kind === "call" && runId === event.runId)
  const isOfTurn = call !== undefined && call.turn === event.turn
  return { ...Rows.placeOf(view, event, id), messageId, ...(isOfTurn ? { callId: call.id } : {}) }
}

/** Folds a whole message. */
export const end = (view: View, event: OfTag<"MessageEnd">): View => {
  const { message } = event
  switch (message.role) {
    case "user":
      return prompt(view, event, { kind: "user", text: Rows.textOf(message.content) })
    case "assistant":
      return answer(view, event, message)
    case "toolResult": {
      const call = Rows.callOf(view, event, message.toolCallId)
      if (call === undefined || !Rows.isOpen(call)) return view
      return Rows.changed(
        view,
        ({ id }) => id === call.id,
        (row) => ({
          ...Rows.answered(view, row, Rows.textOf(message.content)),
          state: message.isError ? "failed" : "done",
          to: event.timestamp
        })
      )
    }
    case "custom":
      return prompt(view, event, { kind: "note", text: `${message.kind} ${Rows.jsonOf(message.data)}` })
  }
}

/** A message that the model reads stands before the turn in which it reads it. */
const prompt = (view: View, event: OfTag<"MessageEnd">, said: Rows.Said): View => {
  const { message, runId, timestamp: to, turn } = event
  const { turn: _, ...outside } = event
  const block = {
    ...Rows.said(view, said),
    ...Rows.placeOf(view, outside, message.id),
    ...(turn === undefined ? {} : { turn }),
    state: "done",
    to,
    messageId: message.id
  } as const
  return Rows.added(view, block, turn === undefined ? undefined : Rows.turnId(runId, turn))
}

const answer = (view: View, event: OfTag<"MessageEnd">, message: Assistant): View => {
  const { timestamp } = event
  const parts = message.content.map((block, index) => ({ id: blockId(message.id, index), block }))
  const ids = new Set(parts.map(({ id }) => id))
  // Blocks that came in another order than they stand in the message.
  const isStray = ({ id, kind, messageId }: Block) =>
    messageId === message.id && kind !== "call" && !ids.has(id)
  const kept = view.rows.some(isStray) ? { ...view, rows: view.rows.filter((row) => !isStray(row)) } : view
  const lastState = message.stopReason === "error" ? "failed" : "cancelled"
  const isBroken = message.stopReason === "error" || message.stopReason === "aborted"
  return parts.reduce((rows, { block, id }, index) => {
    const part = partOf(block)
    const isLast = index === parts.length - 1
    const state: State = isBroken && (isLast || part.state === "running") ? lastState : part.state
    const said = Rows.said(view, part)
    const next = {
      ...said,
      state,
      ...(state === "running" ? { digest: "" } : { to: timestamp }),
      ...(part.toolCallId === undefined ? {} : { toolCallId: part.toolCallId })
    }
    return rows.rows.some((row) => row.id === id)
      ? Rows.changed(
          rows,
          (row) => row.id === id,
          (row) => ({ ...row, ...next, ...(row.to === undefined ? {} : { to: row.to }) })
        )
      : Rows.added(rows, { ...placed(view, event, id, message.id), ...next })
  }, kept)
}

interface Part extends Rows.Said {
  readonly state: State
  readonly toolCallId?: string
}

const partOf = (block: Extract<Message, { readonly role: "assistant" }>["content"][number]): Part => {
  switch (block.type) {
    case "text":
      return { kind: "answer", text: block.text, state: "done" }
    case "thinking":
      return { kind: "thinking", text: block.text, state: "done" }
    case "toolCall": {
      const title = Rows.callTitle(block.name, block.params)
      return { kind: "tool", title, text: block.rawArguments, state: "running", toolCallId: block.id }
    }
    case "hostedTool": {
      const { id, isError, name, params, result } = block
      const title = Rows.callTitle(name, params)
      const said = { title, text: Rows.jsonOf(params), result: Rows.jsonOf(result) }
      return { kind: "tool", ...said, state: isError === true ? "failed" : "done", toolCallId: id }
    }
    case "source":
      return {
        kind: "note",
        text: `Source: ${block.title ?? ""} ${block.url ?? block.fileName ?? ""}`,
        state: "done"
      }
    case "media":
      return { kind: "note", text: `Media: ${block.source.mediaType}`, state: "done" }
  }
}

// ───────────────────────── Requests to a person

type Asked = OfTag<"ApprovalRequested" | "QuestionAsked">
type Answered = OfTag<"ApprovalAnswered" | "QuestionAnswered">

export const request = (view: View, event: Asked | Answered): View => {
  switch (event._tag) {
    case "ApprovalRequested":
      return asked(view, event, { kind: "approval", title: event.toolName, text: Rows.jsonOf(event.params) })
    case "QuestionAsked":
      return asked(view, event, { kind: "question", text: event.question })
    case "ApprovalAnswered":
    case "QuestionAnswered":
      return requestAnswered(view, event)
  }
}

const idOf = (event: Asked | Answered): string =>
  "approvalId" in event ? event.approvalId : event.questionId

const asked = (view: View, event: Asked, said: Rows.Said): View => {
  const id = idOf(event)
  const { toolCallId } = event
  const waits = ofCall(view, event, "waiting")
  const others = view.asked.filter((one) => idOf(one) !== id)
  const next: View = { ...waits, asked: [...others, event] }
  // A continued run asks again.
  if (view.rows.some((row) => row.id === id))
    return Rows.changed(
      next,
      (row) => row.id === id,
      ({ to: _to, ...row }) => ({ ...row, state: "waiting" })
    )
  const place = Rows.placeOf(view, event, id)
  return Rows.added(next, { ...Rows.said(view, said), ...place, state: "waiting", toolCallId })
}

const requestAnswered = (view: View, event: Answered): View => {
  const id = idOf(event)
  const isRefused = event._tag === "ApprovalAnswered" ? event.decision === "reject" : event.declined === true
  const words = event._tag === "ApprovalAnswered" ? (event.reason ?? "") : Rows.jsonOf(event.answer)
  const rows = Rows.changed(
    ofCall(view, event, "running"),
    (row) => row.id === id,
    (row) => ({
      ...Rows.answered(view, row, isRefused ? (event.reason ?? "") : words),
      state: isRefused ? "rejected" : "done",
      to: event.timestamp
    })
  )
  return { ...rows, asked: view.asked.filter((one) => idOf(one) !== id) }
}

const ofCall = (view: View, event: Asked | Answered, state: State): View => {
  const call = Rows.callOf(view, event, event.toolCallId)
  if (call === undefined || !Rows.isOpen(call)) return view
  return Rows.changed(
    view,
    ({ id }) => id === call.id,
    (row) => ({ ...row, state })
  )
}

/** Closes the requests of a call that ended without their answers. */
export const requestsClosed = (
  view: View,
  { path, timestamp, toolCallId }: OfTag<"ToolExecutionEnd">,
  state: State
): View => {
  const isLeft = (one: Asked) => one.toolCallId === toolCallId && one.path?.length === path?.length
  const left = view.asked.filter(isLeft)
  if (left.length === 0) return view
  const ids = new Set(left.map(idOf))
  const end = Rows.ended(state === "done" ? "cancelled" : state, timestamp)
  const rows = Rows.changedAll(view, ({ id }) => ids.has(id), end)
  return { ...rows, asked: view.asked.filter((one) => !isLeft(one)) }
}
