import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Stream } from "effect"
import { Agent, Loop, Message, type RunOptions, ToolRegistry } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { agent, ofTag, say } from "./play.ts"

const done = ScriptedProvider.text("done")
const call = ScriptedProvider.toolCall("look", {})

/** The same options, given at every place that takes options. */
const everywhere = Effect.fnUntraced(function* (options: any) {
  const { agent: made, events, requests } = yield* agent([done])
  const context = { messages: [Message.user("hi")] }
  const whole = { model: "m", ...options }
  const services = Layer.merge(ScriptedProvider.layer([done]), ToolRegistry.layer())
  const attempts: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
    agent([], options),
    made.update(options),
    made.prompt("hi", options),
    Stream.runDrain(made.stream("hi", options)),
    made.start("hi", options),
    Effect.provide(Loop.run("hi", context, whole), services),
    Stream.runDrain(Loop.stream("hi", context, whole)).pipe(Effect.provide(services)),
    Stream.runDrain(Loop.continue(context, whole)).pipe(Effect.provide(services))
  ].map((attempt) => Effect.scoped(attempt as Effect.Effect<unknown, unknown>))
  const messages: Array<string> = []
  for (const attempt of attempts) {
    const error = yield* Effect.flip(attempt)
    assert.instanceOf(error, Agent.InvalidInput)
    messages.push(error instanceof Agent.InvalidInput ? error.message : "")
  }
  assert.deepStrictEqual(events, [])
  assert.deepStrictEqual(yield* requests, [])
  assert.strictEqual(
    new Set(messages.map((message) => message.split(". Options: ")[0])).size,
    1,
    messages.join("\n")
  )
  return messages[0] ?? ""
})

