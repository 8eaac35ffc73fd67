import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { Agent, AgentEvent, Hook, Message, ProviderError, Tool } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import * as Invariants from "./invariants.ts"
import { agent, failing, failureOf, gated, ofTag, outcomes, play, range, reasonOf, say } from "./play.ts"
import { settle, status, tags, texts } from "./play.ts"

const done = ScriptedProvider.text("done")
const call = (name: string) => ScriptedProvider.toolCall(name, {})
const calls = (...names: ReadonlyArray<string>) =>
  ScriptedProvider.toolCalls(...names.map((name) => ({ name, params: {} })))
const ends = say("ends", Tool.output("over", { terminate: true }))
const none = { steering: 0, followUp: 0 }

/** What users said, in the order the transcript has it. */
const asked = (messages: ReadonlyArray<Message.Message>) =>
  texts(messages.filter(({ role }) => role === "user"))

/** Does something the first time an event comes by. */
const once = (
  { events }: { readonly events: ReadonlyArray<AgentEvent.AgentEvent> },
  tag: AgentEvent.AgentEvent["_tag"],
  effect: Effect.Effect<void>
) => {
  let did = false
  return (event: AgentEvent.AgentEvent) => {
    if (did || event._tag !== tag || events.length === 0) return Effect.void
    did = true
    return effect
  }
}

