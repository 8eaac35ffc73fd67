import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Latch, Schema } from "effect"
import { Hook, Message, ProviderError, type RunOptions, Tool, Transcript } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import * as Invariants from "./invariants.ts"
import { agent, echo, hookAt, ofTag, outcomes, play, reasonOf, resultTexts, say, settle } from "./play.ts"
import { status, tags, texts } from "./play.ts"

const done = ScriptedProvider.text("done")
const call = (name: string) => ScriptedProvider.toolCall(name, {})

/** A hook whose function returns this, whatever its types say. */
const returning = (point: Hook.Point, returned: unknown): Hook.Runnable => hookAt(point, () => returned)

const unreadable = () => ({
  get approved(): boolean {
    throw new Error("cannot be read")
  }
})

const observers = [
  "beforeExecution",
  "pauseCheck",
  "beforeModel",
  "afterModel",
  "onError",
  "afterExecution"
] as const
const shapers = [
  "transformMessages",
  "toModelMessages",
  "prepareNextTurn",
  "shouldStopAfterTurn",
  "steering",
  "followUp"
] as const
const noEffects: ReadonlyArray<unknown> = [undefined, null, true, { approved: true }, Promise.resolve()]

/** One turn with a tool that fails, so that every observer is asked, and the hook's own time limits. */
const observed = (hook: Hook.Runnable, options: Partial<RunOptions.RunOptions> = {}) =>
  play([call("bad"), done], {
    tools: [Tool.make({ name: "bad", description: "", execute: () => Effect.fail("not today") })],
    hooks: [hook],
    options
  })

describe("a hook that returns no Effect", () => {
  for (const point of ["beforeTool", "approveTool"] as const) {
    it.effect(`at ${point} rejects, with or without a time limit`, () =>
      Effect.gen(function* () {
        for (const returned of noEffects) {
          for (const options of [{}, { hookTimeout: "Infinity", approvalTimeout: "1 minute" }] as const) {
            const { events, view } = yield* observed(returning(point, returned), options)
            assert.deepStrictEqual(outcomes(events), ["rejected"])
            assert.include(resultTexts(view.messages)[0], "returned no Effect")
            assert.include(ofTag(events, "HookError")[0]?.error, "returned no Effect")
            assert.strictEqual(status(events), "completed")
            assert.deepStrictEqual(Invariants.broken(events), [])
          }
        }
      })
    )
  }

  for (const hookTimeout of ["5 seconds", "Infinity"] as const) {
    it.effect(
      `is isolated at observers, an error at afterTool, and fails the run at shapers: ${hookTimeout}`,
      () =>
        Effect.gen(function* () {
          for (const returned of noEffects) {
            for (const point of observers) {
              const { events } = yield* observed(returning(point, returned), { hookTimeout })
              assert.strictEqual(status(events), "completed", point)
              assert.deepInclude(ofTag(events, "HookError")[0], { hook: point })
            }
            const { events } = yield* observed(returning("afterTool", returned), { hookTimeout })
            assert.deepStrictEqual(outcomes(events), ["error"])
            for (const point of shapers) {
              const shaped = yield* observed(returning(point, returned), { hookTimeout })
              assert.deepInclude(reasonOf(shaped.exit), { _tag: "TransformFailed", hook: point })
              assert.deepStrictEqual(Invariants.broken(shaped.events), [])
            }
          }
        }),
      60_000
    )
  }

  it.effect("deep within its Effect is a failed hook too, with or without a time limit", () =>
    Effect.gen(function* () {
      const nonsense: any = undefined
      for (const point of ["beforeTool", "approveTool"] as const) {
        const hook = returning(
          point,
          Effect.flatMap(Effect.yieldNow, () => nonsense)
        )
        for (const options of [{}, { hookTimeout: "Infinity" }] as const) {
          const { events } = yield* observed(hook, options)
          assert.deepStrictEqual(outcomes(events), ["rejected"])
          assert.deepStrictEqual(Invariants.broken(events), [])
        }
      }
    })
  )
})