const refusals: ReadonlyArray<readonly [options: unknown, words: string]> = [
  [{ toolConcurrency: Number.NaN }, "toolConcurrency: expected a whole number from 0, or Infinity, got NaN"],
  [{ toolConcurrency: -1 }, "toolConcurrency: expected a whole number from 0, or Infinity, got -1"],
  [{ toolConcurrency: 0.5 }, "got 0.5"],
  [
    { limits: { maxTurns: Number.NaN } },
    "limits.maxTurns: expected a whole number from 0, or Infinity, got NaN"
  ],
  [{ limits: { maxTurns: -1 } }, "limits.maxTurns: "],
  [{ limits: { maxTurns: "5" } }, 'limits.maxTurns: expected number, got "5"'],
  [{ limits: { maxToolCalls: Number.NaN } }, "limits.maxToolCalls: expected a whole number"],
  [{ limits: { maxIdenticalToolCalls: 1.5 } }, "limits.maxIdenticalToolCalls: expected a whole number"],
  [{ limits: { maxToolRetries: -1 } }, "limits.maxToolRetries: expected a whole number"],
  [
    { limits: { maxTotalTokens: Number.NaN } },
    "limits.maxTotalTokens: expected a number from 0, or Infinity, got NaN"
  ],
  [{ limits: { maxCost: -0.1 } }, "limits.maxCost: expected a number from 0, or Infinity, got -0.1"],
  [{ limits: { maxContextSize: Number.NaN } }, "limits.maxContextSize: expected a number"],
  [
    { limits: { prices: { input: Infinity, output: 1 } } },
    "limits.prices.input: expected a number from 0, got Infinity"
  ],
  [
    { limits: { executionTime: Number.NaN } },
    'limits.executionTime: expected a duration such as "30 seconds"'
  ],
  [{ limits: { onMaxTurns: "halt" } }, 'limits.onMaxTurns: expected "fail" | "stop" | "wrapUp", got "halt"'],
  [
    { toolTimeout: "5 minuts" },
    'toolTimeout: expected a duration such as "30 seconds", milliseconds, { minutes: 5 } or "Infinity", got "5 minuts"'
  ],
  [{ hookTimeout: -1 }, "hookTimeout: expected a duration"],
  [
    { maxConsecutiveHookErrors: 0 },
    "maxConsecutiveHookErrors: expected a whole number from 1, or Infinity, got 0"
  ],
  [{ approvalTimeout: "-1 seconds" }, "approvalTimeout: expected a duration"],
  [{ toolExecution: "serial" }, 'toolExecution: expected "parallel" | "sequential", got "serial"'],
  [{ system: 5 }, "system: expected string, got 5"],
  [{ model: " " }, 'model: expected the id of a model, such as "gpt-5.4-mini", got " "'],
  [{ maxTurns: 5 }, "maxTurns is not an option. Did you mean limits.maxTurns?"],
  [{ maxturn: 5 }, "Did you mean limits.maxTurns?"],
  [{ temperature: 1 }, "temperature is not an option. Did you mean modelOptions.temperature?"],
  [{ sytem: "x" }, "sytem is not an option. Did you mean system?"],
  [{ limits: { maxTruns: 5 } }, "limits.maxTruns is not an option. Did you mean limits.maxTurns?"],
  [
    { modelOptions: { maxToken: 5 } },
    "modelOptions.maxToken is not an option. Did you mean modelOptions.maxTokens?"
  ],
  [{ modelOptions: { seed: "7" } }, 'modelOptions.seed: expected number, got "7"'],
  [{ modelOptions: { seed: 0.5 } }, "modelOptions.seed: expected an integer, got 0.5"],
  [{ modelOptions: { logprobs: -1 } }, "modelOptions.logprobs: expected a whole number from 0, got -1"],
  [{ modelOptions: { parallelToolCalls: "no" } }, "modelOptions.parallelToolCalls: expected boolean"],
  [{ modelOptions: { store: 1 } }, "modelOptions.store: expected boolean, got 1"],
  [{ modelOptions: { serviceTier: 1 } }, "modelOptions.serviceTier: expected string, got 1"],
  [{ modelOptions: { previousResponseId: 1 } }, "modelOptions.previousResponseId: expected string, got 1"],
  [{ seed: 1 }, "seed is not an option. Did you mean modelOptions.seed?"],
  [
    { modelOptions: { hostedTools: ["webSearch"] } },
    'modelOptions.hostedTools[0]: expected an object with the type "webSearch", "codeExecution", "fileSearch" or "computerUse", got "webSearch"'
  ],
  [
    { modelOptions: { hostedTools: [{ type: "search" }] } },
    "modelOptions.hostedTools[0]: expected an object"
  ],
  [
    { modelOptions: { hostedTools: [{ type: "webSearch", maxUses: 0 }] } },
    "modelOptions.hostedTools[0].maxUses: expected a whole number from 1, got 0"
  ],
  [
    { modelOptions: { hostedTools: [{ type: "webSearch", maxUse: 1 }] } },
    "modelOptions.hostedTools[0].maxUse is not an option"
  ],
  [
    { modelOptions: { hostedTools: [{ type: "fileSearch" }] } },
    "modelOptions.hostedTools[0].stores is missing"
  ],
  [
    { modelOptions: { hostedTools: [{ type: "codeExecution", vendor: { memory: 4 } }] } },
    'modelOptions.hostedTools[0].vendor.memory: expected object, got 4. vendor holds an object for each provider id: for the provider "openai" write vendor: { "openai": { "memory": 4 } }'
  ],
  [{ somethingElse: 1 }, "somethingElse is not an option. Options: model, system, "],
  [
    { limits: { somethingElse: 5 } },
    "limits.somethingElse is not an option. Options: limits.maxTurns, limits.onMaxTurns, "
  ],
  [{ agent: { somethingElse: 5 } }, "agent.somethingElse is not an option; agent.name is missing"],
  [{ limits: { maxTurns: Number.NaN }, sytem: "x" }, "; "]
]

