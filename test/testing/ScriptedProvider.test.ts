import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, Option, Ref, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Message, ModelEvent, Provider, ProviderError } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"

const request = (text = "Hi"): Provider.ModelRequest => ({
  model: "some-model",
  messages: [Message.user(text, 0)],
  tools: [],
  options: {}
})

/** Plays one turn and gives what was said. */
const say = (turn: ScriptedProvider.Turn) =>
  Effect.gen(function* () {
    const { provider } = yield* ScriptedProvider.make([turn])
    return yield* Stream.runCollect(provider.stream(request()))
  })

/** Plays one turn up to its failure, and gives what was said until then. */
const sayAndFail = Effect.fnUntraced(function* (turn: ScriptedProvider.Turn) {
  const { provider } = yield* ScriptedProvider.make([turn])
  const said: Array<ModelEvent.ModelEvent> = []
  const exit = yield* provider.stream(request()).pipe(
    Stream.runForEach((event) => Effect.sync(() => said.push(event))),
    Effect.exit
  )
  return { tags: said.map((event) => event._tag), exit }
})

const defectOf = (exit: Exit.Exit<unknown, unknown>): unknown =>
  Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined

const start: ModelEvent.ModelEvent = {
  _tag: "Start",
  provider: "scripted",
  model: "some-model",
  protocol: "scripted"
}

