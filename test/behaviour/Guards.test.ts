import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch, Schema, Stream } from "effect"
import { AgentEvent, Hook, HookManager, Loop, Message, Tool, ToolRegistry } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import {
  agent,
  echo,
  hookAt,
  ofTag,
  outcomes,
  play,
  resultTexts,
  say,
  settle,
  tags,
  toolResults
} from "./play.ts"

const done = ScriptedProvider.text("done")
const call = (name: string) => ScriptedProvider.toolCall(name, {})
const yes = Hook.approveTool(() => Effect.succeed({ approved: true }))
const no = Hook.approveTool(() => Effect.succeed({ approved: false, reason: "not on Fridays" }))

/** A tool that counts how often it ran. */
const counted = () => {
  const count = { ran: 0 }
  const tool = Tool.make({
    name: "act",
    description: "Does something that cannot be undone.",
    execute: () => Effect.sync(() => ++count.ran)
  })
  return { count, tool }
}

/** Runs one call of a dangerous tool under these hooks, and says whether it ran. */
const guarded = Effect.fnUntraced(function* (...hooks: ReadonlyArray<Hook.Runnable>) {
  const { count, tool } = counted()
  const { events, requests } = yield* play([call("act"), done], { tools: [tool], hooks })
  return { ran: count.ran > 0, outcome: outcomes(events)[0], told: resultTexts(requests[1]?.messages)[0] }
})