describe("options", () => {
  it.effect.each(refusals)("%o are refused wherever options are taken (rows 253, 257)", ([options, words]) =>
    Effect.gen(function* () {
      const message = yield* everywhere(options)
      assert.isTrue(message.startsWith("Invalid options: "))
      assert.include(message, words)
    })
  )

  it.effect("are refused when a mode is none, and a misspelt name of an agent's own is advised", () =>
    Effect.gen(function* () {
      const refused = (options: any) => Effect.map(Effect.flip(Effect.scoped(agent([], options))), String)
      assert.include(
        yield* refused({ steeringMode: "some" }),
        'steeringMode: expected "one-at-a-time" or "all", got "some"'
      )
      assert.include(yield* refused({ followUpMode: 1 }), "followUpMode: ")
      assert.include(yield* refused({ tool: [] }), "tool is not an option. Did you mean tools?")
      assert.include(yield* refused({ tools: say("look") }), "tools: expected a list")
      assert.include(yield* refused({ hooks: {} }), "hooks: expected a list")
    })
  )

  it.effect("may be at their bounds", () =>
    Effect.gen(function* () {
      const fine: ReadonlyArray<any> = [
        {
          limits: {
            maxTurns: Infinity,
            maxToolCalls: 0,
            maxCost: 0,
            maxTotalTokens: Infinity,
            maxContextSize: 1e9
          }
        },
        {
          toolConcurrency: Infinity,
          toolTimeout: "Infinity",
          hookTimeout: 10n,
          approvalTimeout: { minutes: 1 }
        },
        {
          limits: { executionTime: "1 day", prices: { input: 0, output: 0.5 } },
          modelOptions: {
            vendor: { openai: { any: 1 } },
            logprobs: 0,
            hostedTools: [
              { type: "webSearch", location: {}, vendor: { openai: { any: 1 } } },
              { type: "computerUse", width: 1, height: 1 }
            ]
          }
        }
      ]
      for (const options of fine) yield* agent([], options)
    })
  )

  it.effect("of the model reach the provider as they are (rows 49, 253)", () =>
    Effect.gen(function* () {
      const modelOptions: RunOptions.ModelOptions = {
        parallelToolCalls: false,
        serviceTier: "flex",
        seed: 7,
        logprobs: 2,
        store: false,
        previousResponseId: "resp_1",
        hostedTools: [
          {
            type: "webSearch",
            maxUses: 3,
            allowedDomains: ["weather.test"],
            location: { country: "NO", timezone: "Europe/Oslo" }
          },
          { type: "codeExecution" },
          { type: "fileSearch", stores: ["vs_1"], maxResults: 5, vendor: { openai: { any: 1 } } },
          { type: "computerUse", width: 1024, height: 768 }
        ]
      }
      const { agent: made, requests } = yield* agent([done, done], { modelOptions })
      yield* made.prompt("hi")
      yield* made.prompt("hi", { modelOptions: { seed: 8, hostedTools: [] } })
      const [first, second] = yield* requests
      assert.deepStrictEqual(first?.options, modelOptions)
      assert.deepStrictEqual(second?.options, { ...modelOptions, seed: 8, hostedTools: [] })
    })
  )

  it.effect("that are undefined are not given: those below stay", () =>
    Effect.gen(function* () {
      const none: any = {
        limits: undefined,
        system: undefined,
        model: undefined,
        modelOptions: undefined,
        toolTimeout: undefined
      }
      const inner: any = { limits: { maxTurns: undefined }, modelOptions: { temperature: undefined } }
      for (const given of [none, inner]) {
        const script = yield* agent([call, call, call], {
          tools: [say("look")],
          system: "be brief",
          limits: { maxTurns: 2 },
          modelOptions: { temperature: 0.5 },
          toolTimeout: "1 minute"
        })
        yield* script.agent.update(given)
        const exit = yield* Effect.exit(script.agent.prompt("hi", given))
        assert.isTrue(Exit.isFailure(exit))
        assert.deepInclude(ofTag(script.events, "LimitReached")[0], { limit: "maxTurns", max: 2 })
        const [request] = yield* script.requests
        assert.deepInclude(request, { model: "m", system: "be brief", options: { temperature: 0.5 } })
      }
      const bare: any = {
        system: undefined,
        tools: undefined,
        hooks: undefined,
        messages: undefined,
        steeringMode: undefined,
        ...none,
        model: "m"
      }
      const script = yield* agent([done], bare)
      assert.strictEqual((yield* script.agent.prompt("hi")).status, "completed")
    })
  )

  it.effect("of an update that is refused change nothing", () =>
    Effect.gen(function* () {
      const script = yield* agent([done], { system: "be brief" })
      const bad: any = { system: "else", toolTimeout: "soon" }
      yield* Effect.flip(script.agent.update(bad))
      yield* script.agent.prompt("hi")
      assert.strictEqual((yield* script.requests)[0]?.system, "be brief")
    })
  )
})

