import { assert, describe, it } from "@effect/vitest"
import {
  Cause,
  Deferred,
  Effect,
  Exit,
  Fiber,
  Latch,
  Logger,
  Option,
  Scope,
  Stream,
  SubscriptionRef
} from "effect"
import { Agent, type AgentEvent, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import * as Invariants from "./invariants.ts"
import { agent, gated, ofTag, resultTexts, say, settle, status, tags } from "./play.ts"

const done = ScriptedProvider.text("done")
const call = (name: string) => ScriptedProvider.toolCall(name, {})
const calls = (...names: ReadonlyArray<string>) =>
  ScriptedProvider.toolCalls(...names.map((name) => ({ name, params: {} })))

/** Keeps what is logged. */
const logging = () => {
  const lines: Array<string> = []
  const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
  return { lines, layer: Logger.layer([logger], { mergeWithExisting: false }) }
}

/** A listener that never returns from the first event with this tag, and tells what it heard and whether it was stopped. */
const stuckAt = Effect.fnUntraced(function* (tag: AgentEvent.AgentEvent["_tag"], isDeaf = false) {
  const began = yield* Latch.make(false)
  const heard: Array<string> = []
  let interrupted = 0
  const stuck = Effect.andThen(began.open, isDeaf ? Effect.uninterruptible(Effect.never) : Effect.never).pipe(
    Effect.onInterrupt(() => Effect.sync(() => interrupted++))
  )
  let isFirst = true
  const listener = ({ _tag }: AgentEvent.AgentEvent) => {
    heard.push(_tag)
    if (_tag !== tag || !isFirst) return Effect.void
    isFirst = false
    return stuck
  }
  return { began, heard, listener, interrupted: () => interrupted }
})

describe("a subscriber whose scope has closed", () => {
  it.effect("receives nothing more, not even the event at which another subscriber closed it", () =>
    Effect.gen(function* () {
      const script = yield* agent([call("a"), done], { tools: [say("a")] })
      const scope = yield* Scope.make()
      const heard: Array<string> = []
      let isClosed = false
      yield* script.agent.subscribe(({ _tag }) =>
        _tag !== "ToolInvoked"
          ? Effect.void
          : Effect.andThen(
              Scope.close(scope, Exit.void),
              Effect.sync(() => void (isClosed = true))
            )
      )
      yield* script.agent
        .subscribe(({ _tag }) => Effect.sync(() => isClosed && heard.push(_tag)))
        .pipe(Scope.provide(scope))
      yield* script.agent.prompt("hi")
      assert.isTrue(isClosed)
      assert.deepStrictEqual(heard, [])
    })
  )
})

describe("a subscriber that does nothing", () => {
  /** A tool that shows more than a reader takes, beside a quick one, for a reader that takes nothing until it is let go. */
  const played = Effect.fnUntraced(function* (isSubscribed: boolean) {
    const chatty = Tool.make({
      name: "chatty",
      description: "Shows much.",
      timeout: "300 millis",
      execute: () =>
        Effect.flatMap(Tool.ToolContext, ({ progress }) =>
          Effect.forEach(Array.from({ length: 500 }, String), (text) => progress(Tool.output(text)))
        )
    })
    const quick = Tool.make({
      name: "quick",
      description: "Takes a moment.",
      execute: () => Effect.as(Effect.sleep("10 millis"), "quick")
    })
    const script = yield* ScriptedProvider.make([calls("chatty", "quick"), done])
    const made = yield* Agent.make({ model: "m", tools: [chatty, quick] }).pipe(Effect.provide(script.layer))
    if (isSubscribed) yield* made.subscribe(() => Effect.void)
    const stuck = yield* Latch.make(false)
    const began = yield* Latch.make(false)
    const reading = made.stream("hi").pipe(
      Stream.rechunk(1),
      Stream.tap(({ _tag }) =>
        _tag === "ToolExecutionProgress" ? Effect.andThen(began.open, stuck.await) : Effect.void
      ),
      Stream.runCollect
    )
    const start = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
    const run = yield* Effect.forkChild(reading)
    yield* began.await
    yield* TestClock.adjust("1 second")
    yield* stuck.open
    const events = yield* Fiber.join(run)
    return {
      told: events.map(({ _tag, seq, timestamp }) => [_tag, seq, timestamp - start]),
      ends: ofTag(events, "ToolExecutionEnd").map(({ outcome, result, timestamp, toolName }) => ({
        toolName,
        outcome,
        at: timestamp - start,
        text: result.content.map((block) => (block.type === "text" ? block.text : "")).join("")
      }))
    }
  })

  it.effect("changes neither the outcome of a tool nor the time at which a sibling ends", () =>
    Effect.gen(function* () {
      const subscribed = yield* played(true)
      assert.deepStrictEqual(subscribed.ends, [
        { toolName: "quick", outcome: "success", at: 10, text: "quick" },
        { toolName: "chatty", outcome: "timeout", at: 300, text: "Tool chatty timed out after 300ms." }
      ])
      assert.deepStrictEqual(subscribed, yield* played(false))
    })
  )
})

describe("a subscriber that is slow", () => {
  it.effect("holds no tool from being interrupted, and hears everything in order, one after another", () =>
    Effect.gen(function* () {
      const shown = yield* Latch.make(false)
      const chatty = Tool.make({
        name: "chatty",
        description: "Shows much.",
        timeout: "1 second",
        execute: () =>
          Effect.flatMap(Tool.ToolContext, ({ progress }) =>
            Effect.andThen(shown.open, Effect.forever(progress(Tool.output("more"))))
          )
      })
      const script = yield* agent([calls("chatty", "chatty", "quick"), done], {
        tools: [chatty, say("quick")]
      })
      const heard: Array<number> = []
      let busy = 0
      yield* script.agent.subscribe(({ seq }) =>
        Effect.gen(function* () {
          assert.strictEqual(busy++, 0)
          yield* Effect.sleep("700 millis")
          busy--
          heard.push(seq)
        })
      )
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* TestClock.adjust("2 minutes")
      const { newMessages } = yield* Fiber.join(run)
      assert.deepStrictEqual(resultTexts(newMessages), [
        "Tool chatty timed out after 1s.",
        "Tool chatty timed out after 1s.",
        "quick"
      ])
      assert.deepStrictEqual(
        heard,
        script.events.map(({ seq }) => seq)
      )
      assert.deepStrictEqual(
        heard,
        heard.map((_, index) => index + 1)
      )
      assert.deepStrictEqual(Invariants.broken(script.events), [])
    })
  )

  it.effect("sees the state as it was after the event it hears", () =>
    Effect.gen(function* () {
      const script = yield* agent([calls("a", "b"), done], { tools: [say("a"), say("b")] })
      const pending: Array<number> = []
      yield* script.agent.subscribe(({ _tag }) =>
        Effect.andThen(
          settle(),
          Effect.sync(() => {
            if (_tag === "ToolExecutionStart" || _tag === "ToolExecutionEnd")
              pending.push(script.agent.state.getUnsafe().pendingToolCalls.size)
          })
        )
      )
      yield* script.agent.prompt("hi")
      assert.deepStrictEqual(pending, [1, 2, 1, 0])
    })
  )

  it.effect("within its limit is not dropped, and the run waits for it", () =>
    Effect.gen(function* () {
      const script = yield* agent([done])
      const heard: Array<string> = []
      yield* script.agent.subscribe(({ _tag }) => Effect.map(Effect.sleep(4999), () => void heard.push(_tag)))
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* settle()
      yield* TestClock.adjust(4998)
      assert.deepStrictEqual(tags(script.events), ["RunStart"])
      yield* TestClock.adjust("10 minutes")
      yield* Fiber.join(run)
      assert.deepStrictEqual(heard, tags(script.events))
    })
  )
})

describe("a subscriber that never returns", () => {
  it.effect(
    "is interrupted and unsubscribed after 5 seconds, with a warning that names it and the limit",
    () =>
      Effect.gen(function* () {
        const { layer, lines } = logging()
        const script = yield* agent([done, done])
        const { heard, interrupted, listener } = yield* stuckAt("TurnStart")
        yield* script.agent.subscribe(listener, { name: "display" })
        const after: Array<string> = []
        yield* script.agent.subscribe(({ _tag }) => Effect.sync(() => void after.push(_tag)))
        const run = yield* script.agent.prompt("hi").pipe(Effect.provide(layer), Effect.forkChild)
        yield* settle()
        yield* TestClock.adjust(4999)
        assert.isUndefined(run.pollUnsafe())
        assert.strictEqual(interrupted(), 0)
        yield* TestClock.adjust(1)
        assert.strictEqual((yield* Fiber.join(run)).status, "completed")
        assert.strictEqual(interrupted(), 1)
        assert.deepStrictEqual(heard, ["RunStart", "TurnStart"])
        assert.deepStrictEqual(after, tags(script.events))
        assert.strictEqual(lines.length, 1)
        assert.include(
          lines[0],
          `Subscriber "display" took longer than 5s for TurnStart. It was unsubscribed.`
        )
        yield* script.agent.prompt("again")
        assert.deepStrictEqual(heard, ["RunStart", "TurnStart"])
      })
  )

  it.effect("has the limit it subscribed with, and goes by the name of its function", () =>
    Effect.gen(function* () {
      const { layer, lines } = logging()
      const script = yield* agent([done])
      const { heard, listener } = yield* stuckAt("TurnStart")
      yield* script.agent.subscribe(listener, { timeout: "1 minute" })
      const run = yield* script.agent.prompt("hi").pipe(Effect.provide(layer), Effect.forkChild)
      yield* settle()
      yield* TestClock.adjust(59_999)
      assert.isUndefined(run.pollUnsafe())
      yield* TestClock.adjust(1)
      yield* Fiber.join(run)
      assert.strictEqual(heard.length, 2)
      assert.include(lines[0], `Subscriber "listener" took longer than 1m for TurnStart`)
    })
  )

  it.effect("is waited for without end where it asks for that", () =>
    Effect.gen(function* () {
      const script = yield* agent([done])
      const { began, listener } = yield* stuckAt("TurnStart")
      yield* script.agent.subscribe(listener, { timeout: "Infinity" })
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* began.await
      yield* TestClock.adjust("300 days")
      assert.isUndefined(run.pollUnsafe())
      yield* script.agent.cancel()
      yield* TestClock.adjust(100)
      assert.strictEqual((yield* Fiber.join(run)).status, "cancelled")
    })
  )

  it.effect("refuses a limit that is none", () =>
    Effect.gen(function* () {
      const script = yield* agent([done])
      for (const timeout of [0, -1, NaN]) {
        const exit = yield* Effect.exit(script.agent.subscribe(() => Effect.void, { timeout }))
        const error = Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : ""
        assert.include(error, `the timeout ${timeout} is no duration above zero`)
      }
    })
  )

  type Made = Effect.Success<ReturnType<typeof agent>>["agent"]
  const stops: Record<string, (made: Made, run: Fiber.Fiber<unknown, unknown>) => Effect.Effect<unknown>> = {
    "a cancel": (made) => made.cancel(),
    "an interruption": (_, run) => Effect.forkDetach(Fiber.interrupt(run)),
    "the time limit of the run": () => TestClock.adjust("1 minute")
  }
  for (const [name, stop] of Object.entries(stops)) {
    it.effect(`does not hold up ${name}: it has 100 ms, and then hears of the end only`, () =>
      Effect.gen(function* () {
        const { layer, lines } = logging()
        const script = yield* agent([call("a"), done, done], {
          tools: [say("a")],
          limits: { executionTime: "1 minute" }
        })
        const stuck = yield* stuckAt("ToolInvoked")
        yield* script.agent.subscribe(stuck.listener, { timeout: "1 hour" })
        const run = yield* script.agent.prompt("hi").pipe(Effect.provide(layer), Effect.forkChild)
        yield* stuck.began.await
        yield* stop(script.agent, run)
        yield* settle()
        yield* TestClock.adjust(99)
        assert.isUndefined(run.pollUnsafe())
        assert.strictEqual(stuck.interrupted(), 0)
        yield* TestClock.adjust(1)
        yield* Fiber.await(run)
        assert.strictEqual(stuck.interrupted(), 1)
        assert.deepStrictEqual(stuck.heard.slice(-2), ["ToolInvoked", "RunEnd"])
        assert.deepStrictEqual(Invariants.broken(script.events), [])
        assert.include(lines.join("\n"), `Subscriber "listener" was still busy with ToolInvoked 100ms after`)
        // Of the next run it hears everything again.
        const before = script.events.length
        stuck.heard.length = 0
        yield* script.agent.prompt("again")
        assert.deepStrictEqual(stuck.heard, tags(script.events.slice(before)))
      })
    )
  }

  it.effect("does not hold up the closing of the agent's scope, wherever it subscribed", () =>
    Effect.gen(function* () {
      for (const where of ["inside", "outside"] as const) {
        const outer = yield* Scope.make()
        const inner = yield* Scope.make()
        const script = yield* agent([done]).pipe(Scope.provide(inner))
        const stuck = yield* stuckAt("TurnStart")
        yield* script.agent.subscribe(stuck.listener).pipe(Scope.provide(where === "inside" ? inner : outer))
        const { result } = yield* script.agent.start("hi")
        yield* stuck.began.await
        const closing = yield* Effect.forkChild(Scope.close(inner, Exit.void))
        yield* settle()
        yield* TestClock.adjust(100)
        yield* Fiber.join(closing)
        assert.strictEqual((yield* result).status, "cancelled", where)
        assert.deepStrictEqual(stuck.heard, ["RunStart", "TurnStart", "RunEnd"], where)
      }
    })
  )

  it.effect("is left behind and unsubscribed if it ignores its interruption too", () =>
    Effect.gen(function* () {
      const { layer, lines } = logging()
      const script = yield* agent([done, done])
      const stuck = yield* stuckAt("TurnStart", true)
      yield* script.agent.subscribe(stuck.listener)
      const run = yield* script.agent.prompt("hi").pipe(Effect.provide(layer), Effect.forkChild)
      yield* stuck.began.await
      yield* script.agent.cancel()
      yield* TestClock.adjust(199)
      assert.isUndefined(run.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.strictEqual((yield* Fiber.join(run)).status, "cancelled")
      yield* script.agent.prompt("again")
      assert.deepStrictEqual(stuck.heard, ["RunStart", "TurnStart"])
      assert.include(lines.join("\n"), "after the run was stopped, and ignored its interruption")
    })
  )

  it.effect("ends the run soon, however many events come after the stop", () =>
    Effect.gen(function* () {
      const names = Array.from({ length: 20 }, (_, index) => `t${index}`)
      const script = yield* agent([calls(...names), done], { tools: names.map((name) => say(name)) })
      const began = yield* Latch.make(false)
      yield* script.agent.subscribe(
        ({ _tag }) =>
          _tag === "ToolExecutionStart" || _tag === "ToolExecutionEnd"
            ? Effect.andThen(began.open, Effect.never)
            : Effect.void,
        { timeout: "Infinity" }
      )
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* began.await
      yield* script.agent.cancel()
      yield* TestClock.adjust(100)
      assert.strictEqual((yield* Fiber.join(run)).status, "cancelled")
      assert.deepStrictEqual(Invariants.broken(script.events), [])
    })
  )
})

describe("a subscriber that is busy when the run is told to stop", () => {
  it.effect("ends its work if that takes no longer than 100 ms, and hears all that follows", () =>
    Effect.gen(function* () {
      const script = yield* agent([call("a"), done], { tools: [say("a")] })
      const began = yield* Latch.make(false)
      const heard: Array<string> = []
      yield* script.agent.subscribe(({ _tag }) =>
        Effect.gen(function* () {
          if (_tag === "ToolInvoked") yield* began.open
          yield* Effect.sleep(99)
          heard.push(_tag)
        })
      )
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* settle()
      yield* Effect.forkChild(TestClock.adjust("10 seconds"))
      yield* began.await
      yield* script.agent.cancel()
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* Fiber.join(run)).status, "cancelled")
      assert.deepStrictEqual(heard, tags(script.events))
      assert.strictEqual(heard.at(-1), "RunEnd")
    })
  )
})

