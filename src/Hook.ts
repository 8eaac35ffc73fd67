/**
 * Code of the application that a run calls at named points, and that may change what happens next.
 *
 * **When to use**
 *
 * Use a hook to approve or block tool calls, to change requests, results and options, or to observe a run. To only read what
 * happens, subscribe to the events of an agent.
 *
 * **Details**
 *
 * The constructor of a point makes a hook: `Hook.beforeTool((input) => Effect…)`. Give hooks to `Agent.make`, register them with
 * `agent.hooks`, or provide them with `HookManager.layer`. The services that a hook requires become requirements there. The hooks
 * of one point run one after another, in the order of their registration, and each gets what those before it changed. With
 * `RunOptions.hookExecution: "parallel"` guards, reviews and observers run side by side: the first guard that denies a call
 * interrupts the others, and no guard sees the params that another of its point returns. A hook that returns nothing does not
 * affect the outcome.
 *
 * The input of a hook is a copy, frozen where JavaScript can freeze it. The library decodes what a hook returns. A hook fails
 * by a failure or a defect, by exceeding its time limit, and by returning something else than its point takes. The effect of a
 * failure depends on the kind of the point:
 *
 * - A guard (`beforeTool`, `approveTool`) rejects the call. So does a guard that failed three times in a row.
 * - A shaper (`transformMessages`, `toModelMessages`, `prepareNextTurn`, `shouldStopAfterTurn`, `steering`, `followUp`) fails
 *   the run with `TransformFailed`.
 * - The review (`afterTool`) makes an error of the result of the tool.
 * - Any other hook is an observer: `RunOptions.hookFailureMode` decides. By default the run emits `HookError` and continues, and
 *   after three failures in a row it does not call the hook again.
 *
 * `RunOptions.maxConsecutiveHookErrors` is another number than three, and `agent.hooks.enable` lets the run call a hook again.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type RunStatus, ToolOutput } from "./AgentEvent.ts"
import type { EventError } from "./internal/failureReason.ts"
import { messages, modelMessages, toolResult } from "./internal/hookOutput.ts"
import {
  Assistant,
  type Message,
  type MessageId,
  type ModelMessage,
  type ToolCall,
  type ToolOutcome,
  type ToolResult
} from "./Message.ts"
import type { ToolDefinition } from "./Provider.ts"
import { ModelOptions, Patch, type RunOptions, ThinkingLevel } from "./RunOptions.ts"
import type { RunReport } from "./RunReport.ts"
import type * as Tool from "./Tool.ts"
import type { Usage } from "./Usage.ts"

/**
 * The input of every hook.
 *
 * @since 0.1.0
 * @category models
 */
export interface Base {
  /** The id of the run that calls the hook. */
  readonly runId: string
  /** A map that the hooks of one run share and may write to. Discarded when the run ends. */
  readonly metadata: Map<string, unknown>
}

/**
 * The parts of a request beside its messages and options.
 *
 * @since 0.2.0
 * @category models
 */
export interface RequestParts {
  /** The id of the model. */
  readonly model: string
  /** The system prompt, if there is one. */
  readonly system?: string
  /** The tools that the request describes to the model. */
  readonly tools: ReadonlyArray<ToolDefinition>
}

/**
 * The input of hooks that run before a turn.
 *
 * @since 0.2.0
 * @category models
 */
export interface BeforeTurnInput extends Base {
  /** The number of the turn that is about to begin, from 1. */
  readonly turn: number
  /** The transcript so far. */
  readonly messages: ReadonlyArray<Message>
  /** The id of the model, by the options of the run. */
  readonly model: string
  /** The system prompt, by the options of the run. */
  readonly system?: string
  /** The report of the run so far, with its metrics. */
  readonly report: RunReport
}

/**
 * The input of hooks that run within a turn, with the parts of its request.
 *
 * @since 0.1.0
 * @category models
 */
export interface TurnInput extends Base, RequestParts {
  /** The number of the turn, from 1. */
  readonly turn: number
  /** The transcript so far. */
  readonly messages: ReadonlyArray<Message>
}

/**
 * The input of hooks that run before a model call.
 *
 * @since 0.2.0
 * @category models
 */
export interface BeforeModelInput extends TurnInput {
  /** The options of the request, with the changes of the hooks before. */
  readonly options: ModelOptions
  /** The messages of the request, with the changes of the hooks before. */
  readonly view: ReadonlyArray<ModelMessage>
}

/**
 * The input of hooks that run before a tool.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToolInput extends TurnInput {
  /** The answer that makes the call. */
  readonly message: Assistant
  /** The call. Its `name` is that of the tool, also where the model wrote it in another way. */
  readonly call: ToolCall
  /** The tool that the call runs if no guard refuses it. */
  readonly tool: Tool.Any
  /** The decoded params, a copy for this hook. */
  readonly params: unknown
}

/**
 * The input of hooks that run after a tool.
 *
 * @since 0.2.0
 * @category models
 */
export interface AfterToolInput extends ToolInput {
  /** The result, with the changes of the hooks before. */
  readonly result: ToolOutput
  /** Whether the result is an error. */
  readonly isError: boolean
  /** The way in which the call ended. */
  readonly outcome: ToolOutcome
  /** Milliseconds that the tool took. */
  readonly durationMs: number
}

/**
 * The input of hooks that run after a turn.
 *
 * @since 0.1.0
 * @category models
 */
