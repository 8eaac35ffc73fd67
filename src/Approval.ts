/**
 * Approvals of tool calls, and questions of the model to a person.
 *
 * **Details**
 *
 * The policy `Approval` decides about each call once its hooks allow it. A call that needs an approval waits for a human in the loop, while
 * the other calls of the answer run: it does not count against `toolConcurrency`, and no time limit runs. `agent.answer` approves or
 * rejects it, by the hash of the params that the person saw.
 *
 * **Example** (Asking a person)
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Agent, Approval, Tool } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const remove = Tool.make({
 *   name: "remove",
 *   description: "Removes a file.",
 *   params: Schema.Struct({ path: Schema.String }),
 *   execute: ({ path }) => Effect.succeed(`removed ${path}`)
 * })
 *
 * const policy = Approval.layer({
 *   rules: [Approval.allow(remove, ({ path }) => path.startsWith("/tmp/"))],
 *   asked: "wait"
 * })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", tools: [remove] })
 *   yield* agent.subscribe((event) =>
 *     event._tag === "ApprovalRequested"
 *       ? agent.answer(event.approvalId, { decision: "approve", argumentsHash: event.argumentsHash })
 *       : Effect.void
 *   )
 *   const { text } = yield* agent.prompt("Remove /home/notes")
 *   return text
 * }).pipe(Effect.provide(policy), Effect.scoped)
 *
 * const script = [ScriptedProvider.toolCall("remove", { path: "/home/notes" }), ScriptedProvider.text("Done.")]
 * console.log(await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))) // => Done.
 * ```
 *
 * @since 0.2.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { AgentEvent } from "./AgentEvent.ts"
import type { Answer, Question, QuestionReply, Request } from "./internal/openTurn.ts"
import * as Tool from "./Tool.ts"

export {
  Answer,
  type OpenRequests,
  OpenTurn,
  Question,
  QuestionAnswer,
  Reply,
  Request
} from "./internal/openTurn.ts"
export { Declined, QuestionReply } from "./internal/openTurn.ts"
export { AnswerConflict, type CannotAnswer, InvalidAnswer, RequestNotFound } from "./internal/errors.ts"

/**
 * A tool call that the policy decides about.
 *
 * @category models
 * @since 0.2.0
 */
export interface Call {
  /** The id of the run that makes the call. */
  readonly runId: string
  /** The tool calls of the parent runs that lead to the run, outermost first. Default: none. */
  readonly path?: AgentEvent["path"]
  /** The id of the call. */
  readonly toolCallId: string
  /** The name of the tool. */
  readonly toolName: string
  /** The params after the guards, decoded for this call of the policy. */
  readonly params: unknown
  /** The JSON that the params were decoded from. */
  readonly input: Schema.Json
  /** The tool that the call runs once it is allowed. */
  readonly tool: Tool.Any
}

/**
 * The decision of a policy about a call.
 *
 * **Details**
 *
 * - `allow`: the call runs.
 * - `deny`: the call does not run, and the model reads the reason.
 * - `ask`: a person decides, in the way that `asked` of the policy says.
 *
 * @category models
 * @since 0.2.0
 */
export type Decision =
  | { readonly decision: "allow" }
  | { readonly decision: "deny"; readonly reason: string }
  | { readonly decision: "ask"; readonly reason?: string }

/**
 * A program that asks a person, such as a prompt on a terminal.
 *
 * **Details**
 *
 * The run interrupts it when the answer comes from `agent.answer`, and when the call or the run ends. A failure rejects the call. It
 * may be called for several requests at once.
 *
 * @category models
 * @since 0.2.0
 */
export interface Person {
  /** Decides about a call. */
  readonly approve: (request: Request) => Effect.Effect<Answer, unknown>
  /** Answers a question of the model, or declines to. */
  readonly answer: (question: Question) => Effect.Effect<QuestionReply, unknown>
}

/**
 * The way in which a run asks a person.
 *
 * **Details**
 *
 * - `"wait"`: the run waits for `agent.answer`. A `Loop` outside of an agent defers.
 * - `"deny"`: it does not ask: the call is rejected. Programs that no person watches use it.
 * - `"defer"`: the run ends with status `"suspended"` once its other calls have ended. `agent.continue` resumes it. A run that a tool
 *   started without `Agent.asTool` denies, since its parent run could not resume it.
 * - A `Person`: the run calls it at once, for a human in the loop on a terminal or a screen.
 *
 * @category models
 * @since 0.2.0
 */
export type Asked = "wait" | "deny" | "defer" | Person

/**
 * The decision about a call that was running when its process died: the model reads that its end is not known, or a person decides.
 *
 * **Details**
 *
 * - `"model"`: the call has the outcome `"unknown"`, and the model reads that its end is not known.
 * - `"ask"`: a run that continues asks a person, in the way that `asked` says, by a question whose `about` is `"unknownEnd"`. The answer
 *   is `{ "decision": "again" }` to run the call again, with its idempotency key, `{ "decision": "done", "result": "…" }` if it happened,
 *   with the text for the model, or `{ "decision": "unknown" }`. Calls of tools whose `effect` is not `"once"` need no answer.
 *
 * @category models
 * @since 0.2.0
 */
