/**
 * Code of the application that a run calls at a named point, and that may change what happens next.
 *
 * A hook is a value made by the constructor of its point: `Hook.beforeTool((input) => Effect…)`. The services that it requires
 * become requirements of the agent or the layer that registers it. The hooks of one point run one after another, and each
 * sees what those before it changed. A hook that returns nothing does not affect the outcome.
 *
 * The input of a hook is a copy, frozen where JavaScript can freeze it; only `metadata` is shared. The library decodes what a
 * hook returns. A hook that returns something else than its point takes, or no Effect, has failed, as has one that takes
 * longer than its time limit. What a failure does is a matter of the kind of the point:
 *
 * - guards (`beforeTool`, `approveTool`) reject the call, as does a guard that is disabled after three failures in a row;
 * - shapers (`transformMessages`, `toModelMessages`, `prepareNextTurn`, `shouldStopAfterTurn`, `steering`, `followUp`) fail
 *   the run with `TransformFailed`;
 * - the review (`afterTool`) makes an error of the tool's result;
 * - observers (all others) are isolated: `RunOptions.hookFailureMode` says what their failure does.
 */
import * as Schema from "effect/Schema"
import { type RunStatus, ToolOutput } from "./AgentEvent.ts"
import type { EventError } from "./internal/failureReason.ts"
import { constructor, type HookOf, toolConstructor } from "./internal/hookConstructor.ts"
import type { Alternatives } from "./internal/hookOutput.ts"
import { messages, modelMessages, toolResult } from "./internal/hookOutput.ts"
import type { Assistant, Message, ModelMessage, ToolCall, ToolOutcome, ToolResult } from "./Message.ts"
import * as Messages from "./Message.ts"
import type { ToolDefinition } from "./Provider.ts"
import type * as Tool from "./Tool.ts"

export type { Bound, HookOf, Options } from "./internal/hookConstructor.ts"
import { ModelOptions, Patch, type RunOptions, ThinkingLevel } from "./RunOptions.ts"
import type { RunReport } from "./RunReport.ts"

/** The input of every hook. */
export interface Base {
  /** The run that calls the hook. */
  readonly runId: string
  /** Shared by all hooks of one run, which may write to it. Discarded when the run ends. */
  readonly metadata: Map<string, unknown>
}

/** The input of hooks that run before a turn. */
export interface BeforeTurnInput extends Base {
  /** The number of the turn that is about to begin, from 1. */
  readonly turn: number
  /** The transcript so far. */
  readonly messages: ReadonlyArray<Message>
  /** The model and the system prompt by the options of the run. */
  readonly model: string
  readonly system?: string
}

/** The input of hooks that run within a turn, with the model, system prompt and tools of its request. */
export interface TurnInput extends Base, RequestParts {
  /** The number of the turn, from 1. */
  readonly turn: number
  /** The transcript so far. */
  readonly messages: ReadonlyArray<Message>
}

/** The input of the guards. */
export interface ToolInput extends TurnInput {
  /** The answer that makes the call. */
  readonly message: Assistant
  /** The call as the model made it. */
  readonly call: ToolCall
  /** The tool that is called, as it is registered. */
  readonly tool: Tool.Any
  /** The decoded params, a copy for this hook. To change the params of the tool, return them. */
  readonly params: unknown
}

/** The input of the review of a result. */
export interface AfterToolInput extends ToolInput {
  /** The result, as the hook before left it. */
  readonly result: ToolOutput
  readonly isError: boolean
  /** How the call ended. */
  readonly outcome: ToolOutcome
}

/** The input of hooks that run after a turn. */
export interface AfterTurnInput extends TurnInput {
  /** The answer of the turn. */
  readonly message: Assistant
  /** The results of its tool calls, in the order of the calls. */
  readonly toolResults: ReadonlyArray<ToolResult>
  /** The messages that this run added so far. */
  readonly newMessages: ReadonlyArray<Message>
}

/**
 * Where a run stands when it polls for steering:
 *
 * - `"start"`: once, in turn 1 behind the prompts, before the model is asked;
 * - `"tools"`: after a tool call of the turn, with `steeringPolicy: "skipRemaining"`;
 * - `"turnEnd"`: after the turn.
 */
export type SteeringPhase = "start" | "tools" | "turnEnd"

/** What a model call asks with, beside its messages and options. */
export interface RequestParts {
  readonly model: string
  readonly system?: string
  /** The tools the model is offered. Only those that the run offers by its own options can be called. */
  readonly tools: ReadonlyArray<ToolDefinition>
}

/** Members that do not go together with those of an output. */
export type Without<Members extends string> = { readonly [M in Members]?: never }

