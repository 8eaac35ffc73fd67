import { assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, Layer, Metric, Schedule, Stream } from "effect"
import { CircuitBreaker as Breaker } from "effect/persistence"
import { Message, ModelEvent, Provider, ProviderError } from "effect-agent"
import { CircuitBreaker, Fallback, Retry } from "effect-agent/resilience"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"

const request = { model: "m", messages: [Message.user("Hi")], tools: [], options: {} }

const down = new ProviderError.ServerError({ detail: "down" })
const finished: ReadonlyArray<ModelEvent.ModelEvent> = [{ _tag: "Finish", stopReason: "stop" }]

/** A provider whose answers a test sets, and the number of its calls. */
const vendor = () => {
  const answer: Stream.Stream<ModelEvent.ModelEvent, ProviderError.ProviderError> =
    Stream.fromIterable(finished)
  const state = { calls: 0, answer }
  const provider = Provider.Provider.of({
    id: "vendor",
    stream: () =>
      Stream.suspend(() => {
        state.calls++
        return state.answer
      })
  })
  return { provider, state }
}

const fails = (reason: ProviderError.Reason) =>
  Stream.fail(new ProviderError.ProviderError({ provider: "vendor", reason }))

const ask = (provider: Provider.Provider["Service"]) =>
  Effect.map(Effect.exit(Stream.runDrain(provider.stream(request))), (exit) => {
    if (Exit.isSuccess(exit)) return "ok"
    const error = exit.cause.reasons.map((reason) =>
      reason._tag === "Fail" ? reason.error.reason._tag : reason._tag
    )
    return error.join()
  })

const times = (count: number, provider: Provider.Provider["Service"]) =>
  Effect.forEach(Array.from({ length: count }), () => ask(provider))