export interface AfterTurnInput extends TurnInput {
  /** The answer of the turn. */
  readonly message: Assistant
  /** The results of its tool calls, in the order of the calls. */
  readonly toolResults: ReadonlyArray<ToolResult>
  /** The messages that this run added so far. */
  readonly newMessages: ReadonlyArray<Message>
}

/**
 * The input of hooks that run before a compaction.
 *
 * **Details**
 *
 * `turn` is 0 in `agent.compact`, which takes no turn.
 *
 * @since 0.2.0
 * @category models
 */
export interface BeforeCompactionInput extends TurnInput {
  /** The cause: the size of the next request, a request that the provider refused, or a call of `agent.compact`. */
  readonly reason: "threshold" | "overflow" | "manual"
  /** The tokens of the request without the compaction, measured or estimated. */
  readonly tokensBefore: number
  /** Instructions of the application for the summary. Default: none. */
  readonly instructions?: string
}

/**
 * The input of hooks that run after a compaction.
 *
 * @since 0.2.0
 * @category models
 */
export interface AfterCompactionInput extends BeforeCompactionInput {
  /** The summary. */
  readonly summary: string
  /** The id of the first message that requests keep after the summary. */
  readonly firstKept: MessageId
  /** The id in the event `Compaction`. */
  readonly entryId: string
  /** The number of messages of the transcript that the summary stands for. */
  readonly summarized: number
  /** The tokens of the request with the compaction, measured or estimated. */
  readonly tokensAfter: number
  /** The tokens of the model calls that made the summary. Default: none. */
  readonly usage?: Usage
  /** Milliseconds that the summary took. */
  readonly durationMs: number
}

/**
 * The reason of a poll for steering.
 *
 * **Details**
 *
 * - `"start"`: once, in turn 1 behind the prompts, before the first request;
 * - `"tools"`: after a tool call, with `steeringPolicy: "skipRemaining"`;
 * - `"turnEnd"`: after a turn.
 *
 * @since 0.2.0
 * @category models
 */
export type SteeringPhase = "start" | "tools" | "turnEnd"

/**
 * Members that an output excludes.
 *
 * @since 0.2.0
 * @category utility types
 */
export type Without<Members extends string> = { readonly [M in Members]?: never }

/** Names that other systems have for `params` and `result`: the compiler does not see an unknown member of an async function. */
type OtherSystems = "args" | "mockResult" | "modified"

/**
 * The output of a `beforeModel` hook that changes the request.
 *
 * @since 0.2.0
 * @category models
 */
export interface ChangeRequest extends Without<"skip" | "response" | "reason"> {
  /** The parts and options to replace. The options of the run stay as they are. */
  readonly modified?: ModelOptions &
    Partial<RequestParts> & { readonly messages?: ReadonlyArray<ModelMessage> }
}

/**
 * The output of a `beforeModel` hook that answers in place of the model.
 *
 * @since 0.2.0
 * @category models
 */
export interface AnswerForModel extends Without<"modified" | "reason"> {
  /** Whether the hook answers. With `false` the output has no effect. */
  readonly skip: boolean
  /** The answer. */
  readonly response: string | Assistant
}

/**
 * The output of a `beforeModel` hook that fails the run with `ModelCallSkipped`.
 *
 * @since 0.2.0
 * @category models
 */
export interface SkipModel extends Without<"modified" | "response"> {
  /** Whether the run fails. With `false` the output has no effect. */
  readonly skip: boolean
  /** The detail of the error. Default: a text that says that a hook skipped the call. */
  readonly reason?: string
}

/**
 * The output of a `beforeTool` hook that changes the params.
 *
 * @since 0.2.0
 * @category models
 */
export interface ChangeParams
  extends Without<"block" | "reason" | "result" | "skip" | "terminate" | OtherSystems> {
  /** JSON in place of the params, which the tool decodes. Default: the params as they are. */
  readonly params?: Schema.Json
}

/**
 * The output of a `beforeTool` hook that blocks the call: its result is an error.
 *
 * @since 0.2.0
 * @category models
 */
export interface BlockTool extends Without<"params" | "result" | "skip" | OtherSystems> {
  /** Whether the hook blocks the call. With `false` the output has no effect. */
  readonly block: boolean
  /** The text of the result. Default: "Tool execution was blocked". */
  readonly reason?: string
  /** Whether the result asks to end the run. The run ends if all results of the turn do. Default: `false`. */
  readonly terminate?: boolean
}

/**
 * The output of a `beforeTool` hook that stands in for the tool.
 *
 * @since 0.2.0
 * @category models
 */
export interface SkipTool extends Without<"block" | "params" | "reason" | "terminate" | OtherSystems> {
  /** Whether the hook stands in. With `false` the output has no effect. */
  readonly skip: boolean
  /** The result: a value of `Tool.output` or `Tool.failure`, or any JSON. Default: a result without content. */
  readonly result?: ToolOutput | Schema.Json
}

/**
 * The output of an `approveTool` hook that approves the call.
 *
 * @since 0.2.0
 * @category models
 */
export interface Approve {
  /** Marks an approval. */
  readonly approved: true
  /** The reason of the approval, for readers of the code: the run ignores it. */
  readonly reason?: string
  /** JSON in place of the params, which the tool decodes. Default: the params as they are. */
  readonly params?: Schema.Json
}

/**
 * The output of an `approveTool` hook that rejects the call: its result is an error.
 *
 * @since 0.2.0
 * @category models
 */
