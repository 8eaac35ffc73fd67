/**
 * The tool `propose_plan`: the model proposes a plan in plan mode, and a person decides by a question whether the mode ends. Without a person
 * the plan is the answer of the run.
 */
import * as Effect from "effect/Effect"
import * as MutableRef from "effect/MutableRef"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Agent from "../../Agent.ts"
import type { AgentEvent } from "../../AgentEvent.ts"
import * as Hook from "../../Hook.ts"
import * as JsonSchema from "../../internal/jsonSchema.ts"
import type { ToolResult } from "../../Message.ts"
import * as Tool from "../../Tool.ts"
import * as Mode from "./Mode.ts"

/** The decisions about a plan, in the order of their numbers. */
export const decisions = [
  "go, and ask before changes",
  "go, and allow edits",
  "change it",
  "not now"
] as const

type Decision = (typeof decisions)[number]

const Answer = Schema.Struct({
  decision: Schema.Literals(decisions),
  /** The changes that the person wants. */
  change: Schema.optionalKey(Schema.String)
})

/** The answers to the question. */
export const answers = {
  /** The plan is good: plan mode ends, and changes need an approval. */
  ask: { decision: "go, and ask before changes" },
  /** The plan is good: plan mode ends, and edits need no approval. */
  edits: { decision: "go, and allow edits" },
  /** The model reads what to change, and plan mode stays. */
  change: (words: string) => ({ decision: "change it" as const, change: words }),
  /** The run ends, and plan mode stays. To decline the question does the same. */
  notNow: { decision: "not now" }
} as const satisfies Record<string, typeof Answer.Type | ((words: string) => typeof Answer.Type)>

/** The schema of the answer, for clients that know nothing of plans. */
const schema: Schema.Json = {
  type: "object",
  properties: {
    decision: { enum: decisions, title: "Carry out this plan?" },
    change: { type: "string", title: "What to change in the plan" }
  },
  required: ["decision"],
  additionalProperties: false
}

/** Whether a question is one about a plan. Its text is the plan, in Markdown. */
export const isPlan = (question: Pick<Tool.Question, "schema">): boolean =>
  JsonSchema.same(question.schema, schema)

const Params = Schema.Struct({
  plan: Schema.String.annotate({
    description: "The plan in Markdown: what you will change, where, and how you will check it"
  })
})

/** The details of a result: the decision of the person, or the plan where no person decides. */
const Details = Schema.Union([Schema.Struct({ decision: Schema.Literals(decisions) }), Params])

const decodeAnswer = Schema.decodeUnknownOption(Answer)
const decodeDetails = Schema.decodeUnknownOption(Details)

/** The tool. `isAsked`: whether a person decides about plans. */
export const tool = (mode: Mode.Cell, isAsked: boolean) => ({
  ...Tool.make({
    name: Mode.planTool,
    description:
      "Proposes a plan to the user, in plan mode, once you know enough of the task. The user approves it, or says what to change.",
    params: Params,
    effect: "pure",
    execute: ({ plan }) =>
      Effect.map(Tool.ToolContext, ({ answer }) =>
        isAsked ? decided(mode, answer) : Tool.output("The user has the plan.", { details: { plan } })
      )
  }),
  ...(isAsked ? { question: ({ plan }: typeof Params.Type) => ({ question: plan, schema }) } : {})
})

const decided = (mode: Mode.Cell, given: Schema.Json | undefined) =>
  Option.match(decodeAnswer(given), {
    onNone: () => Tool.failure("The user has not decided about the plan."),
    onSome: ({ change = "", decision }) => {
      const isOver = decision === answers.ask.decision || decision === answers.edits.decision
      if (isOver) MutableRef.set(mode, decision === answers.ask.decision ? "ask" : "edits")
      return Tool.output(wordsOf(decision, change.trim()), { details: { decision } })
    }
  })

/** The decision in words for the model. */
const wordsOf = (decision: Decision, change: string): string => {
  switch (decision) {
    case "go, and ask before changes":
      return "The user approves the plan. Plan mode is over: carry the plan out. The user decides about each change."
    case "go, and allow edits":
      return "The user approves the plan. Plan mode is over: carry the plan out. Edits of files need no approval."
    case "change it":
      return `The user wants another plan, and plan mode stays.${change === "" ? "" : ` Change this: ${change}`}`
    case "not now":
      return "The user does not want the plan carried out now."
  }
}

/** Ends runs whose plan the person does not want now, and those whose plan is the answer, as no person decides about it. */
export const ending = (agent: Pick<Agent.Agent, "cancel">, isAsked: boolean) =>
  Hook.shouldStopAfterTurn(({ toolResults }) => {
    const proposed = toolResults.filter(({ toolName }) => toolName === Mode.planTool)
    if (!isAsked) return Effect.succeed(proposed.some(({ outcome }) => outcome === "success"))
    // The cancel interrupts the hook.
    return proposed.some(isDeclined)
      ? Effect.andThen(agent.cancel("the user does not want the plan carried out now"), Effect.never)
      : Effect.void
  })

const isDeclined = ({ details, outcome }: ToolResult): boolean =>
  outcome === "rejected" ||
  Option.exists(
    decodeDetails(details),
    (read) => "decision" in read && read.decision === answers.notNow.decision
  )

/** The plan that is the answer of a run, if the event has one. */
export const answerIn = (event: AgentEvent): string | undefined => {
  if (event._tag !== "ToolExecutionEnd" || event.toolName !== Mode.planTool || event.path !== undefined)
    return undefined
  const read = Option.getOrUndefined(decodeDetails(event.result.details))
  return read !== undefined && "plan" in read ? read.plan : undefined
}