describe("a subscriber in the agent's own scope", () => {
  it.effect("hears how the run ends that goes on when the scope closes, and nothing later", () =>
    Effect.gen(function* () {
      const { began, tool } = yield* gated
      const scope = yield* Scope.make()
      const script = yield* agent([call("gated")], { tools: [tool] }).pipe(Scope.provide(scope))
      const run = yield* script.agent.start("hi")
      yield* began.await
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* run.result).status, "cancelled")
      assert.strictEqual(status(script.events), "cancelled")
      assert.deepStrictEqual(tags(script.events).slice(-3), ["RunCancelled", "TurnEnd", "RunEnd"])
      assert.deepStrictEqual(Invariants.broken(script.events), [])
    })
  )

  it.effect("is gone with a scope of its own, before the run ends", () =>
    Effect.gen(function* () {
      const { began, go, tool } = yield* gated
      const script = yield* agent([call("gated"), done], { tools: [tool] })
      const own = yield* Scope.make()
      const heard: Array<string> = []
      yield* script.agent
        .subscribe(({ _tag }) => Effect.sync(() => void heard.push(_tag)))
        .pipe(Scope.provide(own))
      const run = yield* script.agent.start("hi")
      yield* began.await
      yield* Scope.close(own, Exit.void)
      yield* go.open
      yield* run.result
      assert.strictEqual(heard.at(-1), "ToolInvoked")
    })
  )
})