export interface Reject extends Without<"params"> {
  /** Marks a rejection. */
  readonly approved: false
  /** The reason in the text of the result. Default: "not approved". */
  readonly reason?: string
}

/**
 * The output of an `afterTool` hook.
 *
 * @since 0.2.0
 * @category models
 */
export interface ChangeResult extends Schema.Schema.Type<typeof changeResult> {}

/**
 * The output of a `prepareNextTurn` hook.
 *
 * @since 0.2.0
 * @category models
 */
export interface ChangeTurns extends Schema.Schema.Type<typeof changeTurns> {}

/**
 * The input and the output of the hooks of each point.
 *
 * @since 0.1.0
 * @category models
 */
export interface Points {
  /** Runs once, before anything else. Returns options to change for this run. */
  readonly beforeExecution: [
    input: Base & { readonly options: RunOptions; readonly prompts: ReadonlyArray<Message> },
    output: { readonly modified?: Partial<RunOptions> }
  ]
  /** Runs at the end of every run, before `RunEnd`. Returns the answer for the result of a run that did not fail. */
  readonly afterExecution: [
    input: Base & {
      readonly status: RunStatus
      readonly error?: EventError
      readonly message?: Assistant
      readonly report: RunReport
      /** Milliseconds since the start of the run. */
      readonly durationMs: number
    },
    output: { readonly modified?: Assistant }
  ]
  /** Runs after a failure of a tool or a run. Returns nothing. */
  readonly onError: [
    input: Base & { readonly scope: "run" | "tool"; readonly error: EventError | ToolOutput },
    output: void
  ]
  /** Runs before each turn. Returns whether to pause the run, and the reason. */
  readonly pauseCheck: [
    input: BeforeTurnInput,
    output: { readonly shouldPause: boolean; readonly reason?: string }
  ]
  /** Runs before each model call. Returns changes of the request, an answer in place of the model, or a refusal of the call. */
  readonly beforeModel: [input: BeforeModelInput, output: ChangeRequest | AnswerForModel | SkipModel]
  /** Runs after each answer of the model, with the milliseconds of the call. Returns nothing. */
  readonly afterModel: [
    input: TurnInput & { readonly message: Assistant; readonly durationMs: number },
    output: void
  ]
  /** Runs before each compaction. Returns whether to skip it, and the reason. */
  readonly beforeCompaction: [
    input: BeforeCompactionInput,
    output: { readonly skip: boolean; readonly reason?: string }
  ]
  /** Runs after each compaction that was carried out. Returns nothing. */
  readonly afterCompaction: [input: AfterCompactionInput, output: void]
  /** Runs before each tool call. Returns changed params, a refusal, or a result in place of the tool. */
  readonly beforeTool: [input: ToolInput, output: ChangeParams | BlockTool | SkipTool]
  /** Runs before each tool call that no `beforeTool` hook refused. Returns an approval or a rejection. */
  readonly approveTool: [input: ToolInput, output: Approve | Reject]
  /** Runs after each tool that ran and was not aborted. Returns members to replace in the result. */
  readonly afterTool: [input: AfterToolInput, output: ChangeResult]
  /** Runs after each turn. Returns changes for later turns. */
  readonly prepareNextTurn: [input: AfterTurnInput, output: ChangeTurns]
  /** Runs after each turn. Returns whether to end the run, or `"continue"` for another turn. */
  readonly shouldStopAfterTurn: [input: AfterTurnInput, output: boolean | "continue"]
  /** Runs before each request, with its messages. Returns the messages that the context manager chooses from. */
  readonly transformMessages: [input: TurnInput, output: ReadonlyArray<Message>]
  /** Runs before each request, with the chosen messages. Returns the messages to send. */
  readonly toModelMessages: [input: TurnInput, output: ReadonlyArray<ModelMessage>]
  /** Runs when the run polls for steering. Returns messages for the transcript. `turn` is the turn that began last. */
  readonly steering: [
    input: Base & { readonly turn: number; readonly phase: SteeringPhase },
    output: ReadonlyArray<Message>
  ]
  /** Runs when the run would end. Returns messages to continue with. `turn` is the turn that ended. */
  readonly followUp: [input: Base & { readonly turn: number }, output: ReadonlyArray<Message>]
}

/**
 * The name of a point.
 *
 * @since 0.1.0
 * @category models
 */
export type Point = keyof Points

/**
 * The input of the hooks of a point.
 *
 * @since 0.1.0
 * @category utility types
 */
export type Input<P extends Point> = Points[P][0]

/**
 * The output of the hooks of a point.
 *
 * @since 0.1.0
 * @category utility types
 */
export type Output<P extends Point> = Points[P][1]

/**
 * The kind of a point, which decides the effect of a failure of a hook.
 *
 * @since 0.2.0
 * @category models
 */
export type Kind = "guard" | "shaper" | "review" | "observer"

/**
 * The rules for the hooks of a point.
 *
 * @since 0.2.0
 * @category models
 */
export interface PointInfo<P extends Point> {
  /** The effect of a failure of a hook. */
  readonly kind: Kind
  /** The schemas of the outputs. An output has the members of one of them. */
  readonly output: ReadonlyArray<Schema.ConstraintDecoder<Output<P>>>
  /** The run option that limits the time of one call. */
  readonly timeLimit: "hookTimeout" | "approvalTimeout"
}

