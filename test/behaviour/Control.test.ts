import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Latch, Option, Stream } from "effect"
import { Agent, AgentEvent, Hook, Message, Tool, Transcript } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import * as Invariants from "./invariants.ts"
import { agent, deaf, gated, hookAt, ofTag, outcomes, play, range, resultTexts, say } from "./play.ts"
import { settle, status, tags, texts, toolResults } from "./play.ts"

const done = ScriptedProvider.text("done")
const call = (name: string) => ScriptedProvider.toolCall(name, {})
const calls = (...names: ReadonlyArray<string>) =>
  ScriptedProvider.toolCalls(...names.map((name) => ({ name, params: {} })))

/** An answer that has said "Hel" when `began` opens, and then says no more. */
const stalled = Effect.gen(function* () {
  const began = yield* Latch.make(false)
  const turn = ScriptedProvider.turn(Step.start, Step.text("Hel"), Step.run(began.open), Step.never)
  return { began, turn }
})

describe("Control", () => {
  describe("cancel", () => {
    it.effect(
      "while the last answer is on its way makes the run cancelled, and keeps what was said (rows 214, 216)",
      () =>
        Effect.gen(function* () {
          const { began, turn } = yield* stalled
          const script = yield* agent([turn])
          const run = yield* Effect.forkChild(script.agent.prompt("hi"))
          yield* began.await
          yield* script.agent.cancel("changed my mind")
          const { message, newMessages, status: ended } = yield* Fiber.join(run)
          assert.strictEqual(ended, "cancelled")
          assert.deepInclude(message, { stopReason: "aborted", errorMessage: "changed my mind" })
          assert.deepStrictEqual(texts(newMessages), ["hi", "Hel"])
          assert.deepStrictEqual(
            ofTag(script.events, "RunCancelled").map(({ reason }) => reason),
            ["changed my mind"]
          )
          assert.deepStrictEqual(Invariants.broken(script.events), [])
        })
    )

    it.effect(
      "during tool 1 of 2 runs neither the other nor the model, and answers both calls (row 163)",
      () =>
        Effect.gen(function* () {
          const { began, tool } = yield* gated
          const script = yield* agent([calls("gated", "other")], {
            tools: [tool, say("other")],
            toolExecution: "sequential"
          })
          const run = yield* Effect.forkChild(script.agent.prompt("hi"))
          yield* began.await
          yield* script.agent.cancel()
          const { newMessages, status: ended } = yield* Fiber.join(run)
          assert.strictEqual(ended, "cancelled")
          assert.deepStrictEqual(outcomes(script.events), ["aborted", "aborted"])
          assert.deepStrictEqual(
            ofTag(script.events, "ToolInvoked").map(({ toolName }) => toolName),
            ["gated"]
          )
          assert.deepStrictEqual(Transcript.violations(newMessages), [])
          assert.strictEqual((yield* script.requests).length, 1)
          assert.deepStrictEqual(Invariants.broken(script.events), [])
        })
    )

    it.effect("of a parallel batch keeps the results that are there", () =>
      Effect.gen(function* () {
        const { began, tool } = yield* gated
        const script = yield* agent([calls("quick", "gated", "gated")], { tools: [say("quick"), tool] })
        const run = yield* Effect.forkChild(script.agent.prompt("hi"))
        yield* began.await
        yield* settle()
        yield* script.agent.cancel()
        const { newMessages } = yield* Fiber.join(run)
        assert.deepStrictEqual(
          toolResults(newMessages).map(({ outcome }) => outcome),
          ["success", "aborted", "aborted"]
        )
      })
    )

    it.effect("answers running and queued calls alike when one runs at a time (row 163)", () =>
      Effect.gen(function* () {
        const { began, tool } = yield* gated
        const script = yield* agent([calls("gated", "a", "b")], {
          tools: [tool, say("a"), say("b")],
          toolConcurrency: 1
        })
        const run = yield* Effect.forkChild(script.agent.prompt("hi"))
        yield* began.await
        yield* script.agent.cancel()
        const { newMessages } = yield* Fiber.join(run)
        assert.deepStrictEqual(
          toolResults(newMessages).map(({ outcome }) => outcome),
          ["aborted", "aborted", "aborted"]
        )
      })
    )

    it.effect("leaves queued messages where they are, whenever it comes (row 218)", () =>
      Effect.gen(function* () {
        for (const when of ["TurnEnd", "ToolExecutionEnd", "MessageEnd", "RunStart"] as const) {
          const script = yield* agent([call("a"), done], { tools: [say("a")] })
          yield* script.agent.subscribe((event) =>
            event._tag === when
              ? Effect.all([
                  Effect.flatMap(script.agent.queues.sizes, ({ followUp }) =>
                    followUp > 0
                      ? Effect.void
                      : Effect.andThen(script.agent.steer("s"), script.agent.followUp("f"))
                  ),
                  script.agent.cancel()
                ]).pipe(Effect.asVoid)
              : Effect.void
          )
          const { status: ended } = yield* script.agent.prompt("hi")
          assert.strictEqual(ended, "cancelled", when)
          assert.deepStrictEqual(yield* script.agent.queues.sizes, { steering: 1, followUp: 1 }, when)
        }
      })
    )

    it.effect("puts back steering that was taken for a batch it cut short", () =>
      Effect.gen(function* () {
        const script = yield* agent([calls("a", "b")], {
          tools: [say("a"), say("b")],
          toolExecution: "sequential",
          steeringPolicy: "skipRemaining"
        })
        yield* script.agent.subscribe((event) => {
          if (event._tag === "ToolInvoked") return script.agent.steer("instead")
          return event._tag === "ToolExecutionEnd" && event.outcome === "skipped"
            ? script.agent.cancel()
            : Effect.void
        })
        const { status: ended } = yield* script.agent.prompt("hi")
        assert.strictEqual(ended, "cancelled")
        assert.deepStrictEqual(outcomes(script.events), ["success", "skipped"])
        assert.deepStrictEqual(yield* script.agent.queues.sizes, { steering: 1, followUp: 0 })
      })
    )

    it.effect("says why: in its event, and in the answer it cut (row 215)", () =>
      Effect.gen(function* () {
        const { began, turn } = yield* stalled
        const script = yield* agent([turn])
        const { cancel, result } = yield* script.agent.start("hi")
        yield* began.await
        yield* cancel("budget")
        yield* cancel("too late")
        const { message } = yield* result
        assert.strictEqual(message?.errorMessage, "budget")
        assert.deepStrictEqual(
          ofTag(script.events, "RunCancelled").map(({ reason }) => reason),
          ["budget"]
        )
      })
    )

    it.effect(
      "at any event ends the run cancelled, once, with everything balanced (row 214)",
      () =>
        Effect.gen(function* () {
          const script = [
            ScriptedProvider.turn(
              Step.start,
              Step.text(["a", "b"]),
              Step.toolCall("x", {}),
              Step.toolCall("y", {}),
              Step.finish("toolUse")
            ),
            done
          ]
          const tools = [say("x"), say("y")]
          const whole = yield* agent(script, { tools })
          yield* whole.agent.prompt("hi")
          for (const at of range(whole.events.length - 1)) {
            const one = yield* agent(script, { tools })
            yield* one.agent.subscribe(({ seq }) => (seq === at + 1 ? one.agent.cancel() : Effect.void))
            const result = yield* one.agent.prompt("hi")
            assert.strictEqual(result.status, "cancelled", `at ${at + 1}`)
            assert.deepStrictEqual(Invariants.broken(one.events), [], `at ${at + 1}`)
          }
        }),
      60_000
    )

    it.effect("by leaving the stream at any event does the same, unheard", () =>
      Effect.gen(function* () {
        const ended: Array<string> = []
        const script = [calls("x", "y"), done]
        const setup = {
          tools: [say("x"), say("y")],
          hooks: [Hook.afterExecution(({ status: how }) => Effect.sync(() => void ended.push(how)))]
        }
        const whole = yield* agent(script, setup)
        yield* whole.agent.prompt("hi")
        ended.length = 0
        for (const count of range(8)) {
          const one = yield* agent(script, setup)
          yield* one.agent.stream("hi").pipe(Stream.take(count + 1), Stream.runDrain)
          assert.strictEqual(ended.length, count + 1)
          assert.deepStrictEqual(Invariants.broken(one.events), [])
          assert.strictEqual(one.agent.state.getUnsafe().phase, "idle")
        }
      })
    )

    it.effect("between two turns, in a hook, begins no other turn (row 216)", () =>
      Effect.gen(function* () {
        for (const point of [Hook.prepareNextTurn, Hook.shouldStopAfterTurn]) {
          const script = yield* agent([call("a"), done], { tools: [say("a")] })
          yield* script.agent.hooks.register(point(() => Effect.asVoid(script.agent.cancel())))
          const { status: ended, turns } = yield* script.agent.prompt("hi")
          assert.strictEqual(ended, "cancelled")
          assert.strictEqual(turns, 1)
          assert.deepStrictEqual(Invariants.broken(script.events), [])
        }
      })
    )

    it.effect("in a hook that shapes the request asks no model, and hides the hook's failure", () =>
      Effect.gen(function* () {
        for (const then of [Effect.fail("broke"), Effect.never]) {
          const script = yield* agent([done])
          yield* script.agent.hooks.register(
            Hook.transformMessages(() => Effect.andThen(script.agent.cancel(), then))
          )
          const { message, status: ended } = yield* script.agent.prompt("hi")
          assert.strictEqual(ended, "cancelled")
          assert.strictEqual(message?.stopReason, "aborted")
          assert.strictEqual((yield* script.requests).length, 0)
          assert.deepStrictEqual(Invariants.broken(script.events), [])
        }
      })
    )

    it.effect("stops the hook that is thinking, at once", () =>
      Effect.gen(function* () {
        const points = [
          "beforeExecution",
          "pauseCheck",
          "transformMessages",
          "beforeModel",
          "afterModel",
          "beforeTool",
          "approveTool",
          "afterTool",
          "prepareNextTurn"
        ] as const
        for (const point of points) {
          const began = yield* Latch.make(false)
          let stopped = false
          const hook = hookAt(point, () =>
            Effect.andThen(began.open, Effect.never).pipe(
              Effect.onInterrupt(() => Effect.sync(() => (stopped = true)))
            )
          )
          const script = yield* agent([call("a"), done], { tools: [say("a")], hooks: [hook] })
          const run = yield* script.agent.start("hi")
          yield* began.await
          yield* settle()
          yield* run.cancel()
          assert.strictEqual((yield* run.result).status, "cancelled", hook.point)
          assert.isTrue(stopped, hook.point)
          assert.deepStrictEqual(Invariants.broken(script.events), [], hook.point)
        }
      })
    )

    it.effect("while steering is being taken delivers none of it", () =>
      Effect.gen(function* () {
        const script = yield* agent([call("a"), done], { tools: [say("a")] })
        yield* script.agent.hooks.register(
          Hook.steering(({ turn }) =>
            turn === 1 ? Effect.as(script.agent.cancel(), [Message.user("never heard")]) : Effect.succeed([])
          )
        )
        const { newMessages, status: ended } = yield* script.agent.prompt("hi")
        assert.strictEqual(ended, "cancelled")
        assert.notInclude(texts(newMessages), "never heard")
      })
    )

    it.effect("that comes when the turn has failed already does not make it cancelled, nor say so", () =>
      Effect.gen(function* () {
        for (const when of ["ModelCallError", "TurnEnd", "LimitReached", "RunError"] as const) {
          const failing =
            when === "LimitReached" ? call("a") : ScriptedProvider.turn(Step.text("Hel"), Step.eof)
          const script = yield* agent([failing], { tools: [say("a")], limits: { maxTurns: 1 } })
          yield* script.agent.subscribe(({ _tag }) => (_tag === when ? script.agent.cancel() : Effect.void))
          yield* Effect.exit(script.agent.prompt("hi"))
          assert.strictEqual(status(script.events), "failed", when)
          assert.deepStrictEqual(Invariants.broken(script.events), [], when)
        }
        const stopping = yield* agent([], { limits: { maxTurns: 0, onMaxTurns: "stop" } })
        yield* stopping.agent.subscribe(({ _tag }) =>
          _tag === "LimitReached" ? stopping.agent.cancel() : Effect.void
        )
        yield* stopping.agent.prompt("hi")
        assert.deepStrictEqual(Invariants.broken(stopping.events), [])
      })
    )

    it.effect("after the run is over is nothing, also by the handle of an old run", () =>
      Effect.gen(function* () {
        const script = yield* agent([done, done, done])
        const old = yield* script.agent.start("1")
        yield* old.result
        yield* script.agent.cancel()
        assert.strictEqual((yield* script.agent.prompt("2")).status, "completed")
        yield* script.agent.subscribe(({ _tag }) => (_tag === "TurnStart" ? old.cancel() : Effect.void))
        assert.strictEqual((yield* script.agent.prompt("3")).status, "completed")
      })
    )

    it.effect("stops one agent, and not another on the same layers", () =>
      Effect.gen(function* () {
        const one = yield* gated
        const two = yield* gated
        const left = yield* agent([call("gated"), done], { tools: [one.tool] })
        const right = yield* agent([call("gated"), done], { tools: [two.tool] })
        const [first, second] = yield* Effect.all([left.agent.start("hi"), right.agent.start("hi")])
        yield* Effect.andThen(one.began.await, two.began.await)
        yield* left.agent.cancel()
        assert.strictEqual((yield* first.result).status, "cancelled")
        yield* two.go.open
        assert.strictEqual((yield* second.result).status, "completed")
      })
    )

    it.effect("of a run stops the runs its tools started, and waits for their ends", () =>
      Effect.gen(function* () {
        const { began, tool } = yield* gated
        const inner = yield* agent([call("gated")], { tools: [tool] })
        const delegate = Tool.make({
          name: "delegate",
          description: "Asks another agent.",
          execute: () => Effect.map(inner.agent.prompt("go"), ({ status: ended }) => ended)
        })
        const outer = yield* agent([call("delegate")], { tools: [delegate] })
        const run = yield* outer.agent.start("hi")
        yield* began.await
        yield* run.cancel("enough")
        assert.strictEqual((yield* run.result).status, "cancelled")
        assert.strictEqual(status(inner.events), "cancelled")
        assert.deepStrictEqual(Invariants.broken(inner.events), [])
        assert.deepStrictEqual(inner.events[0]?.parent, { runId: run.runId, toolCallId: "call-1" })
      })
    )

    it.effect("does not wait for a provider that goes on although nobody listens", () =>
      Effect.gen(function* () {
        const began = yield* Latch.make(false)
        const script = yield* agent([
          ScriptedProvider.ignoringAbort(
            ScriptedProvider.turn(Step.start, Step.text("Hel"), Step.run(began.open), Step.never)
          )
        ])
        const run = yield* script.agent.start("hi")
        yield* began.await
        yield* settle()
        yield* run.cancel()
        assert.strictEqual((yield* run.result).status, "cancelled")
      })
    )

    it.effect("leaves a tool behind that ignores it, after a grace of 100 ms, and says so", () =>
      Effect.gen(function* () {
        const { began, tool } = yield* deaf
        const script = yield* agent([calls("deaf", "other")], { tools: [tool, say("other")] })
        const run = yield* Effect.forkChild(script.agent.prompt("hi"))
        yield* began.await
        yield* settle()
        yield* script.agent.cancel()
        yield* TestClock.adjust(99)
        assert.isUndefined(run.pollUnsafe())
        yield* TestClock.adjust(1)
        const { newMessages, status: ended } = yield* Fiber.join(run)
        assert.strictEqual(ended, "cancelled")
        assert.include(resultTexts(newMessages)[0], "left behind")
        assert.deepStrictEqual(Invariants.broken(script.events), [])
      })
    )
  })

  describe("interruption", () => {
    it.effect("by a timeout around a prompt cancels it, and the agent is free at once", () =>
      Effect.gen(function* () {
        const { began, turn } = yield* stalled
        const script = yield* agent([turn, done])
        const run = yield* script.agent.prompt("hi").pipe(Effect.timeoutOption("5 seconds"), Effect.forkChild)
        yield* began.await
        yield* TestClock.adjust("5 seconds")
        assert.isTrue(Option.isNone(yield* Fiber.join(run)))
        assert.strictEqual(status(script.events), "cancelled")
        assert.strictEqual((yield* script.agent.prompt("again")).status, "completed")
      })
    )

    it.effect("of a stateless run tells its hooks that it was cancelled", () =>
      Effect.gen(function* () {
        const { began, turn } = yield* stalled
        const heard = yield* Deferred.make<string>()
        const run = yield* Effect.forkChild(
          play([turn], {
            hooks: [Hook.afterExecution(({ status: ended }) => Effect.asVoid(Deferred.succeed(heard, ended)))]
          })
        )
        yield* began.await
        yield* Fiber.interrupt(run)
        assert.strictEqual(yield* Deferred.await(heard), "cancelled")
      })
    )

    it.effect("of a run that is paused ends it", () =>
      Effect.gen(function* () {
        const paused = yield* Latch.make(false)
        const script = yield* agent([done, done])
        yield* script.agent.subscribe(({ _tag }) =>
          _tag === "RunStart" ? script.agent.pause() : _tag === "RunPaused" ? paused.open : Effect.void
        )
        const run = yield* Effect.forkChild(script.agent.prompt("hi"))
        yield* paused.await
        yield* settle()
        yield* Fiber.interrupt(run)
        assert.strictEqual(status(script.events), "cancelled")
        assert.notInclude(tags(script.events), "RunResumed")
        assert.deepStrictEqual(script.agent.state.getUnsafe().messages, [])
      })
    )

    it.effect("of the fiber that started a run does not touch it: it belongs to the agent's scope", () =>
      Effect.gen(function* () {
        const { began, go, tool } = yield* gated
        const script = yield* agent([call("gated"), done], { tools: [tool] })
        const handle = yield* Deferred.make<Agent.StartedRun>()
        const starter = yield* Effect.forkChild(
          Effect.andThen(
            Effect.flatMap(script.agent.start("hi"), (run) => Deferred.succeed(handle, run)),
            Effect.never
          )
        )
        const run = yield* Deferred.await(handle)
        yield* began.await
        yield* Fiber.interrupt(starter)
        yield* go.open
        assert.strictEqual((yield* run.result).status, "completed")
      })
    )
  })

  describe("pause", () => {
    /** Goes through a paused run: whoever pauses it, it waits at its next gate until it is resumed. */
    const resumed = Effect.fnUntraced(function* (
      script: ScriptedProvider.Script,
      options: Parameters<typeof agent>[1],
      when: (event: AgentEvent.AgentEvent) => boolean,
      reason?: string
    ) {
      const paused = yield* Latch.make(false)
      const one = yield* agent(script, options)
      yield* one.agent.subscribe((event) => {
        if (event._tag === "RunPaused") return paused.open
        return when(event) ? one.agent.pause(reason) : Effect.void
      })
      const run = yield* Effect.forkChild(one.agent.prompt("hi"))
      yield* paused.await
      yield* settle()
      const state = one.agent.state.getUnsafe()
      const asked = (yield* one.requests).length
      yield* one.agent.resume()
      return { ...one, asked, state, result: yield* Fiber.join(run) }
    })

    it.effect("holds the run at its next gate, shows it, and goes on (rows 212, 213)", () =>
      Effect.gen(function* () {
        const { asked, events, result, state } = yield* resumed(
          [call("a"), done],
          { tools: [say("a")] },
          ({ _tag, turn }) => _tag === "TurnEnd" && turn === 1,
          "lunch"
        )
        assert.strictEqual(asked, 1)
        assert.strictEqual(state.phase, "paused")
        assert.strictEqual(result.status, "completed")
        const between = tags(events).slice(tags(events).indexOf("TurnEnd"))
        assert.deepStrictEqual(between.slice(0, 4), ["TurnEnd", "RunPaused", "RunResumed", "TurnStart"])
        assert.strictEqual(ofTag(events, "RunPaused")[0]?.reason, "lunch")
        assert.deepStrictEqual(
          result.report.audit.map(({ detail, type }) => [type, detail]),
          [
            ["execution_paused", "lunch"],
            ["execution_resumed", undefined]
          ]
        )
      })
    )

    it.effect("does not hold the answer being said nor a tool that runs", () =>
      Effect.gen(function* () {
        const { events, result } = yield* resumed(
          [
            ScriptedProvider.turn(Step.text(["a", "b", "c"]), Step.toolCall("x", {}), Step.finish("toolUse")),
            done
          ],
          { tools: [say("x")] },
          ({ _tag }) => _tag === "ToolInvoked"
        )
        const order = tags(events).filter((tag) =>
          ["ToolInvoked", "ToolExecutionEnd", "TurnEnd", "RunPaused"].includes(tag)
        )
        assert.deepStrictEqual(order, ["ToolInvoked", "ToolExecutionEnd", "TurnEnd", "RunPaused", "TurnEnd"])
        assert.strictEqual(result.status, "completed")
      })
    )

    it.effect("between tools shows the tools again when it is over", () =>
      Effect.gen(function* () {
        const { began, go, tool } = yield* gated
        const script = yield* agent([call("gated"), done], { tools: [tool] })
        yield* script.agent.subscribe(({ _tag }) => {
          if (_tag === "RunPaused") return script.agent.resume()
          return _tag === "ToolsDetected" ? script.agent.pause() : Effect.void
        })
        const run = yield* script.agent.start("hi")
        yield* began.await
        yield* settle()
        assert.strictEqual(script.agent.state.getUnsafe().phase, "tools")
        yield* go.open
        yield* run.result
      })
    )

    it.effect("after the first of two sequential tools holds the second (row 167)", () =>
      Effect.gen(function* () {
        const script = yield* agent([calls("a", "b"), done], {
          tools: [say("a"), say("b")],
          toolExecution: "sequential"
        })
        const invoked = () => ofTag(script.events, "ToolInvoked").map(({ toolName }) => toolName)
        const held: Array<ReadonlyArray<string>> = []
        yield* script.agent.subscribe((event) => {
          if (event._tag === "ToolExecutionEnd" && event.toolName === "a") return script.agent.pause()
          if (event._tag !== "RunPaused") return Effect.void
          held.push(invoked())
          return Effect.orDie(script.agent.resume())
        })
        yield* script.agent.prompt("hi")
        assert.deepStrictEqual([held, invoked()], [[["a"]], ["a", "b"]])
      })
    )

    it.effect("asked for twice holds once, for its first reason (row 212)", () =>
      Effect.gen(function* () {
        let reasons = 0
        const paused = yield* Latch.make(false)
        const script = yield* agent([done])
        yield* script.agent.subscribe(({ _tag }) => {
          if (_tag === "RunPaused") return paused.open
          return _tag === "RunStart"
            ? Effect.andThen(script.agent.pause("first"), script.agent.pause("second"))
            : Effect.sync(() => void reasons++)
        })
        const run = yield* Effect.forkChild(script.agent.prompt("hi"))
        yield* paused.await
        yield* script.agent.resume()
        assert.strictEqual((yield* Effect.flip(script.agent.resume()))._tag, "NotPaused")
        yield* Fiber.join(run)
        assert.deepStrictEqual(
          ofTag(script.events, "RunPaused").map(({ reason }) => reason),
          ["first"]
        )
        assert.strictEqual(ofTag(script.events, "RunResumed").length, 1)
      })
    )

    it.effect(
      "of an idle agent is nothing, and resuming one that is not paused names continue (rows 213, 221)",
      () =>
        Effect.gen(function* () {
          const script = yield* agent([done])
          yield* script.agent.pause("early")
          const error = yield* Effect.flip(script.agent.resume())
          assert.strictEqual(error._tag, "NotPaused")
          assert.include(error.message, "continue")
          assert.strictEqual((yield* script.agent.prompt("hi")).status, "completed")
          assert.notInclude(tags(script.events), "RunPaused")
        })
    )

    it.effect("taken back before the gate is never seen", () =>
      Effect.gen(function* () {
        const script = yield* agent([call("a"), done], { tools: [say("a")] })
        yield* script.agent.subscribe(({ _tag }) => {
          if (_tag === "ToolInvoked") return script.agent.pause()
          return _tag === "ToolExecutionEnd" ? script.agent.resume() : Effect.void
        })
        yield* script.agent.prompt("hi")
        assert.notInclude(tags(script.events), "RunPaused")
      })
    )

    it.effect(
      "at any event holds the run at the next gate, and changes nothing else",
      () =>
        Effect.gen(function* () {
          const script = [calls("x", "y"), done]
          const tools = [say("x"), say("y")]
          const whole = yield* agent(script, { tools })
          const { newMessages } = yield* whole.agent.prompt("hi")
          for (const at of range(whole.events.length)) {
            const one = yield* agent(script, { tools })
            yield* one.agent.subscribe((event) => {
              if (event._tag === "RunPaused") return one.agent.resume()
              return event.seq === at + 1 ? one.agent.pause() : Effect.void
            })
            const result = yield* one.agent.prompt("hi")
            assert.strictEqual(result.status, "completed")
            assert.deepStrictEqual(texts(result.newMessages), texts(newMessages))
            assert.deepStrictEqual(Invariants.broken(one.events), [], `at ${at + 1}`)
          }
        }),
      60_000
    )

    it.effect("by a hook: any that asks for it, with its reason, at each gate", () =>
      Effect.gen(function* () {
        const asked: Array<number> = []
        const script = yield* agent([call("a"), done], {
          tools: [say("a")],
          hooks: [
            Hook.pauseCheck(({ turn }) => {
              asked.push(turn)
              return Effect.succeed({ shouldPause: turn === 1, reason: "review" })
            }),
            Hook.pauseCheck(() => Effect.succeed({ shouldPause: false }))
          ]
        })
        yield* script.agent.subscribe(({ _tag }) =>
          _tag === "RunPaused" ? script.agent.resume() : Effect.void
        )
        const { status: ended } = yield* script.agent.prompt("hi")
        assert.strictEqual(ended, "completed")
        assert.deepStrictEqual(asked, [1, 2])
        assert.isBelow(tags(script.events).indexOf("RunPaused"), tags(script.events).indexOf("TurnStart"))
        assert.deepStrictEqual(
          ofTag(script.events, "RunPaused").map(({ reason }) => reason),
          ["review"]
        )
      })
    )

    it.effect("by a hook that reads the metrics and the report of the run so far (row 122)", () =>
      Effect.gen(function* () {
        const seen: Array<unknown> = []
        const script = yield* agent([call("a"), done], {
          tools: [say("a")],
          hooks: [
            Hook.pauseCheck(({ report }) => {
              seen.push([report.turns, report.toolCalls, report.toolSuccess])
              return Effect.succeed({ shouldPause: report.toolCalls > 0, reason: "review" })
            })
          ]
        })
        yield* script.agent.subscribe(({ _tag }) =>
          _tag === "RunPaused" ? script.agent.resume() : Effect.void
        )
        yield* script.agent.prompt("hi")
        assert.deepStrictEqual(seen, [
          [0, 0, 0],
          [1, 1, 1]
        ])
        assert.strictEqual(ofTag(script.events, "RunPaused").length, 1)
      })
    )

    it.effect("lets what is changed meanwhile count for the turn it holds back", () =>
      Effect.gen(function* () {
        for (const byHook of [false, true]) {
          const script = yield* agent([call("a"), done], {
            tools: [say("a")],
            hooks: [Hook.pauseCheck(({ turn }) => Effect.succeed({ shouldPause: byHook && turn === 2 }))]
          })
          yield* script.agent.subscribe((event) => {
            if (event._tag === "TurnEnd" && event.turn === 1 && !byHook) return script.agent.pause()
            if (event._tag !== "RunPaused") return Effect.void
            return script.agent
              .setMessages([Message.user("instead")])
              .pipe(
                Effect.andThen(script.agent.update({ model: "other" })),
                Effect.andThen(script.agent.resume())
              )
          })
          yield* script.agent.prompt("hi")
          const [, second] = yield* script.requests
          assert.strictEqual(second?.model, "other")
          assert.deepStrictEqual(texts(second?.messages ?? []), ["instead"])
        }
      })
    )

    it.effect("by a hook, then cancelled: nothing is consumed (row 219)", () =>
      Effect.gen(function* () {
        const script = yield* agent([done], {
          hooks: [Hook.pauseCheck(() => Effect.succeed({ shouldPause: true }))]
        })
        yield* script.agent.subscribe(({ _tag }) =>
          _tag === "RunPaused" ? script.agent.cancel() : Effect.void
        )
        const { newMessages, status: ended } = yield* script.agent.prompt("hi")
        assert.strictEqual(ended, "cancelled")
        assert.deepStrictEqual(newMessages, [])
        assert.strictEqual(ofTag(script.events, "RunPaused")[0]?.reason, "Hook requested pause")
      })
    )

    it.effect("lasts beyond the time limits of hooks and tools", () =>
      Effect.gen(function* () {
        const paused = yield* Latch.make(false)
        const script = yield* agent([call("a"), done], { tools: [say("a")] })
        yield* script.agent.subscribe(({ _tag }) =>
          _tag === "RunPaused" ? paused.open : _tag === "ToolsDetected" ? script.agent.pause() : Effect.void
        )
        const run = yield* Effect.forkChild(script.agent.prompt("hi"))
        yield* paused.await
        yield* TestClock.adjust("3 days")
        yield* script.agent.resume()
        const { status: ended } = yield* Fiber.join(run)
        assert.strictEqual(ended, "completed")
        assert.deepStrictEqual(outcomes(script.events), ["success"])
      })
    )
  })

  describe("waiting", () => {
    it.effect(
      "for idle is over for everybody when the last subscriber has heard of the end (rows 104, 202)",
      () =>
        Effect.gen(function* () {
          const { began, go, tool } = yield* gated
          const script = yield* agent([call("gated"), done], { tools: [tool] })
          const order: Array<string> = []
          yield* script.agent.subscribe(({ _tag }) =>
            _tag === "RunEnd"
              ? Effect.andThen(
                  settle(),
                  Effect.sync(() => void order.push("heard"))
                )
              : Effect.void
          )
          yield* script.agent.start("hi")
          yield* began.await
          const waiters = yield* Effect.forEach(range(3), () =>
            script.agent.waitForIdle.pipe(
              Effect.andThen(Effect.sync(() => void order.push("idle"))),
              Effect.forkChild({ startImmediately: true })
            )
          )
          yield* go.open
          yield* Fiber.joinAll(waiters)
          assert.deepStrictEqual(order, ["heard", "idle", "idle", "idle"])
          assert.strictEqual(script.agent.state.getUnsafe().phase, "idle")
        })
    )

    it.effect("for a started run gives everybody its result, also when it is over", () =>
      Effect.gen(function* () {
        const { began, go, tool } = yield* gated
        const script = yield* agent([call("gated"), done], { tools: [tool] })
        const run = yield* script.agent.start("hi")
        const waiters = yield* Effect.forEach(range(3), () => Effect.forkChild(run.result))
        yield* began.await
        yield* go.open
        const results = yield* Fiber.joinAll(waiters)
        const again = yield* run.result
        for (const result of results) assert.strictEqual(result, again)
      })
    )

    it.effect("for a started run may be given up, and the run goes on", () =>
      Effect.gen(function* () {
        const { began, go, tool } = yield* gated
        const script = yield* agent([call("gated"), done], { tools: [tool] })
        const run = yield* script.agent.start("hi")
        const waiter = yield* Effect.forkChild(run.result, { startImmediately: true })
        yield* began.await
        yield* Fiber.interrupt(waiter)
        yield* go.open
        assert.strictEqual((yield* run.result).status, "completed")
      })
    )

    it.effect("for idle may be given up, and the run goes on (row 202)", () =>
      Effect.gen(function* () {
        const { began, go, tool } = yield* gated
        const script = yield* agent([call("gated"), done], { tools: [tool] })
        const run = yield* script.agent.start("hi")
        yield* began.await
        const waited = yield* script.agent.waitForIdle.pipe(
          Effect.timeoutOption("1 second"),
          Effect.forkChild
        )
        yield* settle()
        yield* TestClock.adjust("1 second")
        assert.isTrue(Option.isNone(yield* Fiber.join(waited)))
        yield* go.open
        assert.strictEqual((yield* run.result).status, "completed")
      })
    )

    it.effect("for idle is over at once where there is no run (row 202)", () =>
      Effect.gen(function* () {
        const script = yield* agent([done])
        yield* script.agent.waitForIdle
        yield* script.agent.prompt("hi")
        yield* script.agent.waitForIdle
        assert.strictEqual(script.agent.state.getUnsafe().phase, "idle")
      })
    )

    it.effect("for idle is over after a run that failed, or died, too", () =>
      Effect.gen(function* () {
        const script = yield* agent([ScriptedProvider.die("boom"), done])
        const run = yield* script.agent.start("hi")
        yield* script.agent.waitForIdle
        assert.isTrue(Exit.isFailure(yield* Effect.exit(run.result)))
        assert.strictEqual((yield* script.agent.prompt("again")).status, "completed")
      })
    )
  })
})