describe("the events of an agent", () => {
  it.effect("end with its scope, also for a reader that comes later, or while the last run ends", () =>
    Effect.gen(function* () {
      const { began, tool } = yield* gated
      const scope = yield* Scope.make()
      const script = yield* agent([call("gated")], { tools: [tool] }).pipe(Scope.provide(scope))
      const whileEnding = yield* Deferred.make<Fiber.Fiber<ReadonlyArray<string>>>()
      yield* script.agent
        .subscribe(({ _tag }) =>
          _tag === "RunCancelled"
            ? Effect.flatMap(
                Effect.forkDetach(Effect.map(Stream.runCollect(script.agent.events), tags), {
                  startImmediately: true
                }),
                (fiber) => Deferred.succeed(whileEnding, fiber)
              )
            : Effect.void
        )
        .pipe(Scope.provide(scope))
      yield* script.agent.start("hi")
      yield* began.await
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* Fiber.join(yield* Deferred.await(whileEnding)), ["TurnEnd", "RunEnd"])
      const late = yield* Stream.runCollect(script.agent.events).pipe(
        Effect.timeoutOption("1 second"),
        (one) => Effect.forkChild(one)
      )
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(late), Option.some([]))
    })
  )
})

describe("the state of an agent", () => {
  it.effect("is watched from what it is on, through every change, until the agent closes", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const script = yield* agent([call("a"), done], { tools: [say("a")] }).pipe(Scope.provide(scope))
      const watcher = yield* Effect.forkChild(Stream.runCollect(script.agent.state.changes), {
        startImmediately: true
      })
      yield* script.agent.prompt("hi")
      const last = yield* script.agent.state.get
      assert.strictEqual(script.agent.state.getUnsafe(), last)
      yield* Scope.close(scope, Exit.void)
      const states = yield* Fiber.join(watcher)
      const phases = states.map(({ phase }) => phase)
      assert.deepStrictEqual(
        phases.filter((phase, index) => phase !== phases[index - 1]),
        ["idle", "model", "tools", "model", "finalizing", "idle"]
      )
      const sizes = new Set(states.map(({ messages }) => messages.length))
      assert.deepStrictEqual([...sizes], [0, 1, 2, 3, 4])
      assert.strictEqual(states.at(-1), last)
      assert.deepStrictEqual(yield* Stream.runCollect(script.agent.state.changes), [last])
    })
  )

  it.effect("takes the same values with and without listeners", () =>
    Effect.gen(function* () {
      const statesWith = Effect.fnUntraced(function* (
        listen: (made: Agent.Agent) => Effect.Effect<unknown, never, Scope.Scope>
      ) {
        const scope = yield* Scope.make()
        const made = yield* Agent.make({ model: "m", tools: [say("a"), say("b")] }).pipe(
          Effect.provide(ScriptedProvider.layer([call("a"), call("b"), done])),
          Scope.provide(scope)
        )
        yield* Scope.provide(listen(made), scope)
        const watcher = yield* Effect.forkChild(Stream.runCollect(made.state.changes), {
          startImmediately: true
        })
        yield* made.prompt("hi")
        yield* Scope.close(scope, Exit.void)
        const states = yield* Fiber.join(watcher)
        return states.map(({ messages, pendingToolCalls, phase }) => [
          phase,
          messages.map(({ role }) => role),
          pendingToolCalls.size
        ])
      })
      const alone = yield* statesWith(() => Effect.void)
      assert.deepStrictEqual(alone.at(-1), [
        "idle",
        ["user", "assistant", "toolResult", "assistant", "toolResult", "assistant"],
        0
      ])
      const quick = (made: Agent.Agent) => made.subscribe(() => Effect.void)
      const slow = (made: Agent.Agent) => made.subscribe(() => Effect.yieldNow)
      const reading = (made: Agent.Agent) =>
        Effect.forkDetach(Stream.runDrain(made.events), { startImmediately: true })
      const all = (made: Agent.Agent) => Effect.all([quick(made), slow(made), reading(made)])
      for (const listen of [quick, slow, reading, all])
        assert.deepStrictEqual(yield* statesWith(listen), alone)
    })
  )

  it.effect("can be left by one who watches it, and is written by the agent only", () =>
    Effect.gen(function* () {
      const script = yield* agent([done])
      const { state } = script.agent
      assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(state.changes, 1)), [state.getUnsafe()])
      assert.hasAllKeys(state, ["get", "getUnsafe", "changes"])
      assert.isFalse(SubscriptionRef.isSubscriptionRef(state))
      yield* script.agent.prompt("hi")
      assert.strictEqual(state.getUnsafe().messages.length, 2)
    })
  )
})