const point = <S extends ReadonlyArray<Schema.ConstraintDecoder<unknown>>>(kind: Kind, ...output: S) => ({
  kind,
  output,
  timeLimit: "hookTimeout" as const
})

const optional = Schema.optionalKey
const reason = optional(Schema.String)
const toolDefinition = Schema.Struct({
  name: Schema.String,
  description: Schema.String,
  parameters: Schema.Json,
  strict: optional(Schema.Boolean)
})

const changeResult = Schema.Struct({
  ...ToolOutput.fields,
  content: optional(ToolOutput.fields.content),
  /** Whether the tool runs again, at most `limits.maxToolRetries` times. Default: `false`. */
  retry: optional(Schema.Boolean)
})

const changeTurns = Schema.Struct({
  /** The messages that later requests are made from. The transcript stays as it is. */
  messages: optional(messages),
  /** The id of the model. */
  model: optional(Schema.String),
  /** The thinking level of the model options. */
  thinkingLevel: optional(ThinkingLevel),
  /** The system prompt. */
  system: optional(Schema.String),
  /** The names of the tools that the model may call. */
  activeTools: optional(Schema.Array(Schema.String))
})

/**
 * The rules of all points.
 *
 * @since 0.2.0
 * @category constants
 */
export const points: { readonly [P in Point]: PointInfo<P> } = {
  beforeExecution: point("observer", Schema.Struct({ modified: optional(Patch) })),
  afterExecution: point("observer", Schema.Struct({ modified: optional(Assistant) })),
  onError: point("observer", Schema.Void),
  pauseCheck: point("observer", Schema.Struct({ shouldPause: Schema.Boolean, reason })),
  beforeModel: point(
    "observer",
    Schema.Struct({
      modified: optional(
        Schema.Struct({
          ...ModelOptions.fields,
          messages: optional(modelMessages),
          model: optional(Schema.String),
          system: optional(Schema.String),
          tools: optional(Schema.Array(toolDefinition))
        })
      )
    }),
    Schema.Struct({ skip: Schema.Boolean, response: Schema.Union([Schema.String, Assistant]) }),
    Schema.Struct({ skip: Schema.Boolean, reason })
  ),
  afterModel: point("observer", Schema.Void),
  beforeCompaction: point("observer", Schema.Struct({ skip: Schema.Boolean, reason })),
  afterCompaction: point("observer", Schema.Void),
  beforeTool: point(
    "guard",
    Schema.Struct({ params: optional(Schema.Json) }),
    Schema.Struct({ block: Schema.Boolean, reason, terminate: optional(Schema.Boolean) }),
    Schema.Struct({ skip: Schema.Boolean, result: optional(toolResult) })
  ),
  approveTool: {
    ...point(
      "guard",
      Schema.Struct({ approved: Schema.Literal(true), reason, params: optional(Schema.Json) }),
      Schema.Struct({ approved: Schema.Literal(false), reason })
    ),
    timeLimit: "approvalTimeout"
  },
  afterTool: point("review", changeResult),
  prepareNextTurn: point("shaper", changeTurns),
  shouldStopAfterTurn: point("shaper", Schema.Union([Schema.Boolean, Schema.Literal("continue")])),
  transformMessages: point("shaper", messages),
  toModelMessages: point("shaper", modelMessages),
  steering: point("shaper", messages),
  followUp: point("shaper", messages)
}

/**
 * A hook of one point: its input, its output, its failure and the services that it requires.
 *
 * @since 0.1.0
 * @category models
 */
export interface HookOf<out P extends string, in I, out O, out E, out R> {
  /** The point at which runs call the hook. */
  readonly point: P
  /** Names the hook in `HookError`, in errors, and in the result of a call that it rejects by a failure. */
  readonly name?: string
  /** Handles one call of the hook. */
  readonly run: (input: I) => Effect.Effect<O | void, E, R>
}

/**
 * Options of the constructors of hooks.
 *
 * @since 0.2.0
 * @category options
 */
export interface Options {
  /** Names the hook in `HookError`, in errors, and in the result of a call that it rejects by a failure. Default: no name. */
  readonly name?: string
}

/** Makes the constructor of a point. */
const constructor =
  <P extends string, I, O>(point: P) =>
  <E = never, R = never>(
    run: (input: I) => Effect.Effect<O | void, E, R>,
    { name }: Options = {}
  ): HookOf<P, I, O, E, R> => ({ point, run, ...(name === undefined ? {} : { name }) })

/**
 * The input of a hook that is bound to a tool: `params` has the type of the tool's schema.
 *
 * @since 0.2.0
 * @category utility types
 */
export type Bound<I extends ToolInput, Params> = Omit<I, "params"> & { readonly params: Params }

/** Makes the constructor of a point of tool calls, which also takes a tool to bind the hook to. */
const toolConstructor = <P extends string, I extends ToolInput, O>(point: P) => {
  const make = constructor<P, I, O>(point)
  function makeBound<E = never, R = never>(
    run: (input: I) => Effect.Effect<O | void, E, R>,
    options?: Options
  ): HookOf<P, I, O, E, R>
  function makeBound<Params, E = never, R = never>(
    tool: Tool.Tool<string, Params, any, any, any>,
    run: (input: Bound<I, Params>) => Effect.Effect<O | void, E, R>,
    options?: Options
  ): HookOf<P, I, O, E, R>
  function makeBound<E, R>(
    first: Tool.Any | Run<O, E, R>,
    second: Run<O, E, R> | Options = {},
    third?: Options
  ) {
    if (typeof first !== "object") return make(first, typeof second === "object" ? second : third)
    return make(boundTo(first, typeof second === "object" ? noFunction : second), third)
  }
  return makeBound
}

