import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Layer, Schedule, Schema, Scope, Stream } from "effect"
import { Agent, Loop, Message, ProviderError, RunReport, ToolRegistry, Tool } from "effect-agent"
import { createAgent } from "effect-agent/promise"
import { Retry } from "effect-agent/resilience"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import * as Invariants from "./invariants.ts"
import { agent, failureOf, ofTag, reasonOf, settle, tags } from "./play.ts"

const overloaded = (retryAfter?: "2 minutes" | "1 hour") =>
  ScriptedProvider.fail(
    new ProviderError.Overloaded({
      detail: "at capacity",
      ...(retryAfter === undefined ? {} : { retryAfter })
    })
  )
const refused = ScriptedProvider.fail(new ProviderError.Unauthenticated({ detail: "no" }))
const done = ScriptedProvider.text("done")
/** Two retries, each after 10 seconds. */
const retry = Schedule.spaced("10 seconds").pipe(Schedule.upTo({ times: 2 }))

/** A tool that counts its runs. */
const counter = () => {
  const counted = { runs: 0 }
  const tool = Tool.make({
    name: "count",
    description: "Counts.",
    execute: () => Effect.sync(() => ++counted.runs)
  })
  return { counted, tool }
}

/** Forks work that sleeps, and waits until it does. */
const forked = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.tap(Effect.forkChild(work, { startImmediately: true }), settle())

const rolesOf = (messages: ReadonlyArray<Message.Message>) => messages.map(({ role }) => role)

