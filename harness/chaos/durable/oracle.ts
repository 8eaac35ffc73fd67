/**
 * What must hold of a run, whatever happened to its workers: I1 to I8 of a durable run, by what clients were told, what the store has, and
 * what was done outside.
 */
import type { AgentEvent, Message } from "effect-agent"
import { eventOf, textOfEvent } from "../../../src/runs/LogEntry.ts"
import * as LogLine from "../../../src/runs/internal/LogLine.ts"
import * as EventLaws from "../../../test/laws/eventLaws.ts"
import { kindOf } from "./cast.ts"
import type { Seen } from "./watcher.ts"
import type { Deed } from "./world.ts"

export interface Evidence {
  readonly turns: number
  /** The faults that may each have cost a model call, and made the ends of calls unknown. */
  readonly faults: number
  /** What the watcher saw. */
  readonly seen: ReadonlyArray<Seen>
  /** The lines of the log of the run, read by a process of its own. */
  readonly lines: ReadonlyArray<string>
  /** The messages of the session, read by a process of its own. */
  readonly messages: ReadonlyArray<Message.Message>
  /** The texts of messages that the workers accepted for the run. */
  readonly accepted: ReadonlyArray<string>
  /** Whether calls of \`once\` tools waited for an approval, and pure tools asked a question. */
  readonly asks: boolean
  readonly deeds: ReadonlyArray<Deed>
}

type Violations = ReadonlyArray<string>

export const violations = (evidence: Evidence): Violations => [
  ...watched(evidence),
  ...logged(evidence),
  ...said(evidence),
  ...asked(evidence),
  ...done(evidence)
]

/** The calls whose end is unknown. */
export const unknowns = ({ messages }: Pick<Evidence, "messages">): number =>
  messages
    .flatMap((message): ReadonlyArray<Message.ToolResult | Message.BackgroundEnd> => {
      if (message.role === "user") return message.backgroundEnds ?? []
      return message.role === "toolResult" ? [message] : []
    })
    .filter(({ outcome }) => outcome === "unknown").length

const answersOf = ({ messages }: Pick<Evidence, "messages">): number =>
  messages.filter(({ role }) => role === "assistant").length

/** The model calls that were made again. */
export const repeats = (evidence: Pick<Evidence, "deeds" | "messages">): number =>
  evidence.deeds.filter(({ what }) => what === "model").length - answersOf(evidence)

/** I1: the log has each event that the watcher saw, at its position, and the watcher saw each event of the log. */
export const watched = ({ lines, seen }: Evidence): Violations => {
  const { entries } = LogLine.read(lines)
  const stored = new Map(entries.map(({ event, position, tag }) => [position, { event, tag }]))
  const whole = seen.filter(({ tag }) => tag !== "MessageDelta")
  const positions = new Set(whole.map(({ position }) => position))
  return [
    ...whole.flatMap(({ position, tag, text }) => {
      const entry = stored.get(position)
      if (entry === undefined) return [`I1 ${tag} ${position} was seen, and is lost`]
      if (entry.event === undefined) return [`I1 ${tag} ${position} cannot be read`]
      return textOfEvent(entry.event) === textOfEvent(parsed(text) ?? entry.event)
        ? []
        : [
            `I1 ${position} was seen as another event: ${text.slice(0, 300)} in place of ${textOfEvent(entry.event).slice(0, 300)}`
          ]
    }),
    ...entries
      .filter(({ position }) => !positions.has(position))
      .map(({ position, tag }) => `I1 ${tag} ${position} was never seen`)
  ]
}

const parsed = (text: string): AgentEvent.AgentEvent | undefined => eventOf(JSON.parse(text))

/** I2, I7, I8: the log is that of one run without an interruption, and counts all that it spent. */
const logged = (evidence: Evidence): Violations => {
  const { lines, turns } = evidence
  const events = LogLine.read(lines).entries.flatMap(({ event }) => event ?? [])
  const ends = events.filter(({ _tag }) => _tag === "ToolExecutionEnd").length
  const end = events.at(-1)
  if (end?._tag !== "RunEnd") return [`I7 the log ends with ${end?._tag}`]
  return [
    // The laws are those of a run that one process saw from its start to its end, where no tool that began has an unknown end.
    ...EventLaws.violations(events)
      .filter((found) => !found.endsWith("unknown, invoked: true"))
      .map((found) => `law: ${found}`),
    ...(end.status === "completed" ? [] : [`I7 the run is ${end.status}: ${JSON.stringify(end.error)}`]),
    ...(ends === 2 * turns ? [] : [`I2 ${ends} calls ended`]),
    ...(end.turns === answersOf(evidence) ? [] : [`I8 it counts ${end.turns} turns`]),
    ...(end.usage.total === 15 * end.turns
      ? []
      : [`I8 it counts ${end.usage.total} tokens in ${end.turns} turns`])
  ]
}

const textOf = (message: Message.Message): string =>
  message.role === "custom"
    ? message.role
    : message.content
        .map((part) => (part.type === "text" ? part.text : part.type === "toolCall" ? part.id : ""))
        .join("")

/** The messages of a run that nothing happened to. */
const expected = (turns: number): ReadonlyArray<string> => [
  "user Work.",
  ...Array.from({ length: turns }, (_, turn) => [
    `assistant Turn ${turn}.call_${2 * turn}call_${2 * turn + 1}`,
    `toolResult call_${2 * turn} success`,
    `toolResult call_${2 * turn + 1} success`
  ]).flat(),
  "assistant Done."
]

