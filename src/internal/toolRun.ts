/**
 * Runs prepared calls of tools, and finds tools by the names that models write.
 *
 * The value, the failure or the defect of a tool becomes a result that the model reads.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Struct from "effect/Struct"
import * as AgentEvent from "../AgentEvent.ts"
import * as FailureText from "./failureText.ts"
import * as Message from "../Message.ts"
import type { ToolDefinition } from "../Provider.ts"
import * as RunOptions from "../RunOptions.ts"
import type * as Tool from "../Tool.ts"
import { ToolContext } from "../Tool.ts"
import { failure, notJson, plain, rendered } from "./toolOutput.ts"

/**
 * The result of a call that ran.
 *
 * @since 0.1.0
 * @category models
 */
export type Executed = AgentEvent.ToolOutput & {
  readonly outcome: Extract<Message.ToolOutcome, "success" | "error">
}

interface Call {
  readonly tool: Tool.Any
  readonly params: unknown
}

/** Runs `execute` in a scope of its own. Failures and defects become results, so that it fails only by interruption. */
export const run = ({ params, tool }: Call, context: ToolContext["Service"]): Effect.Effect<Executed> =>
  Effect.suspend(() => effectOf(tool, tool.execute(params))).pipe(
    Effect.matchEffect({
      onSuccess: (value) => success(tool, value),
      onFailure: (error) => failed(tool, error)
    }),
    Effect.scoped,
    Effect.provideService(ToolContext, context),
    Effect.map(executed),
    Effect.catchDefect((defect) => died(tool, defect))
  )

/** Makes an Effect of the value that `execute` returned, which may be something else, mostly the promise of an `async` function. */
const effectOf = (tool: Tool.Any, returned: unknown): Effect.Effect<unknown, unknown> => {
  if (isEffect(returned)) return returned
  if (!Predicate.isPromiseLike(returned)) {
    return misused(
      tool,
      "no Effect",
      "Return Effect.succeed(value), or use Tool.fromPromise for a plain function."
    )
  }
  // An unhandled rejection would end the process.
  Promise.resolve(returned).catch(() => {})
  return misused(tool, "a promise", "Use Tool.fromPromise for an async function.")
}

const isEffect = (value: unknown): value is Effect.Effect<unknown, unknown> => Effect.isEffect(value)

const success = (tool: Tool.Any, value: unknown): Effect.Effect<AgentEvent.ToolOutput> => {
  if (isEffect(value))
    return misused(tool, "an Effect", "Use Tool.make for a function that returns an Effect.")
  if (value === undefined && tool.encodeSuccess !== undefined && tool.encodeSuccess(value) === undefined)
    return misused(tool, "undefined", "Return a value of its `success` schema.")
  const shown = rendered(value, tool.encodeSuccess)
  return Result.isSuccess(shown)
    ? Effect.succeed(shown.success)
    : logged(
        Effect.logError(`Tool ${tool.name} returned a value that is not JSON. ${shown.failure}`),
        notJson(shown.failure)
      )
}

const failed = (tool: Tool.Any, error: unknown): Effect.Effect<AgentEvent.ToolOutput> =>
  Effect.flatMap(tool.renderFailure?.(error) ?? Effect.sync(() => failure(FailureText.of(error))), (output) =>
    logged(Effect.logDebug(`Tool ${tool.name} failed`, Cause.fail(error)), output)
  )

/** Logs the fault with advice for the developer. The model reads only that the tool does not work. */
const misused = (tool: Tool.Any, returned: string, advice: string): Effect.Effect<AgentEvent.ToolOutput> => {
  const fault = `Tool ${tool.name} does not work: its execute returned ${returned}.`
  return logged(Effect.logError(`${fault} ${advice}`), failure(fault))
}

/** Makes a result of a defect: the model reads the first line, and the log has the stack. */
const died = (tool: Tool.Any, defect: unknown): Effect.Effect<Executed> =>
  logged(
    Effect.suspend(() => Effect.logError(`Tool ${tool.name} died`, FailureText.forLog(Cause.die(defect)))),
    executed(failure(`Tool ${tool.name} failed unexpectedly: ${FailureText.firstLine(defect)}`))
  )

/** Logs, then succeeds with the value, also if the logger dies of a value that it cannot write. */
const logged = <A>(log: Effect.Effect<void>, value: A): Effect.Effect<A> =>
  log.pipe(
    Effect.catchDefect(() => Effect.void),
    Effect.as(value)
  )

const executed = (output: AgentEvent.ToolOutput): Executed => ({
  ...plain(output),
  outcome: output.isError === true ? "error" : "success"
})

/** The idempotency key of a call: unique, and of characters that headers and URLs allow. */
export const idempotencyKey = ({ id }: { readonly id: string }, call: { readonly id: string }): string =>
  `${id}.${call.id.replace(/[^\w.-]/gu, (character) => `~${character.codePointAt(0)?.toString(36) ?? ""}~`)}`

// ───────────────────────── Names and definitions

/** The name without what some models write around it: white space, the namespace of their prompt, and tokens of their format. */
export const bareName = (name: string): string =>
  name.trim().replace(/^(?:functions|default_api)[.:]|(?:<\|.*|:\d+)$/gs, "")

/**
 * Finds a tool by its name, else by the name without what some models write around it. On request also the only tool whose name
 * differs in upper and lower case.
 */
export const findTool = <Tool>(tools: ReadonlyMap<string, Tool>, name: string, caseInsensitive = false) => {
  const found = tools.get(name) ?? tools.get(name.trim()) ?? tools.get(bareName(name))
  if (found !== undefined || !caseInsensitive) return found
  const wanted = bareName(name).toLowerCase()
  const alike = [...tools].filter(([other]) => other.toLowerCase() === wanted)
  return alike.length === 1 ? alike[0]?.[1] : undefined
}

const described = [
  "name",
  "description",
  "parameters",
  "strict",
  "inputExamples",
  "allowedCallers",
  "vendor"
] as const

/** The definition of a tool for the model. Returns the same object for the same tool, since providers keep its encoding by object. */
export const definitionOf = memoize(
  (tool: Tool.Any): ToolDefinition => RunOptions.given(Struct.pick(tool, described), 1)
)