describe("a hook that returns keys that are undefined", () => {
  const silent: ReadonlyArray<readonly [Hook.Point, unknown]> = [
    ["beforeExecution", { modified: undefined }],
    ["beforeExecution", { modified: { model: undefined, limits: undefined, toolTimeout: undefined } }],
    ["beforeExecution", { modified: { limits: { maxTurns: undefined }, modelOptions: { topP: undefined } } }],
    ["pauseCheck", { shouldPause: false, reason: undefined }],
    ["beforeModel", { modified: undefined, skip: undefined, response: undefined, reason: undefined }],
    ["beforeModel", { modified: { messages: undefined, temperature: undefined } }],
    ["afterExecution", { modified: undefined }],
    ["beforeTool", { params: undefined, block: undefined, skip: undefined }],
    ["beforeTool", { terminate: undefined, result: undefined, reason: undefined }],
    ["approveTool", { approved: true, reason: undefined, params: undefined }],
    ["afterTool", { content: undefined, details: undefined, isError: undefined }],
    ["afterTool", { terminate: undefined, retry: undefined }],
    ["prepareNextTurn", { messages: undefined, model: undefined, thinkingLevel: undefined }],
    ["prepareNextTurn", { system: undefined, activeTools: undefined }]
  ]

  for (const [point, returned] of silent) {
    it.effect(`has not failed at ${point}, and says nothing by them: ${Object.keys(Object(returned))}`, () =>
      Effect.gen(function* () {
        const { events, requests, view } = yield* play([call("act"), done], {
          tools: [say("act")],
          hooks: [returning(point, Effect.succeed(returned))]
        })
        assert.deepStrictEqual(ofTag(events, "HookError"), [])
        assert.deepStrictEqual(outcomes(events), ["success"])
        assert.strictEqual(status(events), "completed")
        assert.deepStrictEqual(texts(view.messages), ["hi", "", "act", "done"])
        assert.strictEqual(requests[1]?.model, "m")
      })
    )
  }

  it.effect("has its other keys heard, also within them", () =>
    Effect.gen(function* () {
      const { events, view } = yield* play([ScriptedProvider.toolCall("echo", { n: 1 }), done], {
        tools: [echo],
        hooks: [
          returning("beforeTool", Effect.succeed({ reason: undefined, params: { n: 2, also: undefined } })),
          returning(
            "afterTool",
            Effect.succeed({ isError: undefined, details: { kept: { n: 2, left: undefined } } })
          )
        ]
      })
      assert.deepStrictEqual(ofTag(events, "HookError"), [])
      assert.deepStrictEqual(resultTexts(view.messages), ["2"])
      const result = view.messages.find((message) => message.role === "toolResult")
      assert.deepStrictEqual(result?.role === "toolResult" ? result.details : undefined, { kept: { n: 2 } })
    })
  )

  it.effect("is refused where it must say something: an approval that is undefined rejects", () =>
    Effect.gen(function* () {
      const { events } = yield* observed(returning("approveTool", Effect.succeed({ approved: undefined })))
      assert.deepStrictEqual(outcomes(events), ["rejected"])
    })
  )
})

describe("a hook that returns what cannot be read", () => {
  it.effect("has failed: guards reject, observers are isolated, shapers fail the run", () =>
    Effect.gen(function* () {
      const succeeding = (point: Hook.Point) => returning(point, Effect.succeed(unreadable()))
      for (const point of ["beforeTool", "approveTool"] as const) {
        const { events } = yield* observed(succeeding(point), { hookFailureMode: "ignore" })
        assert.deepStrictEqual(outcomes(events), ["rejected"], point)
        assert.include(ofTag(events, "HookError")[0]?.error, "cannot be read")
      }
      for (const point of observers) {
        const { events } = yield* observed(succeeding(point))
        assert.strictEqual(status(events), "completed", point)
        assert.deepInclude(ofTag(events, "HookError")[0], { hook: point, error: "cannot be read" })
        assert.deepStrictEqual(Invariants.broken(events), [])
      }
      const { events } = yield* observed(succeeding("afterTool"))
      assert.deepStrictEqual(outcomes(events), ["error"])
      for (const point of shapers) {
        const { exit } = yield* observed(succeeding(point))
        assert.deepInclude(reasonOf(exit), { _tag: "TransformFailed", hook: point })
      }
    })
  )

  it.effect("rejects when the result that stands in for the tool cannot be read", () =>
    Effect.gen(function* () {
      const results: ReadonlyArray<unknown> = [
        unreadable(),
        {
          get content(): ReadonlyArray<never> {
            throw new Error("cannot be read")
          }
        },
        { content: [{ type: "text", text: "x" }], details: unreadable() },
        new Map()
      ]
      for (const result of results) {
        const hook = returning("beforeTool", Effect.succeed({ skip: true, result }))
        const { events } = yield* observed(hook)
        assert.deepStrictEqual(outcomes(events), ["rejected"])
        assert.strictEqual(status(events), "completed")
      }
    })
  )

  it.effect("is disabled after three such returns in a row", () =>
    Effect.gen(function* () {
      let asked = 0
      const hook = Hook.afterModel(() => Effect.sync(() => (asked++, undefined)))
      const broken = Object.assign(hook, { run: () => Effect.sync(() => (asked++, unreadable())) })
      yield* play([call("a"), call("a"), call("a"), call("a"), done], {
        tools: [say("a")],
        hooks: [broken],
        options: { limits: { maxIdenticalToolCalls: Infinity } }
      })
      assert.strictEqual(asked, 3)
    })
  )
})