describe("ScriptedProvider", () => {
  describe("answers", () => {
    it.effect("a text is said from start to finish", () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* say(ScriptedProvider.text(["Hel", "lo"], { usage: { output: 2 } })), [
          start,
          { _tag: "TextStart", contentIndex: 0 },
          { _tag: "TextDelta", contentIndex: 0, delta: "Hel" },
          { _tag: "TextDelta", contentIndex: 0, delta: "lo" },
          { _tag: "TextEnd", contentIndex: 0 },
          {
            _tag: "Finish",
            stopReason: "stop",
            usage: { input: 0, output: 2, cacheRead: 0, cacheWrite: 0, total: 2 }
          }
        ])
      })
    )

    it.effect("a tool call brings its params as JSON and an id", () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* say(ScriptedProvider.toolCall("add", { a: 2 })), [
          start,
          { _tag: "ToolCallStart", contentIndex: 0, id: "call-1", name: "add" },
          { _tag: "ToolCallDelta", contentIndex: 0, delta: '{"a":2}' },
          { _tag: "ToolCallEnd", contentIndex: 0, rawArguments: '{"a":2}' },
          { _tag: "Finish", stopReason: "toolUse" }
        ])
      })
    )

    it.effect("tool calls are numbered over the whole script, unless they bring an id", () =>
      Effect.gen(function* () {
        const { provider } = yield* ScriptedProvider.make([
          ScriptedProvider.toolCalls({ name: "a", params: {} }, { name: "b", params: {}, id: "mine" }),
          ScriptedProvider.toolCall("c", {})
        ])
        const events = [
          ...(yield* Stream.runCollect(provider.stream(request()))),
          ...(yield* Stream.runCollect(provider.stream(request())))
        ]

        assert.deepStrictEqual(
          events.flatMap((event) => (event._tag === "ToolCallStart" ? [event.id] : [])),
          ["call-1", "mine", "call-2"]
        )
      })
    )

    it.effect("blocks of a turn are numbered, and fold into a message", () =>
      Effect.gen(function* () {
        const events = yield* say(
          ScriptedProvider.turn(
            Step.start,
            Step.thinking(["pon", "der"], { opaque: "signature" }),
            Step.thinking([], { opaque: "hidden", redacted: true }),
            Step.text("Calling"),
            Step.rawToolCall("add", ['{"a', '":1}'], { id: "t1" }),
            Step.finish("toolUse")
          )
        )

        assert.deepStrictEqual(events.reduce(ModelEvent.append, ModelEvent.emptyReply).content, [
          { type: "thinking", text: "ponder", opaque: "signature" },
          { type: "thinking", text: "", opaque: "hidden", redacted: true },
          { type: "text", text: "Calling" },
          { type: "toolCall", id: "t1", name: "add", rawArguments: '{"a":1}', params: { a: 1 } }
        ])
      })
    )

    it.effect("any event can be said as it is", () =>
      Effect.gen(function* () {
        const retracted: ModelEvent.ModelEvent = { _tag: "Retracted" }
        assert.deepStrictEqual(yield* say(ScriptedProvider.turn(Step.event(retracted))), [retracted])
      })
    )

    it.effect("an answer may depend on the request (row 259)", () =>
      Effect.gen(function* () {
        const { provider } = yield* ScriptedProvider.make([
          ({ messages }) => ScriptedProvider.text(`${messages.length} messages`)
        ])
        const events = yield* Stream.runCollect(provider.stream(request()))

        assert.isTrue(events.some((event) => event._tag === "TextDelta" && event.delta === "1 messages"))
      })
    )
  })

  describe("trouble", () => {
    it.effect("a failing call says nothing, and a bare reason names the provider (row 258)", () =>
      Effect.gen(function* () {
        const reason = new ProviderError.RateLimited({ detail: "slow down" })
        const { exit, tags } = yield* sayAndFail(ScriptedProvider.fail(reason))

        assert.deepStrictEqual(tags, [])
        assert.deepStrictEqual(
          exit,
          Exit.fail(new ProviderError.ProviderError({ provider: "scripted", reason }))
        )
      })
    )

    it.effect("a failure in the middle keeps what was said before it", () =>
      Effect.gen(function* () {
        const error = new ProviderError.ProviderError({
          provider: "other",
          reason: new ProviderError.Overloaded({ detail: "" })
        })
        const { exit, tags } = yield* sayAndFail(
          ScriptedProvider.turn(Step.start, Step.text("par"), Step.fail(error), Step.text("never"))
        )

        assert.deepStrictEqual(tags, ["Start", "TextStart", "TextDelta", "TextEnd"])
        assert.deepStrictEqual(exit, Exit.fail(error))
      })
    )

    it.effect("a defect is not a failure", () =>
      Effect.gen(function* () {
        const { exit, tags } = yield* sayAndFail(
          ScriptedProvider.turn(Step.start, Step.die(new Error("socket died")))
        )

        assert.deepStrictEqual(tags, ["Start"])
        assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
        assert.match(String(defectOf(exit)), /socket died/)
      })
    )

    it.effect("an answer may end without a finish", () =>
      Effect.gen(function* () {
        const events = yield* say(
          ScriptedProvider.turn(Step.start, Step.text("cut"), Step.eof, Step.finish())
        )
        assert.deepStrictEqual(events.at(-1), { _tag: "TextEnd", contentIndex: 0 })
      })
    )

    it.effect("a call the script has no turn for dies, and says what was asked", () =>
      Effect.gen(function* () {
        const { provider } = yield* ScriptedProvider.make([ScriptedProvider.text("one")])
        yield* Stream.runDrain(provider.stream(request()))
        const exit = yield* Effect.exit(Stream.runDrain(provider.stream(request("once more"))))

        assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
        assert.match(String(defectOf(exit)), /has 1 turn, but the provider was called 2 times.*once more/)
      })
    )

    it.effect("a call the script has no turn for can be answered (row 259)", () =>
      Effect.gen(function* () {
        const { provider } = yield* ScriptedProvider.make([], {
          exhausted: (_, call) => ScriptedProvider.text(`call ${call}`)
        })
        const events = yield* Stream.runCollect(provider.stream(request()))

        assert.isTrue(events.some((event) => event._tag === "TextDelta" && event.delta === "call 1"))
      })
    )
  })

  describe("time", () => {
    it.effect("sleeps by the clock of the test (row 259)", () =>
      Effect.gen(function* () {
        const said = yield* Ref.make(0)
        const reached = yield* Deferred.make<void>()
        const { provider } = yield* ScriptedProvider.make([
          ScriptedProvider.turn(
            Step.start,
            Step.run(Deferred.succeed(reached, undefined)),
            Step.sleep("1 minute"),
            Step.finish()
          )
        ])
        const fiber = yield* provider.stream(request()).pipe(
          Stream.runForEach(() => Ref.update(said, (n) => n + 1)),
          Effect.forkChild
        )
        yield* Deferred.await(reached)
        yield* TestClock.adjust("59 seconds")
        const early = yield* Ref.get(said)
        yield* TestClock.adjust("1 second")
        yield* Fiber.join(fiber)

        assert.deepStrictEqual([early, yield* Ref.get(said)], [1, 2])
      })
    )

    it.effect("others run between two steps", () =>
      Effect.gen(function* () {
        const order: Array<string> = []
        const log = (who: string) => Effect.sync(() => order.push(who))
        const { provider } = yield* ScriptedProvider.make([ScriptedProvider.text(["a", "b"])])
        yield* Effect.all(
          [
            Stream.runForEach(provider.stream(request()), () => log("model")),
            Effect.repeat(Effect.andThen(log("other"), Effect.yieldNow), { times: 5 })
          ],
          { concurrency: "unbounded" }
        )

        assert.notStrictEqual(order.lastIndexOf("other"), 5)
        assert.isAbove(order.lastIndexOf("other"), order.indexOf("model"))
      })
    )

    it.effect("an effect runs at its step", () =>
      Effect.gen(function* () {
        const reached = yield* Deferred.make<void>()
        const { provider } = yield* ScriptedProvider.make([
          ScriptedProvider.turn(Step.start, Step.run(Deferred.succeed(reached, undefined)), Step.never)
        ])
        const fiber = yield* Effect.forkChild(Stream.runDrain(provider.stream(request())))
        yield* Deferred.await(reached)
        yield* Fiber.interrupt(fiber)

        assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
      })
    )

    it.effect("leaving the stream stops the turn", () =>
      Effect.gen(function* () {
        const reached = yield* Deferred.make<void>()
        const left = yield* Deferred.make<void>()
        const { provider } = yield* ScriptedProvider.make([
          ScriptedProvider.turn(
            Step.start,
            Step.run(
              Deferred.succeed(reached, undefined).pipe(
                Effect.andThen(Effect.never),
                Effect.onInterrupt(() => Deferred.succeed(left, undefined))
              )
            )
          )
        ])
        const fiber = yield* Effect.forkChild(Stream.runDrain(provider.stream(request())))
        yield* Deferred.await(reached)
        yield* Fiber.interrupt(fiber)

        assert.isTrue(Option.isSome(yield* Deferred.poll(left)))
      })
    )

    it.effect("a turn that ignores an abort goes on, but does not hold its reader", () =>
      Effect.gen(function* () {
        const reached = yield* Deferred.make<void>()
        const finished = yield* Deferred.make<void>()
        const { provider } = yield* ScriptedProvider.make([
          ScriptedProvider.ignoringAbort(
            ScriptedProvider.turn(
              Step.start,
              Step.run(Deferred.succeed(reached, undefined)),
              Step.sleep("1 second"),
              Step.run(Deferred.succeed(finished, undefined)),
              Step.finish()
            )
          )
        ])
        const fiber = yield* Effect.forkChild(Stream.runDrain(provider.stream(request())))
        yield* Deferred.await(reached)
        yield* TestClock.adjust("500 millis")
        yield* Fiber.interrupt(fiber)
        const before = yield* Deferred.poll(finished)
        yield* TestClock.adjust("500 millis")
        yield* Deferred.await(finished)

        assert.isTrue(Option.isNone(before))
      })
    )
  })

  describe("requests", () => {
    it.effect("remembers what was asked, failed calls included (row 258)", () =>
      Effect.gen(function* () {
        const { provider, requests } = yield* ScriptedProvider.make([
          ScriptedProvider.fail(new ProviderError.ServerError({ detail: "" })),
          ScriptedProvider.text("ok")
        ])
        const [first, second] = [request("first"), request("second")]
        yield* Effect.ignore(Stream.runDrain(provider.stream(first)))
        const before = yield* requests
        yield* Stream.runDrain(provider.stream(second))

        assert.deepStrictEqual(before, [first])
        assert.deepStrictEqual(yield* requests, [first, second])
      })
    )

    it.effect("does not count a stream that nobody reads", () =>
      Effect.gen(function* () {
        const { provider, requests } = yield* ScriptedProvider.make([ScriptedProvider.text("ok")])
        assert.isDefined(provider.stream(request()))
        assert.deepStrictEqual(yield* requests, [])
      })
    )

    it.effect("the layer of a script provides the same provider", () =>
      Effect.gen(function* () {
        const script = yield* ScriptedProvider.make([ScriptedProvider.text("ok")], { id: "mine" })
        const id = yield* Provider.Provider.useSync((provider) => provider.id).pipe(
          Effect.provide(script.layer)
        )
        assert.strictEqual(id, "mine")
      })
    )

    it.effect("a layer alone plays the script too", () =>
      Effect.gen(function* () {
        const provider = yield* Provider.Provider
        const events = yield* Stream.runCollect(provider.stream(request()))
        assert.strictEqual(events.length, 5)
      }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("ok")])))
    )
  })
})
