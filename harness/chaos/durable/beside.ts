/** A model with three calls in the background, one of each kind, and what must hold of its run, whatever happened to its workers. */
import { Effect, Schema } from "effect"
import { type Message, Tool, Transcript } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import * as LogLine from "../../../src/runs/internal/LogLine.ts"
import * as Valid from "../inject/valid.ts"
import { kindOf, last, type Settings } from "./cast.ts"
import * as Oracle from "./oracle.ts"

const calls = [0, 1, 2] as const

/** The calls work for so many times the pace of an answer. */
const times = [25, 60, 100] as const

export const tools = ({ append, pace, sessionId }: Settings): ReadonlyArray<Tool.Runnable> =>
  calls.map((index) => {
    const kind = kindOf(index)
    return Tool.make({
      name: kind,
      description: `Does something that is ${kind}.`,
      params: Schema.Struct({}),
      effect: kind,
      blocking: false,
      execute: () =>
        Effect.gen(function* () {
          const { idempotencyKey: key, toolCallId: call } = yield* Tool.ToolContext
          append({ what: "begin", sessionId, call, kind, key })
          yield* Effect.sleep(pace * times[index])
          append({ what: "end", sessionId, call, kind, key })
          return `${kind} ${call}`
        })
    })
  })

/** The calls whose ends are in the conversation: in messages of the run, or as their results. */
const endsOf = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message): ReadonlyArray<Message.ToolResult | Message.BackgroundEnd> => {
    if (message.role === "user") return message.backgroundEnds ?? []
    return message.role === "toolResult" && message.background === undefined ? [message] : []
  })

/** Starts the calls, and ends its turns until it has read all ends. */
export const model = ({ append, isChecked, pace, sessionId }: Settings) =>
  ScriptedProvider.layer([], {
    exhausted: ({ messages }) => {
      const faults = isChecked ? [...Transcript.violations(messages), ...Valid.violations(messages)] : []
      for (const detail of faults) append({ what: "fault", sessionId, detail })
      append({ what: "model", sessionId, turn: messages.length })
      const isFirst = !messages.some(({ role }) => role === "assistant")
      const words = endsOf(messages).length === calls.length ? last : "I wait."
      return ScriptedProvider.turn(
        Step.start,
        Step.text([words]),
        Step.sleep(pace),
        ...(isFirst ? calls.map((at) => Step.toolCall(kindOf(at), {}, { id: `call_${at}` })) : []),
        Step.finish(isFirst ? "toolUse" : "stop", { input: 10, output: 5 })
      )
    }
  })

/** Each call ends once and is reported once, none that is `once` runs twice, and the others succeed. */
export const violations = (evidence: Oracle.Evidence): ReadonlyArray<string> => {
  const { deeds, faults, lines, messages } = evidence
  const events = LogLine.read(lines).entries.flatMap(({ event }) => event ?? [])
  const end = events.at(-1)
  const ended = events.filter(({ _tag }) => _tag === "ToolExecutionEnd").length
  const reports = endsOf(messages)
  const ofCalls = calls.flatMap((index) => {
    const call = `call_${index}`
    const kind = kindOf(index)
    const begun = deeds.filter((deed) => deed.what === "begin" && deed.call === call)
    const keys = new Set(begun.map(({ key }) => key))
    const found = reports.filter(({ toolCallId }) => toolCallId === call)
    const outcomes = found.map(({ outcome }) => outcome).join(", ")
    return [
      ...(kind === "once" && begun.length > 1 ? [`${call} is once, and ran ${begun.length} times`] : []),
      ...(kind !== "once" && begun.length === 0 ? [`${call} never ran`] : []),
      ...(begun.length > 1 + faults ? [`${call} ran ${begun.length} times with ${faults} kills`] : []),
      ...(keys.size > 1 ? [`${call} ran with several keys`] : []),
      ...(found.length === 1 ? [] : [`${call} was reported ${found.length} times`]),
      ...(outcomes === "success" || (kind === "once" && faults > 0 && outcomes === "unknown")
        ? []
        : [`${call}, which is ${kind}, ended with ${outcomes}`])
    ]
  })
  return [
    ...Oracle.watched(evidence),
    ...(end?._tag === "RunEnd" && end.status === "completed" ? [] : [`the log ends with ${end?._tag}`]),
    ...(ended === calls.length ? [] : [`${ended} calls ended`]),
    ...deeds.flatMap(({ detail, what }) => (what === "fault" ? [`a request was not valid: ${detail}`] : [])),
    ...ofCalls
  ]
}