describe("a hook that returns members that do not go together", () => {
  const excluded: ReadonlyArray<readonly [Hook.Point, object, error: string]> = [
    ["beforeTool", { block: true, skip: true }, "`block` together with `skip`"],
    ["beforeTool", { block: false, params: {} }, "`block` together with `params`"],
    ["beforeTool", { skip: true, terminate: true }, "`skip` together with `terminate`"],
    ["beforeTool", { reason: "why" }, 'Missing key\n  at ["block"]'],
    ["beforeTool", { terminate: true }, 'Missing key\n  at ["block"]'],
    ["approveTool", { approved: false, params: {} }, "Return either { approved, reason, params } or"],
    ["approveTool", { reason: "why" }, 'Missing key\n  at ["approved"]']
  ]

  for (const [point, returned, error] of excluded) {
    it.effect(`has failed at ${point}, which rejects: ${JSON.stringify(returned)}`, () =>
      Effect.gen(function* () {
        const { events } = yield* play([call("act"), done], {
          tools: [say("act")],
          hooks: [returning(point, Effect.succeed(returned))]
        })
        assert.include(ofTag(events, "HookError")[0]?.error, error)
        assert.deepStrictEqual(outcomes(events), ["rejected"])
      })
    )
  }

  it.effect("has failed at beforeModel, which asks the model", () =>
    Effect.gen(function* () {
      for (const returned of [
        { modified: { temperature: 1 }, skip: true },
        { skip: true, response: "instead", reason: "why" }
      ]) {
        const { events, requests } = yield* play([done], {
          hooks: [returning("beforeModel", Effect.succeed(returned))]
        })
        assert.include(
          ofTag(events, "HookError")[0]?.error,
          "Return either { modified } or { skip, response } or { skip, reason }."
        )
        assert.deepStrictEqual(
          requests.map(({ options }) => options),
          [{}]
        )
      }
    })
  )

  it("does not compile", () => {
    type Fits<A, P extends Hook.Point> = A extends Hook.Output<P> ? true : false
    const refused: readonly [
      Fits<{ block: true; skip: true }, "beforeTool">,
      Fits<{ block: true; params: {} }, "beforeTool">,
      Fits<{ skip: true; reason: "why" }, "beforeTool">,
      Fits<{ skip: true; mockResult: 1 }, "beforeTool">,
      Fits<{ approved: false; params: {} }, "approveTool">,
      Fits<{ modified: {}; skip: true }, "beforeModel">,
      Fits<{ skip: true; response: "instead"; reason: "why" }, "beforeModel">
    ] = [false, false, false, false, false, false, false]
    const taken: readonly [
      Fits<{ block: boolean; reason: string }, "beforeTool">,
      Fits<{ skip: boolean; result: string }, "beforeTool">,
      Fits<{ params: {} }, "beforeTool">,
      Fits<{ approved: true; params: {} }, "approveTool">,
      Fits<{ skip: boolean; response: string }, "beforeModel">
    ] = [true, true, true, true, true]
    // A flag that is computed is fine.
    const blocked: boolean = refused[0]
    Hook.beforeTool(() => Effect.succeed({ block: blocked, reason: "why" }))
    Hook.approveTool(() => Effect.succeed({ approved: blocked, reason: "why" }))
    assert.strictEqual(taken.length, 5)
  })
})

describe("a hook that returns an unknown member within `modified`", () => {
  const misspelt: ReadonlyArray<readonly [Hook.Point, object, error: string]> = [
    [
      "beforeExecution",
      { sistem: "s" },
      "`modified.sistem`, which has no meaning here. Did you mean `modified.system`?"
    ],
    ["beforeExecution", { limits: { maxTurn: 3 } }, "Did you mean `modified.limits.maxTurns`?"],
    [
      "beforeExecution",
      { modelOptions: { tempreture: 1 } },
      "Did you mean `modified.modelOptions.temperature`?"
    ],
    ["beforeModel", { tempreture: 1 }, "Did you mean `modified.temperature`?"],
    ["beforeModel", { message: [] }, "Did you mean `modified.messages`?"],
    [
      "beforeModel",
      { sampling: 1 },
      "`modified.sampling`, which has no meaning here. Return any of modified.maxTokens,"
    ]
  ]

  for (const [point, modified, error] of misspelt) {
    it.effect(`has failed, and the failure names the nearest: ${point}, ${JSON.stringify(modified)}`, () =>
      Effect.gen(function* () {
        const { events, requests } = yield* play([done], {
          hooks: [returning(point, Effect.succeed({ modified }))]
        })
        assert.include(ofTag(events, "HookError")[0]?.error, error)
        assert.deepInclude(requests[0], { model: "m", options: {} })
      })
    )
  }
})