type Run<O, E, R> = (input: any) => Effect.Effect<O | void, E, R>

const noFunction = () => Effect.die(new TypeError("The hook has no function to run"))

/** Binds a hook to the calls of one tool. For another tool of the same name, which may have other params, the hook fails. */
const boundTo =
  <O, E, R>(tool: Tool.Any, run: Run<O, E, R>) =>
  (input: ToolInput): Effect.Effect<O | void, E, R> => {
    if (input.tool.name !== tool.name) return Effect.void
    if (input.tool.decode === tool.decode) return run(input)
    return Effect.die(
      new Error(
        `The hook is bound to another tool named ${tool.name}. Give the hook the tool that is registered, or a copy of it`
      )
    )
  }

/**
 * A hook of any point.
 *
 * **Details**
 *
 * `E` is what the hook may fail with, `R` the services that it requires. A list of hooks of this type hides what they require: see
 * `Runnable`.
 *
 * @since 0.1.0
 * @category models
 */
export type Hook<E = any, R = any, P extends Point = Point> = {
  [K in P]: HookOf<K, Input<K>, Output<K>, E, R>
}[P]

/**
 * A hook that requires no service.
 *
 * **When to use**
 *
 * Use it as the type of a list that is made at run time: `const hooks: ReadonlyArray<Hook.Runnable> = await load()`.
 *
 * @since 0.2.0
 * @category models
 */
export type Runnable = Hook<unknown, never>

/**
 * The requirement of a hook whose type hides its services.
 *
 * **Details**
 *
 * No layer provides it. Declare the hook or the list as `Hook.Runnable`, or with the services that it requires.
 *
 * @since 0.2.0
 * @category utility types
 */
export interface HiddenRequirements {
  /** Never there: the name of this member is the message of the compiler. */
  readonly "This hook is typed Hook.Hook, which hides what it needs. Type it Hook.Runnable": never
}

/**
 * The services that the application must provide for a hook.
 *
 * @since 0.2.0
 * @category utility types
 */
export type Requirements<H> =
  H extends HookOf<any, any, any, any, infer R> ? (0 extends 1 & R ? HiddenRequirements : R) : never

const at = <P extends Point>(point: P) => constructor<P, Input<P>, Output<P>>(point)

const atTool = <P extends "beforeTool" | "approveTool" | "afterTool">(point: P) =>
  toolConstructor<P, Input<P>, Output<P>>(point)

/**
 * Makes a hook that runs once, before anything else of a run.
 *
 * **Details**
 *
 * It may change the options of this run; the options of the agent stay as they are. `limits` and `modelOptions` merge field by
 * field with those of the run, all else is replaced.
 *
 * **Example** (Limiting the turns of a run)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Hook } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const hook = Hook.beforeExecution(({ prompts }) =>
 *   Effect.succeed({ modified: { limits: { maxTurns: prompts.length, onMaxTurns: "stop" } } })
 * )
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", hooks: [hook] })
 *   const { status, turns } = yield* agent.prompt("Look around.")
 *   console.log(status, turns)
 * }).pipe(Effect.scoped)
 *
 * const script = [ScriptedProvider.toolCall("look", {})]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => incomplete 1
 * ```
 *
 * @since 0.1.0
 * @category hooks
 */
export const beforeExecution = at("beforeExecution")

/**
 * Makes a hook that runs at the end of every run, before `RunEnd`.
 *
 * **Details**
 *
 * It may replace the `message` of the result of a run that did not fail. The events and the transcript keep the answer of the
 * model. It also runs after a cancel and after a failure, which it cannot hide.
 *
 * **Example** (Signing the answer)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Hook, Message } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const hook = Hook.afterExecution(({ message, status }) =>
 *   Effect.succeed(
 *     message === undefined ? {} : { modified: Message.assistant(`${Message.textOf(message)} (${status})`) }
 *   )
 * )
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", hooks: [hook] })
 *   const { message } = yield* agent.prompt("Hi")
 *   console.log(message && Message.textOf(message))
 * }).pipe(Effect.scoped)
 *
 * const script = [ScriptedProvider.text("Hello.")]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => Hello. (completed)
 * ```
 *
 * @since 0.1.0
 * @category hooks
 */
export const afterExecution = at("afterExecution")

/**
 * Makes a hook that runs when a tool or a run fails.
 *
 * **Details**
 *
 * `scope` is `"tool"` for a tool call that fails, times out, or has an unknown name or invalid arguments; `error` is then its result. It is
 * `"run"` before `afterExecution` of a run that fails. A call that a guard refuses is no failure.
 *
 * **Example** (Logging failures)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Hook, ProviderError } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const hook = Hook.onError(({ error, scope }) =>
 *   Effect.sync(() => console.log(scope, "_tag" in error ? error._tag : error.isError))
 * )
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", hooks: [hook] })
 *   yield* Effect.exit(agent.prompt("Hi"))
 * }).pipe(Effect.scoped)
 *
 * const script = [ScriptedProvider.toolCall("look", {}), ScriptedProvider.fail(new ProviderError.Forbidden({ detail: "no" }))]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => tool true
 * // => run ProviderError
 * ```
 *
 * @since 0.1.0
 * @category hooks
 */