describe("the retries of a run", () => {
  it.effect("continue from the transcript: tools run once, and the prompt stands there once (row 249)", () =>
    Effect.gen(function* () {
      const { counted, tool } = counter()
      const script = [ScriptedProvider.toolCall("count", {}), overloaded(), overloaded(), done]
      const { agent: one, events, requests } = yield* agent(script, { tools: [tool], retry })
      const fiber = yield* forked(one.prompt("hi"))
      yield* TestClock.adjust("19 seconds")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 second")
      const { duration, newMessages, status, text, turns } = yield* Fiber.join(fiber)
      assert.deepStrictEqual([status, text, turns, counted.runs], ["completed", "done", 4, 1])
      assert.strictEqual(Duration.toSeconds(duration), 20)
      assert.deepStrictEqual(rolesOf(newMessages), [
        "user",
        "assistant",
        "toolResult",
        "assistant",
        "assistant",
        "assistant"
      ])
      assert.deepStrictEqual(
        (yield* requests).map(({ messages }) => rolesOf(messages)),
        [["user"], ...[1, 2, 3].map(() => ["user", "assistant", "toolResult"])]
      )
      assert.deepStrictEqual((yield* one.state.get).messages, newMessages)
      assert.deepStrictEqual(Invariants.broken(events), [])
    })
  )

  it.effect("are announced, counted, and no failure of the run", () =>
    Effect.gen(function* () {
      const { agent: one, events } = yield* agent([overloaded("2 minutes"), done], { retry })
      const fiber = yield* forked(one.prompt("hi"))
      yield* TestClock.adjust("2 minutes")
      const { report } = yield* Fiber.join(fiber)
      assert.deepStrictEqual(
        ofTag(events, "RunRetry").map(({ attempt, delayMs, error, turn }) => [
          attempt,
          delayMs,
          error.reason._tag,
          turn
        ]),
        [[1, 120_000, "Overloaded", 1]]
      )
      assert.deepStrictEqual(
        tags(events).filter((tag) => /^(Turn|Run)/.test(tag)),
        ["RunStart", "TurnStart", "TurnEnd", "RunRetry", "TurnStart", "TurnEnd", "RunEnd"]
      )
      assert.deepStrictEqual([report.retries, report.errors], [1, []])
      assert.deepStrictEqual(RunReport.fromEvents(events), report)
    })
  )

  it.effect("end with the schedule: the run fails with the last error, once", () =>
    Effect.gen(function* () {
      const script = [overloaded(), overloaded(), overloaded(), done]
      const { agent: one, events } = yield* agent(script, { retry })
      const fiber = yield* forked(one.prompt("hi"))
      yield* TestClock.adjust("1 minute")
      const exit = yield* Fiber.await(fiber)
      assert.strictEqual(reasonOf(exit)?._tag, "ProviderError")
      assert.strictEqual(failureOf(exit)?.result.turns, 3)
      assert.deepStrictEqual(Invariants.broken(events), [])
    })
  )

  it.effect("begin anew after a turn that ended well", () =>
    Effect.gen(function* () {
      const { counted, tool } = counter()
      const call = ScriptedProvider.toolCall("count", {})
      const script = [overloaded(), overloaded(), call, overloaded(), overloaded(), done]
      const { agent: one, events } = yield* agent(script, { tools: [tool], retry })
      const fiber = yield* forked(one.prompt("hi"))
      yield* TestClock.adjust("40 seconds")
      assert.strictEqual((yield* Fiber.join(fiber)).text, "done")
      assert.strictEqual(counted.runs, 1)
      assert.deepStrictEqual(
        ofTag(events, "RunRetry").map(({ attempt }) => attempt),
        [1, 2, 1, 2]
      )
    })
  )

  it.effect("come after the retries of the model call", () =>
    Effect.gen(function* () {
      const provider = yield* ScriptedProvider.make([overloaded(), overloaded(), overloaded(), done])
      const decorated = Retry.layer({ schedule: Schedule.recurs(1) })(provider.layer)
      const one = yield* Agent.make({ model: "m", retry }).pipe(Effect.provide(decorated))
      const events = yield* forked(Stream.runCollect(one.stream("hi")))
      yield* TestClock.adjust("10 seconds")
      const seen = yield* Fiber.join(events)
      assert.deepStrictEqual(
        tags(seen).filter((tag) => tag.endsWith("Retry")),
        ["ModelCallRetry", "RunRetry", "ModelCallRetry"]
      )
      assert.deepStrictEqual(Invariants.broken(seen), [])
    })
  )

  it.effect("wait as long as the provider names, within maxRetryAfter", () =>
    Effect.gen(function* () {
      const script = [overloaded("2 minutes"), overloaded("1 hour"), done]
      const { agent: one } = yield* agent(script, { retry })
      const fiber = yield* forked(one.prompt("hi"))
      yield* TestClock.adjust("119 seconds")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 second")
      // The second delay is longer than five minutes.
      assert.strictEqual(reasonOf(yield* Fiber.await(fiber))?._tag, "ProviderError")
      const patient = yield* agent([overloaded("1 hour"), done], { retry, maxRetryAfter: "2 hours" })
      const other = yield* forked(patient.agent.prompt("hi"))
      yield* TestClock.adjust("1 hour")
      assert.strictEqual((yield* Fiber.join(other)).text, "done")
    })
  )

  it.effect("are none for an error that is not retryable, nor for another failure", () =>
    Effect.gen(function* () {
      const { agent: one, events } = yield* agent([refused, ScriptedProvider.toolCall("x", {})], {
        retry: Schedule.recurs(5),
        limits: { maxTurns: 1 }
      })
      assert.strictEqual(reasonOf(yield* Effect.exit(one.prompt("a")))?._tag, "ProviderError")
      assert.strictEqual(reasonOf(yield* Effect.exit(one.prompt("b")))?._tag, "LimitExceeded")
      assert.deepStrictEqual(ofTag(events, "RunRetry"), [])
    })
  )

  it.effect("do not count in maxTurns", () =>
    Effect.gen(function* () {
      const options = { retry: Schedule.recurs(1), limits: { maxTurns: 1 } }
      const { agent: one } = yield* agent(
        [overloaded(), done, overloaded(), ScriptedProvider.toolCall("x", {})],
        options
      )
      assert.strictEqual((yield* one.prompt("a")).text, "done")
      const exit = yield* Effect.exit(one.prompt("b"))
      assert.deepInclude(reasonOf(exit), { _tag: "LimitExceeded", limit: "maxTurns", value: 1, max: 1 })
    })
  )

  it.effect("cover the summary of wrapUp, which has one instruction", () =>
    Effect.gen(function* () {
      const { agent: one, events } = yield* agent(
        [ScriptedProvider.toolCall("x", {}), overloaded(), ScriptedProvider.text("So far.")],
        { retry: Schedule.recurs(1), limits: { maxTurns: 1, onMaxTurns: "wrapUp" } }
      )
      const { newMessages, status, text } = yield* one.prompt("a")
      assert.deepStrictEqual([status, text], ["incomplete", "So far."])
      assert.strictEqual(rolesOf(newMessages).filter((role) => role === "user").length, 2)
      assert.deepStrictEqual(Invariants.broken(events), [])
    })
  )

  it.effect("keep an answer that broke off out of the next request", () =>
    Effect.gen(function* () {
      const broken = ScriptedProvider.turn(
        Step.start,
        Step.text("so f"),
        Step.fail(new ProviderError.StreamTruncated({ detail: "gone" }))
      )
      const { agent: one, requests } = yield* agent([broken, done], { retry: Schedule.recurs(1) })
      const { newMessages, text } = yield* one.prompt("hi")
      assert.strictEqual(text, "done")
      assert.deepStrictEqual(newMessages.map(Message.textOf), ["hi", "so f", "done"])
      assert.deepStrictEqual(rolesOf((yield* requests)[1]?.messages ?? []), ["user"])
    })
  )

  it.effect("deliver messages that were steered during the delay", () =>
    Effect.gen(function* () {
      const { agent: one, requests } = yield* agent([overloaded(), done], { retry })
      const fiber = yield* forked(one.prompt("hi"))
      yield* one.steer("mind this")
      yield* one.update({ model: "other" })
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(fiber)
      const last = (yield* requests)[1]
      assert.deepStrictEqual(last?.messages.map(Message.textOf), ["hi", "mind this"])
      assert.strictEqual(last?.model, "other")
    })
  )

  describe("end during the delay", () => {
    it.effect("by a cancel, with status cancelled", () =>
      Effect.gen(function* () {
        const { agent: one, events } = yield* agent([overloaded(), done], { retry })
        const fiber = yield* forked(one.prompt("hi"))
        yield* one.cancel("enough")
        assert.strictEqual((yield* Fiber.join(fiber)).status, "cancelled")
        assert.deepStrictEqual(Invariants.broken(events), [])
        assert.strictEqual((yield* one.prompt("again")).text, "done")
      })
    )

    it.effect("by the interruption of the caller, who waits for the end", () =>
      Effect.gen(function* () {
        const { agent: one, events } = yield* agent([overloaded(), done], { retry })
        const fiber = yield* forked(one.prompt("hi"))
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(
          ofTag(events, "RunEnd").map(({ status }) => status),
          ["cancelled"]
        )
        assert.strictEqual((yield* one.state.get).phase, "idle")
      })
    )

    it.effect("by the end of the agent's scope", () =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const { agent: one } = yield* Scope.provide(agent([overloaded(), done], { retry }), scope)
        const { result } = yield* one.start("hi")
        yield* settle()
        yield* Scope.close(scope, Exit.void)
        assert.strictEqual((yield* result).status, "cancelled")
      })
    )

    it.effect("by executionTime", () =>
      Effect.gen(function* () {
        const limits = { executionTime: "5 seconds" } as const
        const { agent: one } = yield* agent([overloaded(), done], { retry, limits })
        const fiber = yield* forked(one.prompt("hi"))
        yield* TestClock.adjust("5 seconds")
        const exit = yield* Fiber.await(fiber)
        assert.deepInclude(reasonOf(exit), { _tag: "LimitExceeded", limit: "executionTime" })
      })
    )
  })

  it.effect("wait for resume, if the run was paused during the delay", () =>
    Effect.gen(function* () {
      const { agent: one, events } = yield* agent([overloaded(), done], { retry })
      const fiber = yield* forked(one.prompt("hi"))
      yield* one.pause()
      yield* TestClock.adjust("1 minute")
      assert.isUndefined(fiber.pollUnsafe())
      yield* one.resume()
      assert.strictEqual((yield* Fiber.join(fiber)).text, "done")
      assert.deepStrictEqual(Invariants.broken(events), [])
    })
  )

  describe("belong to", () => {
    const twice = [overloaded(), done, overloaded(), done]
    const now = Schedule.recurs(1)

    it.effect("the runs of continue, start and stream", () =>
      Effect.gen(function* () {
        const { agent: one, events } = yield* agent([refused, ...twice, overloaded(), done], { retry: now })
        yield* Effect.exit(one.prompt("hi"))
        assert.strictEqual((yield* one.continue).text, "done")
        const { result } = yield* one.start("again")
        assert.strictEqual((yield* result).text, "done")
        yield* Stream.runDrain(one.streamEvents("and again"))
        assert.deepStrictEqual(
          ofTag(events, "RunEnd").map(({ status }) => status),
          ["failed", "completed", "completed", "completed"]
        )
      })
    )

    it.effect("one prompt, in place of those of the agent", () =>
      Effect.gen(function* () {
        const { agent: one } = yield* agent([...twice, overloaded()])
        assert.strictEqual((yield* one.prompt("a", { retry: now })).text, "done")
        assert.strictEqual((yield* one.prompt("b", { retry: now, maxRetryAfter: 0 })).text, "done")
        assert.strictEqual(reasonOf(yield* Effect.exit(one.prompt("c")))?._tag, "ProviderError")
      })
    )

    it.effect("a run with an output, which the model must give in the same way", () =>
      Effect.gen(function* () {
        const output = Schema.Struct({ grade: Schema.Int })
        const { agent: one, requests } = yield* agent([
          ScriptedProvider.text("Two."),
          overloaded(),
          ScriptedProvider.toolCall("final_answer", { grade: 2 })
        ])
        const result = yield* one.prompt("a", { retry: now, output })
        expectTypeOf(result.output).toEqualTypeOf<typeof output.Type>()
        assert.strictEqual(result.output.grade, 2)
        assert.deepStrictEqual(
          (yield* requests).map(({ options }) => options.toolChoice),
          [undefined, { name: "final_answer" }, { name: "final_answer" }]
        )
      })
    )

    it.effect("the loop without an agent", () =>
      Effect.gen(function* () {
        const options = { model: "m", retry: now }
        assert.strictEqual((yield* Loop.run("a", { messages: [] }, options)).text, "done")
        const events = yield* Stream.runCollect(Loop.stream("b", { messages: [] }, options))
        assert.deepStrictEqual(Invariants.broken(events), [])
        assert.strictEqual(ofTag(events, "RunRetry").length, 1)
      }).pipe(Effect.provide(Layer.merge(ScriptedProvider.layer(twice), ToolRegistry.layer())))
    )

    it("the promise agent", async () => {
      const provider = ScriptedProvider.layer([...twice, overloaded(), done])
      await using one = createAgent({ provider, model: "m", retry: now })
      assert.strictEqual((await one.prompt("a")).text, "done")
      let text = ""
      for await (const piece of one.streamText("b")) text += piece
      assert.strictEqual(text, "done")
      const { text: last } = await one.prompt("c", { retry: Schedule.spaced("1 millis") })
      assert.strictEqual(last, "done")
    })
  })

  it.effect("are InvalidInput where they are none", () =>
    Effect.gen(function* () {
      const wrong: any = { retry: 3, maxRetryAfter: "soon" }
      const message =
        'Invalid options: retry: expected a Schedule, got 3; maxRetryAfter: expected a duration such as "30 seconds", milliseconds, { minutes: 5 } or "Infinity", got "soon"'
      const { agent: one } = yield* agent([])
      assert.strictEqual((yield* Effect.flip(one.prompt("a", wrong))).message, message)
      assert.strictEqual((yield* Effect.flip(agent([], wrong))).message, message)
    })
  )
})
