/**
 * Runs the tool of a prepared call: whatever comes of it is something for the model to read.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as AgentEvent from "../AgentEvent.ts"
import * as Begin from "./begin.ts"
import * as FailureText from "./failureText.ts"
import type { ToolCall, ToolOutcome } from "../Message.ts"
import * as PromiseCall from "./promiseTool.ts"
import type * as Tool from "../Tool.ts"
import { ToolContext } from "./toolContext.ts"
import * as Output from "./toolOutput.ts"
import type { Laid } from "./toolServices.ts"
import { traced } from "./work.ts"

/** What came of running a call. */
export type Executed = AgentEvent.ToolOutput & {
  readonly outcome: Extract<ToolOutcome, "success" | "error">
}

interface Call {
  readonly call: ToolCall
  readonly tool: Tool.Any
  readonly params: unknown
}

/** Runs `execute` in a scope of its own, with the tool's services under the caller's. Fails only by interruption. */
export const run = (
  { call, params, tool }: Call,
  services: Laid,
  context: ToolContext["Service"]
): Effect.Effect<Executed> => {
  // Around its scope: within, every call would have a caller of its own.
  const supplied = (caller: Context.Context<never>) => Context.add(services(caller), ToolContext, context)
  const work = Effect.suspend(() =>
    finished(tool, Effect.scoped(written(tool, params)).pipe(Effect.updateContext(supplied))).pipe(
      traced(`execute_tool ${tool.name}`, {
        attributes: {
          "gen_ai.operation.name": "execute_tool",
          "gen_ai.tool.name": tool.name,
          "gen_ai.tool.call.id": call.id
        }
      })
    )
  )
  const begin = PromiseCall.wayOf(tool.execute)
  if (begin === undefined) return work
  return Begin.direct(work, (caller) => (tell) => {
    const begun = begin(params, supplied(caller))
    return begun((exit) => Begin.goOn(caller, () => ended(tool, exit), tell))
  })
}

/** What a plain function gave, at once where it needs no fiber. */
const ended = (tool: Tool.Any, exit: Exit.Exit<unknown, unknown>): Effect.Effect<Executed> => {
  const output = Exit.isSuccess(exit) ? success(tool, exit.value) : Effect.matchEffect(exit, endings(tool))
  return Begin.isKnown(output) && Exit.isSuccess(output)
    ? Effect.succeed(executed(output.value))
    : finished(tool, output)
}

/** A defect is a result too; an interruption stays one. */
const finished = <R>(
  tool: Tool.Any,
  output: Effect.Effect<AgentEvent.ToolOutput, never, R>
): Effect.Effect<Executed, never, R> =>
  Effect.matchCauseEffect(output, {
    onSuccess: (output) => Effect.succeed(executed(output)),
    onFailure: (cause) => died(tool, cause)
  })

const written = (tool: Tool.Any, params: unknown): Effect.Effect<AgentEvent.ToolOutput> =>
  Effect.matchEffect(
    Effect.suspend(() => {
      const made: unknown = tool.execute(params)
      return isEffect(made) ? made : notAnEffect(tool, made)
    }),
    endings(tool)
  )

const isEffect = (value: unknown): value is Effect.Effect<unknown, unknown> => Effect.isEffect(value)

const endings = (tool: Tool.Any) => ({
  onSuccess: (value: unknown) => success(tool, value),
  onFailure: (failure: unknown) => failed(tool, failure)
})

const success = (tool: Tool.Any, value: unknown): Effect.Effect<AgentEvent.ToolOutput> => {
  if (Effect.isEffect(value) && PromiseCall.wayOf(tool.execute) !== undefined) {
    return misused(tool, "an Effect", "Use Tool.make for a function that returns an Effect.")
  }
  if (value === undefined && tool.encodeSuccess !== undefined && tool.encodeSuccess(value) === undefined) {
    return misused(tool, "undefined", "Return a value of its `success` schema.")
  }
  const rendered = Output.rendered(value, tool.encodeSuccess)
  return Result.isSuccess(rendered)
    ? Effect.succeed(rendered.success)
    : logged(
        Effect.logError(`Tool ${tool.name} returned a value that is not JSON. ${rendered.failure}`),
        Output.notJson(rendered.failure)
      )
}

const failed = (tool: Tool.Any, failure: unknown): Effect.Effect<AgentEvent.ToolOutput> =>
  Effect.flatMapEager(
    tool.renderFailure?.(failure) ?? Effect.sync(() => Output.failed(FailureText.of(failure))),
    (output) => logged(Effect.logDebug(`Tool ${tool.name} failed`, Cause.fail(failure)), output)
  )

/** There are values that no logger can write. */
const logged = <A>(log: Effect.Effect<void>, value: A): Effect.Effect<A> =>
  log.pipe(
    Effect.catchDefect(() => Effect.void),
    Effect.as(value)
  )

/** `execute` returned something else than an Effect: mostly the promise of an `async` function. */
const notAnEffect = (tool: Tool.Any, returned: unknown): Effect.Effect<Output.ToolOutput> => {
  if (!Predicate.isPromiseLike(returned)) {
    return misused(
      tool,
      "no Effect",
      "Return Effect.succeed(value), or use Tool.fromPromise for a plain function."
    )
  }
  // A rejection that nothing handles would end the process.
  Promise.resolve(returned).catch(() => {})
  return misused(tool, "a promise", "Use Tool.fromPromise for an async function.")
}

/** The developer reads what to do, the model that the tool does not work. */
const misused = (tool: Tool.Any, what: string, advice: string): Effect.Effect<Output.ToolOutput> => {
  const fault = `Tool ${tool.name} does not work: its execute returned ${what}.`
  return logged(Effect.logError(`${fault} ${advice}`), Output.failed(fault))
}

const executed = (output: AgentEvent.ToolOutput): Executed => ({
  ...Output.plain(output),
  content: output.content.map(Output.bounded),
  outcome: output.isError === true ? "error" : "success"
})

/** A defect is told in few words, and logged whole. An interruption stays one. */
const died = (tool: Tool.Any, cause: Cause.Cause<never>): Effect.Effect<Executed> => {
  const defect = Cause.findDefect(cause)
  if (Result.isFailure(defect)) return Effect.failCause(cause)
  return Effect.logError(`Tool ${tool.name} died`, Cause.die(defect.success)).pipe(
    // There are defects that no logger can write.
    Effect.catchDefect(() => Effect.void),
    Effect.map(() =>
      executed(
        Output.failed(`Tool ${tool.name} failed unexpectedly: ${FailureText.firstLine(defect.success)}`)
      )
    )
  )
}