export type Unknown = "model" | "ask"

/**
 * A policy: the decisions about tool calls, and the way to ask a person.
 *
 * @category models
 * @since 0.2.0
 */
export interface Policy {
  /** Decides about a call. A call whose decision dies, or is none, is rejected. */
  readonly decide: (call: Call) => Effect.Effect<Decision>
  /** The way to ask a person, or not to. */
  readonly asked: Asked
  /** The longest time that an approval or a question waits; its call then has the outcome `"expired"`. Default: no bound. */
  readonly expiresAfter?: Duration.Input
  /** The way to decide about a call that was running when its process died: by the model, or by a person. Default `"model"`. */
  readonly unknown?: Unknown
}

/** @internal The policy of an application that provides none. Calls that it allows cost nothing. */
export const everything: Policy = {
  decide: () => Effect.succeed(allowed),
  asked: "deny"
}

const allowed: Decision = { decision: "allow" }

/**
 * The policy of runs.
 *
 * **Details**
 *
 * The default policy allows each call, and rejects questions of the model.
 *
 * **Example** (Deciding by hand)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent, Approval, Message, Tool } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const ping = Tool.make({ name: "ping", description: "Answers.", execute: () => Effect.succeed("pong") })
 * const policy = Layer.succeed(Approval.Approval, {
 *   decide: ({ toolName }) => Effect.succeed({ decision: "deny", reason: `no ${toolName} today` }),
 *   asked: "deny"
 * })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", tools: [ping] })
 *   const { newMessages } = yield* agent.prompt("Ping")
 *   console.log(newMessages.map(Message.textOf)[2])
 * }).pipe(Effect.provide(policy), Effect.scoped)
 *
 * const script = [ScriptedProvider.toolCall("ping", {}), ScriptedProvider.text("Not done.")]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => Tool execution was rejected: no ping today
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export const Approval: Context.Reference<Policy> = Context.Reference<Policy>("effect-agent/Approval", {
  defaultValue: () => everything
})

/**
 * A rule of a policy.
 *
 * @category models
 * @since 0.2.0
 */
export interface Rule {
  /** The decision about the calls that the rule covers. */
  readonly decision: Decision["decision"]
  /** Whether the rule covers a call. */
  readonly covers: (call: Call) => boolean
  /** The reason, for the model where the rule denies, and for the person where it asks. Default: one that names the tool. */
  readonly reason?: string
}

/**
 * The options of a policy that `make` and `layer` make.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /** The rules, in any order: `deny` counts before `ask`, and `ask` before `allow`. Default: none. */
  readonly rules?: ReadonlyArray<Rule>
  /** The decision about calls that no rule covers. Default `"ask"`. */
  readonly otherwise?: Decision["decision"]
  /** The way to ask a person. Default `"deny"`. */
  readonly asked?: Asked
  /** The longest time that an approval or a question waits, a duration. Default: no bound. */
  readonly expiresAfter?: Duration.Input
  /** The way to decide about a call that was running when its process died: by the model, or by a person. Default `"model"`. */
  readonly unknown?: Unknown
}

/**
 * Makes a policy from rules.
 *
 * **Details**
 *
 * A rule whose predicate throws rejects the call.
 *
 * **Example** (Combining rules)
 *
 * ```ts
 * import { Approval } from "effect-agent"
 *
 * export const policy = Approval.make({
 *   rules: [Approval.allow("read"), Approval.deny("shell", undefined, "there is no shell here")],
 *   asked: "defer",
 *   expiresAfter: "1 hour"
 * })
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = ({
  asked = "deny",
  expiresAfter,
  otherwise = "ask",
  rules = [],
  unknown
}: Options): Policy => ({
  asked,
  ...(unknown === undefined ? {} : { unknown }),
  ...(expiresAfter === undefined ? {} : { expiresAfter }),
  decide: (call) =>
    Effect.sync(() => {
      for (const decision of strictestFirst) {
        const rule = rules.find((rule) => rule.decision === decision && rule.covers(call))
        if (rule !== undefined) return decisionOf(decision, call, rule.reason)
      }
      return decisionOf(otherwise, call)
    })
})

const strictestFirst = ["deny", "ask", "allow"] as const

const decisionOf = (decision: Decision["decision"], { toolName }: Call, reason?: string): Decision => {
  switch (decision) {
    case "allow":
      return allowed
    case "deny":
      return { decision, reason: reason ?? `the policy denies this call of ${toolName}` }
    case "ask":
      return reason === undefined ? { decision } : { decision, reason }
  }
}

/**
 * Provides a policy made from rules.
 *
 * **Example** (Suspending runs)
 *
 * ```ts
 * import { Approval } from "effect-agent"
 *
 * export const ApprovalLive = Approval.layer({ rules: [Approval.allow("read")], asked: "defer" })
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (options: Options): Layer.Layer<never> => Layer.succeed(Approval, make(options))

/**
 * The constructor of a rule for the calls of a tool, or of a tool's name.
 *
 * @category models
 * @since 0.2.0
 */