export const onError = at("onError")

/**
 * Makes a hook that runs before each turn and may pause the run.
 *
 * **Details**
 *
 * With `shouldPause: true` the run emits `RunPaused` with the reason (default "Hook requested pause") and waits until `agent.resume` or
 * a cancel.
 *
 * **Example** (Pausing before the second turn)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Hook } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const hook = Hook.pauseCheck(({ turn }) => Effect.succeed({ shouldPause: turn === 2, reason: "review" }))
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", hooks: [hook] })
 *   yield* agent.subscribe((event) => {
 *     if (event._tag !== "RunPaused") return Effect.void
 *     console.log(`paused: ${event.reason}`)
 *     return agent.resume()
 *   })
 *   const { turns } = yield* agent.prompt("Look around.")
 *   console.log(turns)
 * }).pipe(Effect.scoped)
 *
 * const script = [ScriptedProvider.toolCall("look", {}), ScriptedProvider.text("Hello.")]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => paused: review
 * // => 2
 * ```
 *
 * @since 0.1.0
 * @category hooks
 */
export const pauseCheck = at("pauseCheck")

/**
 * Makes a hook that runs before each model call and may change its request, or answer in place of the model.
 *
 * **Details**
 *
 * It returns the members of one of `ChangeRequest`, `AnswerForModel` and `SkipModel`. A change counts for this call alone:
 * `prepareNextTurn` changes later turns. A tool that the hook takes out of the request cannot be called; one that it puts in is
 * an unknown tool when the model calls it. The first hook that skips the call decides, and no later one runs.
 *
 * **Gotchas**
 *
 * It does not run for the model calls of a compaction. Check with a `Provider.Guard` what no request may have.
 *
 * **Example** (Answering from a cache)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Hook, Message } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const hook = Hook.beforeModel(({ view }) =>
 *   Effect.succeed(view.map(Message.textOf).join() === "Hi" ? { skip: true, response: "Hello from the cache." } : {})
 * )
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", hooks: [hook] })
 *   const { message } = yield* agent.prompt("Hi")
 *   console.log(message && Message.textOf(message))
 * }).pipe(Effect.scoped)
 *
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer([]))))
 * // => Hello from the cache.
 * ```
 *
 * @since 0.1.0
 * @category hooks
 */
export const beforeModel = at("beforeModel")

/**
 * Makes a hook that runs after each answer of the model.
 *
 * **Details**
 *
 * It does not run for an answer that failed or that a `beforeModel` hook gave. `durationMs` is the time of the model call in
 * milliseconds.
 *
 * **Example** (Logging answers)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Hook, Message } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const hook = Hook.afterModel(({ message, model, turn }) =>
 *   Effect.sync(() => console.log(turn, model, Message.textOf(message)))
 * )
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", hooks: [hook] })
 *   yield* agent.prompt("Hi")
 * }).pipe(Effect.scoped)
 *
 * const script = [ScriptedProvider.text("Hello.")]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => 1 any Hello.
 * ```
 *
 * @since 0.1.0
 * @category hooks
 */
export const afterModel = at("afterModel")

/**
 * Makes a hook that runs before each compaction, and may skip it.
 *
 * **Details**
 *
 * The first hook that returns `skip: true` decides. The run then sends the conversation as it is, and calls the hook again before the
 * next request that is too long. A run whose request the provider refused as too long fails with that error, and `agent.compact` fails
 * with `CompactionFailed`. A `ContextManager` writes the summary: `Compaction.layer` of `effect-agent/context` takes a prompt.
 *
 * **Example** (Compacting by hand alone)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Hook } from "effect-agent"
 * import { Compaction } from "effect-agent/context"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const hook = Hook.beforeCompaction(({ reason, tokensBefore }) => {
 *   console.log(reason, tokensBefore > 1_000)
 *   return Effect.succeed({ skip: reason !== "manual" })
 * })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", hooks: [hook] })
 *   yield* agent.prompt("Write x")
 *   yield* agent.prompt("And now?")
 *   const { status } = yield* agent.compact()
 *   console.log(status)
 * }).pipe(Effect.scoped, Effect.provide(Compaction.layer({ contextWindow: 1_000, keepRecent: 100 })))
 *
 * const script = ["x".repeat(4_000), "done", "It wrote x."].map((text) => ScriptedProvider.text(text))
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => threshold true
 * // => manual true
 * // => compacted
 * ```
 *
 * @since 0.2.0
 * @category hooks
 */
export const beforeCompaction = at("beforeCompaction")

/**
 * Makes a hook that runs after each compaction.
 *
 * **Details**
 *
 * It does not run for a compaction that failed, which the event `Compaction` names, or that a `beforeCompaction` hook skipped.
 *
 * **Example** (Keeping summaries)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Hook } from "effect-agent"
 * import { Compaction } from "effect-agent/context"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const hook = Hook.afterCompaction(({ summarized, summary, tokensAfter, tokensBefore }) =>
 *   Effect.sync(() => console.log(summary, summarized, tokensAfter < tokensBefore))
 * )
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", hooks: [hook] })
 *   yield* agent.prompt("Write x")
 *   yield* agent.prompt("And now?")
 * }).pipe(Effect.scoped, Effect.provide(Compaction.layer({ contextWindow: 1_000, keepRecent: 100 })))
 *
 * const script = ["x".repeat(4_000), "It wrote x.", "done"].map((text) => ScriptedProvider.text(text))
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => It wrote x. 1 true
 * ```
 *
 * @since 0.2.0
 * @category hooks
 */
