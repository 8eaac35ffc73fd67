/** The one object of `--output-format json`. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { EventError } from "../../internal/failureReason.ts"
import { textOf } from "../../Message.ts"
import * as Inert from "./Inert.ts"
import type { Outcome } from "../agent/Outcome.ts"

const encode = Schema.encodeEffect(Schema.toCodecJson(EventError))

interface Played {
  readonly outcome: Outcome
  readonly sessionId: string | undefined
}

/** The line with the outcome of a run. */
export const line = Effect.fnUntraced(function* ({ outcome, sessionId }: Played, exitCode: number) {
  const { end, last, output } = outcome
  const error = end?.error && (yield* Effect.orDie(encode(end.error)))
  const { durationMs = 0, runId, turns = 0, usage } = end ?? {}
  return Inert.json({
    type: "result",
    status: outcome.status ?? "cancelled",
    exitCode,
    text: last === undefined ? "" : textOf(last),
    ...(output === undefined ? {} : { output: output.value }),
    ...(sessionId === undefined ? {} : { sessionId }),
    runId,
    turns,
    durationMs,
    usage,
    ...(usage?.cost === undefined ? {} : { cost: usage.cost }),
    ...(error === undefined ? {} : { error: Object.assign({ message: end?.error?.message }, error) })
  })
})