describe("Queues", () => {
  it.effect("a batch that terminates goes on for queued messages, and else ends the run (row 89)", () =>
    Effect.gen(function* () {
      const script = yield* agent([call("ends"), done, call("ends"), done, call("ends")], { tools: [ends] })
      const { agent: one } = script
      yield* one.subscribe(once(script, "ToolInvoked", one.steer("steered")))
      const steered = yield* one.prompt("1")
      assert.strictEqual(steered.status, "completed")
      assert.deepStrictEqual(asked(steered.newMessages), ["1", "steered"])
      yield* one.followUp("followed")
      const followed = yield* one.prompt("2")
      assert.strictEqual(followed.status, "completed")
      assert.deepStrictEqual(asked(followed.newMessages), ["2", "followed"])
      assert.strictEqual((yield* one.prompt("3")).status, "terminated")
    })
  )

  it.effect("a batch with one call that does not terminate goes on (row 89)", () =>
    Effect.gen(function* () {
      const script = yield* agent([calls("ends", "a"), done], { tools: [ends, say("a")] })
      const { newMessages, status: ended } = yield* script.agent.prompt("hi")
      assert.strictEqual(ended, "completed")
      assert.deepStrictEqual(texts(newMessages), ["hi", "", "over", "a", "done"])
      assert.notInclude(JSON.stringify(newMessages), "terminate")
    })
  )

  it.effect("steering queued before a prompt comes after it, one message a turn (row 88)", () =>
    Effect.gen(function* () {
      const script = yield* agent([ScriptedProvider.text("a1"), ScriptedProvider.text("a2")])
      yield* script.agent.steer("s1")
      yield* script.agent.steer("s2")
      const { newMessages } = yield* script.agent.prompt("p")
      assert.deepStrictEqual(texts(newMessages), ["p", "s1", "a1", "s2", "a2"])
      assert.strictEqual((yield* script.requests).length, 2)
    })
  )

  it.effect("queued messages are not lost when the turns run out (row 80)", () =>
    Effect.gen(function* () {
      for (const onMaxTurns of ["fail", "stop", "wrapUp"] as const) {
        const script = yield* agent([call("a"), done], {
          tools: [say("a")],
          limits: { maxTurns: 1, onMaxTurns }
        })
        yield* script.agent.subscribe(
          once(script, "ToolInvoked", Effect.andThen(script.agent.steer("s"), script.agent.followUp("f")))
        )
        yield* Effect.exit(script.agent.prompt("hi"))
        assert.deepStrictEqual(yield* script.agent.queues.sizes, { steering: 1, followUp: 1 }, onMaxTurns)
      }
    })
  )

  it.effect("nor when the last allowed turn ends the run by itself", () =>
    Effect.gen(function* () {
      const script = yield* agent([done], { limits: { maxTurns: 1 } })
      yield* script.agent.followUp("f")
      const { status: ended } = yield* script.agent.prompt("hi")
      assert.strictEqual(ended, "completed")
      assert.deepStrictEqual(yield* script.agent.queues.sizes, { steering: 0, followUp: 1 })
    })
  )

  it.effect(
    "a follow-up that races with the end of a run is delivered or still queued, never dropped (row 200)",
    () =>
      Effect.gen(function* () {
        let delivered = 0
        for (const yields of range(80)) {
          const script = yield* agent([call("a"), done, done], { tools: [say("a")] })
          const run = yield* Effect.forkChild(script.agent.prompt("hi"))
          yield* Effect.repeat(Effect.yieldNow, { times: yields })
          yield* yields % 2 === 0 ? script.agent.followUp("late") : script.agent.steer("late")
          const { newMessages } = yield* Fiber.join(run)
          const heard = asked(newMessages).filter((text) => text === "late").length
          const { followUp, steering } = yield* script.agent.queues.sizes
          assert.strictEqual(heard + followUp + steering, 1, `after ${yields} yields`)
          delivered += heard
        }
        assert.isAbove(delivered, 0)
        assert.isBelow(delivered, 80)
      }),
    60_000
  )

  it.effect(
    "a message queued at any event is delivered in order, or still queued",
    () =>
      Effect.gen(function* () {
        for (const queue of ["steer", "followUp"] as const) {
          const whole = yield* agent([calls("a", "a"), done], { tools: [say("a")] })
          yield* whole.agent.prompt("hi")
          for (const at of range(whole.events.length)) {
            const one = yield* agent([calls("a", "a"), done, done, done], { tools: [say("a")] })
            yield* one.agent.subscribe(({ seq }) =>
              seq === at + 1 ? one.agent[queue]([Message.user("x"), Message.user("y")]) : Effect.void
            )
            const { newMessages } = yield* one.agent.prompt("hi")
            const { followUp, steering } = yield* one.agent.queues.sizes
            const heard = asked(newMessages).slice(1)
            assert.deepStrictEqual(heard, ["x", "y"].slice(0, heard.length))
            assert.strictEqual(heard.length + followUp + steering, 2, `${queue} at ${at + 1}`)
            assert.deepStrictEqual(Invariants.broken(one.events), [])
          }
        }
      }),
    60_000
  )

  it.effect("a follow-up may lead to another, each in a turn of its own (row 87)", () =>
    Effect.gen(function* () {
      const script = yield* agent(["1", "2", "3"].map((text) => ScriptedProvider.text(text)))
      yield* script.agent.subscribe((event) =>
        event._tag === "MessageEnd" &&
        event.message.role === "user" &&
        Message.textOf(event.message) !== "third"
          ? script.agent.followUp(Message.textOf(event.message) === "hi" ? "second" : "third")
          : Effect.void
      )
      const { newMessages, turns } = yield* script.agent.prompt("hi")
      assert.deepStrictEqual(texts(newMessages), ["hi", "1", "second", "2", "third", "3"])
      assert.strictEqual(turns, 3)
    })
  )

  it.effect("steering comes before follow-ups, whichever was queued first (row 87)", () =>
    Effect.gen(function* () {
      const script = yield* agent([call("a"), done, done, done], { tools: [say("a")] })
      yield* script.agent.subscribe(
        once(script, "ToolInvoked", Effect.andThen(script.agent.followUp("f"), script.agent.steer("s")))
      )
      const { newMessages } = yield* script.agent.prompt("hi")
      assert.deepStrictEqual(asked(newMessages), ["hi", "s", "f"])
    })
  )

  it.effect("a mode changed in mid-run counts from the next time the queue is asked (row 198)", () =>
    Effect.gen(function* () {
      const script = yield* agent([done, done, done, done, done])
      yield* script.agent.followUp(["1", "2", "3"].map((text) => Message.user(text)))
      yield* script.agent.subscribe((event) =>
        event._tag === "MessageEnd" && Message.textOf(event.message) === "1"
          ? script.agent.queues.setMode("followUp", "all")
          : Effect.void
      )
      const { turns } = yield* script.agent.prompt("hi")
      assert.strictEqual(turns, 3)
      assert.deepStrictEqual(yield* script.agent.queues.sizes, none)
    })
  )

  it.effect("keep their order, each in its own mode, however many (row 197)", () =>
    Effect.gen(function* () {
      const script = yield* agent([done, done, done], { steeringMode: "all" })
      yield* Effect.forEach(range(200), (n) => script.agent.steer(`${n}`))
      yield* script.agent.followUp("f1")
      yield* script.agent.followUp("f2")
      const { newMessages, turns } = yield* script.agent.prompt("hi")
      assert.deepStrictEqual(asked(newMessages), ["hi", ...range(200).map(String), "f1", "f2"])
      assert.strictEqual(turns, 3)
    })
  )

  it.effect("take any message as it is: several, custom, with images (rows 13, 211)", () =>
    Effect.gen(function* () {
      const image = Message.user([Message.image("aGk=", "image/png")])
      const note = Message.custom("note", { by: "ui" })
      const script = yield* agent([done], { steeringMode: "all" })
      yield* script.agent.steer([])
      yield* script.agent.steer([image, note])
      const { newMessages } = yield* script.agent.prompt("hi")
      assert.strictEqual(newMessages[1], image)
      assert.strictEqual(newMessages[2], note)
      assert.deepStrictEqual((yield* script.requests)[0]?.messages.length, 2)
    })
  )

  it.effect("tell their sizes when they change, and last before the end what is left (row 107)", () =>
    Effect.gen(function* () {
      const script = yield* agent([call("a"), done, done], { tools: [say("a")], limits: { maxTurns: 2 } })
      yield* script.agent.subscribe(
        once(
          script,
          "ToolInvoked",
          script.agent
            .steer([Message.user("1"), Message.user("2")])
            .pipe(Effect.andThen(script.agent.followUp("3")))
        )
      )
      yield* script.agent.prompt("hi")
      const sizes = ofTag(script.events, "QueueUpdate").map(({ followUp, steering }) => [steering, followUp])
      assert.deepStrictEqual(sizes[0], [2, 1])
      assert.deepStrictEqual(sizes.at(-1), [1, 1])
      assert.deepStrictEqual(yield* script.agent.queues.sizes, { steering: 1, followUp: 1 })
    })
  )

  it.effect("that did not change tell nothing", () =>
    Effect.gen(function* () {
      const script = yield* agent([done])
      yield* script.agent.steer([])
      yield* script.agent.queues.clear("all")
      yield* script.agent.prompt("hi")
      assert.notInclude(tags(script.events), "QueueUpdate")
    })
  )

  it.effect("are cleared one by one, or both (row 199)", () =>
    Effect.gen(function* () {
      const script = yield* agent([])
      const fill = Effect.andThen(script.agent.steer("s"), script.agent.followUp("f"))
      yield* fill
      yield* script.agent.queues.clear("steering")
      assert.deepStrictEqual(yield* script.agent.queues.sizes, { steering: 0, followUp: 1 })
      yield* script.agent.queues.clear("followUp")
      yield* fill
      yield* script.agent.queues.clear("followUp")
      assert.deepStrictEqual(yield* script.agent.queues.sizes, { steering: 1, followUp: 0 })
      yield* fill
      yield* script.agent.queues.clear("all")
      assert.deepStrictEqual(yield* script.agent.queues.sizes, none)
    })
  )

  describe("get back what was taken and not delivered", () => {
    it.effect("when a limit stops the run between the two", () =>
      Effect.gen(function* () {
        const script = yield* agent([ScriptedProvider.toolCall("a", {}, { usage: { input: 100 } })], {
          tools: [say("a")],
          steeringMode: "all",
          limits: { maxTotalTokens: 100 }
        })
        yield* script.agent.subscribe(
          once(script, "ToolInvoked", script.agent.steer([Message.user("1"), Message.user("2")]))
        )
        const exit = yield* Effect.exit(script.agent.prompt("hi"))
        assert.deepInclude(reasonOf(exit), { _tag: "LimitExceeded", limit: "maxTotalTokens" })
        assert.deepStrictEqual(asked(failureOf(exit)?.result.undelivered ?? []), ["1", "2"])
        assert.deepStrictEqual(yield* script.agent.queues.sizes, { steering: 2, followUp: 0 })
        assert.deepStrictEqual(Invariants.broken(script.events), [])
      })
    )

    it.effect("in front of what was queued meanwhile", () =>
      Effect.gen(function* () {
        const script = yield* agent([call("a"), done, done, done], { tools: [say("a")] })
        yield* script.agent.subscribe(once(script, "ToolInvoked", script.agent.steer("1")))
        yield* script.agent.hooks.register(
          Hook.pauseCheck(({ turn }) =>
            turn === 2
              ? Effect.andThen(script.agent.steer("2"), Effect.asVoid(script.agent.cancel()))
              : Effect.void
          )
        )
        assert.strictEqual((yield* script.agent.prompt("hi")).status, "cancelled")
        yield* script.agent.queues.setMode("steering", "all")
        const { newMessages } = yield* script.agent.prompt("again")
        assert.deepStrictEqual(asked(newMessages), ["1", "2", "again"])
      })
    )

    it.effect("when a run resumed from a queue is stopped at its first gate", () =>
      Effect.gen(function* () {
        for (const queue of ["steer", "followUp"] as const) {
          const script = yield* agent([done, done])
          yield* script.agent.prompt("hi")
          yield* script.agent[queue]("more")
          yield* script.agent.update({ limits: { maxTurns: 0 } })
          const exit = yield* Effect.exit(script.agent.continue)
          assert.deepInclude(reasonOf(exit), { limit: "maxTurns" })
          assert.deepStrictEqual(
            yield* script.agent.queues.sizes,
            queue === "steer" ? { steering: 1, followUp: 0 } : { steering: 0, followUp: 1 }
          )
          yield* script.agent.update({ limits: { maxTurns: 5 } })
          const { newMessages } = yield* script.agent.continue
          assert.deepStrictEqual(texts(newMessages), ["more", "done"])
        }
      })
    )

    /** Two calls, the second made moot by steering; then something ends the run. */
    const cutShort = Effect.fnUntraced(function* (
      options: Parameters<typeof agent>[1],
      script: ScriptedProvider.Script = [calls("a", "b")]
    ) {
      const one = yield* agent(script, {
        tools: [say("a"), say("b"), failing("bad")],
        toolExecution: "sequential",
        steeringPolicy: "skipRemaining",
        ...options
      })
      yield* one.agent.subscribe(once(one, "ToolInvoked", one.agent.steer("instead")))
      const exit = yield* Effect.exit(one.agent.prompt("hi"))
      assert.deepStrictEqual(Invariants.broken(one.events), [])
      return { exit, sizes: yield* one.agent.queues.sizes }
    })

    it.effect("when a tool fails the run that skipped its other calls for steering", () =>
      Effect.gen(function* () {
        const { exit, sizes } = yield* cutShort({ toolFailureMode: "fail" }, [calls("bad", "b")])
        assert.strictEqual(reasonOf(exit)?._tag, "ToolFailed")
        assert.deepStrictEqual(sizes, { steering: 1, followUp: 0 })
      })
    )

    it.effect("when a limit on calls ends the run that skipped calls for steering", () =>
      Effect.gen(function* () {
        for (const limits of [{ maxToolCalls: 1 }, { maxIdenticalToolCalls: 1 }]) {
          const { exit, sizes } = yield* cutShort({ limits })
          assert.strictEqual(reasonOf(exit)?._tag, "LimitExceeded")
          assert.deepStrictEqual(sizes, { steering: 1, followUp: 0 })
        }
      })
    )

    it.effect("when a hook ends the run that skipped calls for steering", () =>
      Effect.gen(function* () {
        for (const hook of [
          Hook.shouldStopAfterTurn(() => Effect.succeed(true)),
          Hook.shouldStopAfterTurn(() => Effect.fail("broke")),
          Hook.prepareNextTurn(() => Effect.fail("broke"))
        ]) {
          const { sizes } = yield* cutShort({ hooks: [hook] })
          assert.deepStrictEqual(sizes, { steering: 1, followUp: 0 }, hook.point)
        }
      })
    )
  })

  describe("of the stateless loop are hooks", () => {
    /** What a poll gives, poll by poll. */
    const polled = (batches: ReadonlyArray<ReadonlyArray<string>>, log?: Array<number>) => {
      let poll = 0
      return ({ turn }: { readonly turn: number }) =>
        Effect.sync(() => {
          log?.push(turn)
          return (batches[poll++] ?? []).map((text) => Message.user(text))
        })
    }

    it.effect("whose messages are concatenated in order, polled at the start and after each turn", () =>
      Effect.gen(function* () {
        const log: Array<number> = []
        const followUps: Array<number> = []
        const { view } = yield* play([call("a"), done, done], {
          tools: [say("a")],
          hooks: [
            Hook.steering(polled([["s1"], ["s2"]], log)),
            Hook.steering(polled([["t1"]])),
            Hook.followUp(polled([["f1"]], followUps))
          ]
        })
        assert.deepStrictEqual(asked(view.messages), ["hi", "s1", "t1", "s2", "f1"])
        assert.deepStrictEqual(log, [1, 1, 2, 3])
        assert.deepStrictEqual(followUps, [2, 3])
      })
    )

    it.effect("whose undelivered messages come back in the result", () =>
      Effect.gen(function* () {
        const { exit } = yield* play([ScriptedProvider.toolCall("a", {}, { usage: { input: 9 } })], {
          tools: [say("a")],
          hooks: [Hook.steering(polled([[], ["s1", "s2"]]))],
          options: { limits: { maxTotalTokens: 5 } }
        })
        assert.deepStrictEqual(asked(failureOf(exit)?.result.undelivered ?? []), ["s1", "s2"])
      })
    )

    it.effect("whose messages are not lost when the next of them fails", () =>
      Effect.gen(function* () {
        const { exit } = yield* play([call("a")], {
          tools: [say("a")],
          hooks: [
            Hook.steering(polled([[], ["s1"]])),
            Hook.steering(({ phase }) => (phase === "turnEnd" ? Effect.fail("broke") : Effect.void))
          ]
        })
        assert.strictEqual(reasonOf(exit)?._tag, "TransformFailed")
        assert.deepStrictEqual(asked(failureOf(exit)?.result.undelivered ?? []), ["s1"])
      })
    )
    it.effect("that make the remaining calls moot, when the policy says so", () =>
      Effect.gen(function* () {
        const { events, view } = yield* play([calls("a", "b"), done], {
          tools: [say("a"), say("b")],
          hooks: [Hook.steering(polled([[], ["stop that"]]))],
          options: { toolExecution: "sequential", steeringPolicy: "skipRemaining" }
        })
        assert.deepStrictEqual(outcomes(events), ["success", "skipped"])
        assert.deepStrictEqual(asked(view.messages), ["hi", "stop that"])
      })
    )

    it.effect("that are not asked after an answer that failed (row 75)", () =>
      Effect.gen(function* () {
        const log: Array<number> = []
        yield* play([ScriptedProvider.fail(new ProviderError.Overloaded({ detail: "busy" }))], {
          hooks: [Hook.steering(polled([], log)), Hook.followUp(polled([], log))]
        })
        assert.deepStrictEqual(log, [1])
      })
    )
  })

  describe("with skipRemaining", () => {
    const sequential = { toolExecution: "sequential", steeringPolicy: "skipRemaining" } as const

    it.effect("take one message at a time: what was taken during the tools is not added to after them", () =>
      Effect.gen(function* () {
        const script = yield* agent([calls("a", "b"), done, done], {
          tools: [say("a"), say("b")],
          ...sequential
        })
        yield* script.agent.subscribe(
          once(script, "ToolInvoked", Effect.andThen(script.agent.steer("1"), script.agent.steer("2")))
        )
        const polls: Array<string> = []
        yield* script.agent.hooks.register(
          Hook.steering(({ phase, turn }) => Effect.sync(() => void polls.push(`${phase} ${turn}`)))
        )
        yield* script.agent.prompt("hi")
        assert.deepStrictEqual(
          (yield* script.requests).map(({ messages }) => asked(messages)),
          [["hi"], ["hi", "1"], ["hi", "1", "2"]]
        )
        assert.deepStrictEqual(outcomes(script.events), ["success", "skipped"])
        assert.deepStrictEqual(polls, ["start 1", "tools 1", "turnEnd 2", "turnEnd 3"])
      })
    )

    it.effect("are asked by one poll at a time, though calls end while it goes on", () =>
      Effect.gen(function* () {
        const polls = { going: 0, most: 0, count: 0 }
        const slowly = Hook.steering(({ phase }) =>
          phase !== "tools"
            ? Effect.void
            : Effect.gen(function* () {
                polls.count++
                polls.most = Math.max(polls.most, ++polls.going)
                yield* settle()
                polls.going--
              })
        )
        const script = yield* agent([calls("a", "b", "a"), done], {
          tools: [say("a"), say("b")],
          steeringPolicy: "skipRemaining",
          hooks: [slowly]
        })
        yield* script.agent.prompt("hi")
        assert.isAbove(polls.count, 0)
        assert.strictEqual(polls.most, 1)
      })
    )

    it.effect("are asked after a sequential call that was refused, whoever refused it", () =>
      Effect.gen(function* () {
        for (const [first, outcome] of [
          ["nobody", "unknownTool"],
          ["blocked", "blocked"],
          ["rejected", "rejected"]
        ] as const) {
          const script = yield* agent([calls(first, "b"), done], {
            tools: [say("blocked"), say("rejected"), say("b")],
            hooks: [
              Hook.beforeTool(({ call: { name } }) => Effect.succeed({ block: name === "blocked" })),
              Hook.approveTool(({ call: { name } }) => Effect.succeed({ approved: name !== "rejected" }))
            ],
            ...sequential
          })
          yield* script.agent.subscribe(once(script, "ToolExecutionStart", script.agent.steer("stop that")))
          yield* script.agent.prompt("hi")
          assert.deepStrictEqual(outcomes(script.events), [outcome, "skipped"])
          assert.deepStrictEqual(asked((yield* script.requests)[1]?.messages ?? []), ["hi", "stop that"])
        }
      })
    )
  })

  describe("while steering makes the remaining calls moot", () => {
    it.effect("only calls that have not begun are skipped, whatever the concurrency (rows 86, 165)", () =>
      Effect.gen(function* () {
        const { began, go, tool } = yield* gated
        const script = yield* agent([calls("gated", "a", "b"), done], {
          tools: [tool, say("a"), say("b")],
          toolConcurrency: 1,
          steeringPolicy: "skipRemaining"
        })
        const run = yield* Effect.forkChild(script.agent.prompt("hi"))
        yield* began.await
        yield* script.agent.steer("no more")
        yield* go.open
        const { newMessages } = yield* Fiber.join(run)
        assert.deepStrictEqual(outcomes(script.events), ["success", "skipped", "skipped"])
        assert.deepStrictEqual(texts(newMessages), [
          "hi",
          "",
          "went",
          "Skipped due to queued user message.",
          "Skipped due to queued user message.",
          "no more",
          "done"
        ])
      })
    )

    it.effect("by default none is skipped (row 86)", () =>
      Effect.gen(function* () {
        const script = yield* agent([calls("a", "b"), done], {
          tools: [say("a"), say("b")],
          toolExecution: "sequential"
        })
        yield* script.agent.subscribe(once(script, "ToolInvoked", script.agent.steer("later")))
        yield* script.agent.prompt("hi")
        assert.deepStrictEqual(outcomes(script.events), ["success", "success"])
      })
    )

    it.effect("the answer cut at its token limit is still answered call by call", () =>
      Effect.gen(function* () {
        const script = yield* agent(
          [
            ScriptedProvider.turn(Step.toolCall("a", {}), Step.toolCall("b", {}), Step.finish("length")),
            done
          ],
          { tools: [say("a"), say("b")], steeringPolicy: "skipRemaining" }
        )
        yield* script.agent.subscribe(once(script, "ToolExecutionStart", script.agent.steer("shorter")))
        const { newMessages } = yield* script.agent.prompt("hi")
        assert.deepStrictEqual(outcomes(script.events), ["truncated", "truncated"])
        assert.deepStrictEqual(asked(newMessages), ["hi", "shorter"])
      })
    )
  })

  it.effect("are kept over failed runs, and cleared by a reset (row 201)", () =>
    Effect.gen(function* () {
      const script = yield* agent([ScriptedProvider.die("boom"), ScriptedProvider.die("boom"), done])
      yield* script.agent.followUp("later")
      for (const text of ["1", "2"]) {
        assert.isTrue(Exit.isFailure(yield* Effect.exit(script.agent.prompt(text))))
        assert.deepStrictEqual(yield* script.agent.queues.sizes, { steering: 0, followUp: 1 })
      }
      assert.strictEqual(script.agent.state.getUnsafe().lastError, "boom")
      yield* script.agent.reset
      assert.deepStrictEqual(yield* script.agent.queues.sizes, none)
      const state: Agent.AgentState = script.agent.state.getUnsafe()
      assert.deepStrictEqual(state.messages, [])
      assert.isUndefined(state.lastError)
      assert.strictEqual((yield* script.agent.prompt("hi")).status, "completed")
      assert.strictEqual(status(script.events.slice(-5)), "completed")
    })
  )
})