describe("a hook that returns a member that its point does not know", () => {
  const unknown: ReadonlyArray<readonly [Hook.Point, object, error: string]> = [
    [
      "beforeTool",
      { skip: true, mockResult: 1 },
      "`mockResult`, which has no meaning here. Did you mean `result`?"
    ],
    ["beforeTool", { params: {}, note: "why" }, "`note`, which has no meaning here. Return any of params,"],
    ["approveTool", { approved: true, extra: 1 }, "`extra`"],
    ["afterTool", { details: 1, extra: 1 }, "`extra`"],
    ["pauseCheck", { shouldPause: true, extra: 1 }, "`extra`"],
    ["beforeExecution", { modified: { system: "s", extra: 1 } }, "`modified.extra`"],
    [
      "beforeModel",
      { modified: { temperature: 1, tools: [{ name: "a", description: "", parameters: {}, extra: 1 }] } },
      '["extra"]'
    ],
    ["beforeModel", { modified: { hostedTools: [{ type: "webSearch", maxUsed: 1 }] } }, '["maxUsed"]'],
    ["beforeModel", { skip: true, response: { ...Message.assistant("a"), extra: 1 } }, '["extra"]'],
    ["afterExecution", { modified: { ...Message.assistant("a"), extra: 1 } }, "`modified.extra`"],
    [
      "afterModel",
      { modified: Message.assistant("a") },
      "`modified`, which has no meaning here. This point takes"
    ],
    ["onError", { retry: true }, "`retry`, which has no meaning here. This point takes nothing."]
  ]

  for (const [point, returned, error] of unknown) {
    it.effect(`has failed, whatever else it returns: ${point}, ${Object.keys(returned).join(", ")}`, () =>
      Effect.gen(function* () {
        const { events } = yield* observed(returning(point, Effect.succeed(returned)))
        assert.include(ofTag(events, "HookError")[0]?.error, error)
      })
    )
  }

  it.effect("fails the run where it prepares the next turn", () =>
    Effect.gen(function* () {
      const hook = returning("prepareNextTurn", Effect.succeed({ model: "other", extra: 1 }))
      assert.deepInclude(reasonOf((yield* observed(hook)).exit), { _tag: "TransformFailed" })
    })
  )

  it.effect("may return an empty object or any other value where the point takes nothing", () =>
    Effect.gen(function* () {
      for (const returned of [{}, 1, [], new Map([[1, 2]])]) {
        for (const point of ["afterModel", "onError"] as const) {
          const { events } = yield* observed(returning(point, Effect.succeed(returned)))
          assert.deepStrictEqual(ofTag(events, "HookError"), [])
        }
      }
    })
  )
})

describe("a hook that shapes what the model reads", () => {
  it.effect("fails when it returns a custom message, which no provider can read", () =>
    Effect.gen(function* () {
      const custom = [Message.custom("note", {}), Message.user("hi")]
      const shaped = yield* play([done], { hooks: [returning("toModelMessages", Effect.succeed(custom))] })
      assert.deepInclude(reasonOf(shaped.exit), { _tag: "TransformFailed", hook: "toModelMessages" })
      const { events } = yield* play([done], {
        hooks: [returning("beforeModel", Effect.succeed({ modified: { messages: custom } }))]
      })
      assert.deepInclude(ofTag(events, "HookError")[0], { hook: "beforeModel" })
    })
  )
})

