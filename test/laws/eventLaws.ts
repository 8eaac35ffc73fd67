/**
 * Laws that hold for the events of every run, whatever happened in it. Each is a function from events to violations in
 * words; none at all for a lawful run.
 */
import type { AgentEvent, Message } from "effect-agent"
import { Usage } from "effect-agent"

type Event = AgentEvent.AgentEvent
type Violations = ReadonlyArray<string>

/** What is wrong with the events of one run that has ended. */
export const violations = (events: ReadonlyArray<Event>): Violations => [
  ...ends(events),
  ...numbers(events),
  ...balance(events),
  ...turns(events),
  ...results(events),
  ...outcomes(events),
  ...sums(events)
]

/** The events of an agent, run by run. */
export const byRun = (events: ReadonlyArray<Event>): ReadonlyArray<ReadonlyArray<Event>> =>
  groups(events, ({ runId }) => runId)

const groups = (events: ReadonlyArray<Event>, key: (event: Event) => string | number | undefined) => {
  const found = new Map<string | number | undefined, Array<Event>>()
  for (const event of events) {
    const group = found.get(key(event)) ?? []
    group.push(event)
    found.set(key(event), group)
  }
  return [...found.values()]
}

const ofTag = <const T extends Event["_tag"]>(events: ReadonlyArray<Event>, ...tags: ReadonlyArray<T>) => {
  const wanted: ReadonlySet<Event["_tag"]> = new Set(tags)
  return events.filter((event): event is AgentEvent.OfTag<T> => wanted.has(event._tag))
}

const unless = (holds: boolean, violation: string): Violations => (holds ? [] : [violation])

/** `RunStart` first, `RunEnd` last, each once; an error if and only if the run failed. */
const ends = (events: ReadonlyArray<Event>): Violations => {
  const last = events.at(-1)
  const failed = last?._tag === "RunEnd" && last.status === "failed"
  const errors = ofTag(events, "RunError")
  const cancels = ofTag(events, "RunCancelled")
  return [
    ...unless(
      events[0]?._tag === "RunStart" && ofTag(events, "RunStart").length === 1,
      "RunStart is not once and first"
    ),
    ...unless(last?._tag === "RunEnd" && ofTag(events, "RunEnd").length === 1, "RunEnd is not once and last"),
    ...unless(errors.length === (failed ? 1 : 0), `${errors.length} RunError, failed: ${failed}`),
    ...unless(cancels.length <= 1, `${cancels.length} RunCancelled`),
    ...unless(
      last?._tag !== "RunEnd" || last.status !== "cancelled" || cancels.length === 1,
      "cancelled without RunCancelled"
    )
  ]
}

const numbers = (events: ReadonlyArray<Event>): Violations =>
  events.flatMap((event, index) => {
    const before = events[index - 1]
    return unless(
      before === undefined || (event.seq > before.seq && event.timestamp >= before.timestamp),
      `seq or time goes back at ${event._tag} ${event.seq}, ${event.timestamp}, behind ${before?._tag} ${before?.seq}, ${before?.timestamp}`
    )
  })

interface Open {
  turn: number | undefined
  message: string | undefined
  readonly tools: Map<string, "started" | "invoked">
  readonly seenTools: Set<string>
}

/** Each start has one end, and everything is inside what it belongs to. */
const balance = (events: ReadonlyArray<Event>): Violations => {
  const open: Open = { turn: undefined, message: undefined, tools: new Map(), seenTools: new Set() }
  return events.flatMap((event) => nesting(open, event).map((violation) => `${violation} (seq ${event.seq})`))
}

const nesting = (open: Open, event: Event): Violations => {
  switch (event._tag) {
    case "TurnStart": {
      const found = unless(open.turn === undefined, "a turn inside a turn")
      open.turn = event.turn
      open.seenTools.clear()
      return found
    }
    case "TurnEnd":
    case "RunEnd": {
      const inside = event._tag === "TurnEnd"
      const found = [
        ...unless((open.turn !== undefined) === inside, `${event._tag} at the wrong place`),
        ...unless(open.message === undefined, `${event._tag} while a message is open`),
        ...unless(open.tools.size === 0, `${event._tag} while a tool is open`)
      ]
      open.turn = undefined
      return found
    }
    case "MessageStart":
    case "MessageDelta":
    case "MessageRetracted":
    case "MessageEnd":
      return messageNesting(open, event)
    case "ToolExecutionStart":
    case "ToolInvoked":
    case "ToolExecutionProgress":
    case "ToolExecutionEnd":
      return toolNesting(open, event)
    default:
      return []
  }
}

type MessageEvent = AgentEvent.OfTag<"MessageStart" | "MessageDelta" | "MessageRetracted" | "MessageEnd">

const messageNesting = (open: Open, event: MessageEvent): Violations => {
  const id = event._tag === "MessageEnd" ? event.message.id : event.messageId
  const expected = event._tag === "MessageStart" ? undefined : id
  const found = [
    ...unless(open.turn !== undefined, `${event._tag} outside of a turn`),
    ...unless(open.message === expected, `${event._tag} of ${id} while ${open.message} is open`)
  ]
  if (event._tag === "MessageStart") open.message = id
  if (event._tag === "MessageEnd" || event._tag === "MessageRetracted") open.message = undefined
  return found
}

type ToolEvent = AgentEvent.OfTag<
  "ToolExecutionStart" | "ToolInvoked" | "ToolExecutionProgress" | "ToolExecutionEnd"