/** Changes this one request; the options of the run stay as they are. */
export interface ChangeRequest extends Without<"skip" | "response" | "reason"> {
  readonly modified?: ModelOptions &
    Partial<RequestParts> & {
      readonly messages?: ReadonlyArray<ModelMessage>
    }
}

/** With `skip: true`, answers in place of the model. */
export interface AnswerForModel extends Without<"modified" | "reason"> {
  readonly skip: boolean
  readonly response: string | Assistant
}

/** With `skip: true`, fails the run with `ModelCallSkipped`. */
export interface SkipModel extends Without<"modified" | "response"> {
  readonly skip: boolean
  readonly reason?: string
}

/** Changes the params of a call. The tool decodes them. */
export interface ChangeParams extends Without<"block" | "reason" | "result" | "skip" | "terminate"> {
  readonly params?: Schema.Json
}

/** With `block: true`, the tool does not run, and its result is an error. */
export interface BlockTool extends Without<"params" | "result" | "skip"> {
  readonly block: boolean
  /** What the model reads. Default: "Tool execution was blocked". */
  readonly reason?: string
  /** Whether the run ends, if all other results of the turn ask for it too. Default: `false`. */
  readonly terminate?: boolean
}

/** With `skip: true`, the tool does not run, and `result` stands in for what it returns. */
export interface SkipTool extends Without<"block" | "params" | "reason" | "terminate"> {
  readonly skip: boolean
  /** A value of `Tool.output` or `Tool.failure`, or JSON. Default: a result without content. */
  readonly result?: ToolOutput | Schema.Json
}

/** Lets a call run, unless another hook rejects it. */
export interface Approve {
  readonly approved: true
  readonly reason?: string
  /** Replaces the params of the call. The tool decodes them. */
  readonly params?: Schema.Json
}

/** Keeps a call from running. The model reads the reason. */
export interface Reject extends Without<"params"> {
  readonly approved: false
  /** Default: "not approved". */
  readonly reason?: string
}

/** Input and output of each point. */
export interface Points {
  readonly beforeExecution: [
    Base & { readonly options: RunOptions; readonly prompts: ReadonlyArray<Message> },
    { readonly modified?: Partial<RunOptions> }
  ]
  readonly afterExecution: [
    Base & {
      readonly status: RunStatus
      readonly error?: EventError
      readonly message?: Assistant
      readonly report: RunReport
      readonly durationMs: number
    },
    /** Replaces `RunResult.message`, if the run did not fail. Events and the transcript keep the answer as it was. */
    { readonly modified?: Assistant }
  ]
  readonly onError: [Base & { readonly scope: "run" | "tool"; readonly error: EventError | ToolOutput }, void]
  readonly pauseCheck: [BeforeTurnInput, { readonly shouldPause: boolean; readonly reason?: string }]
  readonly beforeModel: [
    TurnInput & { readonly options: ModelOptions; readonly view: ReadonlyArray<ModelMessage> },
    ChangeRequest | AnswerForModel | SkipModel
  ]
  readonly afterModel: [TurnInput & { readonly message: Assistant; readonly durationMs: number }, void]
  readonly beforeTool: [ToolInput, ChangeParams | BlockTool | SkipTool]
  readonly approveTool: [ToolInput, Approve | Reject]
  readonly afterTool: [AfterToolInput, Partial<ToolOutput> & { readonly retry?: boolean }]
  readonly prepareNextTurn: [
    AfterTurnInput,
    {
      /** The transcript later requests are made from. What observers saw stays as it was. */
      readonly messages?: ReadonlyArray<Message>
      readonly model?: string
      readonly thinkingLevel?: ThinkingLevel
      readonly system?: string
      readonly activeTools?: ReadonlyArray<string>
    }
  ]
  readonly shouldStopAfterTurn: [AfterTurnInput, boolean]
  readonly transformMessages: [TurnInput, ReadonlyArray<Message>]
  readonly toModelMessages: [TurnInput, ReadonlyArray<ModelMessage>]
  /** `turn` is the turn that began last. */
  readonly steering: [Base & { readonly turn: number; readonly phase: SteeringPhase }, ReadonlyArray<Message>]
  /** `turn` is the turn that ended. */
  readonly followUp: [Base & { readonly turn: number }, ReadonlyArray<Message>]
}

/** The name of a point. */
export type Point = keyof Points
export type Input<P extends Point> = Points[P][0]
export type Output<P extends Point> = Points[P][1]

/** What a failure of a hook does: see the head of this module. */
export type Kind = "guard" | "shaper" | "review" | "observer"

/** A point, as the library asks its hooks. */
export interface PointInfo<P extends Point> {
  readonly kind: Kind
  /** What a hook may return: one of these. */
  readonly output: Alternatives<Output<P>>
  /** The option that limits the time of a hook. */
  readonly timeLimit: "hookTimeout" | "approvalTimeout"
}

