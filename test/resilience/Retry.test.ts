import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Schedule, Stream } from "effect"
import { AgentEvent, Loop, Message, ModelEvent, Provider, ProviderError, ToolRegistry } from "effect-agent"
import { Fallback, Retry } from "effect-agent/resilience"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { TestClock } from "effect/testing"

const busy = new ProviderError.Overloaded({ detail: "busy" })
const fast = { schedule: Schedule.recurs(3) }
const request = { model: "m", messages: [Message.user("hi")], tools: [], options: {} }
const ask = Effect.flatMap(Provider.Provider, (provider) => Stream.runCollect(provider.stream(request)))
const tags = (events: ReadonlyArray<ModelEvent.ModelEvent>) => events.map(({ _tag }) => _tag)
const answer = ["Start", "TextStart", "TextDelta", "TextEnd", "Finish"]

describe("Retry", () => {
  it.effect("asks again while nothing has been said, and says so", () =>
    Effect.gen(function* () {
      const provider = ScriptedProvider.layer([
        ScriptedProvider.fail(busy),
        ScriptedProvider.turn(Step.start, Step.fail(busy)),
        ScriptedProvider.text("ok")
      ])
      const events = yield* ask.pipe(Effect.provide(Retry.layer(fast)(provider)))
      assert.deepStrictEqual(tags(events), ["Attempt", "Attempt", ...answer])
    })
  )

  it.effect("lets an answer that broke off fail", () =>
    Effect.gen(function* () {
      const provider = ScriptedProvider.layer([ScriptedProvider.turn(Step.text("Hel"), Step.fail(busy))])
      const error = yield* Effect.flip(ask.pipe(Effect.provide(Retry.layer(fast)(provider))))
      assert.strictEqual(error.reason._tag, "Overloaded")
    })
  )

  it.effect("takes a broken answer back and asks again, when told to retry the turn", () =>
    Effect.gen(function* () {
      const provider = ScriptedProvider.layer([
        ScriptedProvider.turn(Step.text("Hel"), Step.fail(busy)),
        ScriptedProvider.text("Hello")
      ])
      const events = yield* Loop.stream("hi", { messages: [] }, { model: "m" }).pipe(
        Stream.runCollect,
        Effect.provide([Retry.layer({ ...fast, retryTurn: true })(provider), ToolRegistry.layer()])
      )
      const view = events.reduce(AgentEvent.fold, AgentEvent.initial())
      assert.deepStrictEqual(view.messages.map(Message.textOf), ["hi", "Hello"])
      assert.strictEqual(events.filter(({ _tag }) => _tag === "MessageRetracted").length, 1)
      assert.strictEqual(events.filter(({ _tag }) => _tag === "ModelCallRetry").length, 1)
    })
  )

  it.effect("waits as long as the provider asks for, and gives up when that is too long", () =>
    Effect.gen(function* () {
      const limited = (seconds: number) =>
        new ProviderError.RateLimited({ detail: "slow down", retryAfter: Duration.seconds(seconds) })
      const patient = Retry.layer()(
        ScriptedProvider.layer([ScriptedProvider.fail(limited(30)), ScriptedProvider.text("ok")])
      )
      const fiber = yield* ask.pipe(Effect.provide(patient), Effect.forkChild({ startImmediately: true }))
      yield* TestClock.adjust("29 seconds")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(tags(yield* Fiber.join(fiber)), ["Attempt", ...answer])

      const asked = Retry.layer()(ScriptedProvider.layer([ScriptedProvider.fail(limited(61))]))
      const error = yield* Effect.flip(ask.pipe(Effect.provide(asked)))
      assert.strictEqual(error.reason._tag, "RateLimited")
    })
  )

  it.effect("does not ask again after an error that asking again cannot mend, nor after a stall", () =>
    Effect.gen(function* () {
      for (const reason of [
        new ProviderError.InvalidRequest({ detail: "no" }),
        new ProviderError.ContextOverflow({ detail: "too long" }),
        new ProviderError.StreamStalled({ detail: "silent", kind: "idle", after: Duration.minutes(2) })
      ]) {
        const provider = yield* ScriptedProvider.make([ScriptedProvider.fail(reason)])
        yield* Effect.flip(ask.pipe(Effect.provide(Retry.layer()(provider.layer))))
        assert.strictEqual((yield* provider.requests).length, 1)
      }
    })
  )
})