describe("messages", () => {
  const user = Message.user("hi")
  const wrong: ReadonlyArray<readonly [messages: unknown, words: string]> = [
    [[user, { role: "user", content: "hi" }], 'messages[1].content: expected array, got "hi"'],
    [[{ role: "user", content: "hi" }], 'Message.user("…") and its like make a whole message'],
    [[{ ...user, content: [{ type: "txt", text: "" }] }], "messages[0].content[0]"],
    [[user, user, { ...user, id: undefined }], "messages[2].id"],
    [
      [{ role: "system", content: "x" }],
      'messages[0].role: expected one of "user", "assistant", "toolResult", "custom", got "system"'
    ],
    [["hi"], 'messages[0]: expected a message, got "hi"'],
    [[null], "messages[0]: expected a message, got null"],
    ["hi", 'expected a list of messages, got "hi"']
  ]

  it.effect.each(wrong)("%o are refused early, with index and member", ([messages, words]) =>
    Effect.gen(function* () {
      const script = yield* agent([done], { messages: [user] })
      const given: any = messages
      const services = Layer.merge(ScriptedProvider.layer([done]), ToolRegistry.layer())
      for (const attempt of [
        agent([], { messages: given }),
        script.agent.setMessages(given),
        Effect.provide(Loop.run("hi", { messages: given }, { model: "m" }), services)
      ]) {
        const error = yield* Effect.flip(Effect.scoped<unknown, unknown, never>(attempt as never))
        assert.instanceOf(error, Agent.InvalidInput)
        assert.include(String(error), "Invalid messages: ")
        assert.include(String(error), words)
      }
      assert.deepStrictEqual((yield* script.agent.state.get).messages, [user])
    })
  )

  it.effect(
    "of a prompt may be a text, a message, messages, or content blocks; anything else is refused (rows 3, 84, 181, 192)",
    () =>
      Effect.gen(function* () {
        const image = Message.image("aGk=", "image/png")
        const fine: ReadonlyArray<readonly [input: Message.Input, content: any]> = [
          ["hi", [Message.text("hi")]],
          [user, [Message.text("hi")]],
          [[user], [Message.text("hi")]],
          [
            [Message.text("what is this?"), image],
            [Message.text("what is this?"), image]
          ]
        ]
        for (const [input, content] of fine) {
          const script = yield* agent([done])
          const { newMessages } = yield* script.agent.prompt(input)
          assert.deepInclude(newMessages[0], { role: "user", content })
          assert.deepStrictEqual(
            Message.fromInput(input).map((message) => "content" in message && message.content),
            [content]
          )
        }
        const bad: ReadonlyArray<readonly [input: any, words: string]> = [
          [undefined, "expected a text, a message or a list of messages or content blocks, got undefined"],
          [{ role: "user", content: "hi" }, "content: expected array"],
          [[{ type: "text" }], "prompt[0].content[0]"],
          [
            [Message.text("Look"), Message.image("data:image/png;base64,AAAA", "image/png")],
            'prompt[0].content[1].source.data: expected base64 alone, got "data:image/png;base64,AAAA"'
          ],
          [
            Message.user([Message.image("./cat.png", "image/png")]),
            "content[0].source.data: expected base64"
          ],
          [[user, "hi"], 'prompt[1]: expected a message, got "hi"'],
          [5, "got 5"]
        ]
        for (const [input, words] of bad) {
          const script = yield* agent([done])
          const error = yield* Effect.flip(script.agent.prompt(input))
          assert.include(error.message, "Invalid prompt: ")
          assert.include(error.message, words)
          assert.deepStrictEqual(script.events, [])
          assert.isTrue(Exit.isFailure(yield* Effect.exit(script.agent.steer(input))))
          assert.strictEqual((yield* script.agent.prompt("hi")).status, "completed")
        }
      })
  )
})
