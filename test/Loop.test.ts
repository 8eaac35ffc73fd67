import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Cause, Exit, Fiber, Latch, Layer, Schema, Stream, Tracer } from "effect"
import {
  AgentEvent,
  ContextManager,
  Hook,
  HookManager,
  Loop,
  Message,
  Provider,
  ProviderError,
  RunOptions,
  Tool,
  ToolRegistry,
  Transcript
} from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { TestClock } from "effect/testing"

const add = Tool.make({
  name: "add",
  description: "Adds two numbers.",
  params: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  execute: ({ a, b }) => Effect.succeed(a + b)
})

interface Setup {
  readonly tools?: ReadonlyArray<Tool.Runnable>
  readonly hooks?: ReadonlyArray<Hook.Runnable>
  readonly options?: Partial<RunOptions.RunOptions>
  readonly messages?: ReadonlyArray<Message.Message>
}

/** Runs the loop against a script, with `add` registered. */
const run = Effect.fnUntraced(function* (script: ScriptedProvider.Script, setup: Setup = {}) {
  const provider = yield* ScriptedProvider.make(script)
  const events: Array<AgentEvent.AgentEvent> = []
  const exit = yield* Loop.stream(
    "2 + 3?",
    { messages: setup.messages ?? [] },
    { model: "m", ...setup.options }
  ).pipe(
    Stream.runForEach((event) => Effect.sync(() => events.push(event))),
    Effect.provide([
      provider.layer,
      ToolRegistry.layer(...(setup.tools ?? [add])),
      HookManager.layer(...(setup.hooks ?? []))
    ]),
    Effect.exit
  )
  return {
    events,
    exit,
    requests: yield* provider.requests,
    view: events.reduce(AgentEvent.fold, AgentEvent.initial())
  }
})

const ofTag = <const T extends AgentEvent.AgentEvent["_tag"]>(
  events: ReadonlyArray<AgentEvent.AgentEvent>,
  tag: T
) => events.filter((event): event is AgentEvent.OfTag<T> => event._tag === tag)
const outcomes = (events: ReadonlyArray<AgentEvent.AgentEvent>) =>
  ofTag(events, "ToolExecutionEnd").map(({ outcome }) => outcome)
const resultText = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "toolResult" ? [Message.textOf(message)] : []))