describe("Guards", () => {
  it.effect("one rejection rejects, wherever it stands among approvals (rows 116, 117)", () =>
    Effect.gen(function* () {
      for (const hooks of [
        [no, yes],
        [yes, no],
        [yes, no, yes]
      ]) {
        const { outcome, ran, told } = yield* guarded(...hooks)
        assert.isFalse(ran)
        assert.strictEqual(outcome, "rejected")
        assert.include(told, "not on Fridays")
      }
      assert.isTrue((yield* guarded(yes, yes)).ran)
    })
  )

  it.effect("read the name of the tool, although the model wrote white space around it", () =>
    Effect.gen(function* () {
      const { count, tool } = counted()
      const names: Array<string> = []
      const hooks = [
        Hook.beforeTool(({ call }) => Effect.sync(() => void names.push(call.name))),
        Hook.approveTool(({ call }) => Effect.succeed({ approved: call.name !== "act" })),
        Hook.afterTool(({ call }) => Effect.sync(() => void names.push(call.name)))
      ]
      const { events } = yield* play([call(" act "), done], { tools: [tool], hooks })
      assert.strictEqual(count.ran, 0)
      assert.deepStrictEqual(outcomes(events), ["rejected"])
      yield* play([call("\tact"), done], {
        tools: [tool],
        hooks: hooks.filter(({ point }) => point !== "approveTool")
      })
      assert.deepStrictEqual(names, ["act", "act", "act"])
    })
  )

  it.effect("a guard that fails or dies rejects (row 118)", () =>
    Effect.gen(function* () {
      const broken = [
        Hook.approveTool(() => Effect.fail("offline")),
        Hook.approveTool(() => Effect.die(new Error("offline"))),
        Hook.beforeTool(() => Effect.fail("offline")),
        Hook.beforeTool(() => {
          throw new Error("offline")
        })
      ]
      assert.isFalse(
        (yield* guarded(
          Hook.beforeTool(() => Effect.interrupt),
          yes
        )).ran
      )
      assert.isFalse(
        (yield* guarded(
          Hook.approveTool(() => Effect.interrupt),
          yes
        )).ran
      )
      for (const hook of broken) {
        const { outcome, ran, told } = yield* guarded(hook, yes)
        assert.isFalse(ran)
        assert.strictEqual(outcome, "rejected")
        assert.include(told, "offline")
      }
    })
  )

  it.effect("an approval that takes longer than its time limit rejects (row 118)", () =>
    Effect.gen(function* () {
      const asked = yield* Latch.make(false)
      const { count, tool } = counted()
      const run = yield* Effect.forkChild(
        play([call("act"), done], {
          tools: [tool],
          hooks: [Hook.approveTool(() => Effect.andThen(asked.open, Effect.never))],
          options: { approvalTimeout: "1 minute" }
        })
      )
      yield* asked.await
      yield* TestClock.adjust("1 minute")
      const { events } = yield* Fiber.join(run)
      assert.deepStrictEqual(outcomes(events), ["rejected"])
      assert.strictEqual(count.ran, 0)
    })
  )

  it.effect(
    "a guard disabled after three failures in a row is not asked any more, and still rejects (row 118)",
    () =>
      Effect.gen(function* () {
        for (const point of ["approveTool", "beforeTool"] as const) {
          const { count, tool } = counted()
          let asked = 0
          const { events } = yield* play([call("act"), call("act"), call("act"), call("act"), done], {
            tools: [tool],
            hooks: [
              hookAt(point, () => {
                asked++
                return Effect.fail("offline")
              })
            ],
            options: { limits: { maxIdenticalToolCalls: Infinity } }
          })
          assert.strictEqual(asked, 3)
          assert.strictEqual(count.ran, 0)
          assert.deepStrictEqual(outcomes(events), ["rejected", "rejected", "rejected", "rejected"])
          assert.deepStrictEqual(
            ofTag(events, "HookError").map(({ consecutiveErrors, disabled }) => [
              consecutiveErrors,
              disabled
            ]),
            [
              [1, false],
              [2, false],
              [3, true]
            ]
          )
        }
      })
  )

  it.effect("a guard that answers again is trusted again: only failures in a row count", () =>
    Effect.gen(function* () {
      const { count, tool } = counted()
      let asked = 0
      yield* play([...Array.from({ length: 7 }, () => call("act")), done], {
        tools: [tool],
        hooks: [
          Hook.approveTool(() =>
            ++asked % 3 === 0 ? Effect.succeed({ approved: true }) : Effect.fail("offline")
          )
        ],
        options: { limits: { maxIdenticalToolCalls: Infinity } }
      })
      assert.strictEqual(asked, 7)
      assert.strictEqual(count.ran, 2)
    })
  )

  it.effect("a guard disabled in one run is asked again in the next", () =>
    Effect.gen(function* () {
      const { count, tool } = counted()
      let healthy = false
      const three = [call("act"), call("act"), call("act"), done]
      const script = yield* agent([...three, call("act"), done], {
        tools: [tool],
        hooks: [
          Hook.approveTool(() => (healthy ? Effect.succeed({ approved: true }) : Effect.fail("offline")))
        ]
      })
      yield* script.agent.prompt("one")
      assert.strictEqual(count.ran, 0)
      healthy = true
      yield* script.agent.prompt("two")
      assert.strictEqual(count.ran, 1)
    })
  )

  it.effect("fail closed whatever the failure mode says, and are reported in each", () =>
    Effect.gen(function* () {
      for (const hookFailureMode of ["fail", "warn", "ignore"] as const) {
        for (const point of ["approveTool", "beforeTool"] as const) {
          const { count, tool } = counted()
          const { events, view } = yield* play([call("act"), done], {
            tools: [tool],
            hooks: [hookAt(point, () => Effect.fail("offline"))],
            options: { hookFailureMode }
          })
          assert.strictEqual(count.ran, 0)
          assert.deepStrictEqual(outcomes(events), ["rejected"])
          assert.strictEqual(view.status, "completed")
          assert.strictEqual(ofTag(events, "HookError").length, 1)
        }
      }
    })
  )

  it.effect("a beforeTool hook has five seconds by default, and is stopped then", () =>
    Effect.gen(function* () {
      const asked = yield* Latch.make(false)
      let stopped = false
      const { count, tool } = counted()
      const slow = Hook.beforeTool(() =>
        Effect.andThen(asked.open, Effect.never).pipe(
          Effect.onInterrupt(() => Effect.sync(() => (stopped = true)))
        )
      )
      const run = yield* Effect.forkChild(play([call("act"), done], { tools: [tool], hooks: [slow] }))
      yield* asked.await
      yield* TestClock.adjust(4999)
      yield* settle()
      assert.isFalse(stopped)
      yield* TestClock.adjust(1)
      const { events } = yield* Fiber.join(run)
      assert.isTrue(stopped)
      assert.strictEqual(count.ran, 0)
      assert.deepStrictEqual(outcomes(events), ["rejected"])
    })
  )

  it.effect("a person may take hours to approve", () =>
    Effect.gen(function* () {
      const asked = yield* Latch.make(false)
      const answered = yield* Latch.make(false)
      const { count, tool } = counted()
      const run = yield* Effect.forkChild(
        play([call("act"), done], {
          tools: [tool],
          hooks: [
            Hook.approveTool(() => Effect.andThen(asked.open, Effect.as(answered.await, { approved: true })))
          ]
        })
      )
      yield* asked.await
      yield* TestClock.adjust("8 hours")
      yield* settle()
      assert.strictEqual(count.ran, 0)
      yield* answered.open
      yield* Fiber.join(run)
      assert.strictEqual(count.ran, 1)
    })
  )

  it.effect(
    "a skip stands in for the tool, also with 0, false and null, in every form of a run (row 115)",
    () =>
      Effect.gen(function* () {
        const results: ReadonlyArray<Schema.Json> = [0, false, null, "", { a: 1 }]
        const standIn = (result: Schema.Json) => Hook.beforeTool(() => Effect.succeed({ skip: true, result }))
        for (const result of results) {
          const { count, tool } = counted()
          const script = [call("act"), done]
          const { events, view } = yield* play(script, { tools: [tool], hooks: [standIn(result)] })
          const provider = yield* ScriptedProvider.make(script)
          const folded = yield* Loop.run("hi", { messages: [] }, { model: "m" }).pipe(
            Effect.provide([provider.layer, ToolRegistry.layer(tool), HookManager.layer(standIn(result))])
          )
          const streaming = yield* agent(script, { tools: [tool], hooks: [standIn(result)] })
          const streamed = yield* Stream.runFold(
            streaming.agent.stream("hi"),
            AgentEvent.initial,
            AgentEvent.fold
          )
          const text = typeof result === "string" ? result : JSON.stringify(result)
          for (const messages of [view.messages, folded.newMessages, streamed.messages]) {
            assert.deepStrictEqual(resultTexts(messages), [text])
            assert.isFalse(toolResults(messages)[0]?.isError)
          }
          assert.deepStrictEqual(outcomes(events), ["skipped"])
          assert.strictEqual(count.ran, 0)
        }
      })
  )

  it.effect("a skip without a result says nothing, and its ToolOutput is taken as it is (row 115)", () =>
    Effect.gen(function* () {
      const nothing = yield* guarded(Hook.beforeTool(() => Effect.succeed({ skip: true })))
      assert.strictEqual(nothing.told, "")
      const full = yield* play([call("act")], {
        tools: [counted().tool],
        hooks: [
          Hook.beforeTool(() =>
            Effect.succeed({ skip: true, result: Tool.output("cached", { terminate: true }) })
          )
        ]
      })
      assert.strictEqual(full.view.status, "terminated")
      assert.deepStrictEqual(resultTexts(full.view.messages), ["cached"])
    })
  )

  it.effect("nobody approves, and nothing reviews, what will not run (rows 115, 119)", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const { events } = yield* play(
        [
          ScriptedProvider.toolCalls(
            { name: "skip", params: {} },
            { name: "block", params: {} },
            { name: "nope", params: {} },
            { name: "echo", params: { n: "x" } },
            { name: "ok", params: {} }
          ),
          done
        ],
        {
          tools: [say("skip"), say("block"), echo, say("ok")],
          hooks: [
            Hook.beforeTool(({ call: { name } }) => {
              asked.push(`before ${name}`)
              return Effect.succeed(name === "skip" ? { skip: true } : { block: name === "block" })
            }),
            Hook.approveTool(({ call: { name } }) => {
              asked.push(`approve ${name}`)
              return Effect.succeed({ approved: true })
            }),
            Hook.afterTool(({ call: { name } }) =>
              Effect.sync(() => asked.push(`after ${name}`)).pipe(Effect.asVoid)
            )
          ]
        }
      )
      assert.deepStrictEqual(asked, ["before skip", "before block", "before ok", "approve ok", "after ok"])
      assert.deepStrictEqual(
        ofTag(events, "ToolInvoked").map(({ toolName }) => toolName),
        ["ok"]
      )
    })
  )

  it.effect(
    "all beforeTool hooks come before any approval, params flow through both, and are decoded again (row 123)",
    () =>
      Effect.gen(function* () {
        const seen: Array<unknown> = []
        const approve = (n: Schema.Json) =>
          Hook.approveTool(({ params }) => {
            seen.push(params)
            return Effect.succeed({ approved: true, params: { n } })
          })
        const { events, view } = yield* play([ScriptedProvider.toolCall("echo", { n: 1 }), done], {
          tools: [echo],
          hooks: [
            approve(3),
            Hook.beforeTool(({ params }) => {
              seen.push(params)
              return Effect.succeed({ params: { n: 2 } })
            }),
            approve("4")
          ]
        })
        assert.deepStrictEqual(seen, [{ n: 1 }, { n: 2 }, { n: 3 }])
        assert.deepStrictEqual(resultTexts(view.messages), ["4"])
        assert.deepInclude(ofTag(events, "ToolInvoked")[0], { modified: true, approved: true })
      })
  )

  it.effect("an approval that changes params to what the tool does not take leaves it undone (row 116)", () =>
    Effect.gen(function* () {
      const { events } = yield* play([ScriptedProvider.toolCall("echo", { n: 1 }), done], {
        tools: [echo],
        hooks: [Hook.approveTool(() => Effect.succeed({ approved: true, params: { n: [] } })), yes]
      })
      assert.deepStrictEqual(outcomes(events), ["invalidArguments"])
    })
  )

  it.effect("a guard sees the answer that makes the call at the end of the transcript (row 103)", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const { view } = yield* play([ScriptedProvider.toolCall("act", {}, { id: "x" }), done], {
        tools: [counted().tool],
        hooks: [
          Hook.beforeTool(({ call: { id }, message, messages, turn }) =>
            Effect.sync(() => {
              seen.push(id, turn, messages.at(-1) === message, messages.length)
            })
          )
        ]
      })
      assert.deepStrictEqual(seen, ["x", 1, true, 2])
      assert.strictEqual(view.messages.length, 4)
    })
  )

  it.effect("a block says its reason and may end the run (rows 120, 161)", () =>
    Effect.gen(function* () {
      const { events, view } = yield* play([call("act")], {
        tools: [counted().tool],
        hooks: [Hook.beforeTool(() => Effect.succeed({ block: true, reason: "frozen", terminate: true }))]
      })
      assert.deepStrictEqual(resultTexts(view.messages), ["frozen"])
      assert.strictEqual(view.status, "terminated")
      assert.notInclude(tags(events), "ToolInvoked")
      const text = Message.text("Tool execution was blocked")
      const plain = yield* play([call("act"), done], {
        tools: [counted().tool],
        hooks: [Hook.beforeTool(() => Effect.succeed({ block: true }))]
      })
      assert.deepStrictEqual(toolResults(plain.view.messages)[0]?.content, [text])
    })
  )

  for (const [name, output, outcome] of [
    ["a block", { block: true }, "blocked"],
    ["a skip", { skip: true, result: "instead" }, "skipped"],
    ["changed params the tool does not take", { params: { n: "many" } }, "invalidArguments"]
  ] as const) {
    it.effect(`after ${name} no later guard is asked`, () =>
      Effect.gen(function* () {
        const asked: Array<string> = []
        const ask = (who: string) => Effect.sync(() => void asked.push(who))
        const { events } = yield* play([ScriptedProvider.toolCall("echo", { n: 1 }), done], {
          tools: [echo],
          hooks: [
            Hook.beforeTool(() => Effect.as(ask("first"), {})),
            Hook.beforeTool(() => Effect.as(ask("second"), output)),
            Hook.beforeTool(() => ask("third")),
            Hook.approveTool(() => Effect.as(ask("approval"), { approved: true }))
          ]
        })
        assert.deepStrictEqual(asked, ["first", "second"])
        assert.deepStrictEqual(outcomes(events), [outcome])
      })
    )
  }

  for (const [name, output, outcome] of [
    ["a rejection", { approved: false }, "rejected"],
    ["changed params the tool does not take", { approved: true, params: { n: "many" } }, "invalidArguments"]
  ] as const) {
    it.effect(`after ${name} by an approval no later one is asked`, () =>
      Effect.gen(function* () {
        let later = 0
        const { events } = yield* play([ScriptedProvider.toolCall("echo", { n: 1 }), done], {
          tools: [echo],
          hooks: [
            Hook.approveTool(() => Effect.succeed(output)),
            Hook.approveTool(() => Effect.sync(() => ({ approved: ++later > 0 })))
          ]
        })
        assert.strictEqual(later, 0)
        assert.deepStrictEqual(outcomes(events), [outcome])
      })
    )
  }
})
