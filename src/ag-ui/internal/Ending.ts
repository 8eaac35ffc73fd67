/** The ends of steps, runs and responses: every bracket is closed before. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import type { AgentEvent, OfTag } from "../../AgentEvent.ts"
import * as Asking from "../../ui/Asking.ts"
import * as Streamed from "../../ui/Streamed.ts"
import type { Usage } from "../../Usage.ts"
import * as Answer from "./Answer.ts"
import type { Event, Interrupt, JsonObject } from "./Event.ts"
import { callIdOf, json, producerOf, type State, type Step, withProducer } from "./State.ts"

export const ofStep = (state: State, runId: string): Step => {
  const ends = [...Answer.ends(state, runId), ...stepFinished(state, runId)]
  return [withProducer(state, runId, { step: undefined, streamed: Streamed.nothing }), ends]
}

const stepFinished = (state: State, runId: string): ReadonlyArray<Event> => {
  const { step, tag } = producerOf(state, runId)
  return step === undefined ? [] : [{ type: "STEP_FINISHED", stepName: step, ...tag }]
}

const resultOf = (event: OfTag<"RunEnd">): JsonObject => ({
  ...Struct.pick(event, ["runId", "status", "turns", "durationMs"]),
  ...(event.resume === undefined ? {} : { resume: { ...event.resume } }),
  ...(event.childUsage === undefined ? {} : { childUsage: { ...event.childUsage } })
})

const without = (state: State, runId: string): State => {
  const producers = new Map(state.producers)
  producers.delete(runId)
  return { ...state, producers }
}

export const ofChild = (before: State, event: OfTag<"RunEnd">): Step => {
  const { error, runId: subagentRunId, status } = event
  if (!before.producers.has(subagentRunId)) return [before, []]
  const [state, ends] = ofStep(before, subagentRunId)
  const end: Event =
    status === "failed"
      ? {
          type: "SUBAGENT_ERROR",
          subagentRunId,
          message: error?.message ?? "The run failed",
          code: error?._tag ?? "Failed"
        }
      : {
          type: "SUBAGENT_FINISHED",
          subagentRunId,
          result: { ...resultOf(event), usage: { ...event.usage } },
          outcome:
            status === "suspended"
              ? { type: "suspended", interruptIds: interrupts(state, subagentRunId).map(({ id }) => id) }
              : { type: "success" }
        }
  return [without(state, subagentRunId), [...ends, end]]
}

export const ofRun = (before: State, event: OfTag<"RunEnd">): Step => {
  const { error, status } = event
  const { input, output } = before
  const usage = [usageOf(event.usage)]
  const open = interrupts(before)
  const ends = closed(before)
  const state = { ...before, producers: new Map(), hasEnded: true }
  const result = {
    ...resultOf(event),
    ...(output === undefined ? {} : { output })
  }
  if (status === "failed") {
    const message = error?.message ?? "The run failed"
    const code = error?._tag ?? "Failed"
    return [state, [...ends, { type: "RUN_ERROR", message, code, usage, metadata: { effectAgent: result } }]]
  }
  const { runId, threadId } = input
  const finished = { type: "RUN_FINISHED", threadId, runId, usage } as const
  if (status === "suspended" && open.length > 0) {
    return [state, [...ends, { ...finished, result, outcome: { type: "interrupt", interrupts: open } }]]
  }
  const type = status === "cancelled" ? "cancelled" : "success"
  return [state, [...ends, { ...finished, result, outcome: { type } }]]
}

/** The ends of all that is open, the innermost first. */
const closed = (state: State): ReadonlyArray<Event> =>
  [...state.producers.keys()].reverse().flatMap((runId) => {
    const [, ends] = ofStep(state, runId)
    if (runId === state.runId) return ends
    const interruptIds = interrupts(state, runId).map(({ id }) => id)
    const outcome = { type: "suspended", interruptIds } as const
    return [...ends, { type: "SUBAGENT_FINISHED", subagentRunId: runId, outcome }]
  })

export const pause = (state: State): ReadonlyArray<Event> => {
  const { runId, threadId } = state.input
  const outcome = { type: "interrupt", interrupts: interrupts(state) } as const
  return [...closed(state), { type: "RUN_FINISHED", threadId, runId, outcome }]
}

/** Begins again what `pause` has closed. */
export const begin = (state: State): ReadonlyArray<Event> => {
  const { runId, threadId } = state.input
  const metadata = state.runId === undefined ? {} : { metadata: { effectAgent: { runId: state.runId } } }
  return [
    { type: "RUN_STARTED", threadId, runId, protocolVersion: "1.0", ...metadata },
    ...[...state.producers.values()].flatMap(
      ({ begin, step, tag }): ReadonlyArray<Event> => [
        ...begin,
        ...(step === undefined ? [] : [{ type: "STEP_STARTED", stepName: step, ...tag } as const])
      ]
    )
  ]
}

/** The open requests to a person, of one run or of all. */
const interrupts = (state: State, runId?: string): Array<Interrupt> =>
  Asking.requests(state.asking)
    .filter((request) => runId === undefined || isWithin(request, runId))
    .map((request) => ({
      ...interruptOf(request),
      toolCallId: callIdOf(state, request),
      ...(request.expiresAt === undefined ? {} : { expiresAt: new Date(request.expiresAt).toISOString() }),
      metadata: { effectAgent: json(request) },
      ...(request.runId === state.runId ? {} : { subagentRunId: request.runId })
    }))

const isWithin = (request: AgentEvent, runId: string): boolean =>
  request.runId === runId || request.path?.some((caller) => caller.runId === runId) === true

const interruptOf = (request: OfTag<"ApprovalRequested" | "QuestionAsked">) => {
  if (request._tag === "QuestionAsked") {
    const { question: message, questionId: id, schema } = request
    const responseSchema = Option.getOrUndefined(decodeObject(schema))
    const known = responseSchema === undefined ? {} : { responseSchema }
    return { id, reason: "input_required", message, ...known }
  }
  const { approvalId: id, reason, toolName } = request
  const message = reason ?? `Allow ${toolName}?`
  return { id, reason: "tool_call", message, responseSchema: decisionSchema }
}

const decodeObject = Schema.decodeUnknownOption(Schema.Record(Schema.String, Schema.Json))

const decisionSchema: JsonObject = {
  type: "object",
  properties: { approved: { type: "boolean" }, reason: { type: "string" } },
  required: ["approved"]
}

const usageOf = ({ cacheRead, cacheWrite, input, output, reasoning, total }: Usage): JsonObject => ({
  inputTokens: input,
  outputTokens: output,
  totalTokens: total,
  cachedInputTokens: cacheRead,
  cacheWriteInputTokens: cacheWrite,
  ...(reasoning === undefined ? {} : { reasoningTokens: reasoning })
})
