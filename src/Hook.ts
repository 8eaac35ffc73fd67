/**
 * Code of the application that runs at a named point of a run and may change what happens.
 *
 * A hook is a value made by the constructor of its point: `Hook.beforeTool((input) => Effect…)`. What it requires becomes
 * a requirement of the layer or the agent that registers it. What it returns is merged with the hooks before it; a hook that
 * returns nothing does not affect the outcome. A hook gets copies, frozen where JavaScript can freeze them, so a change to its
 * input changes nothing else; `metadata` alone is shared. What it returns is checked: a hook that returns no Effect, or
 * something that its point does not take or that cannot be read, has failed.
 *
 * - Guards (`beforeTool`, `approveTool`) fail closed: one that fails, times out or is disabled rejects the call.
 * - Shapers (`transformMessages`, `toModelMessages`, `prepareNextTurn`, `shouldStopAfterTurn`, `steering`, `followUp`)
 *   fail the run with `TransformFailed`.
 * - `afterTool` makes an error of the result.
 * - All others are isolated: `hookFailureMode` says what their failure does.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { RunStatus, ToolOutput } from "./AgentEvent.ts"
import type { EventError } from "./FailureReason.ts"
import type { Assistant, Message, ModelMessage, ToolCall, ToolOutcome, ToolResult } from "./Message.ts"
import type { ToolDefinition } from "./Provider.ts"
import type { ModelOptions, RunOptions, ThinkingLevel } from "./RunOptions.ts"
import type { RunReport } from "./RunReport.ts"

/** What every hook is told. `metadata` is shared by the hooks of one run, and gone with it. */
export interface Base {
  readonly runId: string
  readonly metadata: Map<string, unknown>
}

/** The input of hooks that run within a turn. */
export interface TurnInput extends Base {
  readonly turn: number
  /** The transcript so far. */
  readonly messages: ReadonlyArray<Message>
}

export interface ToolInput extends TurnInput {
  readonly message: Assistant
  readonly call: ToolCall
  /** Decoded, and this hook's own: to change the params of the tool, return them. */
  readonly params: unknown
}

export interface AfterTurnInput extends TurnInput {
  readonly message: Assistant
  readonly toolResults: ReadonlyArray<ToolResult>
  /** What this run added so far. */
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
  /** `turn` is the turn that is about to begin: 1 before the first. */
  readonly pauseCheck: [TurnInput, { readonly shouldPause: boolean; readonly reason?: string }]
  readonly beforeModel: [
    TurnInput & RequestParts & { readonly options: ModelOptions; readonly view: ReadonlyArray<ModelMessage> },
    {
      /** Replaces parts of this one request; the run's options stay as they are. */
      readonly modified?: ModelOptions &
        Partial<RequestParts> & { readonly messages?: ReadonlyArray<ModelMessage> }
      /** Do not ask the model. `response` answers in its place; without one the run fails. */
      readonly skip?: boolean
      readonly response?: string | Assistant
      readonly reason?: string
    }
  ]
  readonly afterModel: [TurnInput & { readonly message: Assistant; readonly durationMs: number }, void]
  readonly beforeTool: [
    ToolInput,
    {
      /** JSON to be decoded in place of what the model gave. */
      readonly params?: Schema.Json
      readonly block?: boolean
      readonly terminate?: boolean
      /** Do not run; `result` stands for what the tool would have said: a `ToolOutput` or any JSON. */
      readonly skip?: boolean
      readonly result?: ToolOutput | Schema.Json
      readonly reason?: string
    }
  ]
  readonly approveTool: [
    ToolInput,
    { readonly approved: boolean; readonly reason?: string; readonly params?: Schema.Json }
  ]
  readonly afterTool: [
    ToolInput & { readonly result: ToolOutput; readonly isError: boolean; readonly outcome: ToolOutcome },
    Partial<ToolOutput> & { readonly retry?: boolean }
  ]
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

export type Point = keyof Points
export type Input<P extends Point> = Points[P][0]
export type Output<P extends Point> = Points[P][1]

/** A hook of one point. */
export interface HookOf<out P extends Point, in I, out O, out E, out R> {
  readonly point: P
  readonly run: (input: I) => Effect.Effect<O | void, E, R>
}

/** Any hook, with what it may fail with and what it requires. */
export type Hook<E = any, R = any> = { [P in Point]: HookOf<P, Input<P>, Output<P>, E, R> }[Point]

/** What the application must provide for a hook to run. */
export type Services<H> = H extends HookOf<any, any, any, any, infer R> ? R : never

const at =
  <P extends Point>(point: P) =>
  <E = never, R = never>(
    run: (input: Input<P>) => Effect.Effect<Output<P> | void, E, R>
  ): HookOf<P, Input<P>, Output<P>, E, R> => ({ point, run })

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
export const beforeTool = at("beforeTool")
/** Guard, after `beforeTool`: one rejection rejects. Has no time limit, unless `approvalTimeout` sets one. */
export const approveTool = at("approveTool")
/** After a tool ran, whatever came of it, unless it was aborted. Replaces fields of the result, or asks for a retry. */
export const afterTool = at("afterTool")
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
