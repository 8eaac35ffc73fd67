/**
 * The model and the tools of a durable run. All that they say and return depends on the conversation alone, so that a run that was killed
 * ends like one that was not.
 */
import { Effect, Option, Schema } from "effect"
import { Tool, Transcript } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import * as Valid from "../inject/valid.ts"
import type { Append } from "./world.ts"

export interface Settings {
  readonly sessionId: string
  /** The turns with tool calls, two each. */
  readonly turns: number
  /** Milliseconds that an answer takes, and twice the time of a tool. */
  readonly pace: number
  /** Whether each request is looked at in five languages. */
  readonly isChecked: boolean
  /** Whether pure tools ask a person a question. */
  readonly asks: boolean
  readonly append: Append
}

/** The last answer of a run. */
export const last = "Done."

const kinds = ["pure", "idempotent", "once"] as const
/** The kind of a call, by its number from 0. */
export const kindOf = (call: number): (typeof kinds)[number] => kinds[call % kinds.length] ?? "once"

const resultOf = (kind: string, id: string): string =>
  `${kind} ${id} ${"x".repeat((id.length * 7919) % 1500)}`

export const tools = ({ append, asks, pace, sessionId }: Settings): ReadonlyArray<Tool.Runnable> =>
  kinds.map((kind) =>
    Tool.make({
      name: kind,
      description: `Does something that is ${kind}.`,
      params: Schema.Struct({}),
      effect: kind,
      execute: () =>
        Effect.gen(function* () {
          const { ask, idempotencyKey: key, toolCallId: call } = yield* Tool.ToolContext
          if (asks && kind === "pure" && ask !== undefined) {
            const answer = yield* ask({ question: `${call}?`, schema: { type: "string" } })
            if (Option.getOrUndefined(answer) !== call) return `no answer for ${call}`
          }
          append({ what: "begin", sessionId, call, kind, key })
          if (pace > 0) yield* Effect.sleep(pace / 2)
          append({ what: "end", sessionId, call, kind, key })
          return resultOf(kind, call)
        })
    })
  )

/** Asks for two tools at a time until there are as many results as wanted. */
export const model = ({ append, isChecked, pace, sessionId, turns }: Settings) =>
  ScriptedProvider.layer([], {
    exhausted: ({ messages }) => {
      const faults = isChecked ? [...Transcript.violations(messages), ...Valid.violations(messages)] : []
      for (const detail of faults) append({ what: "fault", sessionId, detail })
      const done = messages.filter(({ role }) => role === "toolResult").length
      const turn = done / 2
      append({ what: "model", sessionId, turn })
      const isLast = turn >= turns
      const call = (index: number) => Step.toolCall(kindOf(index), {}, { id: `call_${index}` })
      const says = isLast ? last : `Turn ${turn}.`
      const half = Math.ceil(says.length / 2)
      return ScriptedProvider.turn(
        Step.start,
        Step.text([says.slice(0, half)]),
        ...(pace > 0 ? [Step.sleep(pace)] : []),
        Step.text([says.slice(half)]),
        ...(isLast ? [] : [call(done), call(done + 1)]),
        Step.finish(isLast ? "stop" : "toolUse", { input: 10, output: 5 })
      )
    }
  })
