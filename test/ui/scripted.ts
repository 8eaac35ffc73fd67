/** One session with everything that a client shows, and its events. */
import { Effect, Schedule, Schema, Stream } from "effect"
import { Agent, AgentEvent, Approval, Message, ProviderError, Tool, Usage } from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { ScriptedProvider, Step } from "effect-agent/testing"

export const overloaded = new ProviderError.Overloaded({ detail: "busy" })
const look = Tool.make({
  name: "look",
  description: "Looks around.",
  params: Schema.Struct({ where: Schema.String }),
  execute: ({ where }) => Effect.succeed(Tool.output(`a mess in ${where}`, { details: { files: 2 } }))
})
const remove = Tool.make({
  name: "remove",
  description: "Removes a file.",
  params: Schema.Struct({ what: Schema.String }),
  execute: ({ what }) => Effect.succeed(`${what} is gone`)
})
const breaks = Tool.make({
  name: "breaks",
  description: "Fails.",
  execute: () => Effect.fail(new Error("it broke"))
})
const draw = Tool.make({
  name: "draw",
  description: "Draws.",
  execute: () => Effect.succeed(Tool.output([Message.image("aGk=", "image/png")]))
})
/** A sub-agent, whose own call needs an approval too. */
const helper = Agent.asTool({
  name: "helper",
  description: "Helps.",
  agent: { model: "scripted", tools: [remove] }
})
const usage = { input: 100, output: 20 }

export const script = [
  ScriptedProvider.fail(overloaded),
  ScriptedProvider.turn(
    Step.start,
    Step.thinking(["Let me ", "look first."], { opaque: "sig" }),
    Step.text(["I'll ", "look."]),
    Step.toolCall("look", { where: "/tmp" }, { id: "c1" }),
    Step.rawToolCall("remove", ['{"what"', ':"a.txt"}'], { id: "c2" }),
    Step.finish("toolUse", usage)
  ),
  ScriptedProvider.turn(
    Step.start,
    Step.thinking("Void"),
    Step.text(["This will be "]),
    Step.fail(overloaded)
  ),
  ScriptedProvider.turn(
    Step.start,
    Step.toolCall("helper", { prompt: "Clean" }, { id: "c3" }),
    Step.finish("toolUse", usage)
  ),
  // The turns of the sub-agent.
  ScriptedProvider.turn(
    Step.start,
    Step.text("On it."),
    Step.toolCall("remove", { what: "b.txt" }, { id: "c4" }),
    Step.finish("toolUse", usage)
  ),
  ScriptedProvider.text("Cleaned."),
  ScriptedProvider.turn(
    Step.start,
    Step.toolCall("breaks", {}, { id: "c5" }),
    Step.toolCall("draw", {}, { id: "c6" }),
    Step.rawToolCall("look", ["{nonsense"], { id: "c7" }),
    Step.toolCall("ask_user", { question: "Sure?" }, { id: "c8" }),
    Step.finish("toolUse", usage)
  ),
  ScriptedProvider.turn(
    Step.start,
    Step.source({ sourceType: "url", url: "https://example.com", title: "Example" }),
    Step.source({ sourceType: "document", fileName: "a.pdf", mediaType: "application/pdf" }),
    Step.media({ source: { data: "aGk=", mediaType: "image/png" } }),
    Step.hostedTool({ id: "h1", name: "web_search", params: { query: "mess" }, result: ["found"] }),
    Step.text(["All ", "done", "."]),
    Step.finish("stop", usage)
  )
]

export const tools = [look, remove, breaks, draw, helper, Approval.askUser()]
export const policy = (asked: Approval.Asked) =>
  Approval.layer({ rules: [Approval.ask(remove)], otherwise: "allow", asked })
export const provider = (turns: ScriptedProvider.Script = script) =>
  Retry.layer({ schedule: Schedule.recurs(3), retryTurn: true })(ScriptedProvider.layer(turns))

export interface Options {
  readonly turns?: ReadonlyArray<ScriptedProvider.Turn>
  readonly decision?: "approve" | "reject"
}

/** The events of the session. A program answers for the person, and steers after the first turn. */
export const events = ({ decision = "approve", turns = script }: Options = {}) =>
  Effect.gen(function* () {
    const agent = yield* Agent.make({ model: "scripted", tools })
    yield* agent.subscribe((event) => {
      switch (event._tag) {
        case "ApprovalRequested":
          return Effect.asVoid(
            agent.answer(event.approvalId, {
              decision,
              argumentsHash: event.argumentsHash,
              ...(decision === "reject" ? { reason: "no way" } : {})
            })
          )
        case "QuestionAsked":
          return Effect.asVoid(agent.answer(event.questionId, { answer: "Yes" }))
        case "TurnStart":
          return event.turn === 1 && event.path === undefined
            ? Effect.asVoid(agent.steer("Be careful"))
            : Effect.void
        default:
          return Effect.void
      }
    })
    return yield* Stream.runCollect(agent.streamEvents({ ...Message.user("clean up"), id: "user-1" }))
  }).pipe(Effect.provide(policy("wait")), Effect.provide(provider(turns)), Effect.scoped)

export const folded = (all: ReadonlyArray<AgentEvent.AgentEvent>) =>
  all.reduce(AgentEvent.fold, AgentEvent.initial()).messages

/** The events as a log keeps them: without the deltas from an index on. */
export const withoutDeltas = (all: ReadonlyArray<AgentEvent.AgentEvent>, from = 0) =>
  all.filter(({ _tag }, at) => at < from || _tag !== "MessageDelta")

/** Some places in the middle of answers. */
export const cuts = (all: ReadonlyArray<AgentEvent.AgentEvent>) => [
  0,
  ...all.flatMap(({ _tag }, at) => (_tag === "MessageDelta" ? [at] : [])).filter((_, at) => at % 9 === 2)
]

/** The value, frozen at every depth: changing it fails. */
export const frozen = <A>(value: A): A => {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const member of Object.values(value)) frozen(member)
  return value
}

const base = { runId: "run-1", timestamp: 0 }
/** A run that ends in the middle of its answer. */
export const broken = (end: Partial<AgentEvent.OfTag<"RunEnd">>): ReadonlyArray<AgentEvent.AgentEvent> => [
  { ...base, _tag: "RunStart", seq: 1, v: 2, prompts: [], model: "scripted", continued: false },
  { ...base, _tag: "TurnStart", seq: 2, turn: 1 },
  { ...base, _tag: "ModelCallStart", seq: 3, turn: 1, model: "scripted", messageCount: 1, options: {} },
  { ...base, _tag: "MessageStart", seq: 4, turn: 1, messageId: "m1", role: "assistant" },
  {
    ...base,
    _tag: "MessageDelta",
    seq: 5,
    turn: 1,
    messageId: "m1",
    delta: { _tag: "ThinkingStart", contentIndex: 0 }
  },
  {
    ...base,
    _tag: "MessageDelta",
    seq: 6,
    turn: 1,
    messageId: "m1",
    delta: { _tag: "TextStart", contentIndex: 1 }
  },
  {
    ...base,
    _tag: "MessageDelta",
    seq: 7,
    turn: 1,
    messageId: "m1",
    delta: { _tag: "TextDelta", contentIndex: 1, delta: "half" }
  },
  { ...base, _tag: "RunCancelled", seq: 8, reason: "stopped" },
  {
    ...base,
    _tag: "RunEnd",
    seq: 9,
    status: "completed",
    newMessageIds: [],
    usage: Usage.make({ input: 1, output: 2 }),
    turns: 1,
    durationMs: 1,
    ...end
  }
]