describe("Loop", () => {
  it.effect("streams the pieces of an answer, then ends once (row 54)", () =>
    Effect.gen(function* () {
      const { events } = yield* run([ScriptedProvider.text(["Hel", "lo"])])
      const pieces = events.filter(AgentEvent.isTextDelta).map((event) => event.delta.delta)
      assert.deepStrictEqual(pieces, ["Hel", "lo"])
      assert.strictEqual(events.filter(({ _tag }) => _tag === "RunEnd").length, 1)
      assert.strictEqual(events.at(-1)?._tag, "RunEnd")
    })
  )

  it.effect("sends a tool's result back to the model (row 70)", () =>
    Effect.gen(function* () {
      const { requests, view } = yield* run([
        ScriptedProvider.toolCall("add", { a: 2, b: 3 }),
        ScriptedProvider.text("5")
      ])
      assert.deepStrictEqual(resultText(requests[1]?.messages ?? []), ["5"])
      assert.strictEqual(view.status, "completed")
    })
  )

  it.effect(
    "tells the model of an unknown tool, bad arguments, broken JSON and a failure, and goes on (rows 251, 261)",
    () =>
      Effect.gen(function* () {
        const moody = Tool.make({
          name: "moody",
          description: "Fails.",
          execute: () => Effect.fail("not today")
        })
        const { events, requests } = yield* run(
          [
            ScriptedProvider.turn(
              Step.toolCall("nope", {}),
              Step.toolCall("add", { a: "x", b: 3 }),
              Step.rawToolCall("add", ['{"a":']),
              Step.toolCall("moody", {}),
              Step.finish("toolUse")
            ),
            ScriptedProvider.text("I see")
          ],
          { tools: [add, moody] }
        )
        assert.deepStrictEqual(outcomes(events), [
          "unknownTool",
          "invalidArguments",
          "invalidArguments",
          "error"
        ])
        const [unknown, bad, broken, failed] = resultText(requests[1]?.messages ?? [])
        assert.include(unknown, "not found")
        assert.include(bad, '"a"')
        assert.include(broken, "not valid JSON")
        assert.strictEqual(failed, "not today")
      })
  )

  it.effect("coerces scalars where nothing is invented", () =>
    Effect.gen(function* () {
      const { requests } = yield* run([
        ScriptedProvider.toolCall("add", { a: "2", b: 3 }),
        ScriptedProvider.text("5")
      ])
      assert.deepStrictEqual(resultText(requests[1]?.messages ?? []), ["5"])
    })
  )

  it.effect("survives a tool that dies, and keeps the cause out of the answer (rows 162, 261)", () =>
    Effect.gen(function* () {
      const broken = Tool.make({
        name: "broken",
        description: "Dies.",
        execute: () => Effect.die(new Error("boom"))
      })
      const { events, view } = yield* run(
        [ScriptedProvider.toolCall("broken", {}), ScriptedProvider.text("oh")],
        {
          tools: [broken]
        }
      )
      assert.deepStrictEqual(outcomes(events), ["error"])
      assert.strictEqual(view.status, "completed")
    })
  )

  it.effect("runs calls side by side, and answers them in the order they were made (row 152)", () =>
    Effect.gen(function* () {
      const began = yield* Latch.make(false)
      const slow = Tool.make({
        name: "wait",
        description: "Waits.",
        params: Schema.Struct({ ms: Schema.Finite }),
        execute: ({ ms }) =>
          Effect.andThen(ms === 10 ? began.open : Effect.void, Effect.as(Effect.sleep(ms), `${ms}`))
      })
      const fiber = yield* run(
        [
          ScriptedProvider.turn(
            Step.toolCall("wait", { ms: 20 }),
            Step.toolCall("wait", { ms: 10 }),
            Step.finish("toolUse")
          ),
          ScriptedProvider.text("done")
        ],
        { tools: [slow] }
      ).pipe(Effect.forkChild)
      yield* began.await
      yield* TestClock.adjust(20)
      const { events, requests } = yield* Fiber.join(fiber)
      assert.deepStrictEqual(
        ofTag(events, "ToolExecutionEnd").map(({ result }) => result.content),
        [[Message.text("10")], [Message.text("20")]]
      )
      assert.deepStrictEqual(resultText(requests[1]?.messages ?? []), ["20", "10"])
    })
  )

  it.effect("runs calls one after another when told to, or when one tool insists (row 153)", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const named = (name: string, executionMode?: "sequential") =>
        Tool.make({
          name,
          description: name,
          ...(executionMode === undefined ? {} : { executionMode }),
          execute: () =>
            Effect.gen(function* () {
              order.push(`${name} in`)
              yield* Effect.yieldNow
              order.push(`${name} out`)
            })
        })
      yield* run(
        [
          ScriptedProvider.turn(Step.toolCall("one", {}), Step.toolCall("two", {}), Step.finish("toolUse")),
          ScriptedProvider.text("done")
        ],
        { tools: [named("one"), named("two", "sequential")] }
      )
      assert.deepStrictEqual(order, ["one in", "one out", "two in", "two out"])
    })
  )

  it.effect("fails typed after a balanced stream when the turns run out", () =>
    Effect.gen(function* () {
      const { events, exit } = yield* run([ScriptedProvider.toolCall("add", { a: 1, b: 1 })], {
        options: { limits: { maxTurns: 1 } }
      })
      assert.deepStrictEqual(
        events.slice(-3).map(({ _tag }) => _tag),
        ["LimitReached", "RunError", "RunEnd"]
      )
      const failure = Exit.isFailure(exit) ? Exit.findErrorOption(exit) : undefined
      const failed =
        failure?._tag === "Some" && failure.value._tag === "RunFailed" ? failure.value : undefined
      assert.strictEqual(failed?.reason._tag, "LimitExceeded")
      assert.strictEqual(failed?.result.newMessages.length, 3)
    })
  )

  it.effect("fails typed when the provider fails, and keeps what was said (rows 244, 245)", () =>
    Effect.gen(function* () {
      const { events, exit, view } = yield* run([
        ScriptedProvider.turn(Step.text("Hel"), Step.fail(new ProviderError.Overloaded({ detail: "busy" })))
      ])
      assert.isTrue(Exit.isFailure(exit))
      const answer = view.messages.at(-1)
      assert.isTrue(answer?.role === "assistant" && answer.stopReason === "error")
      assert.strictEqual(answer === undefined ? "" : Message.textOf(answer), "Hel")
      assert.deepStrictEqual(
        events.slice(-3).map(({ _tag }) => _tag),
        ["TurnEnd", "RunError", "RunEnd"]
      )
    })
  )

  it.effect("takes an answer without an end for a failure, and runs none of its calls (rows 60, 75)", () =>
    Effect.gen(function* () {
      const { events, exit } = yield* run([
        ScriptedProvider.turn(Step.toolCall("add", { a: 1, b: 1 }), Step.eof)
      ])
      assert.isTrue(Exit.isFailure(exit))
      assert.strictEqual(ofTag(events, "ToolExecutionStart").length, 0)
      assert.strictEqual(ofTag(events, "RunError")[0]?.error._tag, "ProviderError")
    })
  )

  it.effect("dies with a provider's defect, after a balanced stream", () =>
    Effect.gen(function* () {
      const boom = new Error("boom")
      const { events, exit } = yield* run([ScriptedProvider.die(boom)])
      assert.strictEqual(Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined, boom)
      assert.strictEqual(ofTag(events, "RunEnd")[0]?.error?._tag, "Defect")
    })
  )

  it.effect("aborts the model call when the reader leaves, and comes to its end", () =>
    Effect.gen(function* () {
      const aborted = yield* Deferred.make<void>()
      const ended = yield* Deferred.make<string>()
      const stalled = Provider.Provider.of({
        id: "stalled",
        stream: () =>
          Stream.concat(
            Stream.make<[{ _tag: "TextDelta"; contentIndex: 0; delta: "Hel" }]>({
              _tag: "TextDelta",
              contentIndex: 0,
              delta: "Hel"
            }),
            Stream.fromEffect(Effect.never)
          ).pipe(Stream.ensuring(Deferred.succeed(aborted, undefined)))
      })
      yield* Loop.stream("Hi", { messages: [] }, { model: "m" }).pipe(
        Stream.takeUntil((event) => event._tag === "MessageDelta"),
        Stream.runDrain,
        Effect.provide([
          Layer.succeed(Provider.Provider, stalled),
          ToolRegistry.layer(),
          HookManager.layer(
            Hook.afterExecution(({ status }) => Effect.asVoid(Deferred.succeed(ended, status)))
          )
        ])
      )
      yield* Deferred.await(aborted)
      assert.strictEqual(yield* Deferred.await(ended), "cancelled")
    })
  )

  it.effect("stops the tools when it is interrupted, and waits for their finalizers", () =>
    Effect.gen(function* () {
      const began = yield* Deferred.make<void>()
      let cleaned = false
      const slow = Tool.make({
        name: "slow",
        description: "Never ends.",
        execute: () =>
          Effect.andThen(Deferred.succeed(began, undefined), Effect.never).pipe(
            Effect.onInterrupt(() => Effect.sync(() => (cleaned = true)))
          )
      })
      const provider = yield* ScriptedProvider.make([ScriptedProvider.toolCall("slow", {})])
      const fiber = yield* Loop.run("Hi", { messages: [] }, { model: "m" }).pipe(
        Effect.provide([provider.layer, ToolRegistry.layer(slow)]),
        Effect.forkChild
      )
      yield* Deferred.await(began)
      yield* Fiber.interrupt(fiber)
      assert.isTrue(cleaned)
    })
  )

  it.effect("makes a slow reader slow the model (row 68)", () =>
    Effect.gen(function* () {
      let said = 0
      const chatty = Provider.Provider.of({
        id: "chatty",
        stream: () =>
          Stream.fromIterable(Array.from({ length: 20_000 }, (_, index) => index)).pipe(
            Stream.rechunk(10),
            Stream.map((): { _tag: "TextDelta"; contentIndex: number; delta: string } => {
              said++
              return { _tag: "TextDelta", contentIndex: 0, delta: "x" }
            })
          )
      })
      yield* Loop.stream("Hi", { messages: [] }, { model: "m" }).pipe(
        Stream.take(3),
        Stream.runForEach(() => Effect.yieldNow),
        Effect.provide([Layer.succeed(Provider.Provider, chatty), ToolRegistry.layer()])
      )
      assert.isBelow(said, 2_000)
    })
  )

  it.effect("does not make tools wait for a slow reader", () =>
    Effect.gen(function* () {
      const all = yield* Latch.make(false)
      let begun = 0
      const count = Tool.make({
        name: "count",
        description: "Counts.",
        execute: () => Effect.as(++begun === 100 ? all.open : Effect.void, "")
      })
      const calls = Array.from({ length: 100 }, () => ({ name: "count", params: {} }))
      const provider = yield* ScriptedProvider.make([ScriptedProvider.toolCalls(...calls)])
      yield* Loop.stream("Hi", { messages: [] }, { model: "m", limits: { maxTurns: 1 } }).pipe(
        // Whoever is told of the first tool reads on when all have run.
        Stream.runForEach((event) => (event._tag === "ToolExecutionStart" ? all.await : Effect.void)),
        Effect.exit,
        Effect.provide([provider.layer, ToolRegistry.layer(count)])
      )
      assert.strictEqual(begun, 100)
    })
  )

  describe("tools and their services", () => {
    class Request extends Context.Service<Request, { readonly user: string }>()("test/Request") {}
    const whoami = Tool.make({
      name: "whoami",
      description: "Names the user.",
      execute: () => Effect.map(Request, ({ user }) => user)
    })
    const script = [ScriptedProvider.toolCall("whoami", {}), ScriptedProvider.text("ok")]
    const ask = (
      registry: Layer.Layer<ToolRegistry.ToolRegistry, never, Request>,
      provider: Layer.Layer<Provider.Provider>
    ) =>
      Loop.run("Hi", { messages: [] }, { model: "m" }).pipe(
        Effect.map(({ newMessages }) => resultText(newMessages)),
        Effect.provide(registry.pipe(Layer.provide(Layer.succeed(Request, { user: "registration" })))),
        Effect.provide(provider)
      )

    it.effect("a tool sees the caller's request-scoped service", () =>
      Effect.gen(function* () {
        const { layer } = yield* ScriptedProvider.make(script)
        const texts = yield* ask(ToolRegistry.layer(whoami), layer).pipe(
          Effect.provideService(Request, { user: "caller" })
        )
        assert.deepStrictEqual(texts, ["caller"])
      })
    )

    it.effect("a tool falls back to the service it was registered with", () =>
      Effect.gen(function* () {
        const { layer } = yield* ScriptedProvider.make(script)
        assert.deepStrictEqual(yield* ask(ToolRegistry.layer(whoami), layer), ["registration"])
      })
    )

    it.effect("a tool's span has the caller's as its ancestor", () =>
      Effect.gen(function* () {
        const ancestors: Array<string> = []
        const traced = Tool.make({
          name: "traced",
          description: "Looks at its span.",
          execute: () =>
            Effect.gen(function* () {
              let span: Tracer.AnySpan | undefined = yield* Effect.orDie(Effect.currentSpan)
              while (span !== undefined && span._tag === "Span") {
                ancestors.push(span.name)
                span = span.parent._tag === "Some" ? span.parent.value : undefined
              }
            })
        })
        const provider = yield* ScriptedProvider.make([
          ScriptedProvider.toolCall("traced", {}),
          ScriptedProvider.text("ok")
        ])
        yield* Loop.run("Hi", { messages: [] }, { model: "m" }).pipe(
          Effect.withSpan("request"),
          Effect.provide([provider.layer, ToolRegistry.layer(traced)])
        )
        assert.deepStrictEqual(ancestors, ["execute_tool traced", "invoke_agent", "request"])
      })
    )

    it.effect("a finalizer added in a call runs when the call ends", () =>
      Effect.gen(function* () {
        const order: Array<string> = []
        const scoped = Tool.make({
          name: "scoped",
          description: "Opens something.",
          execute: () => Effect.addFinalizer(() => Effect.sync(() => order.push("closed")))
        })
        const provider = yield* ScriptedProvider.make([
          ScriptedProvider.toolCall("scoped", {}),
          () => {
            order.push("asked again")
            return ScriptedProvider.text("ok")
          }
        ])
        yield* Loop.run("Hi", { messages: [] }, { model: "m" }).pipe(
          Effect.provide([provider.layer, ToolRegistry.layer(scoped)])
        )
        assert.deepStrictEqual(order, ["closed", "asked again"])
      })
    )
  })

  it.effect("sends a window of the history when a layer says so, and announces it", () =>
    Effect.gen(function* () {
      const provider = yield* ScriptedProvider.make([ScriptedProvider.text("ok")])
      const messages = [
        Message.user("one"),
        Message.assistant("1"),
        Message.user("two"),
        Message.assistant("2")
      ]
      const events = yield* Loop.stream("three", { messages }, { model: "m" }).pipe(
        Stream.runCollect,
        Effect.provide([
          provider.layer,
          ToolRegistry.layer(),
          ContextManager.slidingWindow({ maxMessages: 2 })
        ])
      )
      assert.strictEqual((yield* provider.requests)[0]?.messages.length, 2)
      assert.deepInclude(ofTag(events, "ContextTransformed")[0], { dropped: 3, kept: 2, reason: "window" })
    })
  )

  it.effect("leaves a transcript that is valid, whatever happened", () =>
    Effect.gen(function* () {
      const { view } = yield* run([
        ScriptedProvider.toolCalls({ name: "add", params: { a: 1, b: 1 } }, { name: "nope", params: {} }),
        ScriptedProvider.text("ok")
      ])
      assert.deepStrictEqual(Transcript.violations(view.messages), [])
    })
  )
})