/** Streams that end without `Finish`, and have said nothing by then. */
const unfinished: ReadonlyArray<ScriptedProvider.Turn> = [
  ScriptedProvider.turn(),
  ScriptedProvider.turn(Step.start),
  ScriptedProvider.turn(Step.text("Hel"), Step.finish(), Step.event({ _tag: "Retracted" }))
]
const cutOff = ScriptedProvider.turn(Step.start, Step.text("Hel"))
const causeOf = (event: ModelEvent.ModelEvent | undefined) =>
  event?._tag === "Attempt" ? [event.error.provider, event.error.reason._tag] : event?._tag

describe("a stream that ends without Finish", () => {
  it.effect("is retried by Retry while nothing was said", () =>
    Effect.gen(function* () {
      for (const turn of unfinished) {
        const provider = ScriptedProvider.layer([turn, ScriptedProvider.text("ok")], { id: "flaky" })
        const events = yield* ask.pipe(Effect.provide(Retry.layer(fast)(provider)))
        const from = events.findIndex(({ _tag }) => _tag === "Attempt")
        assert.deepStrictEqual(tags(events).slice(from), ["Attempt", ...answer])
        assert.deepStrictEqual(causeOf(events[from]), ["flaky", "StreamTruncated"])
      }
    })
  )

  it.effect(
    "is retried by Retry after the default schedule, and fails as truncated when it is out of tries",
    () =>
      Effect.gen(function* () {
        const provider = yield* ScriptedProvider.make([], {
          exhausted: () => ScriptedProvider.turn(Step.start)
        })
        const run = yield* Effect.forkChild(
          Effect.flip(ask.pipe(Effect.provide(Retry.layer()(provider.layer)))),
          {
            startImmediately: true
          }
        )
        yield* TestClock.adjust("10 seconds")
        assert.deepInclude(yield* Fiber.join(run), { provider: "scripted" })
        assert.strictEqual((yield* Fiber.join(run)).reason._tag, "StreamTruncated")
        assert.strictEqual((yield* provider.requests).length, 3)
      })
  )

  it.effect("fails once something was said, unless the turn is retried", () =>
    Effect.gen(function* () {
      const provider = yield* ScriptedProvider.make([cutOff, cutOff, ScriptedProvider.text("Hello")])
      const error = yield* Effect.flip(ask.pipe(Effect.provide(Retry.layer(fast)(provider.layer))))
      assert.strictEqual(error.reason._tag, "StreamTruncated")
      assert.strictEqual((yield* provider.requests).length, 1)
      const events = yield* ask.pipe(
        Effect.provide(Retry.layer({ ...fast, retryTurn: true })(provider.layer))
      )
      assert.deepStrictEqual(tags(events).slice(0, 6), [
        "Start",
        "TextStart",
        "TextDelta",
        "TextEnd",
        "Attempt",
        "Retracted"
      ])
      assert.deepStrictEqual(tags(events).slice(6), answer)
    })
  )

  it.effect("makes Fallback ask the next provider while nothing was said", () =>
    Effect.gen(function* () {
      for (const turn of unfinished) {
        const layer = Fallback.layer([
          ScriptedProvider.layer([turn], { id: "flaky" }),
          ScriptedProvider.layer([ScriptedProvider.text("ok")])
        ])
        const events = yield* ask.pipe(Effect.provide(layer))
        const from = events.findIndex(({ _tag }) => _tag === "Attempt")
        assert.deepStrictEqual(tags(events).slice(from), ["Attempt", ...answer])
        assert.deepStrictEqual(causeOf(events[from]), ["flaky", "StreamTruncated"])
      }
      const second = yield* ScriptedProvider.make([])
      const late = Fallback.layer([ScriptedProvider.layer([cutOff]), second.layer])
      assert.strictEqual((yield* Effect.flip(ask.pipe(Effect.provide(late)))).reason._tag, "StreamTruncated")
      assert.strictEqual((yield* second.requests).length, 0)
    })
  )

  it.effect("is told in the name of the provider that its Start says, in a run too", () =>
    Effect.gen(function* () {
      const start: ModelEvent.ModelEvent = { _tag: "Start", provider: "vendor", model: "m", protocol: "p" }
      const custom = Provider.Provider.of({ id: "router", stream: () => Stream.succeed(start) })
      const error = yield* Effect.flip(
        Stream.runDrain(Retry.make(custom, { schedule: Schedule.recurs(0) }).stream(request))
      )
      assert.strictEqual(error.message, "vendor: StreamTruncated: the answer ended before it was finished")
    })
  )

  it.effect("is mended within a run: one answer, one retry, no error", () =>
    Effect.gen(function* () {
      const provider = ScriptedProvider.layer([
        ScriptedProvider.turn(Step.start),
        ScriptedProvider.text("ok")
      ])
      const events = yield* Loop.stream("hi", { messages: [] }, { model: "m" }).pipe(
        Stream.runCollect,
        Effect.provide([Retry.layer(fast)(provider), ToolRegistry.layer()])
      )
      const view = events.reduce(AgentEvent.fold, AgentEvent.initial())
      assert.deepStrictEqual(view.messages.map(Message.textOf), ["hi", "ok"])
      assert.strictEqual(events.filter(({ _tag }) => _tag === "ModelCallRetry").length, 1)
      assert.strictEqual(events.filter(({ _tag }) => _tag === "RunError").length, 0)
    })
  )
})

