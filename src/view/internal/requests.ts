/** The requests to a person: their rows, and which of them are open. */
import type { OfTag } from "../../AgentEvent.ts"
import type { State, View } from "./model.ts"
import * as Rows from "./rows.ts"
import * as Texts from "./texts.ts"

type Asked = OfTag<"ApprovalRequested" | "QuestionAsked">
type Answered = OfTag<"ApprovalAnswered" | "QuestionAnswered">

export const fold = (view: View, event: Asked | Answered): View => {
  switch (event._tag) {
    case "ApprovalRequested":
      return asked(view, event, { kind: "approval", title: event.toolName, text: Texts.jsonOf(event.params) })
    case "QuestionAsked":
      return asked(view, event, { kind: "question", text: event.question })
    case "ApprovalAnswered":
    case "QuestionAnswered":
      return answered(view, event)
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

const answered = (view: View, event: Answered): View => {
  const id = idOf(event)
  const isRefused = event._tag === "ApprovalAnswered" ? event.decision === "reject" : event.declined === true
  const words = event._tag === "ApprovalAnswered" ? (event.reason ?? "") : Texts.jsonOf(event.answer)
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
export const closed = (
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
