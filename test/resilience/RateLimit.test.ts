import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Clock, Duration, Effect, Exit, Fiber, Layer, Schema, Stream } from "effect"
import { Message, ModelEvent, Provider, ProviderError } from "effect-agent"
import { Fallback, RateLimit, Retry } from "effect-agent/resilience"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"

const request: Provider.ModelRequest = {
  model: "m",
  messages: [Message.user("Hi")],
  tools: [],
  options: {}
}

/** A provider that keeps the times of its calls, and answers call number `count`, from 1, so. */
const recorder = (answer: (count: number) => ReadonlyArray<ModelEvent.ModelEvent> | ProviderError.Reason) => {
  const starts: Array<number> = []
  const provider = Provider.Provider.of({
    id: "recorder",
    stream: () =>
      Stream.unwrap(
        Effect.map(Clock.currentTimeMillis, (now) => {
          const events = answer(starts.push(now))
          return "_tag" in events
            ? Stream.fail(new ProviderError.ProviderError({ provider: "recorder", reason: events }))
            : Stream.fromIterable(events)
        })
      )
  })
  return { provider, starts }
}

const finish = (tokens?: number): ReadonlyArray<ModelEvent.ModelEvent> => [
  {
    _tag: "Finish",
    stopReason: "stop",
    ...(tokens === undefined
      ? {}
      : { usage: { input: tokens, output: 0, cacheRead: 0, cacheWrite: 0, total: tokens } })
  }
]

const ask = (provider: Provider.Provider["Service"], changes?: Partial<Provider.ModelRequest>) =>
  Stream.runDrain(provider.stream({ ...request, ...changes }))

const fork = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkChild(effect, { startImmediately: true })

const limited = (retryAfter?: Duration.Input) =>
  new ProviderError.RateLimited({ detail: "slow down", ...(retryAfter === undefined ? {} : { retryAfter }) })

