import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Stream } from "effect"
import { Agent, AgentEvent, Loop, Message, ProviderError, Run, Tool, ToolRegistry } from "effect-agent"
import { createAgent } from "effect-agent/promise"
import { ScriptedProvider } from "effect-agent/testing"

const tags = (events: ReadonlyArray<AgentEvent.AgentEvent>) => events.map(({ _tag }) => _tag)

const twoTurns = [ScriptedProvider.toolCall("wait", {}), ScriptedProvider.text(["Do", "ne"])]

const waiting = Effect.gen(function* () {
  const began = yield* Deferred.make<void>()
  const go = yield* Deferred.make<void>()
  const tool = Tool.make({
    name: "wait",
    description: "Waits.",
    execute: () => Effect.as(Effect.andThen(Deferred.succeed(began, undefined), Deferred.await(go)), "ok")
  })
  return { began, go, tool }
})

describe("the handle of a run", () => {
  it.effect("gives each reader all events of the run, and its result (row 67)", () =>
    Effect.gen(function* () {
      const { began, go, tool } = yield* waiting
      const agent = yield* Agent.make({ model: "m", tools: [tool] }).pipe(
        Effect.provide(ScriptedProvider.layer(twoTurns))
      )
      const run = yield* agent.start("hi")
      const early = yield* Effect.forkChild(Stream.runCollect(run.events))
      yield* Deferred.await(began)
      const firstTwo = yield* Stream.runCollect(Stream.take(run.events, 2))
      assert.deepStrictEqual(
        firstTwo.map(({ seq }) => seq),
        [1, 2]
      )
      yield* Deferred.succeed(go, undefined)
      const result = yield* run.result
      const late = yield* Stream.runCollect(run.events)
      assert.deepStrictEqual(yield* Fiber.join(early), late)
      assert.deepStrictEqual(
        late.map(({ seq }) => seq),
        late.map((_, index) => index + 1)
      )
      assert.strictEqual(late.at(-1)?._tag, "RunEnd")
      assert.deepStrictEqual([result.status, result.text], ["completed", "Done"])
    })
  )

  it.effect("fails its events after those of a run that failed (row 67)", () =>
    Effect.gen(function* () {
      const refused = new ProviderError.Unauthenticated({ detail: "no" })
      const agent = yield* Agent.make({ model: "m" }).pipe(
        Effect.provide(ScriptedProvider.layer([ScriptedProvider.fail(refused)]))
      )
      const run = yield* agent.start("hi")
      const seen: Array<AgentEvent.AgentEvent> = []
      const error = yield* run.events.pipe(
        Stream.runForEach((event) => Effect.sync(() => seen.push(event))),
        Effect.flip
      )
      assert.strictEqual(error._tag, "RunFailed")
      assert.deepStrictEqual(tags(seen.slice(-2)), ["RunError", "RunEnd"])
      assert.strictEqual(yield* Effect.flip(Run.collect(run.events)), error)
    })
  )

  it.effect("starts a run of the loop that ends with its scope (row 67)", () =>
    Effect.gen(function* () {
      const { began, tool } = yield* waiting
      const run = yield* Effect.scoped(
        Effect.tap(Loop.start("hi", { messages: [] }, { model: "m" }), () => Deferred.await(began))
      ).pipe(Effect.provide(Layer.merge(ScriptedProvider.layer(twoTurns), ToolRegistry.layer(tool))))
      assert.strictEqual((yield* run.result).status, "cancelled")
      assert.include(tags(yield* Stream.runCollect(run.events)), "RunCancelled")
    })
  )

  it("has the events and the result of a run with promises (row 67)", async () => {
    await using agent = createAgent({
      provider: ScriptedProvider.layer([ScriptedProvider.text(["Hel", "lo"])]),
      model: "m"
    })
    const run = await agent.start("hi")
    for await (const event of run.events) if (event._tag === "TurnStart") break
    const seen: Array<string> = []
    for await (const event of run.events) seen.push(event._tag)
    assert.deepStrictEqual([seen[0], seen.at(-1)], ["RunStart", "RunEnd"])
    assert.strictEqual((await run.result()).text, "Hello")
  })
})

describe("helpers for streams of events", () => {
  it.effect("accumulates the text of the answers, and takes back what is void (row 67)", () =>
    Effect.gen(function* () {
      const base = { runId: "r", timestamp: 0, turn: 1, messageId: "a" }
      const text = (seq: number, delta: string): AgentEvent.AgentEvent => ({
        ...base,
        _tag: "MessageDelta",
        seq,
        delta: { _tag: "TextDelta", contentIndex: 0, delta }
      })
      const events: ReadonlyArray<AgentEvent.AgentEvent> = [
        { ...base, _tag: "MessageStart", seq: 1, role: "assistant" },
        text(2, "One. "),
        { ...base, _tag: "MessageStart", seq: 3, role: "assistant" },
        text(4, "Tw"),
        { ...base, _tag: "MessageRetracted", seq: 5 },
        { ...base, _tag: "MessageStart", seq: 6, role: "assistant" },
        text(7, "Two."),
        text(8, "")
      ]
      const texts = yield* Stream.fromIterable(events).pipe(AgentEvent.accumulateText, Stream.runCollect)
      assert.deepStrictEqual(texts, ["One. ", "One. Tw", "One. ", "One. Two."])
    })
  )

  it.effect("collects a run as one value, without the runs inside (row 67)", () =>
    Effect.gen(function* () {
      const helper = Agent.asTool({ name: "helper", description: "Helps.", agent: { model: "m" } })
      const script = [
        ScriptedProvider.toolCall("helper", { prompt: "Help" }),
        ScriptedProvider.text("Inside."),
        ScriptedProvider.text("Outside.")
      ]
      const agent = yield* Agent.make({ model: "m", tools: [helper] }).pipe(
        Effect.provide(ScriptedProvider.layer(script))
      )
      const run = yield* agent.start("hi")
      const result = yield* run.result
      const collected = yield* Run.collect(run.events)
      assert.deepStrictEqual(collected.messages, result.newMessages)
      assert.deepStrictEqual(collected.messages.map(Message.textOf), ["hi", "", "Inside.", "Outside."])
      assert.deepStrictEqual(
        [collected.text, collected.status, collected.runId, collected.lastError],
        [result.text, result.status, result.runId, undefined]
      )
      assert.deepStrictEqual(collected.report, result.report)
    })
  )
})