export const afterCompaction = at("afterCompaction")

/**
 * Makes a guard that runs before a tool call: it may change the params, block the call, or stand in for the tool.
 *
 * **Details**
 *
 * It returns the members of one of `ChangeParams`, `BlockTool` and `SkipTool`. The first hook that blocks or skips a call decides. The tool
 * decodes changed params again. The guards of all calls of an answer run before the first of its tools. A guard that fails, times
 * out or returns something else rejects the call.
 *
 * Given a tool, the hook runs for the calls of this tool alone, and `params` has the type of the tool's schema. The agent must have this
 * tool or a copy of it: for another tool of its name the hook fails.
 *
 * **Example** (Blocking a path)
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Agent, Hook, Message, Tool } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const remove = Tool.make({
 *   name: "remove",
 *   description: "Removes a file.",
 *   params: Schema.Struct({ path: Schema.String }),
 *   execute: ({ path }) => Effect.succeed(`Removed ${path}.`)
 * })
 * const hook = Hook.beforeTool(remove, ({ params }) =>
 *   Effect.succeed({ block: params.path.startsWith("/etc"), reason: "/etc is protected." })
 * )
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", tools: [remove], hooks: [hook] })
 *   const { newMessages } = yield* agent.prompt("Clean up.")
 *   console.log(newMessages.map(Message.textOf)[2])
 * }).pipe(Effect.scoped)
 *
 * const script = [ScriptedProvider.toolCall("remove", { path: "/etc" }), ScriptedProvider.text("Not done.")]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => /etc is protected.
 * ```
 *
 * @since 0.1.0
 * @category hooks
 */
export const beforeTool = atTool("beforeTool")

/**
 * Makes a guard that approves or rejects a tool call that no `beforeTool` hook refused.
 *
 * **Details**
 *
 * One rejection outweighs every approval. A hook that returns nothing has no vote. It has no time limit unless `approvalTimeout` sets
 * one, so that a person can decide. The tool decodes changed params again. A guard that fails, times out or returns something else
 * rejects the call.
 *
 * Given a tool, the hook runs for the calls of this tool alone, and `params` has the type of the tool's schema. The agent must have this
 * tool or a copy of it: for another tool of its name the hook fails.
 *
 * **Example** (Rejecting a path)
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Agent, Hook, Message, Tool } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const remove = Tool.make({
 *   name: "remove",
 *   description: "Removes a file.",
 *   params: Schema.Struct({ path: Schema.String }),
 *   execute: ({ path }) => Effect.succeed(`Removed ${path}.`)
 * })
 * const hook = Hook.approveTool(remove, ({ params }) =>
 *   Effect.succeed({ approved: !params.path.startsWith("/etc"), reason: "not /etc" })
 * )
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", tools: [remove], hooks: [hook] })
 *   const { newMessages } = yield* agent.prompt("Clean up.")
 *   console.log(newMessages.map(Message.textOf)[2])
 * }).pipe(Effect.scoped)
 *
 * const script = [ScriptedProvider.toolCall("remove", { path: "/etc" }), ScriptedProvider.text("Not done.")]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => Tool execution was rejected: not /etc
 * ```
 *
 * @since 0.1.0
 * @category hooks
 */
export const approveTool = atTool("approveTool")

/**
 * Makes a hook that runs after a tool, and may replace members of its result or run it again.
 *
 * **Details**
 *
 * It also runs for a failure and a timeout, but not for a call that a guard refused or that was aborted. A member that it returns
 * replaces that of the result. With `retry: true` the tool runs again, at most `limits.maxToolRetries` times (default 1). A hook
 * that fails makes an error of the result. Where a cancel or a steering message interrupts it, the result is left out.
 *
 * Given a tool, the hook runs for the calls of this tool alone, and `params` has the type of the tool's schema. The agent must have this
 * tool or a copy of it: for another tool of its name the hook fails.
 *
 * **Example** (Shortening a result)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Hook, Message, Tool } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const read = Tool.make({ name: "read", description: "Reads.", execute: () => Effect.succeed("a long text") })
 * const hook = Hook.afterTool(read, ({ result }) =>
 *   Effect.succeed({ content: [Message.text(Message.textOf(result).slice(0, 6))] })
 * )
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", tools: [read], hooks: [hook] })
 *   const { newMessages } = yield* agent.prompt("Read.")
 *   console.log(newMessages.map(Message.textOf)[2])
 * }).pipe(Effect.scoped)
 *
 * const script = [ScriptedProvider.toolCall("read", {}), ScriptedProvider.text("Done.")]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => a long
 * ```
 *
 * @since 0.1.0
 * @category hooks
 */
export const afterTool = atTool("afterTool")

/**
 * Makes a hook that runs after each turn and may change what later turns of the run ask with.
 *
 * **Details**
 *
 * `messages` replaces the messages that later requests are made from; the transcript and the events stay as they are. The other
 * members change the options of this run.
 *
 * **Example** (Changing the model after a turn)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Hook } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const hook = Hook.prepareNextTurn(({ turn }) => Effect.succeed({ model: `model-${turn + 1}` }))
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", hooks: [hook] })
 *   yield* agent.subscribe((event) =>
 *     Effect.sync(() => event._tag === "ModelCallStart" && console.log(event.model))
 *   )
 *   yield* agent.prompt("Look around.")
 * }).pipe(Effect.scoped)
 *
 * const script = [ScriptedProvider.toolCall("look", {}), ScriptedProvider.text("Hello.")]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => any
 * // => model-2
 * ```
 *
 * @since 0.1.0
 * @category hooks
 */
