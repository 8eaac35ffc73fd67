/**
 * Asks the approval policy about a call, and a person where the policy has one that decides.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Approval from "../../Approval.ts"
import * as Json from "../../internal/json.ts"
import { firstLine } from "../../internal/failureText.ts"
import type { PreparedCall, ToolRegistry } from "../../ToolRegistry.ts"

/** A call that may not run, and why. */
export class Refused {
  readonly _tag = "Refused"
  readonly reason: string
  constructor(reason: string) {
    this.reason = reason
  }
}

/** Succeeds with the call that may run. A policy or a person that fails refuses it. */
export const permitted = (
  policy: Approval.Policy,
  registry: ToolRegistry["Service"],
  prepared: PreparedCall
): Effect.Effect<PreparedCall, Refused> =>
  Effect.exit(decided(policy, registry, prepared)).pipe(
    Effect.flatMap((exit) => {
      if (Exit.isSuccess(exit)) return Effect.succeed(exit.value)
      if (Cause.hasInterrupts(exit.cause)) return Effect.interrupt
      const failure = Cause.squash(exit.cause)
      if (failure instanceof Refused) return Effect.fail(failure)
      const refused = new Refused(`the approval failed: ${firstLine(failure)}`)
      return Effect.andThen(
        Effect.logError("The approval of a call failed", exit.cause),
        Effect.fail(refused)
      )
    })
  )

const decided = Effect.fnUntraced(function* (
  policy: Approval.Policy,
  registry: ToolRegistry["Service"],
  prepared: PreparedCall
) {
  const { call, input, tool } = prepared
  const ids = { runId: call.id, toolCallId: call.id, toolName: tool.name }
  // The policy gets params of its own, so that it cannot change those that the tool gets.
  const { params } = yield* registry.prepare(call, { input: structuredClone(input) })
  const decision = yield* policy.decide({ ...ids, params, input: structuredClone(input), tool })
  if (decision.decision === "allow") return prepared
  if (decision.decision === "deny") return yield* Effect.fail(new Refused(decision.reason))
  const { reason } = decision
  const { asked, expiresAfter = "Infinity" } = policy
  const why = reason === undefined ? "" : `, as ${reason}`
  if (typeof asked === "string")
    return yield* Effect.fail(new Refused(`it needs approval${why}, and no person can give it here`))
  const answer = yield* asked
    .approve({
      ...ids,
      approvalId: call.id,
      params: input,
      argumentsHash: yield* Json.hash(input),
      ...(reason === undefined ? {} : { reason })
    })
    .pipe(
      Effect.timeoutOrElse({
        duration: expiresAfter,
        orElse: () => Effect.fail(new Refused("no person answered in time"))
      })
    )
  if (answer.decision === "reject") return yield* Effect.fail(new Refused(answer.reason ?? "not approved"))
  return answer.params === undefined ? prepared : yield* registry.prepare(call, { input: answer.params })
})