describe("RateLimit", () => {
  it.effect("lets so many calls start in an interval, and the others wait in order", () =>
    Effect.gen(function* () {
      const { provider, starts } = recorder(() => finish())
      const bounded = RateLimit.make(provider, { requests: 2, interval: "10 seconds" })
      yield* fork(Effect.all([ask(bounded), ask(bounded)], { concurrency: 2 }))
      yield* TestClock.adjust("4 seconds")
      const fiber = yield* fork(Effect.all([ask(bounded), ask(bounded), ask(bounded)], { concurrency: 3 }))
      yield* TestClock.adjust("5999 millis")
      assert.deepStrictEqual(starts, [0, 0])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(starts, [0, 0, 10_000, 10_000])
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(starts, [0, 0, 10_000, 10_000, 20_000])
    })
  )

  it.effect("counts the tokens that an answer reports in place of its estimate", () =>
    Effect.gen(function* () {
      const { provider, starts } = recorder((count) => finish(count === 1 ? 90 : 5))
      const bounded = RateLimit.make(provider, { tokens: 100, interval: "10 seconds" })
      const messages = [Message.user("x".repeat(80))]
      yield* ask(bounded, { messages })
      const fiber = yield* fork(Effect.all([ask(bounded, { messages }), ask(bounded, { messages })]))
      yield* TestClock.adjust("9999 millis")
      assert.deepStrictEqual(starts, [0])
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(starts, [0, 10_000, 10_000])
    })
  )

  it.effect("lets a call that exceeds the bound alone start in an empty interval", () =>
    Effect.gen(function* () {
      const { provider, starts } = recorder(() => finish())
      const bounded = RateLimit.make(provider, { tokens: 10, interval: "10 seconds" })
      const messages = [Message.user("x".repeat(400))]
      yield* ask(bounded, { messages })
      const fiber = yield* fork(ask(bounded, { messages }))
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(starts, [0, 10_000])
    })
  )

  it.effect("lets no small call overtake a large one", () =>
    Effect.gen(function* () {
      const sizes: Array<number> = []
      const { provider } = recorder(() => finish())
      const seen = {
        ...provider,
        stream: (request: Provider.ModelRequest) => {
          sizes.push(Message.textOf(request.messages[0] ?? Message.user("")).length)
          return provider.stream(request)
        }
      }
      const bounded = RateLimit.make(seen, { tokens: 100, interval: "10 seconds" })
      const send = (size: number) => ask(bounded, { messages: [Message.user("x".repeat(size))] })
      yield* send(240)
      const fibers = [yield* fork(send(239)), yield* fork(send(8))]
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(sizes, [240])
      yield* TestClock.adjust("5 seconds")
      yield* Effect.forEach(fibers, Fiber.join)
      assert.deepStrictEqual(sizes, [240, 239, 8])
    })
  )

  it.effect("bounds each key by itself", () =>
    Effect.gen(function* () {
      const { provider, starts } = recorder(() => finish())
      const bounded = RateLimit.make(provider, { requests: 1, key: ({ model }) => model, maxWait: 0 })
      yield* Effect.all([ask(bounded), ask(bounded, { model: "n" })])
      assert.deepStrictEqual(starts, [0, 0])
      assert.isTrue(Exit.isFailure(yield* Effect.exit(ask(bounded))))
      yield* TestClock.adjust("1 minute")
      yield* ask(bounded)
    })
  )

  it.effect("holds back every call for as long as the vendor names", () =>
    Effect.gen(function* () {
      const { provider, starts } = recorder((count) => (count === 1 ? limited("30 seconds") : finish()))
      const bounded = RateLimit.make(provider, { requests: 100 })
      const fibers = yield* Effect.forEach([1, 2, 3], () => fork(Effect.exit(ask(bounded))))
      // The second and the third had started before the failure of the first came, or they wait.
      const before = starts.length
      const later = yield* fork(ask(bounded))
      yield* TestClock.adjust("29 seconds")
      assert.strictEqual(starts.length, before)
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(later)
      yield* Effect.forEach(fibers, Fiber.join)
      assert.isTrue(starts.slice(before).every((at) => at === 30_000))
    })
  )

  it.effect("counts each attempt of a retry around it", () =>
    Effect.gen(function* () {
      const { provider, starts } = recorder((count) => (count === 1 ? limited("5 seconds") : finish()))
      const bounded = Retry.make(RateLimit.make(provider, { requests: 1, interval: "20 seconds" }))
      const fiber = yield* fork(ask(bounded))
      yield* TestClock.adjust("20 seconds")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(starts, [0, 20_000])
    })
  )

  it.effect("fails at once where the wait is longer than maxWait, and Fallback calls the next provider", () =>
    Effect.gen(function* () {
      const { provider } = recorder(() => finish())
      const bounded = RateLimit.make(provider, { requests: 1, interval: "1 minute", maxWait: "10 seconds" })
      yield* ask(bounded)
      yield* TestClock.adjust("20 seconds")
      const error = yield* Effect.flip(ask(bounded))
      assert.deepStrictEqual([error.provider, error.reason._tag], ["recorder", "RateLimited"])
      assert.deepStrictEqual(error.retryAfter, Duration.seconds(40))
      assert.isUndefined(error.reason.status)

      const spare = ScriptedProvider.layer([ScriptedProvider.text("Yes.")], { id: "spare" })
      const events = yield* Effect.flatMap(Provider.Provider, ({ stream }) =>
        Stream.runCollect(stream(request))
      ).pipe(Effect.provide(Fallback.layer([Layer.succeed(Provider.Provider, bounded), spare])))
      assert.isTrue(events.some((event) => event._tag === "Start" && event.provider === "spare"))
    })
  )

  it.effect("ends a wait in the queue after maxWait", () =>
    Effect.gen(function* () {
      const { provider } = recorder(() => finish())
      const bounded = RateLimit.make(provider, { requests: 1, interval: "8 seconds", maxWait: "10 seconds" })
      yield* ask(bounded)
      const first = yield* fork(ask(bounded))
      const second = yield* fork(Effect.exit(ask(bounded)))
      yield* TestClock.adjust("8 seconds")
      yield* Fiber.join(first)
      yield* TestClock.adjust("2 seconds")
      assert.isTrue(Exit.isFailure(yield* Fiber.join(second)))
    })
  )

  it.effect("leaves no start behind where a wait is interrupted", () =>
    Effect.gen(function* () {
      const { provider, starts } = recorder(() => finish())
      const bounded = RateLimit.make(provider, { requests: 1, interval: "10 seconds" })
      yield* ask(bounded)
      const left = yield* Effect.forEach([1, 2, 3], () => fork(ask(bounded)))
      const stays = yield* fork(ask(bounded))
      yield* TestClock.adjust("5 seconds")
      yield* Effect.forEach(left, Fiber.interrupt)
      yield* TestClock.adjust("5 seconds")
      yield* Fiber.join(stays)
      assert.deepStrictEqual(starts, [0, 10_000])
    })
  )
})

