import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Latch, Layer } from "effect"
import { Hook, HookManager, Loop, Message, ProviderError, RunOptions, Tool, ToolRegistry } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import * as Invariants from "./invariants.ts"
import {
  agent,
  echo,
  failing,
  failureOf,
  gated,
  ofTag,
  outcomes,
  play,
  reasonOf,
  resultTexts
} from "./play.ts"
import { say, status, tags, texts } from "./play.ts"

const done = ScriptedProvider.text("done")
const call = (name: string) => ScriptedProvider.toolCall(name, {})
const broken = Effect.fail("broke")

describe("Hooks", () => {
  it.effect("may fail with anything: it is told in words, and without what is secret by its name", () =>
    Effect.gen(function* () {
      for (const [failure, told] of [
        [{ message: "no such user", apiKey: "k-123" }, "no such user"],
        [{ status: 7, apiKey: "k-123" }, '{"status":7}'],
        [Object.create(null), "{}"]
      ] as const) {
        const { events } = yield* play([done], { hooks: [Hook.afterModel(() => Effect.fail(failure))] })
        assert.strictEqual(status(events), "completed")
        assert.strictEqual(ofTag(events, "HookError")[0]?.error, told)
      }
    })
  )

  it.effect("registered once fire in every run of the agent (row 131)", () =>
    Effect.gen(function* () {
      const fired: Array<string> = []
      const fire = (name: string) => Effect.sync(() => fired.push(name)).pipe(Effect.asVoid)
      const script = yield* agent([done, done], {
        hooks: [
          Hook.beforeExecution(() => fire("before")),
          Hook.beforeModel(() => fire("model")),
          Hook.afterExecution(() => fire("after"))
        ]
      })
      yield* script.agent.prompt("1")
      yield* script.agent.prompt("2")
      assert.deepStrictEqual(fired, ["before", "model", "after", "before", "model", "after"])
    })
  )

  it.effect("one function at two points is disabled at the one where it fails (row 130)", () =>
    Effect.gen(function* () {
      let before = 0
      let after = 0
      const { events } = yield* play([call("a"), call("a"), call("a"), call("a"), done], {
        tools: [say("a")],
        hooks: [
          Hook.beforeModel(() => {
            before++
            return broken
          }),
          Hook.afterModel(() => Effect.sync(() => void after++))
        ],
        options: { limits: { maxIdenticalToolCalls: Infinity } }
      })
      assert.strictEqual(before, 3)
      assert.strictEqual(after, 5)
      assert.deepStrictEqual(
        ofTag(events, "HookError").map(({ disabled, hook }) => [hook, disabled]),
        [
          ["beforeModel", false],
          ["beforeModel", false],
          ["beforeModel", true]
        ]
      )
    })
  )

  it.effect("run one after another, in the order they were registered, layers around first (row 125)", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const named = (name: string) =>
        Hook.beforeModel(() =>
          Effect.gen(function* () {
            order.push(`${name} in`)
            yield* Effect.yieldNow
            order.push(`${name} out`)
          })
        )
      const provider = yield* ScriptedProvider.make([done])
      yield* Loop.run("hi", { messages: [] }, { model: "m" }).pipe(
        Effect.provide([provider.layer, ToolRegistry.layer()]),
        Effect.provide(HookManager.layer(named("inner"), named("innermost"))),
        Effect.provide(HookManager.layer(named("outer")))
      )
      assert.deepStrictEqual(order, [
        "outer in",
        "outer out",
        "inner in",
        "inner out",
        "innermost in",
        "innermost out"
      ])
    })
  )

  it.effect("an observer that fails three times in a row is disabled; a success begins the count anew", () =>
    Effect.gen(function* () {
      let asked = 0
      const { events } = yield* play([...Array.from({ length: 8 }, () => call("a")), done], {
        tools: [say("a")],
        hooks: [Hook.afterModel(() => (++asked === 3 ? Effect.void : broken))],
        options: { limits: { maxIdenticalToolCalls: Infinity } }
      })
      assert.strictEqual(asked, 6)
      assert.deepStrictEqual(
        ofTag(events, "HookError").map(({ consecutiveErrors }) => consecutiveErrors),
        [1, 2, 1, 2, 3]
      )
      assert.strictEqual(status(events), "completed")
    })
  )

  it.effect(
    "counters are the run's: the next run asks a disabled hook again, and so does a run beside it",
    () =>
      Effect.gen(function* () {
        let asked = 0
        const hooks = HookManager.layer(
          Hook.afterModel(() => {
            asked++
            return broken
          })
        )
        const run = Effect.fnUntraced(function* () {
          const provider = yield* ScriptedProvider.make([call("a"), call("a"), call("a"), call("a"), done])
          return yield* Loop.run("hi", { messages: [] }, { model: "m" }).pipe(
            Effect.provide([provider.layer, ToolRegistry.layer(say("a"))])
          )
        })
        yield* Effect.all([run(), run()], { concurrency: 2 }).pipe(
          Effect.andThen(run()),
          Effect.provide(hooks)
        )
        assert.strictEqual(asked, 9)
      })
  )

  it.effect("share the metadata of their run, and nothing with other runs (row 223)", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const script = yield* agent([call("a"), done, done], {
        tools: [say("a")],
        hooks: [
          Hook.beforeExecution(({ metadata, runId }) =>
            Effect.sync(() => {
              seen.push(metadata.size)
              metadata.set("run", runId)
            })
          ),
          Hook.beforeTool(({ metadata }) => Effect.sync(() => void metadata.set("tool", true))),
          Hook.afterExecution(({ metadata, runId }) =>
            Effect.sync(() => void seen.push(metadata.get("run") === runId, metadata.get("tool")))
          )
        ]
      })
      yield* script.agent.prompt("1")
      yield* script.agent.prompt("2")
      assert.deepStrictEqual(seen, [0, true, true, 0, true, undefined])
    })
  )

  it.effect("have five seconds each by default, then are stopped, and the run goes on (row 127)", () =>
    Effect.gen(function* () {
      const asked = yield* Latch.make(false)
      let stopped = false
      const run = yield* Effect.forkChild(
        play([done], {
          hooks: [
            Hook.beforeModel(() =>
              Effect.andThen(asked.open, Effect.never).pipe(
                Effect.onInterrupt(() => Effect.sync(() => (stopped = true)))
              )
            )
          ]
        })
      )
      yield* asked.await
      yield* TestClock.adjust("5 seconds")
      const { events, view } = yield* Fiber.join(run)
      assert.isTrue(stopped)
      assert.include(ofTag(events, "HookError")[0]?.error, "timed out after 5s")
      assert.strictEqual(view.status, "completed")
    })
  )

  it.effect(
    "have the time the options give them, and one that ignores its end is left behind (row 127)",
    () =>
      Effect.gen(function* () {
        const asked = yield* Latch.make(false)
        const run = yield* Effect.forkChild(
          play([done], {
            hooks: [Hook.beforeModel(() => Effect.andThen(asked.open, Effect.uninterruptible(Effect.never)))],
            options: { hookTimeout: "1 minute" }
          })
        )
        yield* asked.await
        yield* TestClock.adjust("1 minute")
        assert.isUndefined(run.pollUnsafe())
        yield* TestClock.adjust("100 millis")
        const { view } = yield* Fiber.join(run)
        assert.strictEqual(view.status, "completed")
      })
  )

  it.effect("need services, which become requirements; the caller's win over those of registration", () =>
    Effect.gen(function* () {
      class User extends Context.Service<User, { readonly name: string }>()("test/User") {}
      const names: Array<string> = []
      const hook = Hook.beforeModel(() => Effect.map(User, ({ name }) => void names.push(name)))
      const provider = yield* ScriptedProvider.make([done, done])
      const run = Loop.run("hi", { messages: [] }, { model: "m" }).pipe(
        Effect.provide(
          HookManager.layer(hook).pipe(Layer.provide(Layer.succeed(User, { name: "registered" })))
        ),
        Effect.provide([provider.layer, ToolRegistry.layer()])
      )
      yield* run
      yield* Effect.provideService(run, User, { name: "caller" })
      assert.deepStrictEqual(names, ["registered", "caller"])
    })
  )

  it.effect("come and go in mid-run: from their next point on (row 124)", () =>
    Effect.gen(function* () {
      const { began, go, tool } = yield* gated
      const heard: Array<string> = []
      const script = yield* agent([call("gated"), done], { tools: [tool] })
      const first = yield* script.agent.hooks.register(
        Hook.afterModel(({ turn }) => Effect.sync(() => void heard.push(`first ${turn}`)))
      )
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* began.await
      assert.isTrue(yield* script.agent.hooks.unregister(first))
      assert.isFalse(yield* script.agent.hooks.unregister(first))
      assert.isFalse(yield* script.agent.hooks.unregister("nobody"))
      yield* script.agent.hooks.register(
        Hook.afterModel(({ turn }) => Effect.sync(() => void heard.push(`second ${turn}`)))
      )
      yield* go.open
      yield* Fiber.join(run)
      assert.deepStrictEqual(heard, ["first 1", "second 2"])
    })
  )

  it.effect("registered twice run twice, and are unregistered one by one (row 124)", () =>
    Effect.gen(function* () {
      let count = 0
      const hook = Hook.afterModel(() => Effect.sync(() => void count++))
      const script = yield* agent([done, done], { hooks: [hook] })
      const second = yield* script.agent.hooks.register(hook)
      yield* script.agent.prompt("1")
      assert.strictEqual(count, 2)
      yield* script.agent.hooks.unregister(second)
      yield* script.agent.prompt("2")
      assert.strictEqual(count, 3)
    })
  )

  describe("that fail", () => {
    const observers: ReadonlyArray<Hook.Runnable> = [
      Hook.beforeExecution(() => broken),
      Hook.pauseCheck(() => broken),
      Hook.beforeModel(() => broken),
      Hook.afterModel(() => broken),
      Hook.onError(() => broken),
      Hook.afterExecution(() => broken)
    ]
    /** One turn with a failing tool, so that every observer is asked. */
    const observed = (hook: Hook.Runnable, hookFailureMode: RunOptions.RunOptions["hookFailureMode"]) =>
      play([call("bad"), done], {
        tools: [failing("bad")],
        hooks: [hook],
        options: hookFailureMode === undefined ? {} : { hookFailureMode }
      })

    for (const hook of observers) {
      it.effect(`at ${hook.point} are reported and passed over by default (row 129)`, () =>
        Effect.gen(function* () {
          for (const mode of [undefined, "warn"] as const) {
            const { events, view } = yield* observed(hook, mode)
            assert.strictEqual(view.status, "completed")
            assert.deepInclude(ofTag(events, "HookError")[0], { hook: hook.point, error: "broke" })
          }
        })
      )

      it.effect(`at ${hook.point} are passed over in silence in mode "ignore" (row 129)`, () =>
        Effect.gen(function* () {
          const { events, view } = yield* observed(hook, "ignore")
          assert.strictEqual(view.status, "completed")
          assert.deepStrictEqual(ofTag(events, "HookError"), [])
        })
      )

      it.effect(`at ${hook.point} fail the run in mode "fail", with balanced events (row 129)`, () =>
        Effect.gen(function* () {
          const { events, exit } = yield* observed(hook, "fail")
          assert.deepInclude(reasonOf(exit), { _tag: "HookFailed", hook: hook.point, detail: "broke" })
          assert.strictEqual(status(events), "failed")
          assert.deepStrictEqual(Invariants.broken(events), [])
        })
      )
    }

    it.effect("to hear of a failure do not hide it", () =>
      Effect.gen(function* () {
        for (const hook of [
          Hook.onError(({ scope }) => (scope === "run" ? broken : Effect.void)),
          Hook.afterExecution(() => broken)
        ]) {
          const { exit } = yield* play([call("bad")], {
            tools: [failing("bad")],
            hooks: [hook],
            options: { toolFailureMode: "fail", hookFailureMode: "fail" }
          })
          assert.strictEqual(reasonOf(exit)?._tag, "ToolFailed")
        }
      })
    )

    const shapers: ReadonlyArray<Hook.Runnable> = [
      Hook.transformMessages(() => broken),
      Hook.toModelMessages(() => broken),
      Hook.prepareNextTurn(() => broken),
      Hook.shouldStopAfterTurn(() => broken),
      Hook.steering(() => broken),
      Hook.followUp(() => broken)
    ]
    for (const hook of shapers) {
      it.effect(`at ${hook.point} fail the run in every mode`, () =>
        Effect.gen(function* () {
          for (const hookFailureMode of ["fail", "warn", "ignore"] as const) {
            const { events, exit } = yield* play([done], { hooks: [hook], options: { hookFailureMode } })
            assert.deepInclude(reasonOf(exit), { _tag: "TransformFailed", hook: hook.point, detail: "broke" })
            assert.deepStrictEqual(Invariants.broken(events), [])
          }
        })
      )
    }

    it.effect("at afterTool make an error of the result, in every mode, and report it (row 121)", () =>
      Effect.gen(function* () {
        for (const hookFailureMode of ["fail", "warn", "ignore"] as const) {
          const { events, view } = yield* play([call("a"), done], {
            tools: [say("a")],
            hooks: [Hook.afterTool(() => broken)],
            options: { hookFailureMode }
          })
          assert.deepStrictEqual(outcomes(events), ["error"])
          assert.include(resultTexts(view.messages)[0], "broke")
          assert.strictEqual(view.status, "completed")
          assert.strictEqual(ofTag(events, "HookError").length, 1)
        }
      })
    )

    it.effect("at afterTool by taking too long make an error of the result", () =>
      Effect.gen(function* () {
        const asked = yield* Latch.make(false)
        const run = yield* Effect.forkChild(
          play([call("a"), done], {
            tools: [say("a")],
            hooks: [Hook.afterTool(() => Effect.andThen(asked.open, Effect.never))]
          })
        )
        yield* asked.await
        yield* TestClock.adjust("5 seconds")
        const { events, view } = yield* Fiber.join(run)
        assert.deepStrictEqual(outcomes(events), ["error"])
        assert.strictEqual(view.status, "completed")
      })
    )
  })

  describe("beforeExecution", () => {
    it.effect("changes the options of this run alone, each hook over the one before (row 111)", () =>
      Effect.gen(function* () {
        const script = yield* agent([done, done], {
          system: "agent",
          modelOptions: { temperature: 1, topP: 0.5 },
          hooks: [
            Hook.beforeExecution(({ options }) =>
              Effect.succeed({ modified: { system: `${options.system} one`, modelOptions: { topP: 0.9 } } })
            ),
            Hook.beforeExecution(({ options }) =>
              Effect.succeed({ modified: { system: `${options.system} two` } })
            )
          ]
        })
        yield* script.agent.prompt("1", { system: "prompt" })
        yield* script.agent.prompt("2")
        const [first, second] = yield* script.requests
        assert.strictEqual(first?.system, "prompt one two")
        assert.strictEqual(second?.system, "agent one two")
        assert.deepStrictEqual(first?.options, { temperature: 1, topP: 0.9 })
      })
    )

    it.effect("is told the prompts, and a limit it sets holds", () =>
      Effect.gen(function* () {
        const told: Array<string> = []
        const { exit } = yield* play([call("a"), call("a")], {
          tools: [say("a")],
          prompt: [Message.user("one"), Message.user("two")],
          hooks: [
            Hook.beforeExecution(({ prompts }) => {
              told.push(...texts(prompts))
              return Effect.succeed({ modified: { limits: { maxTurns: 2 } } })
            })
          ],
          options: { limits: { maxTurns: 9 } }
        })
        assert.deepStrictEqual(told, ["one", "two"])
        assert.deepInclude(reasonOf(exit), { limit: "maxTurns", value: 2, max: 2 })
      })
    )
  })

  describe("beforeModel", () => {
    it.effect("changes merge from left to right, and each hook sees those before it (rows 77, 113)", () =>
      Effect.gen(function* () {
        const seen: Array<unknown> = []
        const { events, requests, view } = yield* play([done], {
          options: { modelOptions: { temperature: 0 } },
          hooks: [
            Hook.beforeModel(({ options, view: messages }) => {
              seen.push(options, texts(messages))
              return Effect.succeed({ modified: { maxTokens: 5, messages: [Message.user("other")] } })
            }),
            Hook.beforeModel(({ options, view: messages }) => {
              seen.push(options, texts(messages))
              return Effect.succeed({ modified: { temperature: 1 } })
            })
          ]
        })
        assert.deepStrictEqual(seen, [
          { temperature: 0 },
          ["hi"],
          { temperature: 0, maxTokens: 5 },
          ["other"]
        ])
        assert.deepStrictEqual(requests[0]?.options, { temperature: 1, maxTokens: 5 })
        assert.deepStrictEqual(texts(requests[0]?.messages ?? []), ["other"])
        assert.deepStrictEqual(texts(view.messages), ["hi", "done"])
        assert.deepInclude(ofTag(events, "ModelCallStart")[0], {
          messageCount: 1,
          options: { temperature: 1, maxTokens: 5 }
        })
      })
    )

    it.effect(
      "the first skip answers; later hooks are not asked, and the calls of its answer are run (rows 113, 125)",
      () =>
        Effect.gen(function* () {
          let asked = 0
          const answer = Message.assistant(
            [{ type: "toolCall", id: "t", name: "echo", rawArguments: '{"n":3}', params: { n: 3 } }],
            { stopReason: "toolUse" }
          )
          const { requests, view } = yield* play([done], {
            tools: [echo],
            hooks: [
              Hook.beforeModel(({ turn }) => Effect.succeed({ skip: turn === 1, response: answer })),
              Hook.beforeModel(() => Effect.sync(() => void asked++))
            ]
          })
          assert.strictEqual(requests.length, 1)
          assert.strictEqual(asked, 1)
          assert.deepStrictEqual(resultTexts(view.messages), ["3"])
          assert.strictEqual(view.status, "completed")
        })
    )

    it.effect("a skip without an answer fails the run with its reason, after a balanced turn (row 113)", () =>
      Effect.gen(function* () {
        const { events, exit, requests } = yield* play([], {
          hooks: [Hook.beforeModel(() => Effect.succeed({ skip: true, reason: "office hours" }))]
        })
        assert.deepInclude(reasonOf(exit), { _tag: "ModelCallSkipped", detail: "office hours" })
        assert.strictEqual(requests.length, 0)
        assert.deepStrictEqual(
          tags(events)
            .filter((tag) => tag !== "ModelCallError")
            .slice(-5),
          ["MessageStart", "MessageEnd", "TurnEnd", "RunError", "RunEnd"]
        )
      })
    )

    it.effect("a call that was not made has neither a start nor an end", () =>
      Effect.gen(function* () {
        for (const response of [{ response: "cached" }, {}]) {
          const { events } = yield* play([], {
            hooks: [Hook.beforeModel(() => Effect.succeed({ skip: true, ...response }))]
          })
          assert.deepStrictEqual(ofTag(events, "ModelCallStart"), [])
          assert.deepStrictEqual(ofTag(events, "ModelCallEnd"), [])
          assert.deepStrictEqual(ofTag(events, "ModelCallError"), [])
        }
      })
    )
  })

  describe("afterModel", () => {
    it.effect("hears each answer, and how long it took, without the hooks before it (row 114)", () =>
      Effect.gen(function* () {
        const asked = yield* Latch.make(false)
        const began = yield* Latch.make(false)
        const heard: Array<unknown> = []
        const slow = ScriptedProvider.turn(
          Step.run(began.open),
          Step.sleep(250),
          ...ScriptedProvider.text("slow").steps
        )
        const run = yield* Effect.forkChild(
          play([slow], {
            hooks: [
              Hook.beforeModel(() => Effect.andThen(asked.open, Effect.sleep(100))),
              Hook.afterModel(({ durationMs, message, messages }) =>
                Effect.sync(
                  () => void heard.push(Message.textOf(message), durationMs, messages.at(-1) === message)
                )
              )
            ]
          })
        )
        yield* asked.await
        yield* TestClock.adjust(100)
        yield* began.await
        yield* TestClock.adjust(250)
        const { events } = yield* Fiber.join(run)
        assert.deepStrictEqual(heard, ["slow", 250, true])
        assert.strictEqual(ofTag(events, "ModelCallEnd")[0]?.durationMs, 250)
      })
    )

    it.effect("hears nothing of an answer that failed", () =>
      Effect.gen(function* () {
        let heard = 0
        yield* play([ScriptedProvider.die("boom")], {
          hooks: [Hook.afterModel(() => Effect.sync(() => void heard++))]
        })
        assert.strictEqual(heard, 0)
      })
    )
  })

  describe("afterTool", () => {
    it.effect(
      "replaces fields from left to right, each hook seeing what the one before left (rows 119, 121)",
      () =>
        Effect.gen(function* () {
          const seen: Array<unknown> = []
          const { view } = yield* play([call("a"), done], {
            tools: [say("a", Tool.output("raw", { details: { n: 1 } }))],
            hooks: [
              Hook.afterTool(({ outcome, result }) => {
                seen.push(result, outcome)
                return Effect.succeed({ content: [Message.text("one")] })
              }),
              Hook.afterTool(({ isError, result }) => {
                seen.push(result, isError)
                return Effect.succeed({ isError: true })
              }),
              Hook.afterTool(({ isError }) => Effect.sync(() => void seen.push(isError)))
            ]
          })
          assert.deepStrictEqual(seen, [
            { content: [Message.text("raw")], details: { n: 1 } },
            "success",
            { content: [Message.text("one")], details: { n: 1 } },
            false,
            true
          ])
          assert.deepInclude(view.messages[2], {
            content: [Message.text("one")],
            details: { n: 1 },
            isError: true,
            outcome: "error"
          })
        })
    )

    it.effect(
      "asks for a retry as often as the limit allows: one start, one end, each try told by ToolInvoked once (row 119)",
      () =>
        Effect.gen(function* () {
          let tries = 0
          const flaky = say("flaky")
          const { events } = yield* play([call("flaky"), done], {
            tools: [flaky],
            hooks: [
              Hook.afterTool(() => {
                tries++
                return Effect.succeed({ retry: true })
              })
            ],
            options: { limits: { maxToolRetries: 3 } }
          })
          assert.strictEqual(tries, 4)
          assert.strictEqual(ofTag(events, "ToolExecutionStart").length, 1)
          assert.strictEqual(ofTag(events, "ToolExecutionEnd").length, 1)
        })
    )

    it.effect(
      "may ask ten thousand times for a tool that is done at once",
      () =>
        Effect.gen(function* () {
          let tries = 0
          const { view } = yield* play([call("again"), done], {
            tools: [say("again")],
            hooks: [Hook.afterTool(() => Effect.succeed({ retry: ++tries < 10_000 }))],
            options: { limits: { maxToolRetries: Infinity } }
          })
          assert.strictEqual(tries, 10_000)
          assert.strictEqual(view.messages.length, 4)
        }),
      60_000
    )

    it.effect("runs a tool again once by default (row 119)", () =>
      Effect.gen(function* () {
        let tries = 0
        const again = Tool.make({ name: "again", description: "", execute: () => Effect.sync(() => ++tries) })
        const { events } = yield* play([call("again"), done], {
          tools: [again],
          hooks: [Hook.afterTool(() => Effect.succeed({ retry: true }))]
        })
        assert.deepStrictEqual([tries, outcomes(events)], [2, ["success"]])
      })
    )

    it.effect("sees a timeout, and may save it", () =>
      Effect.gen(function* () {
        const { began, tool } = yield* gated
        const seen: Array<string> = []
        const run = yield* Effect.forkChild(
          play([call("gated"), done], {
            tools: [tool],
            hooks: [
              Hook.afterTool(({ outcome }) => {
                seen.push(outcome)
                return Effect.succeed({ content: [Message.text("from the cache")], isError: false })
              })
            ],
            options: { toolTimeout: 10 }
          })
        )
        yield* began.await
        yield* TestClock.adjust(10)
        const { events, view } = yield* Fiber.join(run)
        assert.deepStrictEqual(seen, ["timeout"])
        assert.deepStrictEqual(outcomes(events), ["success"])
        assert.deepStrictEqual(resultTexts(view.messages), ["from the cache"])
      })
    )
  })

  describe("onError", () => {
    it.effect("hears of tools and of the run, by scope (row 110)", () =>
      Effect.gen(function* () {
        const heard: Array<unknown> = []
        yield* play([call("bad")], {
          tools: [failing("bad")],
          options: { toolFailureMode: "fail" },
          hooks: [
            Hook.onError(({ error, scope }) =>
              Effect.sync(() => void heard.push(scope, "_tag" in error ? error._tag : error.isError))
            )
          ]
        })
        assert.deepStrictEqual(heard, ["tool", true, "run", "ToolFailed"])
      })
    )

    it.effect("hears nothing of what a guard decided", () =>
      Effect.gen(function* () {
        let heard = 0
        yield* play([call("a"), done], {
          tools: [say("a")],
          hooks: [
            Hook.approveTool(() => Effect.succeed({ approved: false })),
            Hook.onError(() => Effect.sync(() => void heard++))
          ]
        })
        assert.strictEqual(heard, 0)
      })
    )
  })

  describe("afterExecution", () => {
    it.effect(
      "replaces the answer for the caller, from left to right; the transcript keeps what was said (row 112)",
      () =>
        Effect.gen(function* () {
          const script = yield* agent([done], {
            hooks: [
              Hook.afterExecution(({ message }) =>
                Effect.succeed(
                  message === undefined ? {} : { modified: { ...message, content: [Message.text("one")] } }
                )
              ),
              Hook.afterExecution(({ message, report, status: ended }) =>
                Effect.succeed({
                  modified: Message.assistant(
                    `${message === undefined ? "" : Message.textOf(message)} ${ended} ${report.turns}`
                  )
                })
              )
            ]
          })
          const { message, newMessages } = yield* script.agent.prompt("hi")
          assert.strictEqual(message === undefined ? "" : Message.textOf(message), "one completed 1")
          assert.deepStrictEqual(texts(newMessages), ["hi", "done"])
        })
    )

    it.effect("a cancel that comes when it is asked comes too late", () =>
      Effect.gen(function* () {
        const script = yield* agent([done])
        yield* script.agent.hooks.register(Hook.afterExecution(() => Effect.asVoid(script.agent.cancel())))
        assert.strictEqual((yield* script.agent.prompt("hi")).status, "completed")
        assert.deepStrictEqual(Invariants.broken(script.events), [])
      })
    )

    it.effect("hears of every end, and cannot hide a failure (row 112)", () =>
      Effect.gen(function* () {
        const heard: Array<unknown> = []
        const { exit } = yield* play([call("a")], {
          tools: [say("a")],
          options: { limits: { maxTurns: 1 } },
          hooks: [
            Hook.afterExecution(({ error, status: ended }) => {
              heard.push(ended, error?._tag)
              return Effect.succeed({ modified: Message.assistant("all is well") })
            })
          ]
        })
        assert.deepStrictEqual(heard, ["failed", "LimitExceeded"])
        assert.notStrictEqual(
          Message.textOf(failureOf(exit)?.result.message ?? Message.user("")),
          "all is well"
        )
      })
    )
  })

  describe("prepareNextTurn", () => {
    const twice = (output: Hook.Output<"prepareNextTurn">, options: Partial<RunOptions.RunOptions> = {}) =>
      play([call("a"), done], {
        tools: [say("a"), say("b")],
        messages: [Message.user("before"), Message.assistant("earlier")],
        hooks: [Hook.prepareNextTurn(() => Effect.succeed(output))],
        options: { system: "s", modelOptions: { temperature: 0, thinkingLevel: "low" }, ...options }
      })

    it.effect("changes the model (row 91)", () =>
      Effect.gen(function* () {
        const { events, requests } = yield* twice({ model: "bigger" })
        assert.deepStrictEqual(
          requests.map(({ model }) => model),
          ["m", "bigger"]
        )
        assert.deepStrictEqual(
          ofTag(events, "ModelCallStart").map(({ model }) => model),
          ["m", "bigger"]
        )
      })
    )

    it.effect("changes the thinking level, beside the other model options", () =>
      Effect.gen(function* () {
        const { requests } = yield* twice({ thinkingLevel: "high" })
        assert.deepStrictEqual(
          requests.map(({ options }) => options),
          [
            { temperature: 0, thinkingLevel: "low" },
            { temperature: 0, thinkingLevel: "high" }
          ]
        )
      })
    )

    it.effect("changes the system prompt (row 91)", () =>
      Effect.gen(function* () {
        const { requests } = yield* twice({ system: "t" })
        assert.deepStrictEqual(
          requests.map(({ system }) => system),
          ["s", "t"]
        )
      })
    )

    it.effect("changes the tools the model may call", () =>
      Effect.gen(function* () {
        const { requests } = yield* twice({ activeTools: ["b"] })
        assert.deepStrictEqual(
          requests.map(({ tools }) => tools.map(({ name }) => name)),
          [["a", "b"], ["b"]]
        )
      })
    )

    it.effect("changes the messages later requests are made from; what was seen stays as it was", () =>
      Effect.gen(function* () {
        const { requests, view } = yield* twice({ messages: [Message.user("in short")] })
        assert.deepStrictEqual(texts(requests[1]?.messages ?? []), ["in short"])
        assert.deepStrictEqual(texts(view.messages), ["before", "earlier", "hi", "", "a", "done"])
      })
    )

    it.effect("is told the turn, and several are asked from left to right", () =>
      Effect.gen(function* () {
        const told: Array<unknown> = []
        const { requests } = yield* play([call("a"), done], {
          tools: [say("a")],
          hooks: [
            Hook.prepareNextTurn(({ message, messages, newMessages, toolResults, turn }) => {
              told.push([turn, message.stopReason, toolResults.length, newMessages.length, messages.length])
              return Effect.succeed({ model: "one", system: "one" })
            }),
            Hook.prepareNextTurn(() => Effect.succeed({ model: "two" }))
          ]
        })
        assert.deepStrictEqual(told, [
          [1, "toolUse", 1, 3, 3],
          [2, "stop", 0, 4, 4]
        ])
        assert.deepInclude(requests[1], { model: "two", system: "one" })
      })
    )

    it.effect("goes over what the application changed before, and is over for the next run", () =>
      Effect.gen(function* () {
        const { began, go, tool } = yield* gated
        const script = yield* agent([call("gated"), done, done], {
          tools: [tool],
          hooks: [Hook.prepareNextTurn(({ turn }) => Effect.succeed(turn === 1 ? { system: "hook" } : {}))]
        })
        const run = yield* Effect.forkChild(script.agent.prompt("1"))
        yield* began.await
        yield* script.agent.update({ model: "updated" })
        yield* go.open
        yield* Fiber.join(run)
        yield* script.agent.prompt("2")
        const requests = yield* script.requests
        assert.deepInclude(requests[1], { model: "updated", system: "hook" })
        assert.strictEqual(requests[2]?.model, "updated")
        assert.isUndefined(requests[2]?.system)
      })
    )
  })

  describe("shouldStopAfterTurn", () => {
    it.effect("any of several ends the run gracefully; all are asked, after prepareNextTurn (row 90)", () =>
      Effect.gen(function* () {
        const asked: Array<string> = []
        const { events } = yield* play([call("a")], {
          tools: [say("a")],
          hooks: [
            Hook.shouldStopAfterTurn(() => Effect.sync(() => asked.push("one") < 0)),
            Hook.shouldStopAfterTurn(() => Effect.sync(() => asked.push("two") > 0)),
            Hook.shouldStopAfterTurn(() => Effect.sync(() => asked.push("three") < 0)),
            Hook.prepareNextTurn(() => Effect.sync(() => void asked.push("prepare")))
          ]
        })
        assert.deepStrictEqual(asked, ["prepare", "one", "two", "three"])
        assert.strictEqual(status(events), "stopped")
      })
    )

    it.effect("on the last allowed turn is a stop, not a limit", () =>
      Effect.gen(function* () {
        const { events } = yield* play([call("a")], {
          tools: [say("a")],
          hooks: [Hook.shouldStopAfterTurn(() => Effect.succeed(true))],
          options: { limits: { maxTurns: 1 } }
        })
        assert.strictEqual(status(events), "stopped")
        assert.deepStrictEqual(ofTag(events, "LimitReached"), [])
      })
    )

    it.effect(
      "leaves queued messages where they are, and is not called after an answer that failed (row 90)",
      () =>
        Effect.gen(function* () {
          let called = 0
          const busy = new ProviderError.Overloaded({ detail: "busy" })
          const script = yield* agent([done, ScriptedProvider.fail(busy)], {
            hooks: [Hook.shouldStopAfterTurn(() => Effect.sync(() => ++called > 0))]
          })
          yield* script.agent.followUp("later")
          const { message, status: ended } = yield* script.agent.prompt("hi")
          assert.deepStrictEqual([ended, message?.stopReason], ["stopped", "stop"])
          assert.deepStrictEqual(yield* script.agent.queues.sizes, { steering: 0, followUp: 1 })
          yield* script.agent.queues.clear("all")
          yield* Effect.exit(script.agent.prompt("again"))
          assert.strictEqual(called, 1)
        })
    )

    it.effect(
      "ends the run before the context is full: the application shortens it and continues (row 183)",
      () =>
        Effect.gen(function* () {
          const large = ScriptedProvider.turn(Step.toolCall("a", {}), Step.finish("toolUse", { input: 900 }))
          const script = yield* agent([large, done], {
            tools: [say("a")],
            hooks: [
              Hook.shouldStopAfterTurn(({ message }) => Effect.succeed((message.usage?.input ?? 0) > 500))
            ]
          })
          assert.strictEqual((yield* script.agent.prompt("a very long task")).status, "stopped")
          const { messages } = yield* script.agent.state.get
          yield* script.agent.setMessages([Message.user("In short: a task"), ...messages.slice(1)])
          assert.strictEqual((yield* script.agent.continue).status, "completed")
          const [, second] = yield* script.requests
          assert.deepStrictEqual(texts(second?.messages ?? []), ["In short: a task", "", "a"])
        })
    )
  })
})