export interface MakeRule {
  <Params>(
    tool: Tool.Tool<string, Params, any, any, any>,
    when?: (params: Params) => boolean,
    reason?: string
  ): Rule
  (toolName: string, when?: (params: unknown) => boolean, reason?: string): Rule
}

const rule =
  (decision: Decision["decision"]): MakeRule =>
  (tool: Tool.Any | string, when: (input: any) => boolean = () => true, reason?: string): Rule => ({
    decision,
    covers: (call) => {
      if (typeof tool === "string") return call.toolName === tool && when(call.params)
      if (call.toolName !== tool.name) return false
      // Another tool of that name may have other params: the rule must not allow its calls, and its predicate cannot read them.
      return call.tool.decode === tool.decode ? when(call.params) : decision !== "allow"
    },
    ...(reason === undefined ? {} : { reason })
  })

/**
 * Makes a rule that allows calls of a tool.
 *
 * **Details**
 *
 * With a tool, `when` gets params of the type of its schema, and the rule does not cover another tool of its name. With a name, it gets
 * params of unknown type. Default: all calls of the tool.
 *
 * **Example** (Allowing some paths)
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Approval, Tool } from "effect-agent"
 *
 * const read = Tool.make({
 *   name: "read",
 *   description: "Reads a file.",
 *   params: Schema.Struct({ path: Schema.String }),
 *   execute: ({ path }) => Effect.succeed(path)
 * })
 *
 * export const rule = Approval.allow(read, ({ path }) => path.startsWith("docs/"))
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const allow: MakeRule = rule("allow")

/**
 * Makes a rule that denies calls of a tool.
 *
 * **Details**
 *
 * The parameters are those of `allow`. A rule for a tool also covers all calls of another tool of its name.
 *
 * **Example** (Denying a tool)
 *
 * ```ts
 * import { Approval } from "effect-agent"
 *
 * console.log(Approval.deny("shell", undefined, "no shell here").reason) // => no shell here
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const deny: MakeRule = rule("deny")

/**
 * Makes a rule that asks a person about calls of a tool.
 *
 * **Details**
 *
 * The parameters are those of `allow`. A rule for a tool also covers all calls of another tool of its name.
 *
 * **Example** (Asking about one tool)
 *
 * ```ts
 * import { Approval } from "effect-agent"
 *
 * export const policy = Approval.make({ rules: [Approval.ask("shell")], otherwise: "allow", asked: "wait" })
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const ask: MakeRule = rule("ask")

const AskUser = Schema.Struct({
  question: Schema.String.annotate({
    description: "The question, with all that the user needs to answer it"
  }),
  schema: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)).annotate({
    description: 'The JSON Schema of the answer, such as {"enum": ["yes", "no"]}. Default: {"type": "string"}'
  })
})

/**
 * Makes the tool `ask_user`, by which the model asks a person.
 *
 * **Details**
 *
 * The run emits `QuestionAsked`, and asks in the way that `asked` of the policy says. The call ends with the answer, which matches the
 * schema of the model. While it waits, no time limit runs.
 *
 * **Example** (Answering a question)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Approval } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", tools: [Approval.askUser()] })
 *   yield* agent.subscribe((event) =>
 *     event._tag === "QuestionAsked" ? agent.answer(event.questionId, { answer: "Oslo" }) : Effect.void
 *   )
 *   const { text } = yield* agent.prompt("Is it raining?")
 *   return text
 * }).pipe(Effect.provide(Approval.layer({ otherwise: "allow", asked: "wait" })), Effect.scoped)
 *
 * const script = [
 *   ScriptedProvider.toolCall("ask_user", { question: "Where are you?" }),
 *   ScriptedProvider.text("It rains in Oslo.")
 * ]
 * console.log(await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script)))))
 * // => It rains in Oslo.
 * ```
 *
 * @category tools
 * @since 0.2.0
 */
export const askUser = (): Tool.Tool<
  "ask_user",
  typeof AskUser.Type,
  Schema.Json,
  string,
  Tool.ToolContext
> => ({
  ...Tool.make({
    name: "ask_user",
    description:
      "Asks the user a question, and waits for the answer. Use it for what only the user can know or decide.",
    params: AskUser,
    // It only returns the answer.
    effect: "pure",
    execute: () =>
      Tool.ToolContext.use(({ answer }) =>
        answer === undefined ? Effect.fail("The question has no answer.") : Effect.succeed(answer)
      )
  }),
  question: ({ question, schema = { type: "string" } }) => ({ question, schema })
})