const small = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** Calls that come one after the other. Times are in milliseconds. */
const Plan = Schema.Struct({
  requests: small(1, 4),
  interval: small(1, 20),
  calls: Schema.Array(
    Schema.Struct({
      after: small(0, 12),
      /** The time of the answer. */
      takes: small(0, 5),
      /** The time after which its caller leaves, if any. */
      leaves: Schema.Union([Schema.Null, Schema.Null, small(0, 30)]),
      /** The wait that the vendor names, if any. */
      refusedFor: Schema.Union([Schema.Null, Schema.Null, Schema.Null, small(1, 15)])
    })
  ).check(Schema.isMaxLength(14))
})

/** Plays a plan, and gives the laws that it broke. */
const play = Effect.fnUntraced(function* ({ calls, interval, requests }: typeof Plan.Type) {
  const broken: Array<string> = []
  let heldUntil = 0
  const starts: Array<{ readonly at: number; readonly call: number }> = []
  const provider = Provider.Provider.of({
    id: "plan",
    stream: ({ model }) =>
      Stream.unwrap(
        Effect.map(Clock.currentTimeMillis, (at) => {
          const call = Number(model)
          starts.push({ at, call })
          if (at < heldUntil) broken.push(`call ${call} starts at ${at}, before ${heldUntil}`)
          const { refusedFor = null, takes = 0 } = calls[call] ?? {}
          if (refusedFor === null) return Stream.fromIterable(finish())
          const refuse = Effect.suspend(() => {
            heldUntil = Math.max(heldUntil, at + takes + refusedFor)
            const reason = limited(refusedFor)
            return Effect.fail(new ProviderError.ProviderError({ provider: "plan", reason }))
          })
          return Stream.fromEffect(Effect.delay(refuse, takes))
        })
      )
  })
  const bounded = RateLimit.make(provider, { requests, interval, maxWait: Infinity })
  const fibers: Array<Fiber.Fiber<unknown>> = []
  for (const [index, { after, leaves }] of calls.entries()) {
    yield* TestClock.adjust(after)
    const call = Effect.exit(ask(bounded, { model: String(index) }))
    fibers.push(yield* fork(leaves === null ? Effect.asVoid(call) : Effect.timeoutOption(call, leaves)))
  }
  yield* TestClock.adjust("1 hour")
  const ended = fibers.every((fiber) => fiber.pollUnsafe() !== undefined)
  if (!ended) broken.push("a call waits for ever")
  for (const { at } of starts) {
    const within = starts.filter((other) => other.at >= at && other.at < at + interval)
    if (within.length > requests) broken.push(`${within.length} starts from ${at} on`)
  }
  for (const [index, { leaves }] of calls.entries()) {
    const count = starts.filter(({ call }) => call === index).length
    if (leaves === null && count !== 1) broken.push(`call ${index} starts ${count} times`)
  }
  const order = starts.map(({ call }) => call)
  if (order.some((call, at) => call < (order[at - 1] ?? 0))) broken.push(`the order is ${order.join(" ")}`)
  return broken
})

describe("the law of RateLimit", () => {
  it.effect(
    "holds for any calls: no interval has more starts, and each call that stays starts in its turn",
    () =>
      Effect.gen(function* () {
        const lawful = Effect.fnUntraced(function* (plan: typeof Plan.Type) {
          const broken = yield* play(plan)
          return broken.length === 0 || (yield* Effect.fail(broken))
        })
        const result = yield* Arbitrary.checkEffect(Arbitrary.schema(Plan), lawful, {
          seed: 1,
          runs: 300,
          size: 14,
          maxShrinks: 300
        })
        assert.strictEqual(Arbitrary.formatCheckFailure(result), undefined)
      })
  )
})
