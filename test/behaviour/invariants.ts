/**
 * What holds for the events of every run, whatever happened in it.
 */
import { type AgentEvent, Message, RunReport, Transcript } from "effect-agent"
import * as Grammar from "./grammar.ts"
import { ofTag } from "./play.ts"

type Events = ReadonlyArray<AgentEvent.AgentEvent>

/** The broken rules of a whole run, in words. Empty when all is well. */
export const broken = (events: Events): ReadonlyArray<string> => [
  ...frame(events),
  ...Grammar.broken(events),
  ...turns(events),
  ...messages(events),
  ...tools(events),
  ...modelCalls(events),
  ...compactions(events),
  ...ending(events)
]

const frame = (events: Events) => [
  ...rule(events[0]?._tag === "RunStart", "RunStart is not first"),
  ...rule(ofTag(events, "RunStart").length === 1, "there is not one RunStart"),
  ...rule(events.at(-1)?._tag === "RunEnd", "RunEnd is not last"),
  ...rule(ofTag(events, "RunEnd").length === 1, "there is not one RunEnd"),
  ...rule(
    events.every(({ seq }, index) => seq > (events[index - 1]?.seq ?? 0)),
    "seq does not strictly increase"
  ),
  ...rule(new Set(events.map(({ runId }) => runId)).size === 1, "there are several run ids"),
  ...rule(
    events.every(({ timestamp }, index) => timestamp >= (events[index - 1]?.timestamp ?? 0)),
    "time goes back"
  )
]

/** Turns follow one another, numbered from 1, and everything between is in them. */
const turns = (events: Events) => {
  const found: Array<string> = []
  const isBeside = beside(events)
  let turn = 0
  let open = false
  for (const event of events) {
    if (event._tag === "TurnStart") {
      found.push(
        ...rule(!open, "a turn starts in a turn"),
        ...rule(event.turn === ++turn, "turns are misnumbered")
      )
      open = true
    } else if (event._tag === "TurnEnd") {
      found.push(...rule(open, "a turn ends twice"))
      open = false
    } else if (event._tag === "RunRetry") {
      found.push(...rule(!open && turn > 0, "a retry is not between turns"))
    } else if (inTurn.has(event._tag) && !isBeside(event)) {
      found.push(...rule(open && event.turn === turn, `${event._tag} is outside its turn`))
    }
  }
  return [...found, ...rule(!open, "a turn does not end")]
}

/** Whether an event is of a call in the background, or of the message that tells its end after the last turn. */
const beside = (events: Events) => {
  const calls = new Set(ofTag(events, "ToolBackgrounded").map(({ toolCallId }) => toolCallId))
  const told = new Set(
    ofTag(events, "MessageEnd").flatMap(({ message }) =>
      message.role === "user" && message.backgroundEnds !== undefined ? [message.id] : []
    )
  )
  return (event: AgentEvent.AgentEvent) => {
    switch (event._tag) {
      case "ToolInvoked":
      case "ToolExecutionEnd":
        return calls.has(event.toolCallId)
      case "MessageStart":
        return told.has(event.messageId)
      case "MessageEnd":
        return told.has(event.message.id)
      default:
        return false
    }
  }
}

const inTurn: ReadonlySet<string> = new Set([
  "ModelCallStart",
  "ModelCallEnd",
  "MessageStart",
  "MessageDelta",
  "MessageEnd",
  "ToolsDetected",
  "ToolExecutionStart",
  "ToolInvoked",
  "ToolExecutionEnd"
])

/** A message that starts ends, once; the transcript they make is valid; the last event names them. */
const messages = (events: Events) => {
  const found: Array<string> = []
  let open: string | undefined
  for (const event of events) {
    if (event._tag === "MessageStart") {
      found.push(...rule(open === undefined, "a message starts in a message"))
      open = event.messageId
    } else if (event._tag === "MessageDelta" || event._tag === "MessageRetracted") {
      found.push(...rule(open === event.messageId, `${event._tag} of a message that is not open`))
      if (event._tag === "MessageRetracted") open = undefined
    } else if (event._tag === "MessageEnd") {
      found.push(...rule(open === event.message.id, "a message ends that is not open"))
      open = undefined
    }
  }
  const all = ofTag(events, "MessageEnd").map(({ message }) => message)
  const ids = all.map(({ id }) => id)
  return [
    ...found,
    ...rule(open === undefined, "a message does not end"),
    ...rule(new Set(ids).size === ids.length, "a message id is used twice"),
    ...rule(same(ofTag(events, "RunEnd")[0]?.newMessageIds ?? [], ids), "RunEnd names other messages"),
    ...Transcript.violations(all)
  ]
}