/** I2, I5: the conversation is that of an unkilled run but for unknown ends, and has each accepted message once. */
const said = ({ accepted, faults, messages, turns }: Evidence): Violations => {
  const lines = messages.map((message) =>
    message.role === "toolResult"
      ? `toolResult ${message.toolCallId} ${message.outcome === "unknown" ? "success" : message.outcome}`
      : `${message.role} ${textOf(message)}`
  )
  const own = lines.filter(
    (line, index) =>
      !line.startsWith("user Steer") && (line !== "assistant Done." || index === lines.length - 1)
  )
  const wanted = expected(turns)
  const at = wanted.findIndex((line, index) => own[index] !== line)
  const wrong = messages.flatMap((message) =>
    message.role === "toolResult" &&
    message.outcome !== "unknown" &&
    !textOf(message).startsWith(`${kindOf(Number(message.toolCallId.slice(5)))} ${message.toolCallId} `)
      ? [`the result of ${message.toolCallId} is ${textOf(message).slice(0, 80)}`]
      : []
  )
  const unknown = unknowns({ messages })
  const steered = lines.filter((line) => line.startsWith("user Steer")).length
  return [
    ...(at < 0 && own.length === wanted.length
      ? []
      : [`I2 message ${at} is ${own[at]} in place of ${wanted[at]}, of ${own.length} and ${wanted.length}`]),
    ...wrong,
    ...(unknown <= 2 * faults ? [] : [`${unknown} calls with an unknown end, ${faults} faults`]),
    ...messages.flatMap((message) =>
      message.role === "toolResult" && message.outcome === "unknown" && message.toolName !== "once"
        ? [`${message.toolCallId}, which is ${message.toolName}, has an unknown end`]
        : []
    ),
    ...(steered > 1 || steered < accepted.length
      ? [`I5 a message is ${steered} times in the conversation`]
      : [])
  ]
}

/** I5: each call that waits for an approval asks once and gets one answer, and each question has its answer. */
const asked = ({ asks, lines, turns }: Evidence): Violations => {
  if (!asks) return []
  const events = LogLine.read(lines).entries.flatMap(({ event }) => event ?? [])
  const once = Array.from({ length: 2 * turns }, (_, call) => call).filter((call) => kindOf(call) === "once")
  const of = (tag: AgentEvent.AgentEvent["_tag"]) => events.filter(({ _tag }) => _tag === tag).length
  const requested = `${of("ApprovalRequested")} approvals were requested, and ${of("ApprovalAnswered")} answered`
  const questions = events.filter(({ _tag }) => _tag === "QuestionAsked" || _tag === "QuestionAnswered")
  const open = new Map<string, string>()
  for (const event of questions) {
    if (event._tag === "QuestionAsked") {
      // A call that runs again asks again: its first question is void.
      for (const [id, call] of open) if (call === event.toolCallId) open.delete(id)
      open.set(event.questionId, event.toolCallId)
    }
    if (event._tag === "QuestionAnswered") open.delete(event.questionId)
  }
  return [
    ...(of("ApprovalRequested") === once.length && of("ApprovalAnswered") === once.length
      ? []
      : [`I5 ${requested}, of ${once.length} calls`]),
    ...Array.from(open, ([id, call]) => `I5 question ${id} of ${call} has no answer: ${story(events, call)}`)
  ]
}

/** The events of a call. */
const story = (events: ReadonlyArray<AgentEvent.AgentEvent>, call: string): string =>
  events
    .flatMap((event) =>
      "toolCallId" in event && event.toolCallId === call
        ? [`${event._tag}${"questionId" in event ? ` ${event.questionId.slice(-4)}` : ""}`]
        : []
    )
    .join(", ")

/** I3, I6: what tools and the model were asked for, counted outside. */
const done = (evidence: Evidence): Violations => {
  const { deeds, faults, seen, turns } = evidence
  const ends = new Map(
    seen.flatMap(({ at, tag, text }): ReadonlyArray<[string, number]> => {
      return tag === "ToolExecutionEnd" ? [[JSON.parse(text).toolCallId, at]] : []
    })
  )
  const repeated = repeats(evidence)
  return [
    ...deeds.flatMap(({ detail, what }) => (what === "fault" ? [`I6 ${detail}`] : [])),
    ...(repeated <= faults ? [] : [`${repeated} model calls repeated, ${faults} faults`]),
    ...Array.from({ length: 2 * turns }, (_, index) => {
      const call = `call_${index}`
      const begun = deeds.filter((deed) => deed.what === "begin" && deed.call === call)
      const keys = new Set(begun.map(({ key }) => key))
      const kind = kindOf(index)
      const ended = ends.get(call) ?? Infinity
      return [
        ...(kind === "once" && begun.length > 1
          ? [`I3 ${call}, a once tool, ran ${begun.length} times`]
          : []),
        ...(kind !== "once" && begun.length === 0 ? [`I3 ${call} never ran`] : []),
        ...(begun.length > 1 + faults ? [`I3 ${call} ran ${begun.length} times`] : []),
        ...(keys.size > 1 ? [`I3 ${call} ran with the keys ${[...keys].join(", ")}`] : []),
        ...(begun.some(({ at }) => at > ended + 1) ? [`I3 ${call} ran after its end was seen`] : [])
      ]
    }).flat()
  ]
}