describe("pauseCheck and steering", () => {
  it.effect("pauseCheck is told the turn that is about to begin, so a hook at turn 1 acts before it", () =>
    Effect.gen(function* () {
      for (const at of [1, 2]) {
        const told: Array<readonly [number, number]> = []
        const script = yield* agent([call("a"), done], {
          tools: [say("a")],
          hooks: [
            Hook.pauseCheck(({ messages, turn }) => {
              told.push([turn, messages.length])
              return Effect.succeed({ shouldPause: turn === at })
            })
          ]
        })
        yield* script.agent.subscribe(({ _tag }) =>
          _tag === "RunPaused" ? script.agent.cancel() : Effect.void
        )
        const { turns } = yield* script.agent.prompt("hi")
        assert.strictEqual(turns, at - 1)
        assert.strictEqual((yield* script.requests).length, at - 1)
        assert.deepStrictEqual(
          told,
          (
            [
              [1, 0],
              [2, 3]
            ] as const
          ).slice(0, at)
        )
      }
    })
  )

  it.effect("steering is told which poll it is: at the start, after a tool call, after the turn", () =>
    Effect.gen(function* () {
      for (const steeringPolicy of ["afterTurn", "skipRemaining"] as const) {
        const polls: Array<string> = []
        const { view } = yield* play([call("a"), done], {
          tools: [say("a")],
          hooks: [
            Hook.steering(({ phase, turn }) => {
              polls.push(`${phase} ${turn}`)
              return Effect.succeed(phase === "start" ? [Message.user("first")] : [])
            })
          ],
          options: { steeringPolicy }
        })
        const tools = steeringPolicy === "skipRemaining" ? ["tools 1"] : []
        assert.deepStrictEqual(polls, ["start 1", ...tools, "turnEnd 1", "turnEnd 2"])
        assert.deepStrictEqual(texts(view.messages), ["hi", "first", "", "a", "done"])
      }
    })
  )

  it.effect("a run that takes up queued steering has no poll at its start", () =>
    Effect.gen(function* () {
      const polls: Array<string> = []
      const script = yield* agent([done, done, done], {
        hooks: [Hook.steering(({ phase, turn }) => Effect.sync(() => void polls.push(`${phase} ${turn}`)))]
      })
      yield* script.agent.prompt("hi")
      yield* script.agent.steer("more")
      yield* script.agent.continue
      assert.deepStrictEqual(polls, ["start 1", "turnEnd 1", "turnEnd 1"])
    })
  )
})

describe("beforeModel", () => {
  it.effect("changes model, system prompt and tools of one call, from left to right", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const look = (input: Hook.Input<"beforeModel">) =>
        seen.push([input.model, input.system, input.tools.map(({ name }) => name)])
      const { events, requests } = yield* play([call("b"), done], {
        tools: [say("a"), say("b")],
        options: { system: "calm", modelOptions: { temperature: 1 } },
        hooks: [
          Hook.beforeModel((input) => {
            look(input)
            const tools = input.tools.filter(({ name }) => name === "b")
            return Effect.succeed(
              input.turn === 1 ? { modified: { model: "big", system: "bold", tools } } : {}
            )
          }),
          Hook.beforeModel((input) => {
            look(input)
            return Effect.succeed(input.turn === 1 ? { modified: { model: "bigger" } } : {})
          })
        ]
      })
      assert.deepStrictEqual(seen, [
        ["m", "calm", ["a", "b"]],
        ["big", "bold", ["b"]],
        ["m", "calm", ["a", "b"]],
        ["m", "calm", ["a", "b"]]
      ])
      const asked = requests.map(({ model, options, system, tools }) => [
        model,
        system,
        tools.map(({ name }) => name),
        options
      ])
      assert.deepStrictEqual(asked, [
        ["bigger", "bold", ["b"], { temperature: 1 }],
        ["m", "calm", ["a", "b"], { temperature: 1 }]
      ])
      assert.deepStrictEqual(
        ofTag(events, "ModelCallStart").map(({ model }) => model),
        ["bigger", "m"]
      )
      assert.deepStrictEqual(outcomes(events), ["success"])
    })
  )

  it.effect("takes tools out of reach, and none into it", () =>
    Effect.gen(function* () {
      const offered = { name: "invented", description: "", parameters: { type: "object" } }
      for (const [tools, called] of [
        [[], "a"],
        [[offered], "a"],
        [[offered], "invented"]
      ] as const) {
        const { events, requests } = yield* play([call(called), done], {
          tools: [say("a")],
          hooks: [Hook.beforeModel(({ turn }) => Effect.succeed(turn === 1 ? { modified: { tools } } : {}))]
        })
        assert.deepStrictEqual(requests[0]?.tools, tools)
        assert.deepStrictEqual(outcomes(events), ["unknownTool"])
        assert.deepStrictEqual(
          requests[1]?.tools.map(({ name }) => name),
          ["a"]
        )
      }
      const restored = yield* play([call("a"), done], {
        tools: [say("a")],
        hooks: [
          Hook.beforeModel(() => Effect.succeed({ modified: { tools: [] } })),
          Hook.beforeModel(() => Effect.succeed({ modified: { tools: [{ ...offered, name: "a" }] } }))
        ]
      })
      assert.deepStrictEqual(outcomes(restored.events), ["success"])
    })
  )

  it.effect("names the changed model in an answer whose provider did not say who gave it", () =>
    Effect.gen(function* () {
      const bare = ScriptedProvider.turn(...ScriptedProvider.text("ok").steps.slice(1))
      const { view } = yield* play([bare], {
        hooks: [Hook.beforeModel(() => Effect.succeed({ modified: { model: "other" } }))]
      })
      assert.deepInclude(view.messages.at(-1), { role: "assistant", model: "other" })
    })
  )

  it.effect("fails when it changes them to something else", () =>
    Effect.gen(function* () {
      for (const modified of [{ model: 1 }, { system: null }, { tools: ["a"] }]) {
        const { events, requests } = yield* play([done], {
          hooks: [returning("beforeModel", Effect.succeed({ modified }))]
        })
        assert.deepInclude(ofTag(events, "HookError")[0], { hook: "beforeModel" })
        assert.strictEqual(requests[0]?.model, "m")
      }
    })
  )

  it.effect("may answer with calls of any ids: doubled and empty ones are told apart", () =>
    Effect.gen(function* () {
      const ids = ["x", "x", "x_2", "", ""]
      const answer = Message.assistant(
        ids.map((id) => ({ type: "toolCall", id, name: "a", rawArguments: "{}", params: {} })),
        { stopReason: "toolUse" }
      )
      for (const toolExecution of ["parallel", "sequential"] as const) {
        const { events, requests, view } = yield* play([done], {
          tools: [say("a")],
          hooks: [Hook.beforeModel(({ turn }) => Effect.succeed({ skip: turn === 1, response: answer }))],
          options: { toolExecution, limits: { maxIdenticalToolCalls: Infinity } }
        })
        assert.deepStrictEqual(Transcript.violations(view.messages), [])
        assert.deepStrictEqual(Invariants.broken(events), [])
        assert.strictEqual(outcomes(events).filter((outcome) => outcome === "success").length, 5)
        const [first] = view.messages.flatMap((message) =>
          message.role === "assistant" ? [Message.toolCalls(message)] : []
        )
        assert.strictEqual(first?.[0]?.id, "x")
        assert.deepStrictEqual(
          requests[0]?.messages.map(({ id }) => id),
          view.messages.slice(0, -1).map(({ id }) => id)
        )
      }
    })
  )
})