describe("Fallback", () => {
  it.effect("asks the next provider, with its own model, and says why", () =>
    Effect.gen(function* () {
      const second = yield* ScriptedProvider.make([ScriptedProvider.text("ok")])
      const layer = Fallback.layer([
        ScriptedProvider.layer([ScriptedProvider.fail(busy)]),
        { layer: second.layer, model: "other" }
      ])
      const events = yield* ask.pipe(Effect.provide(layer))
      assert.deepStrictEqual(tags(events), ["Attempt", ...answer])
      assert.strictEqual((yield* second.requests)[0]?.model, "other")
      const hop = events[0]
      assert.strictEqual(hop?._tag === "Attempt" ? hop.error.reason._tag : undefined, "Overloaded")
    })
  )

  it.effect("fails with the last error when no provider answers, which names those before", () =>
    Effect.gen(function* () {
      const last = new ProviderError.Forbidden({ detail: "no" })
      const layer = Fallback.layer([
        ScriptedProvider.layer([ScriptedProvider.fail(busy)]),
        ScriptedProvider.layer([ScriptedProvider.fail(last)])
      ])
      const { message, reason } = yield* Effect.flip(ask.pipe(Effect.provide(layer)))
      assert.strictEqual(reason._tag, "Forbidden")
      assert.match(message, /^scripted: Forbidden: no\. Before: scripted: Overloaded: /)
    })
  )

  it.effect("neither routes around a refusal, nor replaces a provider in mid-answer", () =>
    Effect.gen(function* () {
      for (const first of [
        ScriptedProvider.fail(new ProviderError.ContentPolicy({ detail: "no" })),
        ScriptedProvider.turn(Step.text("Hel"), Step.fail(busy))
      ]) {
        const second = yield* ScriptedProvider.make([])
        yield* Effect.flip(
          ask.pipe(Effect.provide(Fallback.layer([ScriptedProvider.layer([first]), second.layer])))
        )
        assert.strictEqual((yield* second.requests).length, 0)
      }
    })
  )

  it.effect("composes with Retry on either side", () =>
    Effect.gen(function* () {
      const twice = () => ScriptedProvider.layer([ScriptedProvider.fail(busy), ScriptedProvider.text("ok")])
      const inside = Fallback.layer([Retry.layer(fast)(twice()), ScriptedProvider.layer([])])
      assert.deepStrictEqual(tags(yield* ask.pipe(Effect.provide(inside))), ["Attempt", ...answer])
      const never = ScriptedProvider.layer([ScriptedProvider.fail(busy), ScriptedProvider.fail(busy)])
      const outside = Retry.layer(fast)(Fallback.layer([never, twice()]))
      assert.deepStrictEqual(tags(yield* ask.pipe(Effect.provide(outside))), [
        "Attempt",
        "Attempt",
        "Attempt",
        ...answer
      ])
    })
  )

  it("keeps what the providers require and may fail with", () => {
    class Down extends Error {}
    const broken: Layer.Layer<Provider.Provider, Down, ToolRegistry.ToolRegistry> = Layer.unwrap(
      Effect.andThen(ToolRegistry.ToolRegistry, Effect.fail(new Down()))
    )
    const typed: Layer.Layer<Provider.Provider, Down, ToolRegistry.ToolRegistry> = Fallback.layer([
      broken,
      ScriptedProvider.layer([])
    ])
    assert.isTrue(Layer.isLayer(typed))
  })
})
