import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch } from "effect"
import { Agent, type AgentEvent, Hook, Message, Tool, Transcript } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import * as Invariants from "./invariants.ts"
import { agent, deaf, gated, ofTag, outcomes, say, settle, tags, texts } from "./play.ts"

const done = ScriptedProvider.text("done")
const calls = (...names: ReadonlyArray<string>) =>
  ScriptedProvider.toolCalls(...names.map((name) => ({ name, params: {} })))

/** An answer that has said "Hel" when `began` opens, and then says no more. */
const stalled = Effect.gen(function* () {
  const began = yield* Latch.make(false)
  const turn = ScriptedProvider.turn(Step.start, Step.text("Hel"), Step.run(began.open), Step.never)
  return { began, turn }
})

const interrupting = { interrupt: true }

describe("a steering message that interrupts", () => {
  it.effect("ends the answer that streams, and the next turn answers the message", () =>
    Effect.gen(function* () {
      const { began, turn } = yield* stalled
      const script = yield* agent([turn, done])
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* began.await
      yield* script.agent.steer("stop, do this", interrupting)
      const { newMessages, status, turns } = yield* Fiber.join(run)
      assert.strictEqual(status, "completed")
      assert.strictEqual(turns, 2)
      assert.deepStrictEqual(texts(newMessages), ["hi", "Hel", "stop, do this", "done"])
      assert.deepInclude(newMessages[1], {
        stopReason: "aborted",
        errorMessage: "interrupted by a message of the user"
      })
      assert.deepStrictEqual(ofTag(script.events, "RunCancelled"), [])
      assert.deepStrictEqual(Invariants.broken(script.events), [])
      const [, request] = yield* script.requests
      assert.deepStrictEqual(
        request?.messages.map((message) => Message.textOf(message)),
        [
          "hi",
          "Hel",
          "[The answer above was interrupted before its end. The user has read this much of it.]",
          "stop, do this"
        ]
      )
    })
  )

  it.effect(
    "interrupts the tools at work, skips those that have not begun, and keeps results that are there",
    () =>
      Effect.gen(function* () {
        const { began, tool } = yield* gated
        const script = yield* agent([calls("quick", "gated", "other"), done], {
          tools: [say("quick"), tool, say("other")],
          toolExecution: "sequential"
        })
        const run = yield* Effect.forkChild(script.agent.prompt("hi"))
        yield* began.await
        yield* script.agent.steer("never mind", interrupting)
        const { newMessages, status } = yield* Fiber.join(run)
        assert.strictEqual(status, "completed")
        assert.deepStrictEqual(outcomes(script.events), ["success", "aborted", "skipped"])
        assert.deepStrictEqual(texts(newMessages).slice(-2), ["never mind", "done"])
        assert.deepStrictEqual(Transcript.violations(newMessages), [])
        assert.deepStrictEqual(Invariants.broken(script.events), [])
      })
  )

  it.effect("leaves a tool behind that ignores its interruption, after 100 ms", () =>
    Effect.gen(function* () {
      const { began, tool } = yield* deaf
      const script = yield* agent([calls(tool.name, "quick"), done], { tools: [tool, say("quick")] })
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* began.await
      yield* script.agent.steer("never mind", interrupting)
      yield* settle()
      yield* TestClock.adjust("100 millis")
      const { status } = yield* Fiber.join(run)
      assert.strictEqual(status, "completed")
      assert.deepStrictEqual(outcomes(script.events).toSorted(), ["aborted", "success"])
      assert.deepStrictEqual(Invariants.broken(script.events), [])
    })
  )

  it.effect("interrupts a hook of the turn, without counting that as its failure", () =>
    Effect.gen(function* () {
      const began = yield* Latch.make(false)
      const hook = Hook.beforeModel(({ turn }) =>
        turn === 1 ? Effect.andThen(began.open, Effect.never) : Effect.void
      )
      const script = yield* agent([done], { hooks: [hook] })
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* began.await
      yield* script.agent.steer("now", interrupting)
      const { newMessages, status } = yield* Fiber.join(run)
      assert.strictEqual(status, "completed")
      assert.deepStrictEqual(texts(newMessages).slice(-2), ["now", "done"])
      assert.deepStrictEqual(ofTag(script.events, "HookError"), [])
      assert.deepStrictEqual(Invariants.broken(script.events), [])
    })
  )

  it.effect(
    "does not release a run that is paused before a call: its turn ends, and the next one waits",
    () =>
      Effect.gen(function* () {
        const script = yield* agent([calls("quick"), done], { tools: [say("quick")] })
        const pausing = Hook.afterModel(({ turn }) => (turn === 1 ? script.agent.pause("wait") : Effect.void))
        yield* script.agent.hooks.register(pausing)
        const run = yield* Effect.forkChild(script.agent.prompt("hi"))
        yield* settle()
        yield* script.agent.steer("other", interrupting)
        yield* settle()
        assert.deepStrictEqual(outcomes(script.events), ["skipped"])
        assert.strictEqual((yield* script.requests).length, 1)
        yield* script.agent.resume()
        const { newMessages } = yield* Fiber.join(run)
        assert.deepStrictEqual(texts(newMessages).slice(-2), ["other", "done"])
        assert.deepStrictEqual(Invariants.broken(script.events), [])
      })
  )

  it.effect("publishes the end of a pause that ends while the interrupted turn does", () =>
    Effect.gen(function* () {
      const script = yield* agent([calls("quick"), done], { tools: [say("quick")] })
      yield* script.agent.hooks.register(
        Hook.afterModel(({ turn }) => (turn === 1 ? script.agent.pause("wait") : Effect.void))
      )
      yield* script.agent.subscribe(({ _tag, turn }) =>
        _tag === "TurnEnd" && turn === 1 ? Effect.ignore(script.agent.resume("go")) : Effect.void
      )
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* settle()
      yield* script.agent.steer("other", interrupting)
      yield* Fiber.join(run)
      const pauses = tags(script.events).filter((tag) => tag === "RunPaused" || tag === "RunResumed")
      assert.deepStrictEqual(pauses, ["RunPaused", "RunResumed"])
    })
  )

  it.effect("is no obstacle to a cancel in the next turn", () =>
    Effect.gen(function* () {
      const { began, tool } = yield* gated
      const { began: answering, turn } = yield* stalled
      const script = yield* agent([calls(tool.name), turn], { tools: [tool] })
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* began.await
      yield* script.agent.steer("a", interrupting)
      yield* answering.await
      yield* script.agent.cancel()
      const { status, turns } = yield* Fiber.join(run)
      assert.strictEqual(status, "cancelled")
      assert.strictEqual(turns, 2)
      assert.deepStrictEqual(outcomes(script.events), ["aborted"])
      assert.deepStrictEqual(Invariants.broken(script.events), [])
    })
  )

  it.effect("cancels the run of a sub-agent with the tool call that it works for", () =>
    Effect.gen(function* () {
      const { began, turn } = yield* stalled
      const sub = Agent.asTool({ name: "sub", description: "Works.", agent: { model: "child" } })
      const delegate = ScriptedProvider.toolCall("sub", { prompt: "work" })
      const provider = yield* ScriptedProvider.make([delegate, turn, done])
      const made = yield* Agent.make({ model: "m", tools: [sub] }).pipe(Effect.provide(provider.layer))
      const events: Array<AgentEvent.AgentEvent> = []
      yield* made.subscribe((event) => Effect.sync(() => events.push(event)))
      const run = yield* Effect.forkChild(made.prompt("hi"))
      yield* began.await
      yield* made.steer("leave it", interrupting)
      const { newMessages, status } = yield* Fiber.join(run)
      assert.strictEqual(status, "completed")
      assert.deepStrictEqual(
        ofTag(events, "RunEnd").map(({ path, status }) => [path?.length ?? 0, status]),
        [
          [1, "cancelled"],
          [0, "completed"]
        ]
      )
      assert.deepStrictEqual(texts(newMessages).slice(-2), ["leave it", "done"])
    })
  )

  it.effect("leaves a call in the background at work", () =>
    Effect.gen(function* () {
      const { began, turn } = yield* stalled
      const slow = Tool.make({
        name: "slow",
        description: "Takes a second.",
        blocking: false,
        execute: () => Effect.as(Effect.sleep("1 second"), "slow result")
      })
      const script = yield* agent([calls("slow"), turn, done, done], { tools: [slow] })
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* began.await
      yield* script.agent.steer("faster", interrupting)
      yield* settle()
      yield* TestClock.adjust("1 second")
      const { status } = yield* Fiber.join(run)
      assert.strictEqual(status, "completed")
      assert.deepStrictEqual(outcomes(script.events), ["success"])
      assert.deepStrictEqual(Invariants.broken(script.events), [])
    })
  )

  it.effect("begins the next turn with the message where it comes between turns", () =>
    Effect.gen(function* () {
      const script = yield* agent([calls("quick"), calls("quick"), done], { tools: [say("quick")] })
      yield* script.agent.hooks.register(
        Hook.pauseCheck(({ turn }) => Effect.succeed({ shouldPause: turn === 2 }))
      )
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* settle()
      yield* script.agent.steer("now", interrupting)
      yield* script.agent.resume()
      const { newMessages } = yield* Fiber.join(run)
      assert.deepStrictEqual(texts(newMessages), ["hi", "", "quick", "now", "", "quick", "done"])
      assert.deepStrictEqual(Invariants.broken(script.events), [])
    })
  )

  it.effect("begins the next turn with the messages before it too, and leaves those behind it", () =>
    Effect.gen(function* () {
      const { began, turn } = yield* stalled
      const script = yield* agent([turn, done, done])
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* began.await
      yield* script.agent.steer("before")
      yield* script.agent.steer("now", interrupting)
      yield* script.agent.steer("behind")
      const { newMessages } = yield* Fiber.join(run)
      assert.deepStrictEqual(texts(newMessages), ["hi", "Hel", "before", "now", "done", "behind", "done"])
    })
  )

  it.effect("shows the result of a call in the background to its hooks, although it ends meanwhile", () =>
    Effect.gen(function* () {
      const go = yield* Latch.make(false)
      const slow = Tool.make({
        name: "slow",
        description: "Works in the background.",
        blocking: false,
        execute: () => Effect.as(go.await, "secret")
      })
      const { began, tool } = yield* deaf
      const script = yield* agent([calls("slow"), calls(tool.name), done, done], {
        tools: [slow, tool],
        hooks: [Hook.afterTool(() => Effect.succeed({ content: [Message.text("redacted")] }))]
      })
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* began.await
      yield* script.agent.steer("now", interrupting)
      yield* go.open
      yield* settle()
      yield* TestClock.adjust("100 millis")
      const { newMessages } = yield* Fiber.join(run)
      assert.include(texts(newMessages).join(), "redacted")
      assert.notInclude(texts(newMessages).join(), "secret")
    })
  )

  it.effect("leaves out a result that the hooks have not reviewed to the end", () =>
    Effect.gen(function* () {
      const began = yield* Latch.make(false)
      const review = Hook.afterTool(() => Effect.andThen(began.open, Effect.never))
      const script = yield* agent([calls("quick"), done], {
        tools: [say("quick", "secret")],
        hooks: [review]
      })
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* began.await
      yield* script.agent.steer("now", interrupting)
      const { newMessages } = yield* Fiber.join(run)
      assert.deepStrictEqual(outcomes(script.events), ["aborted"])
      assert.notInclude(texts(newMessages).join(), "secret")
      assert.deepStrictEqual(Invariants.broken(script.events), [])
    })
  )

  it.effect("is answered in the run where it comes while a followUp hook works", () =>
    Effect.gen(function* () {
      const began = yield* Latch.make(false)
      const go = yield* Latch.make(false)
      const waiting = Hook.followUp(({ turn }) =>
        turn === 1 ? Effect.as(Effect.andThen(began.open, go.await), []) : Effect.succeed([])
      )
      const script = yield* agent([done, done], { hooks: [waiting] })
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* began.await
      yield* script.agent.steer("now", interrupting)
      yield* go.open
      const { newMessages } = yield* Fiber.join(run)
      assert.deepStrictEqual(texts(newMessages), ["hi", "done", "now", "done"])
    })
  )

  it.effect("waits for the next run of an idle agent", () =>
    Effect.gen(function* () {
      const script = yield* agent([done])
      yield* script.agent.steer("first", interrupting)
      const { newMessages } = yield* script.agent.prompt("hi")
      assert.deepStrictEqual(texts(newMessages), ["hi", "first", "done"])
    })
  )

  it.effect(
    "at any event leaves the events of the run balanced, and its transcript whole",
    () =>
      Effect.gen(function* () {
        for (let at = 0; at < 40; at++) {
          const script = yield* agent([calls("quick", "other"), calls("quick"), done, done, done], {
            tools: [say("quick"), say("other")]
          })
          let seen = 0
          yield* script.agent.subscribe(() =>
            seen++ === at ? script.agent.steer("now", interrupting) : Effect.void
          )
          const { newMessages, status } = yield* script.agent.prompt("hi")
          assert.strictEqual(status, "completed", `at ${at}`)
          assert.deepStrictEqual(Transcript.violations(newMessages), [], `at ${at}`)
          assert.deepStrictEqual(Invariants.broken(script.events), [], `at ${at}`)
          const isLate = seen <= at
          assert.strictEqual(texts(newMessages).includes("now"), !isLate, `at ${at}`)
          if (isLate) return
        }
      }),
    60_000
  )
})
