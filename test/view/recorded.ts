/** The events of a run with a retry, thinking, a sub-agent, a call that waits for a person, and of the run that continues it. */
import { Effect, Layer, Schedule, Schema, Stream } from "effect"
import { Agent, type AgentEvent, Approval, ProviderError, Tool } from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { ScriptedProvider, Step } from "effect-agent/testing"

const params = Schema.Struct({ a: Schema.Number })
const execute = ({ a }: { readonly a: number }) => Effect.succeed(`${a + 1}`)
const add = Tool.make({ name: "add", description: "Adds one.", params, execute })
const danger = Tool.make({ name: "danger", description: "Adds one.", params, execute })
const helper = Agent.asTool({
  name: "helper",
  description: "Helps.",
  agent: { model: "small", tools: [add] }
})

const script = [
  ScriptedProvider.turn(Step.start, Step.fail(new ProviderError.Overloaded({ detail: "busy" }))),
  ScriptedProvider.turn(
    Step.start,
    Step.thinking(["First ", "the helper."]),
    Step.text("Let me see."),
    Step.toolCall("helper", { prompt: "add 1" }),
    Step.toolCall("danger", { a: 5 }),
    Step.finish("toolUse", { input: 10, output: 5 })
  ),
  ScriptedProvider.turn(
    Step.start,
    Step.text("I add"),
    Step.toolCall("add", { a: 1 }),
    Step.finish("toolUse", { input: 3, output: 4 })
  ),
  ScriptedProvider.text(["2, ", "says the child"]),
  ScriptedProvider.text(["All ", "done"])
]

const policy = Approval.layer({
  rules: [Approval.allow(add), Approval.allow(helper)],
  asked: "defer"
})
const provider = Retry.layer({ schedule: Schedule.recurs(1) })(ScriptedProvider.layer(script))

export const recorded: Effect.Effect<ReadonlyArray<AgentEvent.AgentEvent>> = Effect.gen(function* () {
  const agent = yield* Agent.make({ model: "large", tools: [helper, danger] })
  const first = yield* Stream.runCollect(agent.stream("Add up, please.\nAll of it."))
  const { approvals } = yield* agent.requests
  for (const { approvalId, argumentsHash } of approvals)
    yield* agent.answer(approvalId, { decision: "approve", argumentsHash })
  return [...first, ...(yield* Stream.runCollect(agent.continueStream))]
}).pipe(Effect.provide(Layer.mergeAll(policy, provider)), Effect.scoped, Effect.orDie)