describe("a provider of one's own", () => {
  it.effect("may leave out the starts of calls: they are answered, as calls of an unknown tool", () =>
    Effect.gen(function* () {
      const piece = (
        event: { readonly _tag: "ToolCallDelta"; readonly delta: string },
        contentIndex: number
      ) => ({
        ...event,
        contentIndex
      })
      const end = (contentIndex: number) =>
        ({ _tag: "ToolCallEnd", contentIndex, rawArguments: "{}" }) as const
      const { events, view } = yield* play(
        [
          {
            ignoresAbort: false,
            steps: [
              { _tag: "Event", event: end(0) },
              { _tag: "Event", event: piece({ _tag: "ToolCallDelta", delta: "{" }, 1) },
              { _tag: "Event", event: piece({ _tag: "ToolCallDelta", delta: "}" }, 1) },
              { _tag: "Event", event: end(1) },
              { _tag: "Finish", stopReason: "toolUse" }
            ]
          },
          done
        ],
        { tools: [say("a")] }
      )
      assert.deepStrictEqual(outcomes(events), ["unknownTool", "unknownTool"])
      assert.deepStrictEqual(Invariants.broken(events), [])
      const answer = view.messages[1]
      assert.strictEqual(answer?.role === "assistant" ? Message.toolCalls(answer).length : 0, 2)
      // What is told piece by piece comes to the same message.
      const started = ofTag(events, "MessageDelta").filter(({ delta }) => delta._tag === "ToolCallStart")
      assert.deepStrictEqual(
        started.map(({ delta }) => (delta._tag === "ToolCallStart" ? delta.id : "")),
        answer?.role === "assistant" ? Message.toolCalls(answer).map(({ id }) => id) : []
      )
    })
  )
})

describe("afterExecution", () => {
  it.effect("replaces the answer for the caller; RunEnd names the one that observers saw end", () =>
    Effect.gen(function* () {
      const modified = Message.assistant("edited")
      const hooks = [Hook.afterExecution(() => Effect.succeed({ modified }))]
      const script = yield* agent([call("a"), done], { tools: [say("a")], hooks })
      const { message } = yield* script.agent.prompt("hi")
      assert.deepStrictEqual(message, modified)
      const ends = ofTag(script.events, "MessageEnd").map((event) => event.message.id)
      assert.strictEqual(ofTag(script.events, "RunEnd")[0]?.messageId, ends.at(-1))
      const none = yield* agent([], { hooks, limits: { maxTurns: 0, onMaxTurns: "stop" } })
      assert.deepStrictEqual((yield* none.agent.prompt("hi")).message, modified)
      assert.notProperty(ofTag(none.events, "RunEnd")[0], "messageId")
    })
  )
})