>

const toolNesting = (open: Open, event: ToolEvent): Violations => {
  const { toolCallId: id } = event
  const state = open.tools.get(id)
  switch (event._tag) {
    case "ToolExecutionStart": {
      const found = unless(open.turn !== undefined && !open.seenTools.has(id), `${id} starts twice`)
      open.tools.set(id, "started")
      open.seenTools.add(id)
      return found
    }
    case "ToolInvoked":
      open.tools.set(id, "invoked")
      return unless(state === "started", `${id} invoked while ${state}`)
    case "ToolExecutionProgress":
      return unless(state === "invoked", `${id} makes progress while ${state}`)
    case "ToolExecutionEnd":
      open.tools.delete(id)
      return unless(state !== undefined, `${id} ends while not open`)
  }
}

/** Turns count from 1, and every event in a turn says which. */
const turns = (events: ReadonlyArray<Event>): Violations => {
  const starts = ofTag(events, "TurnStart").map(({ turn }) => turn)
  const stops = ofTag(events, "TurnEnd").map(({ turn }) => turn)
  const expected = starts.map((_, index) => index + 1)
  const end = ofTag(events, "RunEnd")[0]
  return [
    ...unless(starts.join() === expected.join(), `turns begin as ${starts.join()}`),
    ...unless(stops.join() === expected.join(), `turns end as ${stops.join()}`),
    ...unless(end === undefined || end.turns === starts.length, `RunEnd counts ${end?.turns} turns`)
  ]
}

/** Each call of a turn has one result, in the order of the calls, and `TurnEnd` names its answer and them. */
const results = (events: ReadonlyArray<Event>): Violations =>
  groups(events, ({ turn }) => turn).flatMap((inTurn) => {
    const end = ofTag(inTurn, "TurnEnd")[0]
    if (end === undefined) return []
    const { turn } = end
    const calls = ofTag(inTurn, "ToolsDetected").flatMap(({ toolCalls }) => toolCalls.map(({ id }) => id))
    const started = ofTag(inTurn, "ToolExecutionStart").map(({ toolCallId }) => toolCallId)
    const said = ofTag(inTurn, "MessageEnd").map(({ message }) => message)
    const answer = said.findIndex(({ id }) => id === end.messageId)
    const answered = said.slice(answer).flatMap((message) => (message.role === "toolResult" ? [message] : []))
    const ids = answered.map(({ toolCallId }) => toolCallId)
    return [
      ...unless(said[answer]?.role === "assistant", `turn ${turn} has no answer`),
      ...unless(ids.join() === calls.join(), `turn ${turn} calls ${calls.join()}, results ${ids.join()}`),
      ...unless(
        started.join() === calls.join(),
        `turn ${turn} calls ${calls.join()}, starts ${started.join()}`
      ),
      ...unless(
        end.toolResultIds.join() === answered.map(({ id }) => id).join(),
        `TurnEnd of turn ${turn} names other results`
      )
    ]
  })

const ran: ReadonlySet<Message.ToolOutcome> = new Set<Message.ToolOutcome>(["success", "error", "timeout"])

/** Only a call that was invoked can have come to something, and its end says what its result says. */
const outcomes = (events: ReadonlyArray<Event>): Violations => {
  const invoked = new Set<string>(
    ofTag(events, "ToolInvoked").map(({ toolCallId, turn }) => `${turn} ${toolCallId}`)
  )
  const told = new Map<string, Message.ToolResult>(
    ofTag(events, "MessageEnd").flatMap(({ message, turn }) =>
      message.role === "toolResult" ? [[`${turn} ${message.toolCallId}`, message] as const] : []
    )
  )
  return ofTag(events, "ToolExecutionEnd").flatMap(({ isError, outcome, toolCallId, turn }) => {
    const key = `${turn} ${toolCallId}`
    const result = told.get(key)
    return [
      ...unless(
        outcome === "aborted" || invoked.has(key) === ran.has(outcome),
        `${key}: ${outcome}, invoked: ${invoked.has(key)}`
      ),
      ...unless(outcome !== "success" || !isError, `${key}: a success that is an error`),
      ...unless(
        result?.outcome === outcome && result.isError === isError,
        `${key}: the result says otherwise`
      )
    ]
  })
}

/** What `RunEnd` says is what the events said. */
const sums = (events: ReadonlyArray<Event>): Violations => {
  const end = ofTag(events, "RunEnd")[0]
  if (end === undefined) return []
  const messages = ofTag(events, "MessageEnd").map(({ message }) => message)
  const ids = messages.map(({ id }) => id)
  const compacting = ofTag(events, "Compaction").map((event) => event.usage ?? Usage.zero)
  const usage = messages.reduce(
    (sum, message) => (message.role === "assistant" ? Usage.add(sum, message.usage ?? Usage.zero) : sum),
    compacting.reduce(Usage.add, Usage.zero)
  )
  return [
    ...unless(end.newMessageIds.join() === ids.join(), "RunEnd names other messages"),
    ...unless(new Set(ids).size === ids.length, "a message id is used twice"),
    // What was taken back is in no message, and has been paid for.
    ...unless(
      end.usage.total === usage.total ||
        (end.usage.total > usage.total && ofTag(events, "MessageRetracted").length > 0),
      `RunEnd counts ${end.usage.total} tokens of ${usage.total}`
    )
  ]
}
