import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Latch, Layer, Schedule, Schema, Stream } from "effect"
import { Loop, Provider, ProviderError, ToolRegistry } from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import * as Invariants from "./invariants.ts"
import {
  failureOf,
  ofTag,
  play,
  range,
  reasonOf,
  resultOf,
  say,
  settle,
  status,
  tags,
  texts
} from "./play.ts"

const done = ScriptedProvider.text("done")
const busy = new ProviderError.Overloaded({ detail: "busy" })
const failing = ScriptedProvider.fail(busy)
/** 1 s, 2 s, 4 s …, exactly. */
const exact = Schedule.exponential("1 second").pipe(
  Schedule.setInputType<ProviderError.ProviderError>(),
  Schedule.while(({ input }) => input.isRetryable),
  Schedule.upTo({ times: 2 })
)

/** Plays a script behind a retry, and lets this much time pass. */
const retried = Effect.fnUntraced(function* (
  script: ScriptedProvider.Script,
  options: Retry.Options = { schedule: exact },
  time: Duration.Input = "1 hour",
  setup: Parameters<typeof play>[1] = {}
) {
  const run = yield* Effect.forkChild(play(script, { ...setup, around: Retry.layer(options) }))
  yield* settle()
  yield* TestClock.adjust(time)
  return yield* Fiber.join(run)
})

/** When each request was made, in milliseconds of the test. */
const timesOf = Effect.fnUntraced(function* (
  script: ReadonlyArray<ScriptedProvider.Turn>,
  options?: Retry.Options
) {
  const times: Array<number> = []
  const note = Effect.clockWith((clock) => Effect.sync(() => times.push(clock.currentTimeMillisUnsafe())))
  yield* retried(
    script.map(({ steps }) => ScriptedProvider.turn(Step.run(note), ...steps)),
    options
  )
  return times
})

