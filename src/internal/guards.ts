/**
 * Decides whether a tool call may run, before any tool of its answer runs. Fails closed: a guard that fails, times out or is
 * disabled rejects the call, one rejection outweighs every approval, and changed params are decoded again.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { FailureReason } from "./failureReason.ts"
import type * as Hook from "../Hook.ts"
import { quoted } from "./failureText.ts"
import * as HookInput from "./hookInput.ts"
import type { Assistant, ToolCall, ToolOutcome } from "../Message.ts"
import type { Run, Stopped } from "./run.ts"
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

/** A call that does not run, and its result. */
export interface Refused {
  readonly _tag: "Refused"
  readonly outcome: ToolOutcome
  readonly output: ToolOutput
}

/**
 * Looks the call up, decodes its params, and asks the guards: all `beforeTool`, then all `approveTool`. Asks none about the
 * output of the run, which has no effect.
 */
export const check = (
  run: Run,
  message: Assistant,
  call: ToolCall
): Effect.Effect<Allowed | Refused, FailureReason | Stopped> => {
  const prepared = prepare(run, call)
  const guarded =
    run.output?.isCall(call) !== true && (run.hooks.has("beforeTool") || run.hooks.has("approveTool"))
      ? prepared.pipe(
          Effect.flatMap((allowed) => beforeTool(run, message, allowed)),
          Effect.flatMap((allowed) => approveTool(run, message, allowed))
        )
      : prepared
  return run.attempt(Effect.catchTag(guarded, "Refused", Effect.succeed))
}

/** Decodes the params of a call, or the JSON that a hook returned in their place. */
const prepare = (run: Run, call: ToolCall, input?: Schema.Json): Effect.Effect<Allowed, Refused> => {
  const { caseInsensitiveTools = false, invalidJsonArguments = "error" } = run.options
  return Effect.mapBoth(
    run.registry.prepare(call, {
      among: run.offered,
      caseInsensitiveTools,
      invalidJsonArguments,
      ...(input === undefined ? {} : { input })
    }),
    {
      onSuccess: (prepared) => ({
        _tag: "Allowed",
        prepared,
        modified: input !== undefined,
        approved: false
      }),
      onFailure: (error) =>
        refused(error._tag === "ToolNotFound" ? "unknownTool" : "invalidArguments", error.message)
    }
  )
}

/**
 * The input of a hook that is called for a tool call. Params with instances of classes cannot be copied: each hook gets them
 * decoded anew, so that none can change what the tool, or the next hook, is given. The call has the name of the tool, which the
 * model may have written with white space around it.
 */
export const toolInput = (
  run: Run,
  message: Assistant,
  prepared: Registry.PreparedCall
): Effect.Effect<Hook.ToolInput> => {
  const { input, params, tool } = prepared
  const call = { ...prepared.call, name: tool.name }
  const own = HookInput.isCopied(params)
    ? Effect.succeed(prepared)
    : Effect.orElseSucceed(run.registry.prepare(call, { among: run.offered, input }), () => prepared)
  return Effect.map(own, ({ params }) => ({ ...run.turnInput, message, call, tool, params }))
}

/** Asks the `beforeTool` hooks, until one blocks or skips the call, or fails. */
const beforeTool = (run: Run, message: Assistant, allowed: Allowed) =>
  run.hooks.ask<"beforeTool", Allowed, Refused>("beforeTool", allowed, {
    input: ({ prepared }) => toolInput(run, message, prepared),
    output: (allowed, { block, params, reason, result, skip, terminate }) => {
      if (block === true) {
        const blocked = Tool.failure(reason ?? "Tool execution was blocked")
        return refuse("blocked", terminate === true ? { ...blocked, terminate } : blocked)
      }
      return skip === true ? refuse("skipped", Tool.render(result)) : withParams(run, allowed, params)
    },
    failure: (_, { detail, hookName }) =>
      Effect.fail(refused("rejected", `A beforeTool hook${quoted(hookName)} failed: ${detail}`))
  })

/** Asks the `approveTool` hooks, until one rejects the call, or fails. */
const approveTool = (run: Run, message: Assistant, allowed: Allowed) =>
  run.hooks.ask<"approveTool", Allowed, Refused>("approveTool", allowed, {
    input: ({ prepared }) => toolInput(run, message, prepared),
    output: (allowed, { approved, params, reason }) =>
      approved
        ? withParams(run, { ...allowed, approved }, params)
        : Effect.fail(refused("rejected", `Tool execution was rejected: ${reason ?? "not approved"}`)),
    failure: (_, { detail, hookName }) =>
      Effect.fail(
        refused("rejected", `Tool execution was rejected: the approval${quoted(hookName)} failed: ${detail}`)
      )
  })

const withParams = (
  run: Run,
  allowed: Allowed,
  params: Schema.Json | undefined
): Effect.Effect<Allowed, Refused> =>
  params === undefined
    ? Effect.succeed(allowed)
    : Effect.map(prepare(run, allowed.prepared.call, structuredClone(params)), (again) => ({
        ...again,
        approved: allowed.approved
      }))

const refuse = (outcome: ToolOutcome, output: ToolOutput): Effect.Effect<never, Refused> =>
  Effect.fail({ _tag: "Refused", outcome, output })

const refused = (outcome: ToolOutcome, message: string): Refused => ({
  _tag: "Refused",
  outcome,
  output: Tool.failure(message)
})