const point = <S extends Alternatives<unknown>>(kind: Kind, ...output: S) => ({
  kind,
  output,
  timeLimit: "hookTimeout" as const
})

const optional = Schema.optionalKey
const reason = optional(Schema.String)
const toolDefinition = Schema.Struct({
  name: Schema.String,
  description: Schema.String,
  parameters: Schema.Json
})

/** All points. */
export const points: { readonly [P in Point]: PointInfo<P> } = {
  beforeExecution: point("observer", Schema.Struct({ modified: optional(Patch) })),
  afterExecution: point("observer", Schema.Struct({ modified: optional(Messages.Assistant) })),
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
    Schema.Struct({ skip: Schema.Boolean, response: Schema.Union([Schema.String, Messages.Assistant]) }),
    Schema.Struct({ skip: Schema.Boolean, reason })
  ),
  afterModel: point("observer", Schema.Void),
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
  afterTool: point(
    "review",
    Schema.Struct({
      content: optional(ToolOutput.fields.content),
      details: ToolOutput.fields.details,
      isError: ToolOutput.fields.isError,
      terminate: ToolOutput.fields.terminate,
      retry: optional(Schema.Boolean)
    })
  ),
  prepareNextTurn: point(
    "shaper",
    Schema.Struct({
      messages: optional(messages),
      model: optional(Schema.String),
      thinkingLevel: optional(ThinkingLevel),
      system: optional(Schema.String),
      activeTools: optional(Schema.Array(Schema.String))
    })
  ),
  shouldStopAfterTurn: point("shaper", Schema.Boolean),
  transformMessages: point("shaper", messages),
  toModelMessages: point("shaper", modelMessages),
  steering: point("shaper", messages),
  followUp: point("shaper", messages)
}

/** Any hook, with what it may fail with and what it requires. */
export type Hook<E = any, R = any, P extends Point = Point> = {
  [K in P]: HookOf<K, Input<K>, Output<K>, E, R>
}[P]

/**
 * A hook that needs nothing of the application: the type for a list that is made at run time,
 * `const hooks: ReadonlyArray<Hook.Runnable> = await load()`.
 */
export type Runnable = Hook<unknown, never>

/**
 * The requirement of a hook whose type hides what it needs, as `Hook.Hook` does. Nothing provides it: declare the hook or the
 * list as `Hook.Runnable`, or with the services it needs.
 */
export interface HiddenRequirements {
  readonly "This hook is typed Hook.Hook, which hides what it needs. Type it Hook.Runnable": never
}

/** What the application must provide for a hook to run. */
export type Requirements<H> =
  H extends HookOf<any, any, any, any, infer R> ? (0 extends 1 & R ? HiddenRequirements : R) : never

const at = <P extends Point>(point: P) => constructor<P, Input<P>, Output<P>>(point)

const atTool = <P extends "beforeTool" | "approveTool" | "afterTool">(point: P) =>
  toolConstructor<P, Input<P>, Output<P>>(point)

/** Before anything happens. May change the options of this run. */
export const beforeExecution = at("beforeExecution")
/** On every exit, before `RunEnd`. May replace the final answer of a run that did not fail. */
export const afterExecution = at("afterExecution")
/** A run or a tool failed. */
export const onError = at("onError")
/** Before each turn, `turn` being the one that is about to begin: any hook may pause the run. */
export const pauseCheck = at("pauseCheck")
/**
 * Before each model call. May change its model, system prompt, tools, messages and model options, or answer in the model's
 * place. The changes count for this call alone; `prepareNextTurn` changes later turns.
 */
export const beforeModel = at("beforeModel")
/** After each answer. */
export const afterModel = at("afterModel")
/** Guard, before a tool runs: change its params, block it, or stand in for it. The first block or skip decides. */
export const beforeTool = atTool("beforeTool")
/** Guard, after `beforeTool`: one rejection rejects. Has no time limit, unless `approvalTimeout` sets one. */
export const approveTool = atTool("approveTool")
/** After a tool ran, whatever came of it, unless it was aborted. Replaces fields of the result, or asks for a retry. */
export const afterTool = atTool("afterTool")
/** After a turn, before the next: other messages, model, thinking level, system prompt or tools. */
export const prepareNextTurn = at("prepareNextTurn")
/** After a turn: `true` ends the run gracefully, queues untouched. */
export const shouldStopAfterTurn = at("shouldStopAfterTurn")
/** Shapes the messages of one request; the transcript stays. */
export const transformMessages = at("transformMessages")
/** Makes model messages of the view. Default: leaves custom messages out. */
export const toModelMessages = at("toModelMessages")
/** Polled for messages to put in, at the start of a run and after each turn; `phase` tells which poll it is. */
export const steering = at("steering")
/** Polled for messages when the run would end. */
export const followUp = at("followUp")
