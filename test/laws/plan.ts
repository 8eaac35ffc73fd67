/**
 * What is to happen in a few runs of one agent, as data: so that it can be generated, made smaller and printed.
 */
import { Schema, type SchemaAST } from "effect"

const small = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 0, maximum }))
const few = <S extends Schema.Constraint>(item: S, most: number) =>
  Schema.Array(item).check(Schema.isMaxLength(most))

/** One value much more often than the others. */
const mostly = <
  const A extends SchemaAST.LiteralValue,
  const B extends ReadonlyArray<SchemaAST.LiteralValue>
>(
  usual: A,
  ...seldom: B
) => {
  const often = Schema.Literal(usual)
  return Schema.Union([often, often, often, often, Schema.Literals(seldom)])
}

/** How a tool behaves when it runs. */
export const ToolKind = Schema.Literals([
  "plain",
  "failing",
  "dying",
  /** Gives back an output that says it is an error. */
  "sorry",
  /** Lets others run many times before it ends. */
  "slow",
  /** Never ends, unless it is stopped. */
  "endless",
  /** Goes on for an hour, whatever it is told. */
  "deaf",
  "terminating",
  /** Makes its batch sequential. */
  "single"
])
export type ToolKind = typeof ToolKind.Type

/** What the model calls: a tool, or what no tool can make sense of. */
export const Call = Schema.Struct({
  to: Schema.Union([ToolKind, ToolKind, ToolKind, Schema.Literals(["nobody", "badParams", "badJson"])]),
  /** The vendor gives the next call the same id. */
  twice: Schema.Boolean
})
export type Call = typeof Call.Type

export const Answer = Schema.Struct({
  pieces: small(3),
  thinks: Schema.Boolean,
  calls: Schema.Union([few(Call, 4).check(Schema.isMinLength(1)), few(Call, 4)]),
  ending: mostly("finish", "length", "cut", "failure", "defect", "error")
})
export type Answer = typeof Answer.Type

/** What a hook does at its `nth` invocation; at all others it has no opinion. */
export const HookPlan = Schema.Struct({
  point: Schema.Literals([
    "beforeExecution",
    "afterExecution",
    "onError",
    "pauseCheck",
    "beforeModel",
    "afterModel",
    "beforeTool",
    "approveTool",
    "afterTool",
    "prepareNextTurn",
    "shouldStopAfterTurn",
    "transformMessages",
    "toModelMessages",
    "steering",
    "followUp"
  ]),
  does: mostly("act", "fail", "die", "hang"),
  /** Which of its ways to act. */
  way: small(4),
  nth: small(3)
})
export type HookPlan = typeof HookPlan.Type

/** Something the application does while runs go on, at the `at`th moment. */
export const Deed = Schema.Struct({
  at: small(60),
  does: Schema.Literals([
    "steer",
    "followUp",
    "cancel",
    "interrupt",
    "pause",
    "clear",
    "prompt",
    "update",
    "cut"
  ])
})
export type Deed = typeof Deed.Type

const Rules = Schema.Struct({
  toolExecution: Schema.Literals(["parallel", "sequential"]),
  toolConcurrency: Schema.Literals([16, 1, 2]),
  toolFailureMode: mostly("continue", "fail"),
  steeringPolicy: Schema.Literals(["afterTurn", "skipRemaining"]),
  emptyResponse: mostly("accept", "retry", "fail"),
  hookFailureMode: Schema.Literals(["warn", "fail", "ignore"]),
  onMaxTurns: Schema.Literals(["fail", "stop", "wrapUp"]),
  maxTurns: mostly(50, 1, 2, 3),
  maxToolCalls: mostly("none", 0, 2, 5),
  maxIdenticalToolCalls: mostly(5, 1, 2),
  maxTotalTokens: mostly("none", 20),
  /** Seconds. */
  executionTime: mostly("none", 1, 20)
})

export const Plan = Schema.Struct({
  answers: few(Answer, 6).check(Schema.isMinLength(1)),
  hooks: few(HookPlan, 4),
  deeds: few(Deed, 5),
  /** How each run is asked for, one after another. */
  runs: few(Schema.Literals(["prompt", "stream", "leave", "start", "resume"]), 3).check(
    Schema.isMinLength(1)
  ),
  steeringMode: Schema.Literals(["one-at-a-time", "all"]),
  followUpMode: Schema.Literals(["one-at-a-time", "all"]),
  rules: Rules,
  /** Whether events are waited for. */
  subscribed: Schema.Boolean
})
export type Plan = typeof Plan.Type
