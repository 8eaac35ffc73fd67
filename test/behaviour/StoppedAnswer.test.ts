import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Queue } from "effect"
import { Agent, type AgentEvent, Message, Prices, ProviderError, Transcript, Usage } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { agent, ofTag, say } from "./play.ts"

const done = ScriptedProvider.text("done")
const half = "I have read the files, and "

/** An answer that never ends, after these steps. */
const stuck = (...steps: ReadonlyArray<Step.Step>) =>
  ScriptedProvider.turn(Step.start, ...steps, Step.text(half), Step.never)

/** Prompts, and cancels where the half of the answer has arrived. */
const stopped = Effect.fnUntraced(function* ({ agent }: { readonly agent: Agent.Agent }) {
  const heard = yield* Queue.unbounded<AgentEvent.AgentEvent>()
  yield* agent.subscribe((event) => Effect.asVoid(Queue.offer(heard, event)))
  const run = yield* Effect.forkChild(agent.prompt("hi"))
  const isText = (event: AgentEvent.AgentEvent) =>
    event._tag === "MessageDelta" && event.delta._tag === "TextDelta"
  while (!isText(yield* Queue.take(heard))) yield* Effect.void
  yield* agent.cancel("enough")
  return yield* Fiber.join(run)
})

const rolesAndTexts = (messages: ReadonlyArray<Message.Message>) =>
  messages.map((message) => [message.role, Message.textOf(message)])

const note = "[The answer above was interrupted before its end. The user has read this much of it.]"

describe("an answer that was stopped", () => {
  it.effect("counts by an estimate, which the message, the events, the report and the result mark", () =>
    Effect.gen(function* () {
      const script = yield* agent([stuck()])
      const result = yield* stopped(script)
      const { usage } = result
      assert.isAbove(usage.input, 0)
      assert.isAbove(usage.output, 0)
      assert.strictEqual(usage.estimated, usage.total)
      assert.deepStrictEqual(result.message?.usage, usage)
      assert.deepStrictEqual(ofTag(script.events, "RunEnd")[0]?.usage, usage)
      assert.deepStrictEqual(ofTag(script.events, "TurnEnd")[0]?.usage, usage)
      assert.deepStrictEqual(result.report.usage, usage)
    })
  )

  it.effect("has a cost where the price of its model is known", () =>
    Effect.gen(function* () {
      const script = yield* agent([stuck()], { limits: { prices: { input: 1_000_000, output: 2_000_000 } } })
      const { usage } = yield* stopped(script)
      assert.strictEqual(usage.cost, usage.input + 2 * usage.output)
      assert.strictEqual(usage.costSource, "computed")
    })
  )

  it.effect("has a cost of the service Prices too", () =>
    Effect.gen(function* () {
      const prices = Layer.succeed(Prices.Prices, {
        find: () => Effect.succeed({ cost: ({ total }: Usage.Usage) => total })
      })
      const made = yield* Agent.make({ model: "m" }).pipe(
        Effect.provide([ScriptedProvider.layer([stuck()]), prices])
      )
      const { usage } = yield* stopped({ agent: made })
      assert.strictEqual(usage.cost, usage.total)
    })
  )

  it.effect("has the figures of the provider where it had reported them, and adds up with others", () =>
    Effect.gen(function* () {
      const script = yield* agent(
        [ScriptedProvider.toolCall("a", {}, { usage: { input: 100, output: 10 } }), stuck()],
        { tools: [say("a")] }
      )
      const { usage } = yield* stopped(script)
      assert.isAbove(usage.estimated ?? 0, 0)
      assert.strictEqual(usage.total, 110 + (usage.estimated ?? 0))
      assert.strictEqual(Usage.add(usage, usage).estimated, 2 * (usage.estimated ?? 0))
    })
  )

  it.effect("is estimated where a limit on tokens ends it, and not where the provider fails", () =>
    Effect.gen(function* () {
      const limited = yield* agent([stuck()], { limits: { maxTotalTokens: 5 } })
      yield* Effect.exit(limited.agent.prompt("hi"))
      assert.isAbove(ofTag(limited.events, "RunEnd")[0]?.usage.estimated ?? 0, 0)
      const failed = yield* agent([ScriptedProvider.fail(new ProviderError.Overloaded({ detail: "no" }))])
      yield* Effect.exit(failed.agent.prompt("hi"))
      assert.deepStrictEqual(ofTag(failed.events, "RunEnd")[0]?.usage, Usage.zero)
    })
  )

  it.effect("is in the next request as far as the user has read it, with a note (row 216)", () =>
    Effect.gen(function* () {
      const thinking: ReadonlyArray<Step.Step> = [
        Step.event({ _tag: "ThinkingStart", contentIndex: 0 }),
        Step.event({ _tag: "ThinkingDelta", contentIndex: 0, delta: "hm" }),
        Step.event({ _tag: "ToolCallStart", contentIndex: 1, id: "1", name: "a" }),
        Step.event({ _tag: "ToolCallDelta", contentIndex: 1, delta: '{"path":' })
      ]
      const script = yield* agent([stuck(...thinking), done, done], { tools: [say("a")] })
      yield* stopped(script)
      yield* script.agent.prompt("go on")
      yield* script.agent.prompt("and now")
      const [, second, third] = yield* script.requests
      const sent = second?.messages ?? []
      assert.deepStrictEqual(rolesAndTexts(sent), [
        ["user", "hi"],
        ["assistant", half.trimEnd()],
        ["user", note],
        ["user", "go on"]
      ])
      assert.deepStrictEqual(
        sent[1]?.content.map(({ type }) => type),
        ["text"]
      )
      // The same objects, so that what a provider has encoded and cached stays valid.
      assert.deepStrictEqual(third?.messages.slice(0, 4), sent)
      assert.isTrue(sent.every((message, index) => message === third?.messages[index]))
      const { messages } = yield* script.agent.state.get
      assert.strictEqual(messages[1]?.role === "assistant" && messages[1].stopReason, "aborted")
    })
  )

  it.effect("is left out where the model answers again in its place", () =>
    Effect.gen(function* () {
      const script = yield* agent([stuck(), done, done])
      yield* stopped(script)
      yield* script.agent.continue
      yield* script.agent.prompt("thanks")
      const [, again, later] = yield* script.requests
      assert.deepStrictEqual(rolesAndTexts(again?.messages ?? []), [["user", "hi"]])
      assert.deepStrictEqual(rolesAndTexts(later?.messages ?? []), [
        ["user", "hi"],
        ["assistant", "done"],
        ["user", "thanks"]
      ])
    })
  )

  it("is left out without a text, and after a failure", () => {
    const after = (answer: Message.Assistant) =>
      Transcript.repair([Message.user("hi"), answer, Message.user("go on")])
    const call: Message.ToolCall = {
      type: "toolCall",
      id: "1",
      name: "a",
      rawArguments: "{"
    }
    for (const answer of [
      Message.assistant([call], { stopReason: "aborted" }),
      Message.assistant(" \n", { stopReason: "aborted" }),
      Message.assistant("half", { stopReason: "error" })
    ]) {
      assert.strictEqual(after(answer).messages.length, 2)
      assert.strictEqual(after(answer).dropped, 1)
    }
    const stopped = { stopReason: "aborted", usage: Usage.zero } as const
    assert.strictEqual(after(Message.assistant("half", stopped)).dropped, 0)
    // No run has shown an answer without usage.
    assert.strictEqual(after(Message.assistant("half", { stopReason: "aborted" })).dropped, 1)
  })
})