describe("CircuitBreaker", () => {
  it.effect("opens after so many failures in a row, and closes after a probe that succeeds", () =>
    Effect.gen(function* () {
      const { provider, state } = vendor()
      const guarded = yield* CircuitBreaker.make(provider, { failures: 3, openFor: "30 seconds" })
      state.answer = fails(down)
      assert.deepStrictEqual(yield* times(2, guarded), ["ServerError", "ServerError"])
      state.answer = Stream.fromIterable(finished)
      assert.strictEqual(yield* ask(guarded), "ok")
      state.answer = fails(down)
      assert.deepStrictEqual(yield* times(5, guarded), [
        "ServerError",
        "ServerError",
        "ServerError",
        "CircuitOpen",
        "CircuitOpen"
      ])
      assert.strictEqual(state.calls, 6)

      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(yield* times(2, guarded), ["ServerError", "CircuitOpen"])
      yield* TestClock.adjust("30 seconds")
      state.answer = Stream.fromIterable(finished)
      assert.deepStrictEqual(yield* times(3, guarded), ["ok", "ok", "ok"])
    })
  )

  it.effect("lets one probe through, and rejects other calls meanwhile", () =>
    Effect.gen(function* () {
      const { provider, state } = vendor()
      const guarded = yield* CircuitBreaker.make(provider, { failures: 1 })
      state.answer = fails(down)
      yield* ask(guarded)
      yield* TestClock.adjust("30 seconds")
      const released = yield* Deferred.make<void>()
      state.answer = Stream.concat(
        Stream.fromEffectDrain(Deferred.await(released)),
        Stream.fromIterable(finished)
      )
      const probe = yield* Effect.forkChild(ask(guarded), { startImmediately: true })
      assert.strictEqual(yield* ask(guarded), "CircuitOpen")
      yield* Deferred.succeed(released, undefined)
      assert.strictEqual(yield* Fiber.join(probe), "ok")
      assert.strictEqual(yield* ask(guarded), "ok")
    })
  )

  it.effect("lets another probe through after one that its reader left", () =>
    Effect.gen(function* () {
      const { provider, state } = vendor()
      const guarded = yield* CircuitBreaker.make(provider, { failures: 1 })
      state.answer = fails(down)
      yield* ask(guarded)
      yield* TestClock.adjust("30 seconds")
      state.answer = Stream.never
      const probe = yield* Effect.forkChild(ask(guarded), { startImmediately: true })
      yield* Fiber.interrupt(probe)
      state.answer = Stream.fromIterable(finished)
      assert.strictEqual(yield* ask(guarded), "ok")
    })
  )

  it.effect("names the time until the next probe, and takes a longer wait of the vendor", () =>
    Effect.gen(function* () {
      const { provider, state } = vendor()
      const guarded = yield* CircuitBreaker.make(provider, { failures: 1, openFor: "30 seconds" })
      state.answer = fails(new ProviderError.Overloaded({ detail: "full", retryAfter: "50 seconds" }))
      yield* ask(guarded)
      yield* TestClock.adjust("10 seconds")
      const error = yield* Effect.flip(Stream.runDrain(guarded.stream(request)))
      assert.deepStrictEqual([error.provider, error.reason._tag], ["vendor", "CircuitOpen"])
      assert.deepStrictEqual(error.retryAfter, Duration.seconds(40))
      assert.isTrue(error.isRetryable)
    })
  )

  it.effect("takes an answer without an end for a failure, and a request that is wrong for none", () =>
    Effect.gen(function* () {
      const { provider, state } = vendor()
      const guarded = yield* CircuitBreaker.make(provider, { failures: 2 })
      state.answer = Stream.make<Array<ModelEvent.ModelEvent>>({
        _tag: "TextDelta",
        contentIndex: 0,
        delta: "Hel"
      })
      assert.strictEqual(yield* ask(guarded), "StreamTruncated")
      for (const reason of [
        new ProviderError.InvalidRequest({ detail: "" }),
        new ProviderError.Unauthenticated({ detail: "" }),
        new ProviderError.RateLimited({ detail: "" }),
        new ProviderError.ContextOverflow({ detail: "" })
      ]) {
        state.answer = fails(reason)
        assert.deepStrictEqual(yield* times(3, guarded), [reason._tag, reason._tag, reason._tag])
      }
      state.answer = fails(down)
      assert.deepStrictEqual(yield* times(2, guarded), ["ServerError", "CircuitOpen"])
    })
  )

  it.effect("has a circuit for each key, and opens longer by a schedule", () =>
    Effect.gen(function* () {
      const { provider, state } = vendor()
      const guarded = yield* CircuitBreaker.make(provider, {
        failures: 1,
        openFor: Schedule.exponential("10 seconds"),
        key: ({ model }) => model,
        when: ({ reason }) => reason._tag === "RateLimited"
      })
      state.answer = fails(new ProviderError.RateLimited({ detail: "" }))
      yield* ask(guarded)
      const other = { ...guarded, stream: () => guarded.stream({ ...request, model: "n" }) }
      assert.deepStrictEqual([yield* ask(guarded), yield* ask(other)], ["CircuitOpen", "RateLimited"])
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* ask(guarded), "RateLimited")
      yield* TestClock.adjust("19 seconds")
      assert.strictEqual(yield* ask(guarded), "CircuitOpen")
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* ask(guarded), "RateLimited")
    })
  )

  it.effect("lets Fallback go to the next provider, and Retry wait for the probe", () =>
    Effect.gen(function* () {
      const { provider, state } = vendor()
      const guarded = yield* CircuitBreaker.make(provider, { failures: 1, openFor: "30 seconds" })
      state.answer = fails(down)
      yield* ask(guarded)
      const spare = ScriptedProvider.layer([ScriptedProvider.text("Yes.")], { id: "spare" })
      const both = Fallback.layer([Layer.succeed(Provider.Provider, guarded), spare])
      const fallen = yield* Effect.provide(Effect.flatMap(Provider.Provider, ask), both)
      assert.deepStrictEqual([fallen, state.calls], ["ok", 1])

      state.answer = Stream.fromIterable(finished)
      const patient = yield* Effect.forkChild(ask(Retry.make(guarded)), { startImmediately: true })
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual([yield* Fiber.join(patient), state.calls], ["ok", 2])
    })
  )

  it.effect("counts the changes of its state", () =>
    Effect.gen(function* () {
      const { provider, state } = vendor()
      const guarded = yield* CircuitBreaker.make(provider, { failures: 1, openFor: "30 seconds" })
      state.answer = fails(down)
      yield* ask(guarded)
      yield* TestClock.adjust("30 seconds")
      state.answer = Stream.fromIterable(finished)
      yield* ask(guarded)
      yield* TestClock.adjust(0)
      const metrics = yield* Metric.snapshot
      assert.sameDeepMembers(
        metrics
          .filter(({ id }) => id === "effect_agent.circuit.transitions")
          .map(({ attributes }) => attributes),
        [
          { "gen_ai.provider.name": "vendor", from: "Closed", to: "Open" },
          { "gen_ai.provider.name": "vendor", from: "Open", to: "HalfOpen" },
          { "gen_ai.provider.name": "vendor", from: "HalfOpen", to: "Closed" }
        ]
      )
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
  )

  it.effect("shares its circuits through a store in context", () =>
    Effect.gen(function* () {
      const { provider, state } = vendor()
      const [one, two] = yield* Effect.all([
        CircuitBreaker.make(provider, { failures: 1 }),
        CircuitBreaker.make(provider, { failures: 1 })
      ])
      state.answer = fails(down)
      assert.deepStrictEqual([yield* ask(one), yield* ask(two)], ["ServerError", "CircuitOpen"])
    }).pipe(Effect.provide(Breaker.layerStoreMemory()))
  )

  it.effect("decorates a layer, and keeps what the provider can do", () =>
    Effect.gen(function* () {
      const { provider } = vendor()
      const inner = Layer.succeed(Provider.Provider, { ...provider, structuredOutput: () => true })
      const guarded = yield* Effect.provide(Provider.Provider, CircuitBreaker.layer()(inner))
      assert.deepStrictEqual([guarded.id, guarded.structuredOutput?.(request)], ["vendor", true])
    })
  )
})