/** Each tool that starts ends once, in its turn unless it is in the background; progress is between its invocation and its end. */
const tools = (events: Events) => {
  const found: Array<string> = []
  const open = new Map<string, "started" | "invoked">()
  const inBackground = new Set<string>()
  for (const event of events) {
    switch (event._tag) {
      case "ToolExecutionStart":
        found.push(...rule(!open.has(event.toolCallId), "a tool starts twice"))
        open.set(event.toolCallId, "started")
        break
      case "ToolInvoked":
        found.push(...rule(open.get(event.toolCallId) === "started", "a tool is invoked out of order"))
        open.set(event.toolCallId, "invoked")
        break
      case "ToolExecutionProgress":
        found.push(...rule(open.get(event.toolCallId) === "invoked", "progress of a tool that does not run"))
        break
      case "ToolExecutionEnd":
        found.push(...rule(open.delete(event.toolCallId), "a tool ends that did not start"))
        break
      case "ToolBackgrounded":
        inBackground.add(event.toolCallId)
        break
      case "TurnEnd":
        found.push(
          ...rule(
            [...open.keys()].every((id) => inBackground.has(id)),
            "a turn ends before its tools"
          )
        )
        break
      case "RunEnd":
        found.push(...rule(open.size === 0, "a run ends before its tools"))
    }
  }
  return [...found, ...results(events)]
}

/** Each call of an answer that counts has one end and one result, and `TurnEnd` names the results. */
const results = (events: Events) => {
  const found: Array<string> = []
  for (const end of ofTag(events, "TurnEnd")) {
    const turn = events.filter((event) => event.turn === end.turn)
    const all = ofTag(turn, "MessageEnd").map(({ message }) => message)
    const calls = all.flatMap((message) =>
      message.role === "assistant" && !Transcript.isFailed(message) ? Message.toolCalls(message) : []
    )
    const answers = all.filter((message) => message.role === "toolResult")
    const ended = [
      ...ofTag(turn, "ToolExecutionEnd").filter(({ background }) => background === undefined),
      ...ofTag(turn, "ToolBackgrounded")
    ].map(({ toolCallId }) => toolCallId)
    const wanted = calls.map(({ id }) => id)
    found.push(
      ...rule(
        same(
          wanted,
          answers.map(({ toolCallId }) => toolCallId)
        ),
        "calls and results differ"
      ),
      ...rule(same(wanted.toSorted(), ended.toSorted()), "calls and tool ends differ"),
      ...rule(
        same(
          end.toolResultIds,
          answers.map(({ id }) => id)
        ),
        "TurnEnd names other results"
      ),
      ...rule(end.toolCallCount === answers.length, "TurnEnd counts other results")
    )
  }
  return found
}

/** Each compaction that starts ends or fails, once, before the model is asked and before the turn ends. */
const compactions = (events: Events) => {
  const found: Array<string> = []
  let isOpen = false
  for (const event of events) {
    if (event._tag === "Compaction") {
      found.push(
        ...rule(isOpen === (event.status !== "start"), `a compaction that does not follow: ${event.status}`)
      )
      found.push(
        ...rule((event.error === undefined) === (event.status !== "failed"), "it fails without an error")
      )
      isOpen = event.status === "start"
    } else if (event._tag === "ModelCallStart" || event._tag === "TurnEnd" || event._tag === "RunEnd") {
      found.push(...rule(!isOpen, `${event._tag} while a compaction is open`))
    }
  }
  return found
}

const modelCalls = (events: Events) => {
  const found: Array<string> = []
  let open = false
  for (const event of events) {
    if (event._tag === "ModelCallStart") {
      found.push(...rule(!open, "a model call starts in a model call"))
      open = true
    } else if (event._tag === "ModelCallEnd" || (event._tag === "ModelCallError" && !event.willRetry)) {
      found.push(...rule(open, `${event._tag} of a call that was not made`))
      open = false
    } else if (event._tag === "TurnEnd") open = false
  }
  return found
}

const ending = (events: Events) => {
  const end = ofTag(events, "RunEnd")[0]
  const cancels = ofTag(events, "RunCancelled").length
  const errors = ofTag(events, "RunError").length
  const report = RunReport.fromEvents(events)
  return [
    ...rule(cancels === (end?.status === "cancelled" ? 1 : 0), `${end?.status} with ${cancels} RunCancelled`),
    ...rule(errors === (end?.status === "failed" ? 1 : 0), `${end?.status} with ${errors} RunError`),
    ...rule((end?.error === undefined) === (end?.status !== "failed"), "RunEnd has an error, or none"),
    ...rule(end?.turns === ofTag(events, "TurnStart").length, "RunEnd counts other turns"),
    ...rule(report.toolCalls === ofTag(events, "ToolExecutionEnd").length, "the report counts other tools"),
    ...rule(same(report.usage, end?.usage), "the report counts other tokens")
  ]
}

const rule = (holds: boolean, otherwise: string): ReadonlyArray<string> => (holds ? [] : [otherwise])

const same = (left: unknown, right: unknown) => JSON.stringify(left) === JSON.stringify(right)