describe("messages that a stopped run left in its queues", () => {
  it.effect("stand before the next prompt, all of the steering", () =>
    Effect.gen(function* () {
      const script = yield* agent([stuck(), done, done])
      yield* script.agent.steer("s0")
      yield* script.agent.subscribe((event) =>
        event._tag === "RunCancelled" ? Effect.asVoid(script.agent.steer("s1")) : Effect.void
      )
      yield* stopped(script)
      yield* script.agent.steer("s2")
      yield* script.agent.prompt("next")
      const [, request] = yield* script.requests
      assert.deepStrictEqual(request?.messages.slice(-3).map(Message.textOf), ["s1", "s2", "next"])
    })
  )

  it.effect("can be read and taken back (row 218)", () =>
    Effect.gen(function* () {
      const script = yield* agent([done])
      yield* script.agent.steer("s")
      yield* script.agent.followUp([Message.user("f1"), Message.user("f2")])
      const queued = yield* script.agent.queues.messages
      assert.deepStrictEqual(queued.steering.map(Message.textOf), ["s"])
      assert.deepStrictEqual(queued.followUp.map(Message.textOf), ["f1", "f2"])
      assert.deepStrictEqual(yield* script.agent.queues.clear("followUp"), {
        steering: [],
        followUp: queued.followUp
      })
      assert.deepStrictEqual(yield* script.agent.queues.clear("all"), {
        steering: queued.steering,
        followUp: []
      })
      assert.deepStrictEqual(yield* script.agent.queues.messages, { steering: [], followUp: [] })
    })
  )
})
