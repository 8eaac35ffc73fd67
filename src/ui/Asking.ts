/**
 * The requests to a person that are open in the events of a run and of the runs inside, and whether all of their calls wait.
 */
import type { AgentEvent, OfTag } from "../AgentEvent.ts"
import { CallSet, from } from "../internal/callSet.ts"

/**
 * A run that has begun and not ended.
 *
 * @category models
 * @since 0.2.0
 */
export interface OpenRun {
  /** The calls of its turn that have not ended. */
  readonly calls: ReadonlySet<string>
  /** The calls in the background that have not ended. */
  readonly background: ReadonlySet<string>
  /** Whether the run waits for calls in the background: its turn has ended, and no other one follows before an end. */
  readonly isBetweenTurns: boolean
  /** The call that started it, `undefined` for a run that no tool started. */
  readonly parent: { readonly runId: string; readonly toolCallId: string } | undefined
}

/**
 * The requests to a person that are open in the events of a run and of the runs inside.
 *
 * @category models
 * @since 0.2.0
 */
export interface Asking {
  /** The open requests for approval, by their id. */
  readonly approvals: ReadonlyMap<string, OfTag<"ApprovalRequested">>
  /** The open questions, by their id. */
  readonly questions: ReadonlyMap<string, OfTag<"QuestionAsked">>
  /** The runs that have not ended, by their id. */
  readonly runs: ReadonlyMap<string, OpenRun>
}

export const nothing: Asking = { approvals: new Map(), questions: new Map(), runs: new Map() }

/** The state after one more event, as the same object if the event changes nothing. */
export const step = (asking: Asking, event: AgentEvent): Asking => {
  switch (event._tag) {
    case "RunStart":
      return {
        ...asking,
        runs: new Map(asking.runs).set(event.runId, { ...begun, parent: event.path?.at(-1) })
      }
    case "RunEnd":
      return { ...asking, runs: without(asking.runs, event.runId) }
    case "ToolsDetected":
      return changed(asking, event, ({ calls }) => ({
        calls: event.toolCalls.reduce((all, { id }) => all.with(id), from(calls))
      }))
    case "ToolExecutionStart":
      return changed(asking, event, ({ calls }) => ({ calls: from(calls).with(event.toolCallId) }))
    case "ToolBackgrounded":
      return changed(asking, event, ({ background, calls }) => ({
        calls: from(calls).without(event.toolCallId),
        background: from(background).with(event.toolCallId)
      }))
    case "ToolExecutionEnd":
      return changed(withoutRequests(asking, event), event, ({ background, calls }) =>
        event.background === undefined
          ? { calls: from(calls).without(event.toolCallId) }
          : { background: from(background).without(event.toolCallId) }
      )
    case "TurnStart":
    case "TurnEnd":
      return changed(asking, event, ({ background }) => {
        const isBetweenTurns = event._tag === "TurnEnd" && !event.toolsContinue && background.size > 0
        return { isBetweenTurns }
      })
    case "ApprovalRequested":
      return { ...asking, approvals: new Map(asking.approvals).set(event.approvalId, event) }
    case "ApprovalAnswered":
      return { ...asking, approvals: without(asking.approvals, event.approvalId) }
    case "QuestionAsked":
      return { ...asking, questions: new Map(asking.questions).set(event.questionId, event) }
    case "QuestionAnswered":
      return { ...asking, questions: without(asking.questions, event.questionId) }
    default:
      return asking
  }
}

/** All open requests, in their order. */
export const requests = ({
  approvals,
  questions
}: Asking): ReadonlyArray<OfTag<"ApprovalRequested" | "QuestionAsked">> => [
  ...approvals.values(),
  ...questions.values()
]

/** Whether a request is open, and no call and no run inside does anything before a person answers. */
export const isWaiting = (asking: Asking): boolean => {
  const open = requests(asking)
  if (open.length === 0) return false
  const waiting = new Set(open.map((request) => keyOf(request.runId, request.toolCallId)))
  for (const { parent } of asking.runs.values()) {
    if (parent !== undefined) waiting.add(keyOf(parent.runId, parent.toolCallId))
  }
  return [...asking.runs].every(
    ([runId, run]) => isHeld(run) && callsOf(run).every((id) => waiting.has(keyOf(runId, id)))
  )
}

/** Whether a run does nothing before one of its calls ends. */
export const isHeld = ({ background, calls, isBetweenTurns }: OpenRun): boolean =>
  calls.size > 0 || (isBetweenTurns && background.size > 0)

/** The calls that have not ended. */
export const callsOf = ({ background, calls }: OpenRun): ReadonlyArray<string> => [...calls, ...background]

const keyOf = (runId: string, toolCallId: string): string => `${runId} ${toolCallId}`

const begun = { calls: CallSet.empty, background: CallSet.empty, isBetweenTurns: false }

const changed = (
  asking: Asking,
  { runId }: AgentEvent,
  change: (run: OpenRun) => Partial<OpenRun>
): Asking => {
  const run = asking.runs.get(runId)
  if (run === undefined) return asking
  return { ...asking, runs: new Map(asking.runs).set(runId, { ...run, ...change(run) }) }
}

const withoutRequests = (asking: Asking, { runId, toolCallId }: OfTag<"ToolExecutionEnd">): Asking => {
  const isOther = (request: { readonly runId: string; readonly toolCallId: string }) =>
    request.runId !== runId || request.toolCallId !== toolCallId
  if (requests(asking).every(isOther)) return asking
  return {
    ...asking,
    approvals: new Map([...asking.approvals].filter(([, request]) => isOther(request))),
    questions: new Map([...asking.questions].filter(([, request]) => isOther(request)))
  }
}

const without = <A>(map: ReadonlyMap<string, A>, key: string): ReadonlyMap<string, A> => {
  const rest = new Map(map)
  rest.delete(key)
  return rest
}