describe("what hooks are told", () => {
  class Payment extends Schema.Class<Payment>("Payment")({ to: Schema.String, amount: Schema.Finite }) {}
  class Account {
    #owner: string
    constructor(owner: string) {
      this.#owner = owner
    }
    get owner(): string {
      return this.#owner
    }
    rename(owner: string): void {
      this.#owner = owner
    }
  }
  const hasAccounts = (given: unknown): given is { readonly accounts: ReadonlyArray<Account> } =>
    typeof given === "object" && given !== null && "accounts" in given && Array.isArray(given.accounts)

  const Params = Schema.Struct({
    payment: Payment,
    when: Schema.DateFromString,
    site: Schema.URLFromString,
    notes: Schema.Array(Schema.String)
  })
  const params = {
    payment: { to: "bob", amount: 5 },
    when: "2026-01-01T00:00:00.000Z",
    site: "https://bank.example/",
    notes: ["rent"]
  }
  const shown = ({ notes, payment, site, when }: typeof Params.Type) =>
    `${payment.amount} to ${payment.to} at ${when.toISOString()} by ${site.href}, ${notes.join()}`
  const right = "5 to bob at 2026-01-01T00:00:00.000Z by https://bank.example/, rent"
  const pay = Tool.make({
    name: "pay",
    description: "",
    params: Params,
    execute: (given) => Effect.succeed(shown(given))
  })
  const isParams = Schema.is(Params)

  /** Changes all it is told, as far as it can. */
  const meddle = (given: unknown): void => {
    if (!isParams(given)) return
    for (const change of [
      () => Object.assign(given.payment, { amount: 1e6 }),
      () => given.when.setFullYear(1970),
      () => Object.assign(given.site, { href: "https://thief.example/" }),
      () => Object.assign(given.notes, ["loot"])
    ]) {
      try {
        change()
      } catch {
        // Frozen.
      }
    }
  }

  it.effect("params with classes cannot be changed for the tool, nor for the hooks that come after", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const look = (given: unknown) => {
        seen.push(isParams(given) ? shown(given) : "nothing")
        meddle(given)
      }
      let tries = 0
      const { events, view } = yield* play([ScriptedProvider.toolCall("pay", params), done], {
        tools: [pay],
        hooks: [
          Hook.beforeTool(({ params }) => Effect.sync(() => look(params))),
          Hook.beforeTool(({ params }) => Effect.sync(() => (look(params), {}))),
          Hook.approveTool(({ params }) => Effect.sync(() => look(params))),
          Hook.approveTool(({ params }) => Effect.sync(() => (look(params), { approved: true }))),
          Hook.afterTool(({ params }) => Effect.sync(() => look(params))),
          Hook.afterTool(({ params }) => Effect.sync(() => (look(params), { retry: ++tries === 1 })))
        ]
      })
      assert.deepStrictEqual(
        seen,
        Array.from({ length: 8 }, () => right)
      )
      assert.deepStrictEqual(resultTexts(view.messages), [right])
      assert.deepStrictEqual(ofTag(events, "HookError"), [])
    })
  )

  it.effect("params that a hook puts in their place are the tool's own: nobody can change them later", () =>
    Effect.gen(function* () {
      const kept = { list: { numbers: [1, 2] } }
      const given: Array<unknown> = []
      const tool = Tool.make({
        name: "take",
        description: "",
        params: Schema.Struct({ list: Schema.Struct({ numbers: Schema.Array(Schema.Finite) }) }),
        execute: ({ list }) => Effect.sync(() => void given.push(structuredClone(list.numbers)))
      })
      const { events } = yield* play([ScriptedProvider.toolCall("take", { list: { numbers: [] } }), done], {
        tools: [tool],
        hooks: [
          Hook.beforeTool(() => Effect.succeed({ params: kept })),
          Hook.approveTool(() => {
            kept.list.numbers.push(666)
            return Effect.succeed({ approved: true })
          })
        ]
      })
      assert.deepStrictEqual(given, [[1, 2]])
      assert.deepStrictEqual(ofTag(events, "ToolInvoked")[0]?.params, { list: { numbers: [1, 2] } })
    })
  )

  it.effect("instances with private state are whole for each hook, and the tool's own stays as it was", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const tool = Tool.make({
        name: "open",
        description: "",
        params: {
          "~standard": {
            version: 1,
            vendor: "test",
            validate: () => ({ value: { accounts: [new Account("bob")] } })
          }
        },
        parameters: { type: "object" },
        execute: ({ accounts }: { readonly accounts: ReadonlyArray<Account> }) =>
          Effect.succeed(accounts.map(({ owner }) => owner).join())
      })
      const rename = (given: unknown) =>
        Effect.sync(() => {
          const [account] = hasAccounts(given) ? given.accounts : []
          if (account === undefined) return
          seen.push(account.owner)
          account.rename("thief")
        })
      const { view } = yield* play([call("open"), done], {
        tools: [tool],
        hooks: [
          Hook.beforeTool(({ params }) => rename(params)),
          Hook.approveTool(({ params }) => Effect.as(rename(params), { approved: true }))
        ]
      })
      assert.deepStrictEqual(seen, ["bob", "bob"])
      assert.deepStrictEqual(resultTexts(view.messages), ["bob"])
    })
  )

  it.effect("params that go in circles are shown, and cannot be changed", () =>
    Effect.gen(function* () {
      interface Ring {
        name: string
        readonly also: Map<string, Ring>
        readonly all: Set<unknown>
      }
      const ring = (): Ring => {
        const made: Ring = { name: "one", also: new Map(), all: new Set() }
        made.also.set("self", made)
        made.all.add(made.all)
        return made
      }
      const isRing = (given: unknown): given is Ring =>
        typeof given === "object" && given !== null && "also" in given && given.also instanceof Map
      const tool = Tool.make({
        name: "ring",
        description: "",
        params: { "~standard": { version: 1, vendor: "test", validate: () => ({ value: ring() }) } },
        parameters: { type: "object" },
        execute: ({ all, also, name }: Ring) =>
          Effect.succeed(`${name} ${also.size} ${also.get("self")?.name} ${all.has(all)}`)
      })
      const seen: Array<string> = []
      const spoil = ({ params }: Hook.ToolInput) =>
        Effect.sync(() => {
          if (!isRing(params)) return
          seen.push(`${params.name} ${params.also.size} ${params.all.has(params.all)}`)
          params.also.clear()
          params.all.clear()
        })
      const { view } = yield* play([call("ring"), done], {
        tools: [tool],
        hooks: [Hook.beforeTool(spoil), Hook.beforeTool(spoil)]
      })
      assert.deepStrictEqual(seen, ["one 1 true", "one 1 true"])
      assert.deepStrictEqual(resultTexts(view.messages), ["one 1 one true"])
    })
  )

  it.effect("errors and options cannot be changed for the caller, for events, or for the run", () =>
    Effect.gen(function* () {
      const change = (target: object, changes: object) => {
        try {
          Object.assign(target, changes)
        } catch {
          // Frozen.
        }
      }
      const spoil = (error: object | undefined) =>
        Effect.sync(() => {
          if (error === undefined) return
          change(error, { provider: "nobody" })
          if ("reason" in error && typeof error.reason === "object" && error.reason !== null) {
            change(error.reason, { detail: "all is well" })
          }
        })
      const failure = new ProviderError.Forbidden({ detail: "no" })
      const { events, exit } = yield* play([ScriptedProvider.fail(failure)], {
        options: { limits: { executionTime: Duration.hours(1) } },
        hooks: [
          Hook.beforeExecution(({ options }) =>
            Effect.sync(() => {
              change(options, { model: "other" })
              change(Object(options.limits?.executionTime), { value: { _tag: "Millis", millis: 0 } })
              change(Object(Object(options.limits?.executionTime).value), { millis: 0 })
            })
          ),
          Hook.onError(({ error }) => spoil(error)),
          Hook.afterExecution(({ error }) => spoil(error))
        ]
      })
      const reason = reasonOf(exit)
      assert.strictEqual(reason?.message, "scripted: Forbidden: no")
      assert.strictEqual(ofTag(events, "RunEnd")[0]?.error, reason)
      assert.strictEqual(ofTag(events, "ModelCallStart")[0]?.model, "m")
    })
  )
})

describe("an approval without a time limit", () => {
  it.effect("is stopped with the run", () =>
    Effect.gen(function* () {
      const asked = yield* Latch.make(false)
      let stopped = false
      const script = yield* agent([call("a"), done], {
        tools: [say("a"), echo],
        hooks: [
          Hook.approveTool(() =>
            Effect.andThen(asked.open, Effect.never).pipe(
              Effect.onInterrupt(() => Effect.sync(() => (stopped = true)))
            )
          )
        ]
      })
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* asked.await
      yield* script.agent.cancel()
      assert.strictEqual((yield* Fiber.join(run)).status, "cancelled")
      yield* settle()
      assert.isTrue(stopped)
      assert.notInclude(tags(script.events), "ToolInvoked")
    })
  )
})