export const prepareNextTurn = at("prepareNextTurn")

/**
 * Makes a hook that runs after each turn and may end the run.
 *
 * **Details**
 *
 * One hook that returns `true` ends the run with the status `"stopped"`. All hooks of the point run, after those of
 * `prepareNextTurn`. Queued messages stay in their queues.
 *
 * A hook that returns `"continue"` makes another turn follow where the run would end, without a new message: `"stopped"` of another
 * hook, the limits of the run and a call that waits for a person win. The next request then ends with an answer, which some vendors
 * refuse: a `followUp` hook adds a message.
 *
 * **Example** (Stopping after the first turn)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Hook } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const hook = Hook.shouldStopAfterTurn(({ turn }) => Effect.succeed(turn === 1))
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", hooks: [hook] })
 *   const { status } = yield* agent.prompt("Look around.")
 *   console.log(status)
 * }).pipe(Effect.scoped)
 *
 * const script = [ScriptedProvider.toolCall("look", {})]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => stopped
 * ```
 *
 * @since 0.1.0
 * @category hooks
 */
export const shouldStopAfterTurn = at("shouldStopAfterTurn")

/**
 * Makes a hook that changes the messages of one request, before the context manager chooses among them.
 *
 * **Details**
 *
 * It returns all messages of the request. The transcript stays as it is. Each hook gets the messages that the one before returned.
 *
 * **Example** (Sending the last message only)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Hook } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const hook = Hook.transformMessages(({ messages }) => Effect.succeed(messages.slice(-1)))
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", hooks: [hook] })
 *   yield* agent.subscribe((event) =>
 *     Effect.sync(() => event._tag === "ModelCallStart" && console.log(event.messageCount))
 *   )
 *   yield* agent.prompt("One")
 *   yield* agent.prompt("Two")
 * }).pipe(Effect.scoped)
 *
 * const script = [ScriptedProvider.text("Hello."), ScriptedProvider.text("Hello.")]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => 1
 * // => 1
 * ```
 *
 * @since 0.1.0
 * @category hooks
 */
export const transformMessages = at("transformMessages")

/**
 * Makes a hook that turns the messages of a request into messages that a model reads.
 *
 * **Details**
 *
 * Without such a hook a request leaves out custom messages. A hook that returns a custom message fails the run.
 *
 * **Example** (Sending notes as user messages)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Hook, Message } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const hook = Hook.toModelMessages(({ messages }) =>
 *   Effect.succeed(
 *     messages.map((message) => (message.role === "custom" ? Message.user(`Note: ${message.data}`) : message))
 *   )
 * )
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", hooks: [hook] })
 *   yield* agent.subscribe((event) =>
 *     Effect.sync(() => event._tag === "ModelCallStart" && console.log(event.messageCount))
 *   )
 *   yield* agent.prompt([Message.custom("note", "It is late."), Message.user("Hi")])
 * }).pipe(Effect.scoped)
 *
 * const script = [ScriptedProvider.text("Hello.")]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => 2
 * ```
 *
 * @since 0.1.0
 * @category hooks
 */
export const toModelMessages = at("toModelMessages")

/**
 * Makes a hook that a run polls for messages to put into the transcript while it works.
 *
 * **Details**
 *
 * A run polls at its start, after each turn, and after each tool call with `steeringPolicy: "skipRemaining"`: `phase` is the
 * reason. It adds the messages of all hooks, then those of `agent.steer`, before its next request.
 *
 * **Example** (Adding a message after the first turn)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Hook, Message } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const hook = Hook.steering(({ phase, turn }) =>
 *   Effect.succeed(phase === "turnEnd" && turn === 1 ? [Message.user("Be brief.")] : [])
 * )
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", hooks: [hook] })
 *   const { newMessages } = yield* agent.prompt("Hi")
 *   console.log(newMessages.map(Message.textOf).join(" "))
 * }).pipe(Effect.scoped)
 *
 * const script = [ScriptedProvider.text("Hello."), ScriptedProvider.text("Bye.")]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => Hi Hello. Be brief. Bye.
 * ```
 *
 * @since 0.1.0
 * @category hooks
 */
export const steering = at("steering")

/**
 * Makes a hook that a run polls for messages when it would end.
 *
 * **Details**
 *
 * With messages the run continues. It adds the messages of all hooks, then those of `agent.followUp`.
 *
 * **Example** (Asking once more)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Hook, Message } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const hook = Hook.followUp(({ turn }) => Effect.succeed(turn === 1 ? [Message.user("Really?")] : []))
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", hooks: [hook] })
 *   const { newMessages } = yield* agent.prompt("Hi")
 *   console.log(newMessages.map(Message.textOf).join(" "))
 * }).pipe(Effect.scoped)
 *
 * const script = [ScriptedProvider.text("Hello."), ScriptedProvider.text("Really.")]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => Hi Hello. Really? Really.
 * ```
 *
 * @since 0.1.0
 * @category hooks
 */
export const followUp = at("followUp")
