/**
 * May this call run? Decided before anything happens, and closed when in doubt: a guard that fails, times out or is
 * disabled rejects, one rejection outweighs every approval, and changed params are decoded again.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { FailureReason } from "../FailureReason.ts"
import type * as Hook from "../Hook.ts"
import * as HookInput from "./hookInput.ts"
import type { Assistant, ToolCall, ToolOutcome } from "../Message.ts"
import type { Run, Stopped } from "./run.ts"
import * as Running from "./run.ts"
import type { ToolOutput } from "../AgentEvent.ts"
import * as Tool from "../Tool.ts"
import type * as Registry from "../ToolRegistry.ts"

/** A call that may run. */
export interface Allowed {
  readonly _tag: "Allowed"
  readonly prepared: Registry.PreparedCall
  readonly modified: boolean
  readonly approved: boolean
}

/** A call that is settled without running. */
export interface Refused {
  readonly _tag: "Refused"
  readonly outcome: ToolOutcome
  readonly output: ToolOutput
}

type Decision = Allowed | Refused

/** Looks the call up, decodes its params, and asks the guards: all `beforeTool`, then all `approveTool`. */
export const check = (
  run: Run,
  message: Assistant,
  call: ToolCall
): Effect.Effect<Decision, FailureReason | Stopped> => {
  const prepared = Running.stoppable(run, prepare(run, call))
  if (!run.hooks.has("beforeTool") && !run.hooks.has("approveTool")) return prepared
  return prepared.pipe(
    unlessRefused((allowed) => beforeTool(run, message, allowed)),
    unlessRefused((allowed) => approveTool(run, message, allowed))
  )
}

const unlessRefused = <E>(next: (allowed: Allowed) => Effect.Effect<Decision, E>) =>
  Effect.flatMapEager(
    (decision: Decision): Effect.Effect<Decision, E> =>
      decision._tag === "Refused" ? Effect.succeed(decision) : next(decision)
  )

/** A call as its hooks are told of it. */
interface Shown {
  readonly input: () => Hook.ToolInput
  /** Shows the call as it is now, to the next hook. */
  readonly show: (prepared: Registry.PreparedCall) => Effect.Effect<"next">
}

/**
 * Shows a call to its hooks, one after another. Params with instances of classes cannot be copied, so each hook is shown what
 * is decoded anew: none can change what the tool, or the next hook, is given.
 */
export const showing = (run: Run, message: Assistant, prepared: Registry.PreparedCall): Shown => {
  let { call, params } = prepared
  return {
    input: () => ({ ...Running.turnInput(run), message, call, params }),
    show: (now) =>
      Effect.map(decodedAnew(run, now), (copy) => {
        call = now.call
        params = copy.params
        return "next"
      })
  }
}

const decodedAnew = (run: Run, prepared: Registry.PreparedCall): Effect.Effect<Registry.PreparedCall> => {
  const { call, input, params } = prepared
  return HookInput.isCopied(params)
    ? Effect.succeed(prepared)
    : Effect.orElseSucceed(run.registry.prepare(call, { among: run.offered, input }), () => prepared)
}

const prepare = (run: Run, call: ToolCall, input?: Schema.Json): Effect.Effect<Decision> =>
  Effect.matchEager(
    run.registry.prepare(call, { among: run.offered, ...(input === undefined ? {} : { input }) }),
    {
      onSuccess: (prepared): Decision => ({
        _tag: "Allowed",
        prepared,
        modified: input !== undefined,
        approved: false
      }),
      onFailure: (error) =>
        refused(error._tag === "ToolNotFound" ? "unknownTool" : "invalidArguments", error.message)
    }
  )

const beforeTool = (
  run: Run,
  message: Assistant,
  allowed: Allowed
): Effect.Effect<Decision, FailureReason | Stopped> => {
  if (!run.hooks.has("beforeTool")) return Effect.succeed(allowed)
  let decision: Decision = allowed
  let current = allowed
  const { input, show } = showing(run, message, allowed.prepared)
  const asked = run.hooks.ask("beforeTool", input, (verdict) => {
    if (verdict._tag === "Silent") return show(current.prepared)
    if (verdict._tag === "Failed")
      decision = refused("rejected", `A beforeTool hook failed: ${verdict.message}`)
    else decision = decided(verdict.output) ?? decision
    if (verdict._tag === "Failed" || decision._tag === "Refused") return "stop"
    const { params } = verdict.output
    if (params === undefined) return show(current.prepared)
    return Effect.flatMap(prepare(run, current.prepared.call, structuredClone(params)), (again) => {
      decision = again
      if (again._tag === "Refused") return Effect.succeed("stop" as const)
      current = again
      return show(again.prepared)
    })
  })
  return Effect.map(Running.stoppable(run, Effect.andThen(show(allowed.prepared), asked)), () => decision)
}

/** A block or a skip settles the call; anything else lets it go on. */
const decided = (output: Hook.Output<"beforeTool">): Refused | undefined => {
  const { block, reason, result, skip, terminate } = output
  if (block === true) {
    const told = Tool.failure(reason ?? "Tool execution was blocked")
    return { _tag: "Refused", outcome: "blocked", output: terminate === true ? { ...told, terminate } : told }
  }
  return skip === true ? { _tag: "Refused", outcome: "skipped", output: Tool.render(result) } : undefined
}

const approveTool = (
  run: Run,
  message: Assistant,
  allowed: Allowed
): Effect.Effect<Decision, FailureReason | Stopped> => {
  if (!run.hooks.has("approveTool")) return Effect.succeed(allowed)
  let decision: Decision = allowed
  let current: Allowed = { ...allowed, approved: true }
  const { input, show } = showing(run, message, allowed.prepared)
  const asked = run.hooks.ask("approveTool", input, (verdict) => {
    if (verdict._tag === "Silent") return show(current.prepared)
    if (verdict._tag === "Failed") {
      decision = refused("rejected", `Tool execution was rejected: the approval failed: ${verdict.message}`)
      return "stop"
    }
    const { approved, params, reason } = verdict.output
    if (!approved) {
      decision = refused("rejected", `Tool execution was rejected: ${reason ?? "not approved"}`)
      return "stop"
    }
    decision = current
    if (params === undefined) return show(current.prepared)
    return Effect.flatMap(prepare(run, current.prepared.call, structuredClone(params)), (again) => {
      decision = again._tag === "Refused" ? again : { ...again, approved: true }
      if (decision._tag === "Refused") return Effect.succeed("stop" as const)
      current = decision
      return show(decision.prepared)
    })
  })
  return Effect.map(Running.stoppable(run, Effect.andThen(show(allowed.prepared), asked)), () => decision)
}

const refused = (outcome: ToolOutcome, message: string): Refused => ({
  _tag: "Refused",
  outcome,
  output: Tool.failure(message)
})