describe("Retry", () => {
  it.effect("a provider by itself is asked once", () =>
    Effect.gen(function* () {
      const { exit, requests } = yield* play([failing])
      assert.strictEqual(requests.length, 1)
      assert.strictEqual(reasonOf(exit)?._tag, "ProviderError")
    })
  )

  it.effect("asks again after a second and after two, give or take a fifth (row 250)", () =>
    Effect.gen(function* () {
      const times = yield* timesOf([failing, failing, done], {})
      const [first, second, third] = times
      assert.strictEqual(first, 0)
      const one = (second ?? 0) - (first ?? 0)
      const two = (third ?? 0) - (second ?? 0)
      assert.isTrue(one >= 800 && one <= 1200, `${one} ms`)
      assert.isTrue(two >= 1600 && two <= 2400, `${two} ms`)
    })
  )

  it.effect(
    "gives up after three tries in all, with the last failure, and one failed answer (rows 39, 250)",
    () =>
      Effect.gen(function* () {
        const last = new ProviderError.ServerError({ detail: "third" })
        const { events, exit, requests, view } = yield* retried(
          [failing, failing, ScriptedProvider.fail(last)],
          {}
        )
        assert.strictEqual(requests.length, 3)
        const reason = reasonOf(exit)
        assert.strictEqual(reason?._tag === "ProviderError" ? reason.reason.detail : "", "third")
        assert.deepStrictEqual(
          view.messages.map(({ role }) => role),
          ["user", "assistant"]
        )
        assert.strictEqual(failureOf(exit)?.result.report.retries, 2)
        assert.deepStrictEqual(Invariants.broken(events), [])
      })
  )

  it.effect("tells each try before it waits: what failed, which try, how long (row 107)", () =>
    Effect.gen(function* () {
      const { events, view } = yield* retried([failing, failing, done])
      assert.deepStrictEqual(
        ofTag(events, "ModelCallRetry").map(({ attempt, delayMs, error, timestamp }) => [
          attempt,
          delayMs,
          error.reason._tag,
          timestamp
        ]),
        [
          [1, 1000, "Overloaded", 0],
          [2, 2000, "Overloaded", 1000]
        ]
      )
      assert.deepStrictEqual(
        ofTag(events, "ModelCallError").map(({ willRetry }) => willRetry),
        [true, true]
      )
      assert.strictEqual(ofTag(events, "ModelCallStart").length, 1)
      assert.strictEqual(ofTag(events, "MessageStart").length, 2)
      assert.deepStrictEqual(texts(view.messages), ["hi", "done"])
      assert.deepStrictEqual(Invariants.broken(events), [])
    })
  )

  it.effect("does not ask again once something was said, and keeps what was said (row 250)", () =>
    Effect.gen(function* () {
      const said = [
        Step.text("Hel"),
        Step.thinking("hm"),
        Step.toolCall("a", {}),
        Step.event({ _tag: "TextStart", contentIndex: 0 })
      ]
      for (const step of said) {
        const { requests, view } = yield* retried([
          ScriptedProvider.turn(Step.start, step, Step.fail(busy)),
          done
        ])
        assert.strictEqual(requests.length, 1)
        assert.strictEqual(view.status, "failed")
      }
    })
  )

  it.effect("asks again when only a start was said, and the answer names who answered", () =>
    Effect.gen(function* () {
      const { requests, view } = yield* retried([
        ScriptedProvider.turn(
          Step.event({ _tag: "Start", provider: "p", model: "first", protocol: "x", responseId: "1" }),
          Step.fail(busy)
        ),
        ScriptedProvider.turn(
          Step.event({ _tag: "Start", provider: "p", model: "second", protocol: "x", responseId: "2" }),
          Step.text("ok"),
          Step.finish()
        )
      ])
      assert.strictEqual(requests.length, 2)
      assert.deepInclude(view.messages[1], { model: "second", responseId: "2" })
    })
  )

  it.effect("asks again when an answer ended before it said anything", () =>
    Effect.gen(function* () {
      const cut = ScriptedProvider.fail(new ProviderError.StreamTruncated({ detail: "cut" }))
      const { requests, view } = yield* retried([cut, done])
      assert.strictEqual(requests.length, 2)
      assert.strictEqual(view.status, "completed")
    })
  )

  it.effect("does not ask again where that cannot help", () =>
    Effect.gen(function* () {
      const hopeless: ReadonlyArray<ProviderError.Reason> = [
        new ProviderError.QuotaExceeded({ detail: "" }),
        new ProviderError.Unauthenticated({ detail: "" }),
        new ProviderError.Forbidden({ detail: "" }),
        new ProviderError.NotFound({ detail: "" }),
        new ProviderError.InvalidRequest({ detail: "" }),
        new ProviderError.ContextOverflow({ detail: "" }),
        new ProviderError.ContentPolicy({ detail: "" }),
        new ProviderError.UnsupportedContent({ detail: "" }),
        new ProviderError.ModelNotSupported({ detail: "", model: "x" }),
        new ProviderError.Transport({ detail: "", kind: "tls" }),
        new ProviderError.Protocol({ detail: "", kind: "badJson" }),
        new ProviderError.StreamStalled({ detail: "", kind: "idle", after: Duration.seconds(120) })
      ]
      for (const reason of hopeless) {
        const { requests } = yield* retried([ScriptedProvider.fail(reason), done], {})
        assert.strictEqual(requests.length, 1, reason._tag)
      }
    })
  )

  it.effect("asks again where it may", () =>
    Effect.gen(function* () {
      const hopeful: ReadonlyArray<ProviderError.Reason> = [
        busy,
        new ProviderError.RateLimited({ detail: "" }),
        new ProviderError.ServerError({ detail: "" }),
        new ProviderError.StreamTruncated({ detail: "" }),
        new ProviderError.Transport({ detail: "", kind: "reset" }),
        new ProviderError.Transport({ detail: "", kind: "refused" }),
        new ProviderError.Transport({ detail: "", kind: "dns" })
      ]
      for (const reason of hopeful) {
        const { requests } = yield* retried([ScriptedProvider.fail(reason), done], {})
        assert.strictEqual(requests.length, 2, reason._tag)
      }
    })
  )

  it.effect("goes by the reason, not by the words of a message", () =>
    Effect.gen(function* () {
      const misleading = [
        [new ProviderError.InvalidRequest({ detail: "req_500: internal server error 503" }), 1],
        [new ProviderError.RateLimited({ detail: "ThrottlingException: Too many tokens, please wait" }), 2],
        [new ProviderError.Transport({ detail: "prompt is too long", kind: "reset" }), 2],
        [new ProviderError.ContextOverflow({ detail: "rate limit exceeded, retry later" }), 1]
      ] as const
      for (const [reason, count] of misleading) {
        const { requests } = yield* retried([ScriptedProvider.fail(reason), done], {})
        assert.strictEqual(requests.length, count, reason._tag)
      }
    })
  )

  it.effect("does not hide a defect behind another try", () =>
    Effect.gen(function* () {
      const { events, requests } = yield* retried([ScriptedProvider.die("boom"), done])
      assert.strictEqual(requests.length, 1)
      assert.strictEqual(status(events), "failed")
    })
  )

  describe("retryAfter", () => {
    const limited = (retryAfter: Duration.Input) =>
      ScriptedProvider.fail(
        new ProviderError.RateLimited({ detail: "", retryAfter: Duration.fromInputUnsafe(retryAfter) })
      )

    it.effect(
      "is waited for, to the millisecond, when it is longer than the schedule's delay (row 250)",
      () =>
        Effect.gen(function* () {
          const times = yield* timesOf([limited("30 seconds"), limited("10 millis"), done], {
            schedule: exact
          })
          assert.deepStrictEqual(times, [0, 30_000, 32_000])
        })
    )

    it.effect("of more than a minute is not waited for (row 250)", () =>
      Effect.gen(function* () {
        const { exit, requests } = yield* retried([limited("61 seconds"), done], {})
        assert.strictEqual(requests.length, 1)
        const reason = reasonOf(exit)
        assert.deepStrictEqual(
          reason?._tag === "ProviderError" ? reason.retryAfter : undefined,
          Duration.seconds(61)
        )
        assert.strictEqual((yield* retried([limited("60 seconds"), done], {})).requests.length, 2)
      })
    )

    it.effect("may be as long as maxRetryAfter says", () =>
      Effect.gen(function* () {
        const patient = yield* retried([limited("10 minutes"), done], { maxRetryAfter: "10 minutes" })
        assert.strictEqual(patient.requests.length, 2)
        const hasty = yield* retried([limited("2 seconds"), done], { maxRetryAfter: "1 second" })
        assert.strictEqual(hasty.requests.length, 1)
      })
    )
  })

  describe("the wait", () => {
    it.effect("ends with the run: a cancel ends both at once", () =>
      Effect.gen(function* () {
        const provider = yield* ScriptedProvider.make([failing, done])
        const waiting = yield* Latch.make(false)
        const heard: Array<string> = []
        const run = yield* Loop.stream("hi", { messages: [] }, { model: "m" }).pipe(
          Stream.runForEach((event) => {
            heard.push(event._tag)
            return event._tag === "ModelCallRetry" ? waiting.open : Effect.void
          }),
          Effect.provide([Retry.layer({ schedule: exact })(provider.layer), ToolRegistry.layer()]),
          Effect.forkChild
        )
        yield* waiting.await
        yield* settle()
        yield* Fiber.interrupt(run)
        yield* TestClock.adjust("1 hour")
        assert.strictEqual((yield* provider.requests).length, 1)
        assert.notInclude(heard, "MessageDelta")
      })
    )

    it.effect("F118: is cut by executionTime", () =>
      Effect.gen(function* () {
        const { exit, requests } = yield* retried([failing, done], { schedule: exact }, 500, {
          options: { limits: { executionTime: 500 } }
        })
        assert.strictEqual(requests.length, 1)
        assert.deepInclude(reasonOf(exit), { limit: "executionTime", value: 500 })
      })
    )
  })

  it.effect("counts each model call anew", () =>
    Effect.gen(function* () {
      const { requests, view } = yield* retried(
        [failing, failing, ScriptedProvider.toolCall("a", {}), failing, failing, done],
        {},
        "1 hour",
        { tools: [say("a")] }
      )
      assert.strictEqual(requests.length, 6)
      assert.strictEqual(view.status, "completed")
    })
  )

  it.effect("takes any schedule", () =>
    Effect.gen(function* () {
      const schedule = Schedule.spaced("10 seconds").pipe(
        Schedule.setInputType<ProviderError.ProviderError>(),
        Schedule.upTo({ times: 9 })
      )
      const times = yield* timesOf([...range(9).map(() => failing), done], { schedule })
      assert.deepStrictEqual(
        times,
        range(10).map((n) => n * 10_000)
      )
    })
  )

  it.effect("is a function on layers: two providers of one app keep their own", () =>
    Effect.gen(function* () {
      const left = yield* ScriptedProvider.make([done], { id: "left" })
      const right = yield* ScriptedProvider.make([done], { id: "right" })
      const decorate = Retry.layer()
      const idOf = Effect.map(Provider.Provider, ({ id }) => id)
      const ids = yield* Effect.all([
        Effect.provide(idOf, decorate(left.layer)),
        Effect.provide(idOf, decorate(right.layer))
      ])
      assert.deepStrictEqual(ids, ["left", "right"])
    })
  )

  it.effect("one call's stream may be run twice, each with its own patience", () =>
    Effect.gen(function* () {
      const script = yield* ScriptedProvider.make([failing, failing, done, failing, failing, done])
      const once = Retry.make(script.provider, { schedule: exact }).stream({
        model: "m",
        messages: [],
        tools: [],
        options: {}
      })
      for (const _ of range(2)) {
        const run = yield* Effect.forkChild(Stream.runCollect(once))
        yield* settle()
        yield* TestClock.adjust("1 hour")
        assert.include(
          (yield* Fiber.join(run)).map(({ _tag }) => _tag),
          "Finish"
        )
      }
    })
  )

  it.effect("works behind a router, for the model that failed", () =>
    Effect.gen(function* () {
      const flaky = yield* ScriptedProvider.make([failing, done])
      const router = Layer.succeed(
        Provider.Provider,
        Provider.router({ flaky: Retry.make(flaky.provider, { schedule: exact }) })
      )
      const run = yield* Loop.run("hi", { messages: [] }, { model: "flaky/m" }).pipe(
        Effect.provide([router, ToolRegistry.layer()]),
        Effect.exit,
        Effect.forkChild
      )
      yield* settle()
      yield* TestClock.adjust("1 second")
      assert.strictEqual(resultOf(yield* Fiber.join(run))?.status, "completed")
      assert.deepStrictEqual(
        (yield* flaky.requests).map(({ model }) => model),
        ["m", "m"]
      )
    })
  )

  it.effect("retried events survive JSON", () =>
    Effect.gen(function* () {
      const { events } = yield* retried([failing, done])
      const codec = Schema.toCodecJson(ProviderError.ProviderError)
      for (const { error } of ofTag(events, "ModelCallRetry")) {
        const encoded: unknown = yield* Schema.encodeEffect(codec)(error)
        const decoded = yield* Schema.decodeUnknownEffect(codec)(JSON.parse(JSON.stringify(encoded)))
        assert.isTrue(decoded.isRetryable)
        assert.strictEqual(decoded.message, error.message)
      }
      assert.include(tags(events), "ModelCallRetry")
    })
  )
})
