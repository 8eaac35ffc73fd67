/**
 * Decides whether a tool call may run, before any tool of its answer runs. Fails closed: a guard that fails, times out or is
 * disabled rejects the call, one rejection outweighs every approval, and changed params are decoded again.
 */
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import type * as Schema from "effect/Schema"
import type { FailureReason } from "./failureReason.ts"
import type * as Hook from "../Hook.ts"
import { quoted } from "./failureText.ts"
import * as JsonSchema from "./jsonSchema.ts"
import type { Assistant, ToolCall } from "../Message.ts"
import type { Run } from "./run.ts"
import * as Tool from "../Tool.ts"
import * as ToolOutcome from "./toolOutcome.ts"
import type * as Registry from "../ToolRegistry.ts"

type Outcome = ToolOutcome.Outcome

/** A call that may run. */
export interface Allowed {
  readonly _tag: "Allowed"
  readonly prepared: Registry.PreparedCall
  readonly modified: boolean
  readonly approved: boolean
  /** The answer of a person to the question of the call. Default: the call is no question. */
  readonly answer?: Schema.Json
}

/**
 * Finds the tool of a call, decodes its params, and asks the guards: all `beforeTool` hooks, then all `approveTool` hooks. Asks none about
 * the call that gives the typed output, since that has no effect. Succeeds with the outcome of a call that may not run.
 */
export const check = (
  run: Run,
  message: Assistant,
  call: ToolCall
): Effect.Effect<Allowed | Outcome, FailureReason> => {
  const prepared = prepare(run, call)
  const isGuarded =
    run.output?.isCall(call) !== true && (run.hooks.has("beforeTool") || run.hooks.has("approveTool"))
  const guarded = isGuarded
    ? prepared.pipe(
        Effect.flatMap((allowed) => beforeTool(run, message, allowed)),
        Effect.flatMap((allowed) => approveTool(run, message, allowed))
      )
    : prepared
  return run.attempt(Effect.catchTag(guarded, "Outcome", Effect.succeed))
}

/** Decodes the params of a call, or the JSON that a hook returned in their place. */
const prepare = (
  run: Run,
  call: ToolCall,
  changed?: Pick<Registry.PrepareOptions, "input">
): Effect.Effect<Allowed, Outcome> => {
  const { caseInsensitiveTools = false, invalidJsonArguments = "error" } = run.options
  const options = { among: run.offered, caseInsensitiveTools, invalidJsonArguments, ...changed }
  const allowed = { _tag: "Allowed", modified: false, approved: false } as const
  if (call.hosted === true) {
    const prepared = ToolOutcome.preparedHosted(call, changed?.input)
    return prepared === undefined
      ? rejected("The vendor runs this call, and takes no other params for it")
      : Effect.succeed({ ...allowed, prepared })
  }
  return Effect.mapBoth(run.registry.prepare(call, options), {
    onSuccess: (prepared) => ({ ...allowed, prepared, modified: changed !== undefined }),
    onFailure: ToolOutcome.mistake
  })
}

/**
 * Makes the input of a hook for a tool call. It decodes the params again for each hook, since instances of classes cannot be copied: no
 * hook can change the params that the tool or the next hook gets. The call has the name of the tool, which the model may have written with
 * white space around it.
 */
export const toolInput = (
  run: Run,
  message: Assistant,
  prepared: Registry.PreparedCall
): Effect.Effect<Hook.ToolInput> => {
  const { tool } = prepared
  const call = { ...prepared.call, name: tool.name }
  const again = { among: run.offered, input: structuredClone(prepared.input) }
  const own = Effect.orElseSucceed(run.registry.prepare(call, again), () => prepared)
  return Effect.map(own, ({ params }) => ({ ...run.turnInput, message, call, tool, params }))
}

/** Asks the `beforeTool` hooks, until one blocks or skips the call, or fails. Side by side, a block outweighs a skip. */
const beforeTool = (run: Run, message: Assistant, allowed: Allowed) =>
  run.hooks.ask<"beforeTool", Allowed, Outcome>("beforeTool", allowed, {
    input: ({ prepared }) => toolInput(run, message, prepared),
    output: (allowed, { block, params, reason, result, skip, terminate }) => {
      if (block === true) {
        const blocked = Tool.failure(reason ?? "Tool execution was blocked")
        const output = terminate === true ? { ...blocked, terminate } : blocked
        return Effect.fail(ToolOutcome.make("blocked", output))
      }
      return skip === true
        ? Effect.fail(ToolOutcome.make("skipped", Tool.render(result)))
        : withParams(run, allowed, params)
    },
    denies: ({ block }) => block === true,
    failure: (_, { detail, hookName }) => rejected(`A beforeTool hook${quoted(hookName)} failed: ${detail}`)
  })

/** Asks the `approveTool` hooks, until one rejects the call, or fails. */
const approveTool = (run: Run, message: Assistant, allowed: Allowed) =>
  run.hooks.ask<"approveTool", Allowed, Outcome>("approveTool", allowed, {
    input: ({ prepared }) => toolInput(run, message, prepared),
    output: (allowed, { approved, params, reason }) =>
      approved
        ? withParams(run, { ...allowed, approved }, params)
        : Effect.fail(ToolOutcome.notApproved(reason)),
    denies: ({ approved }) => !approved,
    failure: (_, { detail, hookName }) =>
      rejected(`Tool execution was rejected: the approval${quoted(hookName)} failed: ${detail}`)
  })

const withParams = (
  run: Run,
  allowed: Allowed,
  params: Schema.Json | undefined
): Effect.Effect<Allowed, Outcome> =>
  params === undefined
    ? Effect.succeed(allowed)
    : Effect.map(prepare(run, allowed.prepared.call, { input: structuredClone(params) }), (again) => ({
        ...again,
        approved: allowed.approved
      }))

/** Decodes the params with which a person approved a call. The guards do not see them: the person decides. */
export const changed = (run: Run, allowed: Allowed, params: Schema.Json): Effect.Effect<Allowed | Outcome> =>
  Effect.catchTag(withParams(run, allowed, params), "Outcome", Effect.succeed)

/** Decodes a call that the guards of an earlier run allowed. `params` are those that the guards left. Default: those of the call. */
export const again = (run: Run, call: ToolCall, params?: Schema.Json): Effect.Effect<Allowed | Outcome> => {
  const prepared = prepare(run, call, params === undefined ? undefined : { input: structuredClone(params) })
  const modified = params !== undefined && !JsonSchema.same(params, call.params ?? {})
  return Effect.match(prepared, { onFailure: identity, onSuccess: (allowed) => ({ ...allowed, modified }) })
}

const rejected = (message: string): Effect.Effect<never, Outcome> =>
  Effect.fail(ToolOutcome.error("rejected", message))
